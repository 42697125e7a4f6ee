"""What waited for an effect through nodes that passes leave out waits for it still.

TensorFlow 1.15 gave the numbers. What waits stands first, as graphs may have it.
"""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.planning.graph_passes import specialized
from pocketgraph.runtime.planning.graph_state import GraphState

VARIABLE = """
    x = Placeholder(dtype=float, shape=[2])
    half = Const(float [0.5, 0.5])
    v = VariableV2(dtype=float, shape=[2])
    init = Assign(v, half, T=float)
"""
COUNTED = "    counted = AssignAdd(v, x, T=float)\n"
READ = """
    total = AddV2(v, half, ^more, T=float)
"""

FOLDED = """
    one = Const(float [1.0, 1.0], ^counted)
    known = Tanh(one, T=float)
    more = Neg(known, T=float)
"""
"""A constant made within tf.control_dependencies, and what follows from it."""

BEHIND_A_PURE_NODE = """
    doubled = AddV2(x, x, ^counted, T=float)
    known = Shape(doubled, T=float, out_type=int32)
    more = Neg(known, T=int32)
"""

OF_THE_ASSIGNMENT = "    known = Shape(counted, T=float, out_type=int32)\n    more = Neg(known, T=int32)\n"

BY_HANDLE = """
    x = Placeholder(dtype=float, shape=[2])
    half = Const(float [0.5, 0.5])
    v = VarHandleOp(dtype=float, shape=[2])
    init = AssignVariableOp(v, half, dtype=float)
    read = ReadVariableOp(v, ^more, dtype=float)
    total = AddV2(read, half, T=float)
    known = Shape(doubled, T=float, out_type=int32)
    more = Neg(known, T=int32)
    doubled = AddV2(x, x, ^counted, T=float)
    counted = AssignAddVariableOp(v, x, dtype=float)
"""


def waits(text: str) -> dict[str, tuple[str, ...]]:
    """By node that ``total`` needs after the passes, whom it waits for."""
    feeds = {Endpoint("x", 0): (DType.named("float"), (2,))}
    state = specialized(GraphState(parse(text), feeds, {}, [Endpoint("total", 0)], []))
    return {name: item.control for name, item in state.plan.items.items()}


def totals(text: str) -> list[list[float]]:
    """What three steps give, whose batch is [1, 2]."""
    with Session(parse(text)) as session:
        session.run([], targets=["init"])
        return [session.run(["total:0"], {"x:0": np.array([1, 2], np.float32)})[0].tolist() for _ in range(3)]


@pytest.mark.parametrize("way", [FOLDED, BEHIND_A_PURE_NODE])
def test_a_read_waits_for_an_assignment_behind_a_known_value(way: str) -> None:
    text = VARIABLE + READ + way + COUNTED
    assert waits(text)["total"] == ("counted",)
    assert totals(text) == [[2, 3], [3, 5], [4, 7]]


def test_a_read_by_handle_waits_for_an_assignment_behind_a_known_value() -> None:
    assert waits(BY_HANDLE)["read"] == ("counted",)
    assert totals(BY_HANDLE) == [[2, 3], [3, 5], [4, 7]]


def test_an_assignment_is_made_though_only_its_shape_is_fetched() -> None:
    text = VARIABLE + COUNTED + OF_THE_ASSIGNMENT
    with Session(parse(text)) as session:
        session.run([], targets=["init"])
        for _ in range(3):
            session.run(["more:0"], {"x:0": np.array([1, 2], np.float32)})
        np.testing.assert_array_equal(session.run(["v:0"])[0], [3.5, 6.5])


def test_a_read_waits_for_an_assignment_behind_a_factor_of_one() -> None:
    way = """
    total = AddV2(read, half, T=float)
    read = Mul(v, one, T=float)
    one = Const(float 1.0, ^counted)
    """
    text = VARIABLE + way + COUNTED
    assert waits(text)["read"] == ("counted",)
    assert totals(text) == [[2, 3], [3, 5], [4, 7]]


def test_an_assignment_waits_for_a_read_behind_a_known_value() -> None:
    text = """
    x = Placeholder(dtype=float, shape=[2])
    half = Const(float [0.5, 0.5])
    v = VariableV2(dtype=float, shape=[2])
    init = Assign(v, half, T=float)
    counted = AssignAdd(v, x, ^more, T=float)
    known = Shape(read, T=float, out_type=int32)
    more = Neg(known, T=int32)
    read = AddV2(v, half, T=float)
    total = Maximum(read, half, ^counted, T=float)
    """
    assert totals(text) == [[1, 1], [2, 3], [3, 5]]


