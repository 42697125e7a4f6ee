"""The verdict on one output of two models, by the answers of both to several sets of feeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_probabilities
from pocketgraph.runtime.comparison.answer_metrics import ACCEPTABLE, Comparison, Likeness
from pocketgraph.runtime.comparison.compare import TOLERANCE, Difference, compared, mostly_not_finite

Pairs = Sequence[tuple[Array, Array]]
"""The answers of the model that is right, and of the one that is judged, a pair a set of feeds."""
SATURATED = 0.9  # the least of the largest probabilities, from which a softmax says little of its logits
LEAST_OF_LOGITS = 6.0  # decibels; fewer are another model's, though what underflows is not seen, which may cost 9
COARSE = 1e-6  # the smallest probability but 0, above which 0 may be a code for much; codes of 16 bits have 3e-5
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
LIVELY = 1 / 32  # of the peak: by how much answers vary that an eight-bit model cannot miss


def judged(
    name: str, pairs: Pairs, tolerance: float, top1: float | None, is_eight_bit: bool, *, is_made_up: bool
) -> Difference:
    """The difference of one output, with the figures of eight-bit models, and the verdict by them where it is one.

    On made-up feeds, of which few models are sure, a class counts as the same when ``a`` itself tells both apart by
    less than the noise that passes.

    A softmax makes much of a small difference between two classes, and hides how far logits are off where it is
    saturated. So on made-up feeds probabilities pass that are made from logits with little enough noise, and saturated
    ones only if that noise, which is then what is given as such, is not another model's.
    """
    found = compared(name, pairs, tolerance, top1)
    if found.problem or any(a.dtype.kind not in "fiuV" for a, _ in pairs):
        return found
    silent = _silent_side(pairs, LIVELY if is_eight_bit else TOLERANCE)
    if silent:
        return replace(found, problem=f"always the same in the {silent} model, and not in the other", passed=False)
    if not any(np.isfinite(a.astype(np.float64)).any() for a, _ in pairs):
        return found  # no figure can be taken of NaN; both agree in that
    measured = Comparison()
    with np.errstate(all="ignore"):
        for a, b in pairs:
            if a.size:
                measured.add(a, b)
    if not measured.count:
        return found
    has_classes = measured.width > 1 and measured.has_scores
    before_softmax, is_certain = logits_of_probabilities(pairs) if has_classes else (None, False)
    by_logits = math.nan if before_softmax is None else _likeness(before_softmax).snr
    snr = by_logits if is_certain else measured.snr if measured.has_scores else None
    found = replace(found, snr=snr, kl=measured.kl if has_classes else None)
    if not is_eight_bit:
        return found
    if pairs[0][0].dtype.kind in "iu":
        equal = sum(int(np.count_nonzero(a == b)) for a, b in pairs) / sum(a.size for a, _ in pairs)
        passed = equal >= ACCEPTABLE.agreement
    else:
        standard = ACCEPTABLE
        if is_made_up and has_classes and _agreement_but_for_ties(pairs) >= ACCEPTABLE.agreement:
            standard = replace(ACCEPTABLE, agreement=0.0)
        passed = measured.meets(standard)
        if is_made_up and before_softmax is not None:
            is_same = _agreement_but_for_ties(before_softmax) >= ACCEPTABLE.agreement
            least = LEAST_OF_LOGITS if is_certain else -math.inf
            passed = (is_same and by_logits >= ACCEPTABLE.snr) or (passed and by_logits >= least)
        passed = passed and math.isfinite(found.largest)
    passed = passed and (top1 is None or found.top1 is None or found.top1 >= top1)
    return replace(found, top1=measured.agreement if has_classes else found.top1, passed=passed)


def logits_of_probabilities(pairs: Pairs) -> tuple[list[tuple[Array, Array]] | None, bool]:
    """The logits that probabilities of both models are made from, but for what is the same in all classes.

    Returns:
        The logits, and whether the first model is all but certain of each answer. No logits where answers are no
        probabilities, and where those of a model are too coarse to tell logits: as codes, or because all but one are 0.
    """
    if len({pair[side].shape[-1] for pair in pairs for side in (0, 1)}) > 1:
        return None, False  # answers of texts or recordings of several lengths
    wanted, given = (
        np.concatenate([np.reshape(pair[side], (-1, pair[side].shape[-1])).astype(np.float64) for pair in pairs])
        for side in (0, 1)
    )
    if not all(np.isfinite(rows).all() and are_probabilities(rows) for rows in (wanted, given)):
        return None, False
    least = max(float(rows[rows > 0].min()) for rows in (wanted, given))
    if least > COARSE:
        return None, False
    logits = [np.log(np.maximum(rows, SMALLEST_NORMAL)) for rows in (wanted, given)]
    first, second = (rows - rows.mean(axis=1, keepdims=True) for rows in logits)
    return [(first, second)], bool(wanted.max(axis=1).min() >= SATURATED)


def _likeness(pairs: Pairs) -> Likeness:
    found = Likeness()
    for a, b in pairs:
        found.add(a, b)
    return found


def _agreement_but_for_ties(pairs: Pairs) -> float:
    """The share of rows with the same top class, or with two that are as good as equal in ``a``."""
    same = rows = 0
    for a, b in pairs:
        wanted, given = (np.reshape(values, (-1, a.shape[-1])).astype(np.float64) for values in (a, b))
        noise = np.sqrt(np.square(wanted).mean(axis=1)) * 10 ** (-ACCEPTABLE.snr / 20)
        chosen = np.take_along_axis(wanted, given.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        same += int(np.count_nonzero(wanted.max(axis=1) - chosen <= noise))
        rows += len(wanted)
    return same / max(rows, 1)


def mute(pairs: Pairs, fed: Sequence[Mapping[str, Any]]) -> str:
    """Why answers that agree say nothing about either model; "" where they do."""
    values = [value for pair in pairs for value in pair]
    if any(value.dtype.kind not in "biufV" or not value.size for value in values):
        return ""
    if not any(np.isfinite(value.astype(np.float64)).any() for value in values):
        return "holds no finite number in either model"
    if not_finite := mostly_not_finite([a for a, _ in pairs]):
        return f"{not_finite}, so hardly anything of it was compared"
    differ = any(not np.array_equal(feeds[name], fed[0][name]) for feeds in fed[1:] for name in feeds)
    if differ and all(np.array_equal(value, values[0], equal_nan=True) for value in values[1:]):
        return "is always the same in both models"
    return ""


def is_certain(pairs: Pairs, least: float = SATURATED) -> bool:
    """Whether the first model gives one class of each answer this probability or more, and hides the others."""
    for a, _ in pairs:
        if a.dtype.kind != "f" or not a.ndim or a.shape[-1] < 2 or not a.size:
            return False
        rows = np.reshape(a, (-1, a.shape[-1])).astype(np.float64)
        if not are_probabilities(rows) or rows.max(axis=1).min() < least:
            return False
    return bool(pairs)


def _silent_side(pairs: Pairs, lively: float) -> str:
    """Which model answers all sets of feeds alike while the other's answers vary by this share of its peak."""
    if len({a.shape for a, _ in pairs}) != 1 or not pairs[0][0].size:
        return ""
    varies = [_spread([pair[side] for pair in pairs]) for side in (0, 1)]
    if varies[0] > lively and varies[1] == 0:
        return "second"
    return "first" if varies[1] > lively and varies[0] == 0 else ""


def _spread(answers: Sequence[Array]) -> float:
    """How far answers are from the first one, as a share of the largest magnitude."""
    wide = [answer.astype(np.float64) for answer in answers]
    peak = max(float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0)) for values in wide)
    with np.errstate(all="ignore"):
        apart = max(float(np.max(np.nan_to_num(np.abs(values - wide[0])))) for values in wide)
    return apart / peak if peak else 0.0
