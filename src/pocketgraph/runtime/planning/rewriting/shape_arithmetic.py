"""Computes the shapes of what layers make from the shapes of what is fed: no layer has to run for them.

picture ── Conv2D (steps of 2) ── Relu ── Shape        Shape(picture) ── Mul [1, 1, 1, 0] ── AddV2 [0, 1, 1, 64] ──
                                                           FloorDiv [1, 2, 2, 1]

Each step is what the op does to sizes, so it holds for all of them. Shapes of other ops stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pocketgraph.graph import AttrValue, Graph, Node, canonical, const, parse_ref
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.op_traits import CONVOLUTIONS_2D, ELEMENTWISE, PASSES, ops_with
from pocketgraph.kernels.shapes import Inferred

PREFIX = "shape_arithmetic"
"""Not a trait: ops whose operands are repeated to each other's sizes."""
WITH_VECTORS = ops_with("bias", "fused_batch_norm")
"""Ops whose first result has the sizes of their first input; the others are vectors."""
SLIDES = {*CONVOLUTIONS_2D, "MaxPool", "AvgPool"}
"""Not a trait: windows over pictures whose rule is here."""
RESIZES = ops_with("resize")
REDUCES = {"Mean", "Sum", "Max", "Min"}
"""Not a trait: reductions of numbers that layers have."""


def with_shape_arithmetic(graph: Graph, nodes: Sequence[Node], fed: Collection[str], fixed: Inferred) -> Graph:
    """The graph, in which shapes are computed of those of what is fed where all ops between are known.

    Args:
        graph: it stays as it is.
        nodes: those that are needed, producers first.
        fed: the tensors that are, by canonical name.
        fixed: what is known of the graph for some sizes.
    """
    if any(name.startswith(PREFIX) for name in graph.nodes):
        return graph
    shapes = [node for node in nodes if node.op == "Shape" and canonical(node.inputs[0]) not in fed]
    arithmetic = _ShapeVectors(graph, nodes, fed, fixed)
    found: set[str] = set()
    for node in shapes:
        vector = arithmetic.vector(canonical(node.inputs[0]))
        if vector is not None:
            found.add(node.name)
            dtype = node.dtype("out_type", INT32)
            arithmetic.made.append(Node(node.name, "Cast", [vector], {"SrcT": INT32, "DstT": dtype}))
    if not found:
        return graph
    kept = [node for node in graph if node.name not in found]
    return graph.replace([*arithmetic.made, *kept])


