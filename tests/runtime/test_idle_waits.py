"""Which nodes wait for others after the pass ``drop_idle_waits``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.planning.graph_passes import specialized
from pocketgraph.runtime.planning.graph_state import GraphState

STEP = """
    x = Placeholder(dtype=float, shape=[2,3])
    w = VariableV2(dtype=float, shape=[3,2])
    zeros = Const(float [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    init = Assign(w, zeros, T=float)
    w/read = Identity(w, T=float)
    y = MatMul(x, w/read, T=float, transpose_a=false, transpose_b=false)
    dw = MatMul(x, y, T=float, transpose_a=true, transpose_b=false)
    dx = MatMul(y, w/read, T=float, transpose_a=false, transpose_b=true)
    both = NoOp(^dw, ^dx)
    dw/waits = Identity(dw, ^both, T=float)
    dx/waits = Identity(dx, ^both, T=float)
    rate = Const(float 0.1)
    train = ApplyGradientDescent(w, rate, dw/waits, T=float)
    more = Neg(dx/waits, T=float)
"""
"""The gradients of a layer as TensorFlow 1 writes them."""

COUNTED = """
    x = Placeholder(dtype=float, shape=[1])
    count = VariableV2(dtype=float, shape=[1])
    zero = Const(float [0.0])
    init = Assign(count, zero, T=float)
    counted = AssignAdd(count, x, T=float)
    one = Const(float [1.0], ^counted)
    sum = Add(x, one, T=float)
    total = VariableV2(dtype=float, shape=[1])
    begin = Assign(total, zero, T=float)
    train = AssignAdd(total, sum, T=float)
"""
"""A constant that was made within tf.control_dependencies."""


def waits(text: str, fetches: Sequence[str], targets: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """By node that is needed after the passes, whom it waits for."""
    graph = parse(text)
    sizes = tuple(graph["x"].attrs["shape"].known)
    feeds = {Endpoint("x", 0): (DType.named("float"), sizes)}
    state = specialized(GraphState(graph, feeds, {}, [Endpoint(name, 0) for name in fetches], targets))
    return {name: item.control for name, item in state.plan.items.items()}


def test_gradients_of_a_layer_do_not_wait_for_each_other() -> None:
    found = waits(STEP, ["more"], ["train"])
    assert not any(found.values())
    assert not {"both", "dw/waits", "dx/waits"} & set(found)


def test_who_is_fetched_stays() -> None:
    assert "dw/waits" in waits(STEP, ["dw/waits"])


def test_what_has_an_effect_waits_in_a_constants_place() -> None:
    found = waits(COUNTED, [], ["train"])
    assert (found["one"], found["sum"], found["train"]) == ((), (), ("counted",))


def test_what_is_fetched_waits_in_a_constants_place() -> None:
    found = waits(COUNTED, ["sum"], ["train"])
    assert (found["one"], found["sum"], found["train"]) == ((), ("counted",), ())  # it has the sum


@pytest.mark.parametrize("without", [(), ("drop_idle_waits",)])
def test_effects_are_the_same(without: Sequence[str]) -> None:
    with Session(parse(COUNTED), without=without) as session:
        session.run([], targets=["init", "begin"])
        for _ in range(3):
            session.run([], {"x": [2.0]}, targets=["train"])
        assert {name: each.tolist() for name, each in session.variables().items()} == {"count": [6.0], "total": [9.0]}
    with Session(parse(STEP), without=without) as session:
        session.run([], targets=["init"])
        x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        found = session.run(["more"], {"x": x}, targets=["train"])[0]
        start = np.full((3, 2), 0.5, np.float32)
        np.testing.assert_allclose(found, -(x @ start) @ start.T)
        np.testing.assert_allclose(session.variables()["w"], start - 0.1 * x.T @ (x @ start), rtol=1e-6)


def test_reads_and_writes_keep_their_order() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1])
        v = VarHandleOp(dtype=float, shape=[1], container="", shared_name="v")
        start = AssignVariableOp(v, x, dtype=float)
        first = ReadVariableOp(v, ^start, dtype=float)
        twice = Add(first, first, T=float)
        group = NoOp(^twice)
        again = Mul(x, x, ^group, T=float)
        change = AssignVariableOp(v, again, dtype=float)
    """
    assert waits(text, [], ["change"])["change"] == ("twice",)
    with Session(parse(text)) as session:
        assert session.run(["twice"], {"x": [3.0]}, targets=["change"])[0].tolist() == [6.0]


def test_what_may_end_a_run_is_waited_for() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1])
        zero = Const(float [0.0])
        is_more = Greater(x, zero, T=float)
        axis = Const(int32 [0])
        all = All(is_more, axis, keep_dims=false)
        said = Const(string "not above zero")
        asserted = Assert(all, said, T=list[string])
        y = Sqrt(x, ^asserted, T=float)
        z = Neg(y, T=float)
    """
    assert waits(text, ["z"])["y"] == ("asserted",)
    with Session(parse(text)) as session, pytest.raises(RunError, match="not above zero"):
        session.run(["z"], {"x": [-1.0]})


WAITING_CONSTANTS = """
    x = Placeholder(dtype=float, shape=[2])
    v = VarHandleOp(dtype=float, shape=[2], container="", shared_name="v")
    start = AssignVariableOp(v, x, dtype=float)
    new = Const(float [5.0, 6.0])
    change = AssignVariableOp(v, new, dtype=float)
    one = Const(float [1.0, 2.0], ^change)
    less = Neg(one, T=float)
    more = Neg(less, T=float)
    parts = Unpack(more, T=float, num=2, axis=0)
    first = Abs(parts, T=float)
    size = Shape(more, T=float, out_type=int32)
    r = VariableV2(dtype=float, shape=[2])
    begin = Assign(r, x, T=float)
    added = AssignAdd(r, new, T=float)
    length = Shape(added, T=float, out_type=int32)
