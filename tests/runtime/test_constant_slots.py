"""Equal constants share a slot where steps are built, and only they: the values are those of each."""

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph.text_format import parse

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
TWICE = """
x = Placeholder(dtype=float, shape=[2,4])
one = Const(int32 1)
other = Const(int32 1)
first = Cumsum(x, one, T=float, Tidx=int32)
second = Cumprod(first, other, T=float, Tidx=int32)
y = Add(first, second, T=float)
"""
ZEROS = """
x = Placeholder(dtype=float, shape=[2])
plus = Const(float 0.0)
minus = Const(float -0.0)
whole = Const(int32 0)
long = Const(int64 0)
row = Const(float[1] 0.0)
a = Div(x, plus, T=float)
b = Div(x, minus, T=float)
c = ExpandDims(x, whole, T=float, Tdim=int32)
d = Pack(long, long, N=2, T=int64, axis=0)
e = Pack(row, row, N=2, T=float, axis=0)
f = Pack(minus, plus, N=2, T=float, axis=0)
"""
WAITING = """
x = Placeholder(dtype=float, shape=[2,4])
p = Placeholder(dtype=bool, shape=[])
s = Switch(x, p, T=float)
t = Identity(s:1, T=float)
f = Identity(s, T=float)
on = Const(int32 1, ^t)
off = Const(int32 1, ^f)
a = Cumsum(t, on, T=float, Tidx=int32)
b = Cumprod(f, off, T=float, Tidx=int32)
y = Merge(b, a, T=float, N=2)
"""
ENGINES = pytest.mark.parametrize("engine", [None, "reference"])


@ENGINES
def test_signs_of_zero_types_and_shapes_stay_apart(engine: str | None) -> None:
    x = np.array([1, 2], np.float32)
    with np.errstate(divide="ignore"), Session(parse(ZEROS), engine=engine) as session:
        a, b, c, d, e, f = session.run(["a", "b", "c", "d", "e", "f"], {"x": x})
    np.testing.assert_array_equal(a, [np.inf, np.inf])
    np.testing.assert_array_equal(b, [-np.inf, -np.inf])
    assert (c.shape, d.dtype, d.shape, e.shape) == ((1, 2), np.int64, (2,), (2, 1))
    np.testing.assert_array_equal(np.signbit(f), [True, False])


@ENGINES
def test_what_is_fetched_or_fed_stands_for_itself(engine: str | None) -> None:
    with Session(parse(TWICE), engine=engine) as session:
        y, other = session.run(["y", "other"], {"x": X})
        changed = session.run(["y"], {"x": X, "other": np.int32(0)})[0]
    running = np.cumsum(X, axis=1)
    assert other == 1
    np.testing.assert_allclose(y, running + np.cumprod(running, axis=1), rtol=1e-6)
    np.testing.assert_allclose(changed, running + np.cumprod(running, axis=0), rtol=1e-6)


@ENGINES
@pytest.mark.parametrize("taken", [False, True])
def test_constants_of_two_branches_are_alive_in_their_own(taken: bool, engine: str | None) -> None:
    with Session(parse(WAITING), engine=engine) as session:
        (y,) = session.run(["y"], {"x": X, "p": np.array(taken)})
    np.testing.assert_allclose(y, np.cumsum(X, axis=1) if taken else np.cumprod(X, axis=1), rtol=1e-6)
