"""LiteRT's own profile of a model: how long each of its operations, and of XNNPACK's inside, took while it ran whole.

The profiler is in LiteRT's C library but not in its Python package, so the library is called directly. The calls and
the record of an event are those of the C headers litert_profiler.h, litert_profiler_event.h and litert_compiled_model.h
(LiteRT, Apache-2.0) of the versions in ``c_library.KNOWN``; with another version nothing is read.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.litert.constant import Array
from pocketgraph.litert.native import c_library
from pocketgraph.litert.native.c_library import WRITE, RefusedError, ask
from pocketgraph.litert.native.native_messages import quiet

OPERATOR, DELEGATED = 1 << 1, (1 << 2, 1 << 3)  # kinds of events: LiteRT's own operations, and a delegate's
MOST_EVENTS = 1 << 16  # of one run
LEAST_RUNS, MOST_RUNS = 5, 400  # profiled runs
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


def profile(model: str, threads: int, inputs: Sequence[Array]) -> list[Timed] | None:
    """Runs a model file and returns its operations in running order; None where LiteRT does not tell.

    Args:
        model: the path of a .tflite file.
        threads: how many to compute with.
        inputs: what to compute with, in the model's order.
    """
    if not inputs:
        return None
    try:
        with quiet(), ExitStack() as stack:
            found = _profiled(c_library.library(), stack, model, threads, inputs)
    except (OSError, AttributeError, RefusedError):
        return None
    return _averaged(found)


def _profiled(
    library: Any, stack: ExitStack, path: str, threads: int, inputs: Sequence[Array]
) -> list[list[tuple[str, int, int, int]]]:
    """(tag, kind, number, microseconds) of every event of each run, after one run that warms up."""
    environment = c_library.environment(library, stack)
    model = c_library.model_of(library, stack, environment, path)
    texts = {b"runtime_options_string": "enable_profiling = true\n", b"xnnpack": f"num_threads = {threads}\n"}
    options = c_library.options(library, stack, texts)
    compiled = c_library.compiled(library, stack, environment, model, options)
    profiler = c_library.found(library, "CompiledModelGetProfiler", compiled)
    given = c_library.buffers(library, stack, environment, model, compiled, "Input")
    wanted = c_library.buffers(library, stack, environment, model, compiled, "Output")
    if not profiler.value or len(given) != len(inputs):
        raise RefusedError("CompiledModelGetProfiler")
    for buffer, array in zip(given, inputs, strict=True):
        with c_library.locked(library, buffer, WRITE) as (address, size):
            content = np.ascontiguousarray(array)
            if content.nbytes != size:
                raise RefusedError("LockTensorBuffer")
            ctypes.memmove(address, content.ctypes.data, size)
    run = c_library.running(library, compiled, given, wanted)
    run()
    events: list[list[tuple[str, int, int, int]]] = []
    spent = 0
    while len(events) < MOST_RUNS and (len(events) < LEAST_RUNS or spent < ENOUGH):
        ask(library, "ResetProfiler", profiler)
        ask(library, "StartProfiler", profiler)
        began = time.perf_counter()
        run()
        spent += int((time.perf_counter() - began) * 1e6)
        ask(library, "StopProfiler", profiler)
        events.append(_events(library, profiler))
    return events


def _events(library: Any, profiler: ctypes.c_void_p) -> list[tuple[str, int, int, int]]:
    """What was noted since the profiler was started."""
    count = ctypes.c_int()
    ask(library, "GetNumProfilerEvents", profiler, ctypes.byref(count))
    if not 0 < count.value <= MOST_EVENTS:
        raise RefusedError("GetNumProfilerEvents")
    records = (_Event * count.value)()
    ask(library, "GetProfilerEvents", profiler, count, records)
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
