"""Chooses a tensor's range from its histogram: all of it, or less in exchange for finer steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pocketgraph import cluster
from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import HIGHEST, LOWEST, Range, dequantized, quantized

TRIED_SHARES = tuple(np.linspace(0.3, 1.0, 36))
PERCENTILE = 99.99
FEW_VALUES = 320  # different ones, of a tensor whose values are known one by one: 256 and some
FEWEST_OF_EACH_VALUE = 64  # times that each must have been seen on average, to tell them from a few values of many
UNSHOWN = 1e-9  # probability of what no code shows, for its logarithm
TRIED_STRETCHES = (1.0, *np.linspace(0.98, 1.02, 41))  # tried to get values away from the middle between two codes

Costs: TypeAlias = Callable[[Array, Array], Array]
"""What ranges cost a tensor, by their scales and zero points: the less, the better."""


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
    return _Candidates(_shares(seen)).best(_squared_errors(seen))


def least_divergence(seen: Observation) -> Range:
    """The range whose codes' distribution is nearest to the values' own (Kullback-Leibler)."""
    return _Candidates(_shares(seen)).best(_divergences(seen))


CHOICES: dict[str, Callable[[Observation], Range]] = {
    "minmax": min_max, "percentile": percentile, "mse": least_squares, "entropy": least_divergence,
}  # fmt: skip


def choose(seen: Observation, method: str) -> Range:
    """The range by one of the methods; ``auto`` takes the one with the least squared error.

    Raises:
        UsageError: there is no such method.
    """
    if method == "auto":
        shares, errors = _Candidates(_shares(seen)), _squared_errors(seen)  # once for the two that search
        spans = [min_max(seen), percentile(seen), shares.best(errors), shares.best(_divergences(seen))]
        return beside_ties(seen, _Candidates(spans).best(errors))
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


class _Candidates:
    """Ranges to choose from, with the scale and zero point of each; of equal ones the first is taken."""

    def __init__(self, spans: Iterable[Range]) -> None:
        self.spans = list(dict.fromkeys(spans))
        quantizations = [span.quantization() for span in self.spans]
        self.scales = np.array([one.scales[0] for one in quantizations])
        self.zeros = np.array([one.zero_points[0] for one in quantizations])

    def best(self, costs: Costs) -> Range:
        return self.spans[int(np.argmin(costs(self.scales, self.zeros)))]


def _shares(seen: Observation) -> Iterator[Range]:
    """From all of the range to the least share, with both ends cut off or one."""
    for share in reversed(TRIED_SHARES):
        if seen.low < 0 < seen.high:
            yield _within(seen, seen.low * share, seen.high)
            yield _within(seen, seen.low, seen.high * share)
        yield _within(seen, seen.low * share, seen.high * share)


def _within(seen: Observation, low: float, high: float) -> Range:
    low, high = max(low, float(seen.low)), min(high, float(seen.high))
    return Range(low, high) if low <= high else seen.range


def _squared_errors(seen: Observation) -> Costs:
    """Mean squared error: a twelfth of the squared step inside, the squared distance outside."""
    centres, counts = seen.centres, seen.counts.copy()
    total = max(counts.sum(), 1)
    counts[np.abs(centres) <= max(centres[1] - centres[0], 1e-30)] = 0  # zero has a code of its own
    sums = [np.concatenate(([0.0], np.cumsum(counts * centres**power))) for power in range(3)]

    def costs(scales: Array, zeros: Array) -> Array:
        low, high = (LOWEST - zeros) * scales, (HIGHEST - zeros) * scales
        first, last = centres.searchsorted(low), centres.searchsorted(high, "right")
        under = low**2 * sums[0][first] - 2 * low * sums[1][first] + sums[2][first]
        count, linear, square = (each[-1] - each[last] for each in sums)
        inside = (sums[0][last] - sums[0][first]) * scales**2 / 12
        found: Array = (inside + under + high**2 * count - 2 * high * linear + square) / total
        return found

    return costs


def _rounding_error(seen: Observation, span: Range) -> float:
    """Mean squared error of the very values seen."""
    quantization = span.quantization()
    apart = dequantized(quantized(seen.centres, quantization), quantization) - seen.centres
    return float((apart**2 * seen.counts).sum())


def _divergences(seen: Observation) -> Costs:
    """Of the values' distribution from the one that the codes can show."""
    share = seen.counts / seen.counts.sum()
    is_occupied = share > 0  # others have no part in it
    own = float((share[is_occupied] * np.log(share[is_occupied])).sum())
    shares, occupied = (np.concatenate(([0], np.cumsum(each))) for each in (share, is_occupied))
    start, width = seen.centres[0], max(seen.centres[1] - seen.centres[0], 1e-30)

    def costs(scales: Array, zeros: Array) -> Array:
        bounds = (np.arange(LOWEST, HIGHEST + 2) - 0.5 - zeros[:, np.newaxis]) * scales[:, np.newaxis]
        places = np.ceil((bounds - start) / width).clip(0, len(share)).astype(np.intp)  # of the first bin in each code
        inside, below = np.diff(shares[places]), shares[places[:, 0]]
        beyond = shares[-1] - shares[places[:, -1]]
        shown = inside.copy()
        shown[:, 0] += below  # the ends stand for what is beyond them
        shown[:, -1] += beyond
        shown /= np.maximum(np.diff(occupied[places]), 1)
        lost: Array = own - (inside * np.log(shown + UNSHOWN)).sum(axis=1) - (below + beyond) * math.log(UNSHOWN)
        return lost

    return costs


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
