"""Tags of which several may be true of a sample are judged by how many of them are right."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph import quantize
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.datasets.class_labels import are_logits
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.evaluation.evaluator import evaluate
from pocketgraph.runtime.comparison.tag_accuracy import TagAccuracy, are_tags

RANDOM = np.random.default_rng(4)
WEIGHTS = RANDOM.normal(size=(8, 3)).round(3)
ROWS = RANDOM.normal(size=(60, 8)).astype(np.float32)
TAGS = (ROWS @ WEIGHTS > 0.5).astype(np.int64)


def tagger(last: str = "Sigmoid") -> Graph:
    return parse(f"""
        x = Placeholder(dtype=float, shape=[?,8])
        w = Const(float {WEIGHTS.tolist()})
        b = Const(float [-0.5, -0.5, -0.5])
        scores = MatMul(x, w, T=float)
        logits = BiasAdd(scores, b, T=float)
        y = {last}(logits, T=float)
    """)


@pytest.mark.parametrize("scale", [1, 40])
def test_figures_are_those_of_the_definitions(scale: float) -> None:
    """By hand: 9 tags, of which 7 are right; 2 given rightly, 1 given wrongly, 1 left out: F1 = 4 / (4 + 1 + 1)."""
    shares = np.array([[0.9, 0.2, 0.3], [0.6, 0.1, 0.4], [0.1, 0.3, 0.2]])
    wanted = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0]])
    wanted[2, 0], shares[2, 2] = 0, 0.7
    found = TagAccuracy()
    for row, truth in zip(shares if scale == 1 else (shares - 0.5) * scale, wanted, strict=True):
        found.add(row[None].astype(np.float32), truth)
    assert (found.right, found.all_right) == (7 / 9, 1 / 3)
    assert found.f1 == pytest.approx(4 / 6)


def test_logits_are_known_by_how_near_they_are_and_not_by_which_threshold_flatters() -> None:
    """Of these logits more tags were right from 0.5 on; of the numbers beside shares 0.5 is the threshold."""
    logits, near_shares = np.array([[-3, 0.3, 2.0]], np.float32), np.array([[-0.1, 0.3, 1.1]], np.float32)
    found = TagAccuracy(), TagAccuracy()
    for one, row in zip(found, (logits, near_shares), strict=True):
        one.add(row, np.array([0, 0, 1]))
    assert [one.right for one in found] == [2 / 3, 1]
    assert are_logits(logits[0], [0, 0, 1], may_be=True)
    assert not are_logits(near_shares[0], [0, 0, 1], may_be=True)
    assert are_logits(np.float32([np.nan, np.inf, -4]), [0, 1, 0], may_be=True)


def test_one_of_several_is_a_class_and_no_tag() -> None:
    answer = np.zeros((1, 3), np.float32)
    assert are_tags(np.array([[1, 1, 0], [0, 0, 1.0]]), answer)
    assert not are_tags(np.eye(3), answer)
    assert not are_tags(np.array([[1, 0.5, 0]]), answer)
    assert not are_tags(np.array([[1, 1, 0, 0]]), np.zeros((1, 2, 2), np.float32))  # places of a picture


@pytest.mark.parametrize("last", ["Sigmoid", "Identity"])
def test_evaluate_and_quantize_judge_tags(last: str) -> None:
    wrong = TAGS.copy()
    wrong[:3, 0] = 1 - wrong[:3, 0]
    data = {"x": ROWS, "labels": wrong}
    (found,) = evaluate(tagger(last), data)
    assert found.tags is not None
    assert found.errors is None
    assert found.tags.right == pytest.approx(1 - 3 / 180)
    assert found.tags.all_right == pytest.approx(1 - 3 / 60)
    made = quantize(tagger(last), data, limit=40, max_accuracy_drop=5)
    assert made.judged is not None
    assert isinstance(made.judged.exact, TagAccuracy)
    assert made.judged.exact.right == 1  # of the 20 that judge
    assert "F1 of tags lost" in made.judged.words()


def test_labels_that_are_of_another_output_are_said_to_be() -> None:
    graph = tagger()
    found = evaluate(graph.replace(outputs=["scores", "y"]), {"x": ROWS, "labels": TAGS[:, :2]})
    assert any(
        "has 2 numbers for each sample, which is not what the first output gives" in note for note in found.notes
    )


def test_ship_keeps_what_tags_may_lose(tmp_path: pathlib.Path) -> None:
    save(tagger(), tmp_path / "tags.pb")
    np.savez(tmp_path / "data.npz", x=ROWS, labels=TAGS)
    found = ship(tmp_path / "tags.pb", tmp_path / "out", tmp_path / "data.npz")
    assert found.budget == "2 points of F1"
    assert "F1 100.0% before" in found.tried[-1].words
    assert not any("what the numbers" in text for text in found.unknown)
