"""fake_quantize_training against what TensorFlow makes of training graphs, and remove_ema, which undoes it."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

TRAINING = pathlib.Path(__file__).parent / "training"
OURS, THEIRS = "FakeQuantWithMinMaxVars", "QuantizeAndDequantizeV2"  # see training/README.md


def same(ours: object, theirs: object) -> bool:
    return ours.same_values(theirs) if isinstance(ours, Tensor) and isinstance(theirs, Tensor) else ours == theirs


@pytest.mark.parametrize("name", ["plain", "saved", "devices"])
@pytest.mark.parametrize("compat", ["original", "fixed"])
def test_a_training_graph_comes_out_as_tensorflow_makes_it(name: str, compat: str) -> None:
    before = graph_file(TRAINING, f"{name}.before")
    expected = graph_file(TRAINING, f"{name}.after")
    changed = transform(before, "fake_quantize_training", compat=compat)
    assert [node.replace(THEIRS, OURS) for node in expected.nodes] == list(changed.nodes)
    for ours, theirs in zip(changed, expected, strict=True):
        assert list(ours.inputs) == [ref.replace(THEIRS, OURS) for ref in theirs.inputs]
        assert ours.device == theirs.device
        if ours.op == OURS:
            assert (theirs.op, dict(ours.attrs)) == (THEIRS, {"num_bits": 8, "narrow_range": False})
            continue
        assert ours.op == theirs.op
        assert ours.attrs.keys() == theirs.attrs.keys()
        assert all(same(ours.attrs[key], theirs.attrs[key]) for key in ours.attrs), ours


def test_more_than_two_inputs_that_say_nothing_are_an_error() -> None:
    graph = parse("""
        a = Placeholder(dtype=float)
        b = Placeholder(dtype=float)
        c = MatMul(a, b, T=float)
        d = MatMul(c, b, T=float)
    """)
    with pytest.raises(TransformError, match="Found an unknown op: c with type: MatMul"):
        transform(graph, "fake_quantize_training")


def test_a_saver_without_restore_all_is_an_error() -> None:
    graph = graph_file(TRAINING, "saved.before")
    with pytest.raises(TransformError, match="Could not find the restore_all node 'save/restore_all'"):
        transform(graph.replace(node for node in graph if node.name != "save/restore_all"), "fake_quantize_training")


SPLIT = """
    x = Placeholder(dtype=float, shape=[1,4])
    axis = Const(int32 1)
    s = Split(axis, x, num_split=2, T=float)
    y = MatMul(s, s:1, T=float, transpose_a=true, transpose_b=false)
"""


def test_two_outputs_of_one_node_are_rounded_apart() -> None:
    assert transform(parse(SPLIT), "fake_quantize_training")["y"].inputs == (f"s/{OURS}", f"s_1/{OURS}")
    assert transform(parse(SPLIT), "fake_quantize_training", compat="original")["y"].inputs == (f"s/{OURS}",) * 2


def frozen_training_graph() -> Graph:
    """A rounded graph as it is after freezing: its variables are constants."""
    graph = transform(
        parse("""
            x = Placeholder(dtype=float, shape=[2,2])
            r = Relu(x, T=float)
            w = Const(float [[1.0, -2.0], [0.5, 0.25]])
            y = MatMul(r, w, T=float)
        """),
        "fake_quantize_training",
    )
    ends = {"r/Min/Variable": 0.0, "r/Max/Variable": 4.0, "w/Min/Variable": -2.0, "w/Max/Variable": 1.0}
    constants = parse("\n".join(f"{name} = Const(float {value})" for name, value in ends.items()))
    return graph.replace((constants[node.name] if node.name in ends else node for node in graph), outputs=["y"])


@pytest.mark.parametrize("compat", ["original", "fixed"])
def test_the_averages_go_and_their_last_values_stay(compat: str) -> None:
    graph = transform(frozen_training_graph(), "remove_ema strip_unused_nodes", inputs="x", compat=compat)
    assert sorted(node.op for node in graph) == sorted(
        ["Placeholder", "Relu", "MatMul", "Const", "Const", "Const", "Const", "Const", OURS, OURS]
    )
    assert graph[f"r/{OURS}"].inputs == ("r", "r/Min/Variable", "r/Max/Variable")
    x = np.array([[1.0, 2.0], [-1.0, 4.0]], np.float32)
    (y,) = Session(graph).run(["y:0"], {"x:0": x})
    np.testing.assert_allclose(y, np.maximum(x, 0) @ np.array([[1.0, -2.0], [0.5, 0.25]]), atol=0.1)


def test_what_others_read_of_the_averages_stays() -> None:
    graph = frozen_training_graph()
    watched = graph.replace([*graph, *parse("seen = Identity(r/Max/AssignValue, T=float)")], outputs=["y", "seen"])
    assert print_graph(transform(watched, "remove_ema", compat="original")) != print_graph(watched)  # only w's go
    kept = transform(watched, "remove_ema")
    assert kept[f"r/{OURS}"].inputs == ("r", "r/Min/Variable", "r/Max/Variable")
    assert "r/Max/AssignValue" in kept
    assert "r/Min/AssignValue" not in kept
