"""A model file in LiteRT's C library, with its packed weights in a file beside it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.litert.native import c_library
from pocketgraph.litert.native.c_library import READ, WRITE, RefusedError

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array

UNKNOWN = (OSError, AttributeError, UnicodeError)
"""What says that the library cannot be used as it is known: it is another one, or a path is no text."""


class NativeModel:
    """A loaded model; other threads of Python go on while it is loaded and runs.

    Args:
        path: the model file.
        threads: how many to compute with.
        packed: the file of packed weights, or where to make it; None: they are packed into memory.
        outputs: their shapes and NumPy types.

    Attributes:
        is_delegated: whether XNNPACK runs all of it, so that nothing else reads its weights.

    Raises:
        RuntimeError: LiteRT does not take it.
        OSError, AttributeError, UnicodeError: see ``UNKNOWN``.
    """

    def __init__(
        self, path: str, threads: int, packed: str | None, outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
    ) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()  # whoever closes it waits for a run
        self._stack = ExitStack()
        self._given: list[_Mapped] = []
        self._wanted: list[_Mapped] = []
        self._library, environment = surroundings()
        self._outputs = outputs
        if packed and not packed.isprintable():  # the options are lines of text, whose strings LiteRT takes as they are
            raise OSError(f"the path {packed!r} does not fit into a line")
        text = f"num_threads = {threads}\n" + (f'weight_cache_file_path = "{packed}"\n' if packed else "")
        library, stack = self._library, self._stack
        try:
            model = c_library.model_of(library, stack, environment, path)
            chosen = c_library.options(library, stack, {b"xnnpack": text})
            compiled = c_library.compiled(library, stack, environment, model, chosen)
            given, wanted = (
                c_library.buffers(library, stack, environment, model, compiled, side) for side in ("Input", "Output")
            )
            self.is_delegated = c_library.is_delegated(library, compiled)
            self._given = [_Mapped(library, buffer) for buffer in given]
            self._wanted = [_Mapped(library, buffer) for buffer in wanted]
            self._model, self._compiled, self._buffers = model, compiled, (given, wanted)
            self._run: Callable[[], None] = c_library.running(library, compiled, given, wanted)
            self.read()  # the first access to a buffer starts, audibly, the rest of LiteRT
        except RefusedError as error:
            self._stack.close()
            raise RuntimeError(f"LiteRt{error} failed") from error
        except UNKNOWN:
            self._stack.close()
            raise

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these contiguous inputs.

        Raises:
            RuntimeError: LiteRT failed.
        """
        with self._lock:
            if not self._given:
                raise RuntimeError("the model is closed")
            try:
                for window, array in zip(self._given, inputs, strict=True):
                    window.write(array)
                self._run()
                return self.read()
            except RefusedError as error:
                raise RuntimeError(f"LiteRt{error} failed") from error

    def read(self) -> list[Array]:
        """Copies of the outputs as they are now."""
        results = []
        for window, (shape, dtype) in zip(self._wanted, self._outputs, strict=True):
            result = np.empty(shape, dtype)
            window.read(result)
            results.append(result)
        return results

    def close(self) -> None:
        """Gives the memory back; in a forked process it is left, since LiteRT's threads are not there."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._given, self._wanted = [], []
            self._stack.close()

    __del__ = close


class _Mapped:
    """LiteRT's own memory of an input or output."""

    def __init__(self, library: Any, buffer: ctypes.c_void_p) -> None:
        self._buffer, self._address = buffer, ctypes.c_void_p()
        self._place = ctypes.byref(self._address)
        self._lock, self._unlock = library.LiteRtLockTensorBuffer, library.LiteRtUnlockTensorBuffer
        size = ctypes.c_size_t()
        c_library.ask(library, "GetTensorBufferPackedSize", buffer, ctypes.byref(size))
        self._size = size.value

    def write(self, array: Array) -> None:
        """Copies a contiguous array into it."""
        self._move(array, WRITE)

    def read(self, array: Array) -> None:
        """Copies it into a contiguous array."""
        self._move(array, READ)

    def _move(self, array: Array, mode: int) -> None:
        if array.nbytes != self._size:
            raise RuntimeError(f"an array has {array.nbytes} bytes, not {self._size}")
        if self._lock(self._buffer, self._place, mode):
            raise RefusedError("LockTensorBuffer")
        try:
            ours, theirs = int(array.__array_interface__["data"][0]), self._address.value or 0
            target, source = (theirs, ours) if mode == WRITE else (ours, theirs)
            ctypes.memmove(target, source, self._size)
        finally:
            self._unlock(self._buffer)


def surroundings() -> tuple[Any, ctypes.c_void_p]:
    """The library, and what all models of the process are opened in.

    Raises:
        OSError, AttributeError, UnicodeError: see ``UNKNOWN``.
    """
    library = c_library.library()
    with _starting:
        return _started(library)


@lru_cache(maxsize=1)
def _started(library: Any) -> tuple[Any, ctypes.c_void_p]:
    try:
        return library, c_library.environment(library, _stack)
    except RefusedError as error:
        raise OSError(f"LiteRt{error} failed") from error


_starting = threading.Lock()
_stack = ExitStack()


def end() -> None:
    """Lets the surroundings go, when all models are closed."""
    _stack.close()
