"""Clips codes by requantizing them, where the codes of the result end just where an activation does.

    x8 ─RELU─ y8      becomes      x8 ─QUANTIZE─ y8

LiteRT has RELU, RELU6 and RELU_N1_TO_1 on codes in a plain kernel only, which takes sixty times as long as XNNPACK's
conversion from codes to codes. When y's lowest code stands for 0, the conversion makes 0 of all that is below. An
activation that is the layer's own is not among these: there it costs nothing.
"""

from __future__ import annotations

from pocketgraph.graph.dtype import INT8
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATION_BOUNDS

RATIOS = (2.0**-8, 2.0**7)
"""What a step may be of the result's step for XNNPACK to convert codes."""


def requantize_activations(program: Program) -> None:
    """Makes such activations conversions, in place."""
    program.operations = [
        Operation("QUANTIZE", operation.inputs, operation.outputs, {}, operation.nodes)
        if is_conversion(operation)
        else operation
        for operation in program.operations
    ]


def is_conversion(operation: Operation) -> bool:
    """Whether an activation does no more to codes than a conversion does."""
    source, result = operation.inputs[0] if operation.inputs else None, operation.outputs[0]
    if operation.code not in ACTIVATION_BOUNDS or source is None or not _has_codes(source) or not _has_codes(result):
        return False
    scale, zero = result.coding.scales[0], result.coding.zero_points[0]
    low, high = ACTIVATION_BOUNDS[operation.code]
    ends = (-128 - zero) * scale, (127 - zero) * scale
    is_within = ends[0] >= low - scale / 2 and ends[1] <= high + scale / 2
    return is_within and RATIOS[0] <= source.coding.scales[0] / scale < RATIOS[1]


def _has_codes(value: Value) -> bool:
    return value.dtype is INT8 and value.quantization is not None
