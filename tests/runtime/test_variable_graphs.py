"""Ops on parts of variables inside of graphs, from run to run, and what they leave."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.shapes import infer
from pocketgraph.kernels.state.tensor_array import TensorArray
from pocketgraph.runtime import Session

PARTS = """
    v = VariableV2(dtype=float, shape=[3, 2])
    start = Const(float [[1, 2], [3, 4], [5, 6]])
    init = Assign(v, start, T=float)
    rows = Const(int32 [[2], [0]])
    more = Placeholder(dtype=float, shape=[2, 2])
    add = ScatterNdAdd(v, rows, more, T=float, Tindices=int32)
    one = Const(int32 [1])
    two = Const(int32 [2])
    put = StridedSliceAssign(add, one, two, one, zero, T=float, Index=int32)
    zero = Const(float [[0, 0]])
    twice = Add(put, put, T=float)
"""


@pytest.mark.parametrize("engine", ["reference", None])
def test_parts_of_a_variable_change_from_run_to_run(engine: str | None) -> None:
    session = Session(parse(PARTS), engine=engine)
    with pytest.raises(RunError, match="uninitialized"):
        session.run("add", {"more": np.ones((2, 2), np.float32)})
    session.run([], targets=["init"])
    feeds = {"more": np.float32([[10, 10], [20, 20]])}
    assert session.run("add", feeds)[0].tolist() == [[21, 22], [3, 4], [15, 16]]
    assert session.run("twice", feeds)[0].tolist() == [[82, 84], [0, 0], [50, 52]]
    assert session.run("v")[0].tolist() == [[41, 42], [0, 0], [25, 26]]


def test_shapes_are_known_without_running() -> None:
    found = infer(parse(PARTS))
    assert found.shape("add:0") == Shape([3, 2])
    assert found.shape("put:0") == Shape([3, 2])


def test_a_sparse_step_moves_only_the_rows_it_names() -> None:
    graph = parse(
        """
        v = VariableV2(dtype=float, shape=[3, 2])
        m = VariableV2(dtype=float, shape=[3, 2])
        ones = Const(float [[1, 1], [1, 1], [1, 1]])
        init = Assign(v, ones, T=float)
        init_m = Assign(m, ones, T=float)
        rate = Const(float 0.5)
        half = Const(float 0.5)
        grad = Const(float [[1, 2], [1, 2]])
        rows = Const(int64 [2, 2])
        step = SparseApplyMomentum(v, m, rate, grad, rows, half, T=float, Tindices=int64)
        """
    )
    session = Session(graph)
    session.run([], targets=["init", "init_m"])
    # twice the same row: m = 0.5·1 + g, v -= 0.5·m; then again from there
    assert session.run("step")[0].tolist() == [[1, 1], [1, 1], [-0.625, -1.875]]
    assert session.run("m")[0].tolist() == [[1, 1], [1, 1], [1.75, 3.25]]


@pytest.mark.parametrize("engine", ["reference", None])
def test_a_temporary_variable_lives_for_one_run(engine: str | None) -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[2])
        t = TemporaryVariable(dtype=float, shape=[2], var_name="sum")
        first = Assign(t, x, T=float)
        second = AssignAdd(first, x, T=float)
        third = AssignSub(second, x, T=float)
        fourth = AssignAdd(third, x, T=float)
        end = DestroyTemporaryVariable(fourth, T=float, var_name="sum")
        """
    )
    session = Session(graph, engine=engine)
    for value in (1.0, 2.0):
        assert session.run("end", {"x": np.float32([value, 3])})[0].tolist() == [2 * value, 6]


def test_a_summary_of_a_run() -> None:
    graph = parse(
        """
        loss = Placeholder(dtype=float)
        tag = Const(string "loss")
        scalar = ScalarSummary(tag, loss, T=float)
        again = ScalarSummary(tag, loss, T=float)
        all = MergeSummary(scalar, N=1)
        both = MergeSummary(scalar, again, N=2)
        """
    )
    session = Session(graph)
    assert session.run("all", {"loss": np.float32(0.5)})[0].item() == b"\n\x0b\n\x04loss\x15\x00\x00\x00?"
    with pytest.raises(RunError, match="Duplicate tag loss found in summary inputs"):
        session.run("both", {"loss": np.float32(0.5)})


def test_gradients_of_wider_elements() -> None:
    array = TensorArray("ta", DType.named("float"), 3, Shape((2,)))
    array.write(1, np.float32([1, 2]))
    node = Node("grad", "TensorArrayGradWithShape", (), {"source": b"g"})
    made, flow = evaluate(node, [array, np.float32(0.5), np.int32([4])])
    assert flow == 0.5
    for _ in range(2):
        made.write(0, np.ones((4, 2), np.float32))
    assert (made.read(0) == np.full((4, 2), 2)).all()
    for never in (1, 2):  # TensorFlow gives zeros for both
        assert made.read(never).tolist() == [[0, 0]] * 4
    with pytest.raises(RunError, match=r"value shape is \[2\] which is incompatible"):
        made.write(2, np.float32([1, 2]))
    with pytest.raises(RunError, match="not known"):
        evaluate(node, [array, np.float32(0), np.int32([-1])])
