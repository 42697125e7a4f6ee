"""Every application on a page, from ``live`` and from ``app web``: the same answers, and nothing wider than a phone."""

import pathlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browsers import FAKE, browser, until
from pocketgraph.apps.live.application_choice import APPLICATIONS, application
from pocketgraph.apps.live.live_server import LiveServer
from pocketgraph.apps.projects import make_project
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from web_sites import built, served

INPUT = "x = Placeholder(dtype=float, shape=[1,24,32,3])\n"
GRAPHS = {
    "classify": INPUT
    + "axes = Const(int32 [1, 2])\nm = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)\ny = Softmax(m, T=float)",
    "detect": INPUT + "four = Const(float 4)\nmore = Mul(x, four, T=float)\ntwo = Const(float 2)\n"
    "rest = Sub(more, two, T=float)\nheatmap = Sigmoid(rest, T=float)",
    "stylize": "input = Placeholder(dtype=float, shape=[1,?,?,3])\nstyle_num = Placeholder(dtype=float, shape=[3])\n"
    "one = Const(int32 [1, 1, 1, 3])\ntint = Reshape(style_num, one, T=float, Tshape=int32)\n"
    "mixed = Mul(input, tint, T=float)\ntransformer = Relu(mixed, T=float)",
    "image": INPUT + "one = Const(float 1)\ny = Sub(one, x, T=float)",
    "segment": INPUT + "w = Const(float [[[[1, -1, 2, 0, 1], [-1, 2, 0, 1, 0], [0, 0, -1, 1, 1]]]])\n"
    'y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")',
    "best_class": INPUT + "w = Const(float [[[[1, -1, 2, 0, 1], [-1, 2, 0, 1, 0], [0, 0, -1, 1, 1]]]])\n"
    'scores = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")\nlast = Const(int32 -1)\n'
    "y = ArgMax(scores, last, T=float, Tidx=int32, output_type=int64)",
    "pose": INPUT + 'w = Const(float[1,1,3,57] 0.01)\ny = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")',
    "embed": INPUT + "n = Const(int32 [1, 2304])\nflat = Reshape(x, n, T=float, Tshape=int32)\n"
    "w = Const(float[2304,4] 0.01)\nfeature = MatMul(flat, w, T=float)",
    "speech": "x = Placeholder(dtype=float, shape=[1,16000])\nw = Const(float[16000,3] 0.01)\n"
    "m = MatMul(x, w, T=float)\ny = Softmax(m, T=float)",
    "benchmark": "x = Placeholder(dtype=float, shape=[1,8])\ny = Relu(x, T=float)",
}
LABELS = ["a" * 70, "green and a name that goes on for some more words than a phone is wide", "blue"]
LABELLED = ("classify", "detect", "stylize", "speech", "segment", "best_class")
PLACES = "[[80, 60], [320, 240], [560, 400]]"


PANEL = "#answers, #classes, #numbers, #settings, #tools, #still"
RUNS_ON = "(part) => part.scrollWidth > part.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser(FAKE) as started:
        yield started


def kind_of(name: str) -> str:
    return "image" if name in ("segment", "best_class") else name


def site_of(name: str, graph: Graph, folder: pathlib.Path) -> pathlib.Path:
    shapes = {"input": (1, 64, 64, 3)} if name == "stylize" else None
    labels = LABELS if name in LABELLED else ()
    make_project("web", graph, folder / name, labels=labels, app=kind_of(name), shapes=shapes, name="N" * 60)
    built(folder / name)
    return folder / name


def seen(page: Any, photo: pathlib.Path, name: str) -> dict[str, Any]:
    """What a page says of a photo, when its averages are steady."""
    if name not in ("speech", "benchmark"):
        page.set_input_files("#photo", str(photo))
    if name == "embed":
        until(page, "Number(document.body.dataset.answers) > 2")
        page.fill("#label", "this")
        page.click("#remember")
    before = int(page.evaluate("document.body.dataset.answers || 0"))
    until(page, f"Number(document.body.dataset.answers) > {before + 25}")
    found = page.evaluate(f"""() => {{
        const pen = document.querySelector("#view").getContext("2d"), {{ width, height }} = pen.canvas;
        const at = ([x, y]) => Array.from(pen.getImageData(x * width / 640, y * height / 480, 1, 1).data);
        const text = (query) => Array.from(document.querySelectorAll(query), (entry) => entry.textContent);
        return {{ classes: text("#classes span"), scores: text("#classes b"), terms: text("#numbers dt"),
          numbers: text("#numbers dd"), settings: text("#settings label"), pixels: {PLACES}.map(at) }};
    }}""")
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_an_application(name: str, chromium: Any, tmp_path: pathlib.Path) -> None:
    photo = np.zeros((480, 640, 3), np.uint8)
    photo[:240], photo[240:, :400], photo[240:, 400:] = (220, 60, 40), (40, 200, 90), (30, 60, 230)
    Image.fromarray(photo).save(tmp_path / "photo.png")
    graph = parse(GRAPHS[name])
    size = {"width": 64, "height": 64} if name == "stylize" else {}
    labels = LABELS if name in LABELLED else ()
    server = LiveServer(application(graph, kind_of(name), labels, **size), "N" * 60, stills=str(tmp_path / "stills"))
    with ExitStack() as stack:
        address = server.bind()
        server.start()
        stack.callback(server.stop)
        site, _ = stack.enter_context(served(site_of(name, graph, tmp_path)))
        found = []
        for url in (address, site):
            page = chromium.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
            stack.callback(page.close)
            page.goto(url)
            until(page, "document.body.dataset.kind")
            found.append(seen(page, tmp_path / "photo.png", name))
            for width in (360, 900, 1200):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, url
                assert page.evaluate(f"[...document.querySelectorAll('{PANEL}')].filter({RUNS_ON}).length") == 0, url
    live, web = found
    assert live["terms"] == web["terms"]
    if name in ("speech", "benchmark"):  # what they are given is not the same twice
        return
    # At edges a JPEG, as live is sent, is not what the page has; colours of boxes tell their numbers.
    assert live["classes"][:2] == web["classes"][:2]
    for one, other in zip(live["scores"][:2], web["scores"][:2], strict=True):
        assert float(one.split()[0]) == pytest.approx(float(other.split()[0]), abs=4.0)
    assert live["numbers"][:1] == web["numbers"][:1]  # what was followed depends on how many frames there were
    if name in ("stylize", "segment", "best_class"):
        assert any(label in text for text in [*web["settings"], *web["classes"]] for label in LABELS)
    if name != "detect":
        assert np.abs(np.array(live["pixels"]) - np.array(web["pixels"])).max() <= 24


def test_there_is_a_graph_for_each_application() -> None:
    assert set(map(kind_of, GRAPHS)) == set(APPLICATIONS)
