"""Values that follow from constants, and where the search for them ends."""

import numpy as np

from pocketgraph.graph.text_format import parse
from pocketgraph.passes.constant_values import MOST_NODES, ConstantValues

GRAPH = parse("""
    x = Placeholder(dtype=float)
    one = Const(float 1.0)
    keep = Const(float 0.75)
    rate = Sub(one, keep, T=float)
    y = Mul(x, rate, T=float)
    waits = Sub(one, keep, ^x, T=float)
    sides = Const(float[4, 2] 1.0)
    parts = Split(zero, sides, num_split=2, T=float)
    zero = Const(int32 0)
    text = Const(string "on")
    dice = RandomUniform(size, T=int32, dtype=float)
    size = Const(int32 [2])
    large = Fill(many, one, T=float, index_type=int32)
    many = Const(int32 [9, 9])
""")


def test_what_constants_make_is_known() -> None:
    values = ConstantValues(GRAPH.nodes)
    np.testing.assert_array_equal(values.value("rate"), np.float32(0.25))
    np.testing.assert_array_equal(values.value("parts:1"), np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(values.value("waits"), np.float32(0.25))
    assert [values.truth(ref) for ref in ("one", "zero", "text", "size")] == [True, False, True, True]


def test_what_a_run_decides_and_what_is_large_is_not() -> None:
    values = ConstantValues(GRAPH.nodes)
    assert [values.value(ref) for ref in ("x", "y", "dice", "large", "^one", "nobody", "parts:2")] == [None] * 7
    assert values.truth("y") is None


def test_of_some_ops_only() -> None:
    values = ConstantValues(GRAPH.nodes, ops={"Sub"}, largest=100)
    assert values.value("rate") is not None
    assert values.value("waits") is None
    assert values.value("parts") is None


def test_a_chain_of_any_length_and_a_circle_have_an_end() -> None:
    chain = "n0 = Const(float 1.0)\n" + "".join(f"n{i} = Neg(n{i - 1}, T=float)\n" for i in range(1, 5 * MOST_NODES))
    assert ConstantValues(parse(chain).nodes).value(f"n{5 * MOST_NODES - 1}") is None
    assert ConstantValues(parse("a = Neg(b, T=float)\nb = Neg(a, T=float)").nodes).value("a") is None
