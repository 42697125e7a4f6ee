"""The first call of other sizes: the reference engine answers it, and a program for all is made after it."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import blas_threads
from pocketgraph.litert.sizes import open_program
from pocketgraph.runtime import RunOptions, Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.planning import reference_answers
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request
from pocketgraph.runtime.planning.sizes import opened_parts, opened_programs, resizable_calls
from recorded_runs import assert_repeats

HERE = pathlib.Path(__file__).parent

LAYERS = """
    x = Placeholder(dtype=float, shape=[1, ?, 4])
    s = Shape(x, T=float, out_type=int32)
    w = Const(float[4, 4] 0.25)
    rows = Const(int32[2] [-1, 4])
    flat = Reshape(x, rows, T=float, Tshape=int32)
    h = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
    back = Reshape(h, s, T=float, Tshape=int32)
    y = Tanh(back, T=float)
"""
TEXT = parse(LAYERS)


def numbers(length: int) -> Array:
    return np.random.default_rng(length).standard_normal((1, length, 4), np.float32)


def asked(session: Session, length: int) -> Array:
    (found,) = session.run(["y"], {"x": numbers(length)})
    return np.asarray(found)


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedule.finish()  # what other tests left
    monkeypatch.setattr(check_schedule, "LOOK", 3600.0)  # what waits is done when a test says so
    monkeypatch.setattr(resizable_calls, "ANSWERED_AGAIN", 0.0)  # which depends on what the machine does


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths that the reference engine answers."""
    found: list[int] = []
    run = reference_answers.ReferenceAnswer.run

    def noted(answer: reference_answers.ReferenceAnswer, inputs: Any) -> list[Array]:
        found.append(inputs[0].shape[1])
        return run(answer, inputs)

    monkeypatch.setattr(reference_answers.ReferenceAnswer, "run", noted)
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operations each program has that is made for all sizes."""
    found: list[int] = []
    opening = open_program.opened

    def noted(*args: Any) -> Any:
        program = opening(*args)
        found.append(len(program.program.operations) if program else 0)
        return program

    monkeypatch.setattr(opened_programs, "with_open_sizes", noted)
    return found


def test_a_call_with_a_deadline_is_answered_once_too(answered: list[int]) -> None:
    with Session(TEXT, threads=1, cache_dir="") as session:
        asked(session, 60)
        for _ in range(2):
            session.run(["y"], {"x": numbers(61)}, options=RunOptions(timeout_in_ms=60_000))
        assert answered == [61]


def test_numbers_drawn_in_a_function_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_answers, "ANSWERED_SHARE", 1e9)
    graph = with_functions(
        parse(
            LAYERS
            + """
    s2 = Shape(y, T=float, out_type=int32)
    r = StatefulPartitionedCall(s2, f=func(noise), Tin=[int32], Tout=[float])
    z = AddV2(y, r, T=float)
"""
        ),
        ["stateful noise(s: int32) -> r:output:0", "r = RandomUniform(s, T=int32, dtype=float, seed=1, seed2=2)"],
    )

    def drawn(engine: str | None) -> list[float]:
        with Session(graph, engine=engine, cache_dir="") as session:
            feeds = [np.zeros((1, length, 4), np.float32) for length in (4, 8, 8, 16)]
            return [float(session.run(["z"], {"x": each})[0][0, 0, 0]) for each in feeds]

    assert drawn(None) == drawn("reference")


def test_the_second_length_needs_no_program(answered: list[int], opened: list[int]) -> None:
    with Session(TEXT, cache_dir="") as session, Session(TEXT, engine="reference") as reference:
        for length in (5, 7, 9, 7, 12):
            np.testing.assert_allclose(asked(session, length), asked(reference, length), rtol=1e-5, atol=1e-6)
    assert answered == [7]
    assert len(opened) == 1


def test_what_took_little_answers_once_more(
    answered: list[int], opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resizable_calls, "ANSWERED_AGAIN", 1e9)
    with Session(TEXT, cache_dir="") as session, Session(TEXT, engine="reference") as reference:
        for length in (5, 7, 9, 12, 8):
            np.testing.assert_allclose(asked(session, length), asked(reference, length), rtol=1e-5, atol=1e-6)
    assert answered == [7, 9]
    assert len(opened) == 1


@pytest.mark.parametrize(("share", "answers"), [(0.49, True), (0.51, False)])
def test_what_takes_a_quarter_of_the_first_plan_is_answered(
    share: float, answers: bool, answered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is twice that."""
    decide = reference_answers.answered_by_reference

    def of_a_plan_of_a_second(key: CallKey, compiled: FixedPlan, request: Request) -> Any:
        return decide(key, compiled.replace(seconds=1.0), request)

    monkeypatch.setattr(reference_answers, "answered_by_reference", of_a_plan_of_a_second)
    monkeypatch.setattr(reference_answers, "numpy_time", lambda nodes, inferred: share * 1e6)
    with Session(TEXT, cache_dir="") as session:
        asked(session, 7)
        asked(session, 5)
    assert answered == [5] * answers


