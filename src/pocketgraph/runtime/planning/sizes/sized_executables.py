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
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.sizes.resizable import Resizable, Shapes
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison

MOST_KEPT = 64  # sizes of one part; more are forgotten


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
        self._resizable = resizable
        self._open = [[axis for axis, size in enumerate(own) if size is None] for own in sizes]
        self._instead = instead
        self._made: dict[Shapes, tuple[Executable, Callable[[Sequence[Array]], list[Array]]]] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, for arrays of the right types.

        Raises:
            RunError: LiteRT failed, or does not take these sizes where nothing else does.
        """
        shapes = tuple([array.shape for array in inputs])
        found = self._made.get(shapes) or self._sized(shapes)
        if found is not None:
            return found[1](inputs)
        if self._instead is None:
            raise RunError("the program does not take these sizes")
        return self._instead(inputs)

    def takes(self, shapes: Shapes) -> bool:
        """Whether the program takes inputs of these shapes."""
        return shapes in self._made or self._sized(shapes) is not None

    def waited(self, shapes: Shapes) -> float:
        """Seconds that runs with these shapes have waited for the program to take them again."""
        found = self._made.get(shapes)
        return found[0].waited if found is not None else 0.0

    def _sized(self, shapes: Shapes) -> tuple[Executable, Callable[[Sequence[Array]], list[Array]]] | None:
        """The program for these sizes; None where it does not take them."""
        if any(shape[axis] < SMALLEST_OPEN for shape, axes in zip(shapes, self._open, strict=True) for axis in axes):
            return None
        with self._lock:
            if self.comparison is not None and not self.comparison.is_trusted:
                return None
            try:
                made = self._resizable.sized(shapes)
            except RunError:
                return None
            if self.comparison is not None:
                self.comparison.watch(made)
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            self._made[shapes] = found = (made, made.direct(range(len(shapes))))
            return found

    def close(self) -> None:
        """Lets go of what runs it for the sizes so far; the program goes with the last plan that it is in."""
        with self._lock:
            made, self._made = self._made, {}
        for each, _ in made.values():
            each.close()
