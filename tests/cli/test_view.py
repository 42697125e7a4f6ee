"""view: pages and pictures of models, and the page in a real browser."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import pocketgraph
from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text import parse
from support import model_dir, needs_shared

TEXT = """
    x = Placeholder(dtype=float, shape=[1, 3])
    a/w = Const(float[3,2] 1.0)
    a/one/m = MatMul(x, a/w, T=float, transpose_a=false, transpose_b=false)
    a/one/r = Relu(a/one/m, T=float)
    a/two/n = Neg(a/one/r, ^a/one/m, T=float)
    a/two/s = Softmax(a/two/n, T=float)
    y = Identity(a/two/s, T=float)
"""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
    assert (model.parent / "model.html").exists()


def test_bad_calls(model: pathlib.Path, capsys: Any) -> None:
    assert call("view", model, "-o", "x.pdf") == 2
    assert ".html, .svg or .png" in capsys.readouterr().err
    assert call("view", model, "-o", model.parent / "none" / "x.html") == 1
    assert "mkdir" in capsys.readouterr().err
    assert call("view", model.parent / "none.pb", "-o", model.parent / "x.html") == 1
    assert call("view", model, "-o", model.parent / "x.svg", "--measure") == 2
    assert not (model.parent / "x.svg").exists()


@contextlib.contextmanager
def browser_page(width: int = 1000, height: int = 800) -> Iterator[tuple[Any, list[str]]]:
    """A page of Chromium, and what it complains of or asks for."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
        yield page, wrong
        browser.close()


OVERLAPS = """() => {
  const boxes = pocketgraph.state.scene.boxes.filter((box) => !box.child);
  let count = 0;
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    if (Math.abs(a.x - b.x) < (a.w + b.w) / 2 - 1 && Math.abs(a.y - b.y) < (a.h + b.h) / 2 - 1) count++;
  }));
  return count;
}"""
OPEN_ALL = """() => {
  const { graph } = pocketgraph.state;
  for (const scope of graph.scopes) if (!graph.opened.has(scope.number)) pocketgraph.toggle(scope.number);
}"""
DRAWN = "pocketgraph.state.scene.boxes.filter((box) => box.kind === 0).length"


def test_the_page_in_a_browser(model: pathlib.Path) -> None:
    out = model.parent / "page.html"
    call("view", model, "-o", out, "--measure")
    with browser_page() as (page, wrong):
        page.goto(out.as_uri())
        page.evaluate(OPEN_ALL)
        assert page.evaluate(DRAWN) == 6
        assert page.evaluate(OVERLAPS) == 0
        page.fill("#search", "softmax")
        assert page.inner_text("#panel h2") == "1 found"
        page.click("#panel li button")
        assert page.inner_text("#panel h2") == "a/two/s"
        assert "float[1,2]" in page.inner_text("#panel")
        page.click("#panel li button")
        assert page.inner_text("#panel h2") == "a/two/n", "an input leads to where it comes from"
        page.focus("#canvas")
        page.keyboard.press("ArrowUp")
        assert page.inner_text("#panel h2") in ("a/one/r", "a/one/m")
        page.keyboard.press("Escape")
        page.evaluate("pocketgraph.reveal(0)")
        page.evaluate(
            "pocketgraph.showWay(pocketgraph.state.graph.nodes.find((node) => node.name === 'a/one/r').number)"
        )
        assert page.inner_text("#panel h2") == "3 nodes from one to the other"
        page.keyboard.press("Escape")
        page.select_option("#color", "weights")
        assert "24 B in all" in page.inner_text("#panel")
        page.select_option("#color", "time")
        assert "Most time" in page.inner_text("#panel")
        was_dark = page.evaluate("document.documentElement.classList.contains('dark')")
        page.click("#theme")
        assert page.evaluate("document.documentElement.classList.contains('dark')") != was_dark
        assert page.evaluate("pocketgraph.asSvg().match(/stroke-dasharray/g).length") >= 1
        assert wrong == []


def test_hostile_names_do_nothing_in_a_browser(tmp_path: pathlib.Path) -> None:
    names = ["<script>alert(1)</script>", '</script><img src=x onerror="alert(1)">', "n" * 1000, "\u202eabc"]
    nodes = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    nodes += [Node(name, f"Neg{name}", ["x"], {"T": FLOAT, "<i>": name.encode()}, name) for name in names]
    save(Graph(nodes), tmp_path / "model.pb")
    call("view", tmp_path / "model.pb", "-o", tmp_path / "page.html")
    with browser_page(400, 800) as (page, wrong):
        page.goto((tmp_path / "page.html").as_uri())
        for number in range(len(nodes)):
            page.evaluate(f"pocketgraph.reveal({number})")
        for word in ("script", "nnnn"):
            page.fill("#search", word)
        assert (
            page.evaluate("document.images.length + document.querySelectorAll('#panel script, #panel i').length") == 0
        )
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert wrong == []


@needs_shared
@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("mobilenet_v1_025_128", "frozen_graph.pb"),
        ("aiy_visionkit_detect", "frozen_inference_graph.pb"),
        ("kws_ds_cnn_s", "DS_CNN_S.pb"),
        ("sm_half_plus_two_tf2", "saved_model_half_plus_two_tf2_cpu/00000123"),
    ],
)
def test_real_models_in_a_browser(tmp_path: pathlib.Path, folder: str, file: str) -> None:
    path = model_dir(folder) / file
    call("view", path, "-o", tmp_path / "page.html")
    with browser_page() as (page, wrong):
        page.goto((tmp_path / "page.html").as_uri())
        page.evaluate(OPEN_ALL)
        shown = page.evaluate("pocketgraph.state.graph.nodes.length")
        assert 0 < shown <= len(pocketgraph.load(path))
        assert page.evaluate(DRAWN) == shown
        assert page.evaluate(OVERLAPS) == 0
        assert wrong == []
