"""What a graph holds: its inputs and outputs, parameters, devices and ops, and the original tool's report of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from pocketgraph.errors import GraphError, PocketgraphError
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, entry_points
from pocketgraph.graph.entry_survey import LikelyEntry
from pocketgraph.graph.node import canonical, node_name
from pocketgraph.graph.op_traits import CALLS, REFERENCE_VARIABLES
from pocketgraph.graph.order import topological
from pocketgraph.inspect.value_text import debug_string, human_readable
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.kernels.shapes.infer import Inferred

NOT_OUTPUTS = ("Const", "Assign", "NoOp", "Placeholder")
"""Not a trait: what the original summarize_graph does not count as a result."""


@dataclass(frozen=True)
class EndpointSummary:
    """A likely input or output.

    Attributes:
        name: the node's name.
        op: its op.
        dtype: element type, where known.
        shape: as declared or inferred; unknown dimensions are None.
        why: the reason for its rank, in a few words.
    """

    name: str
    op: str
    dtype: DType | None = None
    shape: Shape = field(default_factory=lambda: Shape(None))
    why: str = ""


@dataclass(frozen=True, repr=False)
class Summary:
    """Facts about one graph; see ``summarize``."""

    graph: Graph

    def __repr__(self) -> str:
        ends = [", ".join(found.name for found in group) or "?" for group in (self.inputs, self.outputs)]
        parameters = human_readable(self.const_parameters)
        return f"<Summary of {counted(len(self.graph), 'node')}, {parameters} parameters: {ends[0]} -> {ends[1]}>"

    @cached_property
    def placeholders(self) -> tuple[Node, ...]:
        """The nodes with op exactly Placeholder."""
        return tuple([node for node in self.graph if node.op == "Placeholder"])

    @cached_property
    def variables(self) -> tuple[Node, ...]:
        """The reference variables (Variable, VariableV2), as the original counts them."""
        return tuple([node for node in self.graph if node.op in REFERENCE_VARIABLES])

    @cached_property
    def resource_variables(self) -> tuple[Node, ...]:
        """The handles of TensorFlow 2's kind of variable."""
        return tuple([node for node in self.graph if node.op == "VarHandleOp"])

    @cached_property
    def sinks(self) -> tuple[Node, ...]:
        """The nodes that nobody refers to, data or control, and that could be outputs."""
        used = {node_name(ref) for ref in self._refs}
        return tuple([node for node in self.graph if node.name not in used and node.op not in NOT_OUTPUTS])

    @cached_property
    def constants(self) -> tuple[tuple[Node, Tensor], ...]:
        """Every Const with a value."""
        return tuple(
            (node, value)
            for node in self.graph
            if node.op == "Const" and isinstance(value := node.attrs.get("value"), Tensor)
        )

    @cached_property
    def const_parameters(self) -> int:
        """Elements of all constants."""
        return sum(tensor.size for _, tensor in self.constants)

    @cached_property
    def const_bytes(self) -> int:
        """Bytes of all constants' elements."""
        return sum(tensor.nbytes for _, tensor in self.constants)

    @cached_property
    def variable_parameters(self) -> int:
        """Elements of all variables of known shape, reference and resource ones."""
        shapes = (node.shape() for node in (*self.variables, *self.resource_variables))
        return sum(shape.elements or 0 for shape in shapes if shape is not None)

    @cached_property
    def control_edges(self) -> int:
        """How many inputs only say what comes first."""
        return sum(count for ref, count in self._refs.items() if ref.startswith("^"))

    @cached_property
    def _refs(self) -> Counter[str]:
        """How often each input spelling occurs."""
        return Counter(chain.from_iterable([node.inputs for node in self.graph]))

    @cached_property
    def devices(self) -> dict[str, int]:
        """Nodes for each non-empty device, by device name."""
        return dict(sorted(Counter(node.device for node in self.graph if node.device).items()))

    @cached_property
    def op_counts(self) -> list[tuple[str, int]]:
        """(op, count) over the graph and its functions' bodies, most frequent first, then by name."""
        counts = Counter([node.op for node in self.graph])
        for function in self.graph.functions.values():
            counts.update(node.op for node in function.nodes)
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    @cached_property
    def inputs(self) -> tuple[EndpointSummary, ...]:
        """Likely inputs, the likeliest first, with dtype and declared or inferred shape."""
        return tuple(self._endpoints(self._likely[0]))

    @cached_property
    def outputs(self) -> tuple[EndpointSummary, ...]:
        """Likely outputs, the likeliest first, with inferred dtype and shape."""
        return tuple(self._endpoints(self._likely[1]))

    @cached_property
    def main_outputs(self) -> tuple[str, ...]:
        """The results that make the model whole (see ``entry_points.main_outputs``)."""
        return tuple(entry_points.main_outputs(self.graph))

    @property
    def signature_lines(self) -> list[str]:
        """The entry points that the file states, a line each: the key of every input and output, and its tensor."""
        lines = []
        for key, signature in sorted(self.graph.public_signatures.items()):
            sides = (sorted(side.items()) for side in (signature.inputs, signature.outputs))
            named = (", ".join(f"{name} = {tensor}" for name, tensor in side) or "nothing" for side in sides)
            lines.append(f"signature {key}: {' -> '.join(named)}")
        return lines

    @cached_property
    def _likely(self) -> tuple[list[LikelyEntry], list[LikelyEntry]]:
        return entry_points.likely_inputs(self.graph), entry_points.likely_outputs(self.graph)

    def _endpoints(self, ranked: list[LikelyEntry]) -> Iterator[EndpointSummary]:
        from pocketgraph.kernels.shapes import infer

        try:
            inferred = infer(self.graph)
        except PocketgraphError:
            inferred = None  # a broken graph still has names worth showing
        behind = self._behind_calls([name for name, _ in ranked], inferred) if inferred is not None else None
        for name, why in ranked:
            node = self.graph.producer(name)
            declared = node.attrs.get("dtype")
            dtype = declared if isinstance(declared, DType) else None
            shape = Shape(None)
            if inferred is not None:
                dtype = dtype or inferred.dtype(canonical(name))
                shape = inferred.shape(canonical(name))
            if behind is not None and shape.dims is None:
                shape = behind.shape(canonical(name))
            yield EndpointSummary(name, node.op, dtype, shape, why)

    def _behind_calls(self, names: Sequence[str], inferred: Inferred) -> Inferred | None:
        """What is known where calls of functions stand written out; None where that tells nothing."""
        from pocketgraph.kernels.shapes import infer
        from pocketgraph.passes.inlining import inlined

        if not any(
            self.graph.producer(name).op in CALLS and inferred.shape(canonical(name)).dims is None for name in names
        ):
            return None
        try:
            return infer(inlined(self.graph, names))
        except PocketgraphError:
            return None


