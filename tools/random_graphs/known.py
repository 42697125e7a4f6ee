"""Which differences from TensorFlow are known and explained: those of docs/exactness.md, as tests on values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.tensor import Array

UNORDERED = frozenset((
    "TopK", "TopKV2", "NthElement", "MaxPool3D", "MaxPool3DGrad", "SegmentMax", "SegmentMin",
    "UnsortedSegmentMax", "UnsortedSegmentMin", "MaxPoolGradWithArgmax",
    "SparseReduceMax", "SparseReduceMaxSparse", "FractionalMaxPoolGrad", "LRNGrad", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput", "MatrixSolveLs",
    "IsotonicRegression", "TensorScatterMax", "TensorScatterMin", "ArgMax",
    "ArgMin", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "MaxPool", "MaxPoolV2",
    "MaxPoolWithArgmax", "MaxPoolGrad", "MaxPoolGradV2", "Unique", "UniqueV2", "UniqueWithCounts",
    "UniqueWithCountsV2", "CropAndResizeGradBoxes", "Dilation2DBackpropFilter", "Dilation2DBackpropInput",
))  # fmt: skip
"""Ops in which a NaN is where TensorFlow's order of comparisons, padding or vectors puts it."""
CLOSE = {
    "Elu": 3e-7, "Selu": 3e-7, "EluGrad": 3e-7, "SeluGrad": 3e-7, "Sigmoid": 3e-7, "Digamma": 2e-6, "Erfinv": 3e-6,
    "Igamma": 1e-4, "Igammac": 1e-4, "Betainc": 1e-5, "Erfc": 1e-14, "TanhGrad": 1e-14, "Rsqrt": 1e-14,
    "Tanh": 1e-15, "Lgamma": 1e-5, "Zeta": 1e-5, "Polygamma": 1e-4,
    "Log1p": 1e-6, "Xlogy": 1e-6, "Xlog1py": 1e-6, "Expm1": 1e-6, "RGBToHSV": 1e-6, "LRN": 1e-6, "Tan": 1e-6,
    "RandomStandardNormal": 3e-6, "TruncatedNormal": 3e-6, "StatelessRandomNormal": 3e-6, "Ndtri": 1e-5,
    "StatelessRandomNormalV2": 3e-6, "StatelessTruncatedNormal": 3e-6, "StatelessTruncatedNormalV2": 3e-6,
    "FusedBatchNormGrad": 1e-5, "FusedBatchNormGradV2": 1e-5, "FusedBatchNormGradV3": 1e-5,
    "BesselJ0": 2e-6, "BesselJ1": 2e-6, "BesselY0": 4e-6, "BesselY1": 4e-6, "FresnelCos": 4e-6, "FresnelSin": 4e-6,
    "Spence": 2e-6, "Expint": 2e-6,
    "Pow": 1e-6, "Atanh": 1e-6, "Asinh": 1e-6, "Acosh": 1e-6,
}  # fmt: skip
"""Ops within this share of the larger of 1 and the result: series, cancellation near 0, approximations."""
COARSE = {"float16": 4e-3, "bfloat16": 3e-2}
"""The same for 16-bit results of ops in which TensorFlow rounds in between."""
ROUNDED = frozenset((
    "Elu", "Selu", "EluGrad", "SeluGrad", "TanhGrad", "SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "RsqrtGrad",
    "SqrtGrad", "InvGrad", "ReciprocalGrad", "Sum", "Mean", "Prod", "Cumprod", "Cumsum", "SegmentProd", "SegmentMean",
    "SegmentSum", "Softplus", "UnsortedSegmentProd", "UnsortedSegmentSum", "RGBToHSV", "HSVToRGB", "LRN", "Softmax",
    "LogSoftmax",
    "Digamma", "Dilation2DBackpropFilter", "Dilation2DBackpropInput", "CumulativeLogsumexp", "EuclideanNorm",
    "LSTMBlockCell", "GRUBlockCell", "BlockLSTM", "BlockLSTMV2",
    "SparseReduceSum", "SparseReduceSumSparse", "DivNoNan", "Xlogy", "Xdivy", "Xlog1py", "SquaredDifference",
    "AddN", "AccumulateNV2", "BiasAddGrad", "L2Loss", "RandomStandardNormal", "TruncatedNormal", "Lgamma",
    "StatelessRandomNormal", "StatelessRandomNormalV2", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2",
    "BatchNormWithGlobalNormalization", "LRNGrad", "Erfinv", "Ndtri", "Zeta", "Polygamma", "Betainc",
))  # fmt: skip

SQUARES_OVERFLOW = {"float32": 1e18, "float64": 1e150, "complex64": 1e18, "complex128": 1e150}
"""Beyond this, TensorFlow's squares (of pivots to be compared, of a norm's terms) are infinite."""


def is_wild(inputs: Sequence[Any]) -> bool:
    """Whether a float input holds what is not finite."""
    return any(isinstance(v, np.ndarray) and v.dtype.kind in "fcV" and not np.isfinite(v).all() for v in inputs)


def wild_quotients(x: Array, y: Array, dtype: np.dtype[Any]) -> bool:
    """Whether a quotient is smaller than the smallest normal number."""
    quotients = np.abs(x / y)
    return bool(
        ((quotients > 0) & (quotients < np.finfo(np.float64 if dtype == np.float64 else np.float32).tiny)).any()
    )


def ill_conditioned(matrix: Array, mine: Array, theirs: Array) -> bool:
    """Whether a matrix's condition is enough to tell two results apart so far."""
    wide = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    if not np.isfinite(wide).all() or not wide.size:
        return False
    kind = np.float32 if matrix.dtype.name in ("float32", "complex64") else np.float64
    bound = 8 * float(np.finfo(kind).eps) * float(np.linalg.cond(wide).max()) * float(np.abs(theirs).max(initial=0))
    return bool((np.abs(mine - theirs) <= bound).all())


