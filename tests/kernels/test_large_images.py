"""Convolutions, borders and sums of images that NumPy takes in several pieces are those of their definitions."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pocketgraph.graph import Node
from pocketgraph.kernels import blas_threads, evaluate
from pocketgraph.kernels.nn import convolution

random = np.random.default_rng(11)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many as NumPy's products are said to take."""
    monkeypatch.setattr(blas_threads, "used", lambda: request.param)
    return int(request.param)


def by_taps(x: np.ndarray, weights: np.ndarray, padding: str, stride: int, dilation: int) -> np.ndarray:
    """A convolution as a sum over the elements of its window, float64."""
    reaches = [(n - 1) * dilation + 1 for n in weights.shape[:2]]
    borders = [(0, 0)] * 4
    if padding == "SAME":
        missing = [
            max((-(-n // stride) - 1) * stride + reach - n, 0) for n, reach in zip(x.shape[1:3], reaches, strict=True)
        ]
        borders[1:3] = [(n // 2, n - n // 2) for n in missing]
    wide = np.pad(x.astype(np.float64), borders)
    rows, columns = ((n - reach) // stride + 1 for n, reach in zip(wide.shape[1:3], reaches, strict=True))
    result = np.zeros((len(x), rows, columns, weights.shape[-1]))
    for i, j in np.ndindex(weights.shape[:2]):
        down, right = slice(i * dilation, None, stride), slice(j * dilation, None, stride)
        result += wide[:, down, right][:, :rows, :columns] @ weights[i, j].astype(np.float64)
    return result


@pytest.mark.parametrize(
    ("image", "window", "padding", "stride", "dilation"),
    [
        ((1, 66, 66, 1), (5, 5, 1, 32), "SAME", 1, 1),
        ((1, 66, 70, 3), (9, 9, 3, 16), "VALID", 1, 1),
        ((1, 76, 75, 16), (9, 9, 16, 3), "VALID", 1, 1),
        ((3, 40, 41, 32), (3, 3, 32, 9), "SAME", 1, 1),
        ((2, 61, 50, 24), (3, 3, 24, 8), "SAME", 2, 1),
        ((1, 90, 64, 16), (3, 3, 16, 8), "SAME", 1, 12),
        ((40, 9, 9, 32), (3, 3, 32, 16), "SAME", 1, 1),
        ((1, 1, 900, 40), (1, 11, 40, 16), "SAME", 1, 1),
        ((1, 900, 1, 40), (11, 1, 40, 16), "VALID", 1, 2),
        ((1, 300, 3, 512), (3, 3, 512, 8), "SAME", 1, 1),
    ],
)
def test_convolutions_in_pieces(
    image: tuple[int, ...], window: tuple[int, ...], padding: str, stride: int, dilation: int, threads: int
) -> None:
    x, weights = random.standard_normal(image, np.float32), random.standard_normal(window, np.float32)
    attrs = {"strides": (1, stride, stride, 1), "dilations": (1, dilation, dilation, 1), "padding": padding.encode()}
    (found,) = evaluate(Node("y", "Conv2D", ["x", "w"], attrs), [x, weights])
    right = by_taps(x, weights, padding, stride, dilation)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, right, rtol=0, atol=2e-6 * np.abs(right).max())


def test_rows_are_shared_where_one_thread_multiplies(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = []
    by_rows = convolution._products_by_rows
    monkeypatch.setattr(convolution, "_products_by_rows", lambda *what: (shared.append(what), by_rows(*what)))
    x, weights = np.ones((1, 64, 64, 32), np.float32), np.ones((3, 3, 32, 8), np.float32)
    for stride in (1, 2):
        attrs = {"strides": (1, stride, stride, 1), "padding": b"VALID"}
        (found,) = evaluate(Node("y", "Conv2D", ["x", "w"], attrs), [x, weights])
        assert np.all(found == 9 * 32)
    assert len(shared) == (threads == 1)


def test_recordings_are_not_laid_out_whole() -> None:
    x, weights = (
        random.standard_normal((2, 1, 16000, 32), np.float32),
        random.standard_normal((1, 9, 32, 8), np.float32),
    )
    node = Node("y", "Conv2D", ["x", "w"], {"strides": (1, 1, 1, 1), "padding": b"SAME"})
    with blas_threads.at_most(1):
        tracemalloc.start()
        (found,) = evaluate(node, [x, weights])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    right = by_taps(x, weights, "SAME", 1, 1)
    np.testing.assert_allclose(found, right, rtol=0, atol=2e-6 * np.abs(right).max())
    assert most < 2 * x.nbytes + 2 * found.nbytes  # the padded one, and some of what lies under the windows


def test_convolutions_of_three_axes_in_pieces(threads: int) -> None:
    x, weights = random.standard_normal((1, 20, 20, 20, 6), np.float32), np.zeros((3, 3, 3, 6, 5), np.float32)
    weights[2, 0, 1] = random.standard_normal((6, 5))
    attrs = {"strides": (1, 1, 1, 1, 1), "padding": b"VALID"}
    (found,) = evaluate(Node("y", "Conv3D", ["x", "w"], attrs), [x, weights])
    np.testing.assert_allclose(found, x[:, 2:, :-2, 1:-1] @ weights[2, 0, 1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirrored_borders(mode: str) -> None:
    for _ in range(200):
        shape = random.integers(1, 7, random.integers(1, 5))
        most = shape - (mode == "REFLECT")
        paddings = np.stack([random.integers(0, most + 1), random.integers(0, most + 1)], -1).astype(np.int32)
        x = random.standard_normal(shape, np.float32)
        node = Node("y", "MirrorPad", ["x", "p"], {"mode": mode.encode()})
        for given in (x, np.asfortranarray(x), x[::-1]):
            (found,) = evaluate(node, [given, paddings])
            np.testing.assert_array_equal(found, np.pad(given, paddings.tolist(), mode.lower()))


@pytest.mark.parametrize("axes", [(1, 2), (0, 1, 2), (0,), (2,), (-3, -2)])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_sums_over_pictures(axes: tuple[int, ...], keep_dims: bool) -> None:
    x = random.standard_normal((3, 40, 40, 5), np.float32) + 1000
    for op, function in (("Sum", np.sum), ("Mean", np.mean)):
        node = Node("y", op, ["x", "axes"], {"keep_dims": keep_dims})
        for given in (x, x.transpose(3, 2, 1, 0)):
            (found,) = evaluate(node, [given, np.array(axes, np.int32)])
            right = function(given.astype(np.float64), axis=axes, keepdims=keep_dims)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, right, rtol=1e-7)
    x[1, 7, 7, 3] = np.nan
    (found,) = evaluate(Node("y", "Sum", ["x", "axes"], {}), [x, np.array([1, 2], np.int32)])
    assert np.argwhere(np.isnan(found)).tolist() == [[1, 3]]