def summarize(graph: Graph | PathLike) -> Summary:
    """Facts about a graph, each computed when it is asked for; no weight is read.

    >>> from pocketgraph.graph.text_format import parse
    >>> facts = summarize(parse('''
    ...     x = Placeholder(dtype=float, shape=[?, 2])
    ...     w = Const(float [[1.0], [2.0]])
    ...     y = MatMul(x, w, T=float)
    ... '''))
    >>> [(found.name, found.dtype, found.shape) for found in (*facts.inputs, *facts.outputs)]
    [('x', float, [?,2]), ('y', float, [?,1])]
    >>> facts.const_parameters, facts.const_bytes, facts.op_counts
    (2, 8, [('Const', 1), ('MatMul', 1), ('Placeholder', 1)])

    Args:
        graph: the graph, or its path as ``load`` takes one.

    Returns:
        Likely inputs and outputs, parameters, bytes, ops and more.

    Raises:
        UsageError: this is neither.
    """
    return Summary(graph_of(graph, "summarize"))


def original_report(graph: Graph, path: str, *, print_structure: bool = False) -> Iterator[str]:
    """The lines (without line ends) that the original summarize_graph prints for a graph.

    Differs from the original: each device count has a line of its own (there they run together), and ops of equal
    count are in alphabetical order (there in no order).

    Args:
        path: its file as it was given, for the benchmark line.
        print_structure: also list every node in execution order.

    Raises:
        GraphError: after the lines that name them, when inputs refer to nodes that do not exist.
    """
    facts = summarize(graph)
    yield _found(facts.placeholders, "possible inputs", "inputs", _typed)
    yield _found(facts.variables, "variables", "variables", _typed)
    yield _found(facts.sinks, "possible outputs", "outputs", lambda node: f"(name={node.name}, op={node.op}) ")
    decodable = [node.attrs.get("value") for node in facts.variables]
    in_variables = sum(value.size for value in decodable if isinstance(value, Tensor))
    yield (
        f"Found {facts.const_parameters} ({human_readable(facts.const_parameters)}) const parameters, "
        f"{in_variables} ({human_readable(in_variables)}) variable parameters, "
        f"and {facts.control_edges} control_edges"
    )
    for device, count in facts.devices.items():
        yield f"{count} nodes assigned to device '{device}'"
    dangling = graph.dangling()
    for name, missing in dangling:
        yield f"Invalid input {missing} for node {name}"
    if dangling:
        raise GraphError("Invalid graph with inputs referring to nonexistent nodes", where=path)
    yield "Op types used: " + ", ".join(f"{count} {op}" for op, count in facts.op_counts)
    yield "To use with tensorflow/tools/benchmark:benchmark_model try these arguments:"
    yield _benchmark_line(facts, path)
    if print_structure:
        yield from structure(graph)


def structure(graph: Graph) -> Iterator[str]:
    """One line a node in execution order: ``relu (Relu): [conv]``, constants with their first values."""
    for node in topological(graph):
        value = node.attrs.get("value") if node.op == "Const" else None
        shown = f", value={debug_string(value)}" if isinstance(value, Tensor) else ""
        yield f"{node.name} ({node.op}): [{', '.join(node.inputs)}]{shown}"


def _found(nodes: tuple[Node, ...], many: str, none: str, item: object) -> str:
    assert callable(item)
    if not nodes:
        return f"No {none} spotted."
    return f"Found {len(nodes)} {many}: " + "".join(item(node) for node in nodes)


def _typed(node: Node) -> str:
    dtype = node.attrs.get("dtype")
    kind = f"{dtype.name}({dtype.number})" if isinstance(dtype, DType) else "INVALID(0)"
    shape = node.shape()
    return f"(name={node.name}, type={kind}, shape={'None' if shape is None else shape}) "


def _benchmark_line(facts: Summary, path: str) -> str:
    layers = (*facts.placeholders, *facts.variables)
    types = [dtype.name if isinstance(dtype := node.attrs.get("dtype"), DType) else "INVALID" for node in layers]
    shapes = []
    for node in layers:
        shape = node.shape()
        dims = () if shape is None or shape.dims is None else shape.dims
        shapes.append(",".join("-1" if size is None else str(size) for size in dims))
    return (
        f"bazel run tensorflow/tools/benchmark:benchmark_model -- --graph={path} --show_flops "
        f"--input_layer={','.join(node.name for node in layers)} --input_layer_type={','.join(types)} "
        f"--input_layer_shape={':'.join(shapes)} --output_layer={','.join(node.name for node in facts.sinks)}"
    )
