"""How what was prepared is run: what lives from run to run, what bounds one run, whose turn it is."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pocketgraph.budgets import Deadline
    from pocketgraph.runtime.engines.steps import Run
    from pocketgraph.runtime.planning.execution_plan import Execution, ExecutionPlan
    from pocketgraph.runtime.profiling.profile import StepTrace
    from pocketgraph.runtime.resolved_call import Array, ResolvedCall
    from pocketgraph.runtime.sandbox import Directory

STEP_LIMIT = 10_000_000  # node executions inside loops in one run: half a minute, where real models take milliseconds


class Running:
    """The runs of one session.

    Args:
        step_limit, memory_limit, files_dir, inter_op_threads, seed: as for Session.

    Attributes:
        state: values that live as long as the session: variables, tables, random generators.
        memory_limit: bytes that the tensors of one run may take.
    """

    def __init__(
        self,
        step_limit: int,
        memory_limit: int | None,
        files_dir: str | os.PathLike[str] | None,
        inter_op_threads: int | None,
        seed: int | None,
    ) -> None:
        self.state: dict[str, Any] = {}
        self.memory_limit = memory_limit
        self._step_limit = step_limit
        self._files: Directory | None = None
        if files_dir is not None:
            from pocketgraph.runtime.sandbox import Directory

            self._files = Directory(files_dir)
        self._turn = None if inter_op_threads is None else threading.BoundedSemaphore(inter_op_threads)
        self._rng: Any = Unseeded() if seed is None else np.random.default_rng(seed)

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
                deadline.check(f"node '{call.outputs[-1].node if call.outputs else call.targets[-1]}'")
            return results

        return self._in_turn(watched)(call.values)

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
        if plan.whole is not None and self.memory_limit is None:
            return plan.directly()
        program = plan.program
        assert program is not None
        return lambda values: program.run(values, self._new_run())

    def _new_run(self, trace: StepTrace | None = None, deadline: Deadline | None = None) -> Run:
        from pocketgraph.runtime.engines.steps import Run

        run = Run(self.state, self._rng, self._step_limit, trace=trace, files=self._files, deadline=deadline)
        if self.memory_limit is not None:
            from pocketgraph.runtime.engines.live_bytes import LiveBytes

            run.ledger = LiveBytes(self.memory_limit)
        return run


def _once(execution: Execution, threads: int) -> Execution:
    """An execution right after planning, whose objects the collector would look through."""
    from pocketgraph.graph.collector import collector_paused
    from pocketgraph.kernels import blas_threads

    def run(values: list[Any]) -> list[Array]:
        with blas_threads.at_most(threads), collector_paused():
            return execution(values)

    return run


class Unseeded:
    """A random generator that is made when it is first used: importing numpy.random is a tenth of a warm start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generator: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._generator is None:
                self._generator = np.random.default_rng()
        return getattr(self._generator, name)
