"""Two columns as one pixel: the same codes, by fewer reads."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.dtype import INT8, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.writing import writer
from pocketgraph.quantization.program_pass import copied
from pocketgraph.quantization.serialization.width_packing import pack_width


def convolution(
    size: tuple[int, int], taps: tuple[int, int], channels: int, padding: str, stride: int = 2, dilation: int = 1
) -> Program:
    rng = np.random.default_rng(7)
    (height, width), (rows, columns) = size, taps
    reach = ((rows - 1) * dilation + 1, (columns - 1) * dilation + 1)
    made = [
        -(-side // stride) if padding == "SAME" else (side - tap) // stride + 1
        for side, tap in zip(size, reach, strict=True)
    ]
    source = Value("x", INT8, (1, height, width, channels), None, Quantization((0.05,), (3,)))
    kernel = Constant.of(rng.integers(-127, 128, (5, rows, columns, channels)).astype(np.int8))
    scales = tuple(rng.uniform(0.001, 0.01, 5).tolist())
    weights = Value("w", INT8, kernel.shape, kernel, Quantization(scales, (0,) * 5))
    bias = Constant.of(rng.integers(-500, 500, 5).astype(np.int32))
    biases = Value("b", INT32, (5,), bias, Quantization(tuple(0.05 * scale for scale in scales), (0,) * 5))
    result = Value("y", INT8, (1, *made, 5), None, Quantization((0.3,), (-4,)))
    options = {
        "padding": padding, "stride_h": 2, "stride_w": stride, "dilation_h": dilation, "dilation_w": dilation,
        "activation": "",
    }  # fmt: skip
    return Program([source], [result], [Operation("CONV_2D", [source, weights, biases], [result], options, ("y",))])


def outcome(program: Program) -> np.ndarray:
    data = b"".join(bytes(piece) for piece in writer.pieces(program))
    picture = np.random.default_rng(1).integers(-128, 128, program.inputs[0].shape).astype(np.int8)
    return PlainRunner(data, 1).run([picture])[0]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("size", "taps", "padding"),
    [((12, 16), (3, 3), "SAME"), ((13, 16), (3, 3), "SAME"), ((14, 14), (7, 7), "VALID"), ((12, 16), (5, 5), "VALID"),
     ((9, 20), (1, 4), "VALID"), ((30, 30), (7, 7), "SAME"), ((12, 12), (5, 5), "SAME")],
)  # fmt: skip
def test_pairs_give_the_same_codes(size: tuple[int, int], taps: tuple[int, int], padding: str, channels: int) -> None:
    before = convolution(size, taps, channels, padding)
    after = copied(before)
    pack_width(after)
    is_aligned = padding == "VALID" or taps[1] == 3
    if is_aligned:
        assert [operation.code for operation in after.operations] == ["RESHAPE", "CONV_2D"]
    np.testing.assert_array_equal(outcome(after), outcome(before))


@pytest.mark.parametrize(
    "arguments",
    [((12, 15), (3, 3), 3, "SAME"), ((12, 16), (3, 3), 8, "SAME"), ((12, 16), (3, 1), 3, "SAME"),
     ((12, 16), (3, 3), 3, "VALID", 1), ((12, 16), (3, 3), 3, "VALID", 2, 2)],
)  # fmt: skip
def test_others_stay(arguments: tuple[object, ...]) -> None:
    program = convolution(*arguments)  # type: ignore[arg-type]
    before = list(program.operations)
    pack_width(program)
    assert program.operations == before
