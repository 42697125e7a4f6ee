"""The plans of one session: seen before in this process, found from an earlier one, or made."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pocketgraph.budgets import limits
from pocketgraph.errors import GraphError, RunError
from pocketgraph.graph import DType, Graph, canonical, node_name
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.native.fork_safety import keep
from pocketgraph.runtime.feeding.feeds import FeedSpec, is_certain, is_switch, may_be_sizes
from pocketgraph.runtime.permissions import check_may_run
from pocketgraph.runtime.planning.call_cache import CallCache, find, plan_for
from pocketgraph.runtime.planning.call_key import CallKey, ResolvedCall, Sized
from pocketgraph.runtime.planning.execution_plan import NO_GRAPH, TIERS, ExecutionPlan, Request
from pocketgraph.runtime.planning.session_graph import SessionGraph
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls, may_be_open
from pocketgraph.runtime.tensor_names import spelled

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.needed import Item
    from pocketgraph.runtime.feeding.fed_sizes import FedSizes


_living: weakref.WeakSet[SessionPlans] = weakref.WeakSet()


class SessionPlans:
    """The plans of one session, and the graph that they are of; safe for several threads.

    Args:
        graph: the graph, or the path of the file to read it from when it is first needed.
        options: what is asked of each plan, whatever the call.
        allowed: the ops that may touch files or run code.
        memory_limit: bytes that a run's tensors may take; with one, plans know each part's operations.
        state: the session's variables and tables.

    Attributes:
        calls: what this session has run and planned.
        lock: is held while plans are made or let go.
        checked: the parts that are compared with the reference engine.
    """

    def __init__(
        self,
        graph: Graph | str,
        options: Request,
        allowed: frozenset[str],
        memory_limit: int | None,
        state: Mapping[str, Any],
    ) -> None:
        self.checked: list[Any] = []
        self._options = options.replace(planner=plan_for, checked=self.checked)
        self.calls = CallCache()
        self.lock = threading.RLock()
        permits = " exact" * options.exact + " strict" * options.strict
        permits += "".join(f" {op}" for op in sorted(allowed))
        permits += "".join(f" without {name}" for name in sorted(options.without - {TIERS}))
        self._source = SessionGraph(graph, options.engine, options.cache_dir, permits)
        self._allowed = allowed
        self._by_steps = memory_limit is not None
        self._memory_limit = memory_limit
        self._state = state
        self._of_values: set[CallKey] = set()  # the plans that hold values of variables
        self._files: dict[str, Any] = {}  # that hold variables of their own, for all plans together
        self._is_open = True
        self._declared: set[str] = set()
        self._fed_sizes: dict[tuple[tuple[str, ...], ...], FedSizes | None] = {}
        self._sizes: dict[CallKey, SizedCalls] = {}
        self._last_needed: tuple[Any, dict[str, Item]] | None = None  # of other sizes it is the same
        _living.add(self)

    @property
    def graph(self) -> Graph:
        """The graph; reads the file when that was not done yet.

        Raises:
            FormatError: the file is no model.
        """
        return self._source.graph

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be planned any more."""
        return not self._is_open

    def check_open(self) -> None:
        """Raises:
        RunError: the session is closed.
        """
        if not self._is_open:
            raise RunError("Attempted to use a closed Session", hint="make a new one")

    def begin_anew(self) -> None:
        """In a forked process: plans are made anew, for the threads that held and ran the old ones are not here.

        The old ones are not freed: that would wait for threads of native code.
        """
        self.lock = threading.RLock()
        self._source.lock = threading.Lock()
        keep([dict(self.calls.plans), self._sizes, self._files])
        self._files = {}
        self._sizes = {}
        self.calls.plans.clear()
        self.calls.forget()

    def close(self) -> None:
        """Frees all plans."""
        with self.lock:
            self._is_open = False
            had_several = len(self.calls.plans) > 1
            self.calls.close()
            self._files.clear()
            self._sizes = {}
        if had_several:  # of 64 the C library would keep hundreds of megabytes; what one frees serves the next session
            from pocketgraph.runtime.memory_trim import trim_memory

            trim_memory()

    def prepare(
        self, call: ResolvedCall, traced: bool = False, described: bool = False, measure: bool = False
    ) -> ExecutionPlan:
        """The plan of a call; a new one is kept for the next time. With ``measure`` it is a new one.

        Nothing runs by what is only described: its parts are closed, which other engines may have opened.
        """
        key = call.key._replace(is_traced=traced or self._by_steps, is_described=described)
        found = self.calls.plans.get(key)
        if found is not None and not measure:
            return found
        with self.lock:
            found = self.calls.plans.get(key)
            if found is None or measure:
                found = self._planned(call._replace(key=key), measure)
                if described:
                    for executable in found.executables:
                        executable.close()
        return found

    @collector_paused()
    def _planned(self, call: ResolvedCall, measure: bool) -> ExecutionPlan:
        """A plan for the call's shapes, or that with open sizes where there have been many."""
        self.check_open()
        plan = self._for_all_sizes(call) if not measure else None
        if plan is not None:
            return plan
        began = time.thread_time()
        plan = self._made(call, measure)
        took = time.thread_time() - began
        self._sized(call.key).note_planned(took)
        self._note_compiled(call.key, plan, took)
        return plan

    def _for_all_sizes(self, call: ResolvedCall) -> ExecutionPlan | None:
        """What runs a call whose sizes are not planned for; None where they are to be."""
        key = call.key
        request = self._request(self.graph, key, call.switches, self._source.key() if self._may_resize(key) else "")
        resized = self._resized(call, request)
        if resized is not None:
            return self.calls.add_plan(key, resized)
        if not self._runs_open(key):
            return None
        opened = self._sized(key).opened(key)
        plan = self.calls.plans.get(opened)
        if plan is None and may_be_open(self.graph, self._needed(key)):
            began = time.thread_time()
            plan = self._made(call._replace(key=opened))
            self._sized(key).note(key, time.thread_time() - began)
        if plan is not None:
            return plan.timed(_weakly(self._ran_open, key))
        self._sized(key).refused = True
        return None

    def _sized(self, key: CallKey) -> SizedCalls:
        """What is known of calls like this one, whatever their sizes."""
        ranks = key.of_ranks
        return self._sizes.get(ranks) or self._sizes.setdefault(ranks, SizedCalls(key))

    def _resized(self, call: ResolvedCall, request: Request) -> ExecutionPlan | None:
        """The plan for other sizes, run with these; None where there is none that holds for all."""
        key = call.key
        if not self._may_resize(key):
            return None
        with limits(memory=self._memory_limit):
            ran_once = _weakly(self._ran_once, call._replace(values=[]))
            return self._sized(key).plan_for_all(request, _weakly(self._plan_its_own), ran_once)

    def _may_resize(self, key: CallKey) -> bool:
        """Whether a call's sizes may be told to a program that was made for others."""
        if (
            self._options.engine is not None
            or self._options.check == "always"
            or "resizable_programs" in self._options.without
        ):
            return False
        return not (key.is_traced or key.is_described or key.targets or self._of_values or not key.feeds)

    def _note_compiled(self, key: CallKey, plan: ExecutionPlan, seconds: float) -> None:
        """Notes a plan that might serve other sizes."""
        from pocketgraph.litert.executable import Executable

        is_one = plan.whole is None or isinstance(plan.whole, Executable)
        if plan.inferred is None or not self._may_resize(key) or not is_one:
            plan.inferred = None
            return
        declared = [FeedSpec.of(self.graph, endpoint, "").shape for endpoint, _ in key.feeds]
        if not all(shape.is_known for shape in declared):
            self._sized(key).note_compiled(key, plan, seconds, self.graph, self._needed(key))

    def _needed(self, key: CallKey) -> dict[str, Item]:
        from pocketgraph.runtime.engines.needed import needed

        wanted = frozenset(dict(key.feeds)), key.fetches, key.targets
        if self._last_needed is None or self._last_needed[0] != wanted:
            self._last_needed = wanted, needed(self.graph, *wanted)
        return self._last_needed[1]

    def _made(self, call: ResolvedCall, measure: bool = False) -> ExecutionPlan:
        from pocketgraph.runtime.engines.functions import FunctionLibrary

        key = call.key
        items = self._needed(key)
        library = FunctionLibrary(self.graph)
        nodes = list(library.with_bodies(item.node for item in items.values()))
        check_may_run(nodes, library, self._allowed)
        may_freeze = self._options.engine != "reference" and "freeze_variables" not in self._options.without
        state = self._state if may_freeze else {}
        graph, holds_values = self.graph, False
        if state or not ops_with("reference_variable").isdisjoint(graph.ops):
            from pocketgraph.runtime.planning.session_variables import with_session_variables

            graph, items, holds_values = with_session_variables(graph, items, nodes, key, state, _weakly(self.let_go))
        if holds_values:
            self._of_values.add(key)
        is_kept = (
            not (key.is_traced and self._options.engine in (None, "litert")) and self._options.engine != "reference"
        )
        digest = self._source.key() if is_kept and key not in self._of_values else ""
        request = self._request(graph, key, call.switches, digest).replace(measure=measure)
        if digest:
            self._source.hash_when_idle()
        with limits(memory=self._memory_limit):
            return self.calls.add_plan(key, plan_for(request, lambda: graph, items))

    def _runs_open(self, key: CallKey) -> bool:
        """Whether a call is to be run with open sizes, as far as its key tells."""
        may_be = self._options.engine in (None, "auto") and "open_sizes" not in self._options.without
        return may_be and not (key.is_traced or key.is_described) and self._sized(key).is_due(key)

    def _ran_open(self, key: CallKey, seconds: float) -> None:
        with self.lock:
            if self._sized(key).note_run(key, seconds):
                self.calls.forget()

    def _ran_once(self, call: ResolvedCall, seconds: float) -> None:
        """Lets go of a plan that served one run. What serves all sizes is made when the process is idle."""
        from pocketgraph.runtime.certificates import check_schedule

        with self.lock:
            self.calls.drop([call.key])
        microseconds = self._sized(call.key).price * 1e6
        check_schedule.add(partial(_get_ready, weakref.ref(self), call), microseconds)

    def get_ready_for_all(self, call: ResolvedCall) -> None:
        """Makes what serves a call's sizes, and all others, if that was not done yet."""
        from pocketgraph.runtime.background import at_work

        with at_work(), self.lock, collector_paused():
            resizable = self._sized(call.key).resizable
            # Another call may have come meanwhile; what it opened may be at its first run, and not yet be trusted.
            if self._is_open and resizable is not None and resizable.is_untried:
                resizable.answer_no_more()
                self._for_all_sizes(call)

    def _plan_its_own(self, key: CallKey) -> None:
        resizable = self._sized(key).resizable
        if resizable is not None:
            with self.lock:
                resizable.wants_its_own(key)
                self.calls.drop([key])

    def _request(self, graph: Graph, key: CallKey, values: Mapping[str, Array], digest: str) -> Request:
        return self._options.replace(graph=graph, call=key, values=values, key=digest, files=self._files)

    def let_go(self) -> None:
        """Forgets the plans that hold values of variables, one of which has changed, or is another one now."""
        with self.lock:
            self.calls.drop(self._of_values)
            self._of_values.clear()

    def earlier(
        self, fetches: Sequence[str], feeds: Mapping[Any, Any], targets: Sequence[str]
    ) -> tuple[ExecutionPlan, list[Array]] | None:
        """What an earlier process prepared for this file, these names and these shapes, if anything; and the values.

        This way neither the graph is read nor anything is planned. What a number, a list or an array of another type
        stands for, the graph must say, or have said to an earlier process.
        """
        if self._source.is_read or self._options.engine == "reference" or self._by_steps:
            return None
        labels = {canonical(text): text for text in map(spelled, feeds)}
        wanted = [canonical(name) for name in fetches]
        if len(labels) < len(feeds) or len(set(wanted)) < len(wanted):
            return None
        values = dict(zip(labels, feeds.values(), strict=True))
        with self.lock, collector_paused():
            self.check_open()
            found = self._found(values, wanted, targets) if all(map(is_certain, values.values())) else None
            if found is None:
                from pocketgraph.runtime.planning import declared_feeds

                converted = declared_feeds.converted(self._source.key(), self._options.cache_dir, values, labels)
                if converted is not None:
                    found, values = self._found(converted, wanted, targets), converted
        return None if found is None else (found, list(values.values()))

    def _found(
        self, arrays: Mapping[str, Array], wanted: Sequence[str], targets: Sequence[str]
    ) -> ExecutionPlan | None:
        """What was prepared for arrays of these types and shapes, by this session or an earlier process."""
        try:
            feeds: dict[Endpoint, Sized] = {
                Endpoint.of(name): (DType.of_numpy(array.dtype), array.shape) for name, array in arrays.items()
            }
        except GraphError:
            return None  # no tensor has such a type; whoever looks at the graph will say so
        switches = {name: array for name, array in arrays.items() if is_switch(array)}
        nodes = [node_name(name) for name in targets]
        key = CallKey.of(feeds, [Endpoint.of(name) for name in wanted], nodes, switches)
        plan = self.calls.plans.get(key)
        if plan is None and not self._runs_open(key):
            began = time.thread_time()
            request = self._request(NO_GRAPH, key, switches, self._source.key())
            plan = find(request, lambda: self.graph)
            if plan is None and not self._sized(key).compiled:
                plan = self._resized(ResolvedCall(key, switches, []), request)
                return None if plan is None else self.calls.add_plan(key, plan)
            if plan is not None:
                self.calls.add_plan(key, plan)
                self._sized(key).note_planned(time.thread_time() - began)
        return plan

    def fed_sizes(self, fetches: Sequence[str], feeds: Any, values: Any, targets: Sequence[str]) -> FedSizes | None:
        """What checks the sizes that reshapes are fed in calls like this one; None where there are no such sizes."""
        if self._options.engine == "reference" or not any(map(may_be_sizes, values)):
            return None
        names = tuple(map(canonical, map(spelled, feeds)))
        key = tuple(map(canonical, fetches)), names, tuple(map(node_name, targets))
        if key not in self._fed_sizes:
            from pocketgraph.runtime.feeding.fed_sizes import NotedCalls

            may_be = [name for name, value in zip(names, values, strict=True) if may_be_sizes(value)]
            noted = NotedCalls(key, may_be, self._source.key(), self._options.cache_dir)
            has_none = not self._source.is_read and noted.have_no_sizes
            self._fed_sizes[key] = None if has_none else noted.sizes(self.graph)
        return self._fed_sizes[key]

    def keep_declared(self, feeds: Iterable[Any]) -> None:
        """Notes for later processes what the graph declares of these tensors, whose values had to be converted."""
        names = {spelled(feed) for feed in feeds} - self._declared
        if not names or self._options.engine == "reference" or self._by_steps:
            return
        from pocketgraph.runtime.planning import declared_feeds

        self._declared |= names
        specs = {canonical(name): FeedSpec.of(self.graph, Endpoint.of(canonical(name)), name) for name in names}
        declared_feeds.keep(self._source.key(), self._options.cache_dir, specs)


def _weakly(method: Callable[..., None], *arguments: Any) -> Callable[..., None]:
    """The method with these arguments first, for what its object holds: nothing to do once that is gone."""
    held = weakref.WeakMethod(method)

    def call(*more: Any) -> None:
        living = held()
        if living is not None:
            living(*arguments, *more)

    return call


def _get_ready(plans: weakref.ref[SessionPlans], call: ResolvedCall) -> None:
    living = plans()
    if living is not None:
        living.get_ready_for_all(call)


def _begin_anew() -> None:
    for plans in tuple(_living):
        plans.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
