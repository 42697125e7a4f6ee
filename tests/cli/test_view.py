"""view: pages and pictures of models, and the page in a real browser."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse

TEXT = """
    x = Placeholder(dtype=float, shape=[1, 3])
    a/w = Const(float[3,2] 1.0)
    a/one/m = MatMul(x, a/w, T=float, transpose_a=false, transpose_b=false)
    a/one/r = Relu(a/one/m, T=float)
    a/two/n = Neg(a/one/r, ^a/one/m, T=float)
    a/two/s = Softmax(a/two/n, T=float)
    y = Identity(a/two/s, T=float)
"""


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    save(parse(TEXT), tmp_path / "model.pb")
    return tmp_path / "model.pb"


@pytest.mark.parametrize(
    ("name", "start"), [("page.html", b"<!doctype html>"), ("graph.svg", b"<svg "), ("graph.png", b"\x89PNG")]
)
def test_the_ending_says_what_is_written(model: pathlib.Path, name: str, start: bytes, capsys: Any) -> None:
    out = model.parent / name
    assert call("view", model, "-o", out) == 0
    assert out.read_bytes().startswith(start)
    assert str(out) in capsys.readouterr().out


def test_the_default_is_a_page_here(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    assert call("view", "model.pb") == 0
    page = model.parent / "model.html"
    drawn = page.read_bytes()
    page.write_bytes(drawn.replace(b"<header>", b"<header>old"))
    assert call("view", "model.pb") == 0
    assert page.read_bytes() == drawn


def test_the_default_replaces_no_other_page(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """As that of retrain, which has the name of its graph."""
    monkeypatch.chdir(model.parent)
    page = model.parent / "model.html"
    page.write_text('<body class="pocketgraph report">')
    assert call("view", "model.pb") == 2
    assert "-o model.html replaces it" in capsys.readouterr().err
    assert page.read_text() == '<body class="pocketgraph report">'
    assert call("view", "model.pb", "-o", "model.html") == 0
    assert call("view", "model.pb") == 0


def test_bad_calls(model: pathlib.Path, capsys: Any) -> None:
    assert call("view", model, "-o", "x.pdf") == 2
    assert ".html, .svg or .png" in capsys.readouterr().err
    assert call("view", model, "-o", model.parent / "none" / "x.html") == 1
    assert "mkdir" in capsys.readouterr().err
    assert call("view", model.parent / "none.pb", "-o", model.parent / "x.html") == 1
    for more in (["--measure"], ["--compare", model], ["--quantization", model]):
        assert call("view", model, "-o", model.parent / "x.svg", *more) == 2
        assert f"{more[0]} is for pages" in capsys.readouterr().err
    for more in (["--compare", model.parent / "none.pb"], ["--quantization", model.parent / "none.json"]):
        assert call("view", model, "-o", model.parent / "x.html", *more) == 1
        assert "none." in capsys.readouterr().err
    assert call("view", model, "-o", model.parent / "x.html", "--quantization", model) == 1
    assert "no report of quantize" in capsys.readouterr().err
    assert not (model.parent / "x.html").exists()
    transform = ("transform_graph", model, "-o", model.parent / "y.pb", "--transforms=remove_device")
    assert call(*transform, "--view=x.txt") == 2
    assert call(*transform, "--view", model.parent / "none" / "x.html") == 1
    assert not (model.parent / "y.pb").exists()
    assert not (model.parent / "x.svg").exists()