class _ShapeVectors:
    """
    Attributes:
        made: the nodes that compute shapes.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node], fed: Collection[str], fixed: Inferred) -> None:
        self.made: list[Node] = []
        self._graph, self._fed, self._fixed = graph, fed, fixed
        self._vectors: dict[str, str | None] = {}
        self._following = {parse_ref(ref)[0] for ref in fed}
        for node in nodes:
            if any(parse_ref(ref)[0] in self._following for ref in node.data_inputs):
                self._following.add(node.name)
        for node in nodes:  # producers first, so that none waits for another
            ref = f"{node.name}:0"
            if node.name in self._following and ref not in fed and node.op != "Shape" and fixed.shape(ref).is_known:
                self._vectors[ref] = self._of(node, [canonical(each) for each in node.data_inputs])

    def vector(self, ref: str) -> str | None:
        """The tensor that is the shape of another one; None where that is not computed."""
        if ref not in self._vectors:
            self._vectors[ref] = None
            dtype = self._fixed.dtype(ref)
            if ref in self._fed and dtype is not None:
                self._vectors[ref] = self._emit("Shape", [ref], T=dtype, out_type=INT32)
        return self._vectors[ref]

    def _of(self, node: Node, taken: list[str]) -> str | None:
        """The shape of a node's first result."""
        op = node.op
        first = self.vector(taken[0])
        if (op in PASSES and len(taken) == 1) or op == "IdentityN" or op in WITH_VECTORS:
            return first
        if op in ELEMENTWISE and len(taken) <= 2:
            return self._joined(f"{node.name}:0", taken)
        if op == "Conv2DBackpropInput":
            return self._numbers(taken[0])
        if op == "Reshape":
            target = self._fixed.value(taken[1])
            return self._numbers(taken[1]) if target is not None and (target >= 0).all() else None
        if first is None or not self._are_constant(taken[1:2] if op in SLIDES else ()):
            return None
        if op in SLIDES:
            return self._slid(node, first, taken)
        if op in RESIZES:
            zero = self._const([0])
            size = self._emit("ConcatV2", [zero, taken[1], zero, self._const(0)], T=INT32, N=3, Tidx=INT32)
            return self._sum(self._product(first, [1, 0, 0, 1]), size)
        return self._moved(node, first, taken)

    def _moved(self, node: Node, first: str, taken: list[str]) -> str | None:
        op, value = node.op, self._fixed.value(taken[1]) if len(taken) > 1 else None
        rank = len(self._fixed.shape(taken[0]).known)
        if op == "Tile":
            return self._product_of(first, self._numbers(taken[1]))
        if op == "Slice":
            return self._sliced(first, taken)
        if op == "ConcatV2":
            return self._concatenated(taken)
        if value is None or not self._are_constant(taken[1:2]):
            return None
        if op in REDUCES and node.attr("keep_dims", False):
            axes = {int(axis) % rank for axis in value.reshape(-1)}
            ones = [int(axis in axes) for axis in range(rank)]
            return self._sum(self._product(first, [1 - each for each in ones]), self._const(ones))
        if op in ("Pad", "PadV2", "MirrorPad"):
            return self._sum(first, self._const(value.sum(axis=1)))
        if op == "Transpose":
            return self._gathered(first, value.tolist())
        if op == "ExpandDims":
            order = list(range(rank))
            order.insert(int(value.reshape(-1)[0]) % (rank + 1), rank)
            one = self._emit("ConcatV2", [first, self._const([1]), self._const(0)], T=INT32, N=2, Tidx=INT32)
            return self._gathered(one, order)
        return None

    def _joined(self, ref: str, taken: list[str]) -> str | None:
        """What operands are repeated to: of each size the larger one."""
        rank = len(self._fixed.shape(ref).known)
        found: list[str] = []
        for each in taken:
            own = self._fixed.shape(each)
            if self._are_constant([each]) and own.is_known:
                sizes = [1] * (rank - len(own.known)) + list(own.known)
                vector: str | None = self._const(sizes) if max(sizes, default=1) > 1 else ""
            else:
                vector = self.vector(each) if own.is_known and len(own.known) == rank else None
            if vector is None:
                return None
            if vector and vector not in found:
                found.append(vector)
        if len(found) < 2:
            return found[0] if found else None
        return self._emit("Maximum", found, T=INT32)

    def _slid(self, node: Node, first: str, taken: list[str]) -> str | None:
        steps, far = list(node.attr("strides", ())), list(node.attr("dilations", ())) or [1, 1, 1, 1]
        is_last = node.attr("data_format", b"NHWC") in (b"NHWC", b"")
        sides, channels = ((1, 2), 3) if is_last else ((2, 3), 1)
        sizes = self._fixed.shape(f"{node.name}:0").known
        if node.attr("padding") not in (b"SAME", b"VALID") or len(sizes) != 4 or len(steps) != 4:
            return None
        kept, more = [1, 1, 1, 1], [0, 0, 0, 0]
        if "Pool" in node.op:
            windows = [node.attr("ksize")[side] for side in sides]
            if steps[0] != 1 or steps[channels] != 1 or node.attr("ksize")[channels] != 1:
                return None
        else:
            windows = list(self._fixed.shape(taken[1]).known[:2])
            kept[channels], more[channels] = 0, sizes[channels]
        for side, window in zip(sides, windows, strict=True):
            reach = 1 if node.attr("padding") == b"SAME" else (window - 1) * far[side] + 1
            more[side] = steps[side] - reach
        whole = self._product(first, kept)
        moved = self._sum(whole, self._const(more)) if any(more) else whole
        return self._emit("FloorDiv", [moved, self._const(steps)], T=INT32) if max(steps) > 1 else moved

    def _sliced(self, first: str, taken: list[str]) -> str | None:
        """-1 stands for all that follow."""
        counts, begin, count = self._fixed.value(taken[2]), self._numbers(taken[1]), self._numbers(taken[2])
        if counts is None or begin is None or count is None:
            return None
        rest = (counts == -1).astype(int).tolist()
        told = self._product(count, [1 - each for each in rest])
        if not any(rest):
            return told
        return self._sum(told, self._product(self._emit("Sub", [first, begin], T=INT32), rest))

    def _concatenated(self, taken: list[str]) -> str | None:
        axis, vectors = self._fixed.value(taken[-1]), [self.vector(each) for each in taken[:-1]]
        if axis is None:
            return None
        found, rank = vectors[0], len(self._fixed.shape(taken[0]).known)
        along = [int(each == int(axis) % rank) for each in range(rank)]
        for vector in vectors[1:]:
            if found is None or vector is None:
                return None
            found = self._sum(found, self._product(vector, along))
        return found

    def _numbers(self, ref: str) -> str | None:
        """A vector of numbers, in 32 bits."""
        dtype = self._fixed.dtype(ref)
        if dtype is None or len(self._fixed.shape(ref).dims or ()) != 1:
            return None
        return ref if dtype == INT32 else self._emit("Cast", [ref], SrcT=dtype, DstT=INT32)

    def _are_constant(self, refs: Sequence[str]) -> bool:
        return all(parse_ref(ref)[0] not in self._following for ref in refs)

    def _product_of(self, vector: str, other: str | None) -> str | None:
        return self._emit("Mul", [vector, other], T=INT32) if other is not None else None

    def _product(self, vector: str, factors: Sequence[int]) -> str:
        return self._emit("Mul", [vector, self._const(factors)], T=INT32) if set(factors) != {1} else vector

    def _sum(self, vector: str, other: str) -> str:
        return self._emit("AddV2", [vector, other], T=INT32)

    def _gathered(self, vector: str, places: Sequence[int]) -> str:
        inputs = [vector, self._const(places), self._const(0)]
        return self._emit("GatherV2", inputs, Tparams=INT32, Tindices=INT32, Taxis=INT32, batch_dims=0)

    def _const(self, numbers: object) -> str:
        self.made.append(const(f"{PREFIX}/{len(self.made)}", np.asarray(numbers, np.int32)))
        return f"{self.made[-1].name}:0"

    def _emit(self, op: str, inputs: Sequence[str], **attrs: AttrValue) -> str:
        self.made.append(Node(f"{PREFIX}/{len(self.made)}", op, list(inputs), attrs))
        return f"{self.made[-1].name}:0"
