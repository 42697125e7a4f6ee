"""sparsify_gather where it does the right thing and the original does not, and that the numbers stay; test_oracle.py
compares it with the original."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import TransformError
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

TABLE = """
    ids = Placeholder(dtype={ids})
    table = Const(float [[0.0], [1.5], [0.0], [-2.0]])
    read = Identity(table, T=float)
    axis = Const(int32 {axis})
    first = GatherV2(read, ids, axis, Tparams=float, Tindices={ids}, Taxis=int32)
    second = Gather(read, ids, Tparams=float, Tindices={ids})
    y = Add(first, second, T=float)
    {more}
"""


def graph(ids: str = "int64", axis: int = 0, more: str = "") -> Graph:
    return parse(TABLE.format(ids=ids, axis=axis, more=more)).replace(inputs=["ids"], outputs=["y"])


@pytest.mark.parametrize("ids", ["int32", "int64"])
def test_the_results_stay(ids: str) -> None:
    changed = transform(graph(ids), "sparsify_gather")
    assert "table" not in changed
    assert [node.op for node in changed].count("HashTable") == 1
    session = Session(changed)
    session.run([], {}, targets=["group_deps"])
    (y,) = session.run(["y:0"], {"ids:0": np.array([3, 0, 1], ids)})
    np.testing.assert_array_equal(y, np.array([[-4.0], [0.0], [3.0]], np.float32))


def assert_unchanged(after: Graph, before: Graph) -> None:
    assert print_graph(after) == print_graph(before) + "group_deps = NoOp()\n"


def test_a_table_that_something_else_reads_stays() -> None:
    more = "z = Neg(read, T=float)"
    changed = transform(graph(more=more), "sparsify_gather")
    assert_unchanged(changed, graph(more=more))
    with_loss = transform(graph(more=more), "sparsify_gather", compat="original")
    assert "z" not in with_loss  # it lost its only input


def test_a_table_that_is_an_output_stays() -> None:
    kept = graph().replace(outputs=["y", "read:0"])
    assert_unchanged(transform(kept, "sparsify_gather"), kept)


def test_a_gather_over_columns_stays() -> None:
    changed = transform(graph(axis=1), "sparsify_gather")
    assert changed["first"].op == "GatherV2"
    assert changed["second"].op == "ExpandDims"
    with pytest.raises(TransformError, match=r"over axis 0\. Found axis 1"):
        only = [node for node in graph(axis=1) if node.name not in ("second", "y")]
        transform(Graph(only), "sparsify_gather", compat="original")


def test_a_wide_table_stays() -> None:
    wide = parse("""
        ids = Placeholder(dtype=int64)
        t = Const(float [[0.0, 1.0]])
        r = Identity(t, T=float)
        y = Gather(r, ids, Tparams=float, Tindices=int64)
    """)
    assert_unchanged(transform(wide, "sparsify_gather"), wide)
    with pytest.raises(TransformError, match=r"shape \[N, 1\]. But instead get shape \[1, 2\]"):
        transform(wide, "sparsify_gather", compat="original")


def test_the_group_can_always_be_run() -> None:
    plain = parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)")
    for compat in ("fixed", "original"):
        assert list(transform(plain, "sparsify_gather", compat=compat).nodes) == ["x", "y", "group_deps"]
    named = transform(graph(), "sparsify_gather(group_init_node=start)")
    assert named["start"].inputs == ("^table/InitializeTable",)


VARIABLE = """
    ids = Placeholder(dtype=int64)
    w/part_1 = VariableV2(dtype=float, shape=[2,1])
    read = Identity(w/part_1, T=float)
    y = Gather(read, ids, Tparams=float, Tindices=int64)
    unrelated = VariableV2(dtype=float, shape=[1])
    save/names = Const(string ["w"])
    save/slices = Const(string ["4 1 2,2:0,1"])
    file = Const(string "model")
    save/RestoreV2 = RestoreV2(file, save/names, save/slices, dtypes=[float])
    save/Assign = Assign(w/part_1, save/RestoreV2, T=float)
    save/restore_all = NoOp(^save/Assign)
"""


@pytest.fixture
def checkpoint(tmp_path: pathlib.Path) -> str:
    prefix = str(tmp_path / "model.ckpt")
    values = Tensor.from_numpy(np.array([[7.0], [8.0], [0.0], [9.0]], np.float32))
    write_checkpoint(prefix, {"w": values})
    return prefix


@pytest.mark.parametrize("compat", ["original", "fixed"])
def test_a_part_of_a_variable_is_read_from_the_checkpoint(checkpoint: str, compat: str) -> None:
    before = parse(VARIABLE).replace(inputs=["ids"], outputs=["y"])
    if compat == "original":
        with pytest.raises(TransformError, match="Unable to find RestoreV2 entry for variable: unrelated"):
            transform(before, "sparsify_gather", compat=compat)
        before = before.replace(node for node in before if node.name != "unrelated")
    changed = transform(before, f'sparsify_gather(input_checkpoint="{checkpoint}")', compat=compat)
    assert changed["w/part_1/indices"].tensor.numpy().tolist() == [1]
    assert changed["w/part_1/values"].tensor.numpy().tolist() == [9.0]
    assert ("save/Assign" in changed) == (compat == "fixed")  # the original takes apart what read the variable


def test_a_variable_needs_a_checkpoint(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TransformError, match="Checkpoint reader was not initialized; pass input_checkpoint=PREFIX"):
        transform(parse(VARIABLE), "sparsify_gather")
    with pytest.raises(TransformError, match="doesn't exist"):
        transform(parse(VARIABLE), f'sparsify_gather(input_checkpoint="{tmp_path}/none")')


def test_a_part_that_does_not_fit_leaves_the_gather_alone(checkpoint: str) -> None:
    for wrong in ("4 1 3,2:0,1", "5 1 2,2:0,1", "4 1 x", "4 1 2,2"):
        before = parse(VARIABLE.replace("4 1 2,2:0,1", wrong))
        changed = transform(before, f'sparsify_gather(input_checkpoint="{checkpoint}")')
        assert changed["y"].op == "Gather"


def test_the_result_can_be_written(checkpoint: str) -> None:
    changed = transform(parse(VARIABLE), f'sparsify_gather(input_checkpoint="{checkpoint}")')
    assert formats.from_bytes(formats.to_bytes(changed)).nodes.keys() == changed.nodes.keys()
