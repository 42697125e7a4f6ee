"""Which layers of a graph are, for any sizes, what they are for some: those whose form asks no size.

x [1, ?, 8] ── Shape ── Range ── Less ── Cast ── mask [1, ?]      numbers that follow from the length: before
     └──────── MatMul ── Softmax ── Mul(mask) ── MatMul           layers
                                                  └── TopKV2      what is no layer: after
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pocketgraph.graph import Node, canonical, node_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred

if TYPE_CHECKING:
    from pocketgraph.litert.open_program import Sizes

WITH_AXES = {"Mean": 1, "Sum": 1, "Max": 1, "Transpose": 1, "ExpandDims": 1, "GatherV2": 2}
"""Not a trait: which input says the axes."""
SELECTS = ops_with("moves", "joins", "passes") | {"Mul", "Prod"}
"""Not a trait: what computes shapes of shapes, so that each size is an open one, or a product of such, or fixed."""
HEAVY = ops_with("heavy")


class OpenLayers:
    """Sorts the nodes of a graph, producers first.

    Args:
        fed: the fed tensors.

    Attributes:
        from_sizes: tensors of numbers that follow from open sizes, and of which only shapes are made.
        before: nodes that are no layers, on which layers depend.
        after: nodes that are no layers and come after them, and what depends on such.
        computing: nodes that compute something else for other feeds or sizes.
    """

    def __init__(self, fed: frozenset[str]) -> None:
        self.fed = fed
        self.from_sizes: set[str] = set()
        self.before: dict[str, Node] = {}
        self.after: set[str] = set()
        self.computing: set[str] = set()
        self._behind: set[str] = set()  # the heavy nodes, and what depends on them
        self._able = ops_with("any_size")

    def look_at(self, node: Node, inferred: Inferred) -> bool:
        """Sorts a node, whose producers were looked at; says whether one program can hold all heavy ones.

        Args:
            node: it.
            inferred: what is known while sizes are open.
        """
        if node.op == "Const":
            return True
        refs = node.data_inputs
        sources = [node_name(ref) for ref in refs]
        taken = list(map(canonical, refs))
        is_heavy, is_after = node.op in HEAVY, not self.after.isdisjoint(sources)
        if is_heavy and is_after:
            return False
        if is_heavy or not self._behind.isdisjoint(sources):
            self._behind.add(node.name)
        if is_after:
            self.after.add(node.name)
        elif not self._is_layer(node, taken, inferred):
            if is_heavy:
                return False
            if node.name in self._behind:
                self.after.add(node.name)
            else:
                self.before[node.name] = node
        if node.name in self.before or node.name in self.after or self._computes(node, sources, taken, inferred):
            self.computing.add(node.name)
        return True

    def _computes(self, node: Node, sources: Collection[str], taken: Collection[str], inferred: Inferred) -> bool:
        if self.computing.isdisjoint(sources) and self.fed.isdisjoint(taken):
            return False
        made = f"{node.name}:0"
        return made not in self.from_sizes and inferred.value(made) is None

    def _is_layer(self, node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
        made = [f"{node.name}:{port}" for port in range(max(1, len(inferred.shapes(node.name))))]
        is_told = not self.from_sizes.isdisjoint(taken)
        shapes = [*inferred.shapes(node.name), *map(inferred.shape, taken)]
        is_open = len(shapes) == len(taken) or not all(shape.is_known for shape in shapes)
        if not (is_told or is_open) or not self.fed.isdisjoint(made):
            return True
        if all(inferred.value(ref) is not None for ref in made):
            return True
        if node.op in ("Shape", "ShapeN"):
            self.from_sizes.update(made)
            return True
        if is_told and (node.op != "Reshape" or taken[0] in self.from_sizes):
            selects = node.op in SELECTS and self.from_sizes.isdisjoint(_positions(node, taken))
            if selects:
                self.from_sizes.update(made)
            return selects
        if node.op == "Reshape" and node_name(taken[1]) in self.before:
            return False
        return node.op in self._able and _is_plain(node, taken, inferred)


def _positions(node: Node, taken: Sequence[str]) -> Sequence[str]:
    """The inputs that say which elements are taken, and not what they are."""
    if node.op in ops_with("joins"):
        return taken[-1:] if node.op.startswith("Concat") else ()
    return taken[1:] if node.op in ops_with("moves") or node.op == "Prod" else ()


def _is_plain(node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
    """Whether a layer asks no size in the form that it has here."""
    at = WITH_AXES.get(node.op)
    if at is not None and (len(taken) <= at or inferred.value(taken[at]) is None):
        return False
    if node.op == "Conv2D":
        is_usual = node.attr("padding") in (b"SAME", b"VALID") and node.attr("data_format", b"NHWC") == b"NHWC"
        return is_usual and set(node.attr("dilations", ())) <= {1}
    if node.op == "BiasAdd":
        return bool(node.attr("data_format", b"NHWC") == b"NHWC")
    if node.op == "GatherV2":
        return not node.attr("batch_dims", 0) and inferred.shape(taken[0]).is_known
    if node.op == "StridedSlice":
        return _takes_first(node, taken, inferred)
    return node.op != "Squeeze" or bool(node.attr("squeeze_dims"))


def _takes_first(node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
    """Whether a slice takes the first element of each open axis."""
    begin, end, strides = (inferred.value(ref) for ref in taken[1:4])
    sizes = inferred.shape(taken[0]).dims
    if begin is None or end is None or strides is None or sizes is None or len(begin) > len(sizes):
        return False
    if None in sizes[len(begin) :]:
        return False
    masks = {
        name: int(node.attr(f"{name}_mask", 0)) for name in ("begin", "end", "shrink_axis", "ellipsis", "new_axis")
    }
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
