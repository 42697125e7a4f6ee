"""TF1 control flow on graphs that TensorFlow 1.15 made (tools/make_control_flow_graphs.py), against its results."""

import json
import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

GRAPHS = pathlib.Path(__file__).parent / "graphs"
CASES = json.loads((GRAPHS / "cases.json").read_text())


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", CASES)
def test_equals_tensorflow(name: str, engine: str | None) -> None:
    case = CASES[name]
    for feeds, expected in zip(case["feeds"], case["results"], strict=True):
        with Session(graph_file(GRAPHS, f"{name}"), engine=engine) as session:
            if "init" in session.graph:
                session.run([], targets=["init"])
            results = session.run(case["fetches"], feeds)
            for result, value in zip(results, expected, strict=True):
                assert result.shape == np.shape(value)
                np.testing.assert_allclose(result, value, rtol=1e-6)


@pytest.mark.parametrize("name", ["nested_loops", "mapped", "loop_gradient"])
def test_one_session_runs_all_feeds_again_and_again(name: str) -> None:
    case = CASES[name]
    with Session(graph_file(GRAPHS, f"{name}")) as session:
        for _ in range(2):
            for feeds, expected in zip(case["feeds"], case["results"], strict=True):
                for result, value in zip(session.run(case["fetches"], feeds), expected, strict=True):
                    np.testing.assert_allclose(result, value, rtol=1e-6)


BRANCHES = """
    p = Placeholder(dtype=bool, shape=[])
    x = Placeholder(dtype=float, shape=[2])
    s = Switch(x, p, T=float)
    pivot = Identity(s:1, T=float)
    c = Const(float [10.0, 20.0], ^pivot)
    low = Neg(s, T=float)
    both = Add(s:1, c, T=float)
    m = Merge(low, both, T=float, N=2)
    index = Identity(m:1, T=int32)
"""


def branches() -> Graph:
    return parse(BRANCHES)


@pytest.mark.parametrize(("taken", "value", "index"), [(True, [11, 22], 1), (False, [-1, -2], 0)])
def test_merge_gives_the_live_input_and_its_index(taken: bool, value: list[float], index: int) -> None:
    result, which = Session(branches()).run(["m", "index"], {"p": taken, "x": [1.0, 2.0]})
    assert result.tolist() == value
    assert which.dtype == np.int32
    assert which == index


@pytest.mark.parametrize("engine", ["reference", None])
def test_a_dead_fetch_is_an_error_that_names_it(engine: str | None) -> None:
    session = Session(branches(), engine=engine)
    with pytest.raises(RunError, match=r"Retval\[1\] does not have value: 'low:0'"):
        session.run(["m", "low"], {"p": np.array(True), "x": [1.0, 2.0]})
    with pytest.raises(RunError, match=r"Retval\[0\].*'c:0'"):  # a constant is dead with what it waits for
        session.run(["c"], {"p": False, "x": [1.0, 2.0]})
    assert session.run("low", {"p": False, "x": [1.0, 2.0]})[0].tolist() == [-1, -2]


def test_a_node_that_waits_for_a_dead_node_is_dead() -> None:
    graph = parse(
        BRANCHES
        + """
        one = Const(float 1.0)
        after = Identity(one, ^low, T=float)
        quiet = NoOp(^low)
        later = Identity(one, ^quiet, T=float)
        still = ControlTrigger(^low)
        anyway = Identity(one, ^still, T=float)
        """
    )
    session = Session(graph, engine="reference")
    feeds = {"p": True, "x": [1.0, 2.0]}
    assert session.run("anyway", feeds)[0] == 1.0
    for name in ("after", "later"):
        with pytest.raises(RunError, match="on a branch that was not taken"):
            session.run(name, feeds)
        assert session.run(name, {**feeds, "p": False})[0] == 1.0


def test_an_unfed_placeholder_on_a_branch_matters_only_when_it_is_taken() -> None:
    graph = parse("""
        p = Placeholder(dtype=bool, shape=[])
        one = Const(float 1.0)
        s = Switch(one, p, T=float)
        open = Identity(s:1, T=float)
        hole = Placeholder(^open, dtype=float, shape=[3])
        m = Merge(s, hole, T=float, N=2)
    """)
    session = Session(graph)
    assert session.run("m", {"p": False})[0] == 1.0
    with pytest.raises(RunError, match="You must feed a value for placeholder tensor 'hole' with dtype float"):
        session.run("m", {"p": True})


