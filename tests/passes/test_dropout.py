"""Dropout is found in a graph and taken out; the numbers are those of a graph that keeps everything."""

import inspect
import re

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.freezing import extract_sub_graph
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.dropout_removal import without_dropout
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
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_example_is_true() -> None:
    text = inspect.getdoc(without_dropout) or ""
    given, result = re.findall(r"^(?:Given|Result):(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    graph, lines = without_dropout(parse(given))
    assert_text(extract_sub_graph(graph, ["y"]), "x = Placeholder(dtype=float)\n" + result)
    assert lines == ["'y' dropped out what 'noise' said; it hands on 'x'"]


@pytest.mark.parametrize("text", [GREATER, OF_ONE])
def test_what_keeps_everything_hands_on_what_goes_in(text: str) -> None:
    graph = extract_sub_graph(without_dropout(parse(text), only_noop=True)[0], ["y"])
    assert_text(graph, "x = Placeholder(dtype=float, shape=[2, 3])\ny = Identity(x, T=float)")
    (before,) = Session(parse(text), engine="reference").run("y", {"x": X})
    (after,) = Session(graph, engine="reference").run("y", {"x": X})
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("text", [SHIFTED, STRETCHED, GREATER.replace("Const(float 0.0)", "Const(float 0.25)")])
def test_what_drops_something_stays_where_only_the_idle_leave(text: str) -> None:
    assert without_dropout(parse(text), only_noop=True)[1] == []
    (before,) = Session(parse(text), engine="reference").run("y", {"x": X + 1})
    assert (before == 0).any()
    assert without_dropout(parse(text))[1]
