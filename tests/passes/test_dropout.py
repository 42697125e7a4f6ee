"""Dropout is found in a graph and taken out; the numbers are those of a graph that keeps everything."""

import inspect
import re

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.freezing import extract_sub_graph
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.dropout_removal import is_noise_of_dropout, without_dropout
from support import assert_text

DRAWN = """
    x = Placeholder(dtype=float, shape=[2, 3])
    size = Shape(x, T=float, out_type=int32)
    drawn = RandomUniform(size, T=int32, dtype=float, seed=1, seed2=2)
"""
GREATER = (
    DRAWN
    + """
    rate = Const(float 0.0)
    kept = GreaterEqual(drawn, rate, T=float)
    mask = Cast(kept, SrcT=bool, DstT=float)
    y = Mul(x, mask, T=float)
"""
)
SHIFTED = GREATER.replace("GreaterEqual(drawn,", "GreaterEqual(lower,") + (
    "    half = Const(float 0.5)\n    lower = Sub(drawn, half, T=float)\n"
)
STRETCHED = GREATER.replace("GreaterEqual(drawn,", "GreaterEqual(times,") + (
    "    minus = Const(float -1.0)\n    times = Mul(drawn, minus, T=float)\n"
)
OF_ONE = GREATER.replace("GreaterEqual(drawn,", "GreaterEqual(times,") + (
    "    one = Const(float 1.0)\n    times = Mul(one, drawn, T=float)\n"
)
NORMAL = """
    x = Placeholder(dtype=float, shape=[2, 3])
    size = Shape(x, T=float, out_type=int32)
    key = Const(uint64[1] [1])
    counter = Const(uint64[2] [2, 3])
    alg = Const(int32 1)
    drawn = StatelessRandomNormalV2(size, key, counter, alg, Tshape=int32, dtype=float)
    deviation = Const(float 0.25)
    mean = Const(float {mean})
    wide = Mul(drawn, deviation, T=float)
    noise = AddV2(wide, mean, T=float)
    y = {op}(x, noise, T=float)
    weights = Const(float[3,1] 0.5)
    scores = MatMul(y, weights, T=float)
"""
ADDED, MULTIPLIED = NORMAL.format(mean="0.0", op="AddV2"), NORMAL.format(mean="1.0", op="Mul")
ALPHA = (
    DRAWN
    + """
    rate = Const(float 0.3)
    kept = GreaterEqual(drawn, rate, T=float)
    mask = Cast(kept, SrcT=bool, DstT=float)
    passed = Mul(x, mask, T=float)
    one = Const(float 1.0)
    other = Sub(one, mask, T=float)
    alpha = Const(float -1.7580993)
    filled = Mul(alpha, other, T=float)
    mixed = AddV2(passed, filled, T=float)
    scale = Const(float 0.78)
    scaled = Mul(scale, mixed, T=float)
    shift = Const(float 0.43)
    y = AddV2(scaled, shift, T=float)
    weights = Const(float[3,1] 0.5)
    scores = MatMul(y, weights, T=float)
"""
)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_example_is_true() -> None:
    text = inspect.getdoc(without_dropout) or ""
    given, result = re.findall(r"^(?:Given|Result):(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    graph, lines = without_dropout(parse(given))
    assert_text(extract_sub_graph(graph, ["y"]), "x = Placeholder(dtype=float)\n" + result)
    assert lines == {"y": "'y' dropped out what 'noise' said; it hands on 'x'"}


@pytest.mark.parametrize("text", [GREATER, OF_ONE])
def test_what_keeps_everything_hands_on_what_goes_in(text: str) -> None:
    graph = extract_sub_graph(without_dropout(parse(text), only_noop=True)[0], ["y"])
    assert_text(graph, "x = Placeholder(dtype=float, shape=[2, 3])\ny = Identity(x, T=float)")
    (before,) = Session(parse(text), engine="reference").run("y", {"x": X})
    (after,) = Session(graph, engine="reference").run("y", {"x": X})
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("text", [SHIFTED, STRETCHED, GREATER.replace("Const(float 0.0)", "Const(float 0.25)")])
def test_what_drops_something_stays_where_only_the_idle_leave(text: str) -> None:
    assert without_dropout(parse(text), only_noop=True)[1] == {}
    (before,) = Session(parse(text), engine="reference").run("y", {"x": X + 1})
    assert (before == 0).any()
    assert without_dropout(parse(text))[1]


@pytest.mark.parametrize("text", [ADDED, MULTIPLIED, ALPHA])
def test_noise_that_training_adds_to_layers_is_taken_out(text: str) -> None:
    """As Keras 3 writes GaussianNoise, GaussianDropout and AlphaDropout that are called with training=True."""
    graph, lines = without_dropout(parse(text))
    assert len(lines) == 1
    assert "drawn" in next(iter(lines.values()))
    assert is_noise_of_dropout(parse(text), "drawn")
    assert "drawn" not in extract_sub_graph(graph, ["scores"])
    (scores,) = Session(graph, engine="reference").run("scores", {"x": X})
    np.testing.assert_allclose(scores, X.sum(1, keepdims=True) / 2)
    assert without_dropout(parse(text), only_noop=True)[1] == {}


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ("MatMul(y, weights", "Identity(y"),  # a policy that explores: no layer follows
        ("mean = Const(float 0.0)", "mean = Const(float 0.5)"),
        ("deviation = Const(float 0.25)", "deviation = Const(float[3] [0.25, 0.5, 1])"),  # of each number its own
        ("size = Shape(x, T=float, out_type=int32)", "size = Const(int32[2] [1, 3])"),  # the same for each row
    ],
)
def test_noise_that_belongs_to_a_model_stays(given: str, other: str) -> None:
    assert given in ADDED
    graph = parse(ADDED.replace(given, other))
    assert without_dropout(graph)[1] == {}
    assert not is_noise_of_dropout(graph, "drawn")
