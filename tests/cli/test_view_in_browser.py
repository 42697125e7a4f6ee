"""The page of ``view`` in Chromium: what it draws, what a hand and a keyboard do, what it must never do."""

from __future__ import annotations

import pathlib
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pocketgraph
from browsers import browser, watched
from command_line import call
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph import Func, Function, Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.model_explorer import graph_collection
from pocketgraph.inspect.view.page import as_html
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
OVERLAPS = """() => {
  const boxes = pocketgraph.state.scene.boxes.filter((box) => !box.child).sort((a, b) => a.y - b.y);
  let count = 0;
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].y - a.y < 60; j++)
      if (Math.abs(a.x - boxes[j].x) < (a.w + boxes[j].w) / 2 - 1 && boxes[j].y - a.y < (a.h + boxes[j].h) / 2 - 1)
        count++;
  });
  return count;
}"""
OPEN_ALL = """() => {
  const { graph } = pocketgraph.state;
  for (const scope of graph.scopes) if (!pocketgraph.state.opened.has(scope.number)) pocketgraph.toggle(scope.number);
}"""
DRAWN = "pocketgraph.state.scene.boxes.filter((box) => box.kind === 0).length"
CUT = """["search", "color"].filter((name) => {
  const field = document.getElementById(name), style = getComputedStyle(field);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const arrow = field.tagName === "SELECT" ? 16 : 0;
  const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
  return pen.measureText(field.placeholder ?? field.selectedOptions[0].text).width > room;
})"""
"""The fields whose words do not fit into them."""
PLACED = rb"([\d.]+) 0 0 -([\d.]+) \S+ \S+ cm[^q]*/X\d+ Do"
"""Where a page of a PDF has a picture: its width and height."""
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def opened(chromium: Any) -> Iterator[Any]:
    """Opens a page of a size; at the end it may have said and asked for nothing."""
    pages = []

    def open_page(path: pathlib.Path, width: int = 1000, height: int = 800, scheme: str = "light") -> Any:
        page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        wrong = watched(page)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
        page.goto(path.as_uri())
        pages.append((page, wrong))
        return page

    yield open_page
    for page, wrong in pages:
        page.close()
        assert wrong == []


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    save(parse(TEXT), tmp_path / "model.pb")
    return tmp_path / "model.pb"


def test_the_page_answers_hands_and_keys(model: pathlib.Path, opened: Any) -> None:
    out = model.parent / "page.html"
    call("view", model, "-o", out, "--measure")
    page = opened(out)
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
    page.focus("canvas")
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#panel h2") in ("a/one/r", "a/one/m")
    page.keyboard.press("Escape")
    page.select_option("#color", "weights")
    assert "24 B in all" in page.inner_text("#panel")
    page.select_option("#color", "time")
    assert "Most time" in page.inner_text("#panel")
    page.select_option("#color", "engine")
    assert "LiteRT" in page.inner_text("#legend")
    page.click("#theme")
    assert page.evaluate("document.body.classList.contains('dark')")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not page.evaluate("document.body.classList.contains('dark')"), "paper is white"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("pocketgraph.asSvg().match(/stroke-dasharray/g).length") >= 1


def test_arrow_keys_lead_into_open_boxes_and_out_of_closed_ones(tmp_path: pathlib.Path, opened: Any) -> None:
    text = "x = Placeholder(dtype=float, shape=[2])\n"
    for name, source in (
        ("a/b/one", "x"),
        ("a/b/two", "a/b/one"),
        ("a/c/one", "a/b/two"),
        ("a/c/two", "a/c/one"),
        ("y", "a/c/two"),
    ):
        text += f"{name} = Neg({source}, T=float)\n"
    save(parse(text), tmp_path / "model.pb")
    call("view", tmp_path / "model.pb", "-o", tmp_path / "page.html")
    page = opened(tmp_path / "page.html")
    page.evaluate("() => { for (const scope of [...pocketgraph.state.opened]) if (scope) pocketgraph.toggle(scope); }")
    page.focus("canvas")

    def walked(*keys: str) -> list[str]:
        said = []
        for key in keys:
            page.keyboard.press(key)
            said.append(page.inner_text("#panel h2"))
        return said

    down, up = ["ArrowDown"] * 4, ["ArrowUp"] * 4
    assert walked(*down[:2], "Enter", *down) == ["x", "a", "a", "a/b", "a/c", "y", "y"]
    assert walked(*up[:3], "Enter", *up[:3]) == ["a", "a/c", "a/b", "a/b", "a/b/two", "a/b/one", "x"]


