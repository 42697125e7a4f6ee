"""The calls that one LiteRT program serves, which is told the sizes of each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pocketgraph.errors import RunError
from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.resizable import Resizable
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison
    from pocketgraph.runtime.planning.reference_answers import KnownRun


class Served(Protocol):
    """Calls of several sizes that one program serves."""

    @property
    def is_trusted(self) -> bool:
        """Whether it was compared and right; the first sizes are those for which it is."""

    @property
    def is_undecided(self) -> bool:
        """Whether it is at its first run, which it is compared at."""

    def takes(self, key: CallKey) -> bool:
        """Whether it can run a call of these sizes."""

    def compare(self, known: KnownRun) -> None:
        """Compares it with a run of the reference engine, where that takes less than to compare its first run."""

    def plan(self, key: CallKey) -> ExecutionPlan:
        """What runs calls of these sizes.

        Raises:
            RunError: LiteRT does not take them.
        """


class ServedCalls:
    """The calls of one program.

    Args:
        resizable: it.
        inputs: what goes into it, in order.
        comparison: compares it at its first run; None where an earlier process did.
    """

    def __init__(
        self, resizable: Resizable, inputs: Sequence[Endpoint], comparison: FirstComparison | None = None
    ) -> None:
        self.resizable = resizable
        self.inputs = tuple(inputs)
        self._comparison = comparison
        self._is_new = True

    @property
    def is_trusted(self) -> bool:
        """As Served."""
        return self._is_new or self._comparison is None or self._comparison.is_right

    @property
    def is_undecided(self) -> bool:
        """As Served."""
        return not self._is_new and self._comparison is not None and not self._comparison.is_over

    def takes(self, key: CallKey) -> bool:
        """As Served."""
        return self.resizable.takes(self._shapes(key))

    def _shapes(self, key: CallKey) -> list[tuple[int, ...]]:
        feeds = dict(key.feeds)
        return [Shape(feeds[endpoint][1]).known for endpoint in self.inputs]

    def compare(self, known: KnownRun) -> None:
        """As Served."""
        if self._comparison is None:
            return
        self._comparison.known = known.results
        with contextlib.suppress(RunError):  # it stays without a verdict, and serves nobody
            plan = self.plan(known.key)
            executable = plan.executables[0]
            executable.run([known.feeds[place] for place in plan.whole_inputs])
            executable.close()

    def plan(self, key: CallKey) -> ExecutionPlan:
        """
        Raises:
            RunError: LiteRT does not take these sizes.
        """
        feeds = dict(key.feeds)
        executable: Executable = self.resizable.sized(self._shapes(key))
        if self._is_new:
            executable.check, self._is_new = self._comparison, False
        places = {endpoint: place for place, endpoint in enumerate(feeds)}
        order = tuple(places[endpoint] for endpoint in self.inputs)
        return ExecutionPlan(None, executable, order, executables=[executable])
