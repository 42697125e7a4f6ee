"""The comparison of a program that serves several sizes, at the first ones that it was not compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.certificates.agreement import Agreement
from pocketgraph.runtime.certificates.part_check import CheckedPart, PartCheck
from pocketgraph.runtime.certificates.part_reference import PartReference

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable


class FirstComparison:
    """Compares a program with the reference engine at its first run; what an executable is given as its ``check``.

    Args:
        reference: its nodes.
        names: its inputs'.
        cache_dir: as for Request.

    Attributes:
        known: what the reference engine gives for the first run, where that is known.
        is_new: whether nothing watches a run so far.
    """

    def __init__(self, reference: PartReference, names: Sequence[str], cache_dir: Any) -> None:
        self.known: Sequence[Array] | None = None
        self.is_new = True
        self._part = CheckedPart(f"the program for all sizes of {', '.join(names)}")
        self._check = PartCheck(lambda: reference, self._part, always=False, cache_dir=cache_dir)

    @property
    def is_trusted(self) -> bool:
        """Whether the program was right; the first sizes are those for which that is found out."""
        return self.is_new or self._part.verdict is Agreement.RIGHT

    @property
    def is_undecided(self) -> bool:
        """Whether the program is at its first run."""
        return not self.is_new and self._part.verdict is None

    def watch(self, executable: Executable) -> None:
        """Has the next run of the program for some sizes compared, where none was so far."""
        if self.is_new:
            executable.check, self.is_new = self, False

    def __call__(self, executable: Executable, feeds: Sequence[Array], results: list[Array]) -> list[Array]:
        # For other numbers the layers were found right when they were compiled.
        right = self._check.compare(executable, feeds, results, "", varies=False, known=self.known)
        executable.check = self.known = None
        return results if right is None or self._part.verdict is not Agreement.WRONG else right
