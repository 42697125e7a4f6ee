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

Addresses = tuple[tuple[int, int], ...]
"""The address and bytes of each input and result."""


class InPlaceModel(NativeModel):
    """A loaded model; its arguments are those of ``NativeModel``."""

    def __init__(
        self, path: str, threads: int, packed: str, outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
    ) -> None:
        super().__init__(path, threads, packed, outputs)
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
        addresses = tuple([(int(array.__array_interface__["data"][0]), array.nbytes) for array in (*inputs, *results)])
        with self._lock:
            if not self._given:
                raise RuntimeError("the model is closed")
            try:
                if addresses in self._calls:
                    self._calls.move_to_end(addresses)
                    self._calls[addresses][0]()
                else:
                    self._run_new(addresses, inputs, results)
            except RefusedError as error:
                raise RuntimeError(f"LiteRt{error} failed") from error

    def _run_new(self, addresses: Addresses, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        """Runs with arrays at these addresses, and keeps the call where nothing is copied."""
        with ExitStack() as stack:
            buffers: list[list[ctypes.c_void_p]] = [[], []]
            copied, is_kept, places = [], True, iter(addresses)
            for side, arrays, mapped in ((0, inputs, self._given), (1, results, self._wanted)):
                for place, (array, (start, size)) in enumerate(zip(arrays, places, strict=False)):
                    is_at_the_end = -(start + size) % mmap.PAGESIZE < READ_BEYOND
                    if start % ALIGNMENT == 0 and (side or not is_at_the_end):
                        buffers[side].append(self._lent(stack, self._types[side][place], array))
                        continue
                    is_kept = False
                    buffers[side].append(self._buffers[side][place])
                    if side:
                        copied.append((mapped[place], array))
                    else:
                        mapped[place].write(array)
            run = c_library.running(self._library, self._compiled, *buffers)
            run()
            for window, array in copied:
                window.read(array)
            if is_kept:
                self._calls[addresses] = run, stack.pop_all()
                if len(self._calls) > MOST_CALLS:
                    self._calls.popitem(last=False)[1][1].close()

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
