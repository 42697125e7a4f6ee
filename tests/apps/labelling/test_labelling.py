"""What raters say, kept through every death of the server; how far they agree; and what becomes of it."""

import csv
import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from colours import base, colour_photos
from command_line import call
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.labelling.exports import resolve_labels
from pocketgraph.apps.labelling.labels_file import AGREED, Box, Judgement, LabelsFile
from pocketgraph.apps.labelling.rater_agreement import agreement, cohen_kappa, fleiss_kappa, matched
from pocketgraph.apps.labelling.suggestions import in_doubt_first, suggestions
from pocketgraph.errors import FormatError, UsageError


def said(file: LabelsFile, rater: str, *labels: str) -> LabelsFile:
    """Has a rater judge photo 0, 1, …; "-" is one that is left out."""
    for number, label in enumerate(labels):
        if label != "-":
            file.decide(Judgement(f"{number}.png", rater, "label", label), f"{rater} {number} {label}")
    return file


def test_cohens_kappa_of_published_tables() -> None:
    # Cohen 1960, table 1 (in its proportions, of 200): 0.492; and the classic grant example: 0.4
    assert cohen_kappa(np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])) == pytest.approx(0.492, abs=5e-4)
    assert cohen_kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)
    assert math.isnan(cohen_kappa(np.array([[7, 0], [0, 0]])))


def test_cohens_kappa_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    for classes in (2, 3, 7):
        ours, theirs = rng.integers(0, classes, (2, 60))
        theirs = np.where(rng.random(60) < 0.6, ours, theirs)
        table = np.zeros((classes, classes))
        np.add.at(table, (ours, theirs), 1)
        assert cohen_kappa(table) == pytest.approx(metrics.cohen_kappa_score(ours, theirs), abs=1e-12)


def test_fleiss_kappa_of_the_published_example() -> None:
    # 14 raters, 10 subjects, 5 categories: the worked example that the encyclopedias print, 0.210
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(np.array(counts)) == pytest.approx(0.210, abs=5e-4)
    assert math.isnan(fleiss_kappa(np.zeros((0, 3))))


def test_a_file_keeps_undo_skip_and_each_rater(tmp_path: pathlib.Path) -> None:
    file = LabelsFile(tmp_path / "l.jsonl", ["cat", "dog"])
    said(file, "ann", "cat", "dog")
    file.decide(Judgement("0.png", "ann", "label", "dog"), "again")
    file.decide(Judgement("2.png", "ann", "skip"), "skip")
    file.decide(None, "undo", path="0.png", rater="ann")
    assert not file.decide(None, "undo", path="0.png", rater="ann")  # told twice, counts once
    said(file, "bob", "-", "cat")
    other = LabelsFile(tmp_path / "l.jsonl")
    for one in (file, other):
        assert one.classes == ("cat", "dog")
        assert {path: told.label or told.kind for path, told in one.of("ann").items()} == {
            "0.png": "cat",
            "1.png": "dog",
            "2.png": "skip",
        }
        assert one.history("ann") == ["0.png", "1.png", "2.png"]
        assert one.raters == ["ann", "bob"]


def test_a_killed_writer_loses_nothing_that_was_told(tmp_path: pathlib.Path) -> None:
    """The file cut at every byte: all decisions whose line is whole are there, and new ones go behind."""
    path = tmp_path / "l.jsonl"
    said(LabelsFile(path, ["cat", "dog"]), "ann", "cat", "dog", "cat")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        file = LabelsFile(path, ["cat", "dog"])
        lines = whole[:length].count(b"\n") - 1
        assert len(file.of("ann")) == max(lines, 0)
        file.decide(Judgement("9.png", "ann", "label", "dog"), "afterwards")
        again = LabelsFile(path)
        is_whole = lines >= 0 and whole[length : length + 1] == b"\n"  # but for its end: counts, though nobody was told
        assert len(again.of("ann")) == max(lines, 0) + 1 + is_whole
        assert again.of("ann")["9.png"].label == "dog"
        assert again.torn <= 1


def test_two_servers_append_to_one_file(tmp_path: pathlib.Path) -> None:
    ours, theirs = LabelsFile(tmp_path / "l.jsonl", ["cat", "dog"]), LabelsFile(tmp_path / "l.jsonl", ["cat", "dog"])
    said(ours, "ann", "cat", "cat", "dog")
    said(theirs, "bob", "cat", "dog", "dog")
    ours.refresh()
    found = agreement(ours)
    assert found.raters == ("ann", "bob")
    assert found.disputed == ("1.png",)
    assert found.pairs[0][2:] == (3, pytest.approx(0.4))
    assert found.fleiss == pytest.approx(1 / 3)  # alike 2/3; chance (3² + 3²) / 6² = 1/2


def test_the_majority_counts_and_what_was_settled(tmp_path: pathlib.Path) -> None:
    file = LabelsFile(tmp_path / "l.jsonl", ["cat", "dog", "eel"])
    said(file, "ann", "cat", "cat", "cat", "cat")
    said(file, "bob", "cat", "dog", "dog", "-")
    said(file, "cy", "cat", "dog", "eel", "-")
    found = resolve_labels(file)
    assert {path: one.label for path, one in found.judgements.items()} == {
        "0.png": "cat",
        "1.png": "dog",
        "3.png": "cat",
    }
    assert found.disputed == ("2.png",)
    file.decide(Judgement("2.png", AGREED, "label", "eel"), "settled-1")
    assert resolve_labels(file).judgements["2.png"].label == "eel"
    assert "2.png" not in agreement(file).disputed
    assert AGREED not in file.raters


