"""Equal constants are one in a plan, and only they."""

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.planning.graph_passes import specialized
from pocketgraph.runtime.planning.graph_state import GraphState

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
x = Placeholder(dtype=float, shape=[2,4])
plus = Const(float 0.0)
minus = Const(float -0.0)
whole = Const(int32 0)
vector = Const(float[1] 0.0)
a = Add(x, plus, T=float)
b = Mul(a, minus, T=float)
c = Add(b, vector, T=float)
y = Cumsum(c, whole, T=float, Tidx=int32)
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


def constants(
    graph: Graph, fetches: tuple[str, ...] = ("y",), fed: dict[str, tuple[str, tuple[int, ...]]] | None = None
) -> list[str]:
    """The constants that are left of a graph's plan."""
    given = {"x": ("float", (2, 4)), **(fed or {})}
    feeds = {Endpoint(name, 0): (DType.named(dtype), shape) for name, (dtype, shape) in given.items()}
    known = specialized(GraphState(graph, feeds, {}, tuple(Endpoint(name, 0) for name in fetches), ()))
    return [name for name, item in known.plan.items.items() if item.node.op == "Const"]


def test_equal_constants_are_one() -> None:
    assert constants(parse(TWICE)) == ["one"]


def test_other_types_shapes_and_signs_of_zero_stay() -> None:
    assert constants(parse(ZEROS)) == ["plus", "minus", "whole", "vector"]


def test_what_is_fetched_or_fed_stays() -> None:
    assert constants(parse(TWICE), ("y", "other")) == ["one", "other"]
    assert constants(parse(TWICE), fed={"other": ("int32", ())}) == ["one"]
    with Session(parse(TWICE)) as session:
        y, other = session.run(["y", "other"], {"x": X})
        assert other == 1
        changed = session.run(["second"], {"x": X, "other": np.int32(0)})[0]
    running = np.cumsum(X, axis=1)
    np.testing.assert_allclose(y, running + np.cumprod(running, axis=1), rtol=1e-6)
    np.testing.assert_allclose(changed, np.cumprod(running, axis=0), rtol=1e-6)


def test_constants_that_wait_for_different_nodes_stay() -> None:
    assert constants(parse(WAITING), fed={"p": ("bool", ())}) == ["on", "off"]


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_the_values_are_those_of_each(taken: bool, engine: str | None) -> None:
    with Session(parse(WAITING), engine=engine) as session:
        (y,) = session.run(["y"], {"x": X, "p": np.array(taken)})
    np.testing.assert_allclose(y, np.cumsum(X, axis=1) if taken else np.cumprod(X, axis=1), rtol=1e-6)
    with Session(parse(ZEROS), engine=engine) as session:
        (y,) = session.run(["y"], {"x": X})
    np.testing.assert_array_equal(y, np.cumsum(X * np.float32(-0.0) + np.float32(0), axis=0))
