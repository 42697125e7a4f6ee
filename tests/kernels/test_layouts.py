"""Channels first gives what channels last gives, turned round: TensorFlow's CPU has no kernels to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate

RANDOM = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


X = floats(2, 6, 8, 4)
VECTOR = np.abs(floats(4)) + 0.1
PLACE = {0: 0, 1: 2, 2: 3, 3: 1}
"""Where each axis of NHWC is in NCHW."""


def first(values: tuple[int, ...]) -> tuple[int, ...]:
    """A list with one entry an axis, for channels first."""
    return (values[0], values[3], values[1], values[2])


CASES: list[tuple[str, tuple[np.ndarray, ...], dict[str, Any]]] = [
    ("Conv2D", (X, floats(3, 2, 4, 5)),
     {"strides": (1, 2, 1, 1), "padding": b"SAME", "dilations": (1, 1, 2, 1)}),
    ("Conv2D", (X, floats(3, 3, 4, 5)),
     {"strides": (1, 1, 1, 1), "padding": b"EXPLICIT", "explicit_paddings": (0, 0, 1, 2, 0, 3, 0, 0)}),
    ("DepthwiseConv2dNative", (X, floats(3, 3, 4, 2)), {"strides": (1, 2, 2, 1), "padding": b"VALID"}),
    ("MaxPool", (X,), {"ksize": (1, 3, 2, 1), "strides": (1, 2, 1, 1), "padding": b"SAME"}),
    ("AvgPool", (X,), {"ksize": (1, 3, 2, 1), "strides": (1, 2, 1, 1), "padding": b"SAME"}),
    ("FusedBatchNorm", (X, VECTOR, VECTOR, VECTOR, VECTOR), {"is_training": False}),
    ("FusedBatchNormV3", (X, VECTOR, VECTOR, floats(0), floats(0)), {"is_training": True}),
    ("BiasAdd", (X, VECTOR), {}),
    ("DepthToSpace", (X,), {"block_size": 2}),
    ("SpaceToDepth", (X,), {"block_size": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attrs"), CASES, ids=[c[0] for c in CASES])
def test_channels_first(op: str, inputs: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> None:
    last = evaluate(Node("n", op, (), attrs), inputs)
    turned = {key: first(value) for key, value in attrs.items() if isinstance(value, tuple) and len(value) == 4}
    if "explicit_paddings" in attrs:
        pairs = np.array(attrs["explicit_paddings"]).reshape(4, 2)
        turned["explicit_paddings"] = tuple(pairs[[0, 3, 1, 2]].ravel().tolist())
    node = Node("n", op, (), {**attrs, **turned, "data_format": b"NCHW"})
    results = evaluate(node, (inputs[0].transpose(0, 3, 1, 2), *inputs[1:]))
    for channels_first, channels_last in zip(results, last, strict=True):
        if channels_last.ndim == 4:
            channels_first = channels_first.transpose(0, 2, 3, 1)
        np.testing.assert_allclose(channels_first, channels_last, rtol=1e-5, atol=1e-6)


def test_transposed_convolution_channels_first() -> None:
    dy, weights = floats(2, 3, 4, 5), floats(3, 3, 4, 5)
    attrs = {"strides": (1, 2, 2, 1), "padding": b"SAME"}
    last = evaluate(Node("n", "Conv2DBackpropInput", (), attrs), (np.array([2, 6, 8, 4]), weights, dy))[0]
    node = Node("n", "Conv2DBackpropInput", (), {**attrs, "strides": (1, 1, 2, 2), "data_format": b"NCHW"})
    result = evaluate(node, (np.array([2, 4, 6, 8]), weights, dy.transpose(0, 3, 1, 2)))[0]
    np.testing.assert_allclose(result.transpose(0, 2, 3, 1), last, rtol=1e-5, atol=1e-6)


def test_large_images_are_done_in_bands() -> None:
    x, weights = floats(1, 700, 300, 4), floats(3, 3, 4, 6)
    whole = evaluate(Node("n", "Conv2D", (), {"strides": (1, 1, 1, 1), "padding": b"VALID"}), (x, weights))[0]
    part = evaluate(Node("n", "Conv2D", (), {"strides": (1, 1, 1, 1), "padding": b"VALID"}), (x[:, 500:520], weights))[
        0
    ]
    np.testing.assert_allclose(whole[:, 500:518], part, rtol=1e-4, atol=1e-4)
