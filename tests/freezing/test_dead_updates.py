"""Assignments that no answer of a served model depends on are dropped; others stay."""

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.freezing.dead_updates import without_dead_updates
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import assert_text

COUNTED = """
    x = Placeholder(dtype=float)
    steps = VarHandleOp(dtype=int32, shape=[])
    one = Const(int32 1)
    count = AssignAddVariableOp(steps, one, dtype=int32)
    weight = VarHandleOp(dtype=float, shape=[])
    value = ReadVariableOp(weight, dtype=float)
    scaled = Mul(x, value, T=float)
    y = Identity(scaled, ^count, T=float)
"""


def test_a_count_of_steps_is_dropped() -> None:
    graph, lines = without_dead_updates(parse(COUNTED), ["y:0"])
    assert lines == ["'count' (AssignAddVariableOp to 'steps') is dropped"]
    assert_text(
        graph,
        """
        x = Placeholder(dtype=float)
        weight = VarHandleOp(dtype=float, shape=[])
        value = ReadVariableOp(weight, dtype=float)
        scaled = Mul(x, value, T=float)
        y = Identity(scaled, T=float)
        """,
    )


@pytest.mark.parametrize(
    "read",
    [
        "value = ReadVariableOp(weight, ^count, dtype=float)",  # what was assigned is read
        "first = NoOp(^count)\nvalue = ReadVariableOp(weight, ^first, dtype=float)",
    ],
)
def test_an_assignment_whose_variable_is_read_afterwards_stays(read: str) -> None:
    text = COUNTED.replace("value = ReadVariableOp(weight, dtype=float)", read)
    text = text.replace("AssignAddVariableOp(steps, one, dtype=int32)", "AssignVariableOp(weight, x, dtype=float)")
    graph, lines = without_dead_updates(parse(text), ["y"])
    assert lines == []
    assert "count" in graph


def test_an_assignment_whose_result_is_an_answer_stays() -> None:
    text = "v = VariableV2(dtype=float, shape=[])\none = Const(float 1.0)\ny = AssignAdd(v, one, T=float)"
    assert "y" in without_dead_updates(parse(text), ["y"])[0]


def test_a_constant_that_would_be_changed_is_told_of_when_it_runs() -> None:
    graph = parse(
        "v = Const(int32 1)\none = Const(int32 2)\na = AssignAddVariableOp(v, one, dtype=int32)\n"
        "x = Placeholder(dtype=float)\ny = Relu(x, ^a, T=float)"
    )
    with pytest.raises(RunError, match=r"would change a variable that is a constant in this graph.*--repair=updates"):
        Session(graph).run(["y"], {"x": np.float32(1)})
