"""Runs a model file that has holes in the place of weights, as long as nobody reads those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import RunError
from pocketgraph.litert.native.watched_holes import WatchedHoles
from pocketgraph.litert.running.packed_runner import PackedRunner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class WeightlessRunner(PackedRunner):
    """Where XNNPACK looks up other packed weights than there are, or does not take the file of them, it packs anew what
    it finds in the model file, and says nothing. So it is looked at what was read when the model was opened and, where
    LiteRT's own operators run a part of it, when it ran for the first time.
    """

    def __init__(
        self, model: str, packed: str, threads: int, outputs: Sequence[tuple[tuple[int, ...], Any]], start: int
    ) -> None:
        """As a ``PackedRunner``, of a model whose holes begin at ``start``.

        Raises:
            RunError: holes were read, or LiteRT does not take the model.
            OSError: the system does not tell what was read.
        """
        watched = WatchedHoles(model, start)
        super().__init__(model, packed, threads, outputs)
        self._watched: WatchedHoles | None = watched
        try:
            _check(watched)
        except BaseException:
            self.close()
            raise
        if self.is_delegated:
            self._watched = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        watched = self._watched
        if watched is None:
            return super().run(inputs)
        watched.read_witness()
        results = super().run(inputs)
        try:
            _check(watched)
        except OSError as error:
            raise RunError(f"nobody knows whether LiteRT read weights that are elsewhere: {error}") from error
        self._watched = None
        return results


def _check(watched: WatchedHoles) -> None:
    if watched.are_read():
        raise RunError("LiteRT does not take packed weights as they are")
