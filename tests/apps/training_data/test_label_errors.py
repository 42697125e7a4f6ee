"""Labels that were made wrong are found again, and the scores that find them are of what was learned without each."""

import numpy as np
import pytest

from pocketgraph.apps.training_data import label_errors as module
from pocketgraph.apps.training_data.label_errors import doubts, held_out_scores, label_errors


def clusters(count: int = 60, classes: int = 3, apart: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Points around as many middles as there are classes, float32 [classes * count, 8], and their classes."""
    rng = np.random.default_rng(1)
    middles = np.eye(classes, 8) * apart
    labels = np.repeat(np.arange(classes), count)
    return (np.abs(middles[labels] + rng.normal(size=(len(labels), 8)))).astype(np.float32), labels


def with_wrong(labels: np.ndarray, places: list[int]) -> np.ndarray:
    changed = labels.copy()
    changed[places] = (changed[places] + 1) % (labels.max() + 1)
    return changed


def test_wrong_labels_are_found_with_the_right_ones() -> None:
    features, labels = clusters()
    places = [3, 40, 77, 90, 130, 171]
    changed = with_wrong(labels, places)
    found = label_errors(held_out_scores(features, changed, 3), changed)
    assert {one.place for one in found[: len(places)]} == set(places)
    assert len(found) <= len(places) + 2
    assert all(one.label == labels[one.place] for one in found[: len(places)])
    assert [one.doubt for one in found] == sorted((one.doubt for one in found), reverse=True)


def test_each_score_is_that_of_regression_without_the_example() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 4))
    classes = rng.integers(0, 3, 30)
    kernel, weights = module._kernel(points), rng.uniform(0.1, 1, 30)
    found = module._left_out(kernel, classes, 3, weights)
    wanted = np.eye(3)[classes]
    mean = wanted.mean(axis=0)
    for row in (0, 7, 29):
        others = np.arange(30) != row
        system = kernel[np.ix_(others, others)] + np.diag(module.RIDGE / weights[others])
        answer = mean + kernel[row, others] @ np.linalg.solve(system, wanted[others] - mean)
        np.testing.assert_allclose(found[row], answer, atol=1e-12)


def test_classes_that_are_alike_must_differ_by_more() -> None:
    held = np.array([[0.5, 0.4, 0.1]] * 8 + [[0.3, 0.7, 0.0], [0.3, 0.0, 0.7]] + [[0, 1, 0], [0, 0, 1]])
    classes = np.array([0] * 10 + [1, 2])
    alike, unlike = doubts(held, classes)[8:10]
    assert held[8, 1] == held[9, 2]
    assert unlike > alike


def test_many_examples_are_judged_in_parts_and_small_classes_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = clusters()
    kept = np.r_[0:120, 120:126]  # six of the third class
    features, labels = features[kept], labels[kept]
    changed = with_wrong(labels, [5, 70])
    monkeypatch.setattr(module, "MOST", 40)
    found = label_errors(held_out_scores(features, changed, 3), changed)
    assert {5, 70} <= {one.place for one in found}
    assert not {one.place for one in found} & set(range(120, 126))


@pytest.mark.parametrize("features", [np.zeros((8, 3), np.float32), np.ones((8, 1), np.float32)])
def test_features_that_tell_nothing_accuse_nobody(features: np.ndarray) -> None:
    classes = np.arange(8) % 2
    held = held_out_scores(features, classes, 2)
    assert np.isfinite(held).all()
    assert np.ptp(held[classes == 0], axis=0).max() < 1e-9
