"""Gradients of pools, slices and normalizations on LiteRT: equal to the reference kernels in all their settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litert.single_ops import run_node
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import evaluate
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowerings.nn import computed_weights
from support import assert_close

FLOAT = DType.named("float")
random = np.random.default_rng(7)


def pool_gradient(op: str, window: tuple[int, int], strides: tuple[int, int], padding: str, layout: str) -> Node:
    def spread(pair: tuple[int, int]) -> tuple[int, ...]:
        return (1, *pair, 1) if layout == "NHWC" else (1, 1, *pair)

    attrs = {"T": FLOAT, "ksize": spread(window), "strides": spread(strides), "padding": padding.encode()}
    return Node("g", op, [], {**attrs, "data_format": layout.encode()})


POOLS = {
    "shape": st.tuples(*(st.integers(1, top) for top in (2, 9, 9, 3))),
    "window": st.tuples(st.integers(1, 4), st.integers(1, 4)),
    "strides": st.tuples(st.integers(1, 4), st.integers(1, 4)),
    "padding": st.sampled_from(["SAME", "VALID"]),
    "layout": st.sampled_from(["NHWC", "NCHW"]),
    "seed": st.integers(0, 1000),
}


def pooled(x: Array, node: Node, op: str) -> Array | None:
    """What the pool itself gives; None where the window does not fit."""
    try:
        (found,) = evaluate(node.replace(op=op), [x])
    except RunError:
        return None
    return found if found.size else None


@settings(max_examples=80, deadline=None)
@given(**POOLS)
def test_each_gradient_of_a_max_pool_goes_to_the_first_largest(
    shape: tuple[int, ...],
    window: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    layout: str,
    seed: int,
) -> None:
    numbers = np.random.default_rng(seed)
    x = numbers.integers(-2, 3, shape).astype(np.float32)  # many are equal
    node = pool_gradient("MaxPoolGrad", window, strides, padding, layout)
    y = pooled(x, node, "MaxPool")
    if y is None:
        return
    dy = numbers.integers(-50, 50, y.shape).astype(np.float32)  # sums of these are exact
    outcome = run_node(node, (x, y, dy), 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], evaluate(node, [x, y, dy])[0])


@settings(max_examples=40, deadline=None)
@given(**POOLS)
def test_each_gradient_of_an_average_pool_is_shared_by_its_window(
    shape: tuple[int, ...],
    window: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    layout: str,
    seed: int,
) -> None:
    node = pool_gradient("AvgPoolGrad", window, strides, padding, layout)
    y = pooled(np.zeros(shape, np.float32), node, "AvgPool")
    if y is None:
        return
    dy = np.random.default_rng(seed).normal(size=y.shape).astype(np.float32)
    sizes = np.array(shape, np.int32)
    outcome = run_node(node, (sizes, dy), 1)
    assert outcome.reason == ""
    assert_close(outcome.outputs[0], evaluate(node, [sizes, dy])[0], 1e-6)


def test_a_gradient_of_another_shape_than_the_pools_is_refused() -> None:
    node = pool_gradient("MaxPoolGrad", (2, 2), (2, 2), "VALID", "NHWC")
    x = np.zeros((1, 4, 4, 1), np.float32)
    assert "for a pool of" in run_node(node, (x, x[:, :2, :2], x[:, :3, :3]), 1).reason
    assert "a result of the pool" in run_node(node, (x, x[:, :3, :3], x[:, :2, :2]), 1).reason


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0, 0.6])
@pytest.mark.parametrize(("depth", "radius"), [(1, 2), (7, 2), (96, 5), (600, 2)])
def test_normalizations_by_neighbours_and_their_gradients(beta: float, depth: int, radius: int) -> None:
    attrs = {"T": FLOAT, "depth_radius": radius, "bias": 2.0, "alpha": 0.3, "beta": beta}
    x, dy = (random.normal(size=(2, 3, 4, depth)).astype(np.float32) * 3 for _ in range(2))
    node = Node("n", "LRN", [], attrs)
    (y,) = evaluate(node, [x])
    outcome = run_node(node, (x,), 1)
    assert outcome.reason == ""
    assert_close(outcome.outputs[0], y, 1e-5)
    gradient = node.replace(op="LRNGrad")
    outcome = run_node(gradient, (dy, x, y), 1)
    if depth > 512:
        assert "normalization" in outcome.reason
        return
    assert outcome.reason == ""
    assert_close(outcome.outputs[0], evaluate(gradient, [dy, x, y])[0], 1e-5)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks"),
    [
        ([1, 0, 2], [3, 5, 6], [1, 1, 1], {}),
        ([0, 1, 0], [4, 5, 6], [2, 3, 1], {}),
        ([2, 0, 0], [3, 0, 4], [1, 1, 2], {"shrink_axis_mask": 1, "end_mask": 2}),
        ([-3, -1], [-1, 0], [1, 1], {"ellipsis_mask": 2}),
    ],
)
def test_the_gradient_of_a_slice_lies_where_the_slice_did(
    begin: list[int], end: list[int], strides: list[int], masks: dict[str, int]
) -> None:
    shape = np.array([4, 5, 6], np.int32)
    vectors = [np.array(v, np.int32) for v in (begin, end, strides)]
    node = Node("s", "StridedSlice", [], {"T": FLOAT, "Index": DType.named("int32"), **masks})
    x = random.normal(size=tuple(shape)).astype(np.float32)
    (dy,) = evaluate(node, [x, *vectors])
    gradient = node.replace(op="StridedSliceGrad")
    outcome = run_node(gradient, (shape, *vectors, dy), 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], evaluate(gradient, [shape, *vectors, dy])[0])


def test_the_gradient_of_a_slice_backwards_is_refused() -> None:
    vectors = [np.array([v], np.int32) for v in (5, 3, 0, -1)]
    node = Node("s", "StridedSliceGrad", [], {"T": FLOAT, "Index": DType.named("int32")})
    assert "stride -1" in run_node(node, (*vectors, np.zeros(3, np.float32)), 1).reason


def convolution(op: str, strides: tuple[int, int], dilations: tuple[int, int], padding: str, layout: str) -> Node:
    def spread(pair: tuple[int, int]) -> tuple[int, ...]:
        return (1, *pair, 1) if layout == "NHWC" else (1, 1, *pair)

    attrs = {"T": FLOAT, "strides": spread(strides), "dilations": spread(dilations), "padding": padding.encode()}
    return Node("c", op, [], {**attrs, "data_format": layout.encode()})


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3)),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 3)]),
    outputs=st.integers(1, 4),
    padding=st.sampled_from(["SAME", "VALID"]),
    layout=st.sampled_from(["NHWC", "NCHW"]),
    seed=st.integers(0, 1000),
)
def test_convolutions_with_computed_weights_and_their_gradients(
    shape: tuple[int, int, int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int],
    outputs: int,
    padding: str,
    layout: str,
    seed: int,
) -> None:
    numbers = np.random.default_rng(seed)
    depth = shape[3]
    x = numbers.normal(size=shape).astype(np.float32)
    x = x if layout == "NHWC" else np.ascontiguousarray(np.moveaxis(x, 3, 1))
    w = numbers.normal(size=(*window, depth, outputs)).astype(np.float32)
    node = convolution("Conv2D", strides, dilation, padding, layout)
    try:
        (y,) = evaluate(node, [x, w])
    except RunError:
        return
    if not y.size:
        return
    outcome = run_node(node, (x, w), 1, constant=())
    assert outcome.reason == ""
    assert_close(outcome.outputs[0], y, 1e-5)
    dy = numbers.normal(size=y.shape).astype(np.float32)
    for op, inputs, fixed in (
        ("Conv2DBackpropFilter", (x, np.array(w.shape, np.int32), dy), 1),
        ("Conv2DBackpropInput", (np.array(x.shape, np.int32), w, dy), 0),
    ):
        gradient = node.replace(op=op)
        outcome = run_node(gradient, inputs, 1, constant=(fixed,))
        assert outcome.reason == ""
        assert_close(outcome.outputs[0], evaluate(gradient, list(inputs))[0], 1e-5)


@pytest.mark.parametrize("groups", [1, 3, 7, 32])
def test_many_images_are_convolved_a_few_at_a_time(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_weights, "LAID_OUT_AT_ONCE", 1)
    monkeypatch.setattr(computed_weights, "MOST_GROUPS", groups)
    seen = 7 * 6 * 5 * 12 * 3  # elements of all windows
    monkeypatch.setattr(computed_weights, "MOST_LAID_OUT", seen if groups == 1 else seen - 1)
    numbers = np.random.default_rng(2)
    x, w = (numbers.normal(size=size).astype(np.float32) for size in ((7, 6, 5, 3), (4, 3, 3, 3)))
    node = convolution("Conv2D", (1, 1), (1, 1), "SAME", "NHWC")
    (y,) = evaluate(node, [x, w])
    assert_close(run_node(node, (x, w), 1, constant=()).outputs[0], y, 1e-5)
    back, sizes = node.replace(op="Conv2DBackpropInput"), np.array(x.shape, np.int32)
    lowered: list[str] = []
    monkeypatch.setattr(Emit, "add", noting(lowered, Emit.add))
    found = run_node(back, (sizes, w, y), 1, constant=(0,)).outputs[0]
    assert_close(found, evaluate(back, [sizes, w, y])[0], 1e-5)
    assert "TRANSPOSE_CONV" not in lowered
    assert lowered.count("BATCH_MATMUL") >= min(7, groups)


def noting(lowered: list[str], add: Callable[..., Any]) -> Callable[..., Any]:
    """``add``, which also notes the operators."""

    def noted(emit: Emit, code: str, *operands: Any, **options: Any) -> Any:
        lowered.append(code)
        return add(emit, code, *operands, **options)

    return noted


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3)),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.integers(1, 3),
    dilation=st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 3)]),
    multiplier=st.integers(1, 2),
    padding=st.sampled_from(["SAME", "VALID"]),
    layout=st.sampled_from(["NHWC", "NCHW"]),
    seed=st.integers(0, 1000),
)
def test_gradients_of_depthwise_convolutions(
    shape: tuple[int, int, int, int],
    window: tuple[int, int],
    stride: int,
    dilation: tuple[int, int],
    multiplier: int,
    padding: str,
    layout: str,
    seed: int,
) -> None:
    numbers = np.random.default_rng(seed)
    x = numbers.normal(size=shape).astype(np.float32)
    x = x if layout == "NHWC" else np.ascontiguousarray(np.moveaxis(x, 3, 1))
    w = numbers.normal(size=(*window, shape[3], multiplier)).astype(np.float32)
    node = convolution("DepthwiseConv2dNative", (stride, stride), dilation, padding, layout)
    try:
        (y,) = evaluate(node, [x, w])
    except RunError:
        return
    if not y.size:
        return
    dy = numbers.normal(size=y.shape).astype(np.float32)
    for fixed in ((0,), (0, 1)):
        gradient = node.replace(op="DepthwiseConv2dNativeBackpropInput")
        inputs = (np.array(x.shape, np.int32), w, dy)
        outcome = run_node(gradient, inputs, 1, constant=fixed)
        assert outcome.reason == ""
        assert_close(outcome.outputs[0], evaluate(gradient, list(inputs))[0], 1e-5)
    gradient = node.replace(op="DepthwiseConv2dNativeBackpropFilter")
    inputs = (x, np.array(w.shape, np.int32), dy)
    outcome = run_node(gradient, inputs, 1, constant=(1,))
    assert outcome.reason == ""
    assert_close(outcome.outputs[0], evaluate(gradient, list(inputs))[0], 1e-5)


def test_a_filter_of_other_channels_than_the_images_is_refused() -> None:
    node = convolution("Conv2DBackpropFilter", (1, 1), (1, 1), "SAME", "NHWC")
    x = np.zeros((1, 4, 4, 3), np.float32)
    assert "3 channels" in run_node(node, (x, np.array([3, 3, 2, 3], np.int32), x), 1).reason


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_batch_norms_in_training_and_their_gradients(layout: str, factor: float) -> None:
    shape = (5, 6, 7, 3) if layout == "NHWC" else (5, 3, 6, 7)
    x = random.normal(3, 2, shape).astype(np.float32)
    scale, offset, mean, variance = (random.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4))
    attrs = {"T": FLOAT, "U": FLOAT, "epsilon": 1e-3, "data_format": layout.encode(), "is_training": True}
    node = Node("n", "FusedBatchNormV3", [], {**attrs, "exponential_avg_factor": factor})
    expected = evaluate(node, [x, scale, offset, mean, variance])
    outcome = run_node(node, (x, scale, offset, mean, variance), 6)
    assert outcome.reason == ""
    for one, other in zip(outcome.outputs, expected, strict=True):
        assert one.shape == other.shape
        assert_close(one, other, 1e-5)
    dy = random.normal(size=shape).astype(np.float32)
    for is_training in (True, False):
        gradient = Node("g", "FusedBatchNormGradV3", [], {**attrs, "is_training": is_training})
        inputs = (dy, x, scale, *expected[3:])
        outcome = run_node(gradient, inputs, 3)
        assert outcome.reason == ""
        for one, other in zip(outcome.outputs, evaluate(gradient, list(inputs)), strict=False):
            assert_close(one, other, 1e-5)
