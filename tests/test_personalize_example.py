"""The walk on examples/personalize: a new class is learned in LiteRT's interpreter, and old ones are kept."""

import pathlib
import sys
from types import ModuleType

import pytest

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
