"""Keeps what a plan decided beside the compiled parts, and makes a plan of it again.

Kept is what is left for the reference engine: a graph in which each compiled part is one node, with the names under
which the parts are found. Graphs that LiteRT takes as a whole need none of this (see call_cache.find).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels import registry
from pocketgraph.litert import cache
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL, PartCall
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import Item, item_of, needed
from pocketgraph.runtime.engines.reference_arguments import PLAIN, is_plain
from pocketgraph.runtime.engines.step_program import StepProgram
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.dynamic_part import DynamicPart, ValueKeyedPart
from pocketgraph.runtime.planning.dynamic_part_planner import DynamicPartPlanner
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request, Runnable
from pocketgraph.runtime.planning.part_nodes import PartNodes
from pocketgraph.runtime.planning.part_setup import part_of_earlier

LARGEST = 16 << 20  # bytes of the graph that is left; more is not worth writing
LARGE = 1 << 16  # bytes of a piece that is not copied


def keep(
    name: str,
    request: Request,
    graph: Graph,
    items: Mapping[str, Item],
    made: Sequence[CompiledPart],
    later: Sequence[PartCall],
) -> None:
    """Writes a plan; does nothing where the disk or the graph does not take it.

    Args:
        name: of the plan in the cache.
        request: what was asked for.
        graph: the whole graph.
        items: its needed nodes.
        made: the compiled parts.
        later: the parts that are planned when they run.
    """
    from pocketgraph.formats import graphdef

    folder = cache.directory(request.cache_dir)
    if folder is None or graph.secret or any(not part.found_by for part in made):
        return
    part_nodes = PartNodes(request.feeds, made)
    if any(name in graph.nodes for name in part_nodes.names):
        return
    if any(endpoint.node in part_nodes.home for endpoint in request.feeds):  # one output is fed, another one computed
        return
    nodes = part_nodes.nodes(request.feeds, items)
    fetches = [part_nodes.moved(endpoint) for endpoint in request.fetches]
    targets = [part_nodes.home.get(name, name) for name in request.targets]
    try:
        rest = graph.replace(nodes, inputs=(), outputs=(), signatures={})
        running = needed(rest, part_nodes.fed, fetches, targets)
        left = {*running, *(endpoint.node for endpoint in part_nodes.fed)}
        data = list(_joined(graphdef.chunks(rest.replace([node for node in nodes if node.name in left]))))
    except PocketgraphError:
        return
    if sum(map(len, data)) > LARGEST:
        return
    ops = {node.op for node in rest if node.name in left}
    about = {
        "parts": [part for part in part_nodes.listed() if part[0] in left],
        "fetches": [*map(str, fetches)],
        "targets": targets,
        "given": sorted(left - running.keys()),
        "dynamic": [
            (part.node.name, part.call.members, part_nodes.spelled(part.inputs), part_nodes.spelled(part.outputs))
            for part in later
            if isinstance(part.call, (DynamicPart, ValueKeyedPart))
        ],
        "kernels": registry.KERNELS.homes(ops - STRUCTURAL),
        "plain": sorted(filter(is_plain, ops)),
    }
    cache.store(folder, name, data, about)


def _joined(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes; small pieces become one, and weights stay where they lie."""
    small: list[bytes | memoryview] = []
    for chunk in chunks:
        if len(chunk) < LARGE:
            small.append(chunk)
            continue
        yield b"".join(small)
        yield chunk
        small.clear()
    yield b"".join(small)


def reopened(
    request: Request, entry: cache.CacheEntry, opened: list[Runnable], whole: Callable[[], Graph]
) -> ExecutionPlan:
    """The plan of an entry; what is opened for it is added to ``opened``.

    Raises:
        LookupError: a part is missing, or the entry is damaged; other errors as well where it is damaged.
    """
    from pocketgraph.formats import from_bytes

    about = entry.about
    with open(entry.model, "rb") as file:
        graph = from_bytes(file.read())
    registry.KERNELS.load(about["kernels"])
    PLAIN.update(about["plain"])
    parts: list[PartCall] = []
    for index, (part_node, key, specs, wanted, inputs, count, ops) in enumerate(about["parts"]):
        types = {name: (DType.named(kind), tuple(shape)) for name, kind, shape in specs}
        found = part_of_earlier(request, key, list(types), wanted, types, whole)
        if found is None:
            raise LookupError(part_node)
        opened.append(found)
        outputs = tuple(Endpoint(part_node, port) for port in range(count))
        part = CompiledPart(ops, tuple(map(Endpoint.of, inputs)), outputs, found)
        parts.append(part.as_step(index, (part_node,)))
    fetches, targets = tuple(map(Endpoint.of, about["fetches"])), tuple(about["targets"])
    kept = [
        (name, members, list(map(Endpoint.of, taken)), list(map(Endpoint.of, given)))
        for name, members, taken, given in about["dynamic"]
    ]
    dynamic = DynamicPartPlanner(request, graph, (), (), opened, parts=kept)
    library = FunctionLibrary(graph, dynamic.for_bodies(), without=request.without)
    given = set(about["given"])
    items = {node.name: item_of(node) for node in graph if node.name not in given}
    program = StepProgram(
        graph, tuple(request.feeds), fetches, targets, items=items, parts=parts, library=library, dynamic=dynamic
    )
    return ExecutionPlan(program, executables=opened)
