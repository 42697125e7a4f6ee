"""Plans a call: LiteRT takes the largest parts of the graph that it can hold, the reference engine the rest.

graph ──passes──▶ GraphState ──partition──▶ cut parts ──compile──▶ compiled parts ──set up──┐
                                   └─ what only the run knows ──▶ dynamic parts ────────────┴──▶ ExecutionPlan
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pocketgraph.budgets import check_time
from pocketgraph.errors import RunError
from pocketgraph.formats.files import is_overwritten
from pocketgraph.graph import opdefs
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.runtime.engines.compilation_units import PartCall
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import Item, check_counts, needed
from pocketgraph.runtime.planning import stored_plan
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.compiling import compile_parts
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request, Runnable
from pocketgraph.runtime.planning.graph_passes import IN_SEVERAL_CALLS, INEXACT, specialized
from pocketgraph.runtime.planning.graph_state import GraphState, without_constant_lists
from pocketgraph.runtime.planning.part_setup import set_up
from pocketgraph.runtime.planning.partitioning import CutPart

if TYPE_CHECKING:
    from pocketgraph.runtime.description import Description
    from pocketgraph.runtime.engines.step_program import StepProgram
    from pocketgraph.runtime.planning.dynamic_part_planner import DynamicPartPlanner

# What only plans of several steps need is imported where they are made.


@collector_paused()
def prepare(request: Request, items: Mapping[str, Item] | None = None) -> ExecutionPlan:
    """Decides and compiles, and keeps the plan for later processes (``stored_plan``).

    ``items`` are the graph's needed nodes, when the caller knows them.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
        RunError: the graph cannot be run as asked, or its file was written over.
    """
    if is_overwritten(request.graph):  # what is kept for the file as it was must not be made of what is there now
        raise RunError(
            f"{request.graph.source or 'the model'} was written over after it was read",
            hint="open it anew; a file that replaces it, in place of writing into it, disturbs nobody",
        )
    listed = without_constant_lists(request.graph)
    if listed is not request.graph:
        request, items = request.replace(graph=listed), None
    if items is None:
        items = needed(request.graph, frozenset(request.feeds), request.fetches, request.targets)
    check_counts(items)
    needs_update = False
    if any(map(opdefs.updates_variable, request.graph.ops)):
        request, items, needs_update = _without_updates_of_constants(request, items)
    if request.engine == "reference" or needs_update:  # which refuses it
        return _on_reference(request, items)
    without = request.without
    if request.wants_one_engine:
        without |= IN_SEVERAL_CALLS
    if request.exact:
        without |= INEXACT
    state = GraphState(request.graph, request.feeds, request.values, request.fetches, request.targets, items, without)
    known = specialized(state)
    cuts, reasons = compile_parts(request, known)
    check_time("while parts were compiled")  # also where what it interrupted took that for a reason to go on without
    parts = list(cuts.values())
    for part in parts:
        set_up(request, part, known.graph)
    opened: list[Runnable] = [part.executable for part in parts]
    whole = parts[0] if len(parts) == 1 and parts[0].is_whole else None
    program: StepProgram | None = None
    if whole is None or request.call.is_traced:
        from pocketgraph.runtime.planning.dynamic_part_planner import DynamicPartPlanner

        dynamic = DynamicPartPlanner(request, known.graph, _able_when_run(request, known), known.static, opened)
        program = _program(request, known.plan.items, parts, dynamic)
    if request.wants_one_engine and whole is None:
        raise _refused(request.engine, known.plan.items, reasons)
    found = program.dynamic_parts if program is not None else ()
    check_time("while the graph was planned")
    if whole is None and stored_plan.is_kept(request):
        from pocketgraph.runtime.planning.stored_plan_content import keep

        keep(stored_plan.name_of(request), request, request.graph, known.plan.items, parts, found)
    described = request.call.is_described
    description = _described(request, known.plan.items, cuts, found, reasons, known.applied) if described else None
    if whole is None:
        plan = ExecutionPlan(program, description=description, executables=opened)
        plan.inferred = known.inferred if not request.call.has_open_sizes else None
        return plan
    places = {endpoint: index for index, endpoint in enumerate(request.feeds)}
    order = tuple([places[endpoint] for endpoint in whole.inputs])
    plan = ExecutionPlan(program, whole.executable, order, description, opened)
    plan.inferred = known.inferred
    return plan


def _without_updates_of_constants(
    request: Request, items: Mapping[str, Item] | None
) -> tuple[Request, Mapping[str, Item] | None, bool]:
    """The request and its needed nodes, in which nothing waits for assignments to constants that no result is computed
    with; and whether one is to run all the same, where a session may choose its engine."""
    from pocketgraph.freezing.dead_updates import updates_of_constants, without_waits_for

    updates = updates_of_constants(request.graph)
    if not updates:
        return request, items, False
    if not request.targets:  # what is asked for by its effects keeps them
        graph = without_waits_for(request.graph, updates, map(str, request.fetches))
        request, items = request.replace(graph=graph), None
    left = needed(request.graph, frozenset(request.feeds), request.fetches, request.targets)
    return request, items, not request.wants_one_engine and not left.keys().isdisjoint(updates)


def _on_reference(request: Request, items: Mapping[str, Item] | None) -> ExecutionPlan:
    if items is None:
        items = needed(request.graph, frozenset(request.feeds), request.fetches, request.targets)
    program = _program(request, items, (), None)
    reasons = dict.fromkeys(items, "the session runs on the reference engine only")
    description = _described(request, items, {}, (), reasons) if request.call.is_described else None
    return ExecutionPlan(program, description=description)


def _program(
    request: Request, items: Mapping[str, Item], parts: Sequence[CompiledPart], dynamic: DynamicPartPlanner | None
) -> StepProgram:
    """The steps of the reference engine, with the parts as calls.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
    """
    from pocketgraph.runtime.engines.step_program import StepProgram
    from pocketgraph.runtime.missing_kernels import check_kernels

    library = FunctionLibrary(
        request.graph, dynamic.for_bodies() if dynamic is not None else None, without=request.without
    )
    on_litert = {name for part in parts for name in part.ops}
    check_kernels((item.node for name, item in items.items() if name not in on_litert), library)
    return StepProgram(
        request.graph,
        tuple(request.feeds),
        request.fetches,
        request.targets,
        items=items,
        parts=[part.as_step(index) for index, part in enumerate(parts)],
        library=library,
        dynamic=dynamic,
    )


def _able_when_run(request: Request, known: GraphState) -> frozenset[str]:
    """The nodes that may be planned when they run: in loops and on branches, and those that wait for a shape."""
    from pocketgraph.runtime.planning.dynamic_part_planner import may_be_dynamic

    def is_able(name: str, item: Item) -> bool:
        if known.plan.frames[name].depth or name in known.conditional:
            return True
        return may_be_dynamic(item, known.inferred.shape, known.inferred.dtype)

    return frozenset(n for n, item in known.plan.items.items() if n not in known.static and is_able(n, item))


def _refused(engine: str | None, items: Mapping[str, Item], reasons: Mapping[str, str]) -> RunError:
    left = [(name, reason) for name, reason in reasons.items() if name in items]
    named = "; ".join(f"'{name}' ({items[name].node.op}): {reason}" for name, reason in left[:10])
    who = "LiteRT" if engine == "litert" else f"the engine '{engine}', which takes what LiteRT's operators can hold,"
    return RunError(f"{who} cannot run all of it: {named or 'nothing is left to compute'}", hint="use engine=None")


def _described(
    request: Request,
    items: Mapping[str, Item],
    cuts: Mapping[CutPart, CompiledPart],
    later: Sequence[PartCall],
    reasons: Mapping[str, str],
    passes: Iterable[str] = (),
) -> Description:
    """What runs where.

    Args:
        request: what was asked for.
        items: the needed nodes.
        cuts: the parts that are compiled, by the cuts that they are of.
        later: the parts that will be compiled when they run.
        reasons: why a node is in none of them.
        passes: the graph passes that changed something.
    """
    from pocketgraph.runtime.description import DescribedPart, Description

    inside = {name for part in cuts for name in part.nodes} | {name for part in later for name in part.members}
    parts = [
        DescribedPart(
            runs_on, part.nodes, tuple(map(str, part.inputs)), tuple(map(str, part.outputs)), measured=measured
        )
        for part, (runs_on, measured) in {part: _engine(request, each) for part, each in cuts.items()}.items()
    ]
    for part in later:
        members = tuple(name for name in items if name in part.members)
        parts.append(
            DescribedPart("litert", members, tuple(map(str, part.inputs)), tuple(map(str, part.outputs)), True)
        )
    rest = tuple(name for name, item in items.items() if name not in inside and item.node.op != "Const")
    if cuts or later:
        rest = tuple(name for name in rest if name in reasons)
    if rest:
        parts.append(DescribedPart("reference", rest))
    return Description(
        {str(e): (dtype.name if dtype else "?", shape) for e, (dtype, shape) in request.feeds.items()},
        tuple(map(str, request.fetches)),
        tuple(parts),
        {name: reason for name, reason in reasons.items() if name in items and name not in inside},
        {name: item.node.op for name, item in items.items()},
        tuple(passes),
        tuple(sorted(request.without)),
    )


def _engine(request: Request, part: CompiledPart) -> tuple[str, tuple[str, ...]]:
    """The engine that runs a part, or will after some runs, and how, or what is known of others."""
    count = part.executable.about.get("microbatches", 1)
    cut = (f"the batch is computed in {count} parts, by each thread its own",) if count > 1 else ()
    if request.engine != "auto":
        return part.runs_on, cut
    from pocketgraph.runtime.part_engines.engine_choice import chosen_engine

    engine, lines = chosen_engine(part.executable)
    return engine, (*cut, *lines) if engine == "litert" else lines
