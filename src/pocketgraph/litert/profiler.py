"""LiteRT's own profile of a model: how long each of its operations, and of XNNPACK's inside, took while it ran whole.

The profiler is in LiteRT's C library but not in its Python package, so the library is called directly. The calls and
the record of an event are those of the C headers litert_profiler.h, litert_profiler_event.h and litert_compiled_model.h
(LiteRT, Apache-2.0) of the versions in ``KNOWN``; with another version nothing is read.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.litert.cache import engine_version
from pocketgraph.litert.constant import Array
from pocketgraph.litert.native_messages import quiet

KNOWN = ("2.3.",)  # beginnings of versions whose event record is the one below
CPU, WRITE, READ_TYPE_BYTES = 1, 1, 256
OPERATOR, DELEGATED = 1 << 1, (1 << 2, 1 << 3)  # kinds of events: LiteRT's own operations, and a delegate's
MOST_EVENTS = 1 << 16
LEAST_RUNS, MOST_RUNS = 5, 400
OUTLIER = 3  # medians, beyond which one time of an operation says more of the machine than of the operation
ENOUGH = 100_000
"""Microseconds of running after which no more samples are taken: the library counts whole ones, whose mean over many
runs tells shorter times too."""
LONGEST = 600_000_000  # microseconds; more is no time


class Timed(NamedTuple):
    """One operation of a profile.

    Attributes:
        name: LiteRT's name of it (``CAST``), or XNNPACK's (``Convolution (NHWC, F32) IGEMM``).
        node: the number of the operation in the model; None for XNNPACK's.
        microseconds: the mean over the runs.
    """

    name: str
    node: int | None
    microseconds: float


class _Event(ctypes.Structure):
    _fields_ = (
        ("tag", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("start", ctypes.c_uint64),
        ("elapsed", ctypes.c_uint64),
        ("memory", ctypes.c_int64 * 6),
        ("number", ctypes.c_int64),
        ("number2", ctypes.c_int64),
        ("source", ctypes.c_int32),
    )


class _RefusedError(Exception):
    """A call of the library did not succeed."""


def profile(model: str, threads: int, inputs: Sequence[Array]) -> list[Timed] | None:
    """Runs a model file and returns its operations in running order; None where LiteRT does not tell.

    Args:
        model: the path of a .tflite file.
        threads: how many to compute with.
        inputs: what to compute with, in the model's order.
    """
    if not engine_version().startswith(KNOWN) or not inputs:
        return None
    try:
        with quiet(), ExitStack() as stack:
            found = _profiled(_library(), stack, model, threads, inputs)
    except (OSError, AttributeError, _RefusedError):
        return None
    return _averaged(found)


def _library() -> Any:
    import ai_edge_litert

    folder = next(iter(ai_edge_litert.__path__))
    return ctypes.CDLL(os.path.join(folder, "libLiteRt.so"))


def _ask(library: Any, name: str, *arguments: Any) -> None:
    """Calls a function that gives a status.

    Raises:
        _RefusedError: it is not 0.
    """
    function = getattr(library, f"LiteRt{name}")
    function.restype = ctypes.c_int
    if function(*arguments) != 0:
        raise _RefusedError(name)


def _made(library: Any, stack: ExitStack, what: str, name: str, *arguments: Any) -> ctypes.c_void_p:
    """A new object, destroyed when the stack ends."""
    handle = ctypes.c_void_p()
    _ask(library, name, *arguments, ctypes.byref(handle))
    stack.callback(getattr(library, f"LiteRtDestroy{what}"), handle)
    return handle


def _found(library: Any, name: str, *arguments: Any) -> ctypes.c_void_p:
    """A part of another object."""
    handle = ctypes.c_void_p()
    _ask(library, name, *arguments, ctypes.byref(handle))
    return handle


def _profiled(
    library: Any, stack: ExitStack, path: str, threads: int, inputs: Sequence[Array]
) -> list[list[tuple[str, int, int, int]]]:
    """(tag, kind, number, microseconds) of every event of each run, after one run that warms up."""
    kept: list[object] = []  # what the options point to; let go last
    stack.callback(kept.clear)
    environment = _made(library, stack, "Environment", "CreateEnvironment", ctypes.c_int(0), None)
    model = _made(library, stack, "Model", "CreateModelFromFile", environment, ctypes.c_char_p(os.fsencode(path)))
    options = _made(library, stack, "Options", "CreateOptions")
    _ask(library, "SetOptionsHardwareAccelerators", options, ctypes.c_int(CPU))
    for name, text in ((b"runtime_options_string", b"enable_profiling = true\n"), (b"xnnpack", _threads(threads))):
        kept.append(_add_option(library, options, name, text))
    compiled = _made(library, stack, "CompiledModel", "CreateCompiledModel", environment, model, options)
    profiler = _found(library, "CompiledModelGetProfiler", compiled)
    graph = _found(library, "GetModelSubgraph", model, ctypes.c_size_t(0))
    given = _buffers(library, stack, environment, compiled, graph, "Input")
    wanted = _buffers(library, stack, environment, compiled, graph, "Output")
    if not profiler.value or len(given) != len(inputs):
        raise _RefusedError("CompiledModelGetProfiler")
    for buffer, array in zip(given, inputs, strict=True):
        with _locked(library, buffer) as (address, size):
            content = np.ascontiguousarray(array)
            if content.nbytes != size:
                raise _RefusedError("LockTensorBuffer")
            ctypes.memmove(address, content.ctypes.data, size)
    call = (
        compiled,
        ctypes.c_size_t(0),
        ctypes.c_size_t(len(given)),
        (ctypes.c_void_p * len(given))(*(buffer.value for buffer in given)),
        ctypes.c_size_t(len(wanted)),
        (ctypes.c_void_p * len(wanted))(*(buffer.value for buffer in wanted)),
    )
    _ask(library, "RunCompiledModel", *call)
    events: list[list[tuple[str, int, int, int]]] = []
    spent = 0
    while len(events) < MOST_RUNS and (len(events) < LEAST_RUNS or spent < ENOUGH):
        _ask(library, "ResetProfiler", profiler)
        _ask(library, "StartProfiler", profiler)
        began = time.perf_counter()
        _ask(library, "RunCompiledModel", *call)
        spent += int((time.perf_counter() - began) * 1e6)
        _ask(library, "StopProfiler", profiler)
        events.append(_events(library, profiler))
    return events


def _threads(threads: int) -> bytes:
    return f"num_threads = {threads}\n".encode()


def _add_option(library: Any, options: ctypes.c_void_p, name: bytes, text: bytes) -> object:
    """Adds a group of options, as the text in which LiteRT passes them on; what comes back must outlive the options."""
    content = ctypes.create_string_buffer(text)
    keep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    option = ctypes.c_void_p()
    _ask(
        library, "CreateOpaqueOptions", ctypes.c_char_p(name), ctypes.cast(content, ctypes.c_void_p), keep,
        ctypes.byref(option),
    )  # fmt: skip
    _ask(library, "AddOpaqueOptions", options, option)
    return content, keep


def _buffers(
    library: Any,
    stack: ExitStack,
    environment: ctypes.c_void_p,
    compiled: ctypes.c_void_p,
    graph: ctypes.c_void_p,
    side: str,
) -> list[ctypes.c_void_p]:
    """Memory for each input or output (``side``)."""
    count = ctypes.c_size_t()
    _ask(library, f"GetNumSubgraph{side}s", graph, ctypes.byref(count))
    found = []
    for index in range(count.value):
        tensor = _found(library, f"GetSubgraph{side}", graph, ctypes.c_size_t(index))
        kind = (ctypes.c_char * READ_TYPE_BYTES)()
        _ask(library, "GetRankedTensorType", tensor, kind)
        place = (compiled, ctypes.c_size_t(0), ctypes.c_size_t(index))
        needs = _found(library, f"GetCompiledModel{side}BufferRequirements", *place)
        found.append(
            _made(library, stack, "TensorBuffer", "CreateManagedTensorBufferFromRequirements", environment, kind, needs)
        )
    return found


@contextmanager
def _locked(library: Any, buffer: ctypes.c_void_p) -> Iterator[tuple[int, int]]:
    """The address and size in bytes of a buffer's content."""
    size, address = ctypes.c_size_t(), ctypes.c_void_p()
    _ask(library, "GetTensorBufferPackedSize", buffer, ctypes.byref(size))
    _ask(library, "LockTensorBuffer", buffer, ctypes.byref(address), ctypes.c_int(WRITE))
    try:
        yield int(address.value or 0), size.value
    finally:
        _ask(library, "UnlockTensorBuffer", buffer)


