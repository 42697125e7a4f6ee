"""A part that one LiteRT program computes for all sizes, which is told the sizes of each run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.planning.call_key import SMALLEST_OPEN
from pocketgraph.runtime.planning.execution_plan import Runnable

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Resizable, Shapes
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison


class SizedExecutables(Runnable):
    """A part that is one program for all sizes, as an executable that takes whatever sizes come; safe for several
    threads.

    Args:
        resizable: the program.
        sizes: those of its inputs, None where they are open.
        comparison: compares the first run; None where an earlier process did.
        instead: computes what the program does not take; None where it is asked before.

    Attributes:
        about: what is known of the program.
        waited: seconds that runs with inputs of such shapes have waited for the program to take them again.
    """

    engine = ""

    def __init__(
        self,
        resizable: Resizable,
        sizes: Sequence[tuple[int | None, ...]],
        comparison: FirstComparison | None,
        instead: Callable[[Sequence[Array]], list[Array]] | None = None,
    ) -> None:
        self.about = resizable.about
        self.comparison = comparison
        self.waited = resizable.waited
        self._resizable = resizable
        self._executable = resizable.executable()
        self._run = self._executable.direct(range(len(sizes)))
        self._open = [[axis for axis, size in enumerate(own) if size is None] for own in sizes]
        self._instead = instead
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, for arrays of the right types.

        Raises:
            RunError: LiteRT failed, or does not take these sizes where nothing else does.
        """
        if self.takes(tuple([array.shape for array in inputs])):
            return self._run(inputs)
        if self._instead is None:
            raise RunError("the program does not take these sizes")
        return self._instead(inputs)

    def takes(self, shapes: Shapes) -> bool:
        """Whether the program takes inputs of these shapes, for which it is made ready."""
        if self._resizable.is_ready(shapes):
            return True
        if any(shape[axis] < SMALLEST_OPEN for shape, axes in zip(shapes, self._open, strict=True) for axis in axes):
            return False
        with self._lock:
            if self.comparison is not None and not self.comparison.is_trusted:
                return False
            try:
                self._resizable.get_ready(shapes)
            except RunError:
                return False
            if self.comparison is not None:
                self.comparison.watch(self._executable)
            return True

    def close(self) -> None:
        """Forgets the sizes so far; the program goes with the last plan that it is in."""
        self._resizable.close()
