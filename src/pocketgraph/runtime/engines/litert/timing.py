"""Times the operations of a segment, which LiteRT itself does not tell through Python.

Each operation is made a model of its own and run alone, on made-up data of the right types and shapes; equal ones share
one measurement. Alone, an operation finds its weights in the CPU's caches more often than in the whole model, so the
times are scaled to add up to what the whole segment takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.runtime.engines.litert import writer
from pocketgraph.runtime.engines.litert.constant import Array
from pocketgraph.runtime.engines.litert.program import Operation, Program, Value
from pocketgraph.runtime.engines.litert.runner import PlainRunner

SAMPLE_SECONDS = 0.02  # for each operation
MOST_SAMPLES = 50
WHOLE_RUNS = 5

OperationTime = tuple[tuple[str, ...], str, float]


def operation_times(program: Program, threads: int, whole: Callable[[], object]) -> list[OperationTime]:
    """(the graph nodes that an operation computes, its operator, microseconds), in running order.

    Args:
        program: the segment.
        threads: how many to compute with.
        whole: runs the whole segment once.
    """
    known: dict[Hashable, float] = {}
    alone: list[float] = []
    for operation in program.operations:
        kind = _kind(operation)
        if kind not in known:
            known[kind] = _seconds(operation, threads)
        alone.append(known[kind])
    total = sum(alone)
    scale = _whole_seconds(whole) / total if total > 0 else 0.0
    return [
        (operation.nodes, operation.code, seconds * scale * 1e6)
        for operation, seconds in zip(program.operations, alone, strict=True)
    ]


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
        return runner.seconds(_made_up(variables), SAMPLE_SECONDS, MOST_SAMPLES)
    except RuntimeError:
        return 0.0
    finally:
        runner.close()


def _made_up(values: Sequence[Value]) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        random.random(value.shape, np.float32) if value.dtype.is_floating else np.zeros(value.shape, value.dtype.numpy)
        for value in values
    ]
