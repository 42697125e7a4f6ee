"""The split of retrain.py, a head that is solved, and a classifier of colours out of photos."""

import html
import itertools
import json
import os
import pathlib
import re
import shlex
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from colours import base, colour_photos
from command_line import call
from pocketgraph import Session
from pocketgraph.apps.embeddings import embed, photos_in
from pocketgraph.apps.retraining.base_model import Cut, found_cut, output_of
from pocketgraph.apps.retraining.classifier_metrics import (
    calibration_error,
    certainties,
    gain_of_last_half,
    learning_curve,
)
from pocketgraph.apps.retraining.example_lists import Example, category_of, examples_of, split_share
from pocketgraph.apps.retraining.retraining_page import as_html, headline, next_commands, verdict
from pocketgraph.apps.retraining.softmax_head import cross_validated, fold_of, minimized, solved
from pocketgraph.apps.retraining.tool import retrain
from pocketgraph.apps.retraining.training_features import ExampleFeatures, told_twice
from pocketgraph.apps.shipping.held_back import held_back_last
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.apps.training_data.photo_checks import check_dataset
from pocketgraph.datasets.class_labels import label_of
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.datasets.file_lists import of_folder, of_list
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import load, save, to_bytes
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.nn.activations import softmax
from support import model_dir, model_info, needs_shared


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    return colour_photos(tmp_path / "photos")


def test_the_split_is_the_originals() -> None:
    assert split_share("flowers/daisy/a.jpg") == pytest.approx(7.922613679786128, abs=1e-12)
    assert split_share("flowers/daisy/a_nohash_1.jpg") == split_share("flowers/daisy/a_nohash_2.jpg")
    assert category_of("flowers/daisy/a.jpg", 10, 10) == "validation"
    assert category_of("flowers/daisy/a.jpg", 10, 5) == "testing"
    assert category_of("flowers/daisy/a.jpg", 2, 5) == "training"
    assert split_share("a5d485dc_nohash_0.wav") == pytest.approx(23.080838643616726, abs=1e-12)
    of_speaker = [f"{place}a5d485dc_nohash_0.wav" for place in ("", "/x/yes/", "words/no/")]
    assert [category_of(path, 3, 20.1) for path in of_speaker] == ["testing"] * 3  # as input_data.py of speech_commands
    assert label_of("/x/Red Roses_2!") == "red roses 2"


def test_examples_that_look_the_same_to_the_base_are_told() -> None:
    """Photos that differ may have features that do not."""
    kinds = [("a", "training"), ("b", "training"), ("a", "testing"), ("b", "testing")]
    examples = [Example(f"{row}.png", label, category, "") for row, (label, category) in enumerate(kinds)]
    features = np.array([[1, 2], [1, 2], [1, 2], [3, 4]], np.float32)
    places = {"training": np.array([0, 1]), "testing": np.array([2, 3])}
    same = "which looks the same to the base as 0.png"
    assert list(told_twice(ExampleFeatures(examples, features, np.array([0, 1, 0, 1]), places))) == [
        f"1 example is in another class, too, as 1.png, {same}",
        f"1 example is on both sides of the split, so that the accuracy is too good, as 2.png, {same}",
    ]


def test_folders_of_any_script_have_labels_of_their_own(tmp_path: pathlib.Path) -> None:
    names = ["Gru\u0308n & Blau", "Кошки 1", "Собаки 1", "कुत्ता", "!!", "\udcff\udcfe"]
    expected = ["grün blau", "кошки 1", "собаки 1", "कुत्ता", "!!", "xff xfe"]
    assert [label_of(name) for name in names] == expected
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").touch()
    assert sorted(examples_of(str(tmp_path), testing=0, validation=0)[0]) == sorted(expected)


