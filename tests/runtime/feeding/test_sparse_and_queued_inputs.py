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
    for words in printed:
        assert call(*words[1:]) == 0, words
