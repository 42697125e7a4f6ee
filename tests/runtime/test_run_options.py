"""RunOptions: a run that takes too long ends and says where it was; the trace level says whether times are taken."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from pocketgraph.errors import DeadlineError, RunError, UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import RunOptions, Session, StepTrace

ENDLESS = parse("""
    zero = Const(int32 0)
    never = Placeholder(dtype=int32, shape=[])
    one = Const(int32 1)
    enter = Enter(zero, T=int32, frame_name="loop")
    bound = Enter(never, T=int32, frame_name="loop", is_constant=true)
    step = Enter(one, T=int32, frame_name="loop", is_constant=true)
    merge = Merge(enter, next, T=int32, N=2)
    less = Less(merge, bound, T=int32)
    go = LoopCond(less)
    switch = Switch(merge, go, T=int32)
    body = BitwiseXor(switch:1, step, T=int32)
    next = NextIteration(body, T=int32)
    out = Exit(switch, T=int32)
""")
LOOP = {"merge", "less", "go", "switch", "body", "next"}

HEAVY = parse("""
    x = Placeholder(dtype=double, shape=[1200, 1200])
    first = MatMul(x, x, T=double)
    second = MatMul(first, x, T=double)
    last = Neg(second, T=double)
""")


def test_a_loop_without_end_ends_in_time_and_names_a_node_of_it() -> None:
    with Session(ENDLESS) as session:
        session.run("out", {"never": np.int32(-1)})  # planning counts too
        began = time.monotonic()
        with pytest.raises(DeadlineError, match="Timed out waiting for notification: the 100 ms") as caught:
            session.run("out", {"never": np.int32(5)}, options=RunOptions(timeout_in_ms=100))
        assert 0.1 <= time.monotonic() - began < 5
        assert caught.value.where.removeprefix("node '").rstrip("'") in LOOP
        assert isinstance(caught.value, RunError)
        assert session.run("out", {"never": np.int32(-1)}, options=RunOptions(timeout_in_ms=60_000)) == [0]


def test_the_node_that_was_reached_is_named() -> None:
    with Session(HEAVY, engine="reference") as session:
        session.run("last", {"x": np.eye(1200)})
        with pytest.raises(DeadlineError, match=r"^node 'first': "):
            session.run("last", {"x": np.eye(1200)}, options=RunOptions(timeout_in_ms=20))


def test_a_part_on_litert_goes_on_to_its_end_and_is_late_then() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1500, 1500])
        a = MatMul(x, x, T=float)
        y = Relu(a, T=float)
    """)
    x = np.ones((1500, 1500), np.float32)
    with Session(graph, threads=1, engine="litert") as session:
        (expected,) = session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=60_000))
        assert expected[0, 0] == 1500
        with pytest.raises(DeadlineError, match=r"^node 'y': "):
            session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=1))


def test_waiting_for_other_runs_counts() -> None:
    with Session(ENDLESS, inter_op_threads=1) as session:
        session.run("out", {"never": np.int32(-1)})
        said: list[BaseException] = []

        def hold() -> None:
            with pytest.raises(DeadlineError) as caught:
                session.run("out", {"never": np.int32(5)}, options=RunOptions(timeout_in_ms=600))
            said.append(caught.value)

        thread = threading.Thread(target=hold)
        thread.start()
        time.sleep(0.2)
        with pytest.raises(DeadlineError, match="before the first node"):
            session.run("out", {"never": np.int32(-1)}, options=RunOptions(timeout_in_ms=20))
        thread.join()
        assert len(said) == 1


@pytest.mark.parametrize("milliseconds", [0, -5])
def test_no_limit(milliseconds: int) -> None:
    with Session(HEAVY) as session:
        (last,) = session.run("last", {"x": np.eye(1200)}, options=RunOptions(timeout_in_ms=milliseconds))
        assert last[3, 3] == -1


