"""Whether a program in few bits serves other batches than the one that it was calibrated for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.deduplication import share_constants
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.sizes.open_batch import with_open_batch
from pocketgraph.litert.sizes.operator_sizes import NotCertain
from pocketgraph.litert.writing import writer
from pocketgraph.quantization.core.program_runner import Sample, Samples, as_fed, real
from pocketgraph.quantization.program_pass import copied
from pocketgraph.runtime.comparison.compare import compared
from pocketgraph.runtime.feeding.synthetic_feeds import random_values
from pocketgraph.runtime.session import Session

BATCHES = (3, 2)
"""Which are tried, in samples."""
NEAR = 0.005
"""The largest difference between a row among others and alone, as a share of the peak, where sums of floats are in
another order; a code may be the next one."""


def with_proven_batch(
    written: Program,
    is_open: Sequence[bool],
    graph: Graph,
    ends: tuple[Sequence[str], Sequence[str]],
    samples: Samples,
    threads: int,
) -> tuple[Program, Mapping[Value, tuple[int, ...]]] | str:
    """The program for any batch and its open shapes, where several samples give together what each gives alone, of the
    graph and of the program's file; else why it is for one batch, "" where none is open.

    Args:
        written: the program as its file has it, of the samples' batch.
        is_open: of each input, whether the graph leaves its batch open.
        graph: what it was made of.
        ends: the tensors of the graph that are its inputs, and those that are its outputs.
        samples: inputs in numbers; where they are few or alike, more are made up.
        threads: how many to compute with.
    """
    if not any(is_open):
        return ""
    try:
        program, shapes = with_open_batch(copied(written), is_open)
        share_constants(program)
        batched = [value in shapes for value in written.outputs]
        rows = _rows(written.inputs, is_open, samples)
        with Session(graph, threads, check="never") as session:  # no check goes on when its file is gone

            def answers(sample: Sample) -> Sequence[Array]:
                return session.run([*ends[1]], dict(zip(ends[0], sample, strict=True)))

            if not _are_alone(answers, rows, is_open, batched, [0.0] * len(batched)):
                return "the model weighs samples of a batch against each other"
        runner = PlainRunner(b"".join(writer.pieces(program, open_shapes=shapes)), threads, is_bare=False)

        def run(sample: Sample) -> Sequence[Array]:
            fed = as_fed(sample, written.inputs)
            runner.resize({place: array.shape for place, array in enumerate(fed) if is_open[place]})
            return [real(value, array) for value, array in zip(written.outputs, runner.run(fed), strict=True)]

        steps = _steps(written)
        if all(_are_alone(run, rows[:batch], is_open, batched, steps) for batch in BATCHES):
            return program, shapes
        return "LiteRT gives other results for several samples together"
    except NotCertain as error:
        return str(error)
    except (PocketgraphError, RuntimeError, ValueError, MemoryError):  # LiteRT's own are the next two
        return "several samples cannot be run together"


def _rows(inputs: Sequence[Value], is_open: Sequence[bool], samples: Samples) -> list[list[Array]]:
    """Samples that differ where the batch is open, as many as are tried together.

    Raises:
        NotCertain: they do not differ.
    """
    rng = np.random.default_rng(0)
    found = [list(sample) for sample in islice(samples(), max(BATCHES))] or [
        [random_values(value.dtype, value.shape, rng, value.name) for value in inputs]
    ]
    first = found[0]
    found += [first] * (max(BATCHES) - len(found))
    others = [
        [_another(array, own, rng) if opens else own for array, own, opens in zip(row, first, is_open, strict=True)]
        for row in found[1:]
    ]
    if all(np.array_equal(array, own) for row in others for array, own in zip(row, first, strict=True)):
        raise NotCertain("no samples that differ can be made up")
    return [first, *others]


def _another(array: Array, first: Array, rng: np.random.Generator) -> Array:
    """What a sample has for an input, or, where that is what the first has, numbers within its reach."""
    if not np.array_equal(array, first):
        return array
    if first.dtype.kind == "b":
        return np.asarray(rng.random(first.shape) < 0.5)
    if first.dtype.kind in "iu" and first.size:
        return np.asarray(rng.integers(min(first.min(), 1), first.max(), first.shape, first.dtype, endpoint=True))
    if first.dtype.kind == "f":
        return np.asarray(rng.random(first.shape) * (first if first.any() else 1), first.dtype)
    return array


def _steps(written: Program) -> list[float]:
    """From one code of each output to the next, also where it is a float that was made of one; 0 of other floats."""
    made = written.producers()
    found = []
    for value in written.outputs:
        maker = made.get(value)
        coded = maker.operands[0] if maker is not None and maker.code == "DEQUANTIZE" else value
        found.append(coded.quantization.scales[0] if coded.quantization is not None else 0.0)
    return found


def _joined(rows: Sequence[Sequence[Array]], is_open: Sequence[bool]) -> list[Array]:
    """Several rows as one batch; what has none is that of the first."""
    return [
        np.concatenate(each) if opens else each[0] for each, opens in zip(zip(*rows, strict=True), is_open, strict=True)
    ]


def _are_alone(
    run: Callable[[Sample], Sequence[Array]],
    rows: Sequence[Sample],
    is_open: Sequence[bool],
    batched: Sequence[bool],
    steps: Sequence[float],
) -> bool:
    """Whether rows together give what each gives alone, or what is a step from it."""
    alone = _joined([run(row) for row in rows], batched)
    together = run(_joined(rows, is_open))
    found = [compared("", [pair], NEAR) for pair in zip(alone, together, strict=True)]
    return all(
        (one.passed or (not one.problem and one.largest <= 1.01 * step)) and not one.unproven
        for one, step in zip(found, steps, strict=True)
    )
