"""The numbers that a program for all sizes is told with each call: what the graph computes of the sizes of its inputs.

input [1, ?, 8] ── Shape ── StridedSlice ── Pack: kernels compute that. Shapes of what layers make are inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.kernels.shapes.infer import infer_again, postorder
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.step_program import Run, StepProgram
from pocketgraph.runtime.planning.execution_plan import Request
from pocketgraph.runtime.planning.rewriting.shape_arithmetic import WITH_VECTORS, with_shape_arithmetic
from pocketgraph.runtime.planning.rewriting.sizes_of_feeds import with_sizes_of_feeds

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.operator_sizes import Sizes
    from pocketgraph.litert.sizes.resizable import Shapes

MOST_PROBED = 64
"""Nodes that operands follow from, whose shapes are inferred some times more so that it is less for each size."""


class OperandNumbers:
    """Says the numbers that a program takes for sizes of its inputs, in order.

    Args:
        request: what is to be run, with the whole graph.
        types: of the program's inputs, by name.
        sizes: of these, None where they are open.
        operands: the tensors that hold them.
        fixed: what is known of the graph for some sizes.
    """

    def __init__(
        self,
        request: Request,
        types: Mapping[str, DType],
        sizes: Sequence[tuple[str, Sizes]],
        operands: Sequence[str],
        fixed: Inferred,
    ) -> None:
        self._types = types
        self._operands = operands
        self._arithmetic: _Arithmetic | None = None
        if not request.values:
            whole = postorder(request.graph, operands)
            graph = with_shape_arithmetic(request.graph, whole, list(types), fixed)
            self._nodes = _following(types, postorder(graph, operands))
            self._arithmetic = _Arithmetic.of(graph, self._nodes, types, operands)
            if self._arithmetic is not None:
                return
        graph = _of_sizes(request.graph, postorder(request.graph, operands), {*types, *request.values}, fixed)
        nodes = postorder(graph, operands)
        if len(nodes) <= MOST_PROBED:
            fed = [(Endpoint.of(name), types[name], own) for name, own in sizes]
            graph = with_sizes_of_feeds(graph, fed, request.values, nodes).graph
            nodes = postorder(graph, operands)
        self._nodes = _following(types, nodes)
        if not request.values:
            self._arithmetic = _Arithmetic.of(graph, self._nodes, types, operands)
        following = {node.name for node in self._nodes}
        others = [node for node in nodes if node.name not in following]  # constants, which are looked at once
        self._before = infer_again({}, others, infer(graph, {}, request.values, ()))

    def __call__(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        """
        Raises:
            RunError: they follow from something else as well.
        """
        if self._arithmetic is not None:
            return self._arithmetic(shapes)
        feeds = {name: (dtype, Shape(own)) for (name, dtype), own in zip(self._types.items(), shapes, strict=True)}
        found = infer_again(feeds, self._nodes, self._before)
        numbers = [found.value(ref) for ref in self._operands]
        if found.problems or any(each is None for each in numbers):
            raise RunError("what the program is told does not follow from these sizes")
        return tuple([tuple(each.reshape(-1).tolist()) for each in numbers if each is not None])


class _Arithmetic:
    """Numbers that follow from the inputs' shapes alone, which kernels compute.

    Args:
        graph: where they do.
        shapes: the nodes that read shapes, each with the place of the input.
        operands: the tensors that hold the numbers.
    """

    def __init__(self, graph: Graph, shapes: Sequence[tuple[Node, int]], operands: Sequence[str]) -> None:
        read = [Endpoint(node.name, 0) for node, _ in shapes]
        self._read = [(place, node.dtype("out_type", INT32).numpy) for node, place in shapes]
        self._program = StepProgram(graph, read, list(map(Endpoint.of, operands)), library=FunctionLibrary(graph))

    @staticmethod
    def of(graph: Graph, nodes: Sequence[Node], inputs: Iterable[str], operands: Sequence[str]) -> _Arithmetic | None:
        """It; None where some node takes an input itself, and not its shape."""
        places = {name: place for place, name in enumerate(inputs)}
        shapes = [
            (n, places[canonical(n.inputs[0])]) for n in nodes if n.op == "Shape" and canonical(n.inputs[0]) in places
        ]
        read = {node.name for node, _ in shapes}
        rest = [node for node in nodes if node.name not in read]
        if not shapes or any(canonical(ref) in places for node in rest for ref in node.data_inputs):
            return None
        try:
            return _Arithmetic(graph, shapes, operands)
        except PocketgraphError:
            return None

    def __call__(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        """
        Raises:
            RunError: a kernel refuses these sizes.
        """
        given = [np.array(shapes[place], kind) for place, kind in self._read]
        numbers = self._program.run(given, Run({}, None, 0))
        return tuple([tuple(each.reshape(-1).tolist()) for each in numbers])


def _following(fed: Iterable[str], nodes: Sequence[Node]) -> list[Node]:
    """Those of some nodes, producers first, that follow from what is fed."""
    found = {node_name(ref) for ref in fed}
    for node in nodes:
        if any(node_name(ref) in found for ref in node.inputs):
            found.add(node.name)
    return [node for node in nodes if node.name in found]


ALONE = ops_with("elementwise", "passes")
"""Ops whose first result has the sizes of their first input where it is the only one."""


def _of_sizes(graph: Graph, nodes: Sequence[Node], known: Collection[str], fixed: Inferred) -> Graph:
    """The graph without layers that change no sizes, in which sizes are followed sooner.

    Args:
        graph: it.
        nodes: those that are needed, producers first; none has control inputs.
        known: the tensors of which something is said.
        fixed: what is known of it for some sizes.
    """
    passed: dict[str, str] = {}
    kept: list[Node] = []
    for node in nodes:
        made = f"{node.name}:0"
        inputs = [passed.get(canonical(ref), ref) for ref in node.inputs]
        dtype = fixed.dtype(made)
        keeps_sizes = node.op in WITH_VECTORS or (node.op in ALONE and len(inputs) == 1)
        # A number is followed through all of its operations.
        if keeps_sizes and made not in known and dtype and dtype.numpy.kind == "f" and fixed.value(made) is None:
            passed[made] = inputs[0]
        kept.append(node.replace(inputs=inputs) if inputs != list(node.inputs) else node)
    return graph.replace(kept, inputs=(), outputs=(), signatures={})
