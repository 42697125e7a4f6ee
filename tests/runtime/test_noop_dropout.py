"""Dropout that keeps everything takes no part in a run; any other does."""

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph.text_format import parse

OLD = """
x = Placeholder(dtype=float, shape=[2,50])
keep = Placeholder(dtype=float, shape=[])
w = Const(float[50,50] 0.25)
m = MatMul(x, w, T=float)
shape = Shape(m, T=float)
low = Const(float 0.0)
high = Const(float 1.0)
u = RandomUniform(shape, T=int32, dtype=float, seed=3, seed2=5)
range = Sub(high, low, T=float)
scaled = Mul(u, range, T=float)
uniform = Add(scaled, low, T=float)
sum = Add(keep, uniform, T=float)
mask = Floor(sum, T=float)
div = RealDiv(m, keep, T=float)
drop = Mul(div, mask, T=float)
y = Relu(drop, T=float)
"""
NEW = """
x = Placeholder(dtype=float, shape=[2,50])
rate = Placeholder(dtype=float, shape=[])
w = Const(float[50,50] 0.25)
m = MatMul(x, w, T=float)
one = Const(float 1.0)
shape = Shape(m, T=float)
u = RandomUniform(shape, T=int32, dtype=float, seed=3, seed2=5)
keep = Sub(one, rate, T=float)
scale = RealDiv(one, keep, T=float)
scaled = Mul(m, scale, T=float)
compared = GreaterEqual(u, rate, T=float)
mask = Cast(compared, SrcT=bool, DstT=float)
y = Mul(scaled, mask, T=float)
"""
X = np.linspace(0, 1, 100, dtype=np.float32).reshape(2, 50)
PRODUCT = X @ np.full((50, 50), 0.25, np.float32)


@pytest.mark.parametrize(("text", "name", "value"), [(OLD, "keep", 1.0), (NEW, "rate", 0.0)])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_keeping_everything_changes_nothing(text: str, name: str, value: float, engine: str | None) -> None:
    session = Session(parse(text), engine=engine)
    for _ in range(3):
        (y,) = session.run("y", {"x": X, name: np.float32(value)})
        np.testing.assert_allclose(y, PRODUCT, rtol=1e-5)


@pytest.mark.parametrize(("text", "name", "value"), [(OLD, "keep", 1.0), (NEW, "rate", 0.0)])
def test_a_dropout_that_keeps_everything_leaves_one_part(text: str, name: str, value: float) -> None:
    plan = Session(parse(text)).plan("y", {"x": X, name: np.array(value, np.float32)})
    assert [part.runs_on for part in plan.parts] == ["litert"]
    assert "u" not in plan.parts[0].nodes


@pytest.mark.parametrize(("text", "name"), [(OLD, "keep"), (NEW, "rate")])
def test_a_plan_for_one_value_does_not_serve_another(text: str, name: str) -> None:
    session = Session(parse(text))
    everything = {OLD: 1.0, NEW: 0.0}[text]
    for value in (everything, 0.5, everything, 0.5):
        (y,) = session.run("y", {"x": X, name: np.array(value, np.float32)})
        dropped = float(np.mean((y == 0) & (PRODUCT != 0)))
        if value == everything:
            assert dropped == 0
        else:
            assert 0.2 < dropped < 0.8
            np.testing.assert_allclose(y[y != 0], 2 * PRODUCT[y != 0], rtol=1e-5)


def test_a_fetched_mask_is_still_made_of_random_numbers() -> None:
    u, mask = Session(parse(OLD)).run(["u", "mask"], {"x": X, "keep": np.array(1.0, np.float32)})
    assert 0 <= u.min() < u.max() < 1
    np.testing.assert_array_equal(mask, np.ones((2, 50), np.float32))


def test_a_uniform_of_another_range_is_no_noop_dropout() -> None:
    text = OLD.replace("high = Const(float 1.0)", "high = Const(float 2.0)")
    (mask,) = Session(parse(text)).run("mask", {"x": X, "keep": np.array(1.0, np.float32)})
    (y,) = Session(parse(text)).run("y", {"x": X, "keep": np.array(1.0, np.float32)})
    assert set(np.unique(mask)) == {1.0, 2.0}
    assert not np.allclose(y, PRODUCT)


def test_one_less_known_is_left_alone() -> None:
    """A product with a constant that is not one, and a division of one by something."""
    text = """
        x = Placeholder(dtype=float, shape=[2])
        two = Const(float 2.0)
        one = Const(float 1.0)
        a = Mul(x, two, T=float)
        y = RealDiv(one, a, T=float)
    """
    (y,) = Session(parse(text)).run("y", {"x": np.array([1, 4], np.float32)})
    np.testing.assert_array_equal(y, np.array([0.5, 0.125], np.float32))


def test_a_product_with_one_keeps_the_broadcast_shape() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[])
        ones = Const(float[2,3] 1.0)
        y = Mul(x, ones, T=float)
    """
    (y,) = Session(parse(text)).run("y", {"x": np.float32(3)})
    np.testing.assert_array_equal(y, np.full((2, 3), 3, np.float32))
