"""The layers of a graph as one LiteRT program, which is told the sizes of each call; the rest runs in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Shape, node_name
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import HEAVY
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert import engine
from pocketgraph.litert.constants_ahead import AHEAD
from pocketgraph.litert.sizes.open_program import opened as with_open_sizes
from pocketgraph.litert.sizes.operator_sizes import Sizes
from pocketgraph.litert.sizes.wide_pixels import widened_for_all
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.engines.step_program import StepProgram
from pocketgraph.runtime.missing_kernels import check_kernels
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request
from pocketgraph.runtime.planning.part_nodes import PartNodes
from pocketgraph.runtime.planning.sizes.lowering_for_all import lowered_for_all
from pocketgraph.runtime.planning.sizes.open_layers import OpenCall, OpenLayers, open_shapes
from pocketgraph.runtime.planning.sizes.operand_numbers import OperandNumbers
from pocketgraph.runtime.planning.sizes.program_layers import ProgramLayers
from pocketgraph.runtime.planning.sizes.served_calls import ServedCalls
from pocketgraph.runtime.planning.sizes.sized_executables import SizedExecutables

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Resizable
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer

KEPT_AS_THEY_ARE = ("turn_transposed_convolutions",)
"""Passes that are left out where a part makes no program for all sizes with them."""


def opened_part(call: OpenCall, layers: OpenLayers, inferred: Inferred) -> ServedCalls | None:
    """What serves calls of any sizes; None where the layers make no program that does.

    Args:
        call: the calls.
        layers: the graph's nodes, sorted.
        inferred: what is known of the graph while sizes are open.
    """
    opened, compiled, request, nodes = call.key, call.compiled, call.request, call.nodes
    graph = request.graph
    part = ProgramLayers(opened, layers, nodes, inferred)
    if not part.is_possible or not any(op in HEAVY for op in part.ops.values()):
        return None
    if any(node_name(name) not in compiled.graph.nodes for name in (*part.inputs, *part.outputs)):
        return None
    part.inputs += _others_fed(part, compiled.graph, request)
    given = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in compiled.key.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    fixed = compiled.inferred  # of the graph after its passes, some of which leave nodes out
    if any(not fixed.shape(name).is_known for name in part.inputs):
        fixed = infer(graph, given, request.values, wanted, before=fixed)
    taken = {name: (fixed.dtype(name), fixed.shape(name)) for name in part.inputs}
    specs = {name: (dtype, shape.known) for name, (dtype, shape) in taken.items() if dtype and shape.is_known}
    sizes = [inferred.shape(name).dims for name in part.inputs]
    if len(specs) < len(taken) or None in sizes or any(dtype.numpy.kind not in "biuf" for dtype, _ in specs.values()):
        return None
    feeds = {**given, **{name: (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()}}
    of_sizes = infer(graph, feeds, request.values, before=fixed, nodes=nodes)
    opened_sizes = [own for own in sizes if own is not None]
    origins, open_now = part.origins(fixed), open_shapes(part.nodes, inferred, fixed)
    if origins is None:
        return None
    found = None
    for form in ((), KEPT_AS_THEY_ARE):
        program = lowered_for_all(request, part.nodes, specs, part.outputs, of_sizes, origins.following, without=form)
        found = with_open_sizes(program, opened_sizes, open_now, origins) if program is not None else None
        if found is not None or not layers.size_operands:
            break
    if found is None:
        return None
    found = widened_for_all(found, request.without, strict=request.strict)
    of_types = {name: dtype for name, (dtype, _) in specs.items()}
    sizes_of = list(zip(part.inputs, opened_sizes, strict=True))
    tell = OperandNumbers(request, of_types, sizes_of, found.size_inputs, of_sizes) if found.size_inputs else None
    types = [dtype.numpy.name for dtype, _ in specs.values()]
    try:
        resizable = engine.resizable(
            found, list(part.inputs), types, request.threads, None, sizes_of, tell, AHEAD not in request.without
        )
        if tell is not None:
            tell([shape for _, shape in specs.values()])
    except RunError:
        return None
    return _served(compiled, request, part, resizable, opened_sizes)


def _others_fed(part: ProgramLayers, graph: Graph, request: Request) -> tuple[str, ...]:
    """What is fed besides the part's inputs, and is asked for its sizes where the part is computed from these."""
    inputs = frozenset(map(Endpoint.of, part.inputs))
    items = needed(graph, inputs, tuple(map(Endpoint.of, part.outputs)), ())
    return tuple([str(each) for each in request.feeds if each not in inputs and each.node in items])


def _served(
    compiled: FixedPlan, request: Request, part: ProgramLayers, resizable: Resizable, sizes: Sequence[Sizes]
) -> ServedCalls:
    """The calls that a program serves with the rest of the graph around it.

    Args:
        compiled: a plan for one of them, with the graph as it is.
        request: what is to be run, with a graph that computes the same.
        part: the program's layers.
        resizable: the program.
        sizes: those of its inputs, None where they are open.
    """
    graph, items = request.graph, compiled.items
    if graph is not compiled.graph:
        items = needed(graph, frozenset(request.feeds), request.fetches, ())
    inputs, outputs = tuple(map(Endpoint.of, part.inputs)), tuple(map(Endpoint.of, part.outputs))
    reference = PartReference(compiled.graph, inputs, outputs, request.without, compiled.items)
    comparison = FirstComparison(reference, part.inputs, request.cache_dir)
    executable = SizedExecutables(resizable, sizes, comparison, reference.run)
    steps = _program(request, items, part, inputs, outputs, executable)
    before = PartReference(graph, tuple(request.feeds), inputs, request.without, items)
    noted = partial(_noted, before, request.fetches, outputs)
    return ServedCalls(ExecutionPlan(steps, executables=[executable]), comparison, noted=noted)


def _noted(
    before: PartReference, fetches: Sequence[Endpoint], outputs: Sequence[Endpoint], answer: ReferenceAnswer
) -> tuple[list[Array], list[Array]] | None:
    """What went into a part and came out of it in an answer; None where not all of that is fetched.

    Args:
        before: computes what goes in.
        fetches: of the call.
        outputs: of the part.

    Raises:
        PocketgraphError: the reference engine refuses what was fed.
    """
    results = dict(zip(fetches, answer.results, strict=True))
    if not results.keys() >= set(outputs):
        return None
    return before.run(answer.feeds), [results[each] for each in outputs]


def _program(
    request: Request,
    items: Mapping[str, Item],
    part: ProgramLayers,
    inputs: tuple[Endpoint, ...],
    outputs: tuple[Endpoint, ...],
    executable: SizedExecutables,
) -> StepProgram:
    """The steps of all calls, one of which is the part."""
    runs: Any = executable  # an Executable, as far as a step asks
    compiled = CompiledPart(part.ops, inputs, outputs, runs)
    graph = request.graph
    part_nodes = PartNodes(request.feeds, [compiled])
    rest = graph.replace(part_nodes.nodes(request.feeds, items), inputs=(), outputs=(), signatures={})
    fetches = [part_nodes.moved(endpoint) for endpoint in request.fetches]
    running = needed(rest, part_nodes.fed, fetches, ())
    library = FunctionLibrary(rest, without=request.without)
    check_kernels((item.node for name, item in running.items() if name not in part_nodes.names), library)
    outputs = tuple(Endpoint(part_nodes.names[0], port) for port in range(len(part.outputs)))
    steps = [CompiledPart(part.ops, compiled.inputs, outputs, compiled.executable).as_step(0, part_nodes.names)]
    return StepProgram(rest, tuple(request.feeds), fetches, items=running, parts=steps, library=library)
