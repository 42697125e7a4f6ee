"""Shape rules of elementwise ops: same shape out as in, or the two broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, broadcast, merge, of_rank
from pocketgraph.kernels.shapes.rules import Call, shape_rule

UNARY = (
    "Abs", "Acos", "Acosh", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Angle", "AsString", "Asin",
    "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Bitcast", "Cast", "Ceil",
    "CheckNumerics", "CheckNumericsV2", "ClipByValue", "ComplexAbs", "Conj", "Copy", "CopyHost", "Cos", "Cosh",
    "Cumprod", "Cumsum", "CumulativeLogsumexp", "DataFormatDimMap", "DataFormatVecPermute", "DebugGradientIdentity",
    "DebugIdentity", "DebugNanCount", "DecodeBase64", "DeepCopy", "Dequantize", "Digamma", "Elu", "EluGrad",
    "EncodeBase64", "Erf", "Erfc", "Erfinv", "Exit", "Exp", "Expm1", "FFT", "FFT2D", "FFT3D",
    "FakeQuantWithMinMaxArgs", "Floor", "GuaranteeConst", "HSVToRGB", "HostConst", "IFFT", "IFFT2D", "IFFT3D",
    "Identity", "Imag", "Inv", "Invert", "InvertPermutation", "IsFinite", "IsInf", "IsNan", "LRN", "LeakyRelu",
    "Lgamma", "Log", "Log1p", "LogSoftmax", "LogicalNot", "MatrixBandPart", "Ndtri", "Neg", "NextIteration",
    "OnesLike", "PopulationCount", "PreventGradient", "Print", "PrintV2", "QuantizeAndDequantize",
    "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4", "RGBToHSV", "RandomShuffle",
    "Real", "Reciprocal", "RegexFullMatch", "RegexReplace", "RefExit", "RefIdentity", "RefNextIteration", "Relu",
    "Relu6", "ReverseSequence", "Rint", "Roll", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
    "Snapshot", "Softmax", "Softplus", "Softsign", "Sqrt", "Square", "StaticRegexFullMatch", "StaticRegexReplace",
    "StopGradient", "StringLength", "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast",
    "StringToHashBucketStrong", "StringToNumber", "StringUpper", "Tan", "Tanh", "ZerosLike", "_HostCast", "_Retval",
    "_UnaryOpsComposition",
)  # fmt: skip
"""Not a trait: the ops of a rule below, whose result has the shape of the first input."""

BINARY = (
    "Add", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div",
    "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift",
    "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter",
    "NotEqual", "Polygamma", "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub", "TruncateDiv",
    "TruncateMod", "Xdivy", "Xlogy", "Zeta",
)  # fmt: skip
"""Not a trait: the ops of a rule below, whose inputs broadcast."""

GRADIENTS = (
    "InvGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad",
    "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad",
)  # fmt: skip
"""Not a trait: the ops of a rule below, whose inputs have one shape."""


@shape_rule(*UNARY)
def unchanged(call: Call) -> Shape:
    return call.shape(0)


@shape_rule("IsotonicRegression")
def twice_unchanged(call: Call) -> Sequence[Shape]:
    return [call.shape(0)] * 2


@shape_rule(*BINARY)
def broadcast_both(call: Call) -> Shape:
    return broadcast(call.shape(0), call.shape(1))


@shape_rule(*GRADIENTS)
def merged(call: Call) -> Shape:
    return merge(call.shape(0), call.shape(1))


@shape_rule("FakeQuantWithMinMaxVars")
def fake_quant(call: Call) -> Shape:
    of_rank(call.shape(1), 0)
    of_rank(call.shape(2), 0)
    return call.shape(0)


@shape_rule("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(call: Call) -> Shape:
    return at_least(call.shape(0), 1)


@shape_rule("IdentityN")
def identity_n(call: Call) -> Sequence[Shape]:
    return call.inputs


@shape_rule("AddN", "AccumulateNV2")
def add_n(call: Call) -> Shape:
    result = UNKNOWN
    for shape in call.inputs:
        result = merge(result, shape)
    return result


@shape_rule("Select")
def select(call: Call) -> Shape:
    """The condition is of the values' shape, or a scalar, or a vector as long as their first dimension."""
    condition, chosen = call.shape(0), merge(call.shape(1), call.shape(2))
    if condition.rank is None or condition.rank in (0, 1) or chosen.rank is None:
        return chosen
    return merge(condition, chosen)


@shape_rule("SelectV2")
def select_v2(call: Call) -> Shape:
    return broadcast(call.shape(0), broadcast(call.shape(1), call.shape(2)))


@shape_rule("BiasAdd", "BiasAddV1")
def bias_add(call: Call) -> Shape:
    value, (bias,) = at_least(call.shape(0), 2), of_rank(call.shape(1), 1)
    if value.dims is None or bias is None:
        return value
    channel = 1 if call.attr("data_format", "NHWC") == "NCHW" else len(value.dims) - 1
    return merge(value, Shape(bias if i == channel else None for i in range(len(value.dims))))