def test_a_press_in_the_panel_is_for_the_picture_that_it_tells_of(tmp_path: pathlib.Path, opened: Any) -> None:
    before = "x = Placeholder(dtype=float, shape=[2])\nb = Neg(x, T=float)\nc = Relu(b, T=float)"
    after = f"z = Placeholder(dtype=float, shape=[2])\na/y = Abs(z, T=float)\na/s = Sign(a/y, T=float)\n{before}"
    save(parse(before), tmp_path / "a.pb")
    save(parse(after), tmp_path / "b.pb")
    call("view", tmp_path / "a.pb", "--compare", tmp_path / "b.pb", "-o", tmp_path / "page.html")
    page = opened(tmp_path / "page.html")
    page.evaluate("pocketgraph.reveal(0)")
    assert page.inner_text("#panel h2") == "x"
    right = page.locator("canvas").nth(1).bounding_box()
    page.mouse.move(right["x"] + 50, right["y"] + 50)
    assert page.evaluate("pocketgraph.panes.indexOf(pocketgraph.state)") == 0, "to pass over is not to touch"
    page.mouse.wheel(0, -100)
    page.wait_for_function("() => pocketgraph.panes.indexOf(pocketgraph.state) === 1")
    page.click("#panel li button")
    assert page.inner_text("#panel h2") == "b", "what reads x on the left; node 1 on the right is another"


def test_paper_shows_the_picture_in_its_proportions(model: pathlib.Path, opened: Any) -> None:
    call("view", model, "-o", model.parent / "page.html")
    page = opened(model.parent / "page.html")
    drawn = page.evaluate("pocketgraph.state.canvas.width / pocketgraph.state.canvas.height")
    streams = re.findall(rb"stream\r?\n(.*?)endstream", page.pdf(), re.DOTALL)
    texts = [zlib.decompressobj().decompress(one) for one in streams if one[:1] == b"x"]
    (placed,) = (match for text in texts for match in re.finditer(PLACED, text))
    assert float(placed[1]) / float(placed[2]) == pytest.approx(drawn, rel=0.01)


def test_the_way_between_two_nodes(model: pathlib.Path, opened: Any) -> None:
    call("view", model, "-o", model.parent / "page.html")
    page = opened(model.parent / "page.html")
    page.evaluate("pocketgraph.reveal(0)")
    page.click("#panel >> text=way to another node")
    page.fill("#search", "relu")
    page.click("#panel li button")
    assert page.inner_text("#panel h2") == "3 nodes from one to the other"
    page.keyboard.press("Escape")
    assert page.evaluate("pocketgraph.state.way") is None


def test_loops_branches_and_repeats_are_drawn_as_such(tmp_path: pathlib.Path, opened: Any) -> None:
    nodes = ["x = Placeholder(dtype=float, shape=[4])"]
    last = "x"
    for step in range(24):
        nodes.append(f"net/block_{step}/a = Relu({last}, T=float)")
        nodes.append(f"net/block_{step}/b = Neg(net/block_{step}/a, T=float)")
        last = f"net/block_{step}/b"
    nodes += [
        f'loop/enter = Enter({last}, T=float, frame_name="f")',
        "loop/merge = Merge(loop/enter, loop/next, T=float, N=2)",
        "loop/next = NextIteration(loop/merge, T=float)",
    ]
    save(parse("\n".join(nodes)), tmp_path / "m.pb")
    call("view", tmp_path / "m.pb", "-o", tmp_path / "page.html")
    page = opened(tmp_path / "page.html")
    shown = page.evaluate("pocketgraph.state.graph.scopes.map((scope) => [scope.label, scope.copies, scope.hasLoop])")
    assert ["block_#", 24, False] in shown
    assert any(label == "loop" and has_loop for label, _, has_loop in shown)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(DRAWN) == 52
    assert page.evaluate("pocketgraph.state.scene.links.filter((link) => link.isBack).length") == 1
    assert page.evaluate("pocketgraph.state.graph.nodes.map((node) => node.role).filter((role) => role).sort()") == [
        2,
        3,
    ]
    assert "block_# \u00d7 24" in page.evaluate("pocketgraph.asSvg()")


