"""Eight-bit codes of several ranges, one after another in the range that holds all of theirs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.array import joined
from pocketgraph.exporting.onnx.ops.quantized import BYTES, grid, in_codes, known, numbers_of
from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.quantized.eight_bit_arithmetic import codes_of, joint_range


@converts("QuantizedConcat")
def quantized_concat(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    """Values that are in the joint range already keep their codes; sums of 32 bits are numbers and have no codes."""
    count, dtype = int(node.attr("N", 1)), plain_type(node.dtype("T"))
    values, lows, highs = (emit.inputs(1 + part * count, 1 + (part + 1) * count) for part in range(3))
    low, high = _joint_range(emit, lows, highs, dtype)
    made = []
    for value, *ends in zip(values, lows, highs, strict=True):
        is_there = value.dtype is FLOAT or known(emit, *ends) == known(emit, low, high) is not None
        if not is_there and dtype.name not in BYTES:
            raise emit.unsupported("its codes come from outside of the model")
        of = grid(emit, low, high, dtype) if not is_there else None
        made.append(value if of is None else in_codes(emit, numbers_of(emit, value, *ends), of, dtype))
    return joined(emit, made, 0), low, high


def _joint_range(
    emit: OnnxEmit, lows: Sequence[OnnxValue], highs: Sequence[OnnxValue], dtype: DType
) -> tuple[OnnxValue, OnnxValue]:
    kind = codes_of(dtype.numpy)
    spans = [known(emit, *ends) for ends in zip(lows, highs, strict=True)]
    if None not in spans:
        ends = joint_range([span[0] for span in spans if span], [span[1] for span in spans if span], kind)
        return emit.const(np.float32(ends[0])), emit.const(np.float32(ends[1]))
    least, most = ([emit.reshape(end, []) for end in side] for side in (lows, highs))
    low, high = elementwise(emit, "Min", [emit.const(np.float32(0)), *least]), elementwise(emit, "Max", most)
    if kind.signed:
        high = elementwise(emit, "Max", [unary(emit, "Abs", low), unary(emit, "Abs", high)])
        low = unary(emit, "Neg", high)
    return low, high
