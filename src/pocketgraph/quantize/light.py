"""Eight-bit weights without calibration: the file shrinks, and the tensors in between stay float."""

from __future__ import annotations

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.quantize import operators
from pocketgraph.quantize.running import copied
from pocketgraph.quantize.weights import rounded
from pocketgraph.runtime.engines.litert.constant import Constant
from pocketgraph.runtime.engines.litert.linear import LINEAR
from pocketgraph.runtime.engines.litert.program import Operation, Program, Quantization, Value

SMALLEST = 1024  # weights; fewer are not worth the loss
DYNAMIC = ("CONV_2D", "FULLY_CONNECTED")
"""Operators that quantize their float operand themselves, anew for each input, when their weights are int8."""
ANY_SCALE = 1.0  # of the operand; without a 32-bit bias it does not matter


def lighter(program: Program, *, dynamic: bool) -> Program:
    """A program with int8 weights, one scale an output channel.

    Args:
        program: the float program; it stays as it is.
        dynamic: have LiteRT compute with eight bits too where it quantizes operands by itself; otherwise, and for all
            other operators, weights are expanded to float when the model is loaded.
    """
    result = copied(program)
    operations: list[Operation] = []
    codes: dict[Value, Value] = {}
    shared: dict[Value, Value] = {}
    for operation in result.operations:
        if operators.KINDS.get(operation.code) is operators.Kind.WEIGHTED and operators.can_quantize(operation):
            kernel = operators.weights(operation)
            if kernel.size >= SMALLEST:
                at = LINEAR[operation.code][1]
                coded = codes.get(kernel)
                if coded is None:
                    coded = codes[kernel] = _coded(operation, kernel)
                if dynamic and operation.code in DYNAMIC:
                    operation.inputs[at] = coded
                    if operation.code == "FULLY_CONNECTED":
                        operation.options["asymmetric_inputs"] = True
                else:
                    if kernel not in shared:
                        shared[kernel] = Value(f"{kernel.name}/float", FLOAT, kernel.shape)
                        operations.append(Operation("DEQUANTIZE", [coded], [shared[kernel]]))
                    operation.inputs[at] = shared[kernel]
        operations.append(operation)
    result.operations = operations
    return result


def _coded(operation: Operation, kernel: Value) -> Value:
    """The weights as codes."""
    chosen = rounded(operation, ANY_SCALE)
    scales = tuple(float(scale) for scale in chosen.scales)
    quantization = Quantization(scales, (0,) * len(scales), chosen.axis)
    return Value(f"{kernel.name}/int8", INT8, kernel.shape, Constant.of(chosen.codes), quantization)