def test_two_graphs_side_by_side(tmp_path: pathlib.Path, opened: Any) -> None:
    before = parse(TEXT)
    after = Graph([
        *(node for node in before if node.name not in ("a/w", "y", "a/two/n")),
        const("a/w", np.full((3, 2), 2, np.float32)), Node("z", "Identity", ["a/two/s"], {"T": FLOAT}),
    ]).map_nodes(lambda node: node.replace(inputs=("a/one/r",)) if node.name == "a/two/s" else node)  # fmt: skip
    save(before, tmp_path / "a.pb")
    save(after, tmp_path / "b.pb")
    assert call("view", tmp_path / "a.pb", "--compare", tmp_path / "b.pb", "-o", tmp_path / "page.html") == 0
    page = opened(tmp_path / "page.html", 1600)
    told = page.inner_text("#panel")
    for kind, count in (("vanished", 2), ("came", 1), ("changed", 2), ("rewired", 1)):
        assert f"{kind}\t{count}" in told.replace("\n\t\n", "\t"), told
    page.click("#panel >> text=a/two/n")
    assert "vanished" in page.inner_text("#panel p.change")
    page.evaluate("pocketgraph.select(null)")
    page.click("#panel >> text=a/one/m")
    assert "other values in 'a/w'" in page.inner_text("#panel p.change")
    assert (
        page.evaluate("pocketgraph.panes.map((pane) => pane.graph.nodes[pane.selected.number].name)") == ["a/one/m"] * 2
    )
    assert page.evaluate("pocketgraph.panes.every((pane) => pane.canvas.clientWidth > 500)")
    page.fill("#search", "identity")
    assert page.inner_text("#panel h2") == "2 found", "in both"
    page.click("#panel >> text=z")
    assert "came" in page.inner_text("#panel p.change")
    page.keyboard.press("Escape")
    page.select_option("#color", "weights")
    assert "bytes of weights" in page.inner_text("#panel")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate(FITS)
    tops = page.evaluate("pocketgraph.panes.map((pane) => pane.box.getBoundingClientRect().top)")
    assert tops[1] > tops[0], "below each other where there is no room"


def test_a_chain_of_rules_step_by_step(tmp_path: pathlib.Path, opened: Any) -> None:
    save(parse(TEXT + "\n    kept = Identity(a/one/r, T=float)\n    out = Neg(kept, T=float)"), tmp_path / "a.pb")
    assert call("transform_graph", tmp_path / "a.pb", "-o", tmp_path / "b.pb", "--outputs=out", "--inputs=x",
                "--transforms=remove_nodes(op=Identity) remove_device strip_unused_nodes",
                "--view", tmp_path / "page.html") == 0  # fmt: skip
    page = opened(tmp_path / "page.html", 1000)
    steps = page.evaluate("[...document.querySelectorAll('#steps option')].map((option) => option.textContent)")
    assert steps == ["the whole chain of 3 rules", "1 remove_nodes(op=Identity)", "2 strip_unused_nodes"]
    assert "changed nothing: remove_device" in page.inner_text("#panel")
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(FITS)
    assert page.evaluate(CUT) == [], "on a small phone"
    page.set_viewport_size({"width": 1000, "height": 800})
    page.click("#panel >> text=a/two/s")
    assert "strip_unused_nodes" in page.inner_text("#panel p.change"), "the rule that did it"
    page.select_option("#steps", "1")
    assert "kept" in page.inner_text("#panel")
    page.click("#panel >> text=kept")
    assert "vanished by remove_nodes(op=Identity)" in page.inner_text("#panel p.change")


