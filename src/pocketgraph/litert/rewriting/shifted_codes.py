"""Adds a constant to each channel of codes, without leaving them: as a convolution of one pixel.

    a8 ─DEQUANTIZE─ (MUL) ─ ADD ─QUANTIZE─ b8   becomes   a8 ─DEPTHWISE_CONV_2D─ b8

The convolution's int32 bias has far finer steps than an int8 operand of ADD, and one weight takes in the factor.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import INT8, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.value_uses import ValueUses

ONE = 64  # the code of a weight of 1: the bias has steps of 1/64 of the codes'


def shifts_codes(program: Program, view: ValueUses, operation: Operation, result: Value) -> bool:
    """A sum of codes and a constant of each channel as a convolution of one pixel, whose bias has finer steps."""
    if operation.code != "ADD" or operation.inputs[1] is None or operation.inputs[1].constant is None:
        return False
    source, gain = _scaled_codes(view, operation.inputs[0])
    bias = operation.inputs[1]
    if source is None or source.quantization is None or bias.constant is None or not source.shape:
        return False
    channels = source.shape[-1]
    if source.shape != result.shape or bias.size not in (1, channels) or bias.size != (bias.shape or (1,))[-1]:
        return False
    step = source.quantization.scales[0] * gain / ONE
    levels: Array = np.rint(bias.constant.numpy().astype(np.float64).reshape(-1) / step)
    if not (np.abs(levels) < 2**31).all():
        return False
    scales, zeros = (gain / ONE,) * channels, (0,) * channels
    ones = Constant.of(np.full((1, 1, 1, channels), ONE, np.int8))
    shift = Constant.of(np.broadcast_to(levels.astype(np.int32), (channels,)))
    one = dict.fromkeys(("stride_w", "stride_h", "dilation_w", "dilation_h", "multiplier"), 1)
    options = {"padding": "VALID", "activation": operation.options.get("activation", ""), **one}
    operands = [
        Value(f"{bias.name}/ones", INT8, ones.shape, ones, Quantization(scales, zeros, 3)),
        Value(f"{bias.name}/codes", INT32, shift.shape, shift, Quantization((step,) * channels, zeros)),
    ]
    if len(source.shape) == 4:
        operation.code, operation.inputs, operation.options = "DEPTHWISE_CONV_2D", [source, *operands], options
        return True
    shape = (source.size // channels, 1, 1, channels)
    image = Value(f"{source.name}/image", INT8, shape, None, source.quantization)
    moved = Value(f"{result.name}/image", INT8, shape, None, result.quantization)
    nodes = operation.nodes
    parts = [
        Operation("RESHAPE", [source, _sizes(shape)], [image], {"new_shape": shape}, nodes),
        Operation("DEPTHWISE_CONV_2D", [image, *operands], [moved], options, nodes),
    ]
    where = program.operations.index(operation)
    program.operations[where:where] = parts
    operation.code, operation.inputs = "RESHAPE", [moved, _sizes(result.shape)]
    operation.options = {"new_shape": result.shape}
    return True


def _scaled_codes(view: ValueUses, value: Value | None) -> tuple[Value | None, float]:
    """The codes that floats are made of, and the positive number by which they are multiplied on the way."""
    maker, gain = (None, 1.0) if value is None else (view.producers.get(value), 1.0)
    if maker is not None and maker.code == "MUL" and not maker.options.get("activation"):
        factor = maker.inputs[1]
        if factor is None or factor.constant is None or factor.size != 1 or maker.inputs[0] is None:
            return None, gain
        gain = float(factor.constant.numpy().reshape(-1)[0])
        maker = view.producers.get(maker.inputs[0])
    return (maker.inputs[0], gain) if maker is not None and maker.code == "DEQUANTIZE" and gain > 0 else (None, gain)


def _sizes(shape: tuple[int, ...]) -> Value:
    return Value("sizes", INT32, (len(shape),), Constant.of(np.array(shape, np.int32)))
