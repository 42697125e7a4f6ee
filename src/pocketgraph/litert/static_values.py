"""Which tensors are known when compiling: constants, and what pure ops make of constants and of shapes."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Tensor, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.dtype import NOT_NUMBERS
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.constant import Array, Constant

EAGER = 1 << 16  # bytes; a folded constant up to this size is computed at once, a larger one when it is written

PASS_THROUGH = ops_with("passes", "checks") | {"PlaceholderWithDefault"}
NEVER_FOLDED = ops_with("control_flow", "placeholder", "effect") - {"PlaceholderWithDefault"}


class Statics:
    """The constants of a graph, folded ones included, each found when asked for."""

    def __init__(self, graph: Graph, inferred: Inferred, fed: frozenset[str] = frozenset()) -> None:
        """``fed`` are the tensor names whose values come from outside and are thus never static."""
        self.graph = graph
        self.inferred = inferred
        self.fed = fed
        self._known: dict[str, Constant | None] = {}

    def constant(self, ref: str) -> Constant | None:
        """The value of a tensor name (``n:0``) when it is static, else None."""
        if ref in self._known:
            return self._known[ref]
        stack: dict[str, None] = {}  # each waits for the next: a long chain is asked for from its end
        top = ref
        while True:
            stack[top] = None
            waiting = self._waiting(top)
            if waiting is None or not stack.keys().isdisjoint(waiting):  # in a loop nothing is static
                self._known.update(stack)  # nor is what waits for this
                return None
            if waiting:
                (top,) = waiting
                continue
            made = self._known[top] = self._make(top)
            del stack[top]
            if made is None:
                self._known.update(stack)
            if made is None or not stack:
                return made
            top = next(reversed(stack))

    def _waiting(self, ref: str) -> list[str] | None:
        """The input to be looked at first, if any; None when the tensor is not static whatever they are."""
        if ref in self.fed:
            return None
        node = self.graph.nodes.get(node_name(ref))
        if node is None or node.op in NEVER_FOLDED:
            return None
        if node.op == "Const" or self._is_inferred(ref):
            return []
        inputs = node.data_inputs
        if not inputs:
            return None
        if node.op in PASS_THROUGH and parse_ref(ref).port == 0:
            return [r for r in [canonical(inputs[0])] if r not in self._known]
        if opdefs.is_stateful(node.op):
            return None
        unknown: list[str] = []
        for text in inputs:
            source = canonical(text)
            known = self._known.get(source, ...)
            if known is None:
                return None
            if known is ...:
                unknown.append(source)
        return unknown[:1]

    def _make(self, ref: str) -> Constant | None:
        name, port, _ = parse_ref(ref)
        node = self.graph[name]
        if node.op == "Const":
            tensor = node.attrs.get("value")
            if port != 0 or not isinstance(tensor, Tensor) or tensor.dtype.base.name in NOT_NUMBERS:
                return None
            return Constant(tensor.numpy, tensor.shape, tensor.dtype.numpy, is_stored=True)
        value = self._inferred_value(ref)
        if value is not None:
            return Constant.of(value)
        if node.op in PASS_THROUGH:
            return self._known[canonical(node.data_inputs[0])]
        operands = [self._known[canonical(i)] for i in node.data_inputs]
        return self._folded(node, port, [operand for operand in operands if operand is not None])

    def _is_inferred(self, ref: str) -> bool:
        value = self.inferred.value(ref)
        return value is not None and value.dtype != object

    def _inferred_value(self, ref: str) -> Array | None:
        value = self.inferred.value(ref)
        if value is None or value.dtype == object:
            return None
        dtype = self.inferred.dtype(ref)
        return value if dtype is None else value.astype(dtype.base.numpy, copy=False)

    def _folded(self, node: Node, port: int, operands: list[Constant]) -> Constant | None:
        """What the reference kernel makes of constant operands; None when it cannot."""
        from pocketgraph.kernels.registry import KERNELS, evaluate

        if node.op not in KERNELS:
            return None

        def compute() -> Array:
            return np.asarray(evaluate(node, [operand.numpy() for operand in operands])[port])

        ref = f"{node.name}:{port}"
        shape, dtype = self.inferred.shape(ref), self.inferred.dtype(ref)
        small = sum(operand.nbytes for operand in operands) <= EAGER
        if shape.is_known and dtype is not None and dtype.base.name not in NOT_NUMBERS:
            constant = Constant(compute, shape.known, dtype.numpy)
            if constant.nbytes > EAGER or not small:
                return constant
        try:
            computed = compute()
        except PocketgraphError:
            return None
        return None if computed.dtype == object else Constant.of(computed)
