"""Shape rules of layers in eight bits, and of fake quantization."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import at_least, of_rank
from pocketgraph.kernels.shapes.array.reshaping import joined, reshape
from pocketgraph.kernels.shapes.common_rules import broadcast_both, fixed, unchanged
from pocketgraph.kernels.shapes.image import resize
from pocketgraph.kernels.shapes.math import matmul
from pocketgraph.kernels.shapes.nn import bias_add, convolution, pool
from pocketgraph.kernels.shapes.rules import Rule, ShapeCall, shape_rule

shape_rule(
    "Dequantize", "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
)(unchanged)  # fmt: skip


RANGE = (SCALAR, SCALAR)


def with_range(rule: Rule) -> Callable[[ShapeCall], Sequence[Shape]]:
    """What a rule gives for the numbers, and the ends of their range."""

    def ranged(call: ShapeCall) -> Sequence[Shape]:
        shape = rule(call)
        return [shape if isinstance(shape, Shape) else shape[0], *RANGE]

    return ranged


shape_rule("RequantizationRange", "RequantizationRangePerChannel")(fixed(*RANGE))
shape_rule("QuantizedReshape")(with_range(reshape))
shape_rule("QuantizedConv2D")(with_range(convolution))
shape_rule("QuantizedMatMul")(with_range(matmul))
shape_rule("QuantizedBiasAdd")(with_range(bias_add))
shape_rule("QuantizedAdd", "QuantizedMul")(with_range(broadcast_both))
shape_rule("QuantizedResizeBilinear")(with_range(resize))
shape_rule("QuantizedMaxPool", "QuantizedAvgPool")(with_range(pool))


@shape_rule(
    "QuantizeV2", "Requantize", "RequantizePerChannel", "QuantizedRelu", "QuantizedRelu6", "QuantizedReluX",
    "QuantizeDownAndShrinkRange", "QuantizedBatchNormWithGlobalNormalization", "QuantizedInstanceNorm",
)  # fmt: skip
def same_shape(call: ShapeCall) -> Sequence[Shape]:
    axis, shape = call.attr("axis", -1), call.shape(0)
    ends = RANGE
    if call.node.op == "QuantizeV2" and axis != -1 and shape.rank is not None:
        ends = (Shape((shape[axis],)),) * 2
    return [shape, *ends]


FUSED_CONVOLUTIONS = (
    "QuantizedConv2DPerChannel", "QuantizedConv2DAndRelu", "QuantizedConv2DAndRequantize",
    "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu",
    "QuantizedConv2DWithBiasAndRequantize", "QuantizedConv2DWithBiasAndReluAndRequantize",
    "QuantizedConv2DWithBiasSumAndRelu", "QuantizedConv2DWithBiasSumAndReluAndRequantize",
    "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "QuantizedDepthwiseConv2D",
    "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu",
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)  # fmt: skip
"""Not a trait: the ops of a rule below and of its kernel, convolutions with what follows them; results of 32 bits have
one range, or one for each range of weights."""


@shape_rule(*FUSED_CONVOLUTIONS)
def fused_convolution(call: ShapeCall) -> Sequence[Shape]:
    if any(call.attr("padding_list", ())):
        return [Shape(None)] * 3
    shape = convolution(call)
    ends = SCALAR if "Requantize" in call.node.op else call.shape(5 if "WithBias" in call.node.op else 4)
    return [shape, ends, ends]


@shape_rule("QuantizedConcat")
def quantized_concat(call: ShapeCall) -> Sequence[Shape]:
    count = (len(call.inputs) - 1) // 3
    return [joined(call.inputs[1 : 1 + count], call.integer(0)), *RANGE]


@shape_rule("QuantizedConcatV2")
def quantized_concat_v2(call: ShapeCall) -> Sequence[Shape]:
    count = (len(call.inputs) - 1) // 3
    return [joined(call.inputs[:count], call.integer(count)), *RANGE]


shape_rule("QuantizeAndDequantizeV4Grad")(lambda call: [call.inputs[1], call.inputs[2], call.inputs[3]])


shape_rule("FakeQuantWithMinMaxArgs")(unchanged)


@shape_rule("FakeQuantWithMinMaxVars")
def fake_quant(call: ShapeCall) -> Shape:
    of_rank(call.shape(1), 0)
    of_rank(call.shape(2), 0)
    return call.shape(0)


shape_rule("FakeQuantWithMinMaxVarsPerChannel")(lambda call: at_least(call.shape(0), 1))