def test_a_longer_one_is_taken_to_need_the_square_of_its_length() -> None:
    def key(length: int) -> CallKey:
        return CallKey(((Endpoint.of("x:0"), (FLOAT, (1, length, 4))),), (Endpoint.of("y:0"),))

    answer = reference_answers.ReferenceAnswer(key(7), None)
    assert not answer.is_quick(key(7), 1.0)  # it has answered nothing
    answer.seconds = 0.1
    assert answer.is_quick(key(5), 0.1)
    assert answer.is_quick(key(14), 0.41)
    assert not answer.is_quick(key(14), 0.39)


@pytest.mark.parametrize("again", [0.0, 1e9])
def test_the_program_is_made_when_the_process_is_idle(
    again: float, answered: list[int], opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However quick the answer was."""
    monkeypatch.setattr(resizable_calls, "ANSWERED_AGAIN", again)
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        before = asked(session, 7)
        assert not opened
        check_schedule.finish()
        assert len(opened) == 1
        np.testing.assert_allclose(asked(session, 7), before, rtol=1e-5, atol=1e-6)
        asked(session, 9)
    assert answered == [7]
    assert len(opened) == 1


def test_what_was_answered_is_what_the_program_is_compared_with(
    answered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        asked(session, 7)
        check_schedule.finish()  # the comparison of the first plan, too
        compared: list[Any] = []
        monkeypatch.setattr(PartReference, "run", lambda *args: compared.append(args))
        asked(session, 9)
        assert not compared
    assert answered == [7]


POSITIONS = parse(
    LAYERS.replace("y = Tanh(back, T=float)", "y = Tanh(moved, T=float)")
    + """
    zero = Const(int32[1] [0])
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    steps = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
    start = Const(int32 0)
    step = Const(int32 1)
    places = Range(start, steps, step, Tidx=int32)
    given = Cast(places, SrcT=int32, DstT=float)
    last = Const(int32 -1)
    column = ExpandDims(given, last, T=float, Tdim=int32)
    moved = Add(back, column, T=float)
"""
)


def test_so_is_a_program_of_layers(answered: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes in is computed for it."""
    with Session(POSITIONS, cache_dir="") as session, Session(POSITIONS, engine="reference") as reference:
        asked(session, 5)
        asked(session, 7)
        check_schedule.finish()
        computed: list[str] = []
        run = PartReference.run

        def noted(part: PartReference, *args: Any) -> Any:
            computed.extend(node.name for node in part.nodes)
            return run(part, *args)

        monkeypatch.setattr(PartReference, "run", noted)
        np.testing.assert_allclose(asked(session, 9), asked(reference, 9), rtol=1e-5, atol=1e-6)
    assert "h" not in computed
    assert answered == [7]


def test_an_answer_that_has_a_size_of_the_first_call_tells_nothing(
    answered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, ?, ?, 4])
        w = Const(float[1, 1, 4, 4] 0.25)
        h = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = Tanh(h, T=float)
    """)
    compared: list[tuple[int, ...]] = []
    run = PartReference.run

    def noted(part: PartReference, arrays: Any, *args: Any) -> Any:
        compared.append(np.shape(arrays[0]))
        return run(part, arrays, *args)

    with Session(graph, cache_dir="", threads=1) as session:
        for sizes in ((1, 7, 5, 4), (1, 7, 8, 4)):
            session.run(["y"], {"x": np.ones(sizes, np.float32)})
        monkeypatch.setattr(PartReference, "run", noted)
        session.run(["y"], {"x": np.ones((1, 6, 9, 4), np.float32)})
    assert answered == [7]
    assert compared == [(1, 6, 9, 4)]


@pytest.mark.parametrize("graph", [TEXT, POSITIONS], ids=["whole", "layers"])
@pytest.mark.parametrize("is_idle", [False, True])
def test_a_program_that_is_wrong_serves_nobody(graph: Graph, is_idle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = open_program.opened

    def wrong(*args: Any) -> Any:
        program = opening(*args)
        for operation in program.program.operations:
            if operation.code == "TANH":
                operation.code = "RELU"
        return program

    monkeypatch.setattr(opened_programs, "with_open_sizes", wrong)
    monkeypatch.setattr(opened_parts, "with_open_sizes", wrong)
    with Session(graph, cache_dir="") as session, Session(graph, engine="reference") as reference:
        asked(session, 5)
        asked(session, 7)
        with pytest.warns(RuntimeWarning, match="other numbers"):
            check_schedule.finish() if is_idle else asked(session, 9)
        for length in (9, 7, 5, 12):
            np.testing.assert_allclose(asked(session, length), asked(reference, length), rtol=1e-5, atol=1e-6)


def test_it_is_switched_off_by_its_name(answered: list[int], opened: list[int]) -> None:
    with Session(TEXT, cache_dir="", without=["first_on_reference"]) as session:
        asked(session, 5)
        asked(session, 7)
        assert len(opened) == 1
    assert not answered


def test_what_takes_long_in_numpy_is_not_answered(answered: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_answers, "ANSWERED_SHARE", 0.0)
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        asked(session, 7)
    assert not answered


def test_a_much_longer_one_is_not_answered(answered: list[int]) -> None:
    """NumPy would take as many times as long, where the program takes as long to make as ever."""
    with Session(TEXT, cache_dir="") as session, Session(TEXT, engine="reference") as reference:
        asked(session, 2)
        np.testing.assert_allclose(asked(session, 20_000), asked(reference, 20_000), rtol=1e-5, atol=1e-6)
    assert not answered


def test_a_session_that_is_closed_makes_nothing_more(opened: list[int]) -> None:
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        asked(session, 7)
    check_schedule.finish()
    assert not opened


STATEFUL = {
    "random": "z = RandomUniform(s, T=int32, dtype=float)",
    "variable": """
        v = VarHandleOp(dtype=float, shape=[4])
        start = Const(float[4] 0.5)
        init = AssignVariableOp(v, start, dtype=float)
        r = ReadVariableOp(v, dtype=float)
        z = Add(y, r, T=float)
    """,
}


@pytest.mark.parametrize("kind", STATEFUL)
def test_what_has_to_do_with_other_runs_is_none_of_it(kind: str, answered: list[int]) -> None:
    graph: Graph = parse(LAYERS + "    " + STATEFUL[kind])
    with Session(graph, cache_dir="") as session:
        if "init" in graph.nodes:
            session.run([], targets=["init"])
        for length in (5, 7):
            session.run(["y", "z"], {"x": numbers(length)})
    assert not answered


def test_wrong_feeds_are_told_as_ever(answered: list[int]) -> None:
    graph = parse("""
        words = Placeholder(dtype=int32, shape=[1, ?])
        table = Const(float[3, 4] 0.25)
        axis = Const(int32 0)
        found = GatherV2(table, words, axis, Tparams=float, Tindices=int32, Taxis=int32)
        y = Tanh(found, T=float)
    """)
    with Session(graph, cache_dir="") as session:
        session.run(["y"], {"words": np.zeros((1, 4), np.int32)})
        with pytest.raises(Exception, match="found"):
            session.run(["y"], {"words": np.full((1, 5), 7, np.int32)})
        (found,) = session.run(["y"], {"words": np.zeros((1, 5), np.int32)})
    np.testing.assert_allclose(found, np.tanh(np.full((1, 5, 4), 0.25)), rtol=1e-6)
    assert answered == [5, 5]


def test_results_are_the_callers(answered: list[int]) -> None:
    with Session(TEXT, cache_dir="") as session, Session(TEXT, engine="reference") as reference:
        asked(session, 5)
        asked(session, 7)[:] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_schedule.finish()
            np.testing.assert_allclose(asked(session, 7), asked(reference, 7), rtol=1e-5, atol=1e-6)
    assert answered == [7]


def test_products_take_the_sessions_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[int] = []
    at_most = blas_threads.at_most

    def noted(threads: int) -> Any:
        asked_for.append(threads)
        return at_most(threads)

    monkeypatch.setattr(blas_threads, "at_most", noted)
    with Session(TEXT, cache_dir="", threads=1) as session:
        for length in (5, 7, 9, 12):
            asked(session, length)
    assert asked_for == [1]


@pytest.mark.parametrize(("folder", "name"), [("recurrent", "any_length"), ("loops", "long_of_any_length")])
def test_loops_equal_tensorflow(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the steps of the reference engine, as loops stay loops there."""
    programs: list[Any] = []
    answering = reference_answers.answered_by_reference

    def noted(*args: Any) -> Any:
        found = answering(*args)
        programs.append(found[0].program if found else None)
        return found

    monkeypatch.setattr(reference_answers, "answered_by_reference", noted)
    monkeypatch.setattr(reference_answers, "ANSWERED_SHARE", 1e9)
    assert_repeats(HERE / folder, name, cache_dir="")
    assert programs
    assert all(program is not None for program in programs)


