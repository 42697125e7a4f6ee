"""Variables that are assigned once are constants of the plans that read them, until they change."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import numpy as np
import pytest

from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.runtime import Session
from support import model_dir, needs_shared

REFERENCES = """
    x = Placeholder(dtype=float, shape=[?, 2])
    v = VariableV2(dtype=float, shape=[2, 2])
    first = Const(float [[1, 2], [3, 4]])
    init = Assign(v, first, T=float)
    by = Const(float [[1, 0], [0, 1]])
    more = AssignAdd(v, by, T=float)
    read = Identity(v, T=float)
    product = MatMul(x, read, T=float)
    is_there = IsVariableInitialized(v, dtype=float)
"""
HANDLES = """
    x = Placeholder(dtype=float, shape=[?, 2])
    rows = Placeholder(dtype=int32, shape=[?])
    v = VarHandleOp(dtype=float, shape=[2, 2])
    first = Const(float [[1, 2], [3, 4]])
    init = AssignVariableOp(v, first, dtype=float)
    by = Const(float [[1, 0], [0, 1]])
    more = AssignAddVariableOp(v, by, dtype=float)
    read = ReadVariableOp(v, dtype=float)
    product = MatMul(x, read, T=float)
    row = ResourceGather(v, rows, dtype=float, Tindices=int32)
    size = VariableShape(v)
    is_there = VarIsInitializedOp(v)
"""
X = np.array([[1, 10]], np.float32)


@pytest.fixture(params=[REFERENCES, HANDLES], ids=["reference", "resource"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return parse(request.param)


def test_a_variable_assigned_once_is_a_constant_of_the_plan(graph: Graph) -> None:
    with Session(graph) as session:
        session.run([], targets=["init"])
        np.testing.assert_array_equal(session.run("product", {"x": X})[0], [[31, 42]])
        [key] = session._plans._of_values
        found = session._calls.plans[key]
        assert found.whole is not None  # one part takes all; the weights are inside of it


def test_an_assignment_afterwards_is_seen_at_once(graph: Graph) -> None:
    with Session(graph) as session:
        session.run([], targets=["init"])
        for count in range(4):
            expected = X @ (np.array([[1, 2], [3, 4]], np.float32) + count * np.eye(2, dtype=np.float32))
            for _ in range(3):  # the second and third time go the quick way
                np.testing.assert_array_equal(session.run("product", {"x": X})[0], expected)
            session.run([], targets=["more"])
        assert not session._plans._of_values  # it changes, so that it is no constant any more


def test_a_plan_that_writes_reads_what_it_wrote(graph: Graph) -> None:
    with Session(graph) as session:
        session.run([], targets=["init"])
        session.run("product", {"x": X})
        assert session.run("is_there")[0]
        session.run([], targets=["more"])
        np.testing.assert_array_equal(session.run("read")[0], [[2, 2], [3, 5]])


def test_rows_and_sizes_of_handles() -> None:
    with Session(parse(HANDLES)) as session:
        session.run([], targets=["init"])
        row, size = session.run(["row", "size"], {"rows": np.array([1, 0, 1], np.int32)})
        np.testing.assert_array_equal(row, [[3, 4], [1, 2], [3, 4]])
        np.testing.assert_array_equal(size, [2, 2])
        session.run([], targets=["more"])
        np.testing.assert_array_equal(session.run("row", {"rows": np.array([1], np.int32)})[0], [[3, 5]])


def test_two_nodes_of_one_shared_name_are_one_variable() -> None:
    graph = parse("""
        a = VarHandleOp(dtype=float, shape=[], shared_name="v")
        b = VarHandleOp(dtype=float, shape=[], shared_name="v")
        one = Const(float 1)
        init = AssignVariableOp(a, one, dtype=float)
        more = AssignAddVariableOp(b, one, dtype=float)
        read = ReadVariableOp(a, dtype=float)
        both = ReadVariableOp(a, ^more, dtype=float)
    """)
    with Session(graph) as session:
        session.run([], targets=["init"])
        assert session.run("read") == [1]
        assert session.run("both") == [2]
        assert session.run("read") == [2]


def test_threads_that_read_while_one_writes_see_no_older_value_than_was_written(graph: Graph) -> None:
    with Session(graph) as session:
        session.run([], targets=["init"])
        written = [0]
        wrong: list[float] = []

        def read() -> None:
            for _ in range(200):
                least = written[0]
                value = float(session.run("product", {"x": X})[0][0, 0])
                if value < 31 + least:
                    wrong.append(value)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for thread in readers:
            thread.start()
        for count in range(30):
            session.run([], targets=["more"])
            written[0] = count + 1
        for thread in readers:
            thread.join()
        assert not wrong


def test_planning_does_not_wait_for_who_changes_a_variable(graph: Graph) -> None:
    """Who changes it waits for the plans that hold its value to be let go, and so would wait for ever."""
    with Session(graph) as session:
        session.run([], targets=["init"])
        session.run("product", {"x": X})
        [variable] = [each for each in session._state.values() if isinstance(each, Variable)]
        planning = threading.Thread(target=session.plan, args=("product", {"x": (3, 2)}), daemon=True)
        with variable.lock:
            room = variable.taken()
            planning.start()
            planning.join(timeout=300)
            has_ended = not planning.is_alive()
            if not has_ended:
                variable.on_change = None
            variable.keep(room)
        assert has_ended


def test_a_change_right_after_planning_is_seen_by_the_next_run(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's assignment lets go of the plan before it is noted how calls like this one run."""
    with Session(graph) as session:
        session.run([], targets=["init"])
        prepare = session._plans.prepare

        def prepared(*given: Any) -> Any:
            plan = prepare(*given)
            monkeypatch.undo()
            other = threading.Thread(target=session.run, args=([],), kwargs={"targets": ["more"]})
            other.start()
            other.join()
            return plan

        monkeypatch.setattr(session._plans, "prepare", prepared)
        session.run("product", {"x": X})
        np.testing.assert_array_equal(session.run("product", {"x": X})[0], [[32, 52]])


def test_a_checkpoint_that_is_restored_after_a_run_is_seen_by_the_next_one(
    graph: Graph, tmp_path: pathlib.Path
) -> None:
    write_checkpoint(tmp_path / "one.ckpt", {"v": Tensor.from_numpy(np.float32([[1, 2], [3, 4]]))})
    write_checkpoint(tmp_path / "two.ckpt", {"v": Tensor.from_numpy(np.float32([[2, 2], [3, 5]]))})
    with Session(graph) as session:
        for name, wanted in (("one", [[31, 42]]), ("two", [[32, 52]]), ("one", [[31, 42]])):
            session.restore(tmp_path / f"{name}.ckpt")
            for fetched in ("product", "product:0"):
                np.testing.assert_array_equal(session.run(fetched, {"x": X})[0], wanted)
            assert session._plans._of_values  # the values are constants of the plan again
        session.run([], targets=["more"])
        session.restore(tmp_path / "two.ckpt")
        np.testing.assert_array_equal(session.run("product", {"x": X})[0], [[32, 52]])


@needs_shared
def test_the_plan_of_a_saved_model_shows_one_part() -> None:
    with Session(model_dir("sm_mnist_conv/mnist_conv_model")) as session:
        assert [part.runs_on for part in session.plan().parts] == ["litert"]
