"""A step, what it takes and gives, and how steps are taken one after the other.

A slot holds the value of one tensor. ``DEAD`` is the value of a tensor on the branch not taken; a step whose guard
slots are not all live does not run, and its outputs are dead too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from pocketgraph.errors import DeadlineError, PocketgraphError, RunError, command_on_model
from pocketgraph.graph import Node
from pocketgraph.runtime.tensor_names import before_rounds

if TYPE_CHECKING:
    from pocketgraph.budgets import Deadline
    from pocketgraph.runtime.engines.live_bytes import LiveBytes
    from pocketgraph.runtime.profiling.profile import StepTrace


class _Dead:
    """The type of ``DEAD``."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD = _Dead()
RUN = 0  # the slot that holds the Run, for steps that need it


class Run:
    """One execution of a program.

    Attributes:
        state: values that live as long as the session.
        rng: the session's random generator.
        limit: how many steps inside loops, and of functions that functions call, may be taken.
        budget: how many of them still may.
        step: values that live for this run.
        trace: collects node times, when wanted.
        depth: how many functions are being called, one inside of the other.
        caller: the names of these calls, as ``Context`` has them.
        files: the files that the graph may reach, when it may reach any.
        ledger: holds the run's tensors to a memory limit, when there is one.
        deadline: when the run must be done, if it must.
    """

    def __init__(
        self,
        state: dict[str, Any],
        rng: np.random.Generator | None,
        budget: int,
        trace: StepTrace | None = None,
        files: Any = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.state = state
        self.rng = rng
        self.limit = self.budget = budget
        self.step: dict[str, Any] = {}
        self.trace = trace
        self.depth = 0
        self.caller = ""
        self.files = files
        self.ledger: LiveBytes | None = None
        self.deadline = deadline

    def spend(self, steps: int, loop: str) -> None:
        """Counts the steps of one iteration.

        Raises:
            RunError: that is more than the run may take.
            DeadlineError: the time is over.
        """
        self.budget -= steps
        if steps == 1 and self.deadline is not None:  # a round that does nothing
            self.deadline.check(f"the loop '{loop}'")
        if self.budget < 0:
            raise RunError(
                f"the loop '{loop}' takes more than {self.limit:,} steps, the run's step limit, or does not end",
                hint="check the feeds that bound the loop, or pass a larger step_limit to Session",
            )

    def spend_call(self, steps: int, function: str) -> None:
        """Counts the steps of a function that another function calls.

        Raises:
            RunError: that is more than the run may take.
        """
        self.budget -= steps
        if self.budget < 0:
            raise RunError(
                "functions call each other without end: the run's step limit is used up",
                where=f"function '{function}'",
                hint="pass a larger step_limit to Session",
            )


class Step(NamedTuple):
    """One thing to do.

    Attributes:
        call: takes the gathered values, gives one value or a tuple of them.
        gather: picks the call's arguments out of the slots.
        out: the slot of the first output.
        more: (output, slot) of every used output, when the call gives a tuple.
        guard: slots that must be live.
        frees: slots that nobody needs after this step.
        node: whom to name in errors and times.
    """

    call: Callable[..., Any]
    gather: Callable[[list[Any]], Sequence[Any]]
    out: int
    more: tuple[tuple[int, int], ...]
    guard: tuple[int, ...]
    frees: tuple[int, ...]
    node: Node


def execute(steps: Sequence[Step], values: list[Any]) -> None:
    """Takes the steps in order.

    Raises:
        RunError: a kernel refused its inputs; the message names the node and the inputs' shapes.
    """
    step = None
    try:
        for step in steps:
            call, gather, out, more, guard, frees, _ = step
            if guard:
                alive = True
                for slot in guard:
                    if values[slot] is DEAD:
                        alive = False
                        break
                if not alive:
                    for _, slot in more:
                        values[slot] = DEAD
                    for slot in frees:
                        values[slot] = None
                    continue
            result = call(*gather(values))
            if type(result) is np.ndarray:
                values[out] = result
            else:
                store(result, more, values)
            for slot in frees:
                values[slot] = None
    except Exception as error:
        assert step is not None
        raise_failure(step, values, error)


def execute_traced(steps: Sequence[Step], values: list[Any], trace: StepTrace) -> None:
    """Like ``execute``, with the time of each step noted; loops note their inner steps themselves, and calls that have
    a ``note_times`` say themselves how their time is made up."""
    for step in steps:
        if any(values[slot] is DEAD for slot in step.guard):
            for _, slot in step.more:
                values[slot] = DEAD
            continue
        arguments = step.gather(values)
        began = time.perf_counter_ns()
        try:
            result = step.call(*arguments)
        except Exception as error:
            raise_failure(step, values, error)
        ended = time.perf_counter_ns()
        outputs = result if isinstance(result, tuple) else (result,)
        note_times = getattr(step.call, "note_times", None)
        if note_times is not None:
            note_times(trace, arguments, outputs, began, ended)
        elif not getattr(step.call, "traces_itself", False):
            trace.add(step.node.name, step.node.op, began, ended, outputs, "reference")
        store(result, step.more, values)
        for slot in step.frees:
            values[slot] = None


def store(result: Any, more: Sequence[tuple[int, int]], values: list[Any]) -> None:
    """Puts a call's outputs into their slots; NumPy scalars become arrays."""
    outputs = result if isinstance(result, tuple) else (result,)
    for port, slot in more:
        value = outputs[port]
        values[slot] = np.asarray(value) if isinstance(value, np.generic) else value


PLACES = ("node '", "the LiteRT part")
"""How what ``place`` says begins."""


def place(step: Step) -> str:
    """Where a step is in the graph, for messages; a compiled part says so itself."""
    inside = getattr(step.call, "place", "")
    if inside:
        return str(inside)
    name, which = before_rounds(step.node.name)
    return f"node '{name}'{f' ({which})' if which else ''}"


def _gets_a_constant(node: Node, arguments: Sequence[Any]) -> bool:
    """Whether an op that takes a variable is given an array in its place."""
    from pocketgraph.graph import opdefs  # which a warm start does without

    definition = opdefs.find(node.op)
    if definition is None or not definition.inputs or not arguments or not isinstance(arguments[0], np.ndarray):
        return False
    first = definition.inputs[0]
    return first.is_ref or (first.dtype is not None and first.dtype.name == "resource")


def raise_failure(step: Step, values: list[Any], error: Exception) -> NoReturn:
    """Raises what a kernel raised, with the node and the shapes it was given, unless that was said.

    Neither is left in a variable: it would hold its frames, and these, in a circle, the session and its models.
    """
    told = _failure(step, values, error)
    try:
        if told is error:
            raise error
        raise told from error
    finally:
        del told, error


def _failure(step: Step, values: list[Any], error: Exception) -> PocketgraphError:
    if isinstance(error, PocketgraphError):
        if isinstance(error, DeadlineError) and not error.where:  # a kernel looked at the clock
            return DeadlineError(error.what, where=place(step), hint=error.hint)
        if error.where.startswith(PLACES) or (isinstance(error, RunError) and type(error) is not RunError):
            return error
        what = f"{error.where}: {error.what}" if error.where else error.what  # a file that a node reads or writes
        return RunError(what, where=place(step), hint=error.hint)
    from pocketgraph.graph import opdefs

    arguments = [value for value in step.gather(values) if not isinstance(value, Run)]
    shapes = ", ".join(
        f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
        for value in arguments
    )
    said = str(error) or type(error).__name__
    if isinstance(error, AttributeError) and _gets_a_constant(step.node, arguments):
        changes = opdefs.updates_variable(step.node.op)
        repair = command_on_model(
            f"pocketgraph freeze_graph {{}} -o repaired.pb --repair={'updates' if changes else 'references'}"
        )
        return RunError(
            f"{step.node.op} would {'change' if changes else 'read'} a variable that is a constant in this graph",
            where=place(step), hint=f"{repair} {'drops it' if changes else 'makes it take the constant'}",
        )  # fmt: skip
    if isinstance(error, MemoryError):
        said = f"out of memory: {error}"
    elif counted := opdefs.wrong_count(step.node, len(step.node.data_inputs)):
        return RunError(counted, where=place(step))
    return RunError(f"{step.node.op}({shapes}) failed: {said}", where=place(step))
