"""A graph as one float program of LiteRT operators, which is what gets quantized."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, command_on_model, option, shapes_option
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, canonical, node_name, opdefs
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.function_body import reachable_functions
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.op_traits import ENTER, MERGE, PLACEHOLDERS, ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.lowerings.custom_operators import emit_custom
from pocketgraph.litert.narrow_floats import NARROW, widened
from pocketgraph.litert.part_lowering import lowered
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.optimize import FOR_THIS_PROCESSOR, optimize
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.passes.control_flow_lowering import with_binary_switches
from pocketgraph.quantization.core.operator_rules import is_layer, weights
from pocketgraph.quantization.loop_lowering import LoopLowering
from pocketgraph.quantization.text_inputs import with_shapes
from pocketgraph.runtime.description import LATE
from pocketgraph.runtime.engines.needed import with_producers
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes
from pocketgraph.runtime.planning.call_key import Sized
from pocketgraph.runtime.planning.graph_passes import IN_SEVERAL_CALLS, INEXACT, specialized
from pocketgraph.runtime.planning.graph_state import GraphState, without_constant_lists
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint
from pocketgraph.runtime.unrolling.loop_shapes import with_loop_shapes
from pocketgraph.runtime.unsupported_help import help_with

Shapes = Mapping[str, tuple[int, ...]]
OpenShapes = Mapping[str, tuple[int | None, ...]]
ASSERTIONS = frozenset(("Assert", "PrintV2"))
"""Not a trait: ops that look at values; devices have nobody to tell."""


def lowered_graph(
    graph: Graph,
    outputs: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    for_all_sizes: bool = False,
) -> tuple[Program, Graph]:
    """The graph in LiteRT's terms, and the graph whose nodes and tensors it names: with functions written out.

    Args:
        graph: a frozen graph.
        outputs: tensors to compute; by default the graph's own or likely outputs.
        shapes: the shape of each input (any tensor may be one); by default the placeholders that the outputs need, in
            their declared shapes, with 1 where a size is open.
        values: what other placeholders are set to for good, such as ``{"keep_prob": 1.0}``.
        for_all_sizes: the graph computes its results for all sizes that its inputs leave open; else for ``shapes``.

    Raises:
        UsageError: an input or output is unknown or of unknown shape, or an operation has no LiteRT form; the message
            names the node.
    """
    fixed = dict(values or {})
    graph = graph.map_nodes(lambda node: with_value(node, fixed))
    wanted = list(outputs) if outputs else list(default_fetches(graph))
    sizes = dict(shapes) if shapes else synthetic_shapes(graph, wanted)
    simple = simplified(graph, wanted, sizes)
    try:
        program = simple.lowered()
    except Unsupported as refusal:
        raise UsageError(
            f"the part to quantize must run on LiteRT alone, but {refusal.reason}",
            where=f"node '{refusal.node}'",
            hint=_size_hint(graph, sizes, refusal) or _hint(simple.known.graph, str(refusal.node)),
        ) from refusal
    return program, _with_open_sizes(graph, wanted, sizes, simple.known) if for_all_sizes else simple.known.graph


def _with_open_sizes(graph: Graph, outputs: Sequence[str], shapes: Shapes, known: GraphState) -> Graph:
    """The graph of ``known`` without what was folded for ``shapes`` alone.

    Where a loop or a branch follows from an open size, the graph is one for that size, and its inputs say so.
    """
    declared = {name: declared_sizes(graph, name, shape) for name, shape in shapes.items()}
    if declared == shapes:
        return known.graph
    batch: OpenShapes = {
        name: tuple(None if own is None and not at else shapes[name][at] for at, own in enumerate(sizes))
        for name, sizes in declared.items()
    }
    for sizes in (declared, batch) if batch != declared else (declared,):
        found = _specialized(graph, outputs, sizes, INEXACT).graph
        if all(_is_kept(item.node, found) for item in known.plan.items.values()):
            changed = {name: dims for name, dims in sizes.items() if dims != declared[name]}
            return with_shapes(found, changed)
    return with_shapes(known.graph, shapes)


def declared_sizes(graph: Graph, name: str, shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """The sizes of an input, which has this shape, None for what it leaves open."""
    node = graph[node_name(name)]
    if node.op not in PLACEHOLDERS:
        return shape
    declared = graph.declared_shape(node.name)
    return (None,) * len(shape) if declared is None or declared.dims is None else declared.dims


def _is_kept(node: Node, graph: Graph) -> bool:
    """Whether a graph has a node, or what it was before it was folded."""
    return node.name in graph.nodes and node.op in ("Const", graph[node.name].op)


@dataclass(frozen=True)
class Simplified:
    """A graph for one set of input shapes: functions and loops of known length written out, known branches taken.

    Attributes:
        known: the graph and what is known of it.
        inputs: the type and shape of each input by tensor name.
        outputs: the tensor names wanted.
    """

    known: GraphState
    inputs: dict[str, tuple[DType, tuple[int, ...]]]
    outputs: list[str]

    @property
    def has_control_flow(self) -> bool:
        """Whether there are branches that the input decides, or loops that stay loops: a Merge joins either."""
        return any(item.node.op in MERGE for item in self.known.plan.items.values())

    @cached_property
    def inferred(self) -> Inferred:
        """What is known of the graph's tensors, in loops and branches too."""
        known = self.known
        if not self.has_control_flow:
            return known.inferred
        types = {name: (dtype, Shape(shape)) for name, (dtype, shape) in self.inputs.items()}
        return with_loop_shapes(known.graph, known.plan, types, known.inferred, with_sizes=True)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that compute the outputs; not assertions and prints, nor what only these need."""
        items = self.known.plan.items
        needed = with_producers(items, map(node_name, self.outputs))
        if any(_changes_something(item.node) for name, item in items.items() if name not in needed):
            return [item.node for item in items.values()]
        return [item.node for name, item in items.items() if name in needed]

    def lowered(self, *, custom: bool = False) -> Program:
        """The graph in LiteRT's terms, equal weights once; with ``custom``, custom operators where none is builtin.

        Raises:
            Unsupported: a node has no LiteRT form.
        """
        fallback, emit_all = emit_custom if custom else None, None
        if self.has_control_flow:
            loops = LoopLowering(self.known.plan, fallback)
            emit_all = partial(loops.emit_all, outputs=self.known.fetches)
        program = lowered(
            self.known.graph,
            self.nodes,
            list(self.inputs),
            self.outputs,
            self.inputs,
            self.inferred,
            fallback=fallback,
            emit_all=emit_all,
        )
        for each in program.programs():
            optimize(each, FOR_THIS_PROCESSOR)
            share_weights(each)
        return program


def simplified(graph: Graph, outputs: Sequence[str], shapes: Shapes, *, may_hold_codes: bool = False) -> Simplified:
    """The graph made ready for lowering as a whole (arguments as for ``lowered_graph``).

    With ``may_hold_codes`` eight-bit parts of the graph become what LiteRT computes them with, as in a session.
    """
    known = _specialized(graph, outputs, shapes, () if may_hold_codes else INEXACT)
    inputs = {
        str(endpoint): (dtype or FLOAT, tuple(shape))
        for (endpoint, (dtype, _)), shape in zip(known.feeds.items(), shapes.values(), strict=True)
    }
    return Simplified(known, inputs, [str(fetch) for fetch in known.fetches])


def _specialized(graph: Graph, outputs: Sequence[str], shapes: OpenShapes, without: Collection[str]) -> GraphState:
    graph = without_constant_lists(_without_assertions(graph))
    specs: dict[Endpoint, Sized] = {}
    for (endpoint, label), shape in zip(feed_endpoints(graph, shapes).items(), shapes.values(), strict=True):
        specs[endpoint] = (FeedSpec.of(graph, endpoint, label).dtype or FLOAT, tuple(shape))
    fetches = [fetch_endpoint(graph, name) for name in outputs]

    def known(graph: Graph) -> GraphState:
        return specialized(GraphState(graph, specs, {}, fetches, (), without=(*IN_SEVERAL_CALLS, *without)))

    found = known(graph)
    two_ways = with_binary_switches(found.graph, outputs)  # of functions, too, which are inlined now
    return found if two_ways is found.graph else known(two_ways)


def _without_assertions(graph: Graph) -> Graph:
    """The graph with a NoOp for each assertion: where there are loops behind its condition, so that it stays in the one
    that it is in, and what waits for it does not seem to be outside."""
    has_loops = any(node.op in ENTER for node in graph)

    def as_no_op(node: Node) -> Node:
        waits = tuple(f"^{node_name(ref)}" for ref in node.data_inputs[:1]) if has_loops else ()
        return Node(node.name, "NoOp", waits)

    return graph.map_nodes(lambda node: as_no_op(node) if node.op in ASSERTIONS else node)


def _changes_something(node: Node) -> bool:
    """Whether a node that only others wait for does more than to look at values."""
    definition = opdefs.find(node.op)
    return definition is None or (definition.stateful and node.op not in ops_with("effect"))


def _size_hint(graph: Graph, sizes: Shapes, refusal: Unsupported) -> str:
    """What to do where a shape is open because the model leaves sizes of its inputs open; "" elsewhere."""
    if not refusal.reason.endswith(LATE):
        return ""
    return size_hint({name: declared_sizes(graph, name, shape) for name, shape in sizes.items()})


def size_hint(declared: Mapping[str, Sequence[int | None]]) -> str:
    """What says how large the inputs of rank 2 and more are that leave a size open; "" where none does."""
    opened = {
        name: ["N" if size is None else size for size in shape]
        for name, shape in declared.items()
        if len(shape) > 1 and None in shape
    }
    if not opened:
        return ""
    return f"say how large its inputs are: {shapes_option(opened)}, with numbers for N"


def _hint(graph: Graph, name: str) -> str:
    """What to do about a node that stands in the way."""
    op = graph[name].op if name in graph else ""
    if op.startswith(("Quantize", "Requantiz", "Dequantize")) and "AndDequantize" not in op:
        return "the graph is in eight bits already; give the float one that it was made from"
    return help_with(graph, name, "feeds") or (
        f"name the part with {option('inputs')} and {option('outputs')}; "
        f"{command_on_model('pocketgraph plan {}')} shows what runs where"
    )


def with_value(node: Node, values: Mapping[str, Any]) -> Node:
    """The node, or the constant that takes its place."""
    for name, value in values.items():
        if canonical(name) == canonical(node.name):
            dtype = node.attr("dtype", BOOL if np.asarray(value).dtype == bool else FLOAT)
            array = np.asarray(value, dtype.numpy if isinstance(dtype, DType) else None)
            return Node(node.name, "Const", (), {"dtype": dtype, "value": Tensor.from_numpy(array)})
    return node


def with_feeds(graph: Graph, values: Mapping[str, Any]) -> Graph:
    """The graph with placeholders that are set for good, by name, such as ``{"keep_prob": 1.0}``.

    Raises:
        UsageError: there is no such placeholder.
    """
    check_names(graph, values, is_fed=True)
    return graph.map_nodes(lambda node: with_value(node, values)) if values else graph


def in_float32(graph: Graph) -> Graph:
    """The graph with float in the place of half and bfloat16, as a program computes it and a .tflite file holds it.

    Raises:
        UsageError: a function that stays one computes with them.
    """
    for name, function in reachable_functions(graph, graph.functions).items():
        if any(_in_float32(node) is not node for node in function.nodes):
            raise UsageError(
                "a quantized graph computes with float, and this function with 16 bits",
                where=f"function '{name}'",
                hint="write a .tflite file",
            )
    return graph.map_nodes(_in_float32)


def _in_float32(node: Node) -> Node:
    changed = {key: wide for key, value in node.attrs.items() if (wide := _wide(value)) is not value}
    return node.with_attrs(**changed) if changed else node


def _wide(value: Any) -> Any:
    if isinstance(value, DType):
        return widened(value)
    if isinstance(value, Tensor) and value.dtype.name in NARROW:
        return Tensor.from_numpy(value.numpy().astype(np.float32))
    if isinstance(value, tuple) and any(isinstance(item, DType) and item.name in NARROW for item in value):
        return tuple(map(_wide, value))
    return value


def share_weights(program: Program) -> None:
    """Makes equal constant weights of layers the same value of the program, in place.

    The steps of a loop have such weights that was written out in training.
    """
    fixed = [(weights(one), one) for one in program.operations if is_layer(one) and weights(one).constant is not None]
    alike = by_key(((one.code, kernel.dtype, kernel.shape), one) for kernel, one in fixed)
    for layers in alike.values():
        if len({weights(operation) for operation in layers}) < 2:
            continue
        found: dict[bytes, Value] = {}
        digests: dict[Value, bytes] = {}
        for operation in layers:
            kernel = weights(operation)
            if kernel not in digests:
                digests[kernel] = hashlib.sha256(kernel.content.numpy().tobytes()).digest()
            operation.inputs[LINEAR[operation.code][1]] = found.setdefault(digests[kernel], kernel)