@pytest.mark.parametrize("level", range(4))
def test_trace_levels(level: int) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[3])\ny = Neg(x, T=float)")
    trace = StepTrace()
    with Session(graph) as session:
        options = RunOptions(trace_level=level)
        session.run("y", {"x": [1.0, 2.0, 3.0]}, trace=trace, options=options)
        assert bool(trace.nodes) == (level > RunOptions.NO_TRACE)
        session.run("y", {"x": [1.0, 2.0, 3.0]}, options=options)  # nothing to fill, as without RunMetadata
        both = StepTrace()
        session.run("y", {"x": [1.0, 2.0, 3.0]}, trace=both, options=RunOptions(60_000, RunOptions.FULL_TRACE))
        assert [node.name for node in both.nodes if node.op == "Neg"] == ["y"]
        assert both.total_us > 0


def test_options_with_a_memory_limit() -> None:
    with Session(ENDLESS, memory_limit=1 << 20) as session:
        session.run("out", {"never": np.int32(-1)})
        with pytest.raises(DeadlineError, match="node '"):
            session.run("out", {"never": np.int32(5)}, options=RunOptions(timeout_in_ms=50))


@pytest.mark.parametrize(
    "arguments", [{"trace_level": 4}, {"trace_level": -1}, {"timeout_in_ms": 1.5}, {"trace_level": "3"}]
)
def test_wrong_options(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="RunOptions: "):
        RunOptions(**arguments)  # type: ignore[arg-type]


def test_what_is_no_model_and_what_are_no_options() -> None:
    for model in (b"\x0a\x00", 3, None):
        with pytest.raises(UsageError, match="a session takes a Graph or a path, not"):
            Session(model)  # type: ignore[arg-type]
    with Session(parse("x = Const(float 1.0)")) as session, pytest.raises(UsageError, match="RunOptions, not dict"):
        session.run("x", options={"timeout_in_ms": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["threads", "inter_op_threads", "memory_limit"])
@pytest.mark.parametrize("value", ["2", 0, -1, 1.5])
def test_numbers_of_a_session_are_positive_integers(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"not {value!r}"):
        Session(parse("x = Const(float 1.0)"), **{name: value})  # type: ignore[arg-type]
    Session(parse("x = Const(float 1.0)"), **{name: np.int64(2)}).close()  # type: ignore[arg-type]


def test_planning_counts() -> None:
    body = "\n".join(f"n{i} = Tanh({'x' if i == 0 else f'n{i - 1}'}, T=float)" for i in range(3_000))
    graph = parse(f"x = Placeholder(dtype=float, shape=[4])\n{body}")
    for engine in (None, "reference"):
        with Session(graph, engine=engine, cache_dir=None) as session:
            with pytest.raises(DeadlineError, match="the 1 ms of the run are over"):
                session.run("n2999", {"x": np.ones(4, np.float32)}, options=RunOptions(timeout_in_ms=1))
            (result,) = session.run("n2999", {"x": np.ones(4, np.float32)})  # nothing half planned was kept
            assert 0.02 < result[0] < 0.03


def test_a_kernel_that_is_a_loop_in_python_looks_at_the_clock() -> None:
    graph = parse("""
        x = Placeholder(dtype=double)
        y = Zeta(x, x, T=double)
    """)
    x = np.full(3_000_000, 1.5)
    with Session(graph, engine="reference") as session:
        session.run("y", {"x": x[:1]})
        with pytest.raises(DeadlineError, match=r"^node 'y': Timed out .* the 60 ms of the run are over"):
            session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=60))


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_loop_whose_rounds_do_nothing_ends_in_time(engine: str | None) -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[])
        true = Const(bool true)
        enter = Enter(x, T=int32, frame_name="idle")
        go = Enter(true, T=bool, frame_name="idle", is_constant=true)
        merge = Merge(enter, next, T=int32, N=2)
        condition = LoopCond(go)
        switch = Switch(merge, condition, T=int32)
        next = NextIteration(switch:1, T=int32)
        out = Exit(switch, T=int32)
    """)
    with Session(graph, engine=engine) as session, pytest.raises(DeadlineError, match="the 300 ms of the run are over"):
        session.run("out", {"x": 1}, options=RunOptions(timeout_in_ms=300))
