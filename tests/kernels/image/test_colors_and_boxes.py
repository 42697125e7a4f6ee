"""Colours and boxes at their edges, with the values that TensorFlow 1.15 and 2.21 gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.registry import Context

INF, NAN = np.inf, np.nan


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[np.ndarray[Any, Any], ...]:
    node = Node("node", op, (), attrs)
    return evaluate(node, inputs, Context(node, {}))


def test_hues_turn_below_zero_too() -> None:
    pixels = np.float32([[[-0.63709, -0.49557, -0.81181], [-1.67179, -0.70715, 2.03086], [-1.41347, 1.89708, 0.74134]]])
    turned = [[[-0.67029, -0.81181, -0.49557], [2.03086, 1.06623, -1.67179], [1.89708, -1.41347, -0.25773]]]
    np.testing.assert_allclose(run("AdjustHue", pixels, np.float32(0.5))[0], turned, atol=3e-5)


@pytest.mark.parametrize(
    ("boxes", "drawn"),
    [
        ([[0, 0, INF, 0.5], [-INF, 0, 0.5, 0.5], [NAN, 0, 1, 1]], ["1101", "1101", "1001", "1111"]),
        ([[0, 0, 1e30, 0.5]], ["0000", "0000", "0000", "0000"]),
        ([[-INF, 0, 0.5, 0.5]], ["1100", "1100", "0000", "0000"]),
        ([[-3e38, -3e38, 3e38, 3e38]], ["0000", "0000", "0000", "0000"]),
    ],
)
def test_boxes_that_no_picture_holds(boxes: list[list[float]], drawn: list[str]) -> None:
    found = run("DrawBoundingBoxes", np.zeros((1, 4, 4, 1), np.float32), np.float32([boxes]))[0]
    assert ["".join(str(int(v)) for v in row) for row in found[0, ..., 0]] == drawn


def test_boxes_of_no_area_and_upside_down_are_passed_over() -> None:
    for box in ([0.5, 0.1, 0.2, 0.6], [0.1, 0.6, 0.5, 0.2], [0.5, 0.5, 0.5, 0.5], [0.2, 0.2, 0.8, 0.2]):
        begin, size, crop = run(
            "SampleDistortedBoundingBoxV2", np.int32([20, 30, 3]), np.float32([[box]]), np.float32(0.1), seed=1, seed2=2
        )
        assert begin.tolist() == [0, 0, 0]
        assert size.tolist() == [20, 30, -1]
        assert crop.tolist() == [[[0, 0, 1, 1]]]
    boxes = np.float32([[[0.75, 0, 1, 0.5], [0.25, 0.25, 0.5, 0.25], [0.5, 0.25, 1, 0.75]]])
    wish = {"area_range": (0.9, 1.0), "aspect_ratio_range": (0.1, 5.0), "seed": 2, "seed2": 5}
    _, size, _ = run("SampleDistortedBoundingBoxV2", np.int32([16, 2, 3]), boxes, np.float32(0.5), **wish)
    assert size.tolist() == [15, 2, -1]


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"])
@pytest.mark.parametrize("shape", [(1, 0, 2, 3), (1, 2, 0, 3), (1, 2, 2, 0)])
def test_empty_pictures_are_not_resized(op: str, shape: tuple[int, ...]) -> None:
    """As TensorFlow 1.15 and 2.21 refuse them; a batch of none is resized to none."""
    with pytest.raises(RunError, match="cannot be resized"):
        run(op, np.zeros(shape, np.float32), np.int32([3, 3]))
    assert run(op, np.zeros((0, 2, 2, 3), np.float32), np.int32([3, 3]))[0].shape == (0, 3, 3, 3)


def test_no_pictures_are_resized_to_none() -> None:
    for size in ((2, 9), (9, 2), (2, 2)):
        assert run("ResizeArea", np.zeros((0, 4, 5, 3), np.uint8), np.int32(size))[0].shape == (0, *size, 3)
