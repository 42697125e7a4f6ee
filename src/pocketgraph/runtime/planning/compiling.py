"""Makes LiteRT parts of a graph: which nodes can be in one, how the graph is cut, and what LiteRT makes of each cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.budgets import check_time
from pocketgraph.graph import DType, Graph, Shape, opdefs
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with, user_ops
from pocketgraph.runtime.engines.compilation_units import IN_NUMPY, OF_TRAINED_LAYERS, Plan
from pocketgraph.runtime.engines.needed import Item, with_producers
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.execution_plan import Request
from pocketgraph.runtime.planning.graph_state import GraphState
from pocketgraph.runtime.planning.part_setup import opener, reference_of
from pocketgraph.runtime.planning.partitioning import CutPart, is_worth_it, partition

if TYPE_CHECKING:
    from pocketgraph.litert.lowering import Unsupported
    from pocketgraph.litert.part_lowering import Trial

MOST_RECUTS = 40  # each gives one more node to the reference engine


def compile_parts(request: Request, known: GraphState) -> tuple[dict[CutPart, CompiledPart], dict[str, str]]:
    """The compiled parts of a graph, by the cuts that they are of; and why each node that is in none is not."""
    from pocketgraph.litert.part_lowering import Trial

    items, static = known.plan.items, known.static
    reasons = {name: "it runs in a loop" for name in items if known.plan.frames[name].depth}
    reasons.update(dict.fromkeys(known.conditional, "it runs on a branch only"))
    reasons.update(_checks_for_themselves(known.plan, request.fetches))
    candidates = [
        item.node
        for name, item in items.items()
        if name not in static and name not in reasons and item.node.op != "ControlTrigger"
    ]
    fetched, fed = list(map(str, request.fetches)), list(map(str, request.feeds))
    trial = Trial(known.graph, candidates, fetched, known.inferred, fed, request.strict)
    reasons.update(trial.reasons)
    if not request.wants_one_engine:
        reasons.update({node.name: "NumPy computes it sooner" for node in candidates if node.op in IN_NUMPY})
    if not request.wants_one_engine and any(map(_may_be_trained, known.plan.items.values())):
        from pocketgraph.runtime.planning import numpy_gradients as in_numpy

        if "gradients_in_numpy" not in request.without:
            reasons.update(in_numpy.sooner_in_numpy(candidates, known.inferred, static))
            without = request.without
            reasons.update(in_numpy.layers_sooner_in_numpy(known.plan, known.held, known.inferred, static, without))
        if "products_in_numpy" not in request.without:
            reasons.update(in_numpy.products_sooner_in_numpy(known.plan, known.inferred, static))
    names = [node.name for node in candidates]
    reasons.update(_with_unknown_inputs(known.plan, names, static, reasons, known.inferred))
    return _cut_and_compiled(request, known, names, trial, reasons), reasons


def _cut_and_compiled(
    request: Request, known: GraphState, candidates: Sequence[str], trial: Trial, reasons: dict[str, str]
) -> dict[CutPart, CompiledPart]:
    """Cuts the graph into parts and compiles them, with other cuts where LiteRT does not take one; none in the end
    where it takes none. Adds to ``reasons`` why candidates are in no part."""
    from pocketgraph.litert import engine
    from pocketgraph.litert.part_lowering import MALFORMED

    plan, static = known.plan, known.static
    compiled: dict[CutPart, CompiledPart] = {}
    for _ in range(MOST_RECUTS):
        able = {name for name in candidates if name not in reasons}
        parts: list[CutPart] = []
        small: list[CutPart] = []
        for part in partition(plan, able, static, request.fetches):
            if part.outputs:
                is_large = request.wants_one_engine or is_worth_it(part, plan, known.inferred.shape)
                (parts if is_large else small).append(part)
        failed = False
        for part in parts:
            if part in compiled:
                continue
            check_time("while parts were compiled")
            inside = set(part.nodes)
            left = any(n not in inside and n not in static and plan.items[n].node.op != "NoOp" for n in plan.items)
            try:
                compiled[part] = _compiled(request, known.graph, plan, part, known.inferred, trial, is_whole=not left)
            except engine.Unsupported as error:
                failed = True
                reasons.update(_blamed(error, part, reasons))
            except MALFORMED as error:  # of what a user's lowering emits, no pass has known
                users = [name for name in part.nodes if plan.items[name].node.op in user_ops()]
                if not users:
                    raise
                failed = True
                said = f"what its lowering emits cannot be compiled: {type(error).__name__}: {error}"
                reasons.update(dict.fromkeys(users, said))
        if not failed:
            for part in small:
                reasons.update(dict.fromkeys(part.nodes, "too little work between nodes that LiteRT cannot hold"))
            for part in set(compiled) - set(parts):
                compiled.pop(part).executable.close()
            return {part: compiled[part] for part in parts}
    for each in compiled.values():
        each.executable.close()
    return {}


def _blamed(refused: Unsupported, part: CutPart, reasons: Mapping[str, str]) -> dict[str, str]:
    """Why LiteRT does not take the part: said of the node that it names, or of all."""
    is_new = refused.node in part.nodes and refused.node not in reasons
    return dict.fromkeys([refused.node] if is_new else part.nodes, refused.reason)


def _compiled(
    request: Request, graph: Graph, plan: Plan, part: CutPart, inferred: Any, trial: Trial, *, is_whole: bool
) -> CompiledPart:
    """Compiles one part.

    A part that is everything between feeds and fetches takes all feeds, by name, and gives the fetches as they were
    asked for, so that a later process finds it without looking at the graph (``call_cache.find``).

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
    feeds = request.feeds
    for endpoint in inputs:
        name = str(endpoint)
        dtype = feeds[endpoint][0] if endpoint in feeds else inferred.dtype(name)
        if dtype is None:
            raise engine.Unsupported(f"the type of '{name}' is not known", "")
        shape = Shape(feeds[endpoint][1]) if endpoint in feeds else inferred.shape(name)
        if not shape.is_known:
            raise engine.Unsupported(f"a size of '{name}' is open", "")
        specs[name] = (dtype, shape.known)
    key = request.key or None
    if key is not None:  # what is constant in a part may follow from the shapes of feeds that do not enter it
        key = request.call.of_model(key) if is_whole else request.call.of_call(key)

    executable = engine.compile(
        graph,
        [plan.items[name].node for name in part.nodes],
        list(specs),
        [str(e) for e in outputs],
        specs,
        inferred,
        threads=request.threads,
        cache_dir=request.cache_dir,
        key=key,
        trial=trial,
        without=request.without,
        strict=request.strict,
        opener=opener(request, lambda: reference_of(request, graph, inputs, outputs)),
        with_program=request.call.is_traced,
        in_tiers=request.is_tiered,
        whole=request.engine == "auto",
    )
    listed = [(name, dtype.name, shape) for name, (dtype, shape) in specs.items()]
    found_by = None if key is None else (key, listed, [str(e) for e in outputs])
    ops = {name: plan.items[name].node.op for name in part.nodes}
    return CompiledPart(ops, inputs, outputs, executable, is_whole, found_by)


def _checks_for_themselves(plan: Plan, fetches: Sequence[Endpoint]) -> dict[str, str]:
    """Checks for NaN that no result is computed with: LiteRT hands values on unchecked, and here only the check counts.

    TensorFlow's optimizer keeps these as well; an EnsureShape that is only waited for it drops.
    """
    items, checks = plan.items, ops_with("checks")
    found = {name for name, item in items.items() if item.node.op in checks and opdefs.is_stateful(item.node.op)}
    taken = with_producers(items, [endpoint.node for endpoint in fetches] if found else ())
    return dict.fromkeys((name for name in items if name in found - taken), "what waits for it waits for its check")


def _may_be_trained(item: Item) -> bool:
    """Whether a node may be one of those that numpy_gradients looks for, which a first start then imports."""
    is_gradient = item.node.op.endswith(("BackpropInput", "MaxPoolGrad", *OF_TRAINED_LAYERS))
    return is_gradient or (item.node.op == "MatMul" and bool(item.node.attr("transpose_a", False)))


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
