"""Takes two columns of a picture as one pixel where an eight-bit convolution over few channels moves by two.

XNNPACK's eight-bit convolutions read the channels of each place of their window in groups of eight: three channels
take as long as eight, and so do the six of two columns. A window of 3 x 3 places is one of 3 x 2 pairs, of 7 x 7 one of
7 x 4::

    x [1,224,224,3] ─CONV_2D 3x3, stride 2x2
    becomes
    x ─ RESHAPE [1,224,112,6] ─CONV_2D 3x2, stride 2x1

The sums are of the same products and zeros, so the codes that come out are the same.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import INT8
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value, reshaped

FEW = 4  # channels; eight columns' worth of more are not read together


def pack_width(program: Program) -> None:
    """Makes such convolutions ones over pairs of columns, in place."""
    program.operations = [new for operation in program.operations for new in _in_pairs(operation) or [operation]]


def _in_pairs(operation: Operation) -> list[Operation]:
    """The operations that do the same over pairs; none where that cannot be or is no gain."""
    if operation.code != "CONV_2D" or operation.options["stride_w"] != 2 or operation.options["dilation_w"] != 1:
        return []
    source, kernel, bias = operation.inputs
    (result,) = operation.outputs
    if source is None or kernel is None or kernel.constant is None or source.dtype is not INT8:
        return []
    if kernel.dtype is not INT8 or len(source.shape) != 4 or kernel.shape[3] != source.shape[3]:
        return []
    batch, height, width, channels = source.shape
    taps = kernel.shape[2]
    lead = _columns_before(operation.options["padding"], width, taps, result.shape[2])
    pairs = (lead % 2 + taps + 1) // 2
    if width % 2 or channels > FEW or taps < 2 or pairs >= taps:
        return []
    before = (lead + lead % 2) // 2
    if (before, result.shape[2]) != _columns_of_pairs(operation.options["padding"], width // 2, pairs):
        return []
    codes = np.zeros((*kernel.shape[:2], 2 * pairs, channels), np.int8)
    codes[:, :, lead % 2 : lead % 2 + taps] = kernel.constant.numpy()
    constant = Constant.of(codes.reshape(*kernel.shape[:2], pairs, 2 * channels))
    wide = Value(f"{kernel.name}/pairs", INT8, constant.shape, constant, kernel.quantization)
    paired = Value(f"{source.name}/pairs", INT8, (batch, height, width // 2, 2 * channels), None, source.quantization)
    return [
        reshaped(source, paired, operation.nodes),
        operation.replace(inputs=[paired, wide, bias], options={**operation.options, "stride_w": 1}),
    ]


def _columns_before(padding: str, width: int, taps: int, result: int) -> int:
    """How many columns of padding stand before a row of a convolution that moves by two."""
    return max((result - 1) * 2 + taps - width, 0) // 2 if padding == "SAME" else 0


def _columns_of_pairs(padding: str, width: int, taps: int) -> tuple[int, int]:
    """The columns of padding before a row, and those of the result, of a convolution that moves by one."""
    return ((taps - 1) // 2, width) if padding == "SAME" else (0, width - taps + 1)
