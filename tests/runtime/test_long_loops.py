"""Long loops as short ones of many rounds each, and loops that end by a value: TensorFlow 1.15's results
(tools/make_loop_graphs.py), however many rounds are written out at once."""

import pathlib
from typing import Any

import numpy as np
import pytest

from graph_files import graph_file, graph_names
from pocketgraph import export
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.unrolling import loops
from pocketgraph.runtime.unrolling.partial_unrolling import PartialUnrolling
from recorded_runs import assert_repeats
from support import golden, lines_taken, model_dir, needs_shared

HERE = pathlib.Path(__file__).parent
LOOPS = graph_names(HERE / "loops")
IN_CHUNKS = ("first_rounds_differ", "long_lstm", "long_of_any_length", "long_two_ways", "long_raw", "counting_oddly")
RECURRENT = (
    "any_length", "basic_lstm", "block_cell", "functional_gru", "functional_lstm", "functional_two_ways", "keras_gru",
    "keras_lstm", "keras_two_ways", "stacked_time_major", "two_ways",
)  # fmt: skip


@pytest.fixture
def chunked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rounds each chunk has that is written while the test runs."""
    lengths: list[int] = []
    write = PartialUnrolling.in_chunks

    def noting(self: PartialUnrolling, *arguments: Any) -> int:
        done = write(self, *arguments)
        lengths.append(arguments[-1])
        return done

    monkeypatch.setattr(PartialUnrolling, "in_chunks", noting)
    return lengths


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", LOOPS)
def test_equals_tensorflow(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    for _ in range(2):  # the second time from the cache
        assert_repeats(HERE / "loops", name, engine=engine, cache_dir=tmp_path)


@pytest.mark.parametrize("name", IN_CHUNKS)
def test_long_loops_run_in_chunks(name: str, chunked: list[int], tmp_path: pathlib.Path) -> None:
    assert_repeats(HERE / "loops", name, cache_dir=tmp_path)
    assert chunked
    assert all(length > 3 for length in chunked)


def test_a_loop_is_written_out_whose_length_a_loop_before_it_hands_on(tmp_path: pathlib.Path) -> None:
    graph = graph_file(HERE / "loops", "words_of_letters")
    made = export(graph, tmp_path / "net.tflite", outputs=["words/rnn/transpose_1"], shapes={"x": (1, 3, 5, 2)})
    assert made.checks[0].passed


@pytest.mark.parametrize("most", [1, 40, 90])
@pytest.mark.parametrize("name", LOOPS)
def test_any_number_of_rounds_at_once(
    name: str, most: int, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", most)
    assert_repeats(HERE / "loops", name, cache_dir=tmp_path)
    assert chunked or name not in IN_CHUNKS


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_nets_in_chunks_of_two(
    name: str, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", 1)
    assert_repeats(HERE / "recurrent", name, cache_dir=tmp_path)
    assert set(chunked) == {2}


@pytest.mark.parametrize("name", ["reading_what_was_written", "growing", "branches_in_turn"])
def test_what_cannot_be_done_in_chunks_is_done_otherwise(
    name: str, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", 1)
    assert_repeats(HERE / "loops", name, cache_dir=tmp_path)
    assert not chunked


def test_a_long_loop_is_a_short_one(tmp_path: pathlib.Path) -> None:
    """What is left for the interpreter is a tenth of the rounds."""
    with Session(graph_file(HERE / "loops", "long_lstm"), cache_dir=tmp_path) as session:
        trace = session.profile(["rnn/transpose_1:0"], {"x:0": np.zeros((2, 150, 3), np.float32)})
    rounds = [node for node in trace.nodes if node.op == "LoopCond" or node.name.endswith("/less")]
    assert len(rounds) <= 15


@needs_shared
def test_rounds_are_few_by_what_they_compute(chunked: list[int], tmp_path: pathlib.Path) -> None:
    """Constants that a round brings, also equal ones, do not make it longer: 19 rounds stay in one program."""
    folder = model_dir("kws_crnn_s")
    inputs, outputs = golden(folder)
    with Session(folder / "CRNN_S.pb", cache_dir=tmp_path) as session:
        session.run(list(outputs), {"wav_data:0": inputs["wav_data:0"].tobytes()})
    assert not chunked


def test_shapes_that_do_not_fit_are_told(tmp_path: pathlib.Path) -> None:
    graph = graph_file(HERE / "loops", "long_lstm")
    with Session(graph, cache_dir=tmp_path) as session, pytest.raises(RunError, match="x"):
        session.run(["rnn/transpose_1:0"], {"x:0": np.zeros((2, 150, 4), np.float32)})


def test_one_program_holds_the_whole_loop_when_it_has_to(chunked: list[int], tmp_path: pathlib.Path) -> None:
    assert_repeats(HERE / "loops", "long_lstm", engine="litert", cache_dir=tmp_path)
    assert not chunked


GUARDED = """
    x = Placeholder(dtype=float, shape=[1,2])
    w = Const(float [[0.5, 0.25], [0.125, 0.5]])
    zero = Const(int32 0)
    i_in = Enter(zero, T=int32, frame_name="f", is_constant=false, parallel_iterations=1)
    h_in = Enter(x, T=float, frame_name="f", is_constant=false, parallel_iterations=1)
    w_in = Enter(w, T=float, frame_name="f", is_constant=true, parallel_iterations=1)
    i = Merge(i_in, i_next, T=int32, N=2)
    h = Merge(h_in, h_next, T=float, N=2)
    most = Const(int32 200, ^i)
    less = Less(i, most, T=int32)
    test = LoopCond(less)
    i_now = Switch(i, test, T=int32)
    h_now = Switch(h, test, T=float)
    i_body = Identity(i_now:1, T=int32)
    h_body = Identity(h_now:1, T=float)
    axes = Const(int32 [0, 1], ^i_body)
    limit = Const(float 100.0, ^i_body)
    largest = Max(h_body, axes, T=float, Tidx=int32, keep_dims=false)
    is_small = Less(largest, limit, T=float)
    holds = Assert(is_small, largest, T=[float], summarize=3)
    one = Const(int32 1, ^i_body)
    i_added = AddV2(i_body, one, T=int32)
    product = MatMul(h_body, w_in, T=float, transpose_a=false, transpose_b=false)
    grown = AddV2(product, h_body, T=float)
    checked = Identity(grown, ^holds, T=float)
    i_next = NextIteration(i_added, T=int32)
    h_next = NextIteration(checked, T=float)
    out = Exit(h_now, T=float)
