"""Calls that a session does not know in this form: names are looked up, a plan is found or made, and both are kept.

A call that was made before takes a shorter way, through the call cache (planning/call_cache.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import RunError
from pocketgraph.runtime.execution import Running
from pocketgraph.runtime.planning.session_plans import SessionPlans
from pocketgraph.runtime.resolved_call import Array, resolve_call
from pocketgraph.runtime.session_arguments import check_options
from pocketgraph.runtime.tensor_names import Fetched, before_rounds, fetched, listed

if TYPE_CHECKING:
    from pocketgraph.budgets import Deadline
    from pocketgraph.runtime.profiling.profile import StepTrace
    from pocketgraph.runtime.run_options import RunOptions


class NewCalls:
    """The new calls of one session: of names, types or shapes not seen before, of values that need converting, traced
    ones, and those with a deadline."""

    def __init__(self, plans: SessionPlans, running: Running) -> None:
        self._plans = plans
        self._running = running

    def run(
        self,
        again: Callable[..., list[Array]],
        fetches: Any,
        feeds: Mapping[Any, Any],
        targets: Any,
        trace: StepTrace | None,
        options: RunOptions | None,
    ) -> list[Array]:
        """Runs a call; arguments, results and errors are those of ``Session.run``, which is ``again``."""
        if options is not None:
            check_options(options)
            trace, milliseconds = options.wanted(trace), options.timeout_in_ms
            if milliseconds > 0:
                from pocketgraph.budgets import Deadline, limits

                deadline = Deadline(milliseconds)
                with limits(deadline):
                    return self._planned(again, fetches, feeds, targets, trace, deadline)
        return self._planned(again, fetches, feeds, targets, trace)

    def _planned(
        self,
        again: Callable[..., list[Array]],
        fetches: Any,
        feeds: Mapping[Any, Any],
        targets: Any,
        trace: StepTrace | None,
        deadline: Deadline | None = None,
    ) -> list[Array]:
        wanted, goals, calls = listed(fetches), listed(targets), self._plans.calls
        if not wanted and not goals:
            raise RunError("Must specify at least one target to fetch or execute")
        known = calls.fetched.get(wanted)
        if known is not None:
            return self._with_operations(again, known, feeds, goals, trace, deadline)
        if trace is None and deadline is None:
            earlier = self._plans.earlier(wanted, feeds, goals)
            if earlier is not None:
                prepared, values = earlier
                execution = self._running.execution(prepared)
                is_same = all(given is value for given, value in zip(feeds.values(), values, strict=True))
                if is_same:
                    calls.remember(fetches, feeds, targets, execution)
                return execution(values)
        graph = self._plans.graph
        outputs = calls.outputs.get(wanted)
        if outputs is None:
            found = fetched(graph, wanted)
            if found.places:
                calls.note_fetched(wanted, found)
                return self._with_operations(again, found, feeds, goals, trace, deadline)
        call = resolve_call(graph, wanted, feeds, goals, outputs)
        if outputs is None:
            calls.note_outputs(wanted, call.outputs)
        prepared = self._plans.prepare(call)
        if trace is not None or deadline is not None:
            if trace is not None and (prepared.executables or prepared.once_with is not None):
                # What came from the cache does not know its operations, so it is compiled again, once.
                prepared = self._plans.prepare(call, traced=True)
            results = self._running.watched(prepared, call, trace, deadline)
            if trace is not None:
                trace.rename(lambda name: name if name in graph.nodes else before_rounds(name)[0])
            return results
        execution = self._running.execution(prepared)
        changed = [name for (name, given), value in zip(feeds.items(), call.values, strict=True) if given is not value]
        if changed:
            self._plans.keep_declared(feeds)
        else:
            calls.remember(fetches, feeds, targets, execution)
        return execution(call.values)

    def _with_operations(
        self,
        again: Callable[..., list[Array]],
        found: Fetched,
        feeds: Mapping[Any, Any],
        goals: tuple[str, ...],
        trace: StepTrace | None,
        deadline: Deadline | None,
    ) -> list[Array]:
        """A run some of whose fetches are operations without outputs."""
        targets = (*goals, *found.operations)
        is_plain = trace is None and deadline is None
        results: list[Any] = (
            again(found.tensors, feeds, targets=targets)
            if is_plain
            else self._planned(again, found.tensors, feeds, targets, trace, deadline)
        )
        for place in found.places:
            results.insert(place, None)
        return results