def test_what_no_photo_can_be_read_from_is_none_and_kinds_that_are_not_read_are_told(tmp_path: pathlib.Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").touch()
    (tmp_path / "cat" / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "cat" / "pipe.jpg")  # opening it would wait for ever
    os.symlink("nowhere.jpg", tmp_path / "cat" / "link.jpg")
    (tmp_path / "dog" / "b.HEIC").touch()
    told: list[str] = []
    examples = examples_of(str(tmp_path), testing=0, validation=0, warn=told.append)[1]
    assert [os.path.basename(entry.path) for entry in examples] == ["a.png", "link.jpg", "a.png"]
    assert [os.path.basename(entry.path) for entry in photos_in(str(tmp_path))] == ["a.png", "link.jpg", "a.png"]
    assert "'dog': files such as b.HEIC are of kinds that are not read; make JPEG files of them" in told


def test_photos_deeper_in_the_folder_of_a_class_are_of_it_and_those_beside_the_folders_of_none(
    tmp_path: pathlib.Path,
) -> None:
    """In all that reads photos in folders."""
    root = tmp_path / "set" / "train"
    for name in ("cat/a.png", "dog/a.png", "dog/old/b.png", "dog/.cache/b.png", "dog/old/2/c.JPG", "x.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    told: list[str] = []
    labels, examples = examples_of(str(root), testing=0, validation=0, warn=told.append)
    assert (labels, len(examples)) == (["cat", "dog"], 4)
    assert "1 file beside the folders of the classes, such as x.jpg, is left out" in told
    deep = "2 files in folders inside 'dog', such as old/b.png, are of this class"
    assert deep in told
    of_check: list[str] = []
    found = [entry for entry in photos_in(str(root), of_check.append) if entry.label]
    assert ([(entry.path, entry.label) for entry in found], of_check) == ([(e.path, e.label) for e in examples], [deep])
    files, classes = of_folder(str(root), without_strays=True)
    assert sorted(zip(files, classes, strict=True)) == sorted((entry.path, entry.label) for entry in examples)
    beside = [f"{root}: 1 file beside the folders of the classes, such as x.jpg, is left out"]
    assert list(Dataset(str(root), (), files, classes=classes).notes()) == beside
    assert len(of_folder(str(root))[0]) == 5


@pytest.mark.parametrize("parts", [["train"], ["train", "test"], ["flowers"]])
def test_a_folder_of_parts_of_a_data_set_is_no_folder_of_classes(parts: list[str], tmp_path: pathlib.Path) -> None:
    for part in parts:
        colour_photos(tmp_path / part)
    takes_one = parts == ["flowers"]  # class, which nothing is to be told apart from
    for read in (examples_of, *(() if takes_one else (check_dataset, partial(embed, base())))):
        with pytest.raises(UsageError, match=f"whose folders are the classes, as {tmp_path / parts[-1]}"):
            read(str(tmp_path))


def test_photos_of_two_classes_and_on_both_sides_of_the_split_are_counted(photos: pathlib.Path) -> None:
    red, green, blue = sorted(photos.iterdir())

    def new(part: str) -> pathlib.Path:
        """A name that falls into a part of the split, which follows from the whole path."""
        names = (red / f"new_{at}.png" for at in range(1000))
        return next(p for p in names if category_of(str(p), 10, 10) == part and not p.exists())

    of_test, trains = new("testing"), new("training")
    for at, place in enumerate((of_test, trains)):
        Image.new("RGB", (8, 8), (200 + at, 40 * at, 7)).save(place)
    (green / trains.name).write_bytes(trains.read_bytes())
    new("training").write_bytes(of_test.read_bytes())
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 8), (3, 3, 250)).save(blue / "turned.jpg", exif=exif)
    told: list[str] = []
    retrain(base(), photos, notify=told.append)
    assert any(text.startswith("1 example is in another class, too, as ") for text in told)
    assert any(text.startswith("1 example is on both sides of the split") for text in told)
    assert any("pictures have a mark to be turned" in text and ": 1 of " in text for text in told)