def test_what_it_took_decides_whether_a_program_is_compared(
    answered: list[int], opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExecutionPlan, "check_time", 1e12)  # the estimate, which is made for slow kernels
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        asked(session, 7)
        check_schedule.finish()
        assert len(opened) == 1
    assert answered == [7]


def test_what_is_estimated_for_numpy_decides_whether_it_answers(
    answered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_answers, "ANSWERED_PRODUCT", 1e9)
    with Session(TEXT, cache_dir="") as session:
        asked(session, 5)
        asked(session, 7)
    assert not answered


def test_averages_that_training_would_update_do_not_refuse_other_sizes() -> None:
    """Layers of contrib wait for the updates, which a frozen graph keeps: the first plan drops them."""
    graph = parse(
        LAYERS.replace("y = Tanh(back, T=float)", "y = Tanh(back, ^update, T=float)")
        + """
    average = Const(float 0.5)
    change = Mean(x, axes, T=float, Tidx=int32)
    axes = Const(int32[3] [0, 1, 2])
    update = AssignSub(average, change, T=float)
    """
    )
    with Session(graph) as session, Session(TEXT, engine="reference") as reference:
        for length in (3, 5, 4):
            np.testing.assert_allclose(asked(session, length), asked(reference, length), atol=1e-6)