def test_boxes_match_by_class_and_overlap() -> None:
    ours = [Box("cat", 0, 0, 10, 10), Box("cat", 20, 0, 10, 10), Box("dog", 0, 0, 10, 10)]
    theirs = [Box("cat", 1, 1, 10, 10), Box("cat", 25, 0, 10, 10), Box("dog", 0, 0, 10, 9)]
    assert matched(ours, theirs) == 2
    assert matched(ours, ours[:1] * 3) == 1


def test_what_the_model_doubts_comes_first(tmp_path: pathlib.Path) -> None:
    photos = colour_photos(tmp_path / "photos")
    paths = [str(path) for path in sorted(photos.rglob("*.png"))[:40]]
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"nothing")
    labeler = Labeler(base(), ["red", "things red", "blue", "Green"])
    classes = ["green", "blue"]
    found = suggestions(labeler, classes, [*paths, str(broken)])
    scores = [labeler.scores(path) for path in paths]
    for one, row in zip(found, scores, strict=False):
        assert one is not None
        assert one.label == ("green" if row[3] > row[2] else "blue")
        assert one.doubt == pytest.approx(1 - abs(float(row[3]) - float(row[2])), abs=1e-6)
    assert found[-1] is None
    order = in_doubt_first(found)
    doubts = [found[i].doubt for i in order[:-1]]  # type: ignore[union-attr]
    assert doubts == sorted(doubts, reverse=True)
    assert order[-1] == len(paths)
    with pytest.raises(UsageError, match="knows none of these classes"):
        suggestions(labeler, ["horse"], paths)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    place = tmp_path / "photos"
    place.mkdir()
    for number in range(4):
        Image.new("RGB", (40, 30), (60 * number, 0, 0)).save(place / f"{number}.png")
    return place


def test_exports_of_labels(folder: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    file = said(LabelsFile(tmp_path / "l.jsonl", ["cat", "dog"]), "ann", "cat", "dog", "cat")
    said(file, "bob", "cat", "dog", "dog")
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "new") == 0
    out = capsys.readouterr()
    assert sorted(str(p.relative_to(tmp_path / "new")) for p in (tmp_path / "new").rglob("*.png")) == [
        "cat/0.png",
        "dog/1.png",
    ]
    assert "Cohen's kappa 0.400 of 3" in out.out
    assert "1 not judged" in out.out
    assert "2.png is disputed" in out.err
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "l.csv") == 0
    with open(tmp_path / "l.csv") as lines:
        assert list(csv.reader(lines)) == [
            ["path", "label", "ann", "bob"],
            ["0.png", "cat", "cat", "cat"],
            ["1.png", "dog", "dog", "dog"],
        ]
    capsys.readouterr()
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "l.json") == 2
    assert "no boxes" in capsys.readouterr().err


def test_exports_of_boxes(folder: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    file = LabelsFile(tmp_path / "b.jsonl", ["cat", "dog"], True)
    boxes = (Box("dog", 4, 3, 20, 12), Box("cat", 0, 0, 5, 5))
    file.decide(Judgement("1.png", "ann", "boxes", boxes=boxes), "boxes-1")
    file.decide(Judgement("2.png", "ann", "boxes"), "boxes-2")
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "b.json") == 0
    coco = json.loads((tmp_path / "b.json").read_text())
    assert [image["file_name"] for image in coco["images"]] == ["1.png", "2.png"]
    assert (coco["images"][0]["width"], coco["images"][0]["height"]) == (40, 30)
    names = {one["id"]: one["name"] for one in coco["categories"]}
    assert [
        (one["id"], one["image_id"], names[one["category_id"]], one["bbox"], one["area"]) for one in coco["annotations"]
    ] == [
        (1, 1, "dog", [4, 3, 20, 12], 240),
        (2, 1, "cat", [0, 0, 5, 5], 25),
    ]
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "b.csv") == 0
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == "1.png,dog,4.0,3.0,20.0,12.0"
    capsys.readouterr()
    assert call("dataset", "export", file.path, folder, "-o", tmp_path / "new") == 2
    assert "boxes are no folders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "classes", "what"),
    [
        ("", [], "no classes are given"),
        ("", ["a", "a"], "named twice"),
        ("", ["a/b"], "no name for a class"),
        ('{"classes": ["cat"], "boxes": false}\n', ["dog"], "have the class 'cat' too"),
        ("hello\n", ["cat"], "no file of labels"),
        ('{"classes": []}\n', [], "are no names"),
        ('{"classes": ["cat"]}\n{"path": 1}\n', [], "no decision on a photo"),
    ],
)
def test_what_is_no_file_of_labels(tmp_path: pathlib.Path, content: str, classes: list[str], what: str) -> None:
    (tmp_path / "l.jsonl").write_text(content)
    with pytest.raises((UsageError, FormatError), match=what):
        LabelsFile(tmp_path / "l.jsonl", classes)
    assert (tmp_path / "l.jsonl").read_text() == content


def test_bad_calls(folder: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    assert call("dataset", "label", folder, "--no-browser") == 2
    assert "no classes are given; --classes=" in capsys.readouterr().err
    assert call("dataset", "label", tmp_path / "none", "--classes=a,b") == 1
    assert call("dataset", "label", folder, "--classes=a,b", "--rater=agreed", "--no-browser") == 2
    assert "no name of a rater" in capsys.readouterr().err
    assert call("dataset", "export", tmp_path / "none.jsonl", folder) == 1
    assert "dataset label makes them" in capsys.readouterr().err


def test_without_the_extra_it_is_named(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "starlette", None)
    assert call("dataset", "label", folder, "--classes=a,b", "--no-browser") == 2
    assert "pip install 'pocketgraph[live]'" in capsys.readouterr().err
