"""What is made up for parts of sparse tensors, and for what a training's queue gave."""

import pathlib
import shlex
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph import Session, save
from pocketgraph.inspect.benchmark_layers import layers_from_graph
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds
from support import with_weights

PARTS = """
    places = Placeholder(dtype=int64, shape=[?,2])
    values = Placeholder(dtype=float, shape=[?])
    sizes = Placeholder(dtype=int64, shape=[2])
    w = Const(float 0.0)
    {middle}
"""
PRODUCT = "y = SparseTensorDenseMatMul(places, values, sizes, w, T=float)"
TURNED = "y = SparseTensorDenseMatMul(places, values, sizes, w, T=float, adjoint_b=true)"
ORDERED = """
    sorted = SparseReorder(places, values, sizes, T=float)
    y = SparseTensorDenseMatMul(sorted, sorted:1, sizes, w, T=float)
"""


@pytest.mark.parametrize(("middle", "rows"), [(PRODUCT, 50), (TURNED, 4), (ORDERED, 50)])
def test_a_sparse_matrix_has_the_columns_that_its_product_takes(middle: str, rows: int) -> None:
    graph = with_weights(PARTS.format(middle=middle), w=np.ones((50, 4), np.float32))
    feeds = synthetic_feeds(graph, ["y"], seed=3)
    assert feeds["sizes"].tolist() == [1, rows]
    assert not feeds["places"].any()
    layers = {layer.name: layer.array() for layer in layers_from_graph(graph, ["places", "values", "sizes"])}
    assert layers["sizes"].tolist() == [1, rows]
    with Session(graph) as session:
        for fed in (feeds, layers):
            [made] = session.run(["y"], fed)
            assert made.shape == (1, 54 - rows)
            np.testing.assert_allclose(made, fed["values"].sum(), rtol=1e-6)


def test_sparse_tensors_of_no_stated_rank_are_matrices_in_what_is_printed_for_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """As of ``tf.sparse_placeholder`` without a shape, behind which an embedding is looked up."""
    text = """
        places = Placeholder(dtype=int64, shape=[?,?])
        ids = Placeholder(dtype=int64, shape=[?])
        sizes = Placeholder(dtype=int64, shape=[?])
        usual = Const(int64 0)
        filled = SparseFillEmptyRows(places, ids, sizes, usual, T=int64)
        from = Const(int32 [0, 0])
        to = Const(int32 [0, 1])
        by = Const(int32 [1, 1])
        rows = StridedSlice(filled, from, to, by, T=int64, Index=int32, begin_mask=1, end_mask=1, shrink_axis_mask=2)
        segments = Cast(rows, SrcT=int64, DstT=int32)
        found = SparseSegmentMean(w, filled:1, segments, T=float, Tidx=int64)
        w = Const(float 0.0)
        y = MatMul(found, v, T=float)
        v = Const(float 0.0)
    """
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0)
    table, last = numbers.normal(size=(8, 3)).astype(np.float32), numbers.normal(size=(3, 2)).astype(np.float32)
    graph = with_weights(text, w=table, v=last)
    save(graph, "embedding.pb")
    feeds = synthetic_feeds(graph, ["y"])
    assert (feeds["places"].tolist(), feeds["sizes"].tolist()) == ([[0, 0]], [1, 1])
    with Session(graph) as session:
        [made] = session.run(["y"], feeds)
    np.testing.assert_allclose(made, table[feeds["ids"]] @ last, rtol=1e-5, atol=1e-6)
    assert call("summarize", "embedding.pb") == 0
    commands = capsys.readouterr().out.partition("next:\n")[2].splitlines()
    assert len(commands) == 3
    for command in commands:
        assert call(*shlex.split(command)[1:]) == 0, command


def test_commands_for_a_frozen_graph_with_a_queue_run_as_they_are_printed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    text = """
        queue = FIFOQueueV2(component_types=[float, int64], shapes=[[8],[]], capacity=32, container="", shared_name="")
        n = Const(int32 4)
        batch = QueueDequeueManyV2(queue, n, component_types=[float, int64], timeout_ms=-1)
        w = Const(float 0.0)
        h = MatMul(batch, w, T=float)
        y = Softmax(h, T=float)
    """
    monkeypatch.chdir(tmp_path)
    graph = with_weights(text, w=np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    save(graph, "queue.pb")
    assert {name: feed.shape for name, feed in synthetic_feeds(graph, ["y"]).items()} == {"batch": (1, 8)}
    assert call("summarize", "queue.pb") == 0
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if line.startswith("  pocketgraph ")]
    assert [words[1] for words in printed] == ["transform_graph", "verify", "benchmark_model"]
    for words in [*printed, ["", "export", "queue.pb", "-o", "queue.tflite"]]:
        assert call(*words[1:]) == 0, words
