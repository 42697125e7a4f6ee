"""What values a tensor takes over many samples, in memory that does not grow with their number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.core.value_range import Range

BINS = 2048
MOST_COUNTED = 1 << 11  # values of one tensor and sample that go into the histogram; the extremes see more
MOST_CHANNELS = 1 << 14  # channels of a tensor that are observed one by one
MOST_ROWS = 96  # of one tensor and sample that the channels' extremes come from
FIRST = 16  # samples that are looked at this closely; each later one adds less that is new
LATER = 2  # times fewer values, rows and blocks of those
WHOLE = 8  # samples whose extremes are those of all values
TINY = 1e-30  # what is closer to zero counts as zero: no float32 says how many bins of such a width fit in anything
HUGE = 1e30  # width of a bin, from which differences do not fit in float32
BLOCK = 1 << 15  # values whose smallest and largest are found while they are in the cache


class TensorSummary(NamedTuple):
    """What is seen of one array, by whoever ran the program: the rest of the work is taking it in, in order.

    Attributes:
        low, high: its extremes.
        channel_low, channel_high: [channels], over some rows; None without channels.
        counted: some of the values, for the histogram.
        size: how many there are.
    """

    low: float
    high: float
    channel_low: Array | None
    channel_high: Array | None
    counted: Array
    size: int


@dataclass(eq=False)
class Observation:
    """Extremes, per channel too (the last axis), moments, and a histogram of all values seen.

    Attributes:
        name: the tensor's name.
        bounds: what no value can be beyond; extremes that they settle are not searched for in every value.
        is_derived: the tensor only holds values of others that are observed too, so that its own extremes need not be
            exact: they come from the places that the channels' do.
        peaks: the largest magnitude of each sample.
        samples: how many arrays were added.
        channel_low, channel_high: float32 [channels], over some places of each sample; None without channels.
    """

    name: str
    bounds: tuple[float, float] = (-np.inf, np.inf)
    is_derived: bool = False
    peaks: list[float] = field(default_factory=list, init=False)
    samples: int = field(default=0, init=False)
    low: float = field(default=np.inf, init=False)
    high: float = field(default=-np.inf, init=False)
    channel_low: Array | None = field(default=None, init=False)
    channel_high: Array | None = field(default=None, init=False)
    counts: Array = field(default_factory=lambda: np.zeros(BINS), init=False)
    _start: float = field(default=0.0, init=False)
    _width: float = field(default=0.0, init=False)  # of one bin; 0 until a value other than 0 was seen

    def add(self, values: Array) -> None:
        """Takes another sample's array in.

        Raises:
            RunError: it holds NaN or infinity.
        """
        if values.size:
            self.take(self.summary(values))

    def summary(self, values: Array) -> TensorSummary:
        """What is seen of the next sample's array; nothing changes but by ``take``."""
        low, high, channel_low, channel_high = self._extremes(values)
        # scores are few, and the rare large ones among them are what counts
        number = self.samples + 1
        step = 1 if values.size <= MOST_COUNTED else -(-values.size // _fewer(MOST_COUNTED, number))
        # an odd step does not keep to the same channels
        counted = values.reshape(-1)[number % step :: step | 1] if step > 1 else values.reshape(-1)
        return TensorSummary(low, high, channel_low, channel_high, np.array(counted), values.size)

    def take(self, seen: TensorSummary) -> None:
        """Takes in what was seen of the next sample.

        Raises:
            RunError: it holds NaN or infinity.
        """
        low, high = seen.low, seen.high
        if seen.channel_low is not None and seen.channel_high is not None:
            if self.channel_low is None or self.channel_high is None:
                self.channel_low, self.channel_high = seen.channel_low, seen.channel_high
            else:
                self.channel_low = np.minimum(self.channel_low, seen.channel_low)
                self.channel_high = np.maximum(self.channel_high, seen.channel_high)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RunError(
                f"sample {self.samples + 1} gives a value that is not finite",
                where=self.name,
                hint="take that sample out, or check the preprocessing (input_mean, input_std)",
            )
        self.samples += 1
        self.peaks.append(max(-low, high))
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._count(seen.counted, seen.size)

    STATE = ("ends", "bins", "counts", "channel_low", "channel_high", "peaks")

    def state(self) -> dict[str, Array]:
        """All that was seen, as arrays by the names in STATE (without those of channels when there are none)."""
        found: dict[str, Array] = {
            "ends": np.array([self.low, self.high]),
            "bins": np.array([self._start, self._width, self.samples]),
            "counts": self.counts,
            "peaks": np.array(self.peaks),
        }
        if self.channel_low is not None and self.channel_high is not None:
            found |= {"channel_low": self.channel_low, "channel_high": self.channel_high}
        return found

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from what ``state`` gave."""
        self.low, self.high = (float(end) for end in state["ends"])
        self._start, self._width = (float(number) for number in state["bins"][:2])
        self.samples = int(state["bins"][2])
        self.counts = np.array(state["counts"])
        self.channel_low, self.channel_high = state.get("channel_low"), state.get("channel_high")
        self.peaks = np.asarray(state.get("peaks", ())).tolist()

    @property
    def range(self) -> Range:
        """From the smallest to the largest value."""
        return Range(float(self.low), float(self.high))

    @property
    def spread(self) -> float:
        """How much less than the farthest sample reaches the median one does, as a share: 0 where all are alike."""
        farthest = max(self.peaks, default=0.0)
        return 1 - float(np.median(self.peaks)) / farthest if farthest > 0 else 0.0

    def of_channels(self, source: Array) -> Observation:
        """The same for a tensor that has these of the channels, int [channels], some perhaps more than once."""
        result = copy(self)
        result.counts = self.counts.copy()
        if self.channel_low is not None and self.channel_high is not None:
            result.channel_low, result.channel_high = self.channel_low[source], self.channel_high[source]
        return result

    @property
    def centres(self) -> Array:
        """The middle of each bin, float64 [BINS]."""
        centres: Array = self._start + self._width * (np.arange(BINS) + 0.5)
        return centres

    def _extremes(self, values: Array) -> tuple[float, float, Array | None, Array | None]:
        """The smallest and largest value, and those of the channels over some rows."""
        channels = values.shape[-1] if values.ndim else 1
        if not (1 < channels <= MOST_CHANNELS and values.size // channels > 1):
            return float(values.min()), float(values.max()), None, None
        rows = values.reshape(-1, channels)
        step = -(-len(rows) // _fewer(MOST_ROWS, self.samples))
        rows = rows[self.samples % step :: step]
        low, high = rows.min(axis=0), rows.max(axis=0)
        values_low, values_high = float(low.min()), float(high.max())
        if self.is_derived:
            return values_low, values_high, low, high
        floor, ceiling = self.bounds
        if floor < 0:  # ranges hold 0 anyway
            ends = np.array([(block.min(), block.max()) for block in self._blocks(values)])  # NaN stays NaN
            return float(ends[:, 0].min()), float(ends[:, 1].max()), low, high
        if not max(values_high, self.high) >= ceiling:
            values_high = float(np.max([block.max() for block in self._blocks(values)]))
        return values_low, values_high, low, high

    def _blocks(self, values: Array) -> Iterator[Array]:
        """The values that the extremes come from: all, but of later large arrays in turn every other block."""
        flat = values.reshape(-1)
        step = 1 if self.samples < WHOLE or flat.size < 2 * BLOCK else LATER
        for start in range(self.samples % step * BLOCK, flat.size, step * BLOCK):
            yield flat[start : start + BLOCK]

    def _count(self, counted: Array, size: int) -> None:
        """Puts some of ``size`` values into the histogram, for all of them."""
        self._make_room()
        if not self._width:
            self.counts[0] += size
            return
        if self._width > HUGE:
            counted = counted.astype(np.float64)
        index = ((counted - self._start) * (1 / self._width)).astype(np.int64)
        np.minimum(index, BINS - 1, out=index)
        np.maximum(index, 0, out=index)
        self.counts += np.bincount(index, minlength=BINS) * (size / max(counted.size, 1))

    def _make_room(self) -> None:
        """Doubles the width of the bins until they hold every value; the counts move with them."""
        if not self._width:
            if self.low > -TINY and self.high < TINY:
                return
            zeros = self.counts[0]
            low, high = min(self.low, 0.0), max(self.high, 0.0)
            self._width = (high - low) / BINS
            self._start = low
            self.counts[:] = 0
            self.counts[min(int(-low / self._width), BINS - 1)] = zeros
        while self.high > self._start + self._width * BINS:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2)])
            self._width *= 2
        while self.low < self._start:
            self.counts = np.concatenate([np.zeros(BINS // 2), self.counts.reshape(-1, 2).sum(axis=1)])
            self._start -= self._width * BINS
            self._width *= 2


def _fewer(most: int, samples: int) -> int:
    """How many of a sample's values or rows to look at, when there are ``most`` of the first ones."""
    return most if samples <= FIRST else most // LATER
