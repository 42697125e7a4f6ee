"""The graph passes: what is done to a graph before it is cut into parts, in this order.

Each has a name, by which it can be switched off (``Session(without=…)``, ``POCKETGRAPH_WITHOUT``); the results are the
same without it, but later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from pocketgraph.budgets import check_time
from pocketgraph.graph import Node
from pocketgraph.graph.named_pass import Pass
from pocketgraph.graph.op_traits import ENTER, SWITCH, ops_with
from pocketgraph.runtime.eight_bit.float_ops import CANDIDATES
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.functions import FUNCTIONAL
from pocketgraph.runtime.planning.graph_state import GraphState
from pocketgraph.runtime.planning.known_values import with_known_values

MOST_ROUNDS = 6  # writing a loop out may tell how often another one turns


def _having(ops: Collection[str]) -> Callable[[GraphState], bool]:
    """Whether the graph has one of these ops, whoever needs it; one look at the graph serves all passes."""
    return lambda state: not state.graph.ops.isdisjoint(ops)


def _has_calls(state: GraphState) -> bool:
    return not state.graph.ops.isdisjoint(FUNCTIONAL) or not state.graph.ops.isdisjoint(state.graph.functions)


def inline_functions(state: GraphState) -> None:
    from pocketgraph.runtime.planning.rewriting.function_inlining import inline_calls

    if state.take(inline_calls(state.graph, state.items, state.feeds, state.held)):
        state.find_items(reuse=False)


def eight_bits_in_floats(state: GraphState) -> None:
    from pocketgraph.runtime.eight_bit.float_rewriting import without_codes

    if state.take(without_codes(state.graph, state.held, state.items, state.feeds)):
        state.find_items()


def take_defaults(state: GraphState) -> None:
    taking = {node.name for node in state.graph if node.op == "PlaceholderWithDefault"} - state.fed_nodes
    if taking:
        state.take(state.graph.map_nodes(lambda node: _without_default(node) if node.name in taking else node))
        state.find_items()


def _without_default(node: Node) -> Node:
    """A placeholder that takes its default; the shape it declares is only what it could be fed with."""
    return Node(node.name, "Identity", node.inputs, {"T": node.attrs["dtype"]} if "dtype" in node.attrs else {})


def drop_untaken_branches(state: GraphState) -> None:
    from pocketgraph.runtime.planning.rewriting.static_branches import known_predicates, without_static_branches

    fed = frozenset(state.feeds)
    seen: set[str] = set()
    # what a branch computes may decide another inside it
    while not seen.issuperset(predicates := known_predicates(state.items, state.inferred)):
        seen.update(predicates)
        state.take(without_static_branches(state.graph, state.items, fed, predicates, state.fetches))
        state.find_items(reuse=False)
        state.infer_anew()


def _keep_effects_in_order(state: GraphState, before: Plan) -> None:
    """After a pass; ``before`` is the plan that it was given."""
    from pocketgraph.runtime.planning.rewriting.effects import with_effects_in_order

    find_after = partial(state.needed_now, before.items)
    state.take(with_effects_in_order(state.graph, before, find_after, state.held, state.conditional))


def fold_constants(state: GraphState) -> None:
    nodes, before = len(state.graph.nodes), state.plan
    known = with_known_values(state.graph, state.plan, state.conditional, state.inferred, state.fetches)
    if state.take(known):
        _keep_effects_in_order(state, before)
    if len(known.nodes) > nodes:  # nothing is known of the new ones yet
        state.infer_anew()


def remove_dropout_in_loops(state: GraphState) -> None:
    """A loop that draws no numbers any more can be unrolled."""
    state.settle()
    if any(frame.depth for frame in state.plan.frames.values()):
        remove_dropout(state)
        state.conditional.intersection_update(state.plan.items)


def remove_dropout(state: GraphState) -> None:
    from pocketgraph.runtime.planning.rewriting.noop_dropout import without_noop_dropout

    state.settle()
    before = state.plan
    if state.take(without_noop_dropout(state.graph, before, state.inferred, state.conditional)):
        _keep_effects_in_order(state, before)
    state.settle()


def unroll_loops(state: GraphState) -> None:
    """One loop that is written out may tell how often another turns."""
    state.settle()
    if not any(frame.depth for frame in state.plan.frames.values()):
        return
    from pocketgraph.runtime.unrolling.loops import unrolled

    may_chunk = "partial_unrolling" not in state.without
    for _ in range(MOST_ROUNDS):
        straight = unrolled(state.graph, state.plan, state.inferred, state.conditional, state.held, may_chunk=may_chunk)
        if not state.take(straight):
            break
        state.keep_needed()
        state.find_conditional()
        if "fold_constants" not in state.without:
            fold_constants(state)
            state.settle()


def hoist_over_splits(state: GraphState) -> None:
    from pocketgraph.runtime.planning.rewriting.split_hoisting import hoist_over_splits as with_work_before_splits

    state.settle()
    if state.take(with_work_before_splits(state.graph, state.plan, state.held)):
        state.infer_anew()
        state.plan_anew()
        state.find_conditional()


def drop_idle_waits(state: GraphState) -> None:
    state.settle()
    if not any(item.control for item in state.plan.items.values()):
        return
    from pocketgraph.runtime.planning.rewriting.idle_waits import without_idle_waits

    if state.take(without_idle_waits(state.graph, state.plan, state.conditional, state.held)):
        state.plan_anew()
        state.find_conditional()


def canonical_biases(state: GraphState) -> None:
    from pocketgraph.runtime.planning.rewriting.bias_adds import with_bias_adds

    state.settle()
    if state.take(with_bias_adds(state)):
        state.infer_anew()
        state.plan_anew()


LOOPS, BRANCHES, SCALING = _having(ENTER), _having(SWITCH), _having(ops_with("product", "quotient"))
SPLITS, QUANTIZED = _having({"Split"}), _having(CANDIDATES)
DEFAULTS = _having({"PlaceholderWithDefault"})
TRAINED = _having({"Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"})

PASSES: tuple[Pass, ...] = (
    Pass(
        "inline_functions", "functions, branches and loops of TensorFlow 2 become nodes", inline_functions, _has_calls
    ),
    Pass(
        "eight_bits_in_floats", "quantized ops become float ones that LiteRT quantizes", eight_bits_in_floats, QUANTIZED
    ),
    Pass("take_defaults", "placeholders that are not fed become their defaults", take_defaults, DEFAULTS),
    Pass("drop_untaken_branches", "branches whose predicate is known fall", drop_untaken_branches, BRANCHES),
    Pass("fold_constants", "what follows from the feeds' shapes becomes a constant", fold_constants),
    Pass("remove_dropout", "dropout that keeps everything leaves, in loops first", remove_dropout_in_loops, LOOPS),
    Pass("unroll_loops", "loops of known length are written out", unroll_loops, LOOPS),
    Pass("hoist_over_splits", "equal work on all parts of a split is done before it", hoist_over_splits, SPLITS),
    Pass("remove_dropout", "dropout that keeps everything leaves", remove_dropout, SCALING),
    Pass("drop_idle_waits", "control inputs that make no difference leave", drop_idle_waits),
    Pass("canonical_biases", "biases of trained convolutions are added by BiasAdd", canonical_biases, TRAINED),
)
BESIDES = {
    "freeze_variables": "variables that nothing assigns again become constants",
    "open_sizes": "after plans for several lengths, one is made for all",
    "resizable_programs": "the program for one length serves others, where it holds for all",
    "first_on_reference": "the first call of other sizes runs in NumPy, and a program for all is made after it",
    "partial_unrolling": "of long loops, several rounds are written out as one",
    "packed_weights": "weights that were packed for the processor are kept, and mapped the next time",
    "tiered_compilation": "large parts are compiled quickly at first, and anew when they have run often",
    "constants_ahead": "two threads pack and write large weights, or one makes what the other writes",
    "microbatches": "batches of large pictures are computed some at a time, by each thread its own",
    "direct_packing": "weights go packed to where LiteRT maps them, instead of through a model file",
}
"""Passes that are part of something else: of preparing the graph for a session, of ``unroll_loops``."""
IN_SEVERAL_CALLS = frozenset(("partial_unrolling",))
"""Passes after which a graph runs as several calls, where one executable is to do it all."""

INEXACT = frozenset(("eight_bits_in_floats",))
"""Passes that round elsewhere than the original's integer arithmetic."""

after_each: Callable[[str, GraphState], None] | None = None
"""Called with the name of each pass that changed the graph, and the state after it; tests check the graph here."""


def specialized(state: GraphState) -> GraphState:
    """Works out what follows from the types and shapes of the feeds (and from the values given), and uses it.

    Raises:
        RunError: a loop of the graph is wrong.
        MissingKernelError: an op behind a branch has no kernel.
    """
    for each in PASSES:
        if each.name in state.without or not each.applies(state):
            continue
        before = state.graph
        each.run(state)
        check_time(f"while the graph was planned ({each.name})")
        if state.graph is not before:
            state.applied[each.name] = None
            if after_each is not None:
                after_each(each.name, state)
    state.settle()
    state.conditional.intersection_update(state.plan.items)
    return state
