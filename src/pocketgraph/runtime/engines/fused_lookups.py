"""Finds the lookups of embeddings by sparse ids, as feature columns spell them, and runs each as one step.

``tf.nn.safe_embedding_lookup_sparse`` is some thirty small nodes: the shape folded to two axes, negative ids dropped,
empty rows filled, every id looked up once, the rows of each example put together, the filled ones emptied again. A
wide-and-deep net has a dozen of them. Where its tensors are plain, what comes out is a handful of NumPy calls away;
where they are not, and whenever somebody looks at the single nodes, the nodes run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import PASSES, SELECTS
from pocketgraph.kernels.arrays import Array
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan, dependencies
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.reference_arguments import is_reference_output

COMBINERS = {"SparseSegmentSum": "sum", "SparseSegmentMean": "mean", "SparseSegmentSqrtN": "root"}
FIRST_COLUMN = {"begin_mask": 1, "end_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 2}
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
        inside: the nodes that belong to it, by name.
        output: the tensor that it gives.
    """

    def __init__(self, plan: Plan, held: Collection[str], combiner: Item) -> None:
        self.plan = plan
        self.held = held
        self.combiner = combiner
        self.inside: dict[str, Item] = {}
        self.output = Endpoint(combiner.node.name, 0)
        self.width: int | None = None  # of a row, where the graph counts on one

    def part_call(self, run_apart: Callable[..., Any]) -> PartCall | None:
        """The lookup as a part; None when it is none that is known."""
        how = COMBINERS[self.combiner.node.op]
        try:
            places, ids, params = self._simple()
        except _NoMatchError:
            return None
        plain: Callable[..., Any] = _simple_lookup(how)
        inputs = [places, ids, params]
        with suppress(_NoMatchError):
            inputs = [*self._safe(places, ids), params]
            plain = _safe_lookup(how, self.width)
        if any(is_reference_output(self.plan.items[e.node].node.op, e.port) for e in inputs if e not in self.plan.fed):
            return None
        members = self._members(inputs)
        if members is None:
            return None
        apart = run_apart(self._with_constants(inputs), inputs, (self.output,))
        call = FusedCall(plain, apart)
        return PartCall(self.combiner.node, members, tuple(inputs), (self.output,), call, takes_run=True)

    # What it is made of; each raises _NoMatchError where it is made of something else

    def _simple(self) -> tuple[Endpoint, Endpoint, Endpoint]:
        """(the ids' places, the ids, the table) of a lookup that asks for each id once."""
        rows, numbers, groups = (self._source(endpoint) for endpoint in self.combiner.data[:3])
        gather, unique = self._item(rows, "GatherV2", "ResourceGather"), self._item(numbers, "Unique")
        _expect(numbers.port == 1 and len(gather.data) == 3 and not gather.node.attr("batch_dims", 0))
        _expect(self._source(gather.data[1]) == Endpoint(unique.node.name, 0))
        _expect(self._constants(gather.data[2]) == [0])
        cast = self._casts(groups)
        column = self._item(cast[0].data[0] if cast else groups, "StridedSlice")
        _expect(all((column.node.attr(name, 0) or 0) == mask for name, mask in FIRST_COLUMN.items()))
        _expect(self._constants(*column.data[1:]) == [[0, 0], [0, 1], [1, 1]])
        self._take(self.combiner, gather, unique, column, *cast)
        return self._source(column.data[0]), self._source(unique.data[0]), gather.data[0]

    def _safe(self, places: Endpoint, ids: Endpoint) -> tuple[Endpoint, Endpoint, Endpoint]:
        """(places, ids, shape) of the sparse tensor whose negative ids and empty rows are seen to around the lookup."""
        filled = self._item(ids, "SparseFillEmptyRows")
        _expect(self._source(ids).port == 1 and self._source(places) == Endpoint(filled.node.name, 0))
        _expect(self._constants(filled.data[3]) == [0])
        select, around, width = self._emptied(filled)
        reshaped, ids, before = self._pruned(filled)
        _expect(self._source(filled.data[2]) == Endpoint(reshaped.node.name, 1))
        self._take(filled, *around, *before, reshaped, *self._folded(reshaped))
        self.output, self.width = Endpoint(select.node.name, 0), width
        shape = self._source(reshaped.data[1])
        self._unfold(shape)
        return self._source(reshaped.data[0]), ids, shape

    def _emptied(self, filled: Item) -> tuple[Item, list[Item], int | None]:
        """(the Select that puts zeros where rows were empty, it and what it needs, how wide it takes a row to be)."""
        own = Endpoint(self.combiner.node.name, 0)
        for name in self._takers(own):
            with suppress(_NoMatchError):
                select = self.plan.items[name]
                _expect(select.node.op in SELECTS and self._source(select.data[2]) == own)
                tile, zeros = self._item(select.data[0], "Tile"), self._item(select.data[1], "ZerosLike")
                column = self._item(tile.data[0], "Reshape")
                _expect(self._source(zeros.data[0]) == own)
                _expect(self._source(column.data[0]) == Endpoint(filled.node.name, 2))
                _expect(self._constants(column.data[1]) == [[-1, 1]])
                sizes, width = self._row_of(tile.data[1], own)
                return select, [select, tile, zeros, column, *sizes], width
        raise _NoMatchError

    def _row_of(self, sizes: Endpoint, rows: Endpoint) -> tuple[list[Item], int | None]:
        """What makes the sizes ``[1, width of the rows]``, and the width where it is a constant."""
        (known,) = self._constants(sizes)
        if isinstance(known, list):
            _expect(len(known) == 2 and known[0] == 1)
            return [], known[1]
        pack = self._item(sizes, "Pack")
        _expect(len(pack.data) == 2 and self._constants(pack.data[0]) == [1])
        width = self._item(pack.data[1], "StridedSlice")
        shape = self._item(width.data[0], "Shape")
        _expect(self._source(shape.data[0]) == rows and self._constants(*width.data[1:]) == [[1], [2], [1]])
        return [pack, width, shape], None

    def _pruned(self, filled: Item) -> tuple[Item, Endpoint, list[Item]]:
        """(the SparseReshape before, its ids, what drops the negative ones)."""
        places, ids = (self._item(endpoint, "GatherV2") for endpoint in filled.data[:2])
        _expect(self._source(places.data[1]) == self._source(ids.data[1]))
        _expect(self._constants(places.data[2], ids.data[2]) == [0, 0])
        reshaped, flat = self._item(places.data[0], "SparseReshape"), self._item(places.data[1], "Reshape")
        where = self._item(flat.data[0], "Where")
        positive = self._item(where.data[0], "GreaterEqual")
        _expect(self._source(positive.data[0]) == self._source(ids.data[0]))
        _expect(self._source(places.data[0]).port == 0 and self._constants(positive.data[1], flat.data[1]) == [0, [-1]])
        return reshaped, self._source(ids.data[0]), [places, ids, flat, where, positive]

    def _folded(self, reshaped: Item) -> list[Item]:
        """What makes the shape ``[product of all axes but the second, the second]``: of two axes, the shape itself."""
        cast = self._casts(reshaped.data[2])
        pack = self._item(cast[0].data[0] if cast else reshaped.data[2], "Pack")
        _expect(len(pack.data) == 2)
        shape = self._source(reshaped.data[1])
        product, last = self._item(pack.data[0], "Prod"), self._item(pack.data[1], "GatherV2")
        first = self._item(product.data[0], "Slice")
        _expect(self._source(first.data[0]) == shape == self._source(last.data[0]))
        asked = self._constants(*first.data[1:], product.data[1], *last.data[1:])
        _expect(asked in ([[0], [1], [0], 1, 0], [[0], [1], 0, 1, 0]) and not product.node.attr("keep_dims", False))
        return [pack, product, first, last, *cast]

    def _unfold(self, shape: Endpoint) -> None:
        """Takes in what gives the result the axes of the sparse tensor but the last: of two axes, the result's own."""
        for name in self._takers(self.output) if self.output.node not in self.held else ():
            with suppress(_NoMatchError):
                reshape = self.plan.items[name]
                _expect(reshape.node.op == "Reshape" and self._source(reshape.data[0]) == self.output)
                sizes = self._item(reshape.data[1], "ConcatV2")
                _expect(len(sizes.data) == 3)
                first = self._item(sizes.data[0], "Slice")
                cast = self._item(first.data[0], "Cast")
                _expect(self._source(cast.data[0]) == shape)
                _expect(self._constants(*first.data[1:], sizes.data[2]) == [[0], [1], 0])
                (width,), rest = self._constants(sizes.data[1]), list[Item]()
                if isinstance(width, list):
                    _expect(len(width) == 1 and (self.width or width[0]) == width[0])
                    self.width = width[0]
                else:
                    last = self._item(sizes.data[1], "Slice")
                    whole = self._item(last.data[0], "Shape")
                    _expect(self._source(whole.data[0]) == self.output)
                    _expect(self._constants(*last.data[1:]) == [[1], [-1]])
                    rest = [last, whole]
                self._take(reshape, sizes, first, cast, *rest)
                self.output = Endpoint(name, 0)
                return

    # Nodes

    def _source(self, endpoint: Endpoint) -> Endpoint:
        """Where a tensor comes from, before nodes that pass it on."""
        while endpoint not in self.plan.fed:
            item = self.plan.items.get(endpoint.node)
            if item is None or item.node.op not in PASSES or len(item.data) != 1 or item.control:
                break
            endpoint = item.data[0]
        return endpoint

    def _item(self, endpoint: Endpoint, *ops: str) -> Item:
        """The node that a tensor comes from, which must be one of these ops."""
        endpoint = self._source(endpoint)
        item = self.plan.items.get(endpoint.node) if endpoint not in self.plan.fed else None
        if item is None or item.node.op not in ops:
            raise _NoMatchError
        return item

    def _casts(self, endpoint: Endpoint) -> list[Item]:
        """The Cast that a tensor comes from, where it comes from one."""
        with suppress(_NoMatchError):
            return [self._item(endpoint, "Cast")]
        return []

    def _constants(self, *endpoints: Endpoint) -> list[Any]:
        """The values of small constants, as Python's; None for anything else."""
        found: list[Any] = []
        for endpoint in map(self._source, endpoints):
            item = self.plan.items.get(endpoint.node) if endpoint not in self.plan.fed else None
            is_small = item is not None and item.node.op == "Const" and item.node.tensor.nbytes <= LARGEST_CONSTANT
            found.append(item.node.tensor.numpy().tolist() if item is not None and is_small else None)
        return found

    def _takers(self, endpoint: Endpoint) -> list[str]:
        """Who takes a tensor, itself or passed on."""
        found = []
        for name in self.plan.takers(endpoint):
            item = self.plan.items[name]
            passes = item.node.op in PASSES and len(item.data) == 1 and not item.control
            found += self._takers(Endpoint(name, 0)) if passes else [name]
        return found

    def _take(self, *items: Item) -> None:
        self.inside.update((item.node.name, item) for item in items)

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
        found: set[str] = set()
        waiting = [endpoint.node for endpoint in inputs if endpoint not in self.plan.fed]
        while waiting:
            name = waiting.pop()
            if name not in found and name in self.plan.items:
                found.add(name)
                waiting += dependencies(self.plan.items[name], self.plan)
        return found

    def _pass_on(self, endpoint: Endpoint, members: dict[str, Item]) -> None:
        """Adds the nodes that pass a tensor on."""
        for name in self.plan.takers(endpoint):
            item = self.plan.items[name]
            if item.node.op in PASSES and len(item.data) == 1 and not item.control and endpoint != self.output:
                members[name] = item
                self._pass_on(Endpoint(name, 0), members)

    def _with_constants(self, inputs: Sequence[Endpoint]) -> dict[str, Item]:
        """All nodes between the inputs and the output, constants included."""
        found: dict[str, Item] = {}
        waiting = [self.output.node]
        while waiting:
            name = waiting.pop()
            if name not in found:
                item = found[name] = self.plan.items[name]._replace(control=())
                waiting += [e.node for e in item.data if e not in inputs]
        return {name: found[name] for name in self.plan.items if name in found}


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
    from pocketgraph.kernels.arrays import reserve
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
    from pocketgraph.kernels.arrays import reserve

    if (min(ids.tolist()) if ids.size <= FEW else ids.min()) < 0:
        return None
    if params.size * ids.size > SMALL:
        reserve((ids.size, *params.shape[1:]), params.dtype)
    try:
        return params.take(ids, 0)
    except (IndexError, TypeError):
        return None
