"""The check of parts that an earlier process compiled and had no time to compare.

They answer at once; what went in and came out of a later run is compared when the process is idle, for which the graph
is read and planned again, since the cache does not say which nodes a part is of. A process that runs a part once or
twice pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pocketgraph.litert.cost_model import MOST_NOTED, PLANNED_AGAIN, WARM_RUNS

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array
    from pocketgraph.litert.executable import Executable


class WarmCheck:
    """What the executables of one plan are given as their ``check``.

    Args:
        plan_again: gives the same executables anew, each with a check that knows its nodes.
    """

    def __init__(self, plan_again: Callable[[], Iterable[Any]]) -> None:
        self._plan_again = plan_again
        self._runs = 0

    def __call__(self, executable: Executable, feeds: Sequence[Array], results: list[Array]) -> list[Array]:
        self._runs += 1
        if self._runs < WARM_RUNS:
            return results
        executable.check = None
        if executable.kept_as is not None and sum(array.nbytes for array in (*feeds, *results)) <= MOST_NOTED:
            from pocketgraph.runtime.certificates import check_schedule

            taken, given = [array.copy() for array in feeds], [array.copy() for array in results]
            engine = executable.engine
            check_schedule.add(
                lambda: self._compare(executable, taken, given, engine), PLANNED_AGAIN + executable.check_time
            )
        return results

    @cached_property
    def _checks(self) -> dict[tuple[str, str], Any]:
        executables = list(self._plan_again())
        found = {each.kept_as: each.check for each in executables if getattr(each, "kept_as", None) is not None}
        for each in executables:
            each.close()
        return found

    def _compare(self, executable: Executable, feeds: Sequence[Array], results: Sequence[Array], engine: str) -> None:
        check = self._checks.get(executable.kept_as) if executable.kept_as is not None else None
        if check is not None:
            check.compare_idle(executable, feeds, results, engine)