HOSTILE = [
    "<script>alert(1)</script>", '</script><img src=x onerror="alert(1)">', "n" * 1000, "\u202eabc", "שלום/עולם",
    "'\"`${alert(1)}", "a b\tc", "🦆" * 400, "x\u0000y",
]  # fmt: skip


def test_hostile_names_do_nothing_in_a_browser(tmp_path: pathlib.Path, opened: Any) -> None:
    nodes = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    nodes += [Node(name, f"Neg{name}", ["x"], {"T": FLOAT, "<i>": name.encode()}, name) for name in HOSTILE]
    save(Graph(nodes), tmp_path / "model.pb")
    save(Graph(nodes[:-4]), tmp_path / "other.pb")
    call("view", tmp_path / "model.pb", "-o", tmp_path / "page.html")
    call("view", tmp_path / "model.pb", "--compare", tmp_path / "other.pb", "-o", tmp_path / "both.html")
    for name in ("page.html", "both.html"):
        page = opened(tmp_path / name, 400)
        for number in range(len(nodes)):
            page.evaluate(f"pocketgraph.reveal({number})")
        for word in ("script", "nnnn", "עולם"):
            page.fill("#search", word)
            assert page.inner_text("#panel h2") == "1 found" or word == "script"
        assert (
            page.evaluate("document.images.length + document.querySelectorAll('#panel script, #panel i').length") == 0
        )
        assert page.evaluate(FITS)
    page.hover("canvas", position={"x": 100, "y": 100})


@pytest.mark.parametrize("text", ["", "a = Neg(b, T=float)\nb = Neg(a, T=float)"])
def test_odd_graphs_open(tmp_path: pathlib.Path, opened: Any, text: str) -> None:
    graph = parse(text) if text else Graph()
    (tmp_path / "page.html").write_text(as_html(graph, "odd"), "utf-8")
    page = opened(tmp_path / "page.html", 400)
    assert page.evaluate(DRAWN) == len(graph)
    if not text:
        assert "no nodes" in page.inner_text("#panel")


def test_a_model_of_functions_only(tmp_path: pathlib.Path, opened: Any) -> None:
    body = tuple(parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)"))
    graph = Graph([], functions={"f": Function("f", body)})
    (tmp_path / "page.html").write_text(as_html(graph, "functions"), "utf-8")
    page = opened(tmp_path / "page.html")
    assert page.evaluate("pocketgraph.state.graph.name") == "f", "what there is to see comes first"
    assert page.evaluate(DRAWN) == 2


def test_a_node_leads_to_the_functions_that_it_calls(tmp_path: pathlib.Path, opened: Any) -> None:
    names = ("branch 0", f"branch_{'n' * 300}")
    main = parse("i = Placeholder(dtype=int32, shape=[])\nplain = Neg(i, T=int32)")
    case = Node("case", "Case", ["i"], {"branches": tuple(map(Func, (*names, names[0])))})
    graph = main.replace([*main, case], functions={name: Function(name, tuple(main)) for name in names})
    (tmp_path / "page.html").write_text(as_html(graph, "case"), "utf-8")
    page = opened(tmp_path / "page.html")
    page.evaluate("pocketgraph.reveal(2)")
    called = page.locator("#panel li button[title^=branch]")
    assert [called.nth(at).get_attribute("title") for at in range(called.count())] == list(names)
    called.nth(1).click()
    assert page.evaluate("pocketgraph.state.graph.name") == names[1]
    nodes = graph_collection(graph, "case")["graphs"][0]["nodes"]
    assert [node["subgraphIds"] for node in nodes] == [[], [], list(names)]