@pytest.mark.parametrize("option", ["summaries_dir", "bottleneck_dir", "saved_model_dir"])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_taught(
    option: str, photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(base(), tmp_path / "base.pb")
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    flags = [f"--image_dir={photos}", f"--output_graph={tmp_path / 'out.pb'}", f"--{option}={tmp_path / 'file' / 'x'}"]
    assert call("retrain", tmp_path / "base.pb", *flags) == 1
    assert f"the directory cannot be made: {tmp_path / 'file'} is a file" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_minimized_finds_the_bottom_of_a_valley() -> None:
    def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = 1 - x[0], x[1] - x[0] ** 2
        return float(a * a + 100 * b * b), np.array([-2 * a - 400 * x[0] * b, 200 * b])

    np.testing.assert_allclose(minimized(rosenbrock, np.array([-1.2, 1.0])), [1, 1], atol=1e-3)


def test_the_head_is_where_the_gradient_ends() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(3, 2, (90, 5)), rng.integers(0, 3, 90)
    strength = 0.5
    head, _ = solved(x, y, 3, strength)
    scale = np.sqrt(x.var(axis=0).mean())
    weights = head.weights.astype(np.float64)
    slope = (x - x.mean(axis=0)).T @ (softmax(x @ weights + head.biases) - np.eye(3)[y]) / 90
    penalty = weights * scale**2 / (strength * 90)
    np.testing.assert_allclose(slope, -penalty, atol=2e-4)


def test_groups_stay_together_when_examples_are_cut() -> None:
    groups = [f"thing {number // 3}" for number in range(60)]
    parts = fold_of(np.arange(60) % 2 * 0, 5, 0, groups)
    assert all(len({part for part, group in zip(parts, groups, strict=True) if group == name}) == 1 for name in groups)
    assert set(parts) == set(range(5))


def test_cross_validation_prefers_a_penalty_where_there_is_only_noise() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 40)), np.arange(60) % 2
    x[:, 0] += 2.0 * y
    strength, held = cross_validated(x, y, 2)
    assert strength < 10
    assert held.shape == (60, 2)
    assert (held.argmax(axis=1) == y).mean() > 0.65


def test_calibration() -> None:
    sure = np.array([[0.95, 0.05]] * 10)
    assert calibration_error(certainties(sure, np.zeros(10, int))) == pytest.approx(0.05)
    assert calibration_error(certainties(sure, np.arange(10) % 2)) == pytest.approx(0.45)
    mixed = certainties(np.array([[0.95, 0.05], [0.6, 0.4], [0.62, 0.38]]), np.array([0, 0, 1]))
    assert [(one.count, one.accuracy) for one in mixed] == [(2, 0.5), (1, 1.0)]


def test_the_learning_curve_rises_where_examples_teach_and_not_where_they_cannot() -> None:
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    groups = [str(number) for number in range(200)]
    x = rng.normal(size=(200, 30)) + 0.4 * y[:, None]
    curve = learning_curve(x, y, 2, 0.1, groups, 0)
    assert [size for size, _ in curve] == [20, 40, 80, 120, 160]
    assert (gain_of_last_half(curve) or 0) > 0.01
    flat = learning_curve(np.concatenate([10.0 * y[:, None], x], axis=1), y, 2, 0.1, groups, 0)
    assert gain_of_last_half(flat) == 0
    assert gain_of_last_half(curve[-1:]) is None


