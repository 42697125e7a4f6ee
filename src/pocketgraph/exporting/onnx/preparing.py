"""The graph made ready: functions inlined, known branches taken, loops of known length unrolled, shapes inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pocketgraph.exporting.onnx.stored_codes import stored_codes
from pocketgraph.graph import DType, Graph, Shape, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.passes.control_flow_lowering import with_binary_switches
from pocketgraph.passes.inlining import inlined
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.frames import ROOT, LoopFrame, split
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.planning.graph_passes import IN_SEVERAL_CALLS, INEXACT, specialized
from pocketgraph.runtime.planning.graph_state import GraphState, without_constant_lists
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint
from pocketgraph.runtime.unrolling.array_origins import reads
from pocketgraph.runtime.unrolling.constant_trip_counts import heads_of, trip_count
from pocketgraph.runtime.unrolling.loop_shapes import with_loop_shapes

MOST_UNROLLED = 1200  # nodes that a loop may become
MOST_OF_CELLS = 150  # likewise of one that may be an LSTM or a GRU, which ONNX has as a whole
MOST_OF_ALL = 8000  # likewise where loops of known length are not to stay loops at all
CELLS = frozenset(("Sigmoid", "Tanh", "MatMul"))
"""Not a trait: ops that recurrent cells are made of."""


class Prepared(NamedTuple):
    """A graph ready for conversion.

    Attributes:
        plan: its needed nodes.
        inferred: types, shapes and small values of its tensors.
        inputs: the type and shape of each input, by tensor.
        outputs: the tensors wanted.
        source: the graph before it was made simpler.
        stored: tensors that are numbers of stored codes, which were not to be folded (see ``stored_codes``).
        stored_types: what is known of these.
    """

    graph: Graph
    plan: Plan
    inferred: Inferred
    inputs: dict[Endpoint, tuple[DType, Shape]]
    outputs: list[Endpoint]
    source: Graph
    stored: frozenset[str]
    stored_types: Inferred

    @property
    def items(self) -> Mapping[str, Item]:
        """The needed nodes, with their inputs taken apart."""
        return self.plan.items

    @property
    def frames(self) -> Mapping[str, LoopFrame]:
        """The loop that each node runs in."""
        return self.plan.frames


def prepared(
    graph: Graph, inputs: Mapping[str, tuple[DType, Shape]], outputs: Sequence[str], *, without_loops: bool = False
) -> Prepared:
    """The graph made ready for conversion.

    Args:
        graph: a frozen graph.
        inputs: type and shape of each tensor that the exported model takes; sizes may be open.
        outputs: the tensors that it gives.
        without_loops: loops of known length are unrolled though they are long, or an LSTM.

    Raises:
        FreezeError, RunError: a function or a loop of the graph is damaged.
    """
    graph = without_constant_lists(with_binary_switches(inlined(graph, [*inputs, *outputs], "lower"), outputs))
    ports = dict(zip(feed_endpoints(graph, inputs), inputs.values(), strict=True))
    fetches = [fetch_endpoint(graph, name) for name in outputs]
    feeds = {endpoint: (dtype, shape.dims) for endpoint, (dtype, shape) in ports.items()}
    stored = stored_codes(graph) - {str(endpoint) for endpoint in (*ports, *fetches)}
    stored_types = infer(graph, outputs=stored)
    for ref in stored:
        feeds[Endpoint(node_name(ref), 0)] = (stored_types.dtype(ref) or FLOAT, stored_types.shape(ref).dims)
    without = ("inline_functions", *INEXACT, *IN_SEVERAL_CALLS)
    known = specialized(GraphState(graph, feeds, {}, fetches, (), without=(*without, "unroll_loops")))  # type: ignore[arg-type]
    if _is_worth_unrolling(known, without_loops):
        known = specialized(GraphState(graph, feeds, {}, fetches, (), without=without))  # type: ignore[arg-type]
    plan = known.plan
    inferred = known.inferred
    if any(reads(known.graph)) or any(frame.depth for frame in plan.frames.values()):
        types = {str(endpoint): (dtype, Shape(dims)) for endpoint, (dtype, dims) in feeds.items()}
        inferred = with_loop_shapes(known.graph, plan, types, inferred)
    return Prepared(known.graph, plan, inferred, ports, fetches, graph, stored, stored_types)


def _is_worth_unrolling(known: GraphState, without_loops: bool) -> bool:
    """Whether the graph has loops, and none of them makes too many nodes or has matrices that each round would hold."""
    items, frames = known.plan.items, known.plan.frames
    if all(frame is ROOT for frame in frames.values()):
        return False
    _, found = split(list(items), ROOT, items, frames)
    for loop in found:
        members = {name: items[name] for name in loop.members}
        rounds = trip_count(items, known.inferred, members, heads_of(items, members))
        ops = {item.node.op for item in members.values()}
        most = MOST_OF_ALL if without_loops else MOST_OF_CELLS if ops >= CELLS else MOST_UNROLLED
        if rounds is not None and rounds * len(members) > most:
            return False
    return True