def test_the_view_of_a_notebook(tmp_path: pathlib.Path, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = pocketgraph.view(Graph([*parse(TEXT), Node('"&quot;</iframe><b>', "Neg", ["y"], {"T": FLOAT})]))
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{shown._repr_html_()}", "utf-8")
    page = opened(tmp_path / "notebook.html")
    frame = page.frames[1]
    frame.wait_for_function("window.pocketgraph !== undefined")
    assert frame.evaluate("pocketgraph.state.graph.nodes.map((node) => node.name).at(-1)") == '"&quot;</iframe><b>'
    with pytest.raises(UsageError):
        shown.save(tmp_path / "page.txt")
    monkeypatch.setattr("pocketgraph.inspect.view.viewing.MOST_BYTES", 10)
    assert "too large" in shown._repr_html_()
    assert len(shown._repr_html_()) < 200
    assert '"litert"' in pocketgraph.view(parse(TEXT), measure=True, compare=parse(TEXT)).page


def test_reports_open_sort_and_group(tmp_path: pathlib.Path, opened: Any) -> None:
    from pocketgraph.pages.document import report
    from pocketgraph.pages.parts import Column, Row, number, table, words

    rows = [Row([words(name), number(value)]) for name, value in
            (("b", 2.0), ("a", 10.0), ("c", float("nan")), *((f"s{n}", n / 10) for n in range(5)))]  # fmt: skip
    page_text = report("<b>", table((Column("name"), Column("size", falls=True)), rows, is_grouped=True))
    (tmp_path / "r.html").write_text(page_text, "utf-8")
    page = opened(tmp_path / "r.html", 400, scheme="dark")
    assert page.evaluate("document.body.classList.contains('dark')")

    def order() -> list[str]:
        found = page.evaluate(
            "[...document.querySelectorAll('tbody')].map((body) => body.rows[0].cells[0].textContent)"
        )
        return [str(text).split("\u00d7")[0] for text in found]

    assert order() == ["b", "a", "c", "s0"]
    page.click("text=size")
    assert order() == ["a", "b", "s0", "c"], "largest first, unknown last"
    page.click("text=size")
    assert order() == ["s0", "b", "a", "c"]
    assert not page.is_visible("text=s4")
    page.click(".times")
    assert page.is_visible("text=s4")
    assert page.evaluate(FITS)


MODELS = [
    "mobilenet_v1_025_128", "aiy_visionkit_detect", "kws_ds_cnn_s", "tf2onnx_lstm", "mtcnn_blaueck",
    "sm_half_plus_two_tf2/saved_model_half_plus_two_tf2_cpu/00000123",
    "stylize_quantized", "aggregator_v1", "faced_corrector", "kws_crnn_s", "federated_graph", "unity_reacher", "pocdoc",
    "vibcat", "espcn_x3", "har_developershutt", "lenet_kisan", "rust_regression", "cms_ckf_2021run3", "mbti_model",
]  # fmt: skip


def file_of(name: str) -> pathlib.Path:
    place = model_dir(name)
    if place.is_dir() and not (place / "saved_model.pb").exists():
        files = (path for path in place.iterdir() if path.suffix in (".pb", ".pbtxt", ".bytes"))
        return max(files, key=lambda path: path.stat().st_size)
    return place


@needs_shared
@pytest.mark.parametrize("name", MODELS)
def test_real_models_in_a_browser(tmp_path: pathlib.Path, name: str, opened: Any) -> None:
    path = file_of(name)
    call("view", path, "-o", tmp_path / "page.html")
    page = opened(tmp_path / "page.html")
    assert page.evaluate(OVERLAPS) == 0
    first = page.evaluate(DRAWN)
    page.evaluate(OPEN_ALL)
    shown = page.evaluate("pocketgraph.state.graph.nodes.length")
    assert 0 < first <= shown <= len(pocketgraph.load(path))
    assert page.evaluate(DRAWN) == shown
    assert page.evaluate(OVERLAPS) == 0
    for color in page.evaluate("[...document.querySelectorAll('#color option')].map((option) => option.value)"):
        page.select_option("#color", color)
    page.fill("#search", "a")
    page.click("#theme")
