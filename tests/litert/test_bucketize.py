"""Bucketize, which Keras' Discretization is made of, on LiteRT and in ONNX, against what TensorFlow 2.21 gave."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from litert.single_ops import run_node
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse

BOUNDARIES = [-1.5, 0.0, 0.5, 7.0]
CASES: list[tuple[str, list[object], list[object]]] = [
    ("float", [[np.nan, np.inf, -np.inf], [0, -0.0, 0.5]], [[4, 4, 0], [2, 2, 3]]),
    ("int32", [-2, -1, 0, 1, 7, 8, 2**24 + 1], [0, 1, 2, 3, 4, 4, 4]),
    ("int64", [-2, 0, 7], [0, 2, 4]),
]


@pytest.mark.parametrize(("dtype", "values", "wanted"), CASES)
def test_the_interval_of_each_number(dtype: str, values: list[object], wanted: list[object]) -> None:
    array: Array = np.array(values, DType.named(dtype).numpy)
    node = Node("b", "Bucketize", ("x",), {"T": DType.named(dtype), "boundaries": BOUNDARIES})
    outcome = run_node(node, (array,), 1)
    assert not outcome.reason, outcome.reason
    assert outcome.outputs[0].dtype == np.int32
    np.testing.assert_array_equal(outcome.outputs[0], wanted)


def test_without_boundaries_there_is_one_interval() -> None:
    node = Node("b", "Bucketize", ("x",), {"T": DType.named("float"), "boundaries": []})
    outcome = run_node(node, (np.ones((2, 3), np.float32),), 1)
    np.testing.assert_array_equal(outcome.outputs[0], np.zeros((2, 3), np.int32))


@pytest.mark.parametrize(("dtype", "values", "wanted"), [*CASES, ("double", [0.49999999999, 0.5, np.nan], [2, 3, 4])])
def test_in_onnx(dtype: str, values: list[object], wanted: list[object], tmp_path: pathlib.Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    array: Array = np.array(values, DType.named(dtype).numpy)
    size = ",".join(map(str, array.shape))
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[{size}])
        found = Bucketize(x, T={dtype}, boundaries=[-1.5, 0.0, 0.5, 7.0])
    """)
    path = tmp_path / "found.onnx"
    pocketgraph.export(graph, path)
    [found] = onnxruntime.InferenceSession(path).run(None, {"x": array})
    np.testing.assert_array_equal(found, wanted)
