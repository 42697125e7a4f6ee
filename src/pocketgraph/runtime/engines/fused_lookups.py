"""Finds the lookups of embeddings by sparse ids, as feature columns spell them, and runs each as one step.

``tf.nn.safe_embedding_lookup_sparse`` is some thirty small nodes: the shape folded to two axes, negative ids dropped,
empty rows filled, every id looked up once, the rows of each example put together, the filled ones emptied again. A
wide-and-deep net has a dozen of them. Where its tensors are plain, what comes out is a handful of NumPy calls away;
where they are not, and whenever somebody looks at the single nodes, the nodes run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import PASSES, SELECTS
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan, dependencies
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.reference_arguments import is_reference_output

COMBINERS = {"SparseSegmentSum": "sum", "SparseSegmentMean": "mean", "SparseSegmentSqrtN": "root"}
LOOKUP: dict[str, tuple[Any, ...]] = {
    # Each id once, put together by the first number of its place.
    "combined": ("|".join(COMBINERS), "rows", "unique:1", "groups?"),
    "rows": ("GatherV2", "params!", "unique", 0),
    "unique": ("Unique", "some_ids"),
    "groups": ("StridedSlice", "some_places", [0, 0], [0, 1], [1, 1]),
    # Empty rows are filled for that, and emptied again.
    "filled": ("SparseFillEmptyRows", "kept_places", "kept_ids", "matrix:1", 0),
    "emptied": ("|".join(SELECTS), "empty", "zeros", "combined"),
    "empty": ("Tile", "column", "repeats"),
    "column": ("Reshape", "filled:2", [-1, 1]),
    "repeats": ("Const|Pack", 1, "width"),
    "width": ("StridedSlice", "sizes", [1], [2], [1]),
    "sizes": ("Shape", "combined"),
    "zeros": ("ZerosLike", "combined"),
    # Negative ids are dropped before.
    "kept_places": ("GatherV2", "matrix", "kept", 0),
    "kept_ids": ("GatherV2", "ids", "kept", 0),
    "kept": ("Reshape", "where", [-1]),
    "where": ("Where", "positive"),
    "positive": ("GreaterEqual", "ids", 0),
    # All axes but the last are one before that, and axes again in the end.
    "matrix": ("SparseReshape", "places", "shape", "two_axes?"),
    "two_axes": ("Pack", "product", "last"),
    "product": ("Prod", "first", (0, [0])),
    "first": ("Slice", "shape", [0], [1]),
    "last": ("GatherV2", "shape", 1, 0),
    "unfolded": ("Reshape", "emptied", "all_axes"),
    "all_axes": ("ConcatV2", "but_the_last", "last_axis", 0),
    "but_the_last": ("Slice", "numbers", [0], [1]),
    "numbers": ("Cast", "shape"),
    "last_axis": ("Const|Slice", "own_axes", [1], [-1]),
    "own_axes": ("Shape", "emptied"),
}
"""A lookup, a row a node: its ops, and its operands. A text is another node, or a tensor that comes from outside; with
``:1`` its second output, with ``?`` perhaps behind a Cast, with ``!`` the tensor itself and not where it was passed on
from. All else are values of constants, in a tuple those of which it is one."""
ATTRIBUTES = {
    "rows": {"batch_dims": 0},
    "groups": {"begin_mask": 1, "end_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 2},
    "product": {"keep_dims": 0},
}
LARGEST_CONSTANT = 64  # bytes of the sizes and positions that are looked at
FEW = 64  # ids that are looked through more quickly one by one


def fused_lookups(plan: Plan, wanted: Collection[Endpoint], run_apart: Callable[..., Any]) -> list[PartCall]:
    """The lookups of a plan as parts.

    Args:
        plan: what is compiled.
        wanted: tensors that leave the plan.
        run_apart: makes what runs nodes one by one: (their items, inputs, outputs) give a function of the Run and the
            inputs' values.
    """
    held = {endpoint.node for endpoint in (*wanted, *plan.fed)}
    found = []
    for name, item in plan.items.items():
        if item.node.op in COMBINERS and not plan.frames[name].depth:
            part = _Lookup(plan, held, item).part_call(run_apart)
            if part is not None:
                found.append(part)
    return found


class _NoMatchError(Exception):
    """These are other nodes than a lookup's."""


def _expect(holds: bool) -> None:
    if not holds:
        raise _NoMatchError


