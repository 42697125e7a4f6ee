"""What runs where, and that it makes no difference to the result."""

import numpy as np
import pytest

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

SANDWICH = """
    x = Placeholder(dtype=float, shape=[?,4])
    w = Const(float[4,4] 0.5)
    a = MatMul(x, w, T=float)
    b = Tanh(a, T=float)
    odd = Lgamma(p, T=float)
    p = Sigmoid(b, T=float)
    c = MatMul(odd, w, T=float)
    d = Add(c, a, T=float)
"""


def test_parts_around_an_op_that_litert_lacks() -> None:
    session = Session(parse(SANDWICH))
    description = session.plan(["d"], {"x": (3, 4)})
    lowered = [part for part in description.parts if part.runs_on == "litert"]
    assert {name for part in lowered for name in part.nodes} == {"a", "b", "p", "c", "d"}
    assert len(lowered) == 2
    (rest,) = [part for part in description.parts if part.runs_on == "reference"]
    assert rest.nodes == ("odd",)
    assert "odd" in description.reasons
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    (mixed,) = session.run(["d"], {"x": x})
    (plain,) = Session(parse(SANDWICH), engine="reference").run(["d"], {"x": x})
    np.testing.assert_allclose(mixed, plain, rtol=1e-5)


def test_plan_takes_arrays_shapes_or_the_declared_shapes() -> None:
    session = Session(parse(SANDWICH))
    assert session.plan("d").feeds == {"x:0": ("float", (1, 4))}
    assert session.plan("d", {"x": np.zeros((2, 4), np.float32)}).feeds == {"x:0": ("float", (2, 4))}
    assert session.plan(feeds={"x": [5, 4]}).fetches == ("d:0",)
    with pytest.raises(UsageError, match="how many dimensions"):
        Session(parse("x = Placeholder(dtype=float, shape=<unknown>)\n y = Neg(x, T=float)")).plan("y")
    with pytest.raises(RunError, match="not found"):
        session.plan("e")


SWITCHED = """
    x = Placeholder(dtype=float, shape=[?,4])
    training = {training}
    w = Const(float[4,4] 0.5)
    a = MatMul(x, w, T=float)
    s = Switch(a, training, T=float)
    t = Identity(s:1, T=float)
    two = Const(float 2.0, ^t)
    dropped = Mul(t, two, T=float)
    m = Merge(s, dropped, T=float, N=2)
    y = Relu(m, T=float)
"""


def switched(training: str) -> Graph:
    return parse(SWITCHED.format(training=training))


@pytest.mark.parametrize(
    ("training", "feeds", "factor"),
    [
        ("Const(bool false)", {}, 1),
        ("Const(bool true)", {}, 2),
        ("PlaceholderWithDefault(no, dtype=bool, shape=[])\n no = Const(bool false)", {}, 1),
        ("PlaceholderWithDefault(no, dtype=bool, shape=[])\n no = Const(bool false)", {"training": True}, 2),
        ("Placeholder(dtype=bool, shape=[])", {"training": False}, 1),
        ("Placeholder(dtype=bool, shape=[])", {"training": np.array(True)}, 2),
    ],
)
def test_branches_of_a_known_switch_do_not_part_the_graph(training: str, feeds: dict[str, object], factor: int) -> None:
    session = Session(switched(training))
    x = np.ones((1, 4), np.float32)
    for _ in range(2):
        (y,) = session.run(["y"], {"x": x, **feeds})
        assert y.tolist() == [[2.0 * factor] * 4]
    description = session.plan(["y"], {"x": x, **feeds})
    assert [part.runs_on for part in description.parts] == ["litert"]


def test_one_session_takes_both_ways_of_a_fed_switch() -> None:
    session = Session(switched("Placeholder(dtype=bool, shape=[])"))
    x = np.ones((1, 4), np.float32)
    for training in (True, False, True, False):
        feed = np.array(training)
        assert session.run(["y"], {"x": x, "training": feed})[0].tolist() == [[4.0 if training else 2.0] * 4]


def test_values_that_follow_from_shapes_do_not_part_the_graph() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2,3])
        shape = Shape(x, T=float)
        zero = Const(int32 [0])
        one = Const(int32 [1])
        rows = StridedSlice(shape, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
        six = Const(int32 6)
        to = Pack(rows, six, T=int32, N=2)
        flat = Reshape(x, to, T=float)
        w = Const(float[6,2] 0.25)
        y = MatMul(flat, w, T=float)
    """)
    session = Session(graph)
    for rows in (2, 5):
        x = np.arange(rows * 6, dtype=np.float32).reshape(rows, 2, 3)
        (y,) = session.run(["y"], {"x": x})
        np.testing.assert_allclose(y, x.reshape(rows, 6) @ np.full((6, 2), 0.25, np.float32))
        assert [p.runs_on for p in session.plan("y", {"x": x}).parts] == ["litert"]
    assert session.run(["rows"], {"x": x})[0] == 5


def test_dead_values_known_by_shape_stay_dead() -> None:
    """The Shape on the branch not taken has a value known from the feeds, and still must not reach the Merge."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?])
        p = Placeholder(dtype=bool, shape=[1])
        first = Squeeze(p, T=bool)
        q = LogicalNot(first)
        s = Switch(x, q, T=float)
        left = Shape(s, T=float)
        right = Const(int32 [7], ^other)
        other = Identity(s:1, T=float)
        m = Merge(left, right, T=int32, N=2)
    """)
    for given, expected in ((True, 3), (False, 7)):
        assert Session(graph).run(["m"], {"x": np.zeros(3, np.float32), "p": [given]})[0].tolist() == [expected]
