"""What each op may be given: the table of rules, and the families that need none.

A rule asks the growing graph for fitting inputs and picks attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketgraph.graph import DType
from random_graphs.growth import Growth

Given = tuple[list[str], dict[str, Any]]
Rule = Callable[[Growth], Given]
RULES: dict[str, Rule] = {}
SPATIAL = {b"NHWC": (1, 2), b"NCHW": (2, 3)}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for op in ops:
            RULES[op] = function
        return function

    return register


def index(g: Growth, attr: str = "Tidx") -> DType:
    return g.types.get(attr, DType.named("int32"))


BROADCASTING = frozenset((
    "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "TruncateDiv", "Mod", "FloorMod", "TruncateMod",
    "DivNoNan", "MulNoNan", "Pow", "Maximum", "Minimum", "SquaredDifference", "Atan2", "Equal", "NotEqual", "Less",
    "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "LeftShift", "RightShift", "Xlogy", "Xdivy", "Xlog1py", "Igamma", "Igammac", "Zeta", "Polygamma", "NextAfter",
    "Complex", "SelectV2", "StringJoin",
))  # fmt: skip
ALIKE = frozenset((
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Conj", "Cos", "Cosh", "Digamma", "Elu",
    "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "Floor", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu",
    "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri", "Neg", "PopulationCount", "Reciprocal", "Relu", "Relu6", "Rint",
    "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Square", "Tan",
    "Tanh", "ApproximateEqual", "EluGrad", "InvGrad", "ReciprocalGrad", "ReluGrad", "Relu6Grad", "LeakyReluGrad",
    "RsqrtGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad", "Betainc",
    "ComplexAbs", "Real", "Imag", "Angle", "IdentityN", "ShapeN", "StringLower", "StringUpper", "StringStrip",
    "StringLength", "EncodeBase64", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1",
    "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Expint", "FresnelCos",
    "FresnelSin", "Spence",
))  # fmt: skip
