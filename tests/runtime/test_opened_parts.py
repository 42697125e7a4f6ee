"""Calls that differ in sizes, where numbers follow from these too: one program for the layers, the rest in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import program_building
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.planning.sizes import opened_parts, resizable_calls, sized_executables
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls

HEAD = """
    words = Placeholder(dtype=int32, shape=[1, ?])
    table = Const(float[9, 4] {})
    at = Const(int32 0)
    x = GatherV2(table, words, at, Tparams=float, Tindices=int32, Taxis=int32)
    s = Shape(x, T=float, out_type=int32)
    zero = Const(int32[1] [0])
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    steps = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
    w = Const(float[4, 4] {})
    rows = Const(int32[2] [-1, 4])
    flat = Reshape(x, rows, T=float, Tshape=int32)
    h = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
    start = Const(int32 0)
    step = Const(int32 1)
    places = Range(start, steps, step, Tidx=int32)
    last = Const(int32 -1)
""".format(*(np.random.default_rng(7).standard_normal((rows, 4)).round(3).tolist() for rows in (9, 4)))
MASKED = """
    lengths = Placeholder(dtype=int32, shape=[1])
    there = Less(places, lengths, T=int32)
    mask = Cast(there, SrcT=bool, DstT=float)
    column = ExpandDims(mask, last, T=float, Tdim=int32)
    kept = Mul(h, column, T=float)
    v = MatMul(kept, w, T=float, transpose_a=false, transpose_b=false)
    shares = Softmax(v, T=float)
    y = Reshape(shares, s, T=float, Tshape=int32)
