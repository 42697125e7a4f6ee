"""Finds the lookups of embeddings by sparse ids, as feature columns spell them, and runs each as one step.

``tf.nn.safe_embedding_lookup_sparse`` is some thirty small nodes: the shape folded to two axes, negative ids dropped,
empty rows filled, every id looked up once, the rows of each example put together, the filled ones emptied again. A
wide-and-deep net has a dozen of them. Where its tensors are plain, what comes out is a handful of NumPy calls away;
where they are not, and whenever somebody looks at the single nodes, the nodes run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
        simple = self._simple()
        if simple is None:
            return None
        places, ids, params = simple
        how, inputs = COMBINERS[self.combiner.node.op], [places, ids, params]
        safe = self._safe(places, ids)
        if safe is not None:
            inputs = [*safe, params]
            plain: Callable[..., Any] = _safe_lookup(how, self.width)
        else:
            plain = _simple_lookup(how)
        if any(is_reference_output(self.plan.items[e.node].node.op, e.port) for e in inputs if e not in self.plan.fed):
            return None
        members = self._members(inputs)
        if members is None:
            return None
        apart = run_apart(self._with_constants(inputs), inputs, (self.output,))
        call = FusedCall(plain, apart)
        return PartCall(self.combiner.node, members, tuple(inputs), (self.output,), call, takes_run=True)

    # What it is made of

    def _simple(self) -> tuple[Endpoint, Endpoint, Endpoint] | None:
        """(the ids' places, the ids, the table) of a lookup that asks for each id once."""
        rows, numbers, groups = (self._source(endpoint) for endpoint in self.combiner.data[:3])
        gather, unique = self._item(rows, "GatherV2", "ResourceGather"), self._item(numbers, "Unique")
        if gather is None or unique is None or numbers.port != 1 or len(gather.data) != 3:
            return None
        if self._source(gather.data[1]) != Endpoint(unique.node.name, 0) or gather.node.attr("batch_dims", 0):
            return None
        if self._constant(gather.data[2]) != 0:
            return None
        cast = self._item(groups, "Cast")
        column = self._item(self._source(cast.data[0]) if cast is not None else groups, "StridedSlice")
        if column is None or any((column.node.attr(name, 0) or 0) != mask for name, mask in FIRST_COLUMN.items()):
            return None
        if [self._constant(endpoint) for endpoint in column.data[1:]] != [[0, 0], [0, 1], [1, 1]]:
            return None
        self._take(self.combiner, gather, unique, column, *([cast] if cast is not None else []))
        return self._source(column.data[0]), self._source(unique.data[0]), gather.data[0]

    def _safe(self, places: Endpoint, ids: Endpoint) -> tuple[Endpoint, Endpoint, Endpoint] | None:
        """(places, ids, shape) of the sparse tensor whose negative ids and empty rows are seen to around the lookup."""
        filled = self._item(self._source(ids), "SparseFillEmptyRows")
        if filled is None or self._source(ids).port != 1 or self._source(places) != Endpoint(filled.node.name, 0):
            return None
        if self._constant(filled.data[3]) != 0:
            return None
        emptied = self._emptied(filled)
        pruned = self._pruned(filled)
        if emptied is None or pruned is None:
            return None
        select, around, width = emptied
        reshaped, ids, before = pruned
        if self._source(filled.data[2]) != Endpoint(reshaped.node.name, 1):
            return None
        folded = self._folded(reshaped)
        if folded is None:
            return None
        self._take(filled, *around, *before, reshaped, *folded)
        self.output, self.width = Endpoint(select.node.name, 0), width
        shape = self._source(reshaped.data[1])
        self._unfold(shape)
        return self._source(reshaped.data[0]), ids, shape

    def _emptied(self, filled: Item) -> tuple[Item, list[Item], int | None] | None:
        """(the Select that puts zeros where rows were empty, it and what it needs, how wide it takes a row to be)."""
        own = Endpoint(self.combiner.node.name, 0)
        for name in self._takers(own):
            select = self.plan.items[name]
            if select.node.op not in SELECTS or self._source(select.data[2]) != own:
                continue
            tile, zeros = self._item(select.data[0], "Tile"), self._item(select.data[1], "ZerosLike")
            column = self._item(tile.data[0], "Reshape") if tile is not None else None
            if tile is None or zeros is None or column is None or self._source(zeros.data[0]) != own:
                continue
            if self._source(column.data[0]) != Endpoint(filled.node.name, 2):
                continue
            times = self._row_of(tile.data[1], own)
            if self._constant(column.data[1]) == [-1, 1] and times is not None:
                return select, [select, tile, zeros, column, *times[0]], times[1]
        return None

    def _row_of(self, sizes: Endpoint, rows: Endpoint) -> tuple[list[Item], int | None] | None:
        """What makes the sizes ``[1, width of the rows]``, and the width where it is a constant."""
        known = self._constant(sizes)
        if isinstance(known, list):
            return ([], known[1]) if len(known) == 2 and known[0] == 1 else None
        pack = self._item(sizes, "Pack")
        if pack is None or len(pack.data) != 2 or self._constant(pack.data[0]) != 1:
            return None
        width = self._item(pack.data[1], "StridedSlice")
        shape = self._item(width.data[0], "Shape") if width is not None else None
        if width is None or shape is None or self._source(shape.data[0]) != rows:
            return None
        if [self._constant(endpoint) for endpoint in width.data[1:]] != [[1], [2], [1]]:
            return None
        return [pack, width, shape], None

    def _pruned(self, filled: Item) -> tuple[Item, Endpoint, list[Item]] | None:
        """(the SparseReshape before, its ids, what drops the negative ones)."""
        places, ids = (self._item(endpoint, "GatherV2") for endpoint in filled.data[:2])
        if places is None or ids is None or self._source(places.data[1]) != self._source(ids.data[1]):
            return None
        if self._constant(places.data[2]) != 0 or self._constant(ids.data[2]) != 0:
            return None
        reshaped, flat = self._item(places.data[0], "SparseReshape"), self._item(places.data[1], "Reshape")
        where = self._item(flat.data[0], "Where") if flat is not None else None
        positive = self._item(where.data[0], "GreaterEqual") if where is not None else None
        if reshaped is None or flat is None or where is None or positive is None:
            return None
        if self._source(positive.data[0]) != self._source(ids.data[0]) or self._constant(positive.data[1]) != 0:
            return None
        if self._source(places.data[0]).port != 0 or self._constant(flat.data[1]) != [-1]:
            return None
        return reshaped, self._source(ids.data[0]), [places, ids, flat, where, positive]

    def _folded(self, reshaped: Item) -> list[Item] | None:
        """What makes the shape ``[product of all axes but the second, the second]``: of two axes, the shape itself."""
        cast = self._item(reshaped.data[2], "Cast")
        pack = self._item(cast.data[0] if cast is not None else reshaped.data[2], "Pack")
        if pack is None or len(pack.data) != 2:
            return None
        shape = self._source(reshaped.data[1])
        product, last = self._item(pack.data[0], "Prod"), self._item(pack.data[1], "GatherV2")
        first = self._item(product.data[0], "Slice") if product is not None else None
        if product is None or last is None or first is None:
            return None
        same = self._source(first.data[0]) == shape == self._source(last.data[0])
        asked = [self._constant(e) for e in (*first.data[1:], product.data[1], *last.data[1:])]
        if (
            not same
            or asked not in ([[0], [1], [0], 1, 0], [[0], [1], 0, 1, 0])
            or product.node.attr("keep_dims", False)
        ):
            return None
        return [pack, product, first, last, *([cast] if cast is not None else [])]

    def _unfold(self, shape: Endpoint) -> None:
        """Takes in what gives the result the axes of the sparse tensor but the last: of two axes, the result's own."""
        for name in self._takers(self.output) if self.output.node not in self.held else ():
            reshape = self.plan.items[name]
            sizes = self._item(reshape.data[1], "ConcatV2") if reshape.node.op == "Reshape" else None
            if sizes is None or len(sizes.data) != 3 or self._source(reshape.data[0]) != self.output:
                continue
            first = self._item(sizes.data[0], "Slice")
            cast = self._item(first.data[0], "Cast") if first is not None else None
            if first is None or cast is None or self._source(cast.data[0]) != shape:
                continue
            if [self._constant(e) for e in (*first.data[1:], sizes.data[2])] != [[0], [1], 0]:
                continue
            width, rest = self._constant(sizes.data[1]), list[Item]()
            if not isinstance(width, list):
                last = self._item(sizes.data[1], "Slice")
                whole = self._item(last.data[0], "Shape") if last is not None else None
                if last is None or whole is None or self._source(whole.data[0]) != self.output:
                    continue
                if [self._constant(e) for e in last.data[1:]] != [[1], [-1]]:
                    continue
                rest = [last, whole]
            elif len(width) != 1 or (self.width or width[0]) != width[0]:
                continue
            else:
                self.width = width[0]
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

    def _item(self, endpoint: Endpoint, *ops: str) -> Item | None:
        """The node that a tensor comes from, when it is one of these ops."""
        endpoint = self._source(endpoint)
        item = self.plan.items.get(endpoint.node) if endpoint not in self.plan.fed else None
        return item if item is not None and item.node.op in ops else None

    def _constant(self, endpoint: Endpoint) -> Any:
        """The value of a small constant, as Python's; None for anything else."""
        item = self._item(endpoint, "Const")
        if item is None or item.node.tensor.nbytes > LARGEST_CONSTANT:
            return None
        return item.node.tensor.numpy().tolist()

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
