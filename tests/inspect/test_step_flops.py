"""FLOPs of a whole step: loops, branches and functions count as often as they run, on whatever engine."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from pocketgraph.cli.judge.benchmark_model import command
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.step_flops import count_step
from pocketgraph.runtime import Session
from support import ROOT

LOOP = """
    x = Placeholder(dtype=float, shape=[2, 4])
    n = Const(int32 0)
    most = Const(int32 5)
    one = Const(int32 1)
    w = Const(float[4, 4] [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    enter_n = Enter(n, T=int32, frame_name="f", is_constant=false, parallel_iterations=10)
    enter_x = Enter(x, T=float, frame_name="f", is_constant=false, parallel_iterations=10)
    enter_most = Enter(most, T=int32, frame_name="f", is_constant=true, parallel_iterations=10)
    enter_one = Enter(one, T=int32, frame_name="f", is_constant=true, parallel_iterations=10)
    enter_w = Enter(w, T=float, frame_name="f", is_constant=true, parallel_iterations=10)
    merge_n = Merge(enter_n, next_n, N=2, T=int32)
    merge_x = Merge(enter_x, next_x, N=2, T=float)
    less = Less(merge_n, enter_most, T=int32)
    again = LoopCond(less)
    switch_n = Switch(merge_n, again, T=int32)
    switch_x = Switch(merge_x, again, T=float)
    more = AddV2(switch_n:1, enter_one, T=int32)
    product = MatMul(switch_x:1, enter_w, T=float, transpose_a=false, transpose_b=false)
    next_n = NextIteration(more, T=int32)
    next_x = NextIteration(product, T=float)
    y = Exit(switch_x, T=float)
"""
ONE_PRODUCT = 2 * 4 * 4 * 2  # rows, columns, depth, a multiplication and an addition each


def test_the_body_of_a_loop_counts_as_often_as_it_runs() -> None:
    found = count_step(parse(LOOP), {"x": np.zeros((2, 4), np.float32)}, ["y"])
    assert found.by_op["MatMul"] == 5 * ONE_PRODUCT
    assert found.original == ONE_PRODUCT  # the original tool counts each node once
    assert not found.unknown


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_count_does_not_depend_on_the_engine(tmp_path: pathlib.Path, engine: str) -> None:
    save(parse(LOOP), tmp_path / "loop.pb")
    result = CliRunner().invoke(
        command, [str(tmp_path / "loop.pb"), "--num_runs=1", "--json", f"--engine={engine}", "--output_layer=y"]
    )
    assert json.loads(result.output)["flops"]["by_op"]["MatMul"] == 5 * ONE_PRODUCT


def test_loops_of_a_saved_model_are_counted_by_the_values_of_its_variables(tmp_path: pathlib.Path) -> None:
    """It multiplies by a matrix of 3 x 3 as often as its variables say; it is given as the folder around it."""
    shutil.copytree(ROOT / "tests" / "fixtures" / "saved_models" / "loops", tmp_path / "export" / "1700000000")
    with Session(tmp_path) as session:
        feeds = {name: np.zeros((1, 3), np.float32) for name in session.inputs}
        rounds = session.run_signature({"x": np.zeros((1, 3), np.float32)})["count"]
        found = count_step(session.graph, feeds, session.graph.outputs)
    assert not found.unknown
    assert found.by_op["MatMul"] == rounds * 3 * 3 * 2


def test_a_node_that_becomes_several_operations_counts_once(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[8, 8])
        root = Rsqrt(x, T=float)
        soft = Softplus(root, T=float)
        loss = L2Loss(soft, T=float)
    """)
    save(graph, tmp_path / "model.pb")
    result = CliRunner().invoke(command, [str(tmp_path / "model.pb"), "--num_runs=1", "--json", "--output_layer=loss"])
    said = json.loads(result.output)
    assert said["flops"]["by_op"] == {"Rsqrt": 128, "Softplus": 64, "L2Loss": 3 * 64 - 1}
    assert {node["name"]: node["times_called"] for node in said["nodes"]} == {"root": 1.0, "soft": 1.0, "loss": 1.0}


def test_only_the_branch_that_runs_counts() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        p = Placeholder(dtype=bool, shape=[])
        s = Switch(x, p, T=float)
        cheap = Neg(s, T=float)
        dear = Softmax(s:1, T=float)
        y = Merge(cheap, dear, N=2, T=float)
    """)
    x = np.zeros(4, np.float32)
    assert set(count_step(graph, {"x": x, "p": np.array(False)}, ["y"]).by_op) == {"Neg"}
    assert set(count_step(graph, {"x": x, "p": np.array(True)}, ["y"]).by_op) == {"Softmax"}


def test_a_call_that_cannot_be_followed_is_named() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        y = PartitionedCall(x, Tin=[float], Tout=[float])
    """)
    found = count_step(graph, {"x": np.zeros(4, np.float32)}, ["y"])
    assert found.uncounted == {"PartitionedCall": 1}


def test_a_graph_without_nodes_costs_nothing() -> None:
    assert count_step(Graph([]), {}, []).total == 0