class _Lookup:
    """What is known of one lookup.

    Attributes:
        found: the tensors by the names that LOOKUP has for them; of a node its first output.
        inside: the nodes that belong to it, by name.
        output: the tensor that it gives.
        width: of a row, where the graph counts on one.
    """

    def __init__(self, plan: Plan, held: Collection[str], combiner: Item) -> None:
        self.plan = plan
        self.held = held
        self.combiner = combiner
        self.found: dict[str, Endpoint] = {}
        self.inside: dict[str, Item] = {}
        self.output = Endpoint(combiner.node.name, 0)
        self.width: int | None = None

    def part_call(self, run_apart: Callable[..., Any]) -> PartCall | None:
        """The lookup as a part; None when it is none that is known."""
        how = COMBINERS[self.combiner.node.op]
        try:
            self._fit(self.output, "combined")
        except _NoMatchError:
            return None
        is_safe = self._is_safe()
        names = ("places", "ids", "shape", "params") if is_safe else ("some_places", "some_ids", "params")
        inputs = [self.found[name] for name in names]
        if any(is_reference_output(self.plan.items[e.node].node.op, e.port) for e in inputs if e not in self.plan.fed):
            return None
        members = self._members(inputs)
        if members is None:
            return None
        apart = run_apart(self._with_constants(inputs), inputs, (self.output,))
        call = FusedCall(_safe_lookup(how, self.width) if is_safe else _simple_lookup(how), apart)
        return PartCall(self.combiner.node, members, tuple(inputs), (self.output,), call, takes_run=True)

    def _is_safe(self) -> bool:
        """Whether negative ids and empty rows are seen to around it; takes that in, and what folds axes if there is."""
        own = self.output
        for name in self._takers(own):
            with self._trying():
                self._fit(self.found["some_places"], "filled")
                self._fit(self.found["some_ids"], "filled:1")
                self._fit(Endpoint(name, 0), "emptied")
                one, width = self._numbers("repeats", [1, None])
                _expect(one == 1)
                self.output, self.width = Endpoint(name, 0), width
                break
        if self.output == own:
            return False
        for name in self._takers(self.output) if self.output.node not in self.held else ():
            with self._trying():
                self._fit(Endpoint(name, 0), "unfolded")
                (width,) = self._numbers("last_axis", [self.width])
                _expect(self.width in (None, width))
                self.output, self.width = Endpoint(name, 0), width
                break
        return True

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Forgets what was found inside of it where that does not fit."""
        before = self.found.copy(), self.inside.copy()
        try:
            yield
        except _NoMatchError:
            self.found, self.inside = before

    def _fit(self, endpoint: Endpoint, wanted: Any) -> None:
        """Takes in the nodes behind a tensor, which is the operand ``wanted`` of LOOKUP.

        Raises:
            _NoMatchError: they are others.
        """
        if not isinstance(wanted, str):
            value = self._value(endpoint)
            _expect(value is not None and value in (wanted if isinstance(wanted, tuple) else (wanted,)))
            return
        name, _, port = wanted.rstrip("?!").partition(":")
        if wanted.endswith("?") and (cast := self._made_by(endpoint)) is not None and cast.node.op == "Cast":
            self.inside[cast.node.name] = cast
            endpoint = cast.data[0]
        source = endpoint if wanted.endswith("!") else self._source(endpoint)
        if name not in LOOKUP:
            _expect(self.found.setdefault(name, source) == source)
            return
        _expect(source.port == int(port or 0))
        head = Endpoint(source.node, 0)
        if name in self.found:
            _expect(self.found[name] == head)
            return
        item, (ops, *operands) = self._made_by(source), LOOKUP[name]
        if item is None or item.node.op not in ops.split("|"):
            raise _NoMatchError
        self.found[name] = head
        if item.node.op == "Const":
            _expect(self._value(source) is not None)
            return
        _expect(len(item.data) == len(operands))
        _expect(all((item.node.attr(key, 0) or 0) == value for key, value in ATTRIBUTES.get(name, {}).items()))
        self.inside[item.node.name] = item
        for operand, part in zip(item.data, operands, strict=True):
            self._fit(operand, part)

    # Nodes

    def _source(self, endpoint: Endpoint) -> Endpoint:
        """Where a tensor comes from, before nodes that pass it on."""
        while endpoint not in self.plan.fed:
            item = self.plan.items.get(endpoint.node)
            if item is None or item.node.op not in PASSES or len(item.data) != 1 or item.control:
                break
            endpoint = item.data[0]
        return endpoint

    def _made_by(self, endpoint: Endpoint) -> Item | None:
        """The node that a tensor comes from; None for one that is fed."""
        endpoint = self._source(endpoint)
        return self.plan.items.get(endpoint.node) if endpoint not in self.plan.fed else None

    def _value(self, endpoint: Endpoint) -> Any:
        """The value of a small constant, as Python's; None for anything else."""
        item = self._made_by(endpoint)
        is_small = item is not None and item.node.op == "Const" and item.node.tensor.nbytes <= LARGEST_CONSTANT
        return item.node.tensor.numpy().tolist() if item is not None and is_small else None

    def _numbers(self, name: str, unknown: list[int | None]) -> list[int | None]:
        """The numbers of a vector that may be a constant, or ``unknown``, as many as there are to be."""
        value = self._value(self.found[name])
        _expect(value is None or (isinstance(value, list) and len(value) == len(unknown)))
        return unknown if value is None else value

    def _takers(self, endpoint: Endpoint) -> list[str]:
        """Who takes a tensor, itself or passed on."""
        found = []
        for name in self.plan.takers(endpoint):
            item = self.plan.items[name]
            passes = item.node.op in PASSES and len(item.data) == 1 and not item.control
            found += self._takers(Endpoint(name, 0)) if passes else [name]
        return found

    def _members(self, inputs: Sequence[Endpoint]) -> frozenset[str] | None:
        """The nodes that only the lookup needs; None when something of it cannot be left out."""
        members = dict(self.inside)
        for name in self.inside:
            for endpoint in self.plan.taken_from(name):
                self._pass_on(endpoint, members)
        while True:
            outer = [
                name for name in members
                if name != self.output.node and (
                    name in self.held
                    or any(t not in members for takers in self.plan.taken_from(name).values() for t in takers)
                )
            ]  # fmt: skip
            if not outer:
                break
            for name in outer:
                del members[name]
        if self.combiner.node.name not in members or self.output in self.plan.fed:
            return None
        if any(item.control or name in self.plan.parts for name, item in members.items()):
            return None
        waited = {name for item in self.plan.items.values() for name in item.control}
        if not waited.isdisjoint(members) and not members.keys().isdisjoint(self._before(inputs)):
            return None  # who waits for a part of it would wait for all of it, and be waited for
        return frozenset(members)

    def _before(self, inputs: Sequence[Endpoint]) -> set[str]:
        """All nodes that must run before these tensors are there."""
        items, fed = self.plan.items, self.plan.fed
        last = (endpoint.node for endpoint in inputs if endpoint not in fed)
        return set(closure(last, lambda name: dependencies(items[name], self.plan), items.__contains__))

    def _pass_on(self, endpoint: Endpoint, members: dict[str, Item]) -> None:
        """Adds the nodes that pass a tensor on."""
        for name in self.plan.takers(endpoint):
            item = self.plan.items[name]
            if item.node.op in PASSES and len(item.data) == 1 and not item.control and endpoint != self.output:
                members[name] = item
                self._pass_on(Endpoint(name, 0), members)

    def _with_constants(self, inputs: Sequence[Endpoint]) -> dict[str, Item]:
        """All nodes between the inputs and the output, constants included."""
        items = self.plan.items
        found = set(closure([self.output.node], lambda name: (e.node for e in items[name].data if e not in inputs)))
        return {name: item._replace(control=()) for name, item in items.items() if name in found}


