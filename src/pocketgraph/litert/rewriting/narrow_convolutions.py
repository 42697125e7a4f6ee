"""Shapes work to the width of the processor's registers: narrow convolutions and narrow constant vectors.

XNNPACK's float kernels compute 16 output channels at once on processors with AVX (8 on ARM). A convolution with 6
output channels so does nearly three times the work it has to. Two neighbouring pixels taken together are one pixel of
12 channels, made by a kernel that is one pixel wider and moves by two:

    x ─CONV_2D 5x5 [1,60,60,6]
becomes
    x ─CONV_2D 5x6, stride 1x2 [1,60,30,12]─ RESHAPE [1,60,60,6]

Sums and products with a vector over few channels go pixel by pixel, unless the vector is written out for all pixels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.cost_model import (
    LEAST_CONVOLUTION,
    NARROW_VECTOR,
    SHALLOW_CHANNELS,
    TWICE_THE_CHANNELS,
    TWICE_THE_CHANNELS_SHALLOW,
    WIDER_SHARE,
)
from pocketgraph.litert.host import is_x86
from pocketgraph.litert.operator_traits import ARITHMETIC, BOUNDS
from pocketgraph.litert.program import Operation, Program, Value, reshaped

LANES = 16 if is_x86() else 8
"""Output channels that XNNPACK's float kernels compute at once."""

LEAST_PIXELS = 64  # pixels that a vector goes over, likewise
MOST_CHANNELS = 64  # output channels of several pixels together

MOST_WRITTEN_OUT = 1 << 16  # elements of such a vector written out


def widen_narrow_convolutions(program: Program) -> None:
    """Convolutions with few output channels make several pixels of a row at once.

    Where a value is infinite, what it makes NaN reaches a pixel further than in the graph.
    """
    operations = []
    for operation in program.operations:
        operations.append(operation)
        pixels = pixels_at_once(operation)
        if pixels > 1:
            operations.append(_widened(operation, pixels))
    program.operations = operations


def pixels_at_once(operation: Operation, *, any_columns: bool = False) -> int:
    """How many pixels of a row are best made together; with ``any_columns`` what is left of a row need not be none."""
    if operation.code != "CONV_2D":
        return 1
    source, weights, bias = operation.inputs
    if source is None or weights is None or weights.constant is None or weights.dtype is not FLOAT:
        return 1
    if bias is None or bias.constant is None or weights.shape[3] != source.shape[3]:
        return 1
    if operation.options["dilation_w"] != 1 or weights.quantization is not None:
        return 1
    if operation.outputs[0].size * (weights.size // weights.shape[0]) < LEAST_CONVOLUTION:
        return 1
    count, width = weights.shape[0], weights.shape[2]
    stride: int = operation.options["stride_w"]
    columns, depth = operation.outputs[0].shape[2], weights.shape[3]

    def work(pixels: int) -> float:
        return _tiles(count * pixels, depth) / pixels * (width + (pixels - 1) * stride) / width

    able = [pixels for pixels in range(1, MOST_CHANNELS // count + 1) if any_columns or columns % pixels == 0]
    best = min(able, key=work, default=1)
    return best if best > 1 and work(best) <= WIDER_SHARE * work(1) else 1


def _tiles(channels: int, depth: int) -> float:
    """How long so many output channels of ``depth`` input channels take, measured in kernels of ``LANES``."""
    if channels >= 2 * LANES and has_wide_kernels():
        return -(-channels // (2 * LANES)) * (
            TWICE_THE_CHANNELS if depth >= SHALLOW_CHANNELS else TWICE_THE_CHANNELS_SHALLOW
        )
    return -(-channels // LANES)


@lru_cache(maxsize=1)
def has_wide_kernels() -> bool:
    """Whether XNNPACK's float kernels are those for AVX-512."""
    if not is_x86():  # an emulated machine may show the file of the one that emulates it
        return False
    try:
        with open("/proc/cpuinfo", "rb") as file:
            return b" avx512f " in file.read(1 << 16)
    except OSError:
        return False


def _widened(convolution: Operation, pixels: int) -> Operation:
    """Makes the convolution give so many pixels at once; returns what parts them again."""
    widen_weights(convolution, pixels)
    (result,) = convolution.outputs
    batch, rows, columns, count = result.shape
    made = Value(f"{result.name}/wide", FLOAT, (batch, rows, columns // pixels, pixels * count))
    convolution.outputs = [made]
    return reshaped(made, result, convolution.nodes, sizes="sizes")


def widen_weights(convolution: Operation, pixels: int) -> None:
    """Gives a convolution weights that make so many pixels of a row at once, and steps that are so much wider."""
    _, weights, bias = convolution.operands
    old, stride = weights.content.numpy(), convolution.options["stride_w"]
    count, height, width, depth = old.shape
    wide = np.zeros((pixels, count, height, width + (pixels - 1) * stride, depth), np.float32)
    for pixel in range(pixels):
        wide[pixel, :, :, pixel * stride : pixel * stride + width] = old
    content = Constant.of(wide.reshape(pixels * count, *wide.shape[2:]))
    biases = Constant.of(np.tile(bias.content.numpy().reshape(-1), pixels))
    convolution.inputs[1] = Value(f"{weights.name}/wide", FLOAT, content.shape, content)
    convolution.inputs[2] = Value(f"{bias.name}/wide", FLOAT, biases.shape, biases)
    convolution.options["stride_w"] = stride * pixels


def write_out_narrow_vectors(program: Program) -> None:
    """A constant vector over few channels becomes a constant of the other operand's shape."""
    made: dict[tuple[Value, tuple[int, ...]], Value] = {}
    for operation in program.operations:
        if operation.code not in ARITHMETIC | BOUNDS or len(operation.inputs) != 2 or not operation.outputs[0].shape:
            continue
        shape = operation.outputs[0].shape
        for index, value in enumerate(operation.inputs):
            other = operation.inputs[1 - index]
            if value is None or value.constant is None or value.dtype is not FLOAT or value.quantization is not None:
                continue
            is_vector = 1 < value.size == value.shape[-1] == shape[-1] <= NARROW_VECTOR
            size = operation.outputs[0].size
            if (
                other is None
                or other.shape != shape
                or not is_vector
                or not LEAST_PIXELS * value.size <= size <= MOST_WRITTEN_OUT
            ):
                continue
            if (value, shape) not in made:
                content = Constant.of(np.ascontiguousarray(np.broadcast_to(value.constant.numpy(), shape)))
                made[value, shape] = Value(f"{value.name}/written_out", FLOAT, shape, content)
            operation.inputs[index] = made[value, shape]
