"""What a quantized program gains on the float one in bytes and time, and why where it does not gain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT, INT16
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.pages.quantities import duration
from pocketgraph.quantization.core.operator_rules import is_layer, weights
from pocketgraph.quantization.core.program_runner import Samples, as_fed
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

TURNS, FEWEST_TURNS = 5, 2  # in which both programs are timed one after the other; the least time counts
ENOUGH_SECONDS = 0.25  # seconds after which no further turn begins, but for the fewest
SECONDS_PER_TURN = 0.03  # seconds of each turn
MUCH_FASTER = 0.8  # of the time of floats, for which a larger file ships; less is noise of small models
SLOWER = 1.2  # of it, from which a file ships only where it is much smaller
FELT = 5e-5  # seconds that a run takes longer; less of them are felt nowhere, and noise
MUCH_SMALLER = 0.5  # of the file of floats
LITTLE = 100_000  # bytes saved, less of which no slower run is worth


@dataclass(frozen=True)
class FileComparison:
    """A file of fewer bits beside that of floats.

    Attributes:
        float_bytes, bytes: of the two.
        float_seconds, seconds: that they take for one sample.
    """

    float_bytes: int
    bytes: int
    float_seconds: float
    seconds: float

    @property
    def is_larger(self) -> bool:
        """Whether its file is the larger one, and it is not much faster."""
        return self.bytes > self.float_bytes and self.seconds >= MUCH_FASTER * self.float_seconds

    @property
    def is_slower(self) -> bool:
        """Whether it takes so much longer that it is felt."""
        return self.seconds > SLOWER * self.float_seconds and self.seconds - self.float_seconds > FELT

    @property
    def saves_little(self) -> bool:
        """Whether its file is not so much smaller that a slower run is worth it."""
        return self.bytes > MUCH_SMALLER * self.float_bytes or self.float_bytes - self.bytes < LITTLE

    @property
    def is_worse(self) -> bool:
        """Whether floats are the better ones to ship."""
        return self.is_larger or (self.is_slower and self.saves_little)


@dataclass(frozen=True)
class SizeAndLatency(FileComparison):
    """Two programs beside each other, as LiteRT files.

    Attributes:
        operations: how many the quantized one has.
        weights: how many weights the float one has.
        threads: how many threads computed.
        is_wide: whether tensors have codes of sixteen bits.
        is_in_float: whether layers compute in floats, with weights that are expanded before.
    """

    operations: int
    weights: int
    threads: int
    is_wide: bool = False
    is_in_float: bool = False

    def lines(self) -> list[str]:
        """The figures, and a warning for each that is no gain."""
        with_threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        return [
            f"LiteRT files: {self.float_bytes:,} bytes in float, {self.bytes:,} now "
            f"({self.bytes / self.float_bytes:.2f} x); a sample takes {duration(self.float_seconds)} in float, "
            f"{duration(self.seconds)} now ({self.seconds / self.float_seconds:.2f} x, {with_threads})",
            *(f"warning: {drawback}" for drawback in self.drawbacks()),
        ]

    def drawbacks(self) -> list[str]:
        """Why it is no gain, a sentence each; none where it is no larger and as fast."""
        said = []
        if self.is_larger:
            said.append(
                f"the file is larger than the float one, because what describes {self.operations} "
                f"operations and their codes is more than {self.weights:,} weights spare; "
                "the float model is the better one to ship"
            )
        if self.is_slower:
            if self.is_wide:
                why = (
                    ", because LiteRT computes codes of sixteen bits with plain kernels; "
                    f"{option('activations')}=int8 has others, and is not measured here"
                )
            elif self.is_in_float:
                why = ", though it computes in floats too: time both again where nothing else runs"
            else:
                why = f"; {option('mode')}=weights computes in float, and is not measured here: make it and compare"
            sizes = f", for {self.bytes:,} bytes instead of {self.float_bytes:,}" if self.saves_little else ""
            said.append(f"it is slower than the float model{sizes}{why}")
        return said


def measure_size_and_latency(
    exact: Program, quantized: Program, size: int, samples: Samples, threads: int = 1
) -> SizeAndLatency:
    """Times both programs in turn on the first sample, or on zeros where there is none.

    Args:
        exact: the float program.
        quantized: what was made of it.
        size: bytes of its file.
        samples: inputs of the float program.
        threads: how many threads to compute with.
    """
    content = model_bytes(exact)
    sample: Sequence[Array] = next(
        islice(samples(), 1), [np.zeros(value.shape, value.dtype.numpy) for value in exact.inputs]
    )
    runners = [PlainRunner(content, threads), PlainRunner(model_bytes(quantized), threads)]
    given = [[np.asarray(array, order="C") for array in sample], as_fed(sample, quantized.inputs)]
    least = [float("inf")] * 2
    begun = time.perf_counter()
    for turn in range(TURNS):
        if turn >= FEWEST_TURNS and time.perf_counter() - begun > ENOUGH_SECONDS:
            break
        for at, (runner, feed) in enumerate(zip(runners, given, strict=True)):
            least[at] = min(least[at], runner.seconds(None if turn else feed, SECONDS_PER_TURN, 200))
    layers = [o for o in exact.operations if is_layer(o)]
    count = sum(kernel.size for kernel in {weights(layer) for layer in layers})
    is_wide = any(value.dtype is INT16 for operation in quantized.operations for value in operation.outputs)
    in_float = all(o.operands[0].dtype is weights(o).dtype is FLOAT for o in quantized.operations if is_layer(o))
    return SizeAndLatency(
        len(content), size, least[0], least[1], len(quantized.operations), count, threads, is_wide, in_float
    )
