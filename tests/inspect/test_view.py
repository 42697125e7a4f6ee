"""What pictures of graphs show: folded constants, scopes, what is left out, whole names, no markup of the model's."""

from __future__ import annotations

import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.op_families import family
from pocketgraph.inspect.view import nodes, scopes
from pocketgraph.inspect.view.nodes import shown_nodes
from pocketgraph.inspect.view.page import SCRIPTS, as_html, page_data
from pocketgraph.inspect.view.scope import NODE, SCOPE
from pocketgraph.inspect.view.scopes import nested_scopes
from pocketgraph.inspect.view.static_picture import as_png, as_svg, flat_picture

MODEL = parse("""
    x = Placeholder(dtype=float, shape=[1, 9])
    a/w = Const(float[9,2] 1.0)
    a/w/read = Identity(a/w, T=float)
    a/dense/m = MatMul(x, a/w/read, T=float, transpose_a=false, transpose_b=false)
    a/dense/r = Relu(a/dense/m, T=float)
    b/one/s = Softmax(a/dense/r, ^a/dense/m, T=float)
    y = MatMul(x, a/w/read, T=float, transpose_a=false, transpose_b=false)
""")
HOSTILE = [
    "<script>alert(1)</script>",
    '</script><img src=x onerror="alert(1)">',
    "'\"><b>",
    "n" * 1000,
    "\u202eabc",
    "a\nb",
]


def test_constants_are_folded_into_their_readers() -> None:
    shown, edges = shown_nodes(MODEL)
    found = {one.node.name: one for one in shown}
    assert list(found) == ["x", "a/dense/m", "a/dense/r", "b/one/s", "y"]
    dense = found["a/dense/m"]
    assert (dense.weights, found["y"].weights) == (72, 0), "bytes that are read twice count once"
    assert dense.inputs == [("x", 0, "float[1,9]"), ("a/w/read", -1, "float[9,2]")]
    assert (dense.outputs, dense.memory, dense.flops) == (["float[1,2]"], 8, 36)
    assert [(e.source, e.target, e.control, e.label) for e in edges] == [
        (0, 1, False, "float[1,9]"), (1, 2, False, "float[1,2]"), (2, 3, False, "float[1,2]"),
        (1, 3, True, ""), (0, 4, False, "float[1,9]"),
    ]  # fmt: skip


def test_constants_that_nobody_reads_are_shown() -> None:
    shown, _ = shown_nodes(parse("c = Const(float 1.0)\n d = Const(float 2.0)\n e = Identity(d, T=float)"))
    assert [one.node.name for one in shown] == ["c", "e"]


def test_scopes_hold_their_nodes_and_lose_wrappers() -> None:
    shown, edges = shown_nodes(MODEL)
    found, left_out = nested_scopes(shown, edges)
    assert left_out == 0
    (outer, *_) = found
    inner = [found[item.number] for item in outer.items if item.kind == SCOPE]
    assert [(scope.path, scope.label, scope.nodes) for scope in inner] == [("a/dense", "a/dense", 2)]
    assert outer.nodes == len(shown)
    assert [shown[item.number].node.name for item in outer.items if item.kind == NODE] == ["x", "b/one/s", "y"]
    assert {(link.source, link.target) for link in outer.links} == {(0, 1), (1, 2), (0, 3)}
    (crossing,) = [link for link in outer.links if link.target == 2]
    assert not crossing.control, "data goes the same way as the control edge"


def test_each_edge_is_drawn_in_each_scope_that_it_crosses() -> None:
    graph = parse("""
        p/q/x = Placeholder(dtype=float, shape=[2])
        p/q/y = Neg(p/q/x, T=float)
        p/z = Neg(p/q/y, T=float)
        r/u = Neg(p/q/y, T=float)
        r/v = Neg(r/u, T=float)
    """)
    found, _ = nested_scopes(*shown_nodes(graph))
    drawn = {scope.path: len(scope.links) for scope in found}
    assert drawn == {"": 1, "p": 2, "p/q": 2, "r": 2}


