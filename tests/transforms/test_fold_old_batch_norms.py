"""fold_old_batch_norms: what it leaves alone, or does, where the original goes wrong or runs forever."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform

NORM = """
    x = Placeholder(dtype=float)
    w = Const(float [[[[3, 5]]]])
    conv = Conv2D(x, w, T=float, data_format="NHWC", strides=[1,1,1,1], padding="SAME")
    gamma = Const(float [2, 3])
    beta = Const(float [0.5, 0.25])
    mean = Const(float [1, 2])
    variance = Const(float [4, 9])
    norm = FusedBatchNorm(conv, gamma, beta, mean, variance, T=float, epsilon=0.0)
"""
SECOND = """
    w2 = Const(float [[[[7, 7]]]])
    conv2 = Conv2D(x, w2, T=float, strides=[1,1,1,1], padding="SAME")
    norm2 = FusedBatchNorm(conv2, gamma, beta, mean, variance, T=float, epsilon=0.0)
"""


def folded(text: str, outputs: str = "norm") -> Graph:
    return transform(parse(text), "fold_old_batch_norms", outputs=outputs)


def test_folds_into_weights_and_bias() -> None:
    graph = folded(NORM)
    assert [node.name for node in graph] == ["w", "x", "conv", "conv_bn_offset", "norm"]
    np.testing.assert_array_equal(graph["w"].tensor.numpy(), [[[[3, 5]]]])
    np.testing.assert_array_equal(graph["conv_bn_offset"].tensor.numpy(), np.float32([-0.5, -1.75]))
    assert (graph["norm"].op, graph["norm"].inputs) == ("BiasAdd", ("conv", "conv_bn_offset"))
    assert set(graph["norm"].attrs) == {"T", "data_format"}


def test_shared_parameters_stay_until_the_last_is_folded() -> None:
    graph = folded(NORM + SECOND)
    assert {graph["norm"].op, graph["norm2"].op} == {"BiasAdd"}
    assert "mean" not in graph
    kept = folded(NORM + "other = Relu(mean, ^gamma, T=float)")
    assert kept["norm"].op == "BiasAdd"
    assert "mean" in kept
    assert "gamma" in kept
    assert "beta" not in kept


@pytest.mark.parametrize(
    "more",
    [
        "other = Relu(conv)",
        "other = Relu(w)",
        "other = Relu(norm:1)",
        'other = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")',
    ],
)
def test_a_value_that_something_else_reads_is_not_changed(more: str) -> None:
    graph = folded(NORM + more)
    assert graph["norm"].op == "FusedBatchNorm"
    np.testing.assert_array_equal(graph["w"].tensor.numpy(), [[[[3, 5]]]])


@pytest.mark.parametrize("output", ["conv", "w:0"])
def test_outputs_of_the_graph_are_not_changed(output: str) -> None:
    assert folded(NORM, output)["norm"].op == "FusedBatchNorm"


def test_a_norm_that_cannot_be_folded_does_not_keep_others_from_it() -> None:
    graph = folded(
        NORM + SECOND.replace("gamma, beta, mean, variance", "gamma, beta, mean, variance") + "z = Relu(conv2)"
    )
    assert (graph["norm"].op, graph["norm2"].op) == ("BiasAdd", "FusedBatchNorm")


def test_control_inputs_do_not_keep_it_from_folding() -> None:
    assert folded(NORM + "other = NoOp(^conv, ^w, ^norm)")["norm"].op == "BiasAdd"


def test_weights_of_another_size_or_type_are_left_alone() -> None:
    assert folded(NORM.replace("[[[[3, 5]]]]", "[[[[3]]]]"))["norm"].op == "FusedBatchNorm"
    assert folded(NORM.replace("w = Const(float", "w = Const(half"))["norm"].op == "FusedBatchNorm"


def test_a_missing_epsilon_has_its_default() -> None:
    graph = folded(NORM.replace(", epsilon=0.0", ""))
    expected = np.float32(2) / np.sqrt(np.float32(4) + np.float32(0.0001)) * np.float32(3)
    np.testing.assert_allclose(graph["w"].tensor.numpy()[..., 0], [[[expected]]], rtol=1e-6)


@pytest.mark.parametrize("name", ["Variance", "Beta", "Gamma"])
def test_parameters_of_different_sizes_are_an_error(name: str) -> None:
    lines = [
        f"{name.lower()} = Const(float [1, 2, 3])" if line.strip().startswith(f"{name.lower()} =") else line
        for line in NORM.splitlines()
    ]
    with pytest.raises(TransformError, match=rf"node 'norm': {name} input to batch norm has bad shape: \[3\]"):
        folded("\n".join(lines))
