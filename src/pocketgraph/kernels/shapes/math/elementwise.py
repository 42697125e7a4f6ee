"""Shape rules of element-wise functions: same shape out as in, or the two broadcast."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import broadcast, merge
from pocketgraph.kernels.shapes.common_rules import broadcast_both, merged, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "Bitcast", "Cast", "Ceil", "ClipByValue", "ComplexAbs", "Conj", "Cos", "Cosh", "Digamma", "Erf", "Erfc", "Erfinv",
    "Exp", "Expm1", "Floor", "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p",
    "LogicalNot", "Ndtri", "Neg", "PopulationCount", "Real", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign",
    "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "XlaReducePrecision", "_HostCast",
    "_UnaryOpsComposition",
)(unchanged)  # fmt: skip
shape_rule(
    "Add", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan",
    "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "NotEqual", "Polygamma",
    "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "Xlogy", "Zeta",
)(broadcast_both)  # fmt: skip
shape_rule("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")(merged)


@shape_rule("AddN", "AccumulateNV2")
def add_n(call: ShapeCall) -> Shape:
    result = UNKNOWN
    for shape in call.inputs:
        result = merge(result, shape)
    return result


@shape_rule("Select")
def select(call: ShapeCall) -> Shape:
    """The condition is of the values' shape, or a scalar, or a vector as long as their first dimension."""
    condition, chosen = call.shape(0), merge(call.shape(1), call.shape(2))
    if condition.rank is None or condition.rank in (0, 1) or chosen.rank is None:
        return chosen
    return merge(condition, chosen)


shape_rule("SelectV2")(lambda call: broadcast(call.shape(0), broadcast(call.shape(1), call.shape(2))))
