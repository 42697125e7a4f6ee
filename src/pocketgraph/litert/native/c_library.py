"""LiteRT's C library, called directly: in a thousandth of a second it is loaded, and other threads go on meanwhile.

The Python package takes twenty milliseconds to import, and holds the interpreter's lock while it opens and runs models.
The calls are those of the C headers litert_environment.h, litert_options.h, litert_model.h, litert_compiled_model.h and
litert_tensor_buffer.h (LiteRT, Apache-2.0) of the versions in ``KNOWN``; with another version nothing is called.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

from pocketgraph.litert.host import engine_folder, engine_version

KNOWN = ("2.3.",)  # beginnings of versions
CPU, READ, WRITE, READ_TYPE_BYTES = 1, 0, 1, 256
REGISTERED, INTEGER = 24, 2  # kLiteRtEnvOptionTagAutoRegisterAccelerators and kLiteRtAnyTypeInt


class _EnvironmentOption(ctypes.Structure):
    """LiteRtEnvOption, with a whole number as its value."""

    _fields_ = (("tag", ctypes.c_int), ("kind", ctypes.c_int64), ("value", ctypes.c_int64))


class RefusedError(Exception):
    """A call of the library did not succeed."""


def library() -> Any:
    """The library.

    Raises:
        OSError: it is not there, or of a version that is not known.
    """
    if not engine_version().startswith(KNOWN):
        raise OSError("the calls of this version are not known")
    return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Any:
    return ctypes.CDLL(os.path.join(engine_folder(), "libLiteRt.so"))


def ask(library: Any, name: str, *arguments: Any) -> None:
    """Calls a function that gives a status.

    Raises:
        AttributeError: there is no such function.
        RefusedError: it is not 0.
    """
    function = getattr(library, f"LiteRt{name}")
    function.restype = ctypes.c_int
    if function(*arguments) != 0:
        raise RefusedError(name)


def made(library: Any, stack: ExitStack, what: str, name: str, *arguments: Any) -> ctypes.c_void_p:
    """A new object, destroyed when the stack ends."""
    handle = ctypes.c_void_p()
    ask(library, name, *arguments, ctypes.byref(handle))
    stack.callback(getattr(library, f"LiteRtDestroy{what}"), handle)
    return handle


def found(library: Any, name: str, *arguments: Any) -> ctypes.c_void_p:
    """A part of another object."""
    handle = ctypes.c_void_p()
    ask(library, name, *arguments, ctypes.byref(handle))
    return handle


def environment(library: Any, stack: ExitStack) -> ctypes.c_void_p:
    """What models are opened in, without accelerators' libraries (see host.runs_gpu_library)."""
    only_cpu = ctypes.byref(_EnvironmentOption(REGISTERED, INTEGER, CPU))
    return made(library, stack, "Environment", "CreateEnvironment", ctypes.c_int(1), only_cpu)


def model_of(library: Any, stack: ExitStack, environment: ctypes.c_void_p, path: str) -> ctypes.c_void_p:
    """A model file."""
    return made(library, stack, "Model", "CreateModelFromFile", environment, ctypes.c_char_p(os.fsencode(path)))


def options(library: Any, stack: ExitStack, texts: dict[bytes, str]) -> ctypes.c_void_p:
    """Options for the processor's cores, with groups of options as the text in which LiteRT passes them on."""
    kept: list[object] = []  # what the options point to; let go last
    stack.callback(kept.clear)
    chosen = made(library, stack, "Options", "CreateOptions")
    ask(library, "SetOptionsHardwareAccelerators", chosen, ctypes.c_int(CPU))
    for name, text in texts.items():
        content = ctypes.create_string_buffer(text.encode())
        keep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
        option = ctypes.c_void_p()
        place = ctypes.cast(content, ctypes.c_void_p)
        ask(library, "CreateOpaqueOptions", ctypes.c_char_p(name), place, keep, ctypes.byref(option))
        ask(library, "AddOpaqueOptions", chosen, option)
        kept.append((content, keep))
    return chosen


def compiled(
    library: Any, stack: ExitStack, environment: ctypes.c_void_p, model: ctypes.c_void_p, options: ctypes.c_void_p
) -> ctypes.c_void_p:
    """A model that can run."""
    return made(library, stack, "CompiledModel", "CreateCompiledModel", environment, model, options)


def is_delegated(library: Any, compiled: ctypes.c_void_p) -> bool:
    """Whether LiteRT's own operators run nothing of a model."""
    found = ctypes.c_bool()
    ask(library, "CompiledModelIsFullyAccelerated", compiled, ctypes.byref(found))
    return found.value


def buffers(
    library: Any,
    stack: ExitStack,
    environment: ctypes.c_void_p,
    model: ctypes.c_void_p,
    compiled: ctypes.c_void_p,
    side: str,
) -> list[ctypes.c_void_p]:
    """Memory for each input or output (``side``) of a model's only graph."""
    memory = []
    for index, kind in enumerate(tensor_types(library, model, side)):
        place = (compiled, ctypes.c_size_t(0), ctypes.c_size_t(index))
        needs = found(library, f"GetCompiledModel{side}BufferRequirements", *place)
        name = "CreateManagedTensorBufferFromRequirements"
        memory.append(made(library, stack, "TensorBuffer", name, environment, kind, needs))
    return memory


def tensor_types(library: Any, model: ctypes.c_void_p, side: str) -> list[Any]:
    """The types of the inputs or outputs (``side``) of a model's only graph, as LiteRT keeps them."""
    graph = found(library, "GetModelSubgraph", model, ctypes.c_size_t(0))
    count = ctypes.c_size_t()
    ask(library, f"GetNumSubgraph{side}s", graph, ctypes.byref(count))
    kinds = []
    for index in range(count.value):
        tensor = found(library, f"GetSubgraph{side}", graph, ctypes.c_size_t(index))
        kind = (ctypes.c_char * READ_TYPE_BYTES)()
        ask(library, "GetRankedTensorType", tensor, kind)
        kinds.append(kind)
    return kinds


@contextmanager
def locked(library: Any, buffer: ctypes.c_void_p, mode: int) -> Iterator[tuple[int, int]]:
    """The address and size in bytes of a buffer's content, to be read or written (``mode``)."""
    size, address = ctypes.c_size_t(), ctypes.c_void_p()
    ask(library, "GetTensorBufferPackedSize", buffer, ctypes.byref(size))
    ask(library, "LockTensorBuffer", buffer, ctypes.byref(address), ctypes.c_int(mode))
    try:
        yield int(address.value or 0), size.value
    finally:
        ask(library, "UnlockTensorBuffer", buffer)


def running(
    library: Any, compiled: ctypes.c_void_p, given: list[ctypes.c_void_p], wanted: list[ctypes.c_void_p]
) -> Callable[[], None]:
    """What runs a model from and into these buffers; it raises RefusedError where that does not succeed."""
    call = (
        compiled,
        ctypes.c_size_t(0),
        ctypes.c_size_t(len(given)),
        (ctypes.c_void_p * len(given))(*(buffer.value for buffer in given)),
        ctypes.c_size_t(len(wanted)),
        (ctypes.c_void_p * len(wanted))(*(buffer.value for buffer in wanted)),
    )
    function = library.LiteRtRunCompiledModel

    def run() -> None:
        if function(*call) != 0:
            raise RefusedError("RunCompiledModel")

    return run
