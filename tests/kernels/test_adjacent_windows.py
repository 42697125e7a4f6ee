"""Gradients of max pools over windows side by side are those of the way that takes any windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.kernels.nn import pooling
from pocketgraph.kernels.nn.pooling import max_pool, max_pool_grad

random = np.random.default_rng(11)
CASES: list[tuple[tuple[int, int, int, int], tuple[int, int], str, str]] = [
    ((3, 8, 6, 5), (2, 2), "SAME", "NHWC"),
    ((3, 9, 7, 5), (2, 2), "VALID", "NHWC"),
    ((3, 9, 7, 5), (2, 2), "SAME", "NHWC"),
    ((2, 9, 9, 3), (3, 3), "SAME", "NHWC"),
    ((2, 9, 10, 3), (1, 2), "SAME", "NHWC"),
    ((2, 8, 8, 3), (1, 1), "SAME", "NHWC"),
    ((1, 301, 300, 40), (2, 3), "VALID", "NHWC"),
    ((2, 5, 8, 6), (2, 2), "VALID", "NCHW"),
    ((0, 8, 8, 3), (2, 2), "SAME", "NHWC"),
]


def both(x: np.ndarray, dy: np.ndarray, monkeypatch: pytest.MonkeyPatch, **window: Any) -> list[np.ndarray]:
    """The gradient by the quick way, and by the one for any windows."""
    p = max_pool(x, **window)
    quick = max_pool_grad(x, p, dy, **window)
    for name in ("are_adjacent", "are_overlapping"):
        monkeypatch.setattr(pooling, name, lambda *_: False)
    return [quick, max_pool_grad(x, p, dy, **window)]


@pytest.mark.parametrize(("shape", "size", "padding", "layout"), CASES)
def test_the_first_of_the_largest_gets_the_gradient(
    shape: tuple[int, ...], size: tuple[int, int], padding: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = random.integers(-2, 3, shape).astype(np.float32)  # many are equal
    along = (1, 1, *size) if layout == "NCHW" else (1, *size, 1)
    window = {"ksize": along, "strides": along, "padding": padding, "data_format": layout}
    dy = random.normal(size=max_pool(x, **window).shape).astype(np.float32)
    quick, other = both(x, dy, monkeypatch, **window)
    np.testing.assert_array_equal(quick, other)
    assert quick.sum() == pytest.approx(dy.sum(), abs=1e-2)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["x", "dy"])
def test_numbers_that_are_not_finite(number: float, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, dy = random.normal(size=(2, 4, 4, 3)).astype(np.float32), random.normal(size=(2, 2, 2, 3)).astype(np.float32)
    (x if where == "x" else dy)[0, 1, 1, 2] = number
    window = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}
    quick, other = both(x, dy, monkeypatch, **window)
    np.testing.assert_array_equal(quick, other)
