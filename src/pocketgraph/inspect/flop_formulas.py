"""What each op costs: formulas over the shapes of its inputs and outputs, and the table of them by op.

How it is counted:

* A multiplication and an addition are two operations, also where a machine does both at once.
* One call of a scalar function (exp, tanh, sqrt, a comparison, a maximum) is one operation.
* What only moves, copies or reinterprets values is free. Integers count like floats: it is arithmetic all the same.
* Padding counts as if it were data, as in the usual formulas for convolutions (out · kh · kw · cin · 2).
* What depends on values (loops inside of an op, such as non-maximum suppression) is not counted and listed by name.

A shape that is not known is (-1,): ``elements`` refuses it, and with it the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from pocketgraph.graph import Node
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.package_data import text_beside

Sizes: TypeAlias = "tuple[int, ...]"
Formula: TypeAlias = "Callable[[Node, list[Sizes], list[Sizes]], int]"
"""Takes the node, the shapes of its inputs and those of its outputs."""
Part: TypeAlias = "Callable[[list[Sizes], list[Sizes]], Sizes]"


def elements(shape: Sizes) -> int:
    """How many elements a tensor of this shape has.

    Raises:
        ValueError: a size is not known.
    """
    if any(size < 0 for size in shape):
        raise ValueError("not known")
    return math.prod(shape)


def per_output(each: float) -> Formula:
    """A formula: so many operations for each element of the first output."""
    return lambda node, inputs, outputs: round(each * elements(outputs[0]))


def per_input(each: float, index: int = 0) -> Formula:
    """A formula: so many operations for each element of one input."""
    return lambda node, inputs, outputs: round(each * elements(inputs[index]))


def multiply_adds(ones: Part, others: Part) -> Formula:
    """A formula: a multiplication and an addition for each pair of an element of one part and one of another.

    Args:
        ones, others: parts of shapes, of those of the inputs and those of the outputs.
    """
    return lambda node, inputs, outputs: elements(ones(inputs, outputs)) * elements(others(inputs, outputs)) * 2


def fused_pad_convolution(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """The convolution, and for a resize nine operations an element, as ResizeBilinear counts."""
    filters = inputs[3 if node.op == "FusedResizeAndPadConv2D" else 2]
    resize = 9 * elements(inputs[0]) if node.op == "FusedResizeAndPadConv2D" else 0  # at least as many as came in
    return elements(outputs[0]) * elements(filters[:-1]) * 2 + resize


def product(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """out · k · 2; k from the first factor."""
    turned = any(node.attr(name, False) for name in ("transpose_a", "adj_x", "adjoint_a"))
    return elements(outputs[0]) * elements(inputs[0][-2:-1] if turned else inputs[0][-1:]) * 2


def einsum(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """All different indices · 2 where something is summed, · 1 where not."""
    equation = node.attrs["equation"]
    assert isinstance(equation, bytes)
    left, _, right = equation.decode().replace(" ", "").partition("->")
    if "..." in left:
        raise ValueError("not known")
    sizes = {label: size for term, shape in zip(left.split(","), inputs, strict=True)
             for label, size in zip(term, shape, strict=True)}  # fmt: skip
    all_of_them = elements(tuple(sizes.values()))
    if len(inputs) == 1:
        return all_of_them if set(left) - set(right) else 0
    return all_of_them * (2 if set(left) - set(right) - {","} else 1)


def _window(node: Node) -> int:
    sizes = node.attrs["ksize"]  # MaxPoolV2 has it as an input: then the cost is unknown
    assert isinstance(sizes, tuple)
    return math.prod(int(size) for size in sizes if isinstance(size, int))


def batch_norm(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """x · scale + offset, 4 operations a channel to get these; in training mean and variance besides (4 a value)."""
    channels = elements(inputs[1])
    each = 6 if node.attr("is_training", node.op.startswith("Fused")) else 2
    return each * elements(inputs[0]) + 4 * channels


def local_response(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """Squares, sum over 2r+1 neighbours, scale and bias, power, division."""
    radius = node.attr("depth_radius", 5)
    assert isinstance(radius, int)
    return elements(outputs[0]) * (1 + 2 * radius + 2 + 2)


def lstm_block(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """A step of a cell: [x, h]·W (four gates), bias, five activations, two additions, three products, forget bias."""
    time, x, h = (1, inputs[0], inputs[2]) if node.op == "LSTMBlockCell" else (inputs[1][0], inputs[1][1:], inputs[3])
    batch, width = x
    units = h[1]
    return time * batch * ((width + units) * 4 * units * 2 + 4 * units + 11 * units) if min(batch, width) >= 0 else -1


def gru_block(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """A step of a cell: three gates' products and biases, three activations, r·h and u·h + (1-u)·c."""
    (batch, width), (_, units) = inputs[0], inputs[1]
    return batch * ((width + units) * 3 * units * 2 + 3 * units + 8 * units)


