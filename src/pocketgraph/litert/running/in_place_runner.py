"""Runs a model file from and into large arrays where they lie, which LiteRT's interpreter copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.recycled_arrays import LEAST, RecycledArrays
from pocketgraph.litert.native import native_model
from pocketgraph.litert.native.c_library import RefusedError
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.running.runner import PlainRunner, Runner, close_at_exit, refusals

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class InPlaceRunner(Runner):
    """A model in LiteRT's C library.

    Args:
        model: the file.
        threads: how many to compute with.
        outputs: their shapes and NumPy types.

    Raises:
        RunError: LiteRT does not take it, or its library is another one than is known.
    """

    def __init__(self, model: str, threads: int, outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        try:
            with quiet(), refusals():
                self._model = InPlaceModel(model, threads, None, outputs, LEAST)
        except native_model.UNKNOWN as error:
            raise RunError(f"LiteRT's library is another one than is known: {error}") from error
        self._opened_with = model, threads, [shape for shape, _ in outputs]
        self._outputs, self._recycled = outputs, RecycledArrays()
        close_at_exit(self)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        take = self._recycled.take
        results = [take(n, shape, dtype, is_aligned=True) for n, (shape, dtype) in enumerate(self._outputs)]
        given = [array if array.flags.c_contiguous else np.ascontiguousarray(array) for array in inputs]
        try:
            self._model.run_into(given, results)
        except RuntimeError as error:
            if not isinstance(error.__cause__, RefusedError):
                raise
            return PlainRunner(*self._opened_with).run(given)  # whose error says what failed
        return results

    def close(self) -> None:
        with quiet():
            self._model.close()
