"""merge_duplicate_nodes: what counts as the same, and that long chains take linear time."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import TransformError
from pocketgraph.graph import Function, Graph, const
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import transform


def merged(text: str, inputs: str = "", outputs: str = "") -> Graph:
    return transform(parse(text), "merge_duplicate_nodes", inputs, outputs)


def test_merges_upwards_and_carries_ports_and_control_inputs_over() -> None:
    graph = merged("""
        x = Placeholder(dtype=float)
        axis = Const(int32 0)
        axis2 = Const(int32 0)
        a = Split(axis, x, T=float, num_split=2)
        b = Split(axis2, x:0, T=float, num_split=2)
        y = Add(a:1, b:1, ^a, ^b, T=float)
    """)
    assert print_graph(graph) == print_graph(
        parse("""
            x = Placeholder(dtype=float)
            axis = Const(int32 0)
            a = Split(axis, x, T=float, num_split=2)
            y = Add(a:1, a:1, ^a, ^a, T=float)
        """)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Const(float [1, 2])", "Const(float [1, 3])"),
        ("Const(float [1, 2])", "Const(float [[1, 2]])"),
        ("Const(int32 1)", "Const(uint32 1)"),
        ("Const(float 1)", 'Const(float 1) @"/cpu:0"'),
        ("Const(float 1)", "Const(float 1, ^x)"),
        ("Relu(x, T=float)", "Relu(x, T=half)"),
        ("Relu(x, T=float)", "Relu(x, T=float, _a=1)"),
        ("Op1(x, a=1)", "Op1(x, a=true)"),
        ("Split(x, x, num_split=2)", "Split(x, x, num_split=3)"),
        ("RandomUniform(x, seed=1)", "RandomUniform(x, seed=1)"),
        ("VariableV2()", "VariableV2()"),
    ],
)
def test_what_differs_or_has_state_stays_apart(one: str, other: str) -> None:
    one, other = one.replace("Op1", "Identity"), other.replace("Op1", "Identity")
    assert len(merged(f"x = Placeholder(dtype=float)\na = {one}\nb = {other}")) == 3


def test_inputs_and_outputs_stay_apart() -> None:
    text = "a = Const(int32 1)\nb = Const(int32 1)\nc = Const(int32 1)"
    assert list(merged(text).nodes) == ["a"]
    assert list(merged(text, inputs="a", outputs="c:0").nodes) == ["a", "b", "c"]
    assert list(merged(text, outputs="b").nodes) == ["a", "b"]


def test_large_tensors_that_differ_in_the_middle_stay_apart() -> None:
    values = np.zeros(10_000, np.float32)
    other = values.copy()
    other[5_000] = 1
    graph = Graph([const("a", values), const("b", other), const("c", values.copy())])
    assert list(transform(graph, "merge_duplicate_nodes").nodes) == ["a", "b"]


def test_calls_of_functions_and_unknown_ops_stay_apart() -> None:
    text = "a = my_function()\nb = my_function()"
    graph = parse(text).replace(functions={"my_function": Function("my_function")})
    assert len(transform(graph, "merge_duplicate_nodes")) == 2
    assert len(merged(text)) == 2
    with pytest.raises(TransformError, match="Op type not registered 'my_function'"):
        transform(parse(text), "merge_duplicate_nodes", compat="original")


def test_long_chains_merge_in_one_go() -> None:
    lines = ["x = Placeholder(dtype=float)", "a0 = Relu(x, T=float)", "b0 = Relu(x, T=float)"]
    for i in range(1, 2000):
        lines += [f"a{i} = Relu(a{i - 1}, T=float)", f"b{i} = Relu(b{i - 1}, T=float)"]
    graph = merged("\n".join(lines))
    assert len(graph) == 2001
    assert graph.dangling() == []
