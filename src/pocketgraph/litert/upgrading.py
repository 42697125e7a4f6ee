"""Models that are opened as quickly as can be, for which something faster is looked for once they have run often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.litert.cost_model import UPGRADED_AFTER
from pocketgraph.litert.runner import PlainRunner, Runner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class UpgradingRunner(Runner):
    """Runs as the first runner, then as the one that ``better`` makes.

    Not safe for several threads at once; whoever owns it sees to that.
    """

    def __init__(self, first: Runner, better: Callable[[], Runner]) -> None:
        self._runner = first
        self._better: Callable[[], Runner] | None = better
        self._runs = 0

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        if self._better is not None:
            self._runs += 1
            if self._runs > UPGRADED_AFTER:
                self._upgrade(self._better)
        return self._runner.run(inputs)

    def recycle_nothing(self) -> None:
        """As PlainRunner's."""
        if isinstance(self._runner, PlainRunner):
            self._runner.recycle_nothing()

    def close(self) -> None:
        self._better = None
        self._runner.close()

    def _upgrade(self, better: Callable[[], Runner]) -> None:
        self._better = None
        try:
            runner = better()
        except (RunError, OSError):
            return  # the files are gone, or the disk is full: the first one goes on
        self._runner.close()
        self._runner = runner


class CountedRunner(Runner):
    """Runs as another runner, and calls ``then`` once when it has run ``runs`` times.

    Not safe for several threads at once; whoever owns it sees to that.
    """

    def __init__(self, runner: Runner, runs: int, then: Callable[[], object]) -> None:
        self._runner = runner
        self._left = runs
        self._then = then

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        results = self._runner.run(inputs)
        self._left -= 1
        if self._left == 0:
            self._then()
        return results

    def close(self) -> None:
        self._runner.close()
