"""``pocketgraph live`` without a browser: folders, videos, sounds in; pictures, GIF and JSON lines out."""

import json
import os
import pathlib
import wave
from typing import Any

import numpy as np
import pytest
from PIL import Image

from command_line import call
from pocketgraph.apps.live.application_choice import APPLICATIONS
from pocketgraph.cli.use.live import KINDS
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse

COLOURS = """
    x = Placeholder(dtype=float, shape=[1,4,4,3])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
"""


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    save(parse(COLOURS), tmp_path / "model.pb")
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "photos").mkdir()
    for name, colour in (("a", (255, 0, 0)), ("b", (0, 0, 255))):
        Image.new("RGB", (32, 24), colour).save(tmp_path / "photos" / f"{name}.png")
    return tmp_path / "model.pb"


def live(model: pathlib.Path, source: str, output: str, *more: str) -> int:
    base = model.parent
    labels = f"--labels={base / 'labels.txt'}"
    return call(
        "live",
        model,
        labels,
        f"--input={base / source}",
        f"--output={output if output == '-' else base / output}",
        *more,
    )


def test_json_lines(model: pathlib.Path, capsys: Any) -> None:
    assert live(model, "photos", "-") == 0
    out = capsys.readouterr()
    lines = [json.loads(line) for line in out.out.splitlines()]
    assert [line["classes"][0]["label"] for line in lines] == ["red", "blue"]
    assert "--app=classify" in out.err


@pytest.mark.parametrize(("sides", "written"), [((32, 24), (64, 48)), ((24, 24), (48, 48)), ((960, 4), (960, 4))])
def test_a_picture_of_a_photo_is_as_wide_to_its_height(
    sides: tuple[int, int], written: tuple[int, int], tmp_path: pathlib.Path
) -> None:
    """Models of open sizes are given squares, and what they made of them was written as a square."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,24,24,3])
        size = Const(int32 [48, 48])
        y = ResizeBilinear(x, size, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    pixels = np.zeros((sides[1], sides[0], 3), np.uint8)
    pixels[:, : sides[0] // 2] = 200
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    assert call("live", tmp_path / "net.pb", f"--input={tmp_path / 'photo.png'}", "-o", tmp_path / "out.png") == 0
    drawn = np.asarray(Image.open(tmp_path / "out.png"))
    assert drawn.shape == (written[1], written[0], 3)
    middle, between = written[0] // 2, written[0] // 12
    assert (drawn[:, : middle - between] == 200).all()
    assert (drawn[:, middle + between :] == 0).all()


def test_annotated_pictures_and_an_animation(model: pathlib.Path, capsys: Any) -> None:
    assert live(model, "photos", "out") == 0
    assert sorted(p.name for p in (model.parent / "out").iterdir()) == ["a.png", "b.png"]
    drawn = np.asarray(Image.open(model.parent / "out" / "a.png"))
    assert drawn.shape == (24, 32, 3)
    assert (drawn != [255, 0, 0]).any()  # the class is written into it
    assert live(model, "photos", "out.gif") == 0
    with Image.open(model.parent / "out.gif") as picture:
        assert picture.n_frames == 2
    assert "2 frames" in capsys.readouterr().out


def test_photos_of_several_sizes_in_one_animation(model: pathlib.Path) -> None:
    Image.new("RGB", (10, 40), (0, 250, 0)).save(model.parent / "photos" / "c.png")
    assert live(model, "photos", "out.gif", "--app=embed") == 0  # which writes nothing into them
    with Image.open(model.parent / "out.gif") as picture:
        assert picture.size == (32, 40)
        assert picture.convert("RGB").getpixel((16, 0)) == (0, 0, 0)  # the first is 24 high, in the middle
        picture.seek(2)
        last = picture.convert("RGB")
        assert last.getpixel((16, 39)) == (0, 250, 0)
        assert last.getpixel((2, 20)) == (0, 0, 0)  # nothing of the ones before


def test_one_picture(model: pathlib.Path, capsys: Any) -> None:
    assert live(model, "photos/b.png", "out.png") == 0
    drawn = np.asarray(Image.open(model.parent / "out.png"))
    assert drawn.shape == (24, 32, 3)
    assert (drawn == [0, 0, 255]).all(axis=2).any()
    assert "one picture" in capsys.readouterr().out
    assert live(model, "photos", "two.png") == 2
    assert "give a folder or x.gif" in capsys.readouterr().err


def test_without_labels_it_is_said_how_to_give_them(model: pathlib.Path, capsys: Any) -> None:
    (model.parent / "labels.txt").rename(model.parent / "names.txt")  # else it is found beside the model
    assert call("live", model, f"--input={model.parent / 'photos'}", "--output=-") == 0
    out = capsys.readouterr()
    assert json.loads(out.out.splitlines()[0])["classes"][0]["label"] == "class 0"
    assert "note: nothing names the classes, so they are numbers; --labels names a file" in out.err
    assert call("label_image", model, model.parent / "photos" / "a.png") == 0
    assert "--labels names a file" in capsys.readouterr().err
    assert call("label_image", model, model.parent / "photos" / "a.png", f"--labels={model.parent / 'names.txt'}") == 0
    assert "--labels" not in capsys.readouterr().err
    (model.parent / "names.txt").rename(model.parent / "labels.txt")
    for command in (
        ("label_image", model, model.parent / "photos" / "a.png"),
        ("live", model, f"--input={model.parent / 'photos'}", "--output=-"),
    ):
        assert call(*command) == 0
        out = capsys.readouterr()
        assert "labels.txt' names the classes" in out.err
        assert "class 0" not in out.out


def test_words_are_named_by_labels_beside_a_model_of_sound(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("""
        wav = Placeholder(dtype=string, shape=[])
        sound = DecodeWav(wav, desired_channels=1, desired_samples=16000)
        to = Const(int32[2] [1, 16000])
        row = Reshape(sound, to, T=float, Tshape=int32)
        one = Const(int32[1] [1])
        mean = Mean(row, one, T=float, Tidx=int32, keep_dims=true)
        w = Const(float [[1, 2, 3]])
        sums = MatMul(mean, w, T=float)
        y = Softmax(sums, T=float)
    """), tmp_path / "net.pb")  # fmt: skip
    (tmp_path / "words_labels.txt").write_text("_silence_\nyes\nno\n")
    os.mkfifo(tmp_path / "a_labels.txt")  # to be left alone, as nobody writes to it
    with wave.open(str(tmp_path / "talk.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 16000, "NONE", ""))
        file.writeframes(np.full(16000, 9000, np.int16).tobytes())
    assert call("live", tmp_path / "net.pb", f"--input={tmp_path / 'talk.wav'}", "-o", "-") == 0
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["classes"][0]["label"] == "no"
    assert "words_labels.txt' names the classes" in said.err


def test_a_label_map_beside_a_detector_names_what_it_finds(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("""
        image_tensor = Placeholder(dtype=uint8, shape=[1,8,8,3])
        floats = Cast(image_tensor, SrcT=uint8, DstT=float)
        axes = Const(int32[4] [0, 1, 2, 3])
        mean = Mean(floats, axes, T=float, Tidx=int32)
        none = Sub(mean, mean, T=float)
        where = Const(float [[[0.1, 0.1, 0.6, 0.6]]])
        sure = Const(float [[0.9]])
        what = Const(float [[2]])
        many = Const(float [1])
        detection_boxes = Add(where, none, T=float)
        detection_scores = Add(sure, none, T=float)
        detection_classes = Add(what, none, T=float)
        num_detections = Add(many, none, T=float)
    """), tmp_path / "net.pb")  # fmt: skip
    (tmp_path / "pets_label_map.pbtxt").write_text(
        "item { id: 1 name: 'n1' display_name: 'cat' }\nitem { id: 2 name: 'dog' }"
    )
    Image.new("RGB", (8, 8), (200, 30, 10)).save(tmp_path / "photo.png")
    assert call("live", tmp_path / "net.pb", f"--input={tmp_path / 'photo.png'}", "-o", "-") == 0
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[0])["detections"][0]["label"] == "dog"
    assert "pets_label_map.pbtxt' names the classes" in said.err


def test_two_labels_beside_a_model_make_its_one_share_that_of_a_class(tmp_path: pathlib.Path, capsys: Any) -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        axes = Const(int32 [1, 2])
        means = Mean(x, axes, T=float, Tidx=int32)
        w = Const(float [[1], [1], [1]])
        score = MatMul(means, w, T=float)
        y = Sigmoid(score, T=float)
    """
    save(parse(text), tmp_path / "pets.pb")
    Image.new("RGB", (8, 8), (255, 255, 255)).save(tmp_path / "photo.png")
    call_live = ("live", tmp_path / "pets.pb", f"--input={tmp_path / 'photo.png'}", "-o", tmp_path / "out.jsonl")
    for labels, kind in (("", "benchmark"), ("ant\nbee\ncat\n", "benchmark"), ("cat\ndog\n", "classify")):
        (tmp_path / "labels.txt").write_text(labels)
        assert call(*call_live) == 0
        assert f"--app={kind}" in capsys.readouterr().err
    (answer,) = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert answer["classes"][0]["label"] == "dog"


