"""Whether a program in few bits serves other batches than the one that it was calibrated for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.sizes.open_batch import with_open_batch
from pocketgraph.litert.sizes.operator_sizes import NotCertain
from pocketgraph.litert.writing import writer
from pocketgraph.quantization.core.program_runner import Sample, Samples, as_fed, real
from pocketgraph.runtime.comparison.compare import compared
from pocketgraph.runtime.feeding.synthetic_feeds import random_values
from pocketgraph.runtime.session import Session

BATCHES = (3, 2)
"""Which are tried, in samples."""
NEAR = 0.005
"""The largest difference between a row among others and alone, as a share of the peak: of codes one may be the next
where sums of floats are in another order."""


def serves_batches(
    written: Program,
    is_open: Sequence[bool],
    graph: Graph,
    ends: tuple[Sequence[str], Sequence[str]],
    samples: Samples,
    threads: int,
) -> bool:
    """Whether several samples give together what each gives alone, of the graph and of the program's file.

    Args:
        written: the program as its file has it, of the samples' batch.
        is_open: of each input, whether the graph leaves its batch open.
        graph: what it was made of.
        ends: the tensors of the graph that are its inputs, and those that are its outputs.
        samples: inputs in numbers; where there are none, they are made up.
        threads: how many to compute with.
    """
    if not any(is_open):
        return False
    try:
        program, shapes = with_open_batch(written, is_open)
        batched = [value in shapes for value in written.outputs]
        rows = _rows(written.inputs, is_open, samples)
        with Session(graph, threads, check="never") as session:  # no check goes on when its file is gone

            def answers(sample: Sample) -> Sequence[Array]:
                return session.run([*ends[1]], dict(zip(ends[0], sample, strict=True)))

            if not _are_alone(answers, rows, is_open, batched):
                return False
        runner = PlainRunner(b"".join(writer.pieces(program, open_shapes=shapes)), threads, is_bare=False)

        def run(sample: Sample) -> Sequence[Array]:
            fed = as_fed(sample, written.inputs)
            runner.resize({place: array.shape for place, array in enumerate(fed) if is_open[place]})
            return [real(value, array) for value, array in zip(written.outputs, runner.run(fed), strict=True)]

        return all(_are_alone(run, rows[:batch], is_open, batched) for batch in BATCHES)
    except (NotCertain, PocketgraphError, RuntimeError, ValueError):  # LiteRT's own are the last two
        return False


def _rows(inputs: Sequence[Value], is_open: Sequence[bool], samples: Samples) -> list[list[Array]]:
    """Samples that differ where the batch is open, as many as are tried together."""
    rng = np.random.default_rng(0)
    found = [list(sample) for sample in islice(samples(), max(BATCHES))] or [
        [random_values(value.dtype, value.shape, rng, value.name) for value in inputs]
    ]
    found += [[np.roll(array, at + 1) for array in found[0]] for at in range(max(BATCHES) - len(found))]
    return [
        [array if opens else first for array, first, opens in zip(row, found[0], is_open, strict=True)] for row in found
    ]


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
) -> bool:
    """Whether rows together give what each gives alone."""
    alone = _joined([run(row) for row in rows], batched)
    together = run(_joined(rows, is_open))
    found = [compared("", [pair], NEAR) for pair in zip(alone, together, strict=True)]
    return all(one.passed and not one.unproven for one in found)