ENDLESS = """
    zero = Const(int32 0)
    first = Enter(zero, T=int32, frame_name="spin", is_constant=false, parallel_iterations=10)
    i = Merge(first, again, T=int32, N=2)
    true = Const(bool true, ^i)
    cond = LoopCond(true)
    s = Switch(i, cond, T=int32)
    again = NextIteration(body, T=int32)
    step = Const(int32 1, ^pivot)
    pivot = Identity(s:1, T=int32)
    body = Add(pivot, step, T=int32)
    out = Exit(s, T=int32)
"""


def test_a_loop_without_end_stops_at_the_step_limit() -> None:
    with pytest.raises(RunError, match=r"the loop 'spin' takes more than 10,000 steps.*step_limit"):
        Session(parse(ENDLESS), engine="reference", step_limit=10_000).run("out")


def test_what_is_inside_of_a_loop_cannot_be_fetched() -> None:
    with pytest.raises(RunError, match="'body' is inside of the loop 'spin'"):
        Session(parse(ENDLESS)).run("body")


def test_inputs_from_different_frames_are_refused() -> None:
    graph = parse(
        ENDLESS + "n = Placeholder(dtype=int32, shape=[])\n bad = Add(i, n, T=int32)\n  e = Exit(bad, T=int32)"
    )
    with pytest.raises(RunError, match=r"node 'bad'.*different frames.*'spin'"):
        Session(graph).run("e", {"n": 1})


def test_an_exit_outside_of_any_loop_is_refused() -> None:
    with pytest.raises(RunError, match="an Exit outside of any loop"):
        Session(parse(ENDLESS + "far = Exit(out, T=int32)")).run("far")


def test_a_cycle_that_is_no_loop_is_refused() -> None:
    graph = parse("a = Neg(b, T=float)\n b = Neg(a, T=float)\n c = Neg(b, T=float)")
    with pytest.raises(RunError, match="cycle"):
        Session(graph, engine="reference").run("c")
    with pytest.raises(RunError, match="cycle"):
        Session(graph).run("c")


def test_deeply_nested_frames_are_refused_not_followed() -> None:
    lines = ["x0 = Const(int32 0)"]
    lines += [f'x{k + 1} = Enter(x{k}, T=int32, frame_name="f{k}", is_constant=true)' for k in range(500)]
    lines += [f"y{k} = Exit({'x500' if k == 0 else f'y{k - 1}'}, T=int32)" for k in range(500)]
    with pytest.raises(RunError, match="nested more than"):
        Session(parse("\n".join(lines)), engine="reference").run("y499")


def test_two_loops_that_share_a_frame_name_run_one_after_the_other() -> None:
    """TensorFlow leaves frame names alone when a graph is imported twice under two prefixes."""

    def loop(prefix: str, start: str) -> str:
        return f"""
            {prefix}first = Enter({start}, T=int32, frame_name="same", is_constant=false, parallel_iterations=10)
            {prefix}i = Merge({prefix}first, {prefix}again, T=int32, N=2)
            {prefix}limit = Const(int32 100, ^{prefix}i)
            {prefix}less = Less({prefix}i, {prefix}limit, T=int32)
            {prefix}cond = LoopCond({prefix}less)
            {prefix}s = Switch({prefix}i, {prefix}cond, T=int32)
            {prefix}pivot = Identity({prefix}s:1, T=int32)
            {prefix}two = Const(int32 2, ^{prefix}pivot)
            {prefix}body = Mul({prefix}pivot, {prefix}two, T=int32)
            {prefix}again = NextIteration({prefix}body, T=int32)
            {prefix}out = Exit({prefix}s, T=int32)
        """

    graph = parse("n = Placeholder(dtype=int32, shape=[])" + loop("a", "n") + "half = Const(int32 -100)\n"
                  "less = Add(aout, half, T=int32)" + loop("b", "less"))  # fmt: skip
    for start in (3, 7):
        first = start
        while first < 100:
            first *= 2
        second = first - 100
        while 0 < second < 100:
            second *= 2
        assert [int(v) for v in Session(graph).run(["aout", "bout"], {"n": start})] == [first, second]


