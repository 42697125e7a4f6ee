"""Decides what runs where: LiteRT takes the largest parts that it can hold, the reference engine the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.collector import collector_paused
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.eight_bit.float_rewriting import without_codes
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.functions import Library
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.engines.reference import Program
from pocketgraph.runtime.planning import plan_cache
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.dynamic_parts import DynamicParts, may_be_dynamic
from pocketgraph.runtime.planning.dynamic_planning import dynamic_parts
from pocketgraph.runtime.planning.function_inlining import inline_calls
from pocketgraph.runtime.planning.missing import check_kernels
from pocketgraph.runtime.planning.partitioning import CutPart, is_worth_it, partition
from pocketgraph.runtime.planning.plan_description import described
from pocketgraph.runtime.planning.prepared import Prepared, Request
from pocketgraph.runtime.planning.specialize import Known, specialized
from pocketgraph.runtime.warm_start import Executable, with_switches

if TYPE_CHECKING:
    from pocketgraph.litert.trial import Trial
    from pocketgraph.litert.unsupported import Unsupported

Array = np.ndarray[Any, Any]
MOST_RECUTS = 40  # each gives one more node to the reference engine


@collector_paused()
def prepare(request: Request, items: dict[str, Item] | None = None) -> Prepared:
    """Decides and compiles, and keeps the plan for later processes (``plan_cache.find``).

    ``items`` are the graph's needed nodes, when the caller knows them.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
        RunError: the graph cannot be run as asked.
    """
    graph = request.graph
    fed = frozenset(request.feeds)
    if items is None:
        items = needed(graph, fed, request.fetches, request.targets)
    reasons: dict[str, str] = {}
    made: list[CompiledPart] = []
    dynamic: DynamicParts | None = None
    opened: list[Executable] = []
    if request.engine == "reference":
        reasons = dict.fromkeys(items, "the session runs on the reference engine only")
    else:
        items, made, reasons, dynamic = _on_litert(request, items, opened)
    library = Library(graph, dynamic.for_bodies() if dynamic is not None else None)
    whole, whole_inputs = None, tuple[int, ...]()
    program: Program | None = None
    if len(made) == 1 and made[0].is_whole:
        order = {endpoint: index for index, endpoint in enumerate(request.feeds)}
        whole, whole_inputs = made[0].executable, tuple(order[endpoint] for endpoint in made[0].inputs)
    if whole is None or request.by_steps:
        on_litert = {name for part in made for name in part.cut.nodes}
        check_kernels((item.node for name, item in items.items() if name not in on_litert), library)
        ops = {name: item.node.op for name, item in items.items()}
        calls = [part.part_call(index, ops) for index, part in enumerate(made)]
        program = Program(
            graph,
            tuple(request.feeds),
            request.fetches,
            request.targets,
            items=items,
            parts=calls,
            library=library,
            dynamic=dynamic,
        )
    if request.engine == "litert" and whole is None:
        left = {n: r for n, r in reasons.items() if n in items}
        named = "; ".join(f"'{name}' ({items[name].node.op}): {reason}" for name, reason in list(left.items())[:10])
        raise RunError(f"LiteRT cannot run all of it: {named or 'nothing is left to compute'}", hint="use engine=None")
    later = program.dynamic_parts if program is not None else ()
    description = described(request, items, [part.cut for part in made], later, reasons)
    opened.extend(part.executable for part in made)
    if plan_cache.is_kept(request) and whole is None:
        plan_cache.keep(request, graph, items, made, later)
    return Prepared(program, whole, whole_inputs, description, opened)


def _able_dynamic(known: Known) -> frozenset[str]:
    """The nodes that may be planned when they run: in loops and on branches, and those that wait for a shape."""

    def is_dynamic(name: str, item: Item) -> bool:
        if known.plan.frames[name].depth or name in known.conditional:
            return True
        return may_be_dynamic(item, known.inferred.shape, known.inferred.dtype)

    return frozenset(n for n, item in known.plan.items.items() if n not in known.static and is_dynamic(n, item))


def _on_litert(
    request: Request, items: dict[str, Item], opened: list[Executable]
) -> tuple[dict[str, Item], list[CompiledPart], dict[str, str], DynamicParts | None]:
    """The needed nodes (without branches known not to be taken), the compiled parts, why the rest is in none, and who
    plans parts of that when they run (nobody where one part is everything)."""
    from pocketgraph.litert import engine

    kept = {endpoint.node for endpoint in (*request.feeds, *request.fetches)} | set(request.targets)
    graph = inline_calls(request.graph, items, request.feeds, kept)
    if graph is not request.graph:
        items = needed(graph, request.feeds, request.fetches, request.targets)
    if not request.exact:
        graph = without_codes(graph, kept, items, request.feeds)
    may_chunk = request.engine != "litert"
    known = specialized(
        graph, request.feeds, request.values, request.fetches, request.targets, items, may_chunk=may_chunk
    )
    items, static = dict(known.plan.items), known.static
    reasons = {name: "it runs in a loop" for name in items if known.plan.frames[name].depth}
    reasons.update(dict.fromkeys(known.conditional, "it runs on a branch only"))
    candidates = [
        item.node
        for name, item in items.items()
        if name not in static and name not in reasons and item.node.op != "ControlTrigger"
    ]
    fetched, fed = list(map(str, request.fetches)), list(map(str, request.feeds))
    trial = engine.tried(known.graph, candidates, fetched, known.inferred, fed)
    reasons.update(trial.reasons)
    unknown = _with_unknown_inputs(known.plan, [n.name for n in candidates], static, reasons, known.inferred)
    reasons.update(unknown)
    made = _compiled_parts(request, known, [node.name for node in candidates], trial, reasons)
    is_whole = len(made) == 1 and made[0].is_whole and not request.by_steps
    dynamic = None if is_whole else dynamic_parts(request, known.graph, _able_dynamic(known), static, opened)
    return items, made, reasons, dynamic


def _compiled_parts(
    request: Request, known: Known, candidates: Sequence[str], trial: Trial, reasons: dict[str, str]
) -> list[CompiledPart]:
    """Cuts the graph into parts and compiles them, with other cuts where LiteRT does not take one; none in the end
    where it takes none. Adds to ``reasons`` why candidates are in no part."""
    from pocketgraph.litert import engine

    plan, static = known.plan, known.static
    compiled: dict[CutPart, CompiledPart] = {}
    for _ in range(MOST_RECUTS):
        able = {name for name in candidates if name not in reasons}
        parts: list[CutPart] = []
        small: list[CutPart] = []
        for part in partition(plan, able, static, request.fetches):
            if part.outputs:
                is_large = request.engine == "litert" or is_worth_it(part, plan, known.inferred.shape)
                (parts if is_large else small).append(part)
        failed = False
        for part in parts:
            if part in compiled:
                continue
            inside = set(part.nodes)
            left = any(n not in inside and n not in static and plan.items[n].node.op != "NoOp" for n in plan.items)
            try:
                compiled[part] = _compiled(request, known.graph, plan, part, known.inferred, trial, is_whole=not left)
            except engine.Unsupported as error:
                failed = True
                reasons.update(_blamed(error, part, reasons))
        if not failed:
            for part in small:
                reasons.update(dict.fromkeys(part.nodes, "too little work between nodes that LiteRT cannot hold"))
            for part in set(compiled) - set(parts):
                compiled.pop(part).executable.close()
            return [compiled[part] for part in parts]
    for part_made in compiled.values():
        part_made.executable.close()
    return []


def _blamed(refused: Unsupported, part: CutPart, reasons: Mapping[str, str]) -> dict[str, str]:
    """Why LiteRT does not take the part: said of the node that it names, or of all."""
    is_new = refused.node in part.nodes and refused.node not in reasons
    return dict.fromkeys([refused.node] if is_new else part.nodes, refused.reason)


def _compiled(
    request: Request, graph: Graph, plan: Plan, part: CutPart, inferred: Any, trial: Trial, *, is_whole: bool
) -> CompiledPart:
    """Compiles one part.

    A part that is everything between feeds and fetches takes all feeds, by name, and gives the fetches as they were
    asked for, so that a later process finds it without looking at the graph (``from_cache``).

    Raises:
        Unsupported: LiteRT does not take it.
    """
    from pocketgraph.litert import engine

    inputs, outputs = part.inputs, part.outputs
    is_whole = is_whole and not request.targets and set(outputs) == set(request.fetches)
    is_whole = is_whole and len(set(request.fetches)) == len(request.fetches) and set(inputs) <= set(request.feeds)
    if is_whole:
        inputs, outputs = tuple(sorted(request.feeds, key=str)), request.fetches
    specs: dict[str, tuple[DType, tuple[int, ...]]] = {}
    for endpoint in inputs:
        name = str(endpoint)
        dtype, shape = request.feeds.get(endpoint) or (inferred.dtype(name), inferred.shape(name).known)
        if dtype is None:
            raise engine.Unsupported(f"the type of '{name}' is not known", "")
        specs[name] = (dtype, shape)
    key = request.key or None
    if key is not None and not is_whole:
        # What is constant in a part may follow from the shapes of feeds that do not enter it.
        given = sorted((str(e), str(dtype), shape) for e, (dtype, shape) in request.feeds.items())
        key = f"{key} {given}"
    if key is not None:
        key = with_switches(key, request.values)
    executable = engine.compile(
        graph,
        [plan.items[name].node for name in part.nodes],
        list(specs),
        [str(e) for e in outputs],
        specs,
        threads=request.threads,
        cache_dir=request.cache_dir,
        key=key,
        inferred=inferred,
        trial=trial,
    )
    listed = [(name, dtype.name, shape) for name, (dtype, shape) in specs.items()]
    found_by = None if key is None else (key, listed, [str(e) for e in outputs])
    return CompiledPart(part, inputs, outputs, executable, is_whole, found_by)


def _with_unknown_inputs(
    plan: Plan, names: Sequence[str], static: set[str], reasons: Mapping[str, str], inferred: Any
) -> dict[str, str]:
    """Candidates that take a tensor whose shape or type is not known before the run."""
    found: dict[str, str] = {}
    fine: set[Endpoint] = set(plan.fed)
    for name in names:
        if name in reasons:
            continue
        for endpoint in plan.items[name].data:
            if endpoint in fine or endpoint.node in static:
                continue
            dtype = inferred.dtype(str(endpoint))
            if not inferred.shape(str(endpoint)).is_known:
                found[name] = f"the shape of its input '{endpoint}' is not known before the run"
            elif dtype is None or dtype.base in (RESOURCE, VARIANT) or dtype.is_ref:
                found[name] = f"its input '{endpoint}' is no plain tensor"
            else:
                fine.add(endpoint)
    return found
