"""Chooses a tensor's range from its histogram: all of it, or less in exchange for finer steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pocketgraph import cluster
from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import LEVELS, Range, dequantized, quantized

TRIED_SHARES = tuple(np.linspace(0.3, 1.0, 36))
PERCENTILE = 99.99
FEW_VALUES = 320  # different ones, of a tensor whose values are known one by one: 256 and some
FEWEST_OF_EACH_VALUE = 64  # times that each must have been seen on average, to tell them from a few values of many
TRIED_STRETCHES = (1.0, *np.linspace(0.98, 1.02, 41))  # tried to get values away from the middle between two codes

Cost: TypeAlias = Callable[[Range], float]
"""What a range costs a tensor: the less, the better."""


def min_max(seen: Observation) -> Range:
    """From the smallest to the largest value."""
    return seen.range


def percentile(seen: Observation, share: float = PERCENTILE) -> Range:
    """What holds ``share`` percent of the values, as much being cut off on each side."""
    total = seen.counts.sum()
    cumulative = np.cumsum(seen.counts) / total
    rest = (1 - share / 100) / 2
    centres = seen.centres
    low = centres[min(int(np.searchsorted(cumulative, rest)), len(centres) - 1)]
    high = centres[min(int(np.searchsorted(cumulative, 1 - rest)), len(centres) - 1)]
    return _within(seen, float(low), float(high))


def least_squares(seen: Observation) -> Range:
    """The range with the least mean squared error of rounding and clipping together."""
    return _best(seen, _squared_error(seen))


def least_divergence(seen: Observation) -> Range:
    """The range whose codes' distribution is nearest to the values' own (Kullback-Leibler)."""
    return _best(seen, _divergence(seen))


CHOICES: dict[str, Callable[[Observation], Range]] = {
    "minmax": min_max, "percentile": percentile, "mse": least_squares, "entropy": least_divergence,
}  # fmt: skip


def choose(seen: Observation, method: str) -> Range:
    """The range by one of the methods; ``auto`` takes the one with the least squared error.

    Raises:
        UsageError: there is no such method.
    """
    if method == "auto":
        spans = [choice(seen) for choice in CHOICES.values()]
        return beside_ties(seen, min(spans, key=_squared_error(seen)))
    if method not in CHOICES:
        hint = did_you_mean(method, CHOICES) or f"there are {', '.join(CHOICES)} and auto"
        raise UsageError(f"there is no way '{method}' to choose ranges", hint=hint)
    return CHOICES[method](seen)


def beside_ties(seen: Observation, span: Range) -> Range:
    """For a tensor of few different values, such as pixels, a range a little off, so that they lie nearer to codes.

    Pixels from 0 to 255 that are fed as -1 to 1 lie in the middle between two codes each, when 0 has a code and the
    steps are as wide as theirs: the worst of all places. With steps a 256th instead of a 255th of the range wide, they
    lie anywhere.
    """
    if not has_few_values(seen):
        return span
    spans = [Range(span.low * factor, span.high * factor) for factor in TRIED_STRETCHES]
    return min(spans, key=lambda tried: _rounding_error(seen, tried))


def has_few_values(seen: Observation) -> bool:
    """Whether the tensor takes few different values, each many times, as pixels do."""
    different = np.count_nonzero(seen.counts)
    return bool(different <= FEW_VALUES and seen.counts.sum() >= FEWEST_OF_EACH_VALUE * different)


def _best(seen: Observation, cost: Cost) -> Range:
    spans = []
    for share in TRIED_SHARES:
        spans.append(_within(seen, seen.low * share, seen.high * share))
        if seen.low < 0 < seen.high:
            spans += [_within(seen, seen.low, seen.high * share), _within(seen, seen.low * share, seen.high)]
    return min(reversed(spans), key=cost)


def _within(seen: Observation, low: float, high: float) -> Range:
    low, high = max(low, float(seen.low)), min(high, float(seen.high))
    return Range(low, high) if low <= high else seen.range


def _squared_error(seen: Observation) -> Cost:
    """Mean squared error: a twelfth of the squared step inside, the squared distance outside."""
    centres, counts = seen.centres, seen.counts
    at_zero = np.abs(centres) <= max(centres[1] - centres[0], 1e-30)
    total = max(counts.sum(), 1)

    def cost(span: Range) -> float:
        quantization = span.quantization()
        scale, zero = quantization.scales[0], quantization.zero_points[0]
        low, high = (-128 - zero) * scale, (127 - zero) * scale
        outside = np.maximum(low - centres, 0) + np.maximum(centres - high, 0)
        each = np.where(outside > 0, outside**2, scale**2 / 12)
        each[at_zero] = 0  # zero has a code of its own
        return float((each * counts).sum() / total)

    return cost


def _rounding_error(seen: Observation, span: Range) -> float:
    """Mean squared error of the very values seen."""
    quantization = span.quantization()
    apart = dequantized(quantized(seen.centres, quantization), quantization) - seen.centres
    return float((apart**2 * seen.counts).sum())


def _divergence(seen: Observation) -> Cost:
    """Of the values' distribution from the one that the codes can show."""
    is_occupied = seen.counts > 0  # others have no part in it
    centres = seen.centres[is_occupied]
    full = seen.counts[is_occupied] / seen.counts.sum()

    def cost(span: Range) -> float:
        quantization = span.quantization()
        scale, zero = quantization.scales[0], quantization.zero_points[0]
        index = np.clip(np.rint(centres / scale) + zero + 128, 0, LEVELS).astype(np.int64)
        is_inside = (centres >= (-128.5 - zero) * scale) & (centres <= (127.5 - zero) * scale)
        mass = np.bincount(index, weights=full, minlength=LEVELS + 1)
        width = np.bincount(index, weights=is_inside.astype(float), minlength=LEVELS + 1)
        shown = np.where(is_inside, mass[index] / np.maximum(width[index], 1), 0) + 1e-9
        return float((full * np.log(full / shown)).sum())

    return cost


@dataclass(frozen=True)
class _RangeChoice:
    """Chooses ranges by one method; a job for a cluster."""

    method: str

    def __call__(self) -> Callable[[Observation], Range]:
        return lambda seen: choose(seen, self.method)


def select_ranges(state: QuantizationState) -> bool:
    """The step: a range for each tensor that has been seen."""
    seen = {value: found for value, found in state.seen.items() if found.samples}
    chosen = cluster.map_in_order(_RangeChoice(state.range_method), seen.values())
    state.ranges = dict(zip(seen, chosen, strict=True))
    return True