def test_variables_of_a_loop_that_do_not_all_hang_on_its_condition() -> None:
    """One variable leaves by a Switch of its own predicate; TensorFlow's rules for dead tensors decide, not the shape
    of a while loop."""
    graph = parse("""
        zero = Const(int32 0)
        n = Placeholder(dtype=int32, shape=[])
        limit = Enter(n, T=int32, frame_name="odd", is_constant=true, parallel_iterations=1)
        first = Enter(zero, T=int32, frame_name="odd", is_constant=false, parallel_iterations=1)
        i = Merge(first, again, T=int32, N=2)
        less = Less(i, limit, T=int32)
        s = Switch(i, less, T=int32)
        one = Const(int32 1, ^i)
        body = Add(s:1, one, T=int32)
        again = NextIteration(body, T=int32)
        out = Exit(s, T=int32)
    """)  # there is no LoopCond at all
    assert Session(graph, engine="reference").run("out", {"n": 4})[0] == 4


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    "broken",
    [
        "y = Switch(x)",
        "y = Merge()",
        "y = Identity()",
        "y = LoopCond()",
        "y = NextIteration()",
        'e = Enter(frame_name="f")\n y = Exit(e)',
        "c = Const(dtype=float)\n y = Neg(c)",
        "c = Const(dtype=float, value=3)\n y = Identity(c)",
        "y = MatMul(x)",
        'y = Concat(x, x, x, N="many")',
        "y = Neg(x:5)",
        "y = TensorArrayReadV3(x, x, x)",
        "y = PartitionedCall(x, f=7)",
        "y = While(x, cond=func(a), body=func(b))",
    ],
)
def test_nodes_that_are_not_what_they_should_be(broken: str, engine: str | None) -> None:
    """Files can say anything; whatever it is, the error is of our family."""
    graph = parse("x = Placeholder(dtype=float, shape=[2])\n" + broken)
    with pytest.raises(PocketgraphError) as caught:
        Session(graph, engine=engine).run([], {"x": [1.0, 2.0]}, targets=["y"])
    assert "\n" not in str(caught.value)


def test_errors_of_kernels_say_which_node() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        deep/check = CheckNumerics(x, T=float, message="not finite")
        y = Identity(deep/check, T=float)
    """)
    with pytest.raises(RunError, match="node 'deep/check': not finite : Tensor had NaN"):
        Session(graph).run("y", {"x": [1.0, float("nan")]})


BOUNDED_PRODUCTS = parse("""
    x = Placeholder(dtype=float, shape=[64, 128])
    zero = Const(int32 0)
    one = Const(int32 1)
    few = Placeholder(dtype=int32, shape=[])
    weights = Const(float[128, 128] 0.0078125)
    enter = Enter(x, T=float, frame_name="loop")
    count = Enter(zero, T=int32, frame_name="loop")
    w = Enter(weights, T=float, frame_name="loop", is_constant=true)
    most = Enter(few, T=int32, frame_name="loop", is_constant=true)
    step = Enter(one, T=int32, frame_name="loop", is_constant=true)
    merge = Merge(enter, next, T=float, N=2)
    counter = Merge(count, next_count, T=int32, N=2)
    less = Less(counter, most, T=int32)
    condition = LoopCond(less)
    switch = Switch(merge, condition, T=float)
    counted = Switch(counter, condition, T=int32)
    number = Identity(counted:1, T=int32)
    more = Add(number, step, T=int32)
    next_count = NextIteration(more, T=int32)
    body = Identity(switch:1, T=float)
    product = MatMul(body, w, T=float)
    above = Greater(product, body, T=float)
    taken = Identity(above, T=bool)
    bound = Const(float 0.25, ^taken)
    bounded = Maximum(product, bound, T=float)
    again = MatMul(bounded, w, T=float)
    next = NextIteration(again, T=float)
    leave = Exit(switch, T=float)
""")


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_constant_of_a_part_may_wait_for_a_copy_of_what_the_part_computes(engine: str | None) -> None:
    x = np.linspace(-2, 2, 64 * 128, dtype=np.float32).reshape(64, 128)
    right = x
    for _ in range(3):
        right = np.maximum(right.mean(1, keepdims=True) * np.ones((1, 128), np.float32), 0.25)
    with Session(BOUNDED_PRODUCTS, engine=engine) as session:
        np.testing.assert_allclose(session.run("leave", {"x": x, "few": np.int32(3)})[0], right, rtol=1e-5)


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    "waits",
    [
        "a = Neg(x, ^b, T=float)\n b = Neg(x, ^a, T=float)\n y = Add(a, b, T=float)",
        "n = NoOp(^y)\n y = Neg(x, ^n, T=float)",
        "c = Const(float 1.0, ^y)\n y = Add(x, c, T=float)",
        "a = Neg(x, ^a, T=float)\n y = Relu(a, T=float)",
        "y = Neg(x, ^n, T=float)\n n = NoOp(^m)\n m = NoOp(^z)\n z = Abs(y, T=float)",
    ],
)
def test_nodes_that_wait_for_each_other_are_refused(waits: str, engine: str | None) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[3])\n" + waits)
    with pytest.raises(RunError, match=r"node '.': the graph has a cycle that is no loop"):
        Session(graph, engine=engine).run("y", {"x": np.ones(3, np.float32)})
