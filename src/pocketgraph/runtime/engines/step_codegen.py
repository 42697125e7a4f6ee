"""Steps that run again and again, written out as one Python function.

A step costs the interpreter's loop a fifth of a microsecond besides its call: taking the step apart, picking its
arguments, looking at its guard. Written out, with values that nobody else looks at in local variables, it costs a
quarter of that. The source holds numbers of slots and steps only, no names from the graph.

A variable is taken again by another slot as soon as its value is done with. With one for each slot, a thousand steps
would make a frame so large that Python has no room for those of the calls behind it, and asks the system for some at
every call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.steps import Step

MOST_STEPS = 20_000  # of one function; compiling takes some ten microseconds a step


class StepCodegen:
    """The steps as a function of the slots' values.

    Args:
        steps: what is written out.
        dead: the value of tensors on branches not taken.
    """

    def __init__(self, steps: Sequence[Step], dead: Any) -> None:
        made = {slot for step in steps for slot in (step.out, *(slot for _, slot in step.more))}
        self._steps = steps
        self._local = made & {slot for step in steps for slot in step.frees}
        self._variables = Variables(self._local)
        self._lines = ["def run(values):"]
        self._step_of = [0]  # by line
        names: dict[str, Any] = {"A": np.ndarray, "T": tuple, "DEAD": dead}
        names |= {"one": _one, "several": _several, "plain": _plain}
        for index, step in enumerate(steps):
            names[f"c{index}"] = step.call
            self._write(index, step)
        if not steps:
            self._add(0, "pass")
        code = compile("\n".join(self._lines), "<steps>", "exec")
        exec(code, names)
        self.run: Callable[[list[Any]], None] = names.pop("run")  # its globals, which would hold it

    def failed_at(self, traceback: TracebackType | None, values: list[Any]) -> Step | None:
        """The step that an exception comes from; its inputs are put back into their slots."""
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code is self.run.__code__:
                index = self._step_of[traceback.tb_lineno - 1]
                variables = Variables(self._local)
                for step in self._steps[:index]:
                    variables.take(step)
                    variables.give_back(step)
                for slot, variable in variables.of.items():
                    values[slot] = frame.f_locals.get(f"v{variable}")
                return self._steps[index]
            traceback = traceback.tb_next
        return None

    def _write(self, index: int, step: Step) -> None:
        call = f"c{index}({', '.join(map(self._slot, gathered_slots(step.gather)))})"
        self._variables.take(step)
        depth = 1
        if step.guard:
            self._add(index, f"if {' or '.join(f'{self._slot(slot)} is DEAD' for slot in step.guard)}:")
            dead = [self._slot(slot) for _, slot in step.more]
            self._add(index, f"{' = '.join(dead)} = DEAD" if dead else "pass", 2)
            self._add(index, "else:")
            depth = 2
        if not step.more:
            self._add(index, call, depth)
        elif step.more == ((0, step.out),):
            out = self._slot(step.out) if step.out in self._local else "r"
            self._add(index, f"{out} = {call}", depth)
            self._add(index, f"if type({out}) is not A:", depth)
            self._add(index, f"{out} = {out}[0] if type({out}) is T and type({out}[0]) is A else one({out})", depth + 1)
            if out == "r":
                self._add(index, f"{self._slot(step.out)} = r", depth)
        else:
            self._add(index, f"r = {call}", depth)
            self._add(index, "if type(r) is not T: r = several(r)", depth)
            for port, slot in step.more:
                out = self._slot(slot)
                self._add(index, f"{out} = r[{port}]", depth)
                self._add(index, f"if type({out}) is not A: {out} = plain({out})", depth)
            self._add(index, "r = None", depth)
        free = [self._slot(slot) for slot in step.frees]
        if free:
            self._add(index, f"{' = '.join(free)} = None")
        self._variables.give_back(step)

    def _slot(self, slot: int) -> str:
        variable = self._variables.of.get(slot)
        return f"values[{slot}]" if variable is None else f"v{variable}"

    def _add(self, index: int, line: str, depth: int = 1) -> None:
        self._lines.append(" " * depth + line)
        self._step_of.append(index)


class Variables:
    """Which local variable has the value of each slot.

    Attributes:
        of: the number of the variable, by slot, where the slot has one now.
    """

    def __init__(self, local: Collection[int]) -> None:
        self.of: dict[int, int] = {}
        self._local = local
        self._idle: list[int] = []
        self._count = 0

    def take(self, step: Step) -> None:
        """Gives the slots that a step makes a variable each."""
        for slot in (step.out, *(slot for _, slot in step.more)):
            if slot in self._local and slot not in self.of:
                if not self._idle:
                    self._idle.append(self._count)
                    self._count += 1
                self.of[slot] = self._idle.pop()

    def give_back(self, step: Step) -> None:
        """Lets others have the variables of the slots that nobody needs after a step."""
        self._idle += [self.of.pop(slot) for slot in step.frees if slot in self.of]


def gathered_slots(gather: Callable[[list[Any]], Sequence[Any]]) -> tuple[int, ...]:
    """The slots that a ``calls.gatherer`` picks."""
    picked: tuple[Any, ...] = gather.__reduce__()[1]  # type: ignore[assignment]  # an itemgetter tells its items so
    if len(picked) == 1 and isinstance(picked[0], slice):
        return tuple(range(picked[0].start or 0, picked[0].stop))
    return picked


def _several(result: Any) -> Sequence[Any]:
    return result if type(result) is tuple else (result,) if not isinstance(result, tuple) else tuple(result)


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic) else value


def _one(result: Any) -> Any:
    if isinstance(result, tuple):
        result = result[0]
    return np.asarray(result) if isinstance(result, np.generic) else result
