"""One LiteRT program for calls that differ in sizes alone: of all of a graph, or of its layers, with the rest in NumPy.

words [1, ?] ── Shape ── Range ── Less ── Cast ─┐            NumPy, for each length
      └──────── GatherV2 ── MatMul ── Softmax ──┴ Mul ── …   one program, which is told the sizes of each call

Where nothing but shapes follows from the open sizes (products, convolutions, attention, normalization over texts and
pictures of any size), the program that was compiled for one set of sizes is opened (``litert/sizes/open_program.py``),
where windows slide one without what holds for these alone, and LiteRT is told the sizes of each call. Where numbers
follow from them as well (masks, positions, frames of a recording), no program of the whole graph holds for all sizes,
but one of the layers that take these numbers does. Either is compared with the reference engine for the first sizes
that it was not compiled for, and serves others only when it was right.
"""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import Graph, Node, Shape, canonical
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.kernels.shapes.infer import infer_while, postorder
from pocketgraph.litert import engine
from pocketgraph.litert.constants_ahead import AHEAD
from pocketgraph.litert.sizes.open_program import Origins
from pocketgraph.litert.sizes.open_program import opened as with_open_sizes
from pocketgraph.litert.sizes.wide_pixels import widened_for_all
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import FixedPlan, Request
from pocketgraph.runtime.planning.rewriting.sizes_of_feeds import with_sizes_of_feeds
from pocketgraph.runtime.planning.sizes.open_layers import PICTURES, OpenCall, OpenLayers, open_shapes
from pocketgraph.runtime.planning.sizes.served_calls import ServedCalls, served_by

UNFIT = ops_with("control_flow", "random", "effect", "variable", "reads_handle", "call", "branch", "loop")
FOR_ALL_SIZES = frozenset(("take_defaults", "drop_untaken_branches", "remove_dropout"))
"""Passes of planning that make an unfit graph a fit one."""


@collector_paused()
def opened_program(
    opened: CallKey, compiled: FixedPlan, request: Request, kept_as: tuple[str, str] | None
) -> ServedCalls | None:
    """What serves calls of any sizes; None where that is not certain.

    Args:
        opened: the calls' key, with None for the sizes that change.
        compiled: a plan for one of them.
        request: what is to be run, with the whole graph.
        kept_as: the folder and name under which the cache keeps the program; None where it does not.
    """
    graph = request.graph
    wanted = [*map(str, opened.fetches)]
    nodes = postorder(graph, wanted)
    if _are_unfit(nodes):
        request = request.replace(graph=_decided(opened, request))
        nodes = postorder(request.graph, wanted)
        if request.graph is graph or _are_unfit(nodes):
            return None
        graph = request.graph
        compiled = compiled.replace(graph=graph, items=needed(graph, frozenset(request.feeds), request.fetches, ()))
    call = OpenCall(opened, compiled, request, nodes, kept_as)
    found, layers, inferred = _opened_layers(call, compiled.inferred)
    if found is not None:
        return found
    if layers.asks_late_sizes:
        fed = [(end, dtype, sizes) for end, (dtype, sizes) in opened.feeds if dtype is not None]
        before = compiled.key.shapes if len(fed) == len(opened.feeds) else None
        sized = with_sizes_of_feeds(graph, fed, request.values, nodes, compiled.inferred, before)
        if sized.graph is not graph:
            again = OpenCall(opened, compiled, request.replace(graph=sized.graph), postorder(sized.graph, wanted))
            found, _, _ = _opened_layers(again, inferred)
            if found is not None:
                found.alike = sized.alike
    if found is None and layers.has_size_operands:
        found, _, _ = _opened_layers(call, inferred, takes_sizes=False)
    return found


def _are_unfit(nodes: Iterable[Node]) -> bool:
    return any(node.control_inputs or node.op in UNFIT for node in nodes)


