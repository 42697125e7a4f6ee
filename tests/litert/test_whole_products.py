"""Convolutions of whole numbers on eight-bit kernels, against int64 arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.whole_products import multiply_whole_numbers
from pocketgraph.quantization.core.program_runner import ProgramRunner


def program(
    shape: tuple[int, ...], weights: Array, stride: int, padding: str, ends: tuple[int, int], **options: Any
) -> tuple[Program, Operation]:
    """A program of one convolution."""
    source = Value("x", FLOAT, shape)
    height, width = (
        -(-size // stride) if padding == "SAME" else (size - taps) // stride + 1
        for size, taps in zip(shape[1:3], weights.shape[1:3], strict=True)
    )
    result = Value("y", FLOAT, (shape[0], height, width, weights.shape[0]))
    kernel = Value("w", FLOAT, weights.shape, Constant.of(weights.astype(np.float32)))
    bias = Value("b", FLOAT, weights.shape[:1], Constant.of(np.zeros(weights.shape[0], np.float32)))
    settings = {"padding": padding, "stride_h": stride, "stride_w": stride, "dilation_h": 1, "dilation_w": 1}
    operation = Operation("CONV_2D", [source, kernel, bias], [result], {**settings, "activation": "", **options})
    operation.whole = ends
    return Program([source], [result], [operation]), operation


def sums(values: Array, weights: Array, stride: int, padding: str) -> Array:
    """The convolution in int64."""
    if len(values) > 1:
        return np.concatenate([sums(image[None], weights, stride, padding) for image in values])
    image, kernel = values[0].astype(np.int64), weights.astype(np.int64)
    if padding == "SAME":
        totals = [
            max((-(-size // stride) - 1) * stride + taps - size, 0)
            for size, taps in zip(image.shape, kernel.shape[1:3], strict=False)
        ]
        image = np.pad(image, [*((total // 2, total - total // 2) for total in totals), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[1:3], axis=(0, 1))
    return np.asarray(np.einsum("ijchw,nhwc->ijn", windows[::stride, ::stride], kernel))[None]


@pytest.mark.parametrize(
    ("size", "channels", "taps", "stride", "padding", "zero", "outliers"),
    [
        ((8, 8), 16, (1, 1), 1, "SAME", 120, 0),
        ((8, 8), 16, (1, 1), 1, "VALID", 120, 3),
        ((9, 8), 16, (1, 1), 2, "SAME", 255, 0),
        ((9, 7), 16, (3, 3), 1, "SAME", 100, 0),
        ((9, 7), 16, (3, 3), 1, "SAME", 100, 2),
        ((9, 7), 16, (3, 3), 2, "SAME", 0, 0),
        ((10, 7), 16, (3, 3), 2, "SAME", 0, 100),
        ((12, 13), 8, (5, 5), 2, "VALID", 3, 0),
        ((11, 7), 20, (7, 1), 1, "SAME", 127, 0),
        ((11, 12), 20, (2, 4), 3, "SAME", 200, 0),
    ],
)
def test_sums_are_those_of_whole_numbers(
    size: tuple[int, int],
    channels: int,
    taps: tuple[int, int],
    stride: int,
    padding: str,
    zero: int,
    outliers: int,
) -> None:
    """Whatever part of their range the values take."""
    random = np.random.default_rng(sum(size) + channels + zero)
    weights = random.integers(-127, 128, (24, *taps, channels))
    for _ in range(outliers):
        weights[tuple(random.integers(0, size) for size in weights.shape)] = random.choice([-254, -128, 128, 201])
    made, operation = program((1, *size, channels), weights, stride, padding, (-zero, 255 - zero))
    assert multiply_whole_numbers(made, operation)
    assert operation.inputs[1] is not None
    assert operation.inputs[1].dtype is INT8
    run = ProgramRunner(made)
    for low, high in ((-zero, 255 - zero), (max(-zero, -5), min(255 - zero, 50)), (0, 0)):
        values = random.integers(low, high + 1, (1, *size, channels)).astype(np.float32)
        np.testing.assert_array_equal(run([values])[0], sums(values, weights, stride, padding))


@pytest.mark.parametrize("taps", [1, 3])
def test_codes_whose_zero_is_found_while_running(taps: int) -> None:
    random = np.random.default_rng(taps)
    weights = random.integers(-128, 128, (16, taps, taps, 8))
    made, operation = program((1, 6, 6, 8), weights, 1, "SAME", (0, 255))
    codes, zero = Value("codes", FLOAT, (1, 6, 6, 8)), Value("zero", FLOAT, (1,))
    made.operations.insert(0, Operation("SUB", [codes, zero], [made.inputs[0]], {"activation": ""}))
    made.inputs = [codes, zero]
    assert multiply_whole_numbers(made, operation)
    run = ProgramRunner(made)
    for number in (0, 77, 255):
        values = random.integers(60, 190, (1, 6, 6, 8)).astype(np.float32)
        expected = sums(values - number, weights, 1, "SAME")
        np.testing.assert_array_equal(run([values, np.array([number], np.float32)])[0], expected)


@pytest.mark.parametrize("taps", [1, 3])
def test_several_pictures(taps: int) -> None:
    """LiteRT finds a range for each of them."""
    random = np.random.default_rng(taps)
    weights = random.integers(-127, 128, (16, taps, taps, 8))
    made, operation = program((3, 6, 6, 8), weights, 1, "SAME", (-20, 235))
    assert multiply_whole_numbers(made, operation)
    values = random.integers(-20, 236, (3, 6, 6, 8)) // np.array([1, 3, 50]).reshape(3, 1, 1, 1)
    np.testing.assert_array_equal(ProgramRunner(made)([values.astype(np.float32)])[0], sums(values, weights, 1, "SAME"))


def test_what_is_not_whole_stays_float() -> None:
    weights = np.ones((4, 1, 1, 8))
    cases = [
        program((1, 4, 4, 8), weights * 0.5, 1, "SAME", (0, 255)),
        program((1, 4, 4, 8), weights * 255, 1, "SAME", (0, 255)),
        program((1, 4, 4, 8), weights * np.nan, 1, "SAME", (0, 255)),
        program((1, 4, 4, 8), weights, 1, "SAME", (0, 256)),
        program((1, 4, 4, 8), weights, 1, "SAME", (5, 260)),
        program((1, 4, 4, 8), weights, 1, "SAME", (0, 0)),
        program((1, 4, 4, 16), weights, 1, "SAME", (0, 255)),
        program((1, 4, 4, 8), weights, 1, "SAME", (0, 255), activation="RELU"),
        program((1, 4, 4, 8), weights, 1, "SAME", (0, 255), dilation_h=2),
    ]
    for made, operation in cases:
        before = list(operation.inputs)
        assert not multiply_whole_numbers(made, operation)
        assert operation.inputs == before
        assert made.operations == [operation]