def of_op(node: Node, inputs: Sequence[Any], expected: Array) -> str:
    """Why the op's results may differ whatever they are; "" when nothing says so."""
    if node.op == "Round" and expected.dtype.kind in "iu":
        return "Round of integers: 0 in TensorFlow 2"
    if node.op == "Cast" and expected.dtype.kind in "iub":
        return "Cast of what does not fit: undefined in C++"
    if node.op == "BesselY1" and (inputs[0] == 0).any():
        return "BesselY1 at 0: NaN in some of TensorFlow's kernels"
    if node.op == "Erf" and inputs[0].dtype == np.float64 and np.isinf(inputs[0]).any():
        return "Erf of double at infinity: NaN in TensorFlow"
    if (
        node.op in ("BesselJ0", "BesselJ1", "BesselY0", "BesselY1")
        and (np.abs(inputs[0].astype(np.float64)) > 1e4).any()
    ):
        return "Bessel functions of large numbers: their phase is rounded to the type"
    if node.op.startswith("BesselI") and (np.abs(inputs[0].astype(np.float64)) > 700).any():
        return "modified Bessel functions whose e^x overflows"
    if node.op == "Dawsn" and (inputs[0].astype(np.float64) < -1e9).any():
        return "Dawsn below -1e9: TensorFlow's has the wrong sign"
    if node.op.startswith("Fresnel") and (np.abs(inputs[0].astype(np.float64)) > 30).any():
        return "Fresnel's integrals of large numbers: their squares are rounded to float32"
    if node.op == "NotEqual" and str(node.attrs.get("T")) == "qint32":
        return "NotEqual of qint32: compared as floats"
    if node.op == "EuclideanNorm" and expected.dtype.kind in "iu" and np.abs(inputs[0].astype(np.float64)).max() > 3e4:
        return "squares of integers overflow"
    return ""


def explained(node: Node, inputs: Sequence[Any], result: Any, expected: Array) -> str:
    """Why the results may differ; "" when nothing says so."""
    reason = of_op(node, inputs, expected)
    if reason:
        return reason
    if not isinstance(result, np.ndarray) or result.shape != expected.shape or result.dtype != expected.dtype:
        return ""
    floats = [v for v in inputs if isinstance(v, np.ndarray) and v.dtype.kind in "fcV"]
    with np.errstate(all="ignore"):
        wild = is_wild(inputs)
        missing = any(np.isnan(v).any() for v in floats)
        if wild and node.op in ("MatrixTriangularSolve", "MatrixSolveLs"):
            return "infinities in a system of equations: the order of steps"
        if missing and node.op in UNORDERED:
            return "where NaN goes"
        if expected.dtype.kind not in "fcV":
            return ""
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        mine, theirs = result.astype(wide), expected.astype(wide)
        finite = np.isfinite(mine) & np.isfinite(theirs)
        largest = max((np.abs(v[np.isfinite(v)].astype(wide)).max(initial=0) for v in floats), default=0)
        if node.op == "Betainc" and (missing or wild or largest >= 1e8):
            return "Betainc of NaN or of large numbers: TensorFlow's branches and series"
        if node.op in ("MatrixInverse", "MatrixSolve") and finite.all() and ill_conditioned(floats[0], mine, theirs):
            return "a matrix that is nearly singular"
        if expected.dtype.kind == "c" and (wild or not finite.all()):
            return "complex numbers that are not finite"
        if not (finite | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))).all():
            if expected.dtype.itemsize == 2 and (wild or largest > 100 or "Prod" in node.op or "prod" in node.op):
                return "16-bit floats overflow in between"
            if node.op == "EuclideanNorm" and largest > SQUARES_OVERFLOW.get(expected.dtype.name, np.inf):
                return "squares overflow"
            huge = largest > 1e4
            overflow = finite | ~(np.isnan(mine) & np.isfinite(theirs))
            return "an intermediate value overflows" if (wild or largest > 1e30) and huge and overflow.all() else ""
        if expected.dtype.kind == "c" and largest > SQUARES_OVERFLOW.get(expected.dtype.name, np.inf):
            return "complex numbers whose squares overflow"
        if node.op in ("Igamma", "Igammac") and largest >= 1e8:
            return "incomplete gamma functions of large a"
        if node.op == "FloorDiv" and wild_quotients(floats[0].astype(wide), floats[1].astype(wide), expected.dtype):
            return "quotients that TensorFlow takes for 0"
        return within_bound(node, mine, theirs, finite, expected.dtype)


def within_bound(node: Node, mine: Array, theirs: Array, finite: Array, kind: np.dtype[Any]) -> str:
    """Says so where what is finite differs by no more than docs/exactness.md allows the op; "" else."""
    share = CLOSE.get(node.op, 0.0)
    if kind.name == "complex64" and node.op in ("Sigmoid", "TanhGrad", "SigmoidGrad"):  # 1 + e^-x near 0
        share = 1e-6 * max(1.0, float(np.abs(theirs[finite]).max(initial=0)))
    if kind.kind == "c" and node.op == "Log":  # of numbers of size 1, whose logarithm's real part is 0
        share = 4 * float(np.finfo(kind).eps)
    if node.op in ROUNDED:
        share = max(share, COARSE.get(kind.name, 0.0))
    off = np.abs(mine - theirs)[finite] > share * np.maximum(1, np.abs(theirs[finite]))
    return "" if off.any() or not share else "within its stated bound"
