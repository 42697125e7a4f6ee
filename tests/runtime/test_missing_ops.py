"""Graphs with ops that cannot run here: one error that says why and what to feed; and functions behind batching."""

from __future__ import annotations

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph import Session
from pocketgraph.errors import MissingKernelError
from pocketgraph.graph import DType, Func, Graph, Node, Shape, Tensor
from pocketgraph.runtime.missing_kernels import why_not

FLOAT = DType.named("float")


def test_what_an_iterator_brings_in_is_to_be_fed() -> None:
    kinds = {"output_types": (FLOAT, DType.named("int64")), "output_shapes": (Shape([None, 3]), Shape([None]))}
    nodes = [
        Node("iterator", "IteratorV2", (), {"shared_name": b"", "container": b"", **kinds}),
        Node("next", "IteratorGetNext", ("iterator",), kinds),
        Node("y", "Neg", ("next",), {"T": FLOAT}),
    ]
    with Session(Graph(nodes)) as session:
        with pytest.raises(MissingKernelError) as caught:
            session.run(["y"], {})
        said = str(caught.value)
        assert "'next:0' (float [?,3]), 'next:1' (int64 [?])" in f"{said} {caught.value.hint}"
        assert "\n" not in said
        assert session.run(["y"], {"next:0": np.ones((1, 3), np.float32)})[0].tolist() == [[-1, -1, -1]]


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("OneShotIterator", "training data"), ("TensorSliceDataset", "training data"),
        ("ReaderReadV2", "training data"),
        ("TextLineReaderV2", "training data"), ("PyFunc", "Python function"), ("CudnnRNNV3", "GPUs"),
        ("XlaDot", "other devices"), ("TPUReplicatedInput", "other devices"), ("_MklConv2D", "other devices"),
        ("WriteScalarSummary", "event files"), ("SummaryWriter", "event files"), ("DebugIdentityV2", "debugger"),
        ("BoostedTreesUpdateEnsemble", "training"), ("TensorForestTreePredict", ""), ("_Arg", "cuts a graph up"),
        ("_While", "cuts a graph up"), ("Unbatch", "without batching"), ("DecodeJxl", "JPEG XL"),
        ("SymbolicGradient", "tf.gradients"),
        ("Conv2D", ""),
    ],
)  # fmt: skip
def test_the_reasons(op: str, why: str) -> None:
    assert why in why_not(op)
    assert bool(why) == bool(why_not(op))


def test_a_function_behind_a_batching_queue() -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([None])})
    by = Node("by", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([])})
    batching = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 10}
    types = {"Tin": (FLOAT,), "Tcaptured": (FLOAT,), "Tout": (FLOAT,)}
    batch = Node("batch", "BatchFunction", ("x", "by"), {"f": Func("times", {}), **types, **batching})
    graph = with_functions(Graph([x, by, batch]), ["times(a: float, b: float) -> s:z:0", "s = Mul(a, b, T=float)"])
    with Session(graph) as session:
        (found,) = session.run(["batch"], {"x": np.float32([1, 2, 3]), "by": np.float32(2)})
    assert found.tolist() == [2, 4, 6]


def test_a_pipeline_that_files_feed_has_no_kernels_whatever_is_allowed() -> None:
    """To allow files helps nobody where nothing runs what reads them."""
    kinds = {"output_types": (FLOAT,), "output_shapes": (Shape([None, 3]),)}
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([None, 3])}),
        Node("rows", "TensorSliceDataset", ("x",), {"Toutput_types": (FLOAT,), "output_shapes": (Shape([3]),)}),
        Node("path", "Const", (), {"dtype": DType.named("string"), "value": Tensor.from_numpy(np.array(b"cache"))}),
        Node("cached", "CacheDataset", ("rows", "path"), kinds),
        Node("next", "DatasetToSingleElement", ("cached",), kinds),
        Node("y", "Neg", ("next",), {"T": FLOAT}),
    ]
    with Session(Graph(nodes)) as session:
        with pytest.raises(MissingKernelError, match=r"'next:0' \(float \[\?,3\]\)"):
            session.run(["y"], {"x": np.zeros((1, 3), np.float32)})
        assert session.run(["y"], {"next:0": np.ones((1, 3), np.float32)})[0].tolist() == [[-1, -1, -1]]
