"""Vectors of photos, their file, and the nearest of them."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from colours import base, colour_photos
from command_line import call
from pocketgraph import Session
from pocketgraph.apps.embeddings import embed, read_embeddings
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    save(base(), tmp_path / "base.pb")
    return colour_photos(tmp_path / "photos")


def test_vectors_are_what_the_model_makes_of_the_photos(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    made = embed(base(), photos, mean=10.0, std=np.float32(100))
    assert made.vectors.shape == (90, 6)
    assert set(made.labels) == {"red things", "green", "blue"}
    row = made.names.index("blue/3.png")
    pixels = np.asarray(Image.open(photos / "blue" / "3.png"), np.float32)[np.newaxis]
    with Session(base()) as session:
        (wanted,) = session.run(["features"], {"input": (pixels - 10) / 100})
    np.testing.assert_allclose(made.vectors[row], wanted[0], rtol=1e-6)
    assert embed(base(), photos, tensor="squares").vectors.shape == (90, 3)
    made.save(tmp_path / "v.npz")
    again = read_embeddings(tmp_path / "v.npz")
    np.testing.assert_array_equal(again.vectors, made.vectors)
    assert (again.names, again.labels, again.how) == (made.names, made.labels, {"mean": 10.0, "std": 100.0})
    assert again.identity == made.identity


def test_the_commands(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    (photos / "blue" / "broken.png").write_bytes(b"no")
    known, model = tmp_path / "v.npz", tmp_path / "base.pb"
    assert call("embed", model, photos, "-o", known, "--input_std=100", "--input_mean=1") == 0
    said = capsys.readouterr()
    assert "90 vectors of 6 numbers, 'features:0'" in said.out
    assert "broken.png" in said.err
    asked = photos / "green" / "7.png"
    assert call("nearest", known, f"--model={model}", asked, "-k3") == 0  # fed as the others were, without saying so
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{asked}: green (100 %)"
    assert lines[1].split() == ["1.0000", "green/7.png"]
    assert call("nearest", known, f"--vectors={known}", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["judged"], told["right"]) == (90, 90)
    assert len(told["photos"][0]["nearest"]) == 5


def test_what_is_wrong_is_said(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    known, model = tmp_path / "v.npz", tmp_path / "base.pb"
    embed(base(), photos).save(known)
    embed(base(), photos, tensor="squares").save(tmp_path / "other.npz")
    for arguments, message in (
        ((known,), "pass photos with --model"),
        ((known, "a.png"), "--model is needed"),
        ((known, "a.png", f"--model={model}"), "a.png: the picture cannot be read"),
        ((known, f"--vectors={tmp_path / 'other.npz'}"), "of another model, tensor or scaling"),
        ((model, "a.png", f"--model={model}"), "no file of vectors"),
        ((tmp_path / "none.npz", "a.png"), "no such file"),
    ):
        assert call("nearest", *arguments) in (1, 2)
        assert message in capsys.readouterr().err
    with pytest.raises(FormatError, match="no such folder"):
        embed(base(), tmp_path / "none")
    with pytest.raises(FormatError, match="this is a file, not a folder; give the folder"):
        embed(base(), __file__)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no photo"):
        embed(base(), tmp_path / "empty")
    with pytest.raises(UsageError, match="leave bottleneck_tensor out"):
        embed(base(), photos, tensor="nothing")
    assert call("embed", model, photos, "-o", tmp_path / "no" / "v.npz") == 1
    capsys.readouterr()
    save(parse("x = Placeholder(dtype=float, shape=[1,8,8,3])\ny = Relu(x, T=float)"), tmp_path / "flat.pb")
    assert call("embed", tmp_path / "flat.pb", photos, "-o", known) == 2
    assert "it is not clear where to cut" in capsys.readouterr().err
    assert call("embed", tmp_path / "flat.pb", photos, "-o", known, "--bottleneck_tensor=y") == 0  # as the hint says
    assert read_embeddings(known).vectors.shape == (90, 192)
