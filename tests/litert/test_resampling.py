"""Resizing that LiteRT has no operator for, against the reference kernels (which are held to TensorFlow's results)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litert.single_ops import run_node
from pocketgraph.graph import DType, Node
from pocketgraph.kernels.registry import evaluate
from support import assert_close

SIDES = st.integers(1, 9)


@settings(max_examples=80, deadline=None)
@given(
    op=st.sampled_from(["ResizeBicubic", "ResizeArea"]),
    shape=st.tuples(st.integers(1, 2), SIDES, SIDES, st.integers(1, 3)),
    size=st.tuples(SIDES, SIDES),
    align=st.booleans(),
    half=st.booleans(),
    dtype=st.sampled_from([np.float32, np.uint8, np.int32]),
)
def test_as_the_reference_kernel(
    op: str, shape: tuple[int, ...], size: tuple[int, int], align: bool, half: bool, dtype: type
) -> None:
    attrs = {"T": DType.of_numpy(np.dtype(dtype)), "align_corners": align}
    if op == "ResizeBicubic":
        attrs["half_pixel_centers"] = half and not align
    node = Node("r", op, ["x", "size"], attrs)
    x = np.random.default_rng(sum(shape)).uniform(0, 200, shape).astype(dtype)
    inputs = (x, np.array(size, np.int32))
    (expected,) = evaluate(node, inputs)
    outcome = run_node(node, inputs, 1)
    if "pixels in a row" in outcome.reason:
        assert max(given / wanted for given, wanted in zip(shape[1:3], size, strict=True)) >= 7
        return
    assert outcome.reason == ""
    assert outcome.outputs[0].dtype == np.float32
    assert_close(outcome.outputs[0], expected, 1e-6)


def test_bicubic_adds_in_the_same_order() -> None:
    """What differs is at most the fusing of a product and a sum."""
    node = Node("r", "ResizeBicubic", ["x", "size"], {"T": DType.named("float"), "half_pixel_centers": True})
    x = np.random.default_rng(0).standard_normal((1, 16, 12, 3)).astype(np.float32)
    inputs = (x, np.array([48, 40], np.int32))
    assert_close(run_node(node, inputs, 1).outputs[0], evaluate(node, inputs)[0], 1e-7)


@pytest.mark.parametrize("op", ["ResizeBicubic", "ResizeArea"])
def test_a_size_that_is_computed_stays_on_the_reference_engine(op: str) -> None:
    node = Node("r", op, ["x", "size"], {"T": DType.named("float")})
    outcome = run_node(node, (np.ones((1, 4, 4, 1), np.float32), np.array([8, 8], np.int32)), 1, constant=())
    assert outcome.reason


@pytest.mark.parametrize("moved", [(30.0, 0.0), (3.0, -3.0), (-2.5, 90.0)])
def test_rows_and_columns_outside_of_the_picture_are_zeros(moved: tuple[float, float]) -> None:
    attrs = {"T": DType.named("float"), "kernel_type": "triangle", "antialias": True}
    node = Node("r", "ScaleAndTranslate", ["x", "size", "scale", "moved"], attrs)
    x = np.random.default_rng(0).uniform(1, 2, (1, 24, 20, 3)).astype(np.float32)
    inputs = (x, np.array([24, 20], np.int32), np.ones(2, np.float32), np.array(moved, np.float32))
    outcome = run_node(node, inputs, 1)
    assert outcome.reason == ""
    (expected,) = evaluate(node, inputs)
    assert (expected == 0).any()
    assert_close(outcome.outputs[0], expected, 1e-6)
