"""Constants of equal content are one, so that the steps of a loop share what is packed of their weights."""

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.deduplication import (
    SMALL,
    bytes_repeated,
    merge_equal_operations,
    share_constants,
)


def constant(name: str, array: np.ndarray, quantization: Quantization | None = None) -> Value:
    dtype = FLOAT if array.dtype == np.float32 else INT32
    return Value(name, dtype, array.shape, Constant.of(array), quantization)


def steps(*biases: Value) -> Program:
    """A product with the same weights for each bias, one after the other."""
    weights = constant("w", np.eye(3, dtype=np.float32))
    values = [Value(f"x{index}", FLOAT, (1, 3)) for index in range(len(biases) + 1)]
    operations = [
        Operation("FULLY_CONNECTED", [values[index], weights, bias], [values[index + 1]])
        for index, bias in enumerate(biases)
    ]
    return Program(values[:1], values[-1:], operations)


def test_equal_biases_become_one() -> None:
    program = steps(*(constant(f"b{index}", np.full(3, 2, np.float32)) for index in range(4)))
    share_constants(program)
    assert len({operation.inputs[2] for operation in program.operations}) == 1


def test_what_differs_in_content_type_shape_or_scale_stays() -> None:
    two = np.full(3, 2, np.float32)
    program = steps(
        constant("a", two),
        constant("b", np.full(3, 3, np.float32)),
        constant("c", two.view(np.int32)),
        constant("d", two.reshape(1, 3)),
        constant("e", two, Quantization((0.5,), (0,))),
        constant("f", np.full(3, -0.0, np.float32)),
        constant("g", np.zeros(3, np.float32)),
    )
    before = [operation.inputs[2] for operation in program.operations]
    share_constants(program)
    assert [operation.inputs[2] for operation in program.operations] == before


def test_large_constants_are_left_alone() -> None:
    large = np.zeros(SMALL // 4 + 1, np.float32)
    program = steps(constant("a", large), constant("b", large))
    share_constants(program)
    assert len({operation.inputs[2] for operation in program.operations}) == 2


def test_repeated_bytes_are_those_of_weights_read_again() -> None:
    assert bytes_repeated(steps(*(constant(f"b{index}", np.ones(3, np.float32)) for index in range(4)))) == 3 * 36
    assert bytes_repeated(steps(constant("b", np.ones(3, np.float32)))) == 0


def test_equal_operations_are_one_however_many_there_are() -> None:
    x = Value("x", FLOAT, (2, 2))
    pads = ([[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 0], [1, 1]], [[0, 0], [1, 1]], [[1, 1], [0, 0]], [[2, 0], [0, 2]])
    padded = [Value(f"p{index}", FLOAT, (2, 4) if pads[index][1] == [1, 1] else (4, 2)) for index in range(5)]
    padded.append(Value("p5", FLOAT, (4, 4)))
    operations = [
        Operation("PAD", [x, constant(f"c{index}", np.array(pad, np.int32))], [padded[index]])
        for index, pad in enumerate(pads)
    ]
    result = Value("y", FLOAT, (4, 4))
    operations.append(Operation("CUSTOM_SUM", [*padded], [result]))
    program = Program([x], [result], operations)
    merge_equal_operations(program)
    first, second, _, _, _, last = padded
    assert program.operations[-1].inputs == [first, second, first, first, second, last]
    assert [operation.outputs[0] for operation in program.operations] == [first, second, last, result]