def test_what_is_too_large_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "MOST_ITEMS", 20)
    monkeypatch.setattr(scopes, "MOST_NODES", 50)
    monkeypatch.setattr(nodes, "LARGE", 100)
    made = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    made += [Node(f"s{i // 30}/n{i}", "Neg", ["x"], {"T": FLOAT}) for i in range(300)]
    data = page_data(Graph(made), "model")
    (graph,) = data["graphs"]
    assert len(graph["nodes"]) <= 50
    (count,) = [int(found[1]) for note in data["notes"] if (found := re.search(r"too large: (\d+) nodes", note))]
    assert count + len(graph["nodes"]) == 301
    shut = [
        (scope, at) for scope in graph["scopes"] for at, (kind, number, *_) in enumerate(scope[5])
        if kind == SCOPE and not graph["scopes"][number][4]
    ]  # fmt: skip
    assert shut
    assert all(at in [target for _, target, *_ in scope[6]] for scope, at in shut), "arrows lead to closed boxes too"
    for scope in graph["scopes"]:
        assert all(0 <= number < len(graph["nodes"]) for kind, number, *_ in scope[5] if kind == NODE)
        assert all(max(source, target) < len(scope[5]) for source, target, *_ in scope[6])


def test_arrows_from_what_is_cut_off_begin_at_its_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "MOST_ITEMS", 20)
    made = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    for i in range(100):
        letters = f"{chr(97 + i // 10)}{chr(97 + i % 10)}"  # a number would make them alike, and a group
        made.append(Node(f"s/{letters}", "Neg", [made[-1].name], {"T": FLOAT}))
    made.append(Node("y", "Neg", ["s/jj"], {"T": FLOAT}))
    found, left_out = nested_scopes(*shown_nodes(Graph(made)))
    outer = found[0]
    assert left_out == 80
    assert [(link.source, link.target) for link in outer.links] == [(0, 1), (1, 2)], "x to the box, and the box to y"


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_names_of_the_model_are_never_markup() -> None:
    made = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    made += [Node(name, f"Neg{name[:30]}", ["x"], {"T": FLOAT, "<b>": name.encode()}) for name in HOSTILE]
    graph = Graph(made)
    page = as_html(graph, '<b>"title"</b>')
    assert page.count("<script") == 2
    assert "<img" not in page
    assert "<b>" not in page
    names = [node[0] for node in data_of(page)["graphs"][0]["nodes"]]
    assert "n" * 1000 in names
    picture = flat_picture(graph)
    drawn = ElementTree.fromstring(as_svg(picture))
    assert len(drawn.findall(".//{*}g[@class='node']")) == len(graph)
    assert not drawn.findall(".//{*}script")
    assert any(title.text and "n" * 1000 in title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title"))
    assert as_png(picture)[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_page_may_ask_nobody() -> None:
    page = as_html(MODEL, "model")
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)\s*=\s*[\"']", page)
    assert not re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|innerHTML|import)\b\s*\(", page)


@pytest.mark.parametrize("text", ["", "c = Const(float 1.0)", "a = Neg(b, T=float)\nb = Neg(a, T=float)"])
def test_odd_graphs(text: str) -> None:
    graph = parse(text) if text else Graph()
    assert len(data_of(as_html(graph, "odd"))["graphs"][0]["nodes"]) == len(graph)
    assert ElementTree.fromstring(as_svg(flat_picture(graph))) is not None
    assert as_png(flat_picture(graph))


def test_families_of_ops_nobody_listed() -> None:
    asked = ("tfl.fully_connected", "tfl.depthwise_conv_2d", "Cast", "QuantizedConv2D", "Dequantize", "While", "Relu")
    assert [family(op) for op in asked] == [
        "matrix product", "convolution", "data movement", "convolution", "quantization", "call", "activation",
    ]  # fmt: skip


def test_the_files_of_the_page_are_small_and_our_own() -> None:
    folder = pathlib.Path(nodes.__file__).parent
    assert sum((folder / name).stat().st_size for name in (*SCRIPTS, "page.css")) < 64_000
