"""Verdicts on outputs of eight-bit models whose softmax is saturated: by the logits, which it hides."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from pocketgraph.runtime.comparison.compare import Difference
from pocketgraph.runtime.comparison.output_verdict import judged

FIRST = np.array([[30.0, 29.5, -20, 4, -7, 11], [25, -3, 24, 9, -18, 2]])
"""Logits of two sets of feeds; the two best are as good as equal."""
NOISE = np.array([[-0.6, 0.6, 0.3, -0.5, 0.4, -0.2], [0.1, 0.5, 0.4, -0.3, -0.1, 0.2]])


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Array = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return result


def verdict(first: Array, second: Array, *, is_made_up: bool = True) -> Difference:
    pairs = [(a[np.newaxis], b[np.newaxis]) for a, b in zip(first, second, strict=True)]
    return judged("y", pairs, 1e-4, None, is_eight_bit=True, is_made_up=is_made_up)


@pytest.mark.parametrize("sharper", [2.5, 1.5])
def test_a_near_tie_of_which_a_softmax_makes_another_class_passes_on_made_up_feeds(sharper: float) -> None:
    first, second = softmax(sharper * FIRST), softmax(sharper * (FIRST + NOISE))
    assert (first.argmax(axis=1) != second.argmax(axis=1)).any()
    assert verdict(first, second).passed
    assert not verdict(first, second, is_made_up=False).passed  # of data, answers count


def test_other_logits_fail_though_the_class_is_the_same() -> None:
    sure = FIRST + 8 * np.eye(6)[[0, 0]]
    apart = sure + np.array([[4, -42, 35, 10, 30, -30], [9, 20, -45, -30, 38, 10]])
    first, second = softmax(sure), softmax(apart)
    assert (first.argmax(axis=1) == second.argmax(axis=1)).all()
    found = verdict(first, second)
    assert not found.passed
    assert found.snr is not None
    assert found.snr < 6


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_another_class_that_is_no_tie_fails(shift: int) -> None:
    first = softmax(2 * (FIRST + 8 * np.eye(6)[[0, 0]]))
    assert not verdict(first, np.roll(first, shift, axis=1)).passed


def test_noise_is_that_of_the_logits_where_probabilities_hide_it() -> None:
    sure = FIRST + 30 * np.eye(6)[[0, 0]]
    found = verdict(softmax(sure), softmax(sure + NOISE))
    signal = sure - sure.mean(axis=1, keepdims=True)
    noise = NOISE - NOISE.mean(axis=1, keepdims=True)
    assert found.passed
    assert found.snr == pytest.approx(10 * np.log10((signal**2).sum() / (noise**2).sum()), abs=0.5)


def test_codes_of_probabilities_tell_no_logits() -> None:
    sure = FIRST + 30 * np.eye(6)[[0, 1]]
    codes = np.round(softmax(sure) * 256) / 256
    found = verdict(softmax(sure), codes.astype(np.float32))
    assert found.passed
    assert found.snr is not None
    assert found.snr > 55


def test_noise_below_that_of_floats_is_told_in_words() -> None:
    found = Comparison()
    found.add(np.array([[1.0, 0, 0]]), np.array([[1.0, 1e-26, 0]]))
    assert 144 < found.snr < np.inf
    assert found.words().endswith("signal to noise exact")