def test_the_page_says_what_came_of_it(photos: pathlib.Path) -> None:
    named = (photos / "green" / f"swapped{number}.png" for number in itertools.count())
    swapped = next(path for path in named if 12 <= split_share(str(path)) < 18)  # a test photo, wherever photos are
    swapped.write_bytes(next(photos.glob("blue/*.png")).read_bytes())
    made = retrain(base(), photos)
    commands = next_commands(made, "a b.pb", "labels.txt", str(photos))
    assert commands[1] == "pocketgraph live 'a b.pb' --labels=labels.txt --input_mean=0 --input_std=255"
    quantizing, live, exporting = (shlex.split(line) for line in next_commands(made, "-a b.pb", "l.txt", str(photos)))
    assert (live[2], quantizing[2], exporting[2]) == ("./-a b.pb",) * 3
    assert (quantizing[5], exporting[4]) == ("./-a b_small.tflite", "./-a b.tflite")
    page = as_html(made, "a b.pb", 1234, commands)
    share, count, where = headline(made)
    assert (count, where) == (made.counts["training"], "cross-validation")
    assert share == pytest.approx(np.trace(made.held_confusion) / made.held_confusion.sum())
    assert page.index(verdict(made)) < page.index("What to type next") < page.index("The surest mistakes")
    assert "<b>green</b>, named <b>blue</b>" in page
    assert "data:image/jpeg;base64," in page
    assert "More examples of the same kind would help little" in page
    shown = re.sub(r"</?span>", "", page)
    assert all(f"<code>{html.escape(command)}</code>" in shown for command in commands)


def test_a_classifier_of_colours(photos: pathlib.Path) -> None:
    told: list[str] = []
    (photos / "green" / "broken.png").write_bytes(b"\x89PNG no")
    made = retrain(base(), photos, notify=told.append)
    assert made.labels == ("red things", "blue", "green")
    assert made.cut.tensor == "features:0"
    assert made.cut.layer == "logits"
    assert sum(made.counts.values()) == 90
    assert made.accuracy["testing"] == 1.0
    assert made.confusion.sum() == made.counts["testing"]
    assert any("broken.png" in text for text in told)
    assert len(made.left_out) == 1
    with Session(made.graph) as session:
        blue = np.full((1, 8, 8, 3), (40, 40, 200), np.float32) / 255
        (scores,) = session.run(["final_result"], {"input": blue})
        assert scores.argmax() == 1
        (fed,) = session.run(["final_result"], {"input/BottleneckInputPlaceholder": np.zeros((2, 6), np.float32)})
        assert fed.shape == (2, 3)