"""
POSITIONS = """
    numbers = Cast(places, SrcT=int32, DstT=float)
    waves = Sin(numbers, T=float)
    column = ExpandDims(waves, last, T=float, Tdim=int32)
    moved = Add(h, column, T=float)
    v = MatMul(moved, w, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(v, T=float)
"""
TILED = f"""
    first = Const(int32[1] [0])
    mean = Mean(h, first, T=float, Tidx=int32, keep_dims=true)
    once = Const(int32 1)
    times = Pack(steps, once, T=int32, N=2, axis=0)
    all = Tile(mean, times, T=float, Tmultiples=int32)
    joined = ConcatV2(h, all, step, T=float, Tidx=int32, N=2)
    w8 = Const(float[8, 4] {np.random.default_rng(8).standard_normal((8, 4)).round(3).tolist()})
    v = MatMul(joined, w8, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(v, T=float)
"""
PRODUCTS = """
    unit = Const(int32 0)
    texts = ExpandDims(h, unit, T=float, Tdim=int32)
    made = BatchMatMulV2(texts, w, T=float, adj_x=false, adj_y=false)
    axis = Const(int32[1] [2])
    mean = Mean(made, axis, T=float, Tidx=int32, keep_dims=true)
    off = Sub(made, mean, T=float)
    power = Const(float 2.0)
    square = Pow(off, power, T=float)
    numbers = Cast(places, SrcT=int32, DstT=float)
    column = ExpandDims(numbers, last, T=float, Tdim=int32)
    moved = Add(square, column, T=float)
    v = BatchMatMulV2(moved, w, T=float, adj_x=false, adj_y=true)
    y = Tanh(v, T=float)
"""
ATTENDED = """
    scores = MatMul(h, h, T=float, transpose_a=false, transpose_b=true)
    sized = Shape(scores, T=float, out_type=int32)
    yes = Const(bool true)
    all = Fill(sized, yes, T=bool, index_type=int32)
    there = NotEqual(words, at, T=int32)
    seen = LogicalAnd(all, there)
    low = Const(float -1e9)
    kept = SelectV2(seen, scores, low, T=float)
    shares = Softmax(kept, T=float)
    y = MatMul(shares, h, T=float, transpose_a=false, transpose_b=false)
"""
BEST = """
    k = Const(int32 2)
    best = TopKV2(h, k, T=float, sorted=true)
    y = Exp(best, T=float)
"""
HALF = """
    halves = Const(int32 2)
    half = FloorDiv(steps, halves, T=int32)
    some = Range(start, half, step, Tidx=int32)
    one_more = Add(some, step, T=int32)
    found = GatherV2(h, one_more, at, Tparams=float, Tindices=int32, Taxis=int32)
    y = MatMul(found, w, T=float, transpose_a=false, transpose_b=false)
"""
FRAMES = parse("""
    x = Placeholder(dtype=float, shape=[?])
    s = Shape(x, T=float, out_type=int32)
    zero = Const(int32[1] [0])
    one = Const(int32[1] [1])
    length = StridedSlice(s, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
    start = Const(int32 0)
    step = Const(int32 4)
    seven = Const(int32 7)
    end = Sub(length, seven, T=int32)
    begins = Range(start, end, step, Tidx=int32)
    last = Const(int32 -1)
    column = ExpandDims(begins, last, T=int32, Tdim=int32)
    inside = Const(int32[1, 8] [[0, 1, 2, 3, 4, 5, 6, 7]])
    places = Add(column, inside, T=int32)
    at = Const(int32 0)
    frames = GatherV2(x, places, at, Tparams=float, Tindices=int32, Taxis=int32)
    w = Const(float[8, 3] 0.25)
    h = MatMul(frames, w, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(h, T=float)
""")


def feeds(graph: Graph, length: int) -> dict[str, Array]:
    given: dict[str, Array] = {"words": np.random.default_rng(length).integers(0, 9, (1, length), np.int32)}
    if "lengths" in graph.nodes:
        given["lengths"] = np.array([max(1, length - 2)], np.int32)
    return given


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled for fixed sizes."""
    found: list[str] = []
    built = program_building.build

    def noted(program: Any, *rest: Any, **more: Any) -> Any:
        found.append(str([value.shape for value in program.inputs]))
        return built(program, *rest, **more)

    monkeypatch.setattr(resizable_calls, "ANSWERED_AGAIN", 0.0)  # which depends on what the machine does
    monkeypatch.setattr(program_building, "build", noted)
    return found


def assert_equal_for(graph: Graph, lengths: list[int], **how: Any) -> list[Any]:
    """The executables of the session's plans."""
    with Session(graph, cache_dir="", **how) as session, Session(graph, engine="reference") as reference:
        for length in lengths:
            (found,), (expected,) = (each.run(["y"], feeds(graph, length)) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        return [each for plan in session._calls.plans.values() for each in plan.executables]


@pytest.mark.parametrize("body", [MASKED, POSITIONS, ATTENDED, BEST, TILED, PRODUCTS])
def test_one_program_serves_the_layers_of_all_lengths(
    body: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SizedCalls, "pays", lambda *_: False)  # else a busy machine's times decide
    used = assert_equal_for(parse(HEAD + body), [5, 7, 12, 3, 7, 5, 40, 12])
    assert len(compiled) == 1
    assert any(isinstance(each, sized_executables.SizedExecutables) for each in used)


def test_a_single_word_has_a_plan_of_its_own(compiled: list[str]) -> None:
    assert_equal_for(parse(HEAD + MASKED), [5, 7, 1, 12, 1])
    assert len(compiled) == 2


def test_places_in_what_layers_give_are_no_part_of_it() -> None:
    assert_equal_for(parse(HEAD + HALF), [4, 5, 8, 12, 9])


def test_a_recording_of_one_frame() -> None:
    """Its length is none at which anything is left out, the number of its frames is."""
    with Session(FRAMES, cache_dir="") as session, Session(FRAMES, engine="reference") as reference:
        for length in (20, 33, 8, 9, 11, 40, 8, 7):
            values = np.random.default_rng(length).standard_normal(length, np.float32)
            (found,), (expected,) = (each.run(["y"], {"x": values}) for each in (session, reference))
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_it_is_switched_off_by_its_name(compiled: list[str]) -> None:
    used = assert_equal_for(parse(HEAD + MASKED), [5, 7], without=["resizable_programs", "open_sizes"])
    assert len(compiled) == 2
    assert not any(isinstance(each, sized_executables.SizedExecutables) for each in used)


def test_a_program_that_is_wrong_serves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = opened_parts.with_open_sizes

    def wrong(*args: Any) -> Any:
        program = opened(*args)
        for operation in program.program.operations:
            if operation.code == "SOFTMAX":
                operation.options["beta"] = 2.0
        return program

    monkeypatch.setattr(opened_parts, "with_open_sizes", wrong)
    with pytest.warns(RuntimeWarning, match="for all sizes"):
        assert_equal_for(parse(HEAD + MASKED), [5, 7, 12, 7, 3])


def test_what_waited_for_a_pause_does_not_disturb_a_comparison(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause comes while the program is at its first run."""
    compare = FirstComparison.__call__

    def interrupted(*args: Any) -> Any:
        check_schedule.finish()
        return compare(*args)

    monkeypatch.setattr(FirstComparison, "__call__", interrupted)
    monkeypatch.setattr(check_schedule, "LOOK", 3600.0)
    used = assert_equal_for(parse(HEAD + MASKED), [5, 7, 12, 3, 40])
    assert len(compiled) == 1
    assert any(isinstance(each, sized_executables.SizedExecutables) for each in used)


def test_a_length_that_stays_gets_a_plan_of_its_own(compiled: list[str]) -> None:
    graph = parse(HEAD + MASKED)
    with Session(graph, cache_dir="") as session:
        for length in (5, 7, 12):
            session.run(["y"], feeds(graph, length))
        assert len(compiled) == 1
        for known in session._plans._sizes.values():
            known.seconds, known.plans = 2e-9, 2  # what a plan takes
        session.run(["y"], feeds(graph, 12))
        session.run(["y"], feeds(graph, 12))
        assert len(compiled) == 2


def test_layers_that_are_reshaped_to_the_size_of_what_they_do_not_take() -> None:
    """The rows that are summed up come to the program, and what they were summed up from for its size alone."""
    weights = np.random.default_rng(7).standard_normal((6, 6)).round(3)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?, ?, 6])
        along = Const(int32 1)
        sums = Cumsum(x, along, T=float, Tidx=int32)
        rows = Const(int32[2] [-1, 6])
        flat = Reshape(sums, rows, T=float, Tshape=int32)
        w = Const(float[6, 6] {weights.tolist()})
        h = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
        size = Shape(x, T=float, out_type=int32)
        back = Reshape(h, size, T=float, Tshape=int32)
        y = Tanh(back, T=float)
    """)
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for images, length in ((3, 34), (3, 18), (3, 7), (2, 7), (5, 12), (2, 3)):
            x = np.random.default_rng(length).standard_normal((images, length, 6)).astype(np.float32)
            (found,) = session.run(["y"], {"x": x})
            expected = np.tanh(np.cumsum(x.astype(np.float64), axis=1) @ weights)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        used = [each for plan in session._calls.plans.values() for each in plan.executables]
    assert any(isinstance(each, sized_executables.SizedExecutables) for each in used)


def test_layers_with_masks_of_the_same_lengths_share_one(compiled: list[str]) -> None:
    """Each layer asks anew which words there are, with constants of its own."""

    def masked(layer: int, source: str) -> str:
        return f"""
            limit{layer} = Const(int32 3)
            far{layer} = Minimum(lengths, limit{layer}, T=int32)
            there{layer} = GreaterEqual(far{layer}, places, T=int32)
            mask{layer} = Cast(there{layer}, SrcT=bool, DstT=float)
            last{layer} = Const(int32 -1)
            column{layer} = ExpandDims(mask{layer}, last{layer}, T=float, Tdim=int32)
            kept{layer} = Mul({source}, column{layer}, T=float)
            h{layer} = MatMul(kept{layer}, w, T=float, transpose_a=false, transpose_b=false)
        """

    text = HEAD + "lengths = Placeholder(dtype=int32, shape=[1])" + masked(1, "h") + masked(2, "h1")
    graph = parse(text + "y = Tanh(h2, T=float)")
    steps = []
    for without in ([], ["common_subexpressions"]):
        with Session(graph, cache_dir="", without=without) as session, Session(graph, engine="reference") as reference:
            for length in (5, 7, 12, 3, 40):
                (found,), (expected,) = (each.run(["y"], feeds(graph, length)) for each in (session, reference))
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
            steps.append(max(len(plan.program or ()) for plan in session._calls.plans.values()))
    assert steps[0] == steps[1] - 2  # Minimum and GreaterEqual; the rest is in the program
