"""The figures that models are judged by, against figures worked out by hand or by other formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pocketgraph.quantization.evaluation.model_verdict import ModelVerdict
from pocketgraph.runtime.comparison.answer_metrics import (
    ClassAccuracy,
    Comparison,
    interval,
    mean_interval,
    probabilities,
    scores_of_classes,
    signal_to_noise,
)
from pocketgraph.runtime.profiling.statistic import Statistic


def test_signal_to_noise_in_decibels() -> None:
    assert signal_to_noise(100, 1) == pytest.approx(20)
    assert signal_to_noise(1, 0) == math.inf
    assert signal_to_noise(0, 1) == -math.inf


def test_the_interval_is_wilsons() -> None:
    low, high = interval(9, 10)  # as worked out from the formula by hand
    assert (low, high) == (pytest.approx(0.5958, abs=1e-3), pytest.approx(0.9821, abs=1e-3))
    assert interval(0, 0) == (0, 1)
    assert interval(50, 50)[1] == pytest.approx(1)


def test_scores_become_probabilities_once() -> None:
    row = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(probabilities(row)[0], row)
    np.testing.assert_allclose(probabilities(np.log(row) + 7)[0], row)


def test_a_comparison_by_hand() -> None:
    comparison = Comparison()
    comparison.add(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    comparison.add(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    assert comparison.agreement == 0.5
    assert comparison.kl == pytest.approx((0.5 * math.log(2) + 0.5 * math.log(2 / 3)) / 2, abs=1e-6)
    assert comparison.snr == pytest.approx(10 * math.log10(1.5 / 0.125))
    assert comparison.largest == 0.25


def test_accuracy_counts_the_first_and_the_first_five() -> None:
    right = ClassAccuracy()
    scores = np.array([0.3, 0.2, 0.1, 0.09, 0.08, 0.07])
    for label in (0, 4, 5):
        right.add(scores, label)
    assert (right.top1, right.top5) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_the_interval_of_the_mean_error_holds_the_true_one() -> None:
    """95 of 100 intervals hold the mean that the samples were drawn around (the count is binomial: 95 ± 7)."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        comparison = Comparison()
        for error in rng.normal(2.0, 0.5, 60):
            comparison.add(np.zeros(1), np.array([error]))
        low, high = comparison.mean_error_interval
        held += low <= 2.0 <= high
    assert 88 <= held <= 100


def test_a_model_of_one_number_has_no_best_class() -> None:
    comparison = Comparison()
    comparison.add(np.array([3.0]), np.array([2.5]))
    row = ModelVerdict("model", None, comparison, times=[0.001]).as_dict()
    assert "agreement" not in row
    assert "kl" not in row
    assert row["mean_error"] == 0.5


def test_vectors_of_length_1_are_no_scores() -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3, 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert scores_of_classes(vectors) is None
    assert scores_of_classes(vectors[0]) is None
    assert scores_of_classes(vectors.astype(np.float16)) is None
    assert scores_of_classes(vectors * np.float32(1.001)) is not None
    assert scores_of_classes(np.float32([[0, 1, 0]])) is not None  # sure of a class
    comparison = Comparison()
    comparison.add(vectors[:1], np.roll(vectors[:1], 1))
    assert not comparison.has_classes


def test_places_have_answers_of_their_own_when_they_are_probabilities() -> None:
    """A picture of two classes; one of four places has another best class."""
    left = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]]], np.float32)
    right = left.copy()
    right[0, 0, 0] = 0.4, 0.6
    comparison = Comparison()
    comparison.add(left, right)
    assert (comparison.width, comparison.agreement) == (2, 0.75)
    assert abs(comparison.kl - (0.9 * np.log(0.9 / 0.4) + 0.1 * np.log(0.1 / 0.6)) / 4) < 1e-6


@pytest.mark.parametrize("shape", [(1, 4, 4, 3), (1, 20, 4), (1, 1), (3,), (5, 1)])
def test_boxes_colours_and_single_numbers_have_no_best_class(shape: tuple[int, ...]) -> None:
    comparison = Comparison()
    comparison.add(np.linspace(0, 9, int(np.prod(shape))).reshape(shape), np.ones(shape))
    assert comparison.width == (3 if shape == (3,) else 0)
    assert (comparison.agreed, comparison.divergence) == (0, 0) or shape == (3,)


