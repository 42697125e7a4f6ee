"""A model in LiteRT's C library that reads and writes arrays where they lie."""

from __future__ import annotations

import ctypes
import mmap
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.kernels.recycled_arrays import ALIGNMENT
from pocketgraph.litert.native import c_library
from pocketgraph.litert.native.c_library import RefusedError
from pocketgraph.litert.native.native_model import NativeModel

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array

MOST_CALLS = 32  # that are kept: places of arrays come again where their memory does
READ_BEYOND = 16  # bytes: XNN_EXTRA_BYTES in xnnpack.h, by which some processors' kernels read beyond an input

Addresses = tuple[int, ...]
"""Of each input and result that is taken where it lies; 0 of one that is copied."""


class InPlaceModel(NativeModel):
    """A loaded model; its arguments are those of ``NativeModel``, and ``lent_from``: bytes, of smaller arrays it makes
    copies."""

    def __init__(
        self,
        path: str,
        threads: int,
        packed: str | None,
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        lent_from: int = 0,
    ) -> None:
        super().__init__(path, threads, packed, outputs)
        self._lent_from = lent_from
        self._types = [c_library.tensor_types(self._library, self._model, side) for side in ("Input", "Output")]
        self._calls: OrderedDict[Addresses, tuple[Callable[[], None], ExitStack]] = OrderedDict()
        self._stack.callback(_let_go, self._calls)

    def run_into(self, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        """Puts the outputs for these inputs into these arrays; all are in one piece.

        What begins at a multiple of ``ALIGNMENT`` bytes is taken where it lies, what does not is copied, and so are
        inputs that end with a page: kernels read up to ``READ_BEYOND`` bytes more, and the next page may be nobody's.

        Raises:
            RuntimeError: LiteRT failed.
        """
        lent = tuple(
            [self._address(array, True) for array in inputs] + [self._address(array, False) for array in results]
        )
        with self._lock:
            if not self._given:
                raise RuntimeError("the model is closed")
            try:
                for window, array, address in zip(self._given, inputs, lent, strict=False):
                    if not address:
                        window.write(array)
                self._call(lent, (*inputs, *results))()
                for window, array, address in zip(self._wanted, results, lent[len(inputs) :], strict=True):
                    if not address:
                        window.read(array)
            except RefusedError as error:
                raise RuntimeError(f"LiteRt{error} failed") from error

    def _address(self, array: Array, is_input: bool) -> int:
        """Where an array lies that is taken there; 0 of one that is copied."""
        start, size = int(array.__array_interface__["data"][0]), array.nbytes
        is_at_the_end = is_input and -(start + size) % mmap.PAGESIZE < READ_BEYOND
        return 0 if start % ALIGNMENT or is_at_the_end or size < self._lent_from else start

    def _call(self, lent: Addresses, arrays: Sequence[Array]) -> Callable[[], None]:
        """What runs with the arrays at these addresses, and with memory of the model's own for the others."""
        if lent in self._calls:
            self._calls.move_to_end(lent)
            return self._calls[lent][0]
        with ExitStack() as stack:
            own, types = [[*first, *second] for first, second in (self._buffers, self._types)]
            buffers = [
                self._lent(stack, kind, array) if address else buffer
                for address, array, buffer, kind in zip(lent, arrays, own, types, strict=True)
            ]
            count = len(self._given)
            run = c_library.running(self._library, self._compiled, buffers[:count], buffers[count:])
            self._calls[lent] = run, stack.pop_all()
        if len(self._calls) > MOST_CALLS:
            self._calls.popitem(last=False)[1][1].close()
        return run

    def _lent(self, stack: ExitStack, kind: Any, array: Array) -> ctypes.c_void_p:
        """An array's memory as a buffer of LiteRT's, while the stack lasts."""
        handle = ctypes.c_void_p()
        place, size = ctypes.c_void_p(array.__array_interface__["data"][0]), ctypes.c_size_t(array.nbytes)
        name = "CreateTensorBufferFromHostMemory"
        c_library.ask(self._library, name, kind, place, size, None, ctypes.byref(handle))
        stack.callback(self._library.LiteRtDestroyTensorBuffer, handle)
        return handle


def _let_go(calls: OrderedDict[Addresses, tuple[Callable[[], None], ExitStack]]) -> None:
    for _, stack in calls.values():
        stack.close()
    calls.clear()
