"""Classes of samples are judged in the order that the model itself, or a file beside it, has them in."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from pocketgraph import evaluate, load, quantize, save
from pocketgraph.datasets.class_labels import NO_LABEL, read_labels
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.accuracy_budget import AccuracyBudget
from pocketgraph.quantization.class_names import class_names, labels_beside, labels_beside_detector, write_labels

NAMES = ["cheap", "fair", "dear"]
SAMPLES = np.random.default_rng(0).random((60, 3), np.float32)
DATA = {"x": SAMPLES, "labels": np.array(NAMES)[SAMPLES.argmax(axis=1)]}
SCORES = """
    x = Placeholder(dtype=float, shape=[?,3])
    w = Const(float [[4, 0, 0], [0, 4, 0], [0, 0, 4]])
    logits = MatMul(x, w, T=float)
    probs = Softmax(logits, T=float)
    axis = Const(int32 1)
    best = ArgMax(logits, axis, T=float, Tidx=int32, output_type=int64)
    words = Const(string ["cheap", "fair", "dear"])
    zero = Const(int32 0)
"""
NAMED = {
    "table": """
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="classes")
        keys = Const(int64 [0, 1, 2])
        fill = LookupTableImportV2(table, keys, words, Tin=int64, Tout=string)
        none = Const(string "none")
        names = LookupTableFindV2(table, best, none, ^fill, Tin=int64, Tout=string)
    """,
    "picked": "names = GatherV2(words, best, zero, Tparams=string, Tindices=int64, Taxis=int32)",
    "repeated": """
        row = ExpandDims(words, zero, T=string, Tdim=int32)
        times = Const(int32 [5, 1])
        names = Tile(row, times, T=string, Tmultiples=int32)
    """,
}


def classifier(named: str = "") -> Graph:
    return Graph(parse(SCORES + NAMED.get(named, "")), outputs=["probs", "names"] if named else ["probs"])


@pytest.mark.parametrize("named", NAMED)
def test_evaluate_and_quantize_take_the_names_in_the_graph(named: str) -> None:
    told: list[str] = []
    assert class_names(classifier(named), "probs") == NAMES
    (found,) = evaluate(classifier(named), DATA, outputs=["probs"], notify=told.append)
    assert found.accuracy is not None
    assert found.accuracy.top1 == 1  # in alphabetical order a third of it
    assert any("in the model's own order: cheap, fair, dear" in line for line in told)
    made = quantize(classifier(named), DATA, outputs=["probs"], limit=40, max_accuracy_drop=5)
    assert made.judged is not None
    assert made.judged.exact is not None
    assert made.judged.words().startswith("top-1 lost 0.00 points")
    assert made.judged.keeps(AccuracyBudget(accuracy_drop=5.0))
    assert made.judged.exact.top1 == 1  # type: ignore[union-attr]


def test_texts_that_nothing_picks_by_the_scores_name_no_classes() -> None:
    graph = Graph(parse(SCORES + "names = GatherV2(words, zero, zero, Tparams=string, Tindices=int32, Taxis=int32)"))
    assert class_names(graph, "probs") == []


@pytest.mark.parametrize("place", ["LABELS.TXT", "label_map.pbtxt", "metadata.json", "model.json"])
def test_a_file_beside_the_model_names_the_classes(place: str, tmp_path: pathlib.Path) -> None:
    items = "".join(f"item {{ id: {at} name: '{name}' }}\n" for at, name in enumerate(NAMES, 1))
    content = {"L": "\n".join(NAMES), "l": items, "m": json.dumps({"labels": NAMES})}[place[0]]
    (tmp_path / place).write_text(content)
    save(classifier(), tmp_path / "net.pb")
    told: list[str] = []
    (found,) = evaluate(tmp_path / "net.pb", DATA, notify=told.append)
    assert found.accuracy is not None
    assert found.accuracy.top1 == 1
    assert any(f"{place}' names the classes" in line for line in told)
    graph = load(tmp_path / "net.pb")
    assert labels_beside(tmp_path / "net.pb", graph, "probs", told.append) == NAMES
    assert labels_beside_detector(tmp_path / "net.pb", graph, (), told.append)[-3:] == NAMES


@pytest.mark.parametrize("beside", ["1/assets/labels.txt", "1/labels.txt", "labels.txt"])
@pytest.mark.parametrize("place", ["", "export", "export/best/1", "export/best/1/saved_model.pb"])
def test_the_folder_around_a_model_has_the_names_of_the_model(place: str, beside: str, tmp_path: pathlib.Path) -> None:
    save(classifier(), tmp_path / "export" / "best" / "1", form="saved_model")
    names = tmp_path / "export" / "best" / beside
    names.parent.mkdir(exist_ok=True)
    names.write_text("\n".join(NAMES))
    assert labels_beside(tmp_path / place, load(tmp_path / place), "probs", print) == NAMES


def test_names_in_the_outermost_folder_are_of_its_model(tmp_path: pathlib.Path) -> None:
    save(classifier(), tmp_path / "export" / "best" / "1", form="saved_model")
    (tmp_path / "labels.txt").write_text("\n".join(NAMES))
    assert labels_beside(tmp_path, load(tmp_path), "probs", print) == NAMES


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000, '{"labels": 3}', '{"labels": [1, 2, 3]}', "\xff", '{"num_classes": 3}', '{"0": "a", "2": "b"}',
        '{"version": 0, "epochs": 2, "batch": 1}', '{"version": 1, "width": 3, "height": 2}',
    ],
)  # fmt: skip
def test_json_without_names_is_passed_over(content: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.json").write_bytes(content.encode("latin-1"))
    save(classifier(), tmp_path / "net.pb")
    assert labels_beside(tmp_path / "net.pb", classifier(), "probs", print) == []


def test_numbers_in_arrays_are_places_of_classes_whatever_these_are_called(tmp_path: pathlib.Path) -> None:
    """Folders named 0, 1 and 10 are sorted as texts; an array's 2 is the third score all the same."""
    (tmp_path / "labels.txt").write_text("2\n0\n1\n")
    save(classifier(), tmp_path / "net.pb")
    (found,) = evaluate(tmp_path / "net.pb", {"x": SAMPLES, "labels": SAMPLES.argmax(axis=1)})
    assert found.accuracy is not None
    assert found.accuracy.top1 == 1


def test_a_last_class_without_a_name_is_read_again(tmp_path: pathlib.Path) -> None:
    """As the blank of what reads letters is."""
    write_labels(str(tmp_path / "labels.txt"), ["a", "", "b", ""])
    assert read_labels(tmp_path / "labels.txt") == ["a", "", "b", NO_LABEL]
