"""Results without elements, or made of nothing: what TensorFlow 2.21 gives."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("n", op, (), attrs), inputs)


def test_rows_without_elements_are_put_together() -> None:
    places = np.array([[3, 2, 0], [1, 3, 0]], np.int32)
    assert run("DynamicStitch", places, np.zeros((2, 3, 0), np.float32))[0].shape == (4, 0)
    scalar, one = np.array(0, np.int32), np.array([3], np.int32)
    assert run("DynamicStitch", scalar, one, np.zeros(0, np.float32), np.zeros((1, 0), np.float32))[0].shape == (4, 0)


def test_matrices_without_rows_are_decomposed() -> None:
    triangles, order = run("Lu", np.zeros((3, 0, 0)))
    assert triangles.shape == (3, 0, 0)
    assert order.shape == (3, 0)


def test_a_window_that_is_spread_beyond_the_picture() -> None:
    attrs = {"strides": (1, 2, 2, 1), "rates": (1, 2, 2, 1), "padding": b"VALID"}
    x, window = np.ones((1, 4, 3, 2), np.float32), np.ones((3, 1, 2), np.float32)
    assert run("Dilation2D", x, window, **attrs)[0].shape == (1, 0, 2, 2)


def test_the_gradient_of_no_pixels() -> None:
    attrs = {"strides": (1, 2, 1, 1), "padding": b"VALID"}
    window, slopes = np.ones((3, 1, 2, 2), np.float32), np.zeros((1, 0, 5, 2), np.float32)
    (found,) = run("Conv2DBackpropInput", np.array([1, 2, 5, 2], np.int32), window, slopes, **attrs)
    np.testing.assert_array_equal(found, np.zeros((1, 2, 5, 2)))


def test_no_index_is_marked_in_rows_of_any_length() -> None:
    on, off = np.array(1.0, np.float32), np.array(0.0, np.float32)
    indices, depth = np.zeros(0, np.int64), np.array(2_000_000_000, np.int32)
    tracemalloc.start()
    assert run("OneHot", indices, depth, on, off)[0].shape == (0, 2_000_000_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"])
def test_no_picture_takes_no_memory_for_its_places(op: str) -> None:
    with pytest.raises(RunError, match=r"a result of shape \[2000000000\] would take 16,000,000,000 bytes"):
        run(op, np.zeros((0, 2, 2, 4), np.float32), np.array([2_000_000_000, 3], np.int32))


def test_places_that_no_index_names_are_empty_texts() -> None:
    stitched = run("DynamicStitch", np.array([2], np.int32), np.array([b"a"], object))[0]
    assert stitched.tolist() == [b"", b"", b"a"]


def test_a_text_without_dimensions_stays_a_text() -> None:
    """What TensorFlow gives for each: the text that comes in."""
    text, none, no_pairs = np.array(b"a", object), np.zeros(0, np.int32), np.zeros((0, 2), np.int32)
    for op, inputs in {
        "Pad": (text, no_pairs),
        "PadV2": (text, no_pairs, np.array(b"b", object)),
        "SparseToDense": (np.zeros((1, 0), np.int32), none, np.array([b"a"], object), np.array(b"b", object)),
    }.items():
        assert run(op, *inputs)[0].item() == b"a", op


@pytest.mark.parametrize(
    ("count", "values", "wanted"),
    [(0, 3.0, -1.0), (0, [], -1.0), (1, 3.0, 3.0), (1, [3.0], 3.0), (2, [3.0, 4.0], 4.0)],
)
def test_a_sparse_scalar_has_the_last_of_its_values_or_the_default(count: int, values: Any, wanted: float) -> None:
    none = np.zeros(0, np.int64)
    for dtype in (np.float32, object):
        inputs = (np.zeros((count, 0), np.int64), none, np.array(values, dtype), np.array(-1.0, dtype))
        (found,) = run("SparseToDense", *inputs, validate_indices=count < 2)
        assert found.shape == ()
        assert found.item() == wanted
    with pytest.raises(RunError, match=r"indices\[1\] = \[\] is repeated"):
        run("SparseToDense", np.zeros((2, 0), np.int64), none, np.float32(3), np.float32(-1))


@pytest.mark.parametrize(
    ("indices", "shape", "values", "needed"),
    [
        (np.zeros((0, 0)), [], [3], 0),
        (np.zeros((0, 1)), [3], [3], 0),
        (np.zeros(0), [3], [3], 0),
        ([[0], [1]], [3], [3], 2),
        ([[0], [1]], [3], [[3, 4]], 2),
        (1, [3], [], 1),
    ],
)
def test_sparse_values_are_one_for_each_index_or_a_scalar(indices: Any, shape: Any, values: Any, needed: int) -> None:
    places, sizes, given = np.array(indices, np.int64), np.array(shape, np.int64), np.array(values, np.float32)
    with pytest.raises(RunError, match=rf"where \[\] or \[{needed}\] is needed"):
        run("SparseToDense", places, sizes, given, np.array(-1, np.float32))


@pytest.mark.parametrize("method", [b"bilinear", b"nearest"])
def test_crops_of_a_picture_without_channels(method: bytes) -> None:
    box, zero, size = np.array([[0, 0, 1, 1]], np.float32), np.zeros(1, np.int32), np.array([2, 2], np.int32)
    (found,) = run("CropAndResize", np.zeros((1, 3, 3, 0), np.float32), box, zero, size, method=method)
    assert found.shape == (1, 2, 2, 0)
    for count in (1, 0):
        with pytest.raises(RunError, match="must be positive"):
            run("CropAndResize", np.zeros((1, 0, 3, 2), np.float32), box[:count], zero[:count], size, method=method)


@pytest.mark.parametrize(
    ("images", "filters", "slopes"),
    [
        ((1, 5, 5, 4), (3, 3, 0, 3), (1, 5, 5, 3)),
        ((1, 5, 5, 0), (3, 3, 0, 3), (1, 5, 5, 3)),
        ((0, 5, 5, 3), (3, 3, 2, 4), (0, 5, 5, 4)),
        ((1, 5, 5, 3), (3, 3, 2, 0), (1, 5, 5, 0)),
    ],
)
def test_the_gradient_by_a_filter_of_nothing(images: Any, filters: Any, slopes: Any) -> None:
    (found,) = run("Conv2DBackpropFilter", np.ones(images, np.float32), np.array(filters, np.int32),
                   np.ones(slopes, np.float32), strides=(1, 1, 1, 1), padding=b"SAME")  # fmt: skip
    np.testing.assert_array_equal(found, np.zeros(filters, np.float32))
