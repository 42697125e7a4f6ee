"""Pictures, recordings and texts for an input by its name; broken pictures are left out, folders are gone through."""

from __future__ import annotations

import pathlib
import wave
import zipfile

import numpy as np
import pytest
from PIL import Image

from colours import strongest_colour
from command_line import call
from pocketgraph import formats
from pocketgraph.datasets import image_loading


@pytest.fixture
def classifier(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "colour.pb"
    formats.save(strongest_colour(), path)
    return path


def picture(path: pathlib.Path, colour: tuple[int, int, int]) -> pathlib.Path:
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (8, 8), colour).save(path)
    return path


def test_a_picture_for_an_input(
    classifier: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red = picture(tmp_path / "red.png", (255, 0, 0))
    for feed in (red, f"picture={red}"):
        assert call("verify", classifier, classifier, "--inputs", feed) == 0
        assert "1 set of feeds" in capsys.readouterr().out
        assert call("benchmark_model", classifier, "--inputs", feed, "--num_runs=1") == 0
        assert "Input shapes: [1,4,4,3]" in capsys.readouterr().out
        assert call("plan", classifier, "--inputs", feed) == 0
        assert "float[1, 4, 4, 3]" in capsys.readouterr().out


def test_a_file_that_does_not_fit_is_named(
    classifier: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with wave.open(str(tmp_path / "word.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(bytes(200))
    assert call("label_image", f"--graph={classifier}", tmp_path / "word.wav") == 2
    assert "label_wav" in capsys.readouterr().err
    for feed in ("--inputs", "--data"):
        assert call("verify", classifier, classifier, feed, tmp_path / "word.wav") == 2
        assert "[1, 4, 4, 3], a picture or a spectrogram, and this is a recording" in capsys.readouterr().err
    (tmp_path / "text.txt").write_text("hello")
    assert call("verify", classifier, classifier, "--inputs", f"picture={tmp_path / 'text.txt'}") == 2
    assert "allow_pickle" not in capsys.readouterr().err


def test_what_is_no_array_of_numbers_is_refused(
    classifier: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feeds = tmp_path / "feeds.npz"
    for command in (["verify", classifier], ["benchmark_model"]):
        with zipfile.ZipFile(feeds, "w") as archive:
            archive.writestr("picture.npy", bytes(1000))
        assert call(*command, classifier, "--inputs", feeds) == 2
        assert "not a readable .npz: the magic string is not correct" in capsys.readouterr().err
        np.savez(feeds, picture=np.array(["red"]))
        assert call(*command, classifier, "--inputs", feeds) == 1
        assert "'picture:0' is string, the graph wants float" in capsys.readouterr().err


def test_a_folder_is_labelled(
    classifier: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture(tmp_path / "pictures" / "red.webp", (255, 0, 0))
    picture(tmp_path / "pictures" / "blue.jpg", (0, 0, 255))
    assert call("label_image", f"--graph={classifier}", tmp_path / "pictures", "-k", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("class")] == ["2", "0"]


def test_a_broken_picture_is_named_and_left_out(
    classifier: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "pictures"
    whole = picture(place / "a.jpg", (255, 0, 0))
    picture(place / "b.jpg", (0, 255, 0))
    (place / "cut.jpg").write_bytes(whole.read_bytes()[:-200])
    (place / "other.png").write_text("no picture")
    assert call("evaluate", classifier, "--data", place) == 0
    told = capsys.readouterr()
    assert "cut.jpg is left out: the picture is damaged or cut short" in told.err
    assert "other.png is left out: this is not a JPEG, PNG, BMP, GIF or WebP picture" in told.err
    assert "2 samples" in told.out
    for path in (place / "a.jpg", place / "b.jpg"):
        path.unlink()
    assert call("evaluate", classifier, "--data", place) == 1
    assert "cut.jpg" in capsys.readouterr().err


def test_webp_pixels_are_those_of_the_png(tmp_path: pathlib.Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.webp", lossless=True, exact=True)
    np.testing.assert_array_equal(image_loading.read(tmp_path / "a.webp"), pixels)
