"""RunOptions: a run that takes too long ends and says where it was; the trace level says whether times are taken."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

from pocketgraph import budgets
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

THREE = parse("""
    x = Placeholder(dtype=double, shape=[3, 3])
    first = MatMul(x, x, T=double)
    second = MatMul(first, x, T=double)
    last = Neg(second, T=double)
""")


class Clock(threading.local):
    """Goes on by a millisecond with each look of its thread; the first one of a run sets the end."""

    looks = 0

    def perf_counter(self) -> float:
        self.looks += 1
        return self.looks / 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(budgets, "time", made)
    return made


def test_a_loop_without_end_ends_in_time_and_names_a_node_of_it(clock: Clock) -> None:
    with Session(ENDLESS) as session:
        session.run("out", {"never": np.int32(-1)})  # planning counts too
        before = clock.looks
        with pytest.raises(DeadlineError, match="Timed out waiting for notification: the 100 ms") as caught:
            session.run("out", {"never": np.int32(5)}, options=RunOptions(timeout_in_ms=100))
        assert 101 <= clock.looks - before <= 103  # one sets the end, and nothing begins after it
        assert caught.value.where.removeprefix("node '").rstrip("'") in LOOP
        assert isinstance(caught.value, RunError)
        assert session.run("out", {"never": np.int32(-1)}, options=RunOptions(timeout_in_ms=60_000)) == [0]


@pytest.mark.parametrize(("milliseconds", "reached"), [(2, "first"), (3, "second"), (4, "last")])
def test_the_node_that_was_reached_is_named(milliseconds: int, reached: str, clock: Clock) -> None:
    with Session(THREE, engine="reference") as session:
        session.run("last", {"x": np.eye(3)})
        clock.looks = 0
        with pytest.raises(DeadlineError, match=f"^node '{reached}': "):
            session.run("last", {"x": np.eye(3)}, options=RunOptions(timeout_in_ms=milliseconds - 1))


def test_a_part_on_litert_goes_on_to_its_end_and_is_late_then(clock: Clock) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[15, 15])
        a = MatMul(x, x, T=float)
        y = Relu(a, T=float)
    """)
    x = np.ones((15, 15), np.float32)
    with Session(graph, threads=1, engine="litert") as session:
        (expected,) = session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=60_000))
        assert expected[0, 0] == 15
        clock.looks = 0
        with pytest.raises(DeadlineError, match=r"^node 'y': "):
            session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=1))
        assert clock.looks == 3  # before the part and behind it


def test_waiting_for_other_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    main, now = threading.current_thread(), 0.0
    holds, is_awaited, ended = threading.Event(), threading.Event(), threading.Event()

    def look() -> float:
        """The other run goes on when this one has set its end, and takes a second."""
        nonlocal now
        seen = now
        if threading.current_thread() is main:
            is_awaited.set()
        elif not holds.is_set():
            holds.set()
        else:
            assert is_awaited.wait(60)
            seen = now = 1.0
        return seen

    with Session(ENDLESS, inter_op_threads=1) as session:
        session.run("out", {"never": np.int32(-1)})
        monkeypatch.setattr(budgets, "time", types.SimpleNamespace(perf_counter=look))

        def hold() -> None:
            with pytest.raises(DeadlineError):
                session.run("out", {"never": np.int32(5)}, options=RunOptions(timeout_in_ms=600))
            ended.set()

        thread = threading.Thread(target=hold)
        thread.start()
        assert holds.wait(60)
        with pytest.raises(DeadlineError, match="before the first node"):
            session.run("out", {"never": np.int32(-1)}, options=RunOptions(timeout_in_ms=20))
        thread.join()
        assert ended.is_set()


@pytest.mark.parametrize("milliseconds", [0, -5])
def test_no_limit(milliseconds: int) -> None:
    with Session(THREE) as session:
        (last,) = session.run("last", {"x": np.eye(3)}, options=RunOptions(timeout_in_ms=milliseconds))
        assert last[2, 2] == -1


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


@pytest.mark.usefixtures("clock")
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


@pytest.mark.usefixtures("clock")
def test_planning_counts() -> None:
    body = "\n".join(f"n{i} = Tanh({'x' if i == 0 else f'n{i - 1}'}, T=float)" for i in range(300))
    graph = parse(f"x = Placeholder(dtype=float, shape=[4])\n{body}")
    for engine in (None, "reference"):
        with Session(graph, engine=engine, cache_dir=None) as session:
            with pytest.raises(DeadlineError, match="the 1 ms of the run are over"):
                session.run("n299", {"x": np.ones(4, np.float32)}, options=RunOptions(timeout_in_ms=1))
            (result,) = session.run("n299", {"x": np.ones(4, np.float32)})  # nothing half planned was kept
            assert 0.07 < result[0] < 0.071  # about the root of 3 / (2 * 300)


def test_a_kernel_that_is_a_loop_in_python_looks_at_the_clock(clock: Clock) -> None:
    graph = parse("""
        x = Placeholder(dtype=double)
        y = Zeta(x, x, T=double)
    """)
    x = np.full(3_000, 1.5)
    with Session(graph, engine="reference") as session:
        session.run("y", {"x": x[:1]})
        before = clock.looks
        with pytest.raises(DeadlineError, match=r"^node 'y': Timed out .* the 6 ms of the run are over"):
            session.run("y", {"x": x}, options=RunOptions(timeout_in_ms=6))
        assert clock.looks - before == 8  # of 49 that it takes for all numbers


@pytest.mark.usefixtures("clock")
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