def _events(library: Any, profiler: ctypes.c_void_p) -> list[tuple[str, int, int, int]]:
    """What was noted since the profiler was started."""
    count = ctypes.c_int()
    _ask(library, "GetNumProfilerEvents", profiler, ctypes.byref(count))
    if not 0 < count.value <= MOST_EVENTS:
        raise _RefusedError("GetNumProfilerEvents")
    records = (_Event * count.value)()
    _ask(library, "GetProfilerEvents", profiler, count, records)
    return [
        ((record.tag or b"").decode("utf-8", "replace"), record.kind, record.number, record.elapsed)
        for record in records
        if record.kind == OPERATOR or record.kind in DELEGATED
    ]


def _averaged(runs: Sequence[Sequence[tuple[str, int, int, int]]]) -> list[Timed] | None:
    """The runs laid over each other; None when they are not alike."""
    if not runs[0] or any(len(run) != len(runs[0]) for run in runs):
        return None
    result = []
    for column in zip(*runs, strict=True):
        tag, kind, number, _ = column[0]
        if any(other[:3] != column[0][:3] or other[3] > LONGEST for other in column):
            return None
        took = sorted(other[3] for other in column)
        most = OUTLIER * took[len(took) // 2] + 1  # what takes much longer once was interrupted
        mean = sum(min(each, most) for each in took) / len(runs)
        result.append(Timed(tag, number if kind == OPERATOR else None, mean))
    return result
