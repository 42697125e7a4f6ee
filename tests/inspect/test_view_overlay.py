"""What pages show beside the graph: figures of eight bits, engines and reasons, weights, differences."""

from __future__ import annotations

import json
import math
import pathlib

import numpy as np
import pytest

from pocketgraph.errors import FormatError
from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const
from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.node_times import measured
from pocketgraph.inspect.view.changes import AppliedRule, Change, changes, changes_of_chain
from pocketgraph.inspect.view.nodes import BARS, histogram_of, shown_nodes
from pocketgraph.inspect.view.overlay import Overlay, read_layers
from pocketgraph.inspect.view.page import comparison_data, page_data

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[2,3])
    w = Const(float[3,2] 0.5)
    m = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    r = Relu(m, T=float)
    y = Identity(r, T=float)
""")


def test_a_report_of_quantize_is_shown_at_its_nodes(tmp_path: pathlib.Path) -> None:
    layers = [
        {"name": "r:0", "in_float": False, "low": -1.0, "high": 2.0, "chosen_low": 0, "chosen_high": 1.5, "scale": 0.01,
         "activation_noise": 21.5, "snr": 30.0, "clipped": 0.02, "action": "weights <fitted>"},
        {"name": "y:0", "in_float": True, "activation_noise": None, "snr": None},
    ]  # fmt: skip
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"layers": layers}))
    found = read_layers(str(path))
    assert (found["r"].sensitivity, found["y"].sensitivity) == (21.5, None)
    assert ("values seen", "-1 … 2") in found["r"].figures
    assert ("cut off", "2.00% of the values") in found["r"].figures
    data = page_data(GRAPH, "m", Overlay(layers=found))
    (node,) = [node for node in data["graphs"][0]["nodes"] if node[0] == "r"]
    assert node[-1]["sensitivity"] == 21.5
    assert ["scale", "0.01"] in node[-1]["bits"]
    other = page_data(GRAPH, "m", Overlay(layers={"elsewhere": found["r"]}))
    assert any("another model" in note for note in other["notes"])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"layers": 3}', '{"layers": [3]}', '{"layers": [{}]}', "[" * 100_000]
)
def test_what_is_no_report(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(FormatError) as error:
        read_layers(str(path))
    assert str(path) in str(error.value)


def test_engines_and_reasons(tmp_path: pathlib.Path) -> None:
    from pocketgraph.formats import save

    random = Node("u", "RandomUniform", ["s"], {"dtype": FLOAT, "T": INT32})
    total = Node("z", "Add", ["y", "u"], {"T": FLOAT})
    graph = Graph([*GRAPH, const("s", np.array([2, 2], np.int32)), random, total])
    save(graph, tmp_path / "m.pb")
    loaded, trace, description = measured(str(tmp_path / "m.pb"))
    shown = {one.node.name: one for one in shown_nodes(loaded, Overlay(trace, description))[0]}
    assert shown["m"].engine == "litert"
    assert shown["u"].engine == "reference"
    assert "RandomUniform" in shown["u"].reason


def test_histograms_of_weights() -> None:
    values = np.concatenate([np.zeros(25), np.linspace(-1, 3, 75)]).astype(np.float32)
    found = histogram_of(Tensor.from_numpy(values))
    assert found is not None
    assert (sum(found.bars), len(found.bars), found.low, found.high) == (100, BARS, -1.0, 3.0)
    assert found.zeros == pytest.approx(0.25)
    assert found.mean == pytest.approx(values.mean())
    assert histogram_of(Tensor.from_numpy(np.full(40, np.nan, np.float32))) is None
    assert histogram_of(Tensor.from_numpy(np.ones(3, np.float32))) is None
    assert histogram_of(Tensor.from_numpy(["a"] * 40)) is None
    same = histogram_of(Tensor.from_numpy(np.full(40, 7, np.int32)))
    assert same is not None
    assert (sum(same.bars), same.low, same.high) == (40, 7.0, 7.0)
    wide = histogram_of(Tensor.from_numpy(np.array([-1.7e308, 1.7e308] * 20)))
    assert wide is None
    (shown,) = [one for one in shown_nodes(Graph([
        Node("x", "Placeholder", [], {"dtype": FLOAT}), const("w", values.reshape(10, 10)),
        Node("m", "MatMul", ["x", "w"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ]))[0] if one.node.name == "m"]  # fmt: skip
    assert shown.histogram is not None


def test_changes_are_told_apart() -> None:
    after = Graph([
        GRAPH["x"], const("w", np.full((3, 2), 0.25, np.float32)), GRAPH["m"],
        Node("r", "Relu6", ["m"], {"T": FLOAT}), Node("y", "Identity", ["m"], {"T": FLOAT}),
        Node("z", "Neg", ["y"], {"T": FLOAT}),
    ])  # fmt: skip
    found = changes(GRAPH, after)
    assert {name: change.kind for name, change in found.items()} == {
        "w": "changed", "m": "changed", "r": "changed", "y": "rewired", "z": "came",
    }  # fmt: skip
    assert found["m"].how == "other values in 'w'"
    assert found["r"].how == "op: Relu → Relu6"
    assert found["y"].how == "reads 'm' in place of 'r'"
    assert changes(after, GRAPH)["z"] == Change("vanished")
    assert changes(GRAPH, Graph(list(GRAPH))) == {}


def test_who_did_it() -> None:
    middle = Graph([node for node in GRAPH if node.name != "y"])
    new = [Node("r", "Relu6", ["m"], {"T": FLOAT}), Node("n", "Neg", ["r"], {"T": FLOAT})]
    last = Graph([*(node for node in middle if node.name != "r"), *new])
    steps = [
        AppliedRule("first", GRAPH, middle),
        AppliedRule("second", middle, last),
        AppliedRule("third(a=1)", last, last),
    ]
    found = changes_of_chain(steps, [changes(step.before, step.after) for step in steps])
    assert {name: (change.kind, change.rule) for name, change in found.items()} == {
        "y": ("vanished", "first"), "r": ("changed", "second"), "n": ("came", "second"),
    }  # fmt: skip
    data = comparison_data(steps, "chain")
    assert [step[0] for step in data["steps"]] == ["the whole chain of 3 rules", "first", "second"]
    assert any("changed nothing: third(a=1)" in note for note in data["notes"])
    assert data["steps"][1][5] == [1, 0, 0, 0]


def test_a_chain_of_large_graphs_shows_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketgraph.inspect.view.page.MOST_IN_CHAIN", 10)
    middle = Graph([node for node in GRAPH if node.name != "y"])
    data = comparison_data([AppliedRule("a", GRAPH, middle), AppliedRule("b", middle, Graph(list(middle)))], "chain")
    assert (len(data["graphs"]), len(data["steps"])) == (2, 1)
    assert any("would be too large" in note for note in data["notes"])


def test_the_ranges_of_an_eight_bit_file() -> None:
    attributes = {"scales": (0.5,), "zero_points": (-128,), "output_types": (INT8,)}
    (one,), _ = shown_nodes(Graph([Node("y", "tfl.relu", [], attributes)]))
    assert one.layer is not None
    assert ("values with codes", "0 … 127.5") in one.layer.figures
    for broken in ({"scales": ()}, {"zero_points": 3}, {"output_types": (FLOAT,)}, {"scales": (0.0,)}):
        (one,), _ = shown_nodes(Graph([Node("y", "tfl.relu", [], attributes | broken)]))
        assert one.layer is None


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ({"a": math.nan}, {"a": math.nan}, []),
        ({"a": (1.0, math.nan)}, {"a": (1.0, math.nan)}, []),
        ({"a": 0.0}, {"a": -0.0}, ["changed"]),
        ({"a": 1}, {"a": True}, ["changed"]),
        ({"a": 1}, {"a": 1.0}, ["changed"]),
        ({"a": (1,)}, {"a": (1, 2)}, ["changed"]),
    ],
)
def test_attributes_are_the_same_where_files_have_the_same(
    before: dict[str, AttrValue], after: dict[str, AttrValue], kinds: list[str]
) -> None:
    found = changes(Graph([Node("y", "Op", [], before)]), Graph([Node("y", "Op", [], after)]))
    assert [change.kind for change in found.values()] == kinds


def test_the_first_output_has_two_spellings() -> None:
    nodes = parse("x = Placeholder(dtype=float)\nz = NoOp()\ny = Neg(x, ^z, T=float)")
    spelled = nodes.replace([nodes["x"], nodes["z"], nodes["y"].replace(inputs=["x:0", "^z"])])
    assert changes(Graph(nodes), Graph(spelled)) == {}
    other = nodes.replace([nodes["x"], nodes["z"], nodes["y"].replace(inputs=["x:1", "^z"])])
    assert changes(Graph(nodes), Graph(other))["y"].kind == "rewired"
