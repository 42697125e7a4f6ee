"""What is found in a folder of photos, and the folder that decisions make."""

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from colours import base, colour_photos
from command_line import call
from pocketgraph.apps.retraining.example_lists import category_of
from pocketgraph.apps.training_data.decisions import apply_decisions, read_decisions
from pocketgraph.apps.training_data.distribution_distance import area_under_curve, distance
from pocketgraph.apps.training_data.duplicates import groups_of
from pocketgraph.apps.training_data.photo_checks import DatasetReport, check_dataset
from pocketgraph.apps.training_data.photo_measures import filled_share, perceptual_hash
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import save


def scene(seed: int, width: int = 160, height: int = 120) -> Image.Image:
    """A picture with shapes and texture, unlike any of another seed."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    noise = rng.normal(0, 12, (height, width, 1))
    return Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8))


@pytest.fixture
def scenes(tmp_path: pathlib.Path) -> pathlib.Path:
    for number in range(48):
        folder = tmp_path / "scenes" / ("a", "b")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        scene(number).save(folder / f"{number}.png")
    return tmp_path / "scenes"


def found(report: DatasetReport) -> set[tuple[str, str]]:
    return {(one.kind, one.path) for one in report.findings}


def test_clean_photos_have_no_findings(scenes: pathlib.Path) -> None:
    report = check_dataset(scenes)
    assert report.counts == {"a": 24, "b": 24}
    assert not report.findings
    assert not report.small


def test_each_kind_is_found(scenes: pathlib.Path) -> None:
    (scenes / "a" / "broken.png").write_bytes((scenes / "a" / "0.png").read_bytes()[:300])
    shutil.copy(scenes / "a" / "2.png", scenes / "a" / "twin.png")
    scene(4).resize((120, 90)).save(scenes / "a" / "smaller.jpg", quality=60)
    scene(100).filter(ImageFilter.GaussianBlur(5)).save(scenes / "b" / "blurred.png")
    scene(101).point(lambda value: value // 8).save(scenes / "b" / "dark.png")
    scene(102, 30, 40).save(scenes / "b" / "tiny.png")
    scene(103, 400, 80).save(scenes / "b" / "long.png")
    pixels = np.array(scene(104))
    pixels[80:] = 128
    Image.fromarray(pixels).save(scenes / "b" / "cut.png")
    (scenes / "c").mkdir()
    scene(105).save(scenes / "c" / "alone.png")
    report = check_dataset(scenes)
    assert {
        ("broken", "a/broken.png"),
        ("blurred", "b/blurred.png"),
        ("dark", "b/dark.png"),
        ("odd size", "b/tiny.png"),
        ("odd size", "b/long.png"),
        ("cut", "b/cut.png"),
    } == {pair for pair in found(report) if "duplicate" not in pair[0]}
    (equal,) = report.of_kind("duplicate")
    assert {equal.path, equal.beside} == {"a/2.png", "a/twin.png"}
    assert equal.decision == "drop"
    (near,) = report.of_kind("near duplicate")
    assert {near.path, near.beside} == {"a/4.png", "a/smaller.jpg"}
    assert report.small == ("c",)
    assert [one.decision for one in report.of_kind("broken")] == ["drop"]


def test_near_duplicates_across_the_split_are_dropped_from_the_smaller_side(scenes: pathlib.Path) -> None:
    def side(name: str) -> str:
        return category_of(str(scenes / "a" / name), 30, 10)

    trains = next(f"{number}.png" for number in range(0, 48, 2) if side(f"{number}.png") == "training")
    tests = next(f"again {number}.jpg" for number in range(100) if side(f"again {number}.jpg") == "testing")
    Image.open(scenes / "a" / trains).save(scenes / "a" / tests, quality=70)
    (one,) = check_dataset(scenes, testing=30).of_kind("near duplicate")
    assert (one.path, one.beside, one.decision) == (f"a/{tests}", f"a/{trains}", "drop")
    assert "for testing, that one for training" in one.why


def test_wrong_labels_are_found_and_relabelled(tmp_path: pathlib.Path, capsys: Any) -> None:
    photos = colour_photos(tmp_path / "photos")
    shutil.move(photos / "green" / "4.png", photos / "blue" / "4b.png")
    shutil.move(photos / "Red things" / "5.png", photos / "green" / "5.png.png")
    save(base(), tmp_path / "base.pb")
    before = {path: path.read_bytes() for path in photos.rglob("*.png")}
    page, decisions, new = tmp_path / "page.html", tmp_path / "d.jsonl", tmp_path / "new"
    model = f"--model={tmp_path / 'base.pb'}"
    assert call("dataset", "check", photos, model, "-o", page, f"--decisions={decisions}") == 0
    assert "2  label: likely a wrong label" in capsys.readouterr().out
    text = page.read_text()
    assert "blue/4b.png" in text
    assert "relabel green" in text
    assert 'src="data:image/jpeg;base64,' in text
    assert "://" not in text
    assert call("dataset", "apply", decisions, photos, "-o", new) == 0
    assert "88 kept, 2 relabelled, 0 dropped" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in photos.rglob("*.png")} == before
    assert (new / "green" / "4b.png").read_bytes() == before[photos / "blue" / "4b.png"]
    assert (new / "Red things" / "5.png.png").exists()  # of a label of two words; 5.png would have been free too
    assert not (new / "blue" / "4b.png").exists()
    assert call("dataset", "check", new, model, "-o", tmp_path / "r.json") == 0
    assert json.loads((tmp_path / "r.json").read_text())["cross_validated"] == 1.0
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_class_too_small_for_labels_to_be_judged_is_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    photos = colour_photos(tmp_path / "photos")
    for photo in sorted((photos / "blue").iterdir())[2:]:
        photo.unlink()
    save(base(), tmp_path / "base.pb")
    assert call("dataset", "check", photos, f"--model={tmp_path / 'base.pb'}") == 0
    assert "each class, of two at least, takes 4 photos, and 'blue' has 2 that open" in capsys.readouterr().err


def test_pictures_of_kinds_that_are_not_read_are_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    photos = colour_photos(tmp_path / "photos")
    assert call("dataset", "check", photos) == 0
    assert "not read" not in capsys.readouterr().err
    Image.new("RGB", (40, 40)).save(photos / "blue" / "scan.tiff")
    assert call("dataset", "check", photos) == 0
    assert "note: files such as scan.tiff are of kinds that are not read" in capsys.readouterr().err


def test_how_far_photos_are_apart(tmp_path: pathlib.Path) -> None:
    photos = colour_photos(tmp_path / "photos")
    same, darker = tmp_path / "same", tmp_path / "darker"
    same.mkdir()
    darker.mkdir()
    for number, path in enumerate(sorted(photos.rglob("*.png"))):
        if number % 3 == 0:
            shutil.move(path, same / f"{number}.png")
        elif number % 3 == 1:
            Image.open(path).point(lambda value: value // 2).save(darker / f"{number}.png")
    alike, apart = (check_dataset(photos, base(), against=place).apart for place in (same, darker))
    assert alike is not None
    assert apart is not None
    assert apart.auc > 0.95 > 0.75 > alike.auc
    assert apart.frechet > 5 * alike.frechet
    with pytest.raises(UsageError, match="told by a model"):
        check_dataset(photos, against=same)


def test_distance_of_normal_distributions() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(400, 4)), rng.normal(2.0, 1.0, size=(400, 4))
    assert distance(first, second).frechet == pytest.approx(4.0, rel=0.15)  # 4 numbers x 2 squared / 4 variances
    assert area_under_curve(np.array([1.0, 2, 2, 3]), np.array([False, True, False, True])) == 0.875


def test_small_parts() -> None:
    assert groups_of([(1, 2), (5, 6), (2, 5), (8, 9)]) == [[1, 2, 5, 6], [8, 9]]
    assert not perceptual_hash(np.full((32, 32), 7.0)).any()
    black = np.zeros((40, 40, 3), np.uint8)
    assert filled_share(black) == 0
    black[25:30, 18:22] = 200  # a thing before a dark background
    assert filled_share(black) == 0
    black[10:] = 200
    assert filled_share(black) == 0.25


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no", "line 1: this is no decision"),
        ("[1]", "this is no decision"),
        ('{"path": "a/0.png", "decision": "burn"}', "a decision is keep, drop, relabel"),
        ('{"path": "a/0.png", "decision": "relabel", "label": "../b"}', "a folder's name"),
        ('{"path": "a/0.png", "decision": "relabel", "label": ""}', "a folder's name"),
        ('{"path": "../secret", "decision": "drop"}', "there is no '../secret'"),
        (
            '{"path": "a/0.png", "decision": "relabel", "label": "b"}\n'
            '{"path": "a/0.png", "decision": "relabel", "label": "c"}',
            "both 'b' and 'c'",
        ),
    ],
)
def test_bad_decisions(scenes: pathlib.Path, tmp_path: pathlib.Path, line: str, message: str) -> None:
    (tmp_path / "d.jsonl").write_text(line)
    with pytest.raises(FormatError, match=message):
        apply_decisions(read_decisions(tmp_path / "d.jsonl"), scenes, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_class_that_lies_elsewhere_goes_along_and_so_do_hidden_files(
    scenes: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Its folder is a link, as check and retrain follow it."""
    count = len(list((scenes / "b").iterdir()))
    (scenes / "b").rename(tmp_path / "elsewhere")
    (scenes / "b").symlink_to(tmp_path / "elsewhere")
    (scenes / "b" / "again").symlink_to(scenes)  # leads back
    (scenes / ".notes").write_text("not looked at")
    (tmp_path / "d.jsonl").write_text('{"path": "b/1.png", "decision": "drop"}')
    apply_decisions(read_decisions(tmp_path / "d.jsonl"), scenes, tmp_path / "new")
    assert len(list((tmp_path / "new" / "b").iterdir())) == count - 1
    assert not (tmp_path / "new" / "b").is_symlink()
    assert (tmp_path / "new" / ".notes").exists()