def test_each_row_of_a_matrix_is_an_answer() -> None:
    comparison = Comparison()
    comparison.add(np.array([[3.0, 1, 0], [0, 1, 5]]), np.array([[3.0, 1, 0], [6, 1, 5]]))
    assert comparison.agreement == 0.5


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        (0, 20, 0.0, 0.16112515805),
        (297, 300, 0.97101650664, 0.99659338156),
        (1, 1, 0.20654931438, 1.0),
        (780, 780, 0.99509918903, 1.0),
    ],
)
def test_shares_have_the_intervals_of_a_statistics_package(hits: int, count: int, low: float, high: float) -> None:
    """scipy.stats.binomtest(hits, count).proportion_ci(method='wilson')"""
    assert interval(hits, count) == (pytest.approx(low, abs=2e-8), pytest.approx(high, abs=2e-8))


@pytest.mark.parametrize(
    ("numbers", "low", "high"),
    [
        ((1, 2), -4.853102, 7.853102),
        ((1, 2, 4), -1.461250, 6.127916),
        ((1, 2, 4, 8), -1.175943, 8.675943),
        ((0.1, 0.2, 0.15, 0.4, 0.33, 0.27), 0.123045, 0.360288),
    ],
)
def test_means_have_the_intervals_of_a_statistics_package(numbers: tuple[float, ...], low: float, high: float) -> None:
    """scipy.stats.t.interval(0.95, n - 1, mean, sem), cut off at 0, below which no mean error lies"""
    seen: Statistic[float] = Statistic()
    for number in numbers:
        seen.update(number)
    assert mean_interval(seen) == (pytest.approx(max(low, 0), rel=2e-3), pytest.approx(high, rel=2e-3))


def test_one_number_says_nothing_of_the_mean() -> None:
    seen: Statistic[float] = Statistic()
    seen.update(3.0)
    assert mean_interval(seen) == (0, math.inf)
    verdict = ModelVerdict("m", errors=seen, times=[0.1])
    assert verdict.as_dict()["true_error_interval"] == [0, None]  # JSON knows no infinity


def test_the_first_five_of_five_classes_say_nothing() -> None:
    few, many = ClassAccuracy(), ClassAccuracy()
    few.add(np.arange(5), 0)
    many.add(np.arange(6), 1)
    assert "top5" not in ModelVerdict("m", accuracy=few, times=[0.1]).as_dict()
    found = ModelVerdict("m", accuracy=many, times=[0.1]).as_dict()
    assert found["top5"] == 1
    assert found["top5_interval"][0] == pytest.approx(interval(1, 1)[0])


def test_the_first_five_of_classes_that_were_picked_are_not_known() -> None:
    picked = ClassAccuracy()
    for answer, label in ((6, 6), (0, 4), (7, 2)):
        picked.add(np.int64([answer]), label)
    assert (picked.top1, picked.width) == (pytest.approx(1 / 3), 8)
    assert "top5" not in ModelVerdict("m", accuracy=picked, times=[0.1]).as_dict()


def test_classes_that_were_picked_are_equal_or_not() -> None:
    """Of places that segmentation picks classes for, the share counts, and not how far the numbers are apart."""
    reference = np.array([[[0, 1, 7, 7]]], np.int64)
    comparison = Comparison()
    comparison.add(reference, np.array([[[0, 7, 7, 7]]], np.int64))
    assert comparison.agreement == 0.75
    assert comparison.has_classes
    assert np.isnan(comparison.kl)
    assert comparison.words() == "same class 75.00% (12% to 99% of others)"
    assert comparison.quality == "bad"


def test_bytes_are_no_picked_classes() -> None:
    comparison = Comparison()
    comparison.add(np.array([0, 100, 200], np.uint8), np.array([0, 101, 200], np.uint8))
    assert comparison.has_scores


@pytest.mark.parametrize(("answer", "label", "is_right"), [(3, 3, True), (3, 2, False), (0, 0, True), (0, 4, False)])
def test_a_picked_class_is_right_or_wrong(answer: int, label: int, is_right: bool) -> None:
    accuracy = ClassAccuracy()
    accuracy.add(np.array([answer]), label)
    assert accuracy.top1 == is_right


@pytest.mark.parametrize(("samples", "said"), [(1, " (21% to 100% of others)"), (10, "")])
def test_of_few_samples_words_tell_what_others_may_be(samples: int, said: str) -> None:
    """The interval of 1 of 1 by Wilson's formula is 1 / (1 + 1.96²) to 1."""
    scores, picks = Comparison(), Comparison()
    for _ in range(samples):
        scores.add(np.float32([0.25, 0.75]), np.float32([0.25, 0.75]))
        picks.add(np.int64([3]), np.int64([3]))
    assert scores.words() == f"same best class 100.00%{said}, KL 0, signal to noise exact"
    assert picks.words() == f"same class 100.00%{said}"
