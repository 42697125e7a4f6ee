"""Models that are opened as quickly as can be, for which something faster is looked for once they have run often."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.litert.running.runner import Runner, switch_off

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class UpgradingRunner(Runner):
    """Runs as the first runner, and as the one that ``then`` gives once that has run so often.

    Not safe for several threads at once; whoever owns it sees to that.

    Args:
        first: the runner.
        runs: how often it runs.
        then: called once, before the next run; None, RunError or OSError: the first runner goes on.
        passes: those by which it is called; where one is switched off, the first runner goes on.
    """

    def __init__(
        self, first: Runner, runs: int, then: Callable[[], Runner | None], passes: Collection[str] = ()
    ) -> None:
        self._runner = first
        self._left = runs
        self._then: Callable[[], Runner | None] | None = then
        self._passes = frozenset(passes)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        if self._then is not None:
            if self._left == 0:
                self._upgrade(self._then)
            self._left -= 1
        return self._runner.run(inputs)

    def switch_off(self, passes: Collection[str]) -> None:
        if not self._passes.isdisjoint(passes):
            self._then = None
        switch_off(self._runner, passes)

    def close(self) -> None:
        self._then = None
        self._runner.close()

    def _upgrade(self, then: Callable[[], Runner | None]) -> None:
        self._then = None
        try:
            runner = then()
        except (RunError, OSError):
            return  # the files are gone, or the disk is full
        if runner is not None:
            self._runner.close()
            self._runner = runner