CHECKED = """
    x = Placeholder(dtype=float, shape=[2])
    ok = Placeholder(dtype=bool, shape=[])
    what = Const(string "not ok")
    check = Assert(ok, what, T=[string])
"""
BEHIND_A_PREDICATE = """
    known = Const(bool true, ^check)
    split = Switch(x, known, T=float)
    taken = Neg(split:1, T=float)
    y = Merge(split, taken, T=float, N=2)
"""
AT_A_SWITCH = BEHIND_A_PREDICATE.replace(", ^check", "").replace("known, T", "known, ^check, T")
AT_A_LOOP = """
    sizes = Shape(x, ^check, T=float, out_type=int32)
    none = Const(int32 0)
    one = Const(int32 1)
    first = GatherV2(sizes, none, none, Tparams=int32, Tindices=int32, Taxis=int32)
    entered = Enter(first, T=int32, frame_name="loop", is_constant=false)
    rounds = Placeholder(dtype=int32, shape=[])
    last = Enter(rounds, T=int32, frame_name="loop", is_constant=true)
    step = Enter(one, T=int32, frame_name="loop", is_constant=true)
    round = Merge(entered, again, T=int32, N=2)
    less = Less(round, last, T=int32)
    goes_on = LoopCond(less)
    split = Switch(round, goes_on, T=int32)
    next = AddV2(split:1, step, T=int32)
    again = NextIteration(next, T=int32)
    y = Exit(split, T=int32)
"""


@pytest.mark.parametrize("way", [BEHIND_A_PREDICATE, AT_A_SWITCH, AT_A_LOOP])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_an_assertion_ends_the_run_though_a_branch_or_a_loop_behind_it_is_known(way: str, engine: str | None) -> None:
    graph = parse(CHECKED + way)
    rounds = {"rounds:0": np.int32(5)} if "rounds" in graph else {}
    with Session(graph, engine=engine) as session:
        (good,) = session.run(["y:0"], {"x:0": [1, 2], "ok:0": True, **rounds})
        np.testing.assert_array_equal(good, 5 if rounds else [-1, -2])
        with pytest.raises(RunError, match="not ok"):
            session.run(["y:0"], {"x:0": [1, 2], "ok:0": False, **rounds})


def test_a_read_in_a_known_branch_waits_for_an_assignment_before_it() -> None:
    way = """
    known = Const(bool true, ^counted)
    split = RefSwitch(v, known, T=float)
    total = AddV2(split:1, half, T=float)
    """
    assert totals(VARIABLE + way + COUNTED) == [[2, 3], [3, 5], [4, 7]]


CHAIN = """
    x = Placeholder(dtype=float, shape=[1, 16, 16, 8])
    mask = Placeholder(dtype=bool, shape=[1])
    where = Where(mask, T=bool)
    some = GatherNd(x, where, Tparams=float, Tindices=int64)
    size = Const(int32 [3, 3, 8, 8])
    kernel = Fill(size, half, T=float, index_type=int32)
    half = Const(float 0.5)
    first = Conv2D({begin}, kernel, T=float, strides=[1,1,1,1], padding="SAME")
    middle = Relu(first, T=float)
    checked = CheckNumerics(middle, T=float, message="no good")
    second = Conv2D(middle, kernel, ^checked, T=float, strides=[1,1,1,1], padding="SAME")
    third = Conv2D(second, kernel, T=float, strides=[1,1,1,1], padding="SAME")
    y = Relu(third, T=float)
"""
"""A check in the middle of convolutions, that somebody waits for and nobody computes with; TensorFlow 2.21 and 1.15
raise its message, and drop an EnsureShape or a Gather in its place."""


@pytest.mark.parametrize("begin", ["x", "some"])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_check_for_nan_that_is_only_waited_for_holds(begin: str, engine: str | None) -> None:
    feeds = {"x:0": np.ones((1, 16, 16, 8), np.float32), "mask:0": np.array([True])}
    with Session(parse(CHAIN.format(begin=begin)), engine=engine) as session:
        assert np.isfinite(session.run("y:0", feeds)[0]).all()
        feeds["x:0"][0, 3, 3, 0] = np.inf
        with pytest.raises(RunError, match=r"'checked': no good : Tensor had Inf"):
            session.run("y:0", feeds)


def test_one_engine_is_refused_where_somebody_waits_for_a_check() -> None:
    said = r"'checked' \(CheckNumerics\): what waits for it waits for its check"
    with Session(parse(CHAIN.format(begin="x")), engine="litert") as session, pytest.raises(RunError, match=said):
        session.run("y:0", {"x:0": np.ones((1, 16, 16, 8), np.float32)})
