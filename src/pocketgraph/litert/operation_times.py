"""Times the operations of a part: by LiteRT's own profile where it can be had, else one by one.

One by one, each operation is made a model of its own and run alone, on made-up data of the right types and shapes;
equal ones share one measurement. Alone, an operation finds its weights in the CPU's caches more often than in the whole
model, so the times are scaled to add up to what the whole part takes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert.constant import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.writing import writer

SAMPLE_SECONDS = 0.02  # for each operation
MOST_SAMPLES = 50  # runs
WHOLE_RUNS = 5

PROFILED = (
    "inside LiteRT the times are its own profile of the whole part, scaled to what the part took here; operations that "
    "were fused count for their main node"
)
ONE_BY_ONE = (
    "LiteRT's library does not tell the times of its operations here: each was timed alone, and scaled to what the "
    "whole part took; operations that were fused count for their main node"
)

OperationTime = tuple[tuple[str, ...], str, float]


def operation_times(
    program: Program, threads: int, inputs: Sequence[Array], whole: Callable[[], object]
) -> tuple[list[OperationTime], str]:
    """(the graph nodes that an operation computes, its operator, microseconds), in running order; and how it is known.

    Args:
        program: the part.
        threads: how many to compute with.
        inputs: what enters the program, in its order.
        whole: runs the whole part once.
    """
    alone, how = _profiled(program, threads, inputs), PROFILED
    scale = 1.0
    if alone is None:
        alone, how = _one_by_one(program, threads), ONE_BY_ONE
        total = sum(alone)
        scale = _whole_seconds(whole) * 1e6 / total if total > 0 else 0.0
    times = [
        (operation.nodes, operation.code, took * scale)
        for operation, took in zip(program.operations, alone, strict=True)
    ]
    return times, how


def _profiled(program: Program, threads: int, inputs: Sequence[Array]) -> list[float] | None:
    """Microseconds of each operation while the program ran whole; None where LiteRT does not tell."""
    import tempfile

    from pocketgraph.litert.native.attribution import shared_out
    from pocketgraph.litert.native.profiler import profile

    read = {value for operation in program.operations for value in operation.inputs}
    entering = [(v, a) for v, a in zip(program.inputs, inputs, strict=True) if v in read]
    made = {value for operation in program.operations for value in operation.outputs}
    leaving = [value for value in dict.fromkeys(program.outputs) if value in made]
    if not leaving:
        return None
    model = Program([value for value, _ in entering], leaving, program.operations)
    try:
        handle, path = tempfile.mkstemp(suffix=".tflite")
    except OSError:
        return None
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in writer.pieces(model):
                file.write(piece)
        events = profile(path, threads, [array for _, array in entering])
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return None if events is None else shared_out(events, program.operations)


def _one_by_one(program: Program, threads: int) -> list[float]:
    """Microseconds of each operation by itself."""
    known: dict[Hashable, float] = {}
    alone: list[float] = []
    for operation in program.operations:
        kind = _kind(operation)
        if kind not in known:
            known[kind] = _seconds(operation, threads) * 1e6
        alone.append(known[kind])
    return alone


def _whole_seconds(whole: Callable[[], object]) -> float:
    samples = []
    for _ in range(WHOLE_RUNS):
        start = time.perf_counter()
        whole()
        samples.append(time.perf_counter() - start)
    return float(np.median(samples))


def _kind(operation: Operation) -> Hashable:
    """What two operations that take the same time have in common."""
    operands = tuple(
        None
        if value is None
        else (
            value.dtype.name,
            value.shape,
            value.constant is not None,
            value.constant.numpy().tobytes() if value.constant is not None and value.size <= 16 else None,
        )
        for value in operation.inputs
    )
    return operation.code, operands, tuple(value.shape for value in operation.outputs), repr(operation.options)


def _seconds(operation: Operation, threads: int) -> float:
    """How long one operation takes by itself; 0 when LiteRT does not run it alone."""
    variables = [v for v in dict.fromkeys(operation.inputs) if v is not None and v.constant is None]
    program = Program(variables, list(operation.outputs), [operation])
    try:
        runner = PlainRunner(b"".join(bytes(piece) for piece in writer.pieces(program)), threads)
    except RunError:
        return 0.0
    try:
        return runner.seconds(_synthetic(variables), SAMPLE_SECONDS, MOST_SAMPLES)
    except RuntimeError:
        return 0.0
    finally:
        runner.close()


def _synthetic(values: Sequence[Value]) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        random.random(value.shape, np.float32) if value.dtype.is_floating else np.zeros(value.shape, value.dtype.numpy)
        for value in values
    ]
