"""How far one output of a model is from that of another, over several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime.comparison.answer_metrics import are_picks

TOLERANCE = 1e-4
HALF_TOLERANCE = 0.02
"""For weights rounded to half precision beside those of float32, as a share of the peak."""
LEAST_FINITE = 0.5  # of an output's elements; masks of attention and logarithms of 0 make some infinite
Result = TypeVar("Result")


@dataclass(frozen=True)
class Difference:
    """How far one output of B is from that of A.

    Attributes:
        name: the output.
        shape: its shape in A.
        largest: the largest absolute difference; infinite where one is NaN or infinite and the other is not.
        mean: the mean absolute difference.
        largest_relative: ``largest`` as a share of the largest magnitude in A.
        mean_relative: ``mean`` as a share of that.
        worst: where the largest difference is.
        top1: the share of rows (along the last dimension) whose largest element is the same one; None for outputs
            without rows of at least two.
        problem: what cannot be compared (another shape or type), else "".
        passed: whether it is within the tolerance, and ``top1`` is high enough where that was asked for.
        unproven: why this says little of B: A gives NaN or infinity for most elements, so that hardly any number was
            compared; else "".
        snr: signal-to-noise ratio, in dB; None where it was not measured.
        kl: Kullback-Leibler divergence of the answers as probabilities, in nats; None without classes.
    """

    name: str
    shape: tuple[int, ...]
    largest: float = 0.0
    mean: float = 0.0
    largest_relative: float = 0.0
    mean_relative: float = 0.0
    worst: tuple[int, ...] = ()
    top1: float | None = None
    problem: str = ""
    passed: bool = True
    unproven: str = ""
    snr: float | None = None
    kl: float | None = None


def plain_values(value: Array) -> Array:
    """Ones and words, where random integers are no lengths and empty texts have no words."""
    if value.dtype.kind == "O":
        words = np.empty(value.shape, object)
        words.ravel()[:] = [item or b"a" for item in value.ravel()]
        return words
    return np.ones_like(value) if value.dtype.kind in "iu" and value.dtype.itemsize > 1 else value


def plainer(feeds: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Feeds for a model that may not take random ones: ones for integers, which may be lengths, then zeros, which are
    places in what holds one."""
    plain = {name: plain_values(value) for name, value in feeds.items()}
    yield plain
    yield {name: _zero_values(value) for name, value in plain.items()}


def run_on_plainer(
    feeds: Mapping[str, Any], run: Callable[[dict[str, Any]], Result], before: RunError, hint: str
) -> tuple[dict[str, Any], Result]:
    """Plainer feeds and what ``run`` makes of them, where it failed ``before`` on random ones.

    Raises:
        RunError: the model does not take them either; ``before`` with the hint.
    """
    for tried in plainer(feeds):
        try:
            return tried, run(tried)
        except RunError:
            continue
    raise RunError(before.what, where=before.where, hint=hint) from before


def _zero_values(value: Array) -> Array:
    return np.zeros_like(value) if value.dtype.kind in "iu" and value.dtype.itemsize > 1 else value


def compared(
    name: str, pairs: Sequence[tuple[Array, Array]], tolerance: float, top1: float | None = None
) -> Difference:
    """The difference of one output over several runs; see Difference.

    Of classes that the models picked, such as those of a picture's places, the share ``tolerance`` may be others.
    """
    shape = pairs[0][0].shape
    for a, b in pairs:
        if a.shape != b.shape:
            return Difference(name, shape, problem=f"shape {list(a.shape)} against {list(b.shape)}", passed=False)
        if a.dtype != b.dtype and (a.dtype.kind not in "fV" or b.dtype.kind not in "fV"):
            return Difference(name, shape, problem=f"{a.dtype} against {b.dtype}", passed=False)
    if pairs[0][0].dtype == object:
        wrong = [np.argwhere(a != b) for a, b in pairs]
        count = sum(len(found) for found in wrong)
        worst = next((tuple(int(i) for i in found[0]) for found in wrong if len(found)), ())
        return Difference(
            name,
            shape,
            problem=f"{counted(count, 'string differs', 'strings differ')}" if count else "",
            worst=worst,
            passed=not count,
        )
    largest, total, elements, peak, worst = 0.0, 0.0, 0, 0.0, ()
    rows, agreeing, differing = 0, 0, 0
    for a, b in pairs:
        distance = _distance(a, b)
        if distance.size:
            place = int(np.argmax(distance))
            if float(distance.reshape(-1)[place]) > largest or not worst:
                largest = max(largest, float(distance.reshape(-1)[place]))
                worst = tuple(int(i) for i in np.unravel_index(place, distance.shape))
            total += float(distance.sum())
            differing += int(np.count_nonzero(distance))
            elements += distance.size
            magnitudes = np.abs(_wide(a))
            peak = max(peak, float(np.max(magnitudes[np.isfinite(magnitudes)], initial=0.0)))
        if a.ndim and a.shape[-1] > 1 and a.size and a.dtype.kind in "fiuV":
            same = np.argmax(_wide(a), axis=-1) == np.argmax(_wide(b), axis=-1)
            rows += same.size
            agreeing += int(np.count_nonzero(same))
    mean = total / elements if elements else 0.0
    agreement = agreeing / rows if rows else None
    exact = pairs[0][0].dtype.kind in "b"
    limit = 0.0 if exact else tolerance * peak
    is_near = largest <= limit or (are_picks(pairs[0][0]) and differing <= tolerance * elements)
    passed = is_near and (top1 is None or agreement is None or agreement >= top1)
    scale = peak or 1.0
    return Difference(
        name, shape, largest, mean, largest / scale, mean / scale, worst, agreement, "", passed,
        mostly_not_finite([a for a, _ in pairs]),
    )  # fmt: skip


def mostly_not_finite(answers: Sequence[Array]) -> str:
    """That most elements of an output are NaN or infinite, in words, so that an equal one proves nothing; else ""."""
    elements = sum(answer.size for answer in answers)
    finite = sum(int(np.count_nonzero(np.isfinite(_wide(answer)))) for answer in answers if answer.dtype != object)
    if finite >= LEAST_FINITE * elements or any(answer.dtype == object for answer in answers):
        return ""
    return f"is NaN or infinite in {elements - finite} of its {counted(elements, 'element')}"


def _wide(values: Array) -> Array:
    wide: Array = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    return wide


def _distance(a: Array, b: Array) -> Array:
    """|a - b|; 0 where both are the same NaN or infinity, infinite where only one is."""
    with np.errstate(all="ignore"):
        x, y = _wide(a), _wide(b)
        distance: Array = np.asarray(np.abs(x - y))
        distance[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
        distance[np.isnan(distance)] = np.inf
    return distance
