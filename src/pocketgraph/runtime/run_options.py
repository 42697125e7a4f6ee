"""``RunOptions``: what TensorFlow's message of that name lets a caller say about one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pocketgraph.errors import UsageError
from pocketgraph.runtime.profiling.profile import StepTrace


@dataclass(frozen=True)
class RunOptions:
    """Options of one run, under their names in config.proto.

    Attributes:
        timeout_in_ms: milliseconds that the run may take; 0 or less: as long as it needs. Planning and compiling, which
            only the first run of a kind does, count. The time is looked at while the graph is planned, when a node or
            a part on LiteRT has ended, and inside of kernels that are loops in Python; one call of NumPy or LiteRT goes
            on to its end.
        trace_level: ``NO_TRACE`` leaves the run's ``trace`` empty; any other level fills it (there is one kind of node
            times here).

    Raises:
        UsageError: a value is no integer, or the level is none of the four.
    """

    timeout_in_ms: int = 0
    trace_level: int = 0

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for name in ("timeout_in_ms", "trace_level"):
            value = getattr(self, name)
            if type(value) is not int:
                raise UsageError(f"RunOptions: {name} is an integer, not {value!r}")
        if not self.NO_TRACE <= self.trace_level <= self.FULL_TRACE:
            raise UsageError(f"RunOptions: there is no trace level {self.trace_level}", hint="use 0, 1, 2 or 3")

    def wanted(self, trace: StepTrace | None) -> StepTrace | None:
        """The trace, if it is to be filled."""
        return None if self.trace_level == self.NO_TRACE else trace