"""
"""Values that are known, but whose making waits for changes of variables."""


@pytest.mark.parametrize("without", [(), ("drop_idle_waits",), ("fold_constants",)])
@pytest.mark.parametrize("name", ["less", "more", "first", "size", "length"])
@pytest.mark.parametrize("is_fetched", [True, False])
def test_what_known_values_wait_for_runs(name: str, is_fetched: bool, without: Sequence[str]) -> None:
    with Session(parse(WAITING_CONSTANTS), without=without) as session:
        session.run([], {"x": [1.0, 2.0]}, targets=["start", "begin"])
        session.run([name] if is_fetched else [], targets=[] if is_fetched else [name])
        changed = {"r": [6.0, 8.0], "v": [1.0, 2.0]} if name == "length" else {"r": [1.0, 2.0], "v": [5.0, 6.0]}
        assert {name: each.tolist() for name, each in session.variables().items()} == changed


def test_known_values_wait_for_changes_alone() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2])
        v = VarHandleOp(dtype=float, shape=[2], container="", shared_name="v")
        read = ReadVariableOp(v, dtype=float)
        sum = Add(read, x, T=float)
        size = Shape(sum, T=float, out_type=int32)
        change = AssignVariableOp(v, sum, dtype=float)
    """
    assert waits(text, ["size"], ["change"]) == dict.fromkeys(["size", "v", "read", "sum", "change"], ())


def test_many_that_wait_for_many_wait_for_one_node() -> None:
    count = 30
    lines = ["x = Placeholder(dtype=float, shape=[1])", "one = Const(float [1.0], ^all)"]
    for number in range(count):
        lines.append(f'v{number} = VarHandleOp(dtype=float, shape=[1], shared_name="v{number}")')
        lines.append(f"first{number} = AssignVariableOp(v{number}, x, dtype=float)")
        lines.append(f"second{number} = AssignAddVariableOp(v{number}, one, dtype=float)")
        lines.append(
            f"r{number} = ReadVariableOp(v{number}, ^second{(number + 1) % count}, ^second{number}, dtype=float)"
        )
    lines.append("all = NoOp(" + ", ".join(f"^first{number}" for number in range(count)) + ")")
    text, fetches = "\n".join(lines), [f"r{number}" for number in range(count)]
    assert sum(map(len, waits(text, fetches).values())) <= 4 * count
    with Session(parse(text)) as session:
        for value in (1.0, 5.0):
            results = session.run([f"{name}:0" for name in fetches], {"x:0": np.array([value], np.float32)})
            np.testing.assert_array_equal(np.concatenate(results), value + 1)
