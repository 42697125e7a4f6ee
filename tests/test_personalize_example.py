"""The walk on examples/personalize: a new class is learned in LiteRT's interpreter, and old ones are kept."""

import pathlib
import sys
from types import ModuleType

import pytest
from PIL import Image

from support import ROOT, needs_shared, script, shared

SCRIPT = ROOT / "examples" / "personalize" / "personalize.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return script(SCRIPT)


@needs_shared
def test_a_new_class_is_learned_and_old_ones_are_kept(example: ModuleType, tmp_path: pathlib.Path) -> None:
    base = shared() / "models"
    graph = base / "mobilenet_v1_025_128" / "frozen_graph.pb"
    example.LEARNED = 30
    photos = {
        name: example.read(base / "data_flower_photos" / name) for name in ("daisy", "dandelion", "roses", "tulips")
    }
    new = photos.pop("tulips")
    made = example.write(graph, example.retrain(graph, photos), tmp_path / "personal.tflite")
    assert {check.entry for check in made.checks} == {"load", "train", "infer", "save", "restore"}
    rows = example.on_the_device(tmp_path / "personal.tflite", photos, new)
    (old_before, new_before), (old, learned) = rows["before"], rows["after"]
    assert old_before > 0.65
    assert new_before < 0.1
    assert learned >= 0.5
    assert old >= old_before - 0.15
    assert rows["restored"] == rows["after"]


def test_without_photos_it_says_so(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["personalize.py", "--photos", "nowhere"])
    assert example.main() == 0
    assert capsys.readouterr().out == "skipped: there is no 'nowhere'; name one with --photos\n"


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ({"cat": 21, "dog": 21, "new": 29}, "'new' has 29 photos; 30 or more are needed: 20 judge"),
        ({"cat": 0, "dog": 21, "new": 30}, "'cat' has 0 photos; 21 or more are needed: 20 judge"),
        ({"cat": 21, "new": 30}, "two classes or more are needed beside 'new'"),
    ],
)
def test_too_few_photos_are_said(
    example: ModuleType,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    counts: dict[str, int],
    why: str,
) -> None:
    for name, count in counts.items():
        (tmp_path / name).mkdir()
        for number in range(count):
            Image.new("RGB", (8, 8)).save(tmp_path / name / f"{number}.png")
    monkeypatch.setattr(sys, "argv", ["personalize.py", f"--photos={tmp_path}", f"--graph={SCRIPT}", "--new=new"])
    assert example.main() == 1
    assert capsys.readouterr().err == f"{why}\n"
