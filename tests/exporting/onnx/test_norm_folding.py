"""Batch norms with known statistics are part of the convolution before them, where nothing else reads that."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import assert_same, operators

HEAD = """
    x = Placeholder(dtype=float, shape=[2,9,10,3])
    w = Const(float[3,3,3,4] 0.05)
    g = Const(float [0.5, -2.0, 1.0, 0.0])
    b = Const(float [0.1, 0.2, 0.3, 0.4])
    m = Const(float [0.1, -0.2, 0.3, 0.5])
    v = Const(float [0.5, 0.25, 2.0, 1.0])
    c = Conv2D(x, w, T=float, strides=[1,2,2,1], padding="SAME")
"""
NORM = "FusedBatchNormV3({}, g, b, m, v, T=float, U=float, epsilon=0.001, is_training=false)"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"y = {NORM.format('c')}", 0),
        (f"h = BiasAdd(c, m, T=float)\n    n = {NORM.format('h')}\n    y = Relu(n, T=float)", 0),
        (f"k = Const(float[2,5,5,4] 0.3)\n    h = AddV2(c, k, T=float)\n    y = {NORM.format('h')}", 1),
        (f"n = {NORM.format('c')}\n    y = AddV2(n, c, T=float)", 1),
        (f"h = BiasAdd(c, m, T=float)\n    n = {NORM.format('h')}\n    y = AddV2(n, h, T=float)", 1),
        (f"r = Relu(c, T=float)\n    y = {NORM.format('r')}", 1),
        (f"n = {NORM.format('c')}\n    y = {NORM.format('n')}", 0),
        (f"n = {NORM.format('c')}\n    h = BiasAdd(n, m, T=float)\n    y = {NORM.format('h')}", 0),
    ],
)  # fmt: skip
def test_a_norm_becomes_weights(text: str, left: int) -> None:
    image = np.random.default_rng(5).normal(size=(2, 9, 10, 3)).astype(np.float32)
    proto = assert_same(HEAD + f"    {text}\n", {"x": image})
    counts = operators(proto)
    assert (counts["Conv"], counts["BatchNormalization"]) == (1, left)


def test_weights_that_two_layers_share_are_scaled_for_each() -> None:
    image = np.random.default_rng(5).normal(size=(2, 9, 10, 3)).astype(np.float32)
    text = f"""
        c2 = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID")
        n = {NORM.format("c")}
        n2 = {NORM.format("c2").replace("g, b", "b, g")}
        a = Const(int32 [1, 2])
        p = Mean(n, a, T=float, Tidx=int32, keep_dims=true)
        y = AddV2(n2, p, T=float)
    """
    assert operators(assert_same(HEAD + text, {"x": image}))["BatchNormalization"] == 0
