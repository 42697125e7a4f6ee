"""What the reference engine executes: straight-line steps over numbered slots, and the loops around them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pocketgraph.graph import Tensor
from pocketgraph.graph.record import Record
from pocketgraph.litert.cost_model import WRITTEN_OUT_AFTER, WRITTEN_OUT_FROM
from pocketgraph.runtime.engines.step_codegen import MOST_STEPS, StepCodegen
from pocketgraph.runtime.engines.steps import DEAD, RUN, Run, Step, execute, execute_traced, place, raise_failure


class StepList(tuple[Step, ...]):
    """Steps that belong together, in order; they are written out as code once they have run often."""

    runs = 0
    code: StepCodegen | None = None
    may_be_written_out = True

    def execute(self, values: list[Any]) -> None:
        """As ``execute``, with the same errors."""
        code = self.code
        if code is None:
            if not self.may_be_written_out:
                execute(self, values)
                return
            self.runs += 1
            self.may_be_written_out = WRITTEN_OUT_FROM <= len(self) <= MOST_STEPS
            if self.runs <= WRITTEN_OUT_AFTER or not self.may_be_written_out:
                execute(self, values)
                return
            code = self.code = StepCodegen(tuple(self), DEAD)  # which does not hold this list
        try:
            code.run(values)
        except Exception as error:
            step = code.failed_at(error.__traceback__, values)
            if step is None:
                raise
            raise_failure(step, values, error)


class Region:
    """Steps that share one set of slots, with the constants they start from.

    Attributes:
        size: how many slots.
        constants: (slot, tensor) of each constant; they are read when the region first runs.
    """

    def __init__(self, size: int, constants: list[tuple[int, Tensor]]) -> None:
        self.size = size
        self.constants = constants
        self._base: list[Any] | None = None
        self._lock = threading.Lock()

    def fresh(self, run: Run) -> list[Any]:
        """A set of slots for one execution."""
        if self._base is None:
            with self._lock:
                base: list[Any] = [None] * self.size
                for slot, tensor in self.constants:
                    base[slot] = tensor.numpy()
                self._base = base
        values = self._base.copy()
        values[RUN] = run
        return values


def take(steps: Sequence[Step], values: list[Any], run: Run) -> None:
    """Executes the steps, with times when the run wants them, one by one when it has a deadline."""
    if run.deadline is None:
        _take(steps, values, run)
        return
    for step in steps:
        _take((step,), values, run)
        run.deadline.check(place(step))


def _take(steps: Sequence[Step], values: list[Any], run: Run) -> None:
    if run.ledger is not None:
        from pocketgraph.runtime.engines.memory_limit import execute_within

        execute_within(run.ledger, steps, values, run.trace)
    elif run.trace is None:
        if type(steps) is StepList:
            steps.execute(values)
        else:
            execute(steps, values)
    else:
        execute_traced(steps, values, run.trace)


def executor(steps: Sequence[Step], run: Run) -> Callable[[list[Any]], None]:
    """What takes the steps, again and again in one run: what the run wants besides is asked for once."""
    if type(steps) is StepList and run.deadline is None and run.ledger is None and run.trace is None:
        return steps.execute
    return lambda values: take(steps, values, run)


class LoopRounds(Record):
    """The steps of a region; of a loop's, by when they are taken.

    Attributes:
        begin: once, before the first round.
        head: in every round, and once more when the condition has become false.
        first: once, in the first round whose condition is true.
        body: in every round whose condition is true.
        final: when it has become false.
    """

    begin: tuple[Step, ...]
    head: tuple[Step, ...]
    first: tuple[Step, ...]
    body: tuple[Step, ...]
    final: tuple[Step, ...]


class LoopRegion:
    """A TF1 loop as one call: the entering values in, the leaving values out.

    Attributes:
        region: the slots of one iteration.
        enters: the slots of the entering values.
        heads: (slot, slot of its first value, slot of its next value) of each loop variable.
        exits: the slots of the leaving values.
        condition: the slot of the loop condition, when all loop variables hang on it alone. None: every step is in
            ``steps.head``, guarded by the liveness of its inputs, and the loop ends when no variable is live.
        steps: what is done, by when.
        name: the frame's name, for errors.
    """

    traces_itself = True

    def __init__(
        self,
        name: str,
        region: Region,
        enters: tuple[int, ...],
        heads: tuple[tuple[int, int, int], ...],
        exits: tuple[int, ...],
        condition: int | None,
        steps: LoopRounds,
    ) -> None:
        self.name = name
        self.region = region
        self.enters = enters
        self.heads = heads
        self.exits = exits
        self.condition = condition
        self.steps = steps
        self.head, self.body = steps.head, steps.body
        self.cost = 1 + len(self.head) + len(self.body)

    def __call__(self, run: Run, *entering: Any) -> tuple[Any, ...]:
        values = self.region.fresh(run)
        for slot, value in zip(self.enters, entering, strict=True):
            values[slot] = value
        for slot, first, _ in self.heads:
            values[slot] = values[first]
        return self._while(run, values) if self.condition is not None else self._until_dead(run, values)

    def _while(self, run: Run, values: list[Any]) -> tuple[Any, ...]:
        condition = self.condition
        assert condition is not None
        head, body = executor(self.head, run), executor(self.body, run)
        variables = [slot for slot, _, _ in self.heads]
        sources = [slot for _, _, slot in self.heads]
        take(self.steps.begin, values, run)
        is_first = bool(self.steps.first)
        while True:
            run.spend(self.cost, self.name)
            head(values)
            if not values[condition]:
                break
            if is_first:
                take(self.steps.first, values, run)
                is_first = False
            body(values)
            following = [values[slot] for slot in sources]
            for slot, value in zip(variables, following, strict=True):
                values[slot] = value
        take(self.steps.final, values, run)
        return tuple(values[slot] for slot in self.exits)

    def _until_dead(self, run: Run, values: list[Any]) -> tuple[Any, ...]:
        leaving: list[Any] = [DEAD] * len(self.exits)
        while True:
            run.spend(self.cost, self.name)
            take(self.head, values, run)
            for index, slot in enumerate(self.exits):
                if values[slot] is not DEAD:
                    leaving[index] = values[slot]
            following = [values[slot] for _, _, slot in self.heads]
            if all(value is DEAD for value in following):
                return tuple(leaving)
            for (slot, _, _), value in zip(self.heads, following, strict=True):
                values[slot] = value