def _decided(opened: CallKey, request: Request) -> Graph:
    """The graph without branches that are not taken, and dropout that keeps everything, whatever the sizes."""
    from pocketgraph.runtime.planning.graph_passes import PASSES, specialized
    from pocketgraph.runtime.planning.graph_state import GraphState

    others = {each.name for each in PASSES} - FOR_ALL_SIZES
    try:
        without = request.without | others
        feeds = dict(opened.feeds)
        state = specialized(GraphState(request.graph, feeds, request.values, request.fetches, (), without=without))
    except PocketgraphError:
        return request.graph
    return state.graph


def _opened_layers(
    call: OpenCall, before: Inferred, *, takes_sizes: bool = True
) -> tuple[ServedCalls | None, OpenLayers, Inferred]:
    """What serves calls of any sizes, where there is such; how the nodes were sorted, and what was inferred of them.

    Args:
        call: the calls.
        before: what was inferred of the graph, or most of it, before.
        takes_sizes: as for OpenLayers.
    """
    feeds = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in call.key.feeds if dtype is not None}
    request = call.request
    layers = OpenLayers(request.graph, frozenset(map(canonical, feeds)), takes_sizes=takes_sizes)
    inferred, is_certain = infer_while(layers.look_at, request.graph, feeds, request.values, call.nodes, before)
    return _of_layers(call, layers, inferred) if is_certain else None, layers, inferred


def _of_layers(call: OpenCall, layers: OpenLayers, inferred: Inferred) -> ServedCalls | None:
    wanted = [*map(str, call.key.fetches)]
    if not (layers.before or layers.after or layers.late or layers.takes_more_than_shapes) and (
        layers.from_sizes.isdisjoint(map(canonical, wanted))
    ):
        found = _of_all(call, layers, inferred)
        if found is not None or not layers.size_operands:
            return found
    from pocketgraph.runtime.planning.sizes.opened_parts import opened_part

    return opened_part(call, layers, inferred)


def _of_all(call: OpenCall, layers: OpenLayers, inferred: Inferred) -> ServedCalls | None:
    """One program for the whole graph, which is told the sizes of its inputs alone, and can be kept."""
    opened, compiled, request, nodes = call.key, call.compiled, call.request, call.nodes
    wanted = [*map(str, opened.fetches)]
    executable = compiled.executable
    program = executable.program if executable is not None else None
    if executable is None or program is None or not program.operations:
        return None
    inputs = tuple(sorted(request.feeds, key=str))
    names = [str(endpoint) for endpoint in inputs]
    sizes = dict(opened.feeds)
    opened_sizes = [sizes[endpoint][1] for endpoint in inputs]
    origins = Origins({node.name: node for node in nodes}, {}, layers.cuts, inferred.value)
    open_now = open_shapes(nodes, inferred, compiled.inferred)
    # Where windows slide, what holds for one size only may be part of the program unseen, such as pixels in pairs.
    slides = layers.has_windows or any(node.op in PICTURES for node in nodes)
    found = None if slides else with_open_sizes(program, opened_sizes, open_now, origins)
    if found is None:
        from pocketgraph.runtime.planning.sizes.lowering_for_all import lowered_for_all

        given = {str(e): (dtype, Shape(shape).known) for e, (dtype, shape) in compiled.key.feeds if dtype is not None}
        specs = {name: given[name] for name in names}
        program = lowered_for_all(request, nodes, specs, wanted, compiled.inferred, origins.following)
        found = with_open_sizes(program, opened_sizes, open_now, origins) if program is not None else None
    if found is None:
        return None
    found = widened_for_all(found, request.without, strict=request.strict)
    types = [dtype for _, dtype, _ in executable.about["inputs"]]
    try:
        sizes_of = list(zip(names, opened_sizes, strict=True))
        resizable = engine.resizable(
            found, names, types, request.threads, call.kept_as, sizes_of, ahead=AHEAD not in request.without
        )
    except RunError:
        return None
    reference = PartReference(compiled.graph, inputs, request.fetches, request.without, compiled.items)
    return served_by(resizable, opened, inputs, FirstComparison(reference, names, request.cache_dir))