def test_the_same_seed_gives_the_same_bytes_with_and_without_kept_features(
    photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    kept = str(tmp_path / "kept")
    graphs = [retrain(base(), photos, bottleneck_dir=place).graph for place in ("", kept, kept)]
    for number, graph in enumerate(graphs):
        save(graph, tmp_path / f"{number}.pb")
    first = retrain(base(), photos).head
    contents = {(tmp_path / f"{number}.pb").read_bytes() for number in range(3)}
    assert len(contents) == 1
    photo = next(path for path in (photos / "green").iterdir() if category_of(str(path), 10, 10) == "training")
    Image.fromarray(np.full((8, 8, 3), 255, np.uint8)).save(photo)  # another photo under the old name
    changed = retrain(base(), photos, bottleneck_dir=kept).head
    assert not np.array_equal(changed.weights, first.weights)
    np.testing.assert_array_equal(changed.weights, retrain(base(), photos).head.weights)


def test_kept_features_are_of_what_was_fed_and_of_photos_with_names_of_any_length(
    photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    photo = photos / "green" / "0.png"
    photo.rename(photo.with_name(f"{'緑' * 80}.png"))  # 244 bytes, of which a file's name has 255
    graph = parse("""
        input = Placeholder(dtype=float, shape=[1,8,8,3])
        gain = Placeholder(dtype=float, shape=[])
        axes = Const(int32 [1, 2])
        mean = Mean(input, axes, T=float, Tidx=int32)
        bright = Maximum(mean, gain, T=float)
        weights = Const(float [[1, 0], [0, 1], [1, 1]])
        logits = MatMul(bright, weights, T=float)
        scores = Softmax(logits, T=float)
    """)
    kept = str(tmp_path / "kept")
    once, again, other = (
        retrain(graph, photos, bottleneck_dir=folder, feeds={"gain": np.float32(gain)}).head.weights
        for folder, gain in ((kept, 0), (kept, 0.5), ("", 0.5))
    )
    np.testing.assert_array_equal(again, other)
    assert not np.array_equal(once, other)


def test_the_command(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    save(base(), tmp_path / "base.pb")
    out = tmp_path / "out.pb"
    flags = [
        f"--image_dir={photos}",
        f"--output_graph={out}",
        "--eval_step_interval=10",
        "--intermediate_store_frequency=0",
        "--logging_verbosity=INFO",
        f"--summaries_dir={tmp_path / 'logs'}",
        "--learning_rate=0.1",
    ]
    assert call("retrain", tmp_path / "base.pb", *flags, "--print_misclassified_test_images") == 0
    said = capsys.readouterr()
    assert "Final test accuracy = 100.0% (N=" in said.out
    assert "=== MISCLASSIFIED TEST IMAGES ===" in said.out
    assert "--learning_rate is of the original's gradient descent" in said.err
    assert "Right in 100.0 %" in (tmp_path / "out.html").read_text()
    assert (tmp_path / "labels.txt").read_text() == "red things\nblue\ngreen\n"
    assert json.loads((tmp_path / "logs" / "figures.json").read_text())["accuracy"]["testing"] == 1.0
    assert call("label_image", f"--graph={out}", "--input_mean=0", "--input_std=255", photos / "blue" / "0.png") == 0


def test_labels_of_another_model_stay(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    save(base(), tmp_path / "base.pb")
    usual, own = tmp_path / "labels.txt", tmp_path / "my net_labels.txt"
    usual.write_text("a\nb\nc\n")
    assert call("retrain", tmp_path / "base.pb", *flags_of(photos, tmp_path / "my net.pb")) == 0
    said = capsys.readouterr()
    assert f"{usual} names other classes, and stays: those of this model are in {own}" in said.err
    assert (usual.read_text(), own.read_text()) == ("a\nb\nc\n", "red things\nblue\ngreen\n")
    assert f"'--labels={own}'" in said.out
    flags = [f"--graph={tmp_path / 'my net.pb'}", "--input_mean=0", "--input_std=255", photos / "blue" / "0.png"]
    assert call("label_image", *flags) == 0
    said = capsys.readouterr()
    assert f"'{own}' names the classes" in said.err
    assert said.out.startswith("blue")

    own.unlink()  # those of a model that is made again are its own
    assert call("retrain", tmp_path / "base.pb", *flags_of(photos, tmp_path / "my net.pb")) == 0
    assert usual.read_text() == "red things\nblue\ngreen\n"
    assert not own.exists()


def test_a_graph_that_no_flag_names_is_not_replaced(
    photos: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    save(base(), "base.pb")
    graph = tmp_path / "retrained_graph.pb"
    assert call("retrain", "base.pb", f"--image_dir={photos}") == 0
    assert graph.stat().st_size > 0
    graph.write_bytes(b"another")
    assert call("retrain", "base.pb", f"--image_dir={photos}") == 2
    assert "-o retrained_graph_2.pb is free; -o retrained_graph.pb replaces it" in capsys.readouterr().err
    assert graph.read_bytes() == b"another"
    assert call("retrain", "base.pb", f"--image_dir={photos}", "-o", "retrained_graph.pb") == 0
    assert graph.read_bytes() != b"another"
    (tmp_path / "retrained_graph.pb.unfinished").mkdir()  # of a call that was allowed to, and goes on
    assert call("retrain", "base.pb", f"--image_dir={photos}") == 0


def flags_of(photos: pathlib.Path, graph: pathlib.Path) -> list[str]:
    return [f"--image_dir={photos}", f"--output_graph={graph}"]


def test_a_saved_model_is_written_with_the_originals_signature(
    photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(base(), tmp_path / "base.pb")
    folder, out = tmp_path / "served", tmp_path / "out.pb"
    flags = [f"--image_dir={photos}", f"--output_graph={out}", f"--saved_model_dir={folder}"]
    assert call("retrain", tmp_path / "base.pb", *flags) == 0
    served = load(folder)
    assert set(served.signatures) == {"serving_default"}
    signature = served.signatures["serving_default"]
    assert (list(signature.inputs), dict(signature.outputs)) == (["image"], {"prediction": "final_result:0"})
    with Session(folder) as session, Session(out) as plain:
        (spec,) = plain.inputs.values()
        picture = np.full([size or 1 for size in spec.shape or ()], 0.5, np.float32)
        (wanted,) = plain.run(["final_result"], {spec.name: picture})
        (found,) = session.run([signature.outputs["prediction"]], {signature.inputs["image"]: picture})
    np.testing.assert_array_equal(found, wanted)
    capsys.readouterr()
    out.unlink()
    assert call("retrain", tmp_path / "base.pb", *flags) == 2
    assert "a SavedModel is a new directory" in capsys.readouterr().err
    assert not out.exists()  # it is said before the work

    beside = tmp_path / "both"
    beside.mkdir()
    flags = [f"--image_dir={photos}", f"--output_graph={beside / 'out.pb'}", f"--saved_model_dir={beside}"]
    assert call("retrain", tmp_path / "base.pb", *flags) == 2
    assert "is to be written there" in capsys.readouterr().err
    assert not list(beside.iterdir())


@pytest.mark.parametrize(
    ("architecture", "file"),
    [
        (["--architecture=mobilenet_0.50_224"], "mobilenet_v1_0.50_224/frozen_graph.pb"),
        (["--architecture=mobilenet_1.0_128_quantized"], "mobilenet_v1_1.0_128_quantized/quantized_graph.pb"),
        (["--architecture", "own.pb"], "own.pb"),
        ([], "classify_image_graph_def.pb"),
    ],
)
def test_a_base_lies_where_the_original_downloaded_it(
    photos: pathlib.Path, tmp_path: pathlib.Path, architecture: list[str], file: str
) -> None:
    place = tmp_path / "models" / file
    place.parent.mkdir(parents=True)
    save(base(), place)
    flags = [*architecture, f"--model_dir={tmp_path / 'models'}", f"--output_graph={tmp_path / 'out.pb'}"]
    assert call("retrain", f"--image_dir={photos}", *flags) == 0
    assert (tmp_path / "out.pb").exists()


def test_what_is_wrong_is_said(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    with pytest.raises(FormatError, match="not found"):
        retrain(base(), tmp_path / "none")
    (tmp_path / "one" / "cat").mkdir(parents=True)
    with pytest.raises(UsageError, match="No valid folders"):
        examples_of(str(tmp_path / "one"))
    Image.new("RGB", (8, 8)).save(tmp_path / "one" / "cat" / "a.png")
    with pytest.raises(UsageError, match="multiple classes are needed"):
        retrain(base(), tmp_path / "one")
    (tmp_path / "one" / "dog").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "one" / "dog" / "a.png")
    with pytest.raises(UsageError, match="no images in the category training"):
        retrain(base(), tmp_path / "one", testing=49.9, validation=50)
    (tmp_path / "one" / "DOG").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "one" / "DOG" / "a.png")
    with pytest.raises(UsageError, match="two folders have the label 'dog'"):
        retrain(base(), tmp_path / "one")
    with pytest.raises(UsageError, match="not clear where to cut"):
        found_cut(parse("x = Placeholder(dtype=float, shape=[1,2])\ny = Relu(x, T=float)"), "y")
    assert call("retrain", tmp_path / "mobilenet_0.5", f"--image_dir={photos}") == 2
    assert "no network is downloaded" in capsys.readouterr().err
    assert call("retrain", "--model_dir=none", f"--image_dir={photos}", "--architecture=mobilenet_0.50_224") == 2
    assert "no network is downloaded" in capsys.readouterr().err
    assert call("retrain", f"--image_dir={photos}", "--tfhub_module=https://tfhub.dev/google/x/1") == 2
    told = capsys.readouterr().err
    assert "fetch https://tfhub.dev/google/x/1?tf-hub-format=compressed" in told
    assert "--model=FOLDER" in told
    assert call("retrain") == 2
    save(base(), tmp_path / "base.pb")
    assert call("retrain", tmp_path / "base.pb", f"--image_dir={photos}", "--bottleneck_tensor=pool_3") == 2
    assert "leave --bottleneck_tensor out" in capsys.readouterr().err
    assert call("retrain", tmp_path / "base.pb", f"--image_dir={photos}", "--report=page.txt") == 2
    assert "a report is an .html page" in capsys.readouterr().err


@needs_shared
@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("mobilenet_v1_025_128", "MobilenetV1/Logits/Dropout_1b/Identity:0"),
        ("mobilenet_v1_025_128_quant", "MobilenetV1/Logits/Dropout_1b/Identity:0"),
        ("customvision_recipe", "fc/Reshape:0"),
        ("tfl_quantized_graph", "MobilenetV2/Logits/Dropout/Identity:0"),
    ],
)
def test_where_real_models_are_cut(name: str, tensor: str) -> None:
    graph = pocketgraph.load(model_dir(name) / model_info(name)["file"])
    assert found_cut(graph, output_of(graph)).tensor == tensor


def test_a_class_with_one_photo_is_learned_and_said(photos: pathlib.Path) -> None:
    (photos / "white").mkdir()
    place = next(
        name for name in map(str, range(99)) if category_of(f"{photos}/white/{name}.png", 10, 10) == "training"
    )
    Image.fromarray(np.full((8, 8, 3), 255, np.uint8)).save(photos / "white" / f"{place}.png")
    told: list[str] = []
    made = retrain(base(), photos, notify=told.append)
    assert made.labels[-1] == "white"
    assert any("'white' has one example: it cannot be cross-validated" in text for text in told)
    assert made.held_confusion.sum() == made.counts["training"]
    assert gain_of_last_half(made.curve) is None or len(made.curve) > 1
    assert "4 classes" in as_html(made, "x.pb", 1, [])


def test_a_saved_model_is_frozen_to_be_retrained(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    """The weights of its layers are variables, and so no constants as it is stored."""
    stored = pathlib.Path(__file__).parents[2] / "fixtures" / "saved_models" / "augmentation"
    assert call("retrain", stored, f"--image_dir={photos}", "-o", tmp_path / "out.pb") == 0
    assert "frozen in memory" in capsys.readouterr().err
    assert (tmp_path / "out.pb").exists()


def test_the_layer_is_that_of_the_result_that_gives_the_scores() -> None:
    """Of a call that gives features, a spectrum and scores, in that order."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        mel = Const(float[2,2] 0.5)
        spectrum = MatMul(x, mel, T=float)
        features = Relu(spectrum, T=float)
        w = Const(float[2,2] 2)
        logits = MatMul(features, w, T=float)
        scores = Sigmoid(logits, T=float)
        call = IdentityN(spectrum, features, scores, T=[float,float,float])
    """)
    assert found_cut(graph, "call:2") == Cut("features:0", "logits")


def test_features_are_taken_as_they_are() -> None:
    """A module of features ends in the average of its last convolution's places, which is no layer of classes."""
    text = """
        x = Placeholder(dtype=float, shape=[?,4,4,3])
        w = Const(float[1,1,3,2] 0.5)
        conv = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        axes = Const(int32 [1, 2])
        pooled = Mean(conv, axes, T=float, Tidx=int32)
        shares = Softmax(pooled, T=float)
    """
    assert found_cut(parse(text), "pooled") == Cut("pooled:0", "")
    assert found_cut(parse(text), "shares") == Cut("x:0", "conv")


@pytest.mark.parametrize("named", [None, "input/BottleneckInputPlaceholder"])
def test_a_model_that_was_retrained_is_a_base(photos: pathlib.Path, named: str | None) -> None:
    once = retrain(base(), photos)
    again = retrain(once.graph, photos, bottleneck=named, mean=0.0, std=255.0)  # as the base has it
    assert again.cut.tensor == once.cut.tensor == "features:0"
    assert to_bytes(again.graph) == to_bytes(once.graph)


def test_a_node_that_is_in_the_way_of_the_new_layer_is_named(photos: pathlib.Path) -> None:
    taken = "final_training_ops/Wx_plus_b/MatMul"
    named = {"squares": taken}
    graph = base().map_nodes(
        lambda node: node.replace(
            name=named.get(node.name, node.name), inputs=tuple(named.get(ref, ref) for ref in node.inputs)
        )
    )
    with pytest.raises(UsageError, match=f"'{taken}' already, before the cut; give the model that this one was made"):
        retrain(graph, photos)


def test_a_finished_file_is_no_base(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pocketgraph.export(base(), tmp_path / "base.tflite")
    with pytest.raises(UsageError, match="is finished already; retrain starts from the graph"):
        retrain(load(tmp_path / "base.tflite"), photos)


def test_ship_judges_a_retrained_model_on_photos_that_retrain_held_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the hash is of the path as it is given
    colour_photos(tmp_path / "photos")
    save(retrain(base(), "photos", mean=127.5, std=127.5).graph, "net.pb")
    made = ship("net.pb", "out", "photos", input_mean=127.5, input_std=127.5)
    held = {entry.path for entry in examples_of("photos")[1] if entry.category != "training"}
    lines = (tmp_path / "out" / "samples.txt").read_text().splitlines()
    paths = [os.path.normpath(os.path.join("out", line.partition("\t")[0])) for line in lines]
    taught = 90 - len(held)
    assert held == set(paths[taught:])
    assert held.isdisjoint(paths[:taught])
    assert f"of {len(held)} answers are right" in made.tried[-1].words
    assert "--data=out/samples.txt " in made.commands[0]
    assert f"--skip={taught} --limit={len(held)}" in made.commands[0]
    assert any("if retrain was told other percentages" in line for line in made.unknown)
    about = metadata(load("out/model.tflite").extra)
    assert about is not None
    assert about.mean


def test_samples_held_back_are_found_from_a_folder_behind_a_link_and_on_another_drive(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    colour_photos(tmp_path / "photos")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "out").symlink_to(tmp_path / "far" / "away")
    graph = Graph([const("final_training_ops/weights", np.zeros(1, np.float32))])
    given = (graph, tmp_path / "photos", str(tmp_path / "out"), 100, 100, 1)

    relative, drive = os.path.relpath, str((tmp_path / "far" / "away").resolve())

    def elsewhere(path: str, start: str) -> str:
        if start == drive:
            raise ValueError(f"path is on mount 'C:', start on mount 'D:': {path}")
        return relative(path, start)

    for _ in range(2):
        listed, taught = held_back_last(*given)
        assert listed is not None
        files, classes = of_list(str(listed))
        assert 0 < taught < len(files) == len(classes) == 90
        assert all(map(os.path.isfile, files))
        monkeypatch.setattr(os.path, "relpath", elsewhere)


def test_a_folder_with_a_name_that_is_no_text_is_taken_whole(tmp_path: pathlib.Path) -> None:
    colour_photos(tmp_path / "photos")
    photo = next((tmp_path / "photos").glob("*/*"))
    photo.rename(photo.parent / os.fsdecode(b"caf\xe9.png"))
    graph = Graph([const("final_training_ops/weights", np.zeros(1, np.float32))])
    assert held_back_last(graph, tmp_path / "photos", str(tmp_path), 100, 100, 1) == (tmp_path / "photos", 0)


def test_ship_tells_that_photos_which_judge_a_retrained_model_may_have_taught_it(
    photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    save(retrain(base(), photos).graph, tmp_path / "net.pb")
    told = ship(tmp_path / "net.pb", tmp_path / "out", photos).unknown
    assert any("samples that judge it taught it" in line for line in told)


def test_without_a_base_one_is_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert call("retrain", f"--image_dir={tmp_path}") == 2
    assert (
        "no base model is given; give a trained graph behind retrain, such as the .pb in http"
        in capsys.readouterr().err
    )