def fourier(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """5 · n · log₂ n a transform, half of it for real values."""
    axes = 3 if node.op.endswith("3D") else 2 if node.op.endswith("2D") else 1
    whole = outputs[0] if node.op.startswith("I") else inputs[0]
    length = elements(whole[-axes:])
    each = 5 * length * math.log2(max(2, length)) * (0.5 if "RFFT" in node.op else 1)
    return round(elements(whole[:-axes]) * each)


def spectrogram(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """Window, transform of the next power of two, squared magnitude."""
    window = node.attrs["window_size"]
    assert isinstance(window, int)
    length = 1 << max(1, window - 1).bit_length()
    channels, frames, bins = outputs[0]
    return round(channels * frames * (window + 2.5 * length * math.log2(length) + 3 * bins))


def mfcc(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """Mel filters (each bin in two of them), logarithm, cosine transform."""
    filters = node.attr("filterbank_channel_count", 40)
    assert isinstance(filters, int)
    channels, frames, bins = inputs[0]
    return channels * frames * (4 * bins + filters + 2 * filters * outputs[0][-1])


def sorted_rows(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """n · log₂ k comparisons a row: a heap of the best k."""
    kept = max(2, outputs[0][-1] if node.op != "NthElement" else 2)
    return round(elements(inputs[0]) * math.log2(kept))


def searched(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """log₂ n comparisons for each value that is looked up."""
    if node.op == "Bucketize":
        boundaries = node.attrs["boundaries"]
        assert isinstance(boundaries, tuple)
        return round(elements(inputs[0]) * math.log2(max(2, len(boundaries))))
    return round(elements(inputs[1]) * math.log2(max(2, inputs[0][-1])))


def cubic(factor: float) -> Formula:
    """factor · n³ a matrix."""
    return lambda node, inputs, outputs: round(elements(inputs[0]) * inputs[0][-1] * factor)


def solved(factor: float, square: float) -> Formula:
    """factor · n³ + square · n² · m a system."""

    def formula(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
        matrix = elements(inputs[0])
        return round(matrix * (factor * inputs[0][-1] + square * outputs[0][-1]))

    return formula


REDUCED: Formula = lambda node, inputs, outputs: max(0, elements(inputs[0]) - elements(outputs[0]))  # noqa: E731
"""One operation less than there are terms, for each result."""
FORMULAS: dict[str, Formula] = {}
"""The formula of each op that costs something."""


def _table(formula: Formula, ops: str) -> None:
    FORMULAS.update(dict.fromkeys(ops.split(), formula))


# The filter's own channels, so that groups count right: all of its sizes but the last one.
_table(
    multiply_adds(lambda i, o: o[0], lambda i, o: i[1][:-1]),
    "Conv2D Conv3D QuantizedConv2D _FusedConv2D QuantizedConv2DPerChannel Conv",
)
_table(
    multiply_adds(lambda i, o: i[2], lambda i, o: i[1][:-1]),
    "Conv2DBackpropInput Conv3DBackpropInput Conv3DBackpropInputV2",
)
_table(
    multiply_adds(lambda i, o: i[2], lambda i, o: o[0][:-1]),
    "Conv2DBackpropFilter Conv3DBackpropFilter Conv3DBackpropFilterV2",
)
_table(fused_pad_convolution, "FusedPadConv2D FusedResizeAndPadConv2D")
_table(
    multiply_adds(lambda i, o: o[0], lambda i, o: i[1][:2]),
    "DepthwiseConv2dNative _FusedDepthwiseConv2dNative QuantizedDepthwiseConv2D Dilation2D",
)
_table(
    multiply_adds(lambda i, o: i[2], lambda i, o: i[1][:2]),
    "DepthwiseConv2dNativeBackpropInput Dilation2DBackpropInput",
)
_table(multiply_adds(lambda i, o: i[2], lambda i, o: o[0][:2]), "DepthwiseConv2dNativeBackpropFilter")
_table(product, "MatMul QuantizedMatMul SparseMatMul _FusedMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3")
_table(multiply_adds(lambda i, o: i[0][:1], lambda i, o: o[0][-1:]), "SparseTensorDenseMatMul")
_table(einsum, "Einsum XlaEinsum")
# Additions and one division, or comparisons; then the gradients, of the mean a share and an addition a place.
_table(lambda node, i, o: elements(o[0]) * _window(node),
       "AvgPool MaxPool AvgPool3D MaxPool3D MaxPoolV2 MaxPoolWithArgmax QuantizedAvgPool QuantizedMaxPool")  # fmt: skip
_table(lambda node, i, o: elements(i[-1]) * _window(node) * 2, "AvgPoolGrad AvgPool3DGrad")
_table(lambda node, i, o: elements(i[-1]) * (_window(node) + 1), "MaxPoolGrad MaxPool3DGrad")
_table(per_input(1, 1), "MaxPoolGradWithArgmax")
_table(batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 BatchNormWithGlobalNormalization")
_table(per_input(11), "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3")
_table(per_input(6), "QuantizedInstanceNorm")
_table(per_input(2), "QuantizedBatchNormWithGlobalNormalization")
_table(local_response, "LRN")
_table(per_output(5), "Softmax LogSoftmax")
_table(per_input(7), "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits")
_table(lambda node, i, o: max(0, 3 * elements(i[0]) - 1), "L2Loss")  # squares, halves, and their sum
_table(per_input(2), "L2Normalize EuclideanNorm")
_table(lambda node, i, o: (len(i) - 1) * elements(o[0]), "AddN AccumulateNV2")
_table(REDUCED, "Sum Max Min Prod All Any ArgMax ArgMin BiasAddGrad")
_table(per_input(1), "Mean SegmentMean Cumsum Cumprod SegmentSum SegmentMax SegmentMin "
       "SegmentProd UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin "
       "UnsortedSegmentProd")  # fmt: skip
_table(per_output(1), """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 Floor Inv Invert IsFinite
    IsInf IsNan Lgamma Log Log1p LogicalNot Ndtri Neg Reciprocal Relu Relu6 Rint Round Selu Sigmoid Sign Sin Sinh
    Softplus Softsign Sqrt Square Tan Tanh LeakyRelu QuantizedRelu QuantizedRelu6 QuantizedReluX CheckNumerics
    Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan FloorDiv TruncateDiv FloorMod Mod TruncateMod Maximum Minimum Pow
    Atan2 Equal NotEqual Greater GreaterEqual Less LessEqual ApproximateEqual LogicalAnd LogicalOr BitwiseAnd BitwiseOr
    BitwiseXor LeftShift RightShift BiasAdd BiasAddV1 QuantizedBiasAdd QuantizedAdd QuantizedMul Range LinSpace
    NextAfter PopulationCount ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad ClipByValue Conj ComplexAbs Betainc
    Igamma Igammac
    Polygamma Zeta _FusedAdd
""")  # fmt: skip
_table(per_output(1), """
    RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal RandomGamma RandomPoisson RandomPoissonV2
    StatelessRandomUniform StatelessRandomUniformInt StatelessRandomNormal StatelessTruncatedNormal Angle
    CheckNumericsV2 CountUpTo FakeQuantWithMinMaxArgsGradient QuantizeAndDequantize
""")  # fmt: skip
_table(per_input(1), "Bincount DenseBincount HistogramFixedWidth InTopK InTopKV2 MirrorPadGrad CTCGreedyDecoder")
_table(per_input(2), "CumulativeLogsumexp FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient "
       "QuantizeAndDequantizeV4Grad")  # fmt: skip
_table(per_output(3), "Cross")
_table(per_input(1, 2), """
    ScatterMax ScatterMin ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv ResourceScatterMax
    ResourceScatterMin ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin
""")  # fmt: skip
_table(per_input(1, 1), "SparseTensorDenseAdd")
_table(lambda node, i, o: elements(i[1]) * elements(i[0][1:]), "SparseSegmentSum SparseSegmentMean "
       "SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
       "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments")  # fmt: skip
_table(sorted_rows, "TopK TopKV2 NthElement")
_table(searched, "Bucketize UpperBound LowerBound")
_table(per_output(2), "Rsqrt SquaredDifference Xlogy Xdivy Xlog1py QuantizeV2 Dequantize Requantize "
       "RequantizePerChannel QuantizeDownAndShrinkRange SqrtGrad SoftplusGrad SoftsignGrad ReciprocalGrad "
       "InvGrad")  # fmt: skip
_table(per_output(3), "SigmoidGrad TanhGrad Lerp")
_table(per_output(4), "RsqrtGrad FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel "
       "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4")  # fmt: skip
_table(per_output(9), "ResizeBilinear QuantizedResizeBilinear CropAndResize")  # three interpolations of 3
_table(per_output(35), "ResizeBicubic")  # five interpolations between four values, 7 each
_table(per_input(2), "ResizeArea AdjustContrastv2 QuantizedConcat RequantizationRange")
_table(per_input(9), "ResizeBilinearGrad")
_table(per_input(12), "RGBToHSV HSVToRGB AdjustHue AdjustSaturation")
_table(lstm_block, "LSTMBlockCell BlockLSTM BlockLSTMV2")
_table(gru_block, "GRUBlockCell")
_table(fourier, "FFT IFFT FFT2D IFFT2D FFT3D IFFT3D RFFT IRFFT RFFT2D IRFFT2D RFFT3D IRFFT3D")
_table(spectrogram, "AudioSpectrogram")
_table(mfcc, "Mfcc")
_table(cubic(1 / 3), "Cholesky BatchCholesky")
_table(cubic(2), "MatrixInverse BatchMatrixInverse")
_table(cubic(2 / 3), "MatrixDeterminant LogMatrixDeterminant Lu BatchMatrixDeterminant")
_table(solved(2 / 3, 2), "MatrixSolve BatchMatrixSolve")
_table(solved(0, 1), "MatrixTriangularSolve BatchMatrixTriangularSolve")
_table(per_output(1), "AssignAdd AssignSub ScatterAdd ScatterSub ScatterMul ScatterDiv")
_table(per_input(1, 1), "AssignAddVariableOp AssignSubVariableOp")
for _name, _each, _gradient in (
    ("GradientDescent", 2, 2), ("Momentum", 4, 3), ("Adagrad", 5, 3), ("Adam", 12, 9), ("RMSProp", 9, 7),
    ("Adadelta", 11, 6),
):  # fmt: skip
    _table(per_input(_each, _gradient), f"Apply{_name} ResourceApply{_name}")
FREE = ops_with(
    "array_read", "array_write", "constant", "control_flow", "effect", "moves", "pad", "passes", "picture_file",
    "placeholder", "reference_variable", "select", "shape", "table_lookup", "view",
) | frozenset(text_beside(__file__, "free_ops.txt").split())  # fmt: skip
"""Ops that move values only: as traits say, and others. Calls and branches cost what the nodes inside them cost."""