"""


@pytest.mark.parametrize("engine", ["reference", None])
def test_an_assertion_in_a_long_loop_holds(engine: str | None) -> None:
    with Session(parse(GUARDED), engine=engine) as session:
        assert session.run("out", {"x": [[0.0, 0.0]]})[0].tolist() == [[0, 0]]
        with pytest.raises(RunError, match="assertion failed"):
            session.run("out", {"x": [[1.0, 1.0]]})


def test_planning_many_loops_is_work_in_proportion_to_them() -> None:
    """One after the other, each for as many rounds as only the run knows."""

    def lines_of_planning(count: int) -> int:
        lines = ["x0 = Placeholder(dtype=float, shape=[2])", "limit = Placeholder(dtype=int32, shape=[])"]
        lines += ["zero = Const(int32 0)", "one = Const(int32 1)"]
        for k in range(count):
            enter = f'parallel_iterations=10, frame_name="f{k}"'
            lines += [
                f"a{k} = Enter(zero, T=int32, is_constant=false, {enter})",
                f"b{k} = Enter(x{k}, T=float, is_constant=false, {enter})",
                f"l{k} = Enter(limit, T=int32, is_constant=true, {enter})",
                f"o{k} = Enter(one, T=int32, is_constant=true, {enter})",
                f"ma{k} = Merge(a{k}, na{k}, T=int32, N=2)",
                f"mb{k} = Merge(b{k}, nb{k}, T=float, N=2)",
                f"less{k} = Less(ma{k}, l{k}, T=int32)",
                f"on{k} = LoopCond(less{k})",
                f"sa{k} = Switch(ma{k}, on{k}, T=int32)",
                f"sb{k} = Switch(mb{k}, on{k}, T=float)",
                f"more{k} = AddV2(sa{k}:1, o{k}, T=int32)",
                f"neg{k} = Neg(sb{k}:1, T=float)",
                f"na{k} = NextIteration(more{k}, T=int32)",
                f"nb{k} = NextIteration(neg{k}, T=float)",
                f"x{k + 1} = Exit(sb{k}, T=float)",
            ]
        graph, x = parse("\n".join(lines)), np.float32([1, 2])

        def run() -> None:
            with Session(graph, threads=1, cache_dir="") as session:
                (found,) = session.run([f"x{count}"], {"x0": x, "limit": 3})
            np.testing.assert_array_equal(found, x if count % 2 == 0 else -x)

        return lines_taken(run)

    lines_of_planning(1)  # what is imported, and tables that are read, once
    assert lines_of_planning(80) < 12 * lines_of_planning(10)  # 64 times as many pairs of a loop and a node