def test_labels_that_do_not_fit(model: pathlib.Path, capsys: Any) -> None:
    (model.parent / "labels.txt").write_text("red\ngreen\n")
    assert live(model, "photos", "-") == 0
    assert "the labels file has 2 lines and the output 3 scores" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("pose", "not OpenPose's 57 maps"),
        ("stylize", "no node 'style_num'"),
        ("detect", "no detector's that is known"),
        ("speech", "takes no sound"),
    ],
)
def test_a_model_that_is_not_for_an_application(model: pathlib.Path, app: str, why: str, capsys: Any) -> None:
    assert live(model, "photos", "-", f"--app={app}") in (1, 2)
    assert why in capsys.readouterr().err


def test_a_broken_picture_is_left_out_and_counts_as_failed(model: pathlib.Path, capsys: Any) -> None:
    (model.parent / "photos" / "c.jpg").write_bytes(b"\xff\xd8 no")
    assert live(model, "photos", "out.jsonl") == 1
    assert len((model.parent / "out.jsonl").read_text().splitlines()) == 2
    err = capsys.readouterr().err
    assert "c.jpg" in err
    assert "left out" in err


def test_wrong_calls(model: pathlib.Path, capsys: Any) -> None:
    assert live(model, "photos", "out.mp4") == 2
    assert "x.gif" in capsys.readouterr().err
    assert live(model, "none", "-") == 1
    assert live(model, "photos", "-", "--camera=0") == 2
    assert live(model, "photos", "-", "--app=speech") == 2
    assert "takes no sound" in capsys.readouterr().err
    assert live(model, "photos", "-", "--threshold=7") == 2
    assert "from 0 to 1" in capsys.readouterr().err


def test_the_command_lists_every_application() -> None:
    assert tuple(APPLICATIONS) == KINDS