def test_a_taken_name_gets_a_number_and_drop_counts_most(scenes: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copy(scenes / "a" / "0.png", scenes / "b" / "0.png")
    lines = [
        {"path": "a/0.png", "decision": "relabel", "label": "b"},
        {"path": "a/2.png", "decision": "keep"},
        {"path": "a/2.png", "decision": "drop"},
        {"path": "a/4.png", "decision": "relabel", "label": "new one"},
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, lines)))
    counts = apply_decisions(read_decisions(tmp_path / "d.jsonl"), scenes, tmp_path / "new")
    assert counts == {"keep": 46, "drop": 1, "relabel": 2}
    assert (tmp_path / "new" / "b" / "0 2.png").exists()
    assert (tmp_path / "new" / "new one" / "4.png").exists()
    assert not (tmp_path / "new" / "a" / "2.png").exists()


def test_what_is_wrong_is_said(scenes: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "d.jsonl").write_text("")
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (("check", tmp_path / "none"), "no such folder"),
        (("check", tmp_path / "empty"), "no photo"),
        (("check", scenes / "a"), "no folder with photos"),
        (("check", scenes, "-o", "page.txt"), "neither .html nor .json"),
        (("apply", tmp_path / "d.jsonl", scenes, "-o", scenes), "there already"),
        (("apply", tmp_path / "d.jsonl", scenes, "-o", scenes / "new"), "inside the old one"),
        (("apply", tmp_path / "none", scenes, "-o", tmp_path / "new"), "cannot be read"),
        (("apply", tmp_path / "d.jsonl", tmp_path / "none", "-o", tmp_path / "new"), "no such folder"),
    ):
        assert call("dataset", *arguments) in (1, 2)
        assert message in capsys.readouterr().err
