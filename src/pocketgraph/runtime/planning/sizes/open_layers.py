"""Which layers of a graph are, for any sizes, what they are for some: those whose form asks no size.

x [1, ?, 8] ── Shape ── Range ── Less ── Cast ── mask [1, ?]      numbers that follow from the length: before
     └──────── MatMul ── Softmax ── Mul(mask) ── MatMul           layers
                                                  └── TopKV2      what is no layer: after
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.op_traits import CONVOLUTIONS, HEAVY, MOVES, SELECTS, ops_with, slice_masks
from pocketgraph.graph.record import Record
from pocketgraph.kernels.shapes import Inferred

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.open_program import Sizes
    from pocketgraph.runtime.planning.call_key import CallKey
    from pocketgraph.runtime.planning.execution_plan import FixedPlan, Request

WITH_AXES = {
    "Mean": 1, "Sum": 1, "Max": 1, "Min": 1, "Transpose": 1, "ExpandDims": 1, "GatherV2": 2, "ConcatV2": -1,
    "ArgMax": 1, "Split": 0,
}  # fmt: skip
"""Not a trait: which input says the axes."""
SIZE_OPERANDS = {
    "Pad": (1,), "PadV2": (1,), "MirrorPad": (1,), "Reshape": (1,), "ResizeBilinear": (1,),
    "ResizeNearestNeighbor": (1,), "Slice": (1, 2), "StridedSlice": (1, 2), "Conv2DBackpropInput": (0,),
    "Tile": (1,),
}  # fmt: skip
"""Not a trait: which inputs say sizes or places that a program can take with each call."""
WINDOWS = SIZE_OPERANDS.keys() - {"Reshape"}
PICTURES = CONVOLUTIONS | {"MaxPool", "AvgPool"}
BATCHES = {"SpaceToBatchND", "BatchToSpaceND"}
"""Not a trait: they are layers where they dilate a convolution between them."""
COMPUTES_SHAPES = ops_with("moves", "passes") | {"Mul", "Prod"}
"""Not a trait: what computes shapes of shapes, so that each size is an open one, or a product of such, or fixed."""


class OpenCall(Record):
    """Calls that differ in sizes alone, for which one program is looked for.

    Attributes:
        key: of the calls, with None for the sizes that change.
        compiled: a plan for one of them.
        request: what is to be run, with the whole graph.
        nodes: those of the graph that are needed, producers first.
        kept_as: the folder and name under which the cache keeps the program; None where it does not.
    """

    key: CallKey
    compiled: FixedPlan
    request: Request
    nodes: Sequence[Node]
    kept_as: tuple[str, str] | None = None


class OpenLayers:
    """Sorts the nodes of a graph, producers first.

    Args:
        fed: the fed tensors.
        takes_sizes: whether a program may take numbers that follow from sizes.

    Attributes:
        from_sizes: tensors of numbers that follow from open sizes, and of which only shapes are made.
        before: nodes that are no layers, on which layers depend.
        after: nodes that are no layers and come after them, and what depends on such.
        computing: nodes that compute something else for other feeds or sizes.
        size_operands: of layers that take numbers that follow from open sizes, these by the places of the inputs.
        unread: of layers that do without some of these, those.
        cuts: layers that take some elements of open axes.
        late: nodes that compute such numbers of the sizes of what heavy nodes compute.
        asks_late_sizes: whether there are such, or nodes that are no layers take such sizes with other numbers.
        has_windows: whether some layer slides a window in steps, or pads.
    """

    def __init__(self, graph: Graph, fed: frozenset[str], *, takes_sizes: bool = True) -> None:
        self.graph = graph
        self.fed = fed
        self.takes_sizes = takes_sizes
        self.size_operands: dict[str, dict[int, str]] = {}
        self.unread: dict[str, str] = {}
        self.cuts: set[str] = set()
        self.late: set[str] = set()
        self.asks_late_sizes = False
        self.has_windows = False
        self.from_sizes: set[str] = set()
        self.before: dict[str, Node] = {}
        self.after: set[str] = set()
        self.computing: set[str] = set()
        self._behind: set[str] = set()  # the heavy nodes, and what depends on them
        self._sizes: set[str] = set()  # tensors that nothing but sizes goes into
        self._able = ops_with("any_size")

    @property
    def has_size_operands(self) -> bool:
        """Whether the graph has layers that are layers because programs may take numbers."""
        return self.takes_sizes and (bool(self.size_operands or self.late) or self.has_windows)

    @property
    def takes_more_than_shapes(self) -> bool:
        """Whether layers other than reshapes take numbers that follow from open sizes."""
        return self.has_windows and bool(self.size_operands)

    def look_at(self, node: Node, inferred: Inferred) -> bool:
        """Sorts a node, whose producers were looked at; says whether one program can hold all heavy ones.

        Args:
            node: it.
            inferred: what is known while sizes are open.
        """
        if node.op == "Const":
            return True
        refs = node.data_inputs
        shapes = inferred.shapes(node.name)
        made = [f"{node.name}:0"] if len(shapes) < 2 else [f"{node.name}:{port}" for port in range(len(shapes))]
        sources = [node_name(ref) if ":" in ref else ref for ref in refs]
        taken = [canonical(ref) if ":" in ref else f"{ref}:0" for ref in refs]
        is_heavy, is_after = node.op in HEAVY, not self.after.isdisjoint(sources)
        if is_heavy and is_after:
            return False
        if is_heavy or not self._behind.isdisjoint(sources):
            self._behind.add(node.name)
            is_behind = True
        else:
            is_behind = False
            if len(made) == 1 and not is_after and inferred.value(made[0]) is not None:
                return True  # whatever the sizes are
        is_of_sizes = bool(taken) and self._is_of_sizes(taken, inferred)
        if is_of_sizes:
            self._sizes.update(made)
        if is_after:
            self.after.add(node.name)
        elif self.late and is_of_sizes and not self.late.isdisjoint(sources):
            self.late.add(node.name)
            return True
        elif not self._is_layer(node, made, shapes, taken, inferred):
            if is_heavy:
                return False
            self.asks_late_sizes |= is_behind and not self.from_sizes.isdisjoint(taken)
            if self.takes_sizes and is_of_sizes and is_behind:
                self.late.add(node.name)
                return True
            if is_behind:
                self.after.add(node.name)
            else:
                self.before[node.name] = node
        takes_numbers = node.name in self.size_operands or node.name in self.unread
        if self.late and not takes_numbers and not self.late.isdisjoint(sources):
            return False
        if node.name in self.before or node.name in self.after or self._computes(node, sources, taken, inferred):
            self.computing.add(node.name)
        return True

    def _is_of_sizes(self, taken: Sequence[str], inferred: Inferred) -> bool:
        """Whether nothing but sizes goes into what takes these tensors."""
        for ref in taken:
            if ref not in self.from_sizes and ref not in self._sizes and inferred.value(ref) is None:
                return False
        return True

    def _computes(self, node: Node, sources: Collection[str], taken: Collection[str], inferred: Inferred) -> bool:
        if self.computing.isdisjoint(sources) and self.fed.isdisjoint(taken):
            return False
        made = f"{node.name}:0"
        return made not in self.from_sizes and inferred.value(made) is None

    def _is_layer(
        self, node: Node, made: Sequence[str], shapes: Sequence[Shape], taken: Sequence[str], inferred: Inferred
    ) -> bool:
        is_sized = not self.from_sizes.isdisjoint(taken)
        is_open = is_sized or not shapes or _are_open(shapes) or _are_open(map(inferred.shape, taken))
        if not is_open or not self.fed.isdisjoint(made):
            return True
        if inferred.value(made[0]) is not None and all(inferred.value(ref) is not None for ref in made[1:]):
            return True
        if node.op in ("Shape", "ShapeN"):
            self.from_sizes.update(made)
            return True
        if node.op in SELECTS and node.name not in self._behind:  # masks, which NumPy makes as well
            return False
        if node.op in BATCHES:
            return self._is_dilation(node, taken, inferred)
        operands = self._size_operands(node, taken, inferred) if self.takes_sizes and node.op in SIZE_OPERANDS else None
        if operands and (node.op != "Reshape" or is_sized):
            self.size_operands[node.name] = operands
            self.has_windows |= node.op != "Reshape"
            if node.op in ("Slice", "StridedSlice"):
                self.cuts.add(node.name)
            return True
        if is_sized and (node.op != "Reshape" or taken[0] in self.from_sizes):
            selects = node.op in COMPUTES_SHAPES and self.from_sizes.isdisjoint(_positions(node, taken))
            if selects:
                self.from_sizes.update(made)
            return selects
        if node.op == "Reshape" and node_name(taken[1]) in self.before:
            return False
        if node.op not in self._able or not _is_plain(node, taken, inferred, takes_sizes=self.takes_sizes):
            return False
        if node.op == "StridedSlice" and _takes_all(node, taken, inferred):
            return True
        if node.op in ("Slice", "StridedSlice"):
            self.cuts.add(node.name)
        if node.op in WINDOWS:
            self.has_windows = True
        elif node.op in PICTURES:
            self.has_windows |= not {*node.attr("strides", ()), *node.attr("dilations", ())} <= {1}
        return True

    def _is_dilation(self, node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
        from pocketgraph.runtime.planning.sizes.open_dilations import is_open_dilation

        if taken[0] in self.from_sizes or not is_open_dilation(node, self.graph, inferred):
            return False
        self.unread[node.name] = taken[2]
        return True

    def _size_operands(self, node: Node, taken: Sequence[str], inferred: Inferred) -> dict[int, str]:
        """The inputs of a layer that a program takes: numbers that follow from sizes; none where it is no layer."""
        places = SIZE_OPERANDS[node.op]
        data = [ref for place, ref in enumerate(taken) if place not in places]
        numbers = {place: taken[place] for place in places if inferred.value(taken[place]) is None}
        if not numbers or not self.from_sizes.isdisjoint(data):
            return {}
        if not self._is_of_sizes([*numbers.values()], inferred):
            return {}
        if not any(ref in self.fed or node_name(ref) in self.computing for ref in data):
            return {}
        return numbers if _is_plain(node, taken, inferred, takes_sizes=True) else {}


def _are_open(shapes: Iterable[Shape]) -> bool:
    for shape in shapes:  # as any(…), which takes twice as long for one shape or two
        dims = shape.dims
        if dims is None or None in dims:
            return True
    return False


def _positions(node: Node, taken: Sequence[str]) -> Sequence[str]:
    """The inputs that say which elements are taken, and not what they are."""
    if node.op in ops_with("joins"):
        return taken[-1:] if node.op.startswith("Concat") else ()
    return taken[1:] if node.op in MOVES or node.op == "Prod" else ()


def _is_plain(node: Node, taken: Sequence[str], inferred: Inferred, *, takes_sizes: bool) -> bool:
    """Whether a layer asks no size in the form that it has here."""
    at = WITH_AXES.get(node.op)
    if at is not None and (len(taken) <= at or inferred.value(taken[at]) is None):
        return False
    if node.op in PICTURES:
        is_told_in_order = node.op not in SIZE_OPERANDS or node.attr("data_format", b"NHWC") in (b"NHWC", b"")
        return is_told_in_order and node.attr("padding") in (b"SAME", b"VALID")
    if node.op == "GatherV2":
        return not node.attr("batch_dims", 0) and inferred.shape(taken[0]).is_known
    if node.op == "StridedSlice":
        has_axes = node.attr("ellipsis_mask", 0) or node.attr("new_axis_mask", 0)
        if takes_sizes and not has_axes and inferred.value(taken[3]) is not None:
            return True
        return _takes_first(node, taken, inferred) or _takes_all(node, taken, inferred)
    if node.op in ("Slice", "Pad", "PadV2", "MirrorPad"):
        return takes_sizes
    if node.op.startswith("FusedBatchNorm"):
        return node.attr("is_training", True) is False
    return node.op != "Squeeze" or bool(node.attr("squeeze_dims"))


def _takes_all(node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
    """Whether a slice takes all elements, and puts axes of size 1 in, as ``x[..., None]``."""
    strides = inferred.value(taken[3])
    if strides is None or node.attr("shrink_axis_mask", 0):
        return False
    put_in = int(node.attr("ellipsis_mask", 0)) | int(node.attr("new_axis_mask", 0))
    whole = put_in | int(node.attr("begin_mask", 0)) & int(node.attr("end_mask", 0))
    return all(whole >> axis & 1 and (put_in >> axis & 1 or step == 1) for axis, step in enumerate(strides))


def _takes_first(node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
    """Whether a slice takes the first element of each open axis."""
    begin, end, strides = (inferred.value(ref) for ref in taken[1:4])
    sizes = inferred.shape(taken[0]).dims
    if begin is None or end is None or strides is None or sizes is None or len(begin) > len(sizes):
        return False
    if None in sizes[len(begin) :]:
        return False
    masks = slice_masks(node.attr)
    if masks["ellipsis"] or masks["new_axis"]:
        return False
    for axis, (first, last, step, size) in enumerate(zip(begin, end, strides, sizes, strict=False)):
        is_first, is_last, is_one = (masks[name] >> axis & 1 for name in ("begin", "end", "shrink_axis"))
        is_start = (first == 0 or (is_first and not is_one)) and (is_one or (last == 1 and not is_last))
        if size is None and not (step == 1 and is_start):
            return False
    return True


def open_shapes(
    nodes: Iterable[Node], inferred: Inferred, before: Inferred
) -> Mapping[tuple[int, ...], Collection[Sizes]]:
    """What is open of tensors, by the shapes that they had with fixed sizes.

    Args:
        nodes: the graph's.
        inferred: what is known while sizes are open.
        before: what was known with fixed ones.
    """
    found: dict[tuple[int, ...], set[Sizes]] = {}
    for node in nodes:
        for port, shape in enumerate(inferred.shapes(node.name)):
            fixed = before.shape(f"{node.name}:{port}")
            if shape.dims is not None and not shape.is_known and fixed.is_known:
                found.setdefault(fixed.known, set()).add(shape.dims)
    return found
