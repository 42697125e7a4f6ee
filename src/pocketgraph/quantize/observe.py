"""What values a tensor takes over many samples, in memory that does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.quantize.ranges import Range

Array = np.ndarray[Any, Any]
BINS = 2048
MOST_COUNTED = 1 << 11  # values of one tensor and sample that go into the histogram; the extremes see all
MOST_CHANNELS = 1 << 14
MOST_ROWS = 96  # of one tensor and sample that the channels' extremes come from


class Observation:
    """Extremes, per channel too (the last axis), moments, and a histogram of all values seen.

    Attributes:
        name: the tensor's name.
        samples: how many arrays were added.
        channel_low, channel_high: float32 [channels], over some places of each sample; None without channels.
    """

    def __init__(self, name: str, bounds: tuple[float, float] = (-np.inf, np.inf)) -> None:
        """``bounds`` are what no value can be beyond; extremes that they settle are not searched for in every value."""
        self.name = name
        self.bounds = bounds
        self.samples = 0
        self.low = np.inf
        self.high = -np.inf
        self.channel_low: Array | None = None
        self.channel_high: Array | None = None
        self.counts = np.zeros(BINS)
        self._start = 0.0
        self._width = 0.0  # of one bin; 0 until a value other than 0 was seen

    def add(self, values: Array) -> None:
        """Takes another sample's array in.

        Raises:
            RunError: it holds NaN or infinity.
        """
        if not values.size:
            return
        low, high = self._extremes(values)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RunError(
                f"sample {self.samples + 1} gives a value that is not finite",
                where=self.name,
                hint="take that sample out, or check the preprocessing (input_mean, input_std)",
            )
        self.samples += 1
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._count(values)

    @property
    def range(self) -> Range:
        """From the smallest to the largest value."""
        return Range(float(self.low), float(self.high))

    @property
    def centres(self) -> Array:
        """The middle of each bin, float64 [BINS]."""
        centres: Array = self._start + self._width * (np.arange(BINS) + 0.5)
        return centres

    def _extremes(self, values: Array) -> tuple[float, float]:
        channels = values.shape[-1] if values.ndim else 1
        if 1 < channels <= MOST_CHANNELS and values.size // channels > 1:
            rows = values.reshape(-1, channels)
            step = -(-len(rows) // MOST_ROWS)
            rows = rows[self.samples % step :: step]
            low, high = rows.min(axis=0), rows.max(axis=0)
            if self.channel_low is None or self.channel_high is None:
                self.channel_low, self.channel_high = low, high
            else:
                self.channel_low = np.minimum(self.channel_low, low)
                self.channel_high = np.maximum(self.channel_high, high)
            values_low, values_high = float(low.min()), float(high.max())
        else:
            return float(values.min()), float(values.max())
        floor, ceiling = self.bounds
        if floor < 0:  # ranges hold 0 anyway
            values_low = float(values.min())
        if not max(values_high, self.high) >= ceiling:
            values_high = float(values.max())
        return values_low, values_high

    def _count(self, values: Array) -> None:
        self._make_room()
        if not self._width:
            self.counts[0] += values.size
            return
        step = -(-values.size // MOST_COUNTED)
        # an odd step does not keep to the same channels
        taken = values.reshape(-1)[self.samples % step :: step | 1] if step > 1 else values.reshape(-1)
        index = ((taken - self._start) * (1 / self._width)).astype(np.int64)
        np.clip(index, 0, BINS - 1, out=index)
        self.counts += np.bincount(index, minlength=BINS) * (values.size / max(taken.size, 1))

    def _make_room(self) -> None:
        """Doubles the width of the bins until they hold every value; the counts move with them."""
        if not self._width:
            if self.low == self.high == 0:
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
