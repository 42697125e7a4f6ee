"""Bad input to a run: what is refused, in which words, and that the session is sound afterwards."""

import numpy as np
import pytest

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session, StepTrace
from support import in_threads

CHAIN = parse("""
    x = Placeholder(dtype=float, shape=[?, 4])
    w = Const(float[4, 3] [[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
    hidden = MatMul(x, w, T=float)
    again = Placeholder(dtype=float, shape=[?, ?])
    deep = Add(hidden, again, T=float)
    y = Relu(deep, T=float)
""")
X = np.ones((2, 4), np.float32)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_shapes_that_disagree_deep_in_a_graph(engine: str | None) -> None:
    with Session(CHAIN, engine=engine) as session:
        with pytest.raises(RunError, match=r"node 'deep'.*\[2, 3\].*\[5, 7\]"):
            session.run("y", {"x": X, "again": np.ones((5, 7), np.float32)})
        assert session.run("y", {"x": X, "again": np.ones((2, 3), np.float32)})[0].shape == (2, 3)


def test_missing_and_doubled_feeds() -> None:
    session = Session(CHAIN)
    with pytest.raises(RunError, match="You must feed a value for placeholder tensor 'again' with dtype float"):
        session.run("y", {"x": X})
    with pytest.raises(RunError, match="Endpoint \"x:0\" fed more than once; it is also fed as 'x'"):
        session.run("hidden", {"x": X, "x:0": X})


def test_a_dead_fetch() -> None:
    graph = parse("""
        p = Placeholder(dtype=bool, shape=[])
        one = Const(float 1.0)
        side = Switch(one, p, T=float)
        taken = Identity(side:1, T=float)
    """)
    session = Session(graph)
    assert session.run("taken", {"p": True})[0] == 1
    with pytest.raises(RunError, match=r"Retval\[0\] does not have value: 'taken:0' is on a branch that was not taken"):
        session.run("taken", {"p": False})


ENDLESS = parse(
    """
    zero = Const(int32 0)
    enter = Enter(zero, T=int32, frame_name="loop")
    merge = Merge(enter, next, T=int32, N=2)
    always = Const(bool true, inputs=^merge)
    condition = LoopCond(always)
    switch = Switch(merge, condition, T=int32)
    body = Identity(switch:1, T=int32)
    next = NextIteration(body, T=int32)
    leave = Exit(switch, T=int32)
""".replace("Const(bool true, inputs=^merge)", "LogicalNot(never)\n    never = Less(merge, merge, T=int32)")
)


def test_a_loop_without_end() -> None:
    with pytest.raises(
        RunError,
        match=r"the loop 'loop' takes more than 5,000 steps, the run's step limit, or does not end.*step_limit",
    ):
        Session(ENDLESS, step_limit=5000).run("leave")


@pytest.mark.parametrize("engine", [None, "reference"])
def test_an_allocation_past_the_limit_is_refused_before_it_is_made(engine: str | None) -> None:
    graph = parse("""
        size = Placeholder(dtype=int32, shape=[2])
        one = Const(float 1.0)
        filled = Fill(size, one, T=float)
        y = Neg(filled, T=float)
    """)
    session = Session(graph, engine=engine, memory_limit=1000)
    assert session.run("y", {"size": [10, 10]})[0].shape == (10, 10)
    with pytest.raises(RunError, match=r"node 'filled': out of memory: .* Fill takes 40000000000 bytes.*memory_limit"):
        session.run("y", {"size": [100000, 100000]})
    assert session.run("y", {"size": [2, 2]})[0].shape == (2, 2)


def test_feeds_count_too_and_freed_tensors_do_not() -> None:
    chain = "x = Placeholder(dtype=float)\n" + "\n".join(
        f"n{i} = Neg({'x' if i == 0 else f'n{i - 1}'}, T=float)" for i in range(20)
    )
    session = Session(parse(chain), engine="reference", memory_limit=4_000 * 4)
    assert session.run("n19", {"x": np.ones(1000, np.float32)})[0][0] == 1
    with pytest.raises(RunError, match="the feeds: out of memory: 20000 bytes are in use, 16000 are allowed"):
        session.run("n19", {"x": np.ones(5000, np.float32)})
    with pytest.raises(RunError, match=r"node 'n0': out of memory: the output of this Neg takes 12000 bytes"):
        session.run("n19", {"x": np.ones(3000, np.float32)})


def test_a_compiled_part_is_held_to_the_limit() -> None:
    session = Session(CHAIN, memory_limit=400)
    fed = {"x": X, "again": np.ones((2, 3), np.float32)}
    assert session.run("y", fed)[0].shape == (2, 3)
    with pytest.raises(RunError, match=r"out of memory: .* takes \d+ bytes, \d+ of 400 are in use") as told:
        session.run("y", {"x": np.ones((12, 4), np.float32), "again": np.ones((12, 3), np.float32)})
    assert "segment" not in str(told.value), "parts are named by the graph's nodes"


def test_a_large_part_is_named_by_its_nodes_and_the_largest_output() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 64, 64, 8])
        grown = Mul(x, x, T=float)
        wide = ConcatV2(grown, x, axis, T=float, N=2, Tidx=int32)
        axis = Const(int32 3)
        small = Max(wide, axes, T=float, Tidx=int32)
        axes = Const(int32 [1, 2])
        y = Tanh(small, T=float)
    """)
    session = Session(graph, memory_limit=300_000)
    with pytest.raises(RunError, match=r"'.*'.*: out of memory: the output of .*(wide|ConcatV2).* takes 262144 bytes"):
        session.run("y", {"x": np.ones((1, 64, 64, 8), np.float32)})


def test_loops_under_a_limit_let_their_iterations_go() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[100])
        enter = Enter(x, T=float, frame_name="loop")
        merge = Merge(enter, next, T=float, N=2)
        first = Max(merge, axis, T=float, Tidx=int32)
        zero = Const(int32 [0])
        axis = Enter(zero, T=int32, frame_name="loop", is_constant=true)
        most = Const(float 100.0)
        bound = Enter(most, T=float, frame_name="loop", is_constant=true)
        less = Less(first, bound, T=float)
        condition = LoopCond(less)
        switch = Switch(merge, condition, T=float)
        body = Add(switch:1, switch:1, T=float)
        next = NextIteration(body, T=float)
        leave = Exit(switch, T=float)
    """)
    found = Session(graph, memory_limit=3000).run("leave", {"x": np.ones(100, np.float32)})[0]
    assert found[0] == 128


def test_inter_op_threads_let_so_many_compute_at_once() -> None:
    session = Session(CHAIN, inter_op_threads=1)
    fed = {"x": X, "again": np.ones((2, 3), np.float32)}
    wanted = session.run("y", fed)[0]
    found: list[np.ndarray] = []
    in_threads(lambda: found.append(session.run("y", fed)[0]), [()] * 4)
    assert len(found) == 4
    for value in found:
        np.testing.assert_array_equal(value, wanted)
    trace = StepTrace()
    session.run("y", fed, trace=trace)
    assert trace.total_us > 0


@pytest.mark.parametrize("options", [{"inter_op_threads": 0}, {"memory_limit": 0}, {"threads": 0}])
def test_wrong_options(options: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Session(CHAIN, **options)
