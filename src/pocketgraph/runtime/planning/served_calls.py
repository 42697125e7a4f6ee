"""The calls that one LiteRT program serves, which is told the sizes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Check, Executable
    from pocketgraph.litert.resizable import Resizable


class ServedCalls:
    """The calls of one program.

    Args:
        resizable: it.
        inputs: what goes into it, in order.
        compares: what compares it at its first run; None where an earlier process did.
        is_right: whether that came out well.
    """

    def __init__(
        self,
        resizable: Resizable,
        inputs: Sequence[Endpoint],
        compares: Check | None = None,
        is_right: Callable[[], bool] = lambda: True,
    ) -> None:
        self.resizable = resizable
        self.inputs = tuple(inputs)
        self._compares = compares
        self._is_right = is_right

    @property
    def is_trusted(self) -> bool:
        """Whether it was compared and right; the first sizes are those for which it is."""
        return self._compares is not None or self._is_right()

    def plan(self, key: CallKey) -> ExecutionPlan:
        """
        Raises:
            RunError: LiteRT does not take these sizes.
        """
        feeds = dict(key.feeds)
        executable: Executable = self.resizable.sized([Shape(feeds[endpoint][1]).known for endpoint in self.inputs])
        executable.check, self._compares = self._compares, None
        places = {endpoint: place for place, endpoint in enumerate(feeds)}
        order = tuple(places[endpoint] for endpoint in self.inputs)
        return ExecutionPlan(None, executable, order, executables=[executable])
