"""graph_to_dot: the original's text, and pictures by Graphviz."""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import Any

import pytest

from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse

needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
TEXT = """
    a/x = Placeholder(dtype=float, shape=[2, 3])
    a/b/split = Split(a/x, a/x, T=float, num_split=2)
    y = Add(a/b/split:1, a/b/split, ^a/x, T=float)
"""
ORIGINAL = """digraph graphname {
  "a/x" [label="Placeholder"];
  "a/b/split" [label="Split"];
  "a/x" -> "a/b/split";
  "a/x" -> "a/b/split";
  "y" [label="Add"];
  "a/b/split" -> "y";
  "a/b/split" -> "y";
  "a/x" -> "y";
}
"""
"""What the original's loop writes for this graph."""


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt"])
def test_the_originals_text(tmp_path: pathlib.Path, name: str, capsys: Any) -> None:
    save(parse(TEXT), tmp_path / name)
    out = tmp_path / "graph.dot"
    binary = str(name.endswith(".pb")).lower()
    assert call("graph_to_dot", f"--graph={tmp_path / name}", f"--input_binary={binary}", f"--dot_output={out}") == 0
    assert out.read_text() == ORIGINAL
    assert capsys.readouterr().out == f"Created DOT file '{out}'.\n"


def test_more_than_the_original(tmp_path: pathlib.Path) -> None:
    save(parse(TEXT), tmp_path / "graph.pb")
    out = tmp_path / "graph.dot"
    assert call("graph_to_dot", tmp_path / "graph.pb", "-o", out, "--colors", "--shapes", "--clusters") == 0
    text = out.read_text()
    assert re.findall(r"cluster_\d+ \{ label=\"(.*?)\"", text) == ["a", "b"]
    assert '"a/x" -> "y" [style=dotted' in text
    assert '"a/x" -> "a/b/split" [label="float[2,3]"]' in text
    assert text.count("{") == text.count("}") == 3


def test_labels_of_names_that_end_in_slashes_are_not_empty(tmp_path: pathlib.Path) -> None:
    nodes = [Node(name, "Placeholder", [], {"dtype": FLOAT}) for name in ("/conv/x", "a//b", "c/", "/")]
    save(Graph(nodes), tmp_path / "graph.pb")
    assert call("graph_to_dot", tmp_path / "graph.pb", "-o", tmp_path / "graph.dot", "--clusters") == 0
    text = (tmp_path / "graph.dot").read_text()
    assert re.findall(r"cluster_\d+ \{ label=\"(.*?)\"", text) == ["conv", "a", "a/", "c"]
    assert re.findall(r'label="Placeholder\\n(.*?)"', text) == ["/", "x", "b", "c/"]


@needs_graphviz
@pytest.mark.parametrize("flags", [[], ["--colors", "--shapes", "--clusters"]])
def test_hostile_names_are_drawn(tmp_path: pathlib.Path, flags: list[str]) -> None:
    names = ['a"] [URL="http://x', "b\\", "<b>&amp;", "c\nd\x1b", "s/" * 300 + "n"]
    nodes = [Node("x", "Placeholder", [], {"dtype": FLOAT})]
    nodes += [Node(name, "Neg", ["x"], {"T": FLOAT}) for name in names]
    save(Graph(nodes), tmp_path / "graph.pb")
    assert call("graph_to_dot", tmp_path / "graph.pb", "-o", tmp_path / "graph.svg", *flags) == 0
    drawn = (tmp_path / "graph.svg").read_text()
    assert drawn.count('class="node"') == len(nodes)
    assert "<b>" not in drawn
    assert 'href="http' not in drawn


def test_what_is_missing_is_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    missing = tmp_path / "none.pb"
    assert call("graph_to_dot", f"--graph={missing}", "--dot_output=x.dot") == 1
    assert f"Input graph file '{missing}' does not exist!" in capsys.readouterr().err
    save(parse(TEXT), tmp_path / "graph.pb")
    assert call("graph_to_dot", tmp_path / "graph.pb") == 2
    assert "--dot_output" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert call("graph_to_dot", tmp_path / "graph.pb", "-o", tmp_path / "graph.svg") == 1
    assert "apt-get install graphviz" in capsys.readouterr().err
    assert not (tmp_path / "graph.svg").exists()
