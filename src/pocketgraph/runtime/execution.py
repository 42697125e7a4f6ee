"""The runs of a session: a new call is looked up and planned; what lives from run to run, what bounds one, whose turn
it is.

A call that was made before takes a shorter way, through the call cache (planning/call_cache.py).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.budgets import Deadline, limits
from pocketgraph.errors import RunError
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.planning.call_key import ResolvedCall
from pocketgraph.runtime.planning.execution_plan import Execution, ExecutionPlan
from pocketgraph.runtime.planning.session_plans import SessionPlans
from pocketgraph.runtime.session_arguments import check_options
from pocketgraph.runtime.tensor_names import Fetched, before_rounds, fetched, listed

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.steps import Run
    from pocketgraph.runtime.profiling.profile import StepTrace
    from pocketgraph.runtime.run_options import RunOptions
    from pocketgraph.runtime.sandbox import Directory

FORK_WAIT = 10.0  # seconds that a fork waits for who changes a variable, or plans
STEP_LIMIT = 10_000_000  # node executions inside loops in one run: half a minute, where real models take milliseconds


_living: weakref.WeakSet[Running] = weakref.WeakSet()


class Running:
    """The runs of one session.

    Args:
        plans: what is run.
        state: values that live as long as the session: variables, tables, random generators.
        step_limit, memory_limit, files_dir, inter_op_threads, seed: as for Session.

    Attributes:
        plans, state: as given.
    """

    def __init__(
        self,
        plans: SessionPlans,
        state: dict[str, Any],
        *,
        step_limit: int = STEP_LIMIT,
        memory_limit: int | None = None,
        files_dir: str | os.PathLike[str] | None = None,
        inter_op_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.plans = plans
        self._memory_limit = memory_limit
        files: Directory | None = None
        if files_dir is not None:
            from pocketgraph.runtime.sandbox import Directory

            files = Directory(files_dir)
        self._inter_op_threads = inter_op_threads
        self.state = state
        self._new_run = _NewRuns(state, step_limit, memory_limit, files, seed)
        self.begin_anew()
        _living.add(self)

    def begin_anew(self) -> None:
        """Gives turns out anew: in a forked process nobody has one."""
        count = self._inter_op_threads
        self._turn = None if count is None else threading.BoundedSemaphore(count)

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
                deadline = Deadline(milliseconds)
                with limits(deadline):
                    return self._plan_and_run(again, fetches, feeds, targets, trace, deadline)
        return self._plan_and_run(again, fetches, feeds, targets, trace)

    def _plan_and_run(
        self,
        again: Callable[..., list[Array]],
        fetches: Any,
        feeds: Mapping[Any, Any],
        targets: Any,
        trace: StepTrace | None,
        deadline: Deadline | None = None,
    ) -> list[Array]:
        wanted, goals, calls = listed(fetches), listed(targets), self.plans.calls
        if not wanted and not goals:
            raise RunError("Must specify at least one target to fetch or execute")
        since = calls.forgotten
        known = calls.fetched.get(wanted)
        if known is not None:
            return self._with_operations(again, known, feeds, goals, trace, deadline)
        if trace is None and deadline is None:
            of_any_sizes = calls.any_sizes.get((wanted, goals, *feeds))
            values = list(feeds.values())
            served = of_any_sizes.plan(values) if of_any_sizes is not None else None
            if of_any_sizes is not None and served is not None:
                execution = self._checked(self.execution(served), wanted, feeds, values, goals)
                if of_any_sizes.is_repeated:
                    calls.remember(fetches, feeds, targets, execution, since)
                return execution(values)
            earlier = self.plans.earlier(wanted, feeds, goals)
            if earlier is not None:
                prepared, values = earlier
                execution = self._checked(self.execution(prepared), wanted, feeds, values, goals)
                is_same = all(given is value for given, value in zip(feeds.values(), values, strict=True))
                if is_same:
                    calls.remember(fetches, feeds, targets, execution, since)
                    calls.note_any_sizes(wanted, feeds, goals, prepared.any_sizes)
                return execution(values)
        from pocketgraph.runtime.resolved_call import feed_specs, resolve_call

        graph = self.plans.graph
        outputs = calls.outputs.get(wanted)
        if outputs is None:
            found = fetched(graph, wanted)
            if found.places:
                calls.note_fetched(wanted, found)
                return self._with_operations(again, found, feeds, goals, trace, deadline)
        names = tuple(feeds)
        specs = calls.specs.get(names)
        if specs is None:
            specs = feed_specs(graph, names)
            calls.note_specs(names, specs)
        call = resolve_call(graph, wanted, feeds, goals, outputs, specs)
        if outputs is None:
            calls.note_outputs(wanted, call.key.fetches)
        prepared = self.plans.prepare(call)
        if trace is not None or deadline is not None:
            if trace is not None and (prepared.executables or prepared.once_with is not None):
                # What came from the cache does not know its operations, so it is compiled again, once.
                prepared = self.plans.prepare(call, traced=True)
            sizes = self.plans.fed_sizes(wanted, tuple(feeds), call.values, goals)
            if sizes is not None:
                sizes.check(call.values)
            results = self.watched(prepared, call, trace, deadline)
            if trace is not None:
                trace.rename(lambda name: name if name in graph.nodes else before_rounds(name)[0])
            return results
        execution = self._checked(self.execution(prepared), wanted, feeds, call.values, goals)
        changed = [name for (name, given), value in zip(feeds.items(), call.values, strict=True) if given is not value]
        if changed:
            self.plans.keep_declared(feeds)
        else:
            calls.remember(fetches, feeds, targets, execution, since)
            calls.note_any_sizes(wanted, feeds, goals, prepared.any_sizes)
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
            else self._plan_and_run(again, found.tensors, feeds, targets, trace, deadline)
        )
        for place in found.places:
            results.insert(place, None)
        return results

    def execution(self, plan: ExecutionPlan) -> Execution:
        """The quickest way to run what was plan."""
        directly, ran = self._directly(plan), plan.ran
        if ran is None:
            return self._in_turn(directly)

        def timed(values: list[Any]) -> list[Array]:
            began = time.thread_time()  # other programs, which also take the processor, decide nothing
            results = directly(values)
            ran(time.thread_time() - began)
            return results

        return self._in_turn(timed)

    def watched(
        self, plan: ExecutionPlan, call: ResolvedCall, trace: StepTrace | None, deadline: Deadline | None
    ) -> list[Array]:
        """Runs a call with node times, with a deadline, or both.

        Raises:
            DeadlineError: it took longer; the node that was reached is named.
        """
        program = plan.program

        def watched(given: list[Any]) -> list[Array]:
            if deadline is not None:
                deadline.check("before the first node")
            timed: Any = getattr(plan.whole, "watched", None)
            results: list[Array]
            if program is None and trace is not None and timed is not None:
                results = timed([given[place] for place in plan.whole_inputs], trace)
            elif program is None:
                results = self._directly(plan)(given)
            else:
                if trace is not None:
                    trace.begin()
                results = program.run(given, self._new_run(trace, deadline))
                if trace is not None:
                    trace.finish()
            if plan.once_with is not None and plan.ran is not None:
                plan.ran(0.0)
            if deadline is not None:
                key = call.key
                deadline.check(f"node '{key.fetches[-1].node if key.fetches else key.targets[-1]}'")
            return results

        return self._in_turn(watched)(call.values)

    def _checked(
        self,
        execution: Execution,
        fetches: tuple[str, ...],
        feeds: Mapping[Any, Any],
        values: list[Any],
        targets: tuple[str, ...],
    ) -> Execution:
        """The execution, before which the sizes that are fed are checked, where there are such."""
        sizes = self.plans.fed_sizes(fetches, tuple(feeds), values, targets)
        if sizes is None:
            return execution

        def checked(values: list[Any]) -> list[Array]:
            sizes.check(values)
            return execution(values)

        return checked

    def _in_turn(self, execution: Execution) -> Execution:
        """The execution, waiting while as many as may run are running."""
        turn = self._turn
        if turn is None:
            return execution

        def waiting(values: list[Any]) -> list[Array]:
            with turn:
                return execution(values)

        return waiting

    def _directly(self, plan: ExecutionPlan) -> Execution:
        found = self._of_plan(plan)
        return found if plan.once_with is None else _once(found, plan.once_with)

    def _of_plan(self, plan: ExecutionPlan) -> Execution:
        if plan.whole is not None and self._memory_limit is None:
            return plan.directly()
        program, new_run = plan.program, self._new_run  # without this object, whose plans' calls hold what runs them
        if program is None:
            raise RunError("a model file that runs as a whole keeps to no memory_limit", hint="leave memory_limit out")
        return lambda values: program.run(values, new_run())


class _NewRuns:
    """What each run of a session begins with.

    Args:
        state, step_limit, memory_limit, seed: as for Running.
        files: the folder that ops may read and write in.
    """

    def __init__(
        self,
        state: dict[str, Any],
        step_limit: int,
        memory_limit: int | None,
        files: Directory | None,
        seed: int | None,
    ) -> None:
        self._state = state
        self._step_limit = step_limit
        self._memory_limit = memory_limit
        self._files = files
        self._rng: Any = _Unseeded() if seed is None else np.random.default_rng(seed)

    def __call__(self, trace: StepTrace | None = None, deadline: Deadline | None = None) -> Run:
        from pocketgraph.runtime.engines.steps import Run

        run = Run(self._state, self._rng, self._step_limit, trace=trace, files=self._files, deadline=deadline)
        if self._memory_limit is not None:
            from pocketgraph.runtime.engines.live_bytes import LiveBytes

            run.ledger = LiveBytes(self._memory_limit)
        return run


def _once(execution: Execution, threads: int) -> Execution:
    """An execution right after planning, whose objects the collector would look through."""
    from pocketgraph.kernels import blas_threads

    def run(values: list[Any]) -> list[Array]:
        with blas_threads.at_most(threads), collector_paused():
            return execution(values)

    return run


class _Unseeded:
    """A random generator that is made when it is first used: importing numpy.random is a tenth of a warm start."""

    _generator: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        if self._generator is None:  # of two threads each may make one: a lock would be held while that is imported
            self._generator = np.random.default_rng()
        return getattr(self._generator, name)


_at_fork = threading.local()


def _sessions() -> list[Running]:
    while True:
        with contextlib.suppress(RuntimeError):  # another thread has made one meanwhile
            return [*_living]


def _before_fork() -> None:
    """Waits until nobody plans, or changes what lives in sessions: a forked process has neither who could end that, nor
    the value that was taken out to be changed, and never imports what another thread was importing for a plan."""
    living = _sessions()
    found = {id(each): each for running in living for each in tuple(running.state.values()) if hasattr(each, "lock")}
    locks = [found[key].lock for key in sorted(found)]  # the order in which who takes several takes them
    locks += [running.plans.lock for running in sorted(living, key=id)]  # which who changes a variable may wait for
    _at_fork.held = [lock for lock in locks if lock.acquire(timeout=FORK_WAIT)]


def _after_fork() -> None:
    for lock in _at_fork.held:
        lock.release()
    del _at_fork.held


def _after_fork_in_child() -> None:
    _after_fork()
    for running in _sessions():
        running.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
