"""Recurrent nets, loops, branches and dynamic shapes of TensorFlow 1.15 (tools/make_recurrent_graphs.py): its results,
and that LiteRT runs their heavy parts."""

import pathlib

import numpy as np
import pytest

from graph_files import graph_file, graph_names
from pocketgraph.litert.executable import Executable
from pocketgraph.runtime import Session
from recorded_runs import Arrays, assert_near, assert_repeats, recorded_runs

FOLDER = pathlib.Path(__file__).parent / "recurrent"
NAMES = graph_names(FOLDER)
WRITTEN_OUT = (
    "basic_lstm",
    "any_length",
    "two_ways",
    "stacked_time_major",
    "block_cell",
    "branch_in_round",
    "branch_that_stays",
    "keras_lstm",
    "keras_gru",
    "keras_two_ways",
    "fused_lengths",
    "ends_where_nothing_changes",
)
ENDS = {
    "lengths": True,
    "ends_where_nothing_changes": True,
    "ends_where_a_sum_goes_on": False,
    "ends_where_outputs_are_filled": False,
}
"""Loops to the longest length; whether further rounds change nothing, so that the loop may be written out."""


def runs_of(name: str) -> list[tuple[Arrays, Arrays]]:
    return recorded_runs(FOLDER, name)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", NAMES)
def test_equals_tensorflow(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    for _ in range(2):  # the second time from the cache
        assert_repeats(FOLDER, name, engine=engine, cache_dir=tmp_path)


def test_tiny_products_stay_beside_their_loop(tmp_path: pathlib.Path) -> None:
    with Session(graph_file(FOLDER, "counted"), cache_dir=tmp_path) as session:
        for feeds, expected in runs_of("counted"):
            trace = session.profile(list(expected), feeds)
            assert {node.runs_on for node in trace.nodes if node.op == "MatMul"} <= {"reference"}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", NAMES)
def test_heavy_ops_run_on_litert(name: str, tmp_path: pathlib.Path) -> None:
    heavy, found = ("MatMul", "Conv2D", "LSTMBlockCell", "BlockLSTM"), False
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path, without=["open_sizes"]) as session:
        for feeds, expected in runs_of(name):
            trace = session.profile(list(expected), feeds)
            slow = [node.name for node in trace.nodes if node.op in heavy and node.runs_on == "reference"]
            assert not slow or 0 in [size for v in expected.values() for size in v.shape]
            found |= any(node.op in heavy for node in trace.nodes)
    assert found or name == "never"


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_known_rounds_are_written_out(name: str, tmp_path: pathlib.Path) -> None:
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path) as session:
        feeds, expected = runs_of(name)[0]
        plan = session.plan(list(expected), feeds)
        assert [part.runs_on for part in plan.parts] == ["litert"], str(plan)


@pytest.mark.parametrize(("name", "is_written"), ENDS.items())
def test_loops_to_the_longest_length(name: str, is_written: bool, tmp_path: pathlib.Path) -> None:
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path) as session:
        feeds, expected = runs_of(name)[0]
        assert ("LoopCond" not in str(session.plan(list(expected), feeds))) == is_written


@pytest.mark.usefixtures("small_parts")
def test_weights_that_a_body_waits_for_are_constants_of_its_part(tmp_path: pathlib.Path) -> None:
    """As TensorFlow 2 writes loops: each value of a body, weights too, waits for all others to be there."""
    feeds, expected = runs_of("keras_ragged")[0]
    graph = graph_file(FOLDER, "keras_ragged")
    with Session(graph, cache_dir=tmp_path) as session:
        session.run(list(expected), feeds)
        parts = [each for plan in session._calls.plans.values() for each in plan.executables]
        sizes = [shape for each in parts if isinstance(each, Executable) for _, _, shape in each.about["inputs"]]
        plan = session.plan(list(expected), feeds)
    assert sizes
    assert not {(16, 64), (32, 64)} & set(map(tuple, sizes))
    cells = [[name for name in part.nodes if "/while/lstm_cell" in name and "MatMul" in name] for part in plan.parts]
    assert sorted(filter(None, map(len, cells))) == [2, 2, 2]


def test_times_of_dynamic_parts_are_told() -> None:
    feeds, expected = runs_of("pyramid")[0]
    with Session(graph_file(FOLDER, "pyramid")) as session:
        convolutions = [node for node in session.profile(list(expected), feeds).nodes if node.op == "Conv2D"]
    assert [node.runs_on for node in convolutions] == ["litert", "litert"]  # of 16 and of 8 rows


def test_many_shapes_do_not_pile_up(tmp_path: pathlib.Path) -> None:
    """A part that never meets a shape again is not compiled for each; what it gives stays right."""
    w = np.random.default_rng(0).normal(size=(1, 40, 40, 3)).astype("f4")
    with (
        Session(graph_file(FOLDER, "pyramid"), cache_dir=tmp_path) as session,
        Session(graph_file(FOLDER, "pyramid"), engine="reference") as exact,
    ):
        for size in range(6, 40):
            feeds = {"image:0": np.ascontiguousarray(w[:, :size, : size - 1])}
            fetches = list(runs_of("pyramid")[0][1])
            for result, value in zip(session.run(fetches, feeds), exact.run(fetches, feeds), strict=True):
                assert_near(result, value)


def test_memory_limit_reaches_dynamic_parts() -> None:
    from pocketgraph.errors import RunError

    feeds, expected = runs_of("pyramid")[1]
    with Session(graph_file(FOLDER, "pyramid"), memory_limit=3000) as session, pytest.raises(RunError, match="limit"):
        session.run(list(expected), feeds)


def test_a_closed_session_closes_dynamic_parts() -> None:
    from pocketgraph.errors import RunError

    feeds, expected = runs_of("dead_branch")[0]
    session = Session(graph_file(FOLDER, "dead_branch"))
    session.run(list(expected), feeds)
    session.close()
    with pytest.raises(RunError, match="closed Session"):
        session.run(list(expected), feeds)
