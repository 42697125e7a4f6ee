"""Activations on codes as conversions: the same codes as the activation's own arithmetic gives."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.program_pass import copied
from pocketgraph.quantization.serialization.activation_requantization import is_conversion, requantize_activations

CODES = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16)
BOUNDS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def activation(code: str, source: tuple[float, int], result: tuple[float, int]) -> Program:
    x = Value("x", INT8, CODES.shape, None, Quantization((source[0],), (source[1],)))
    y = Value("y", INT8, CODES.shape, None, Quantization((result[0],), (result[1],)))
    return Program([x], [y], [Operation(code, [x], [y])])


@pytest.mark.parametrize(
    ("code", "source", "result", "is_one"),
    [
        ("RELU", (0.05, 3), (0.03, -128), True),
        ("RELU", (0.05, -128), (0.05, -128), True),
        ("RELU", (0.05, 3), (0.03, -100), False),  # there are codes below 0
        ("RELU6", (0.1, 0), (6 / 255, -128), True),
        ("RELU6", (0.1, 0), (5 / 255, -128), True),
        ("RELU6", (0.1, 0), (8 / 255, -128), False),  # there are codes above 6
        ("RELU_N1_TO_1", (0.1, 0), (2 / 255, 0), True),
        ("RELU_N1_TO_1", (0.1, 0), (3 / 255, 0), False),
        ("RELU", (0.001, 0), (0.5, -128), False),  # beyond what XNNPACK converts
        ("RELU", (5.0, 0), (0.01, -128), False),
    ],
)
def test_the_codes_are_those_of_the_activation(
    code: str, source: tuple[float, int], result: tuple[float, int], is_one: bool
) -> None:
    program = activation(code, source, result)
    assert is_conversion(program.operations[0]) == is_one
    made = copied(program)
    requantize_activations(made)
    assert [operation.code for operation in made.operations] == ["QUANTIZE" if is_one else code]
    low, high = BOUNDS[code]
    real = np.clip((CODES.astype(np.float64) - source[1]) * source[0], low, high)
    wanted = np.clip(np.rint(real / result[0]) + result[1], -128, 127)
    (given,) = ProgramRunner(program)([CODES])
    assert np.abs(given - wanted).max() <= 1


def test_other_operations_stay() -> None:
    x, y = Value("x", FLOAT, (1, 4)), Value("y", FLOAT, (1, 4))
    floats = Program([x], [y], [Operation("RELU", [x], [y])])
    requantize_activations(floats)
    assert [operation.code for operation in floats.operations] == ["RELU"]


@pytest.mark.parametrize("ratio", [1 / 3000, 1 / 300, 1 / 256, 1 / 200, 1.0, 127.0, 200.0, 3000.0])
def test_conversions_beyond_what_xnnpack_takes_are_right_all_the_same(ratio: float) -> None:
    x = Value("x", INT8, CODES.shape, None, Quantization((0.05,), (3,)))
    y = Value("y", INT8, CODES.shape, None, Quantization((0.05 / ratio,), (-5,)))
    (given,) = ProgramRunner(Program([x], [y], [Operation("QUANTIZE", [x], [y])]))([CODES])
    wanted = np.clip(np.rint((CODES.astype(np.float64) - 3) * ratio) - 5, -128, 127)
    assert np.abs(given - wanted).max() <= 1