class FusedCall:
    """A lookup as a call: the Run and the inputs' values in, one output out."""

    traces_itself = True
    is_pure = True

    def __init__(self, plain: Callable[..., Array | None], apart: Callable[..., Any]) -> None:
        self.plain = plain
        self.apart = apart

    def __call__(self, run: Any, *arrays: Any) -> Any:
        if run.trace is None and run.ledger is None and run.deadline is None:
            found = self.plain(*arrays)
            if found is not None:
                return found
        return self.apart(run, *arrays)


def _simple_lookup(how: str) -> Callable[..., Array | None]:
    """Rows of a table by ids, put together by the first number of each id's place; None where it is not plain."""
    from pocketgraph.kernels.math.segments import in_runs

    def lookup(places: Array, ids: Array, params: Array) -> Array | None:
        if places.ndim != 2 or ids.ndim != 1 or not ids.size or params.ndim < 1 or len(places) != ids.size:
            return None
        picked = _rows(params, ids)
        return None if picked is None else in_runs(picked, places[:, 0], None, how)

    return lookup


def _safe_lookup(how: str, width: int | None) -> Callable[..., Array | None]:
    """The same of a sparse matrix [examples, …]: negative ids count nothing, an example without ids is zeros."""
    from pocketgraph.kernels.math.segments import in_runs

    single = np.dtype(np.float32)

    def lookup(places: Array, ids: Array, shape: Array, params: Array) -> Array | None:
        count = ids.size
        if shape.shape != (2,) or places.shape != (count, 2) or ids.ndim != 1 or params.ndim != 2:
            return None
        if params.dtype != single or not len(params) or (width is not None and params.shape[1] != width):
            return None
        examples = shape.item(0)
        if count and (min(ids.tolist()) if count <= FEW else ids.min()) < 0:
            kept = ids >= 0
            ids, places = ids[kept], places[kept]
            count = ids.size
        if not count:
            return np.zeros(reserve((examples, params.shape[1]), single), single) if examples > 0 else None
        picked = _rows(params, ids)
        return None if picked is None else in_runs(picked, places[:, 0], examples, how)

    return lookup


def _rows(params: Array, ids: Array) -> Array | None:
    """The rows of these numbers; None where one is no row."""
    from pocketgraph.kernels.array.gather_scatter import SMALL

    if (min(ids.tolist()) if ids.size <= FEW else ids.min()) < 0:
        return None
    if params.size * ids.size > SMALL:
        reserve((ids.size, *params.shape[1:]), params.dtype)
    try:
        return params.take(ids, 0)
    except (IndexError, TypeError):
        return None
