"""Rows of a layer's operand times its weights are its results, as LiteRT computes them."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.fitting.im2col import im2col, products, row_count

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("code", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("sizes", [(3, 2), (1, 1)])
def test_rows_times_weights_are_results(
    code: str, padding: str, stride: int, dilation: int, sizes: tuple[int, int]
) -> None:
    shape = (1, *sizes, 6) if code == "DEPTHWISE_CONV_2D" else (5, *sizes, 3)
    kernel = RANDOM.normal(size=shape).astype(np.float32)
    source = RANDOM.normal(size=(2, 9, 8, 3)).astype(np.float32)
    lengths = [
        -(-length // stride) if padding == "SAME" else -(-(length - (size - 1) * dilation) // stride)
        for length, size in zip((9, 8), sizes, strict=True)
    ]
    channels = shape[3] if code == "DEPTHWISE_CONV_2D" else shape[0]
    x, y = Value("x", FLOAT, source.shape), Value("y", FLOAT, (2, *lengths, channels))
    inputs: list[Value | None] = [
        x,
        Value("w", FLOAT, shape, Constant.of(kernel)),
        Value("b", FLOAT, (channels,), Constant.of(np.zeros(channels, np.float32))),
    ]
    options = {
        "padding": padding, "stride_w": stride, "stride_h": stride, "dilation_w": dilation, "dilation_h": dilation,
        "activation": "", **({"multiplier": 2} if code == "DEPTHWISE_CONV_2D" else {}),
    }  # fmt: skip
    operation = Operation(code, inputs, [y], options)
    (wanted,) = ProgramRunner(Program([x], [y], [operation]))([source])
    at = np.sort(RANDOM.choice(row_count(operation), 20, replace=False))
    found = products(operation, im2col(operation, source, at), kernel)
    np.testing.assert_allclose(found, wanted.reshape(-1, channels)[at], atol=1e-5)
