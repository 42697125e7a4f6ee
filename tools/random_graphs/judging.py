"""Compares what we compute with what TensorFlow computed: node by node on TensorFlow's inputs, and whole graphs."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph import Session
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, canonical, opdefs
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import registry
from pocketgraph.runtime.planning import partitioning
from random_graphs.known import explained, is_wild

partitioning.LEAST_PART_NODES = 0  # type: ignore[attr-defined]  # single nodes go to LiteRT as well, where a session finds them too small

WORKER = pathlib.Path(__file__).parent / "worker.py"
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
TINY = {"float16": 7e-5}
SUMMED = frozenset((
    "Sum", "Prod", "EuclideanNorm", "Cumsum", "Cumprod", "CumulativeLogsumexp", "MatMul", "SparseMatMul",
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput",
    "Conv3D", "SegmentProd", "UnsortedSegmentSum",
    "UnsortedSegmentProd", "L2Loss",
    "AddN", "AccumulateNV2",
    "RFFT2D", "RFFT3D", "IRFFT2D", "IRFFT3D", "Softmax", "SparseSoftmax", "LogSoftmax", "LRN", "Bincount",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
    "BatchNormWithGlobalNormalization", "ResizeBilinear", "ResizeBicubic", "ResizeArea", "CropAndResize",
    "MatrixInverse", "MatrixDeterminant", "Cholesky", "Cross", "LinSpace", "Range", "FFT", "IFFT", "FFT2D",
    "IFFT2D", "FFT3D", "IFFT3D", "RFFT", "IRFFT", "DenseBincount", "ScatterNd", "TensorScatterAdd",
    "TensorScatterSub", "ScatterNdNonAliasingAdd", "AvgPool3DGrad",
))  # fmt: skip
"""Ops whose sums have an order of their own: bounded by the largest element, not each by itself."""
LINEAR = frozenset((
    "AvgPoolGrad", "Conv2DBackpropFilter", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2", "Conv3DBackpropInput",
    "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput",
    "BiasAddGrad", "Mean", "AvgPool", "AvgPool3D", "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient", "SegmentSum", "SegmentMean", "SparseSegmentSum", "SparseSegmentMean",
    "SparseSegmentSqrtN", "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments", "Dilation2DBackpropFilter", "Dilation2DBackpropInput",
    "CropAndResizeGradImage", "MaxPoolGradWithArgmax", "ResizeBilinearGrad", "ResizeNearestNeighborGrad",
    "SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGradV2",
    "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "MirrorPadGrad", "TileGrad", "SparseTensorDenseMatMul",
    "FusedPadConv2D", "FusedResizeAndPadConv2D", "Einsum", "Conv",
))  # fmt: skip
"""Ops that add products: bounded by the sum of the terms' sizes, which is what the op makes of its inputs' sizes."""
SINGLE = frozenset((
    "ResizeBilinearGrad", "ResizeBicubicGrad", "CTCLoss", "CTCBeamSearchDecoder", "FusedResizeAndPadConv2D",
))  # fmt: skip
"""Ops that TensorFlow computes in float32 for doubles too."""
LOOSE = {
    "Softmax": 3.0, "Conv3D": 4.0, "ResizeBilinearGrad": 4.0, "Conv2DBackpropFilter": 4.0,
    "AdjustContrastv2": 16.0, "AdjustHue": 16.0, "AdjustSaturation": 8.0,
    "MatrixSolve": 32.0, "MatrixSolveLs": 64.0,
    "MatrixTriangularSolve": 32.0, "BandedTriangularSolve": 256.0,
    "GRUBlockCell": 12.0, "LSTMBlockCell": 12.0, "BlockLSTM": 24.0, "BlockLSTMV2": 24.0,
    "CTCBeamSearchDecoder": 24.0, "CTCLoss": 32.0, "FusedBatchNorm": 24.0, "FusedBatchNormV2": 24.0,
    "FusedBatchNormV3": 24.0, "MatrixInverse": 32.0, "MatrixDeterminant": 16.0, "LogMatrixDeterminant": 16.0,
    "SparseSoftmaxCrossEntropyWithLogits": 16.0, "SoftmaxCrossEntropyWithLogits": 16.0, "Svd": 16.0,
    "SelfAdjointEigV2": 16.0, "Mfcc": 32.0, "AudioSpectrogram": 16.0,
    "FusedBatchNormGrad": 24.0, "FusedBatchNormGradV2": 24.0, "FusedBatchNormGradV3": 24.0, "LRNGrad": 5.0,
    "MaxPoolGrad": 8.0, "MaxPoolGradV2": 8.0, "CropAndResizeGradBoxes": 64.0,
    "MaxPool3DGrad": 16.0, "ScaleAndTranslate": 6.0, "ScaleAndTranslateGrad": 6.0, "ImageProjectiveTransformV2": 64.0,
    "ImageProjectiveTransformV3": 64.0, "ResizeBicubic": 6.0, "ResizeArea": 8.0, "ResizeBicubicGrad": 8.0,
}  # fmt: skip
"""What is allowed more than two units of the largest element, where TensorFlow rounds in between."""

DECOMPOSED = ("MatrixSolveLs", "MatrixInverse", "MatrixSolve")
"""Ops that refuse what is singular, which matrices with infinities may be or not."""
BY_ELEMENT = {"Erf": 3.0, "Erfc": 6.0, "Softplus": 4.0, "NonMaxSuppressionV5": 8.0, "Sigmoid": 3.0,
              **dict.fromkeys(("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselK0", "BesselK0e", "BesselK1",
                               "BesselK1e", "Dawsn", "Expint"), 10.0)}  # fmt: skip
"""The same in units of each element: functions that TensorFlow approximates in float32, products of such."""


@dataclass(frozen=True)
class Find:
    """A disagreement.

    Attributes:
        kind: ``differs``, ``refused`` (only by us), ``accepted`` (only by us), ``engine`` (LiteRT or the session).
        op: the op, or the engine.
        text: what was computed and what was expected.
        node: the node's name.
    """

    kind: str
    op: str
    text: str
    node: str


def ulps(actual: Array, expected: Array, sizes: Array, single: bool = False) -> tuple[float, str]:
    """The largest difference in units in the last place of ``sizes``, and where it is."""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    mine, theirs = actual.astype(wide).ravel(), expected.astype(wide).ravel()
    with np.errstate(all="ignore"):
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        finite = np.isfinite(mine) & np.isfinite(theirs)
        if not (same | finite).all():
            at = int(np.argmin(same | finite))
            return np.inf, f"{mine[at]!r} instead of {theirs[at]!r}"
        if same.all():
            return 0.0, ""
        size = np.broadcast_to(sizes, expected.shape).ravel()[finite]
        kind = (
            {"float64": "float32", "complex128": "complex64"}.get(name := expected.dtype.name, name)
            if single
            else (expected.dtype.name)
        )
        smallest = TINY.get(
            kind, float(np.finfo(np.float32 if kind in ("float32", "complex64", "bfloat16") else np.float64).tiny)
        )
        unit = EPSILON.get(kind, 2.0**-52) * np.maximum(size, smallest)
        floor = smallest if by_flushing(kind) else 0.0  # TensorFlow takes what is smaller for 0
        off = np.maximum(np.abs(mine[finite] - theirs[finite]) - floor, 0) / unit
    at = int(np.argmax(off))
    return float(off[at]), f"{mine[finite][at]!r} instead of {theirs[finite][at]!r}"


def by_flushing(kind: str) -> bool:
    return kind in ("float32", "complex64", "bfloat16", "float16")


def sizes_of(node: Node, inputs: list[Any], port: int, expected: Array) -> Array:
    """What the units in the last place are units of: each element, the largest, or the sum of the terms' sizes."""
    size = np.abs(expected.astype(np.complex128 if expected.dtype.kind == "c" else np.float64))
    finite = size[np.isfinite(size)]
    if node.op in LINEAR:
        linear = {"Crop": (0,), "Dila": (2,), "Fake": (0,)}.get(node.op[:4], range(len(inputs)))
        plain = [np.abs(v) if v.dtype.kind in "fcV" and n in linear else v for n, v in enumerate(inputs)]
        terms = np.asarray(registry.evaluate(node, plain)[port]).astype(np.float64)
        return np.asarray(np.where(np.isfinite(terms), np.maximum(terms, size), size))
    if node.op in ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"):  # logits less their largest
        logits = np.abs(inputs[0].astype(np.float64))
        return np.asarray(max(v[np.isfinite(v)].max(initial=0) for v in (logits, size)))
    if node.op in SUMMED or node.op in LOOSE:
        return np.asarray(finite.max() if finite.size else 0.0)
    return size


def difference(actual: Any, expected: Array, allowed: float, sizes: Array | None = None, single: bool = False) -> str:
    """What is wrong with a result; "" when nothing is."""
    if not isinstance(actual, np.ndarray):
        return f"a {type(actual).__name__}"
    if actual.dtype != expected.dtype:
        return f"type {actual.dtype} instead of {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    if expected.dtype.kind in "OiubSU":
        equal = np.asarray(actual == expected)
        if equal.all():
            return ""
        at = int(np.argmin(equal.ravel()))
        return f"{actual.ravel()[at]!r} instead of {expected.ravel()[at]!r}"
    off, text = ulps(actual, expected, np.abs(expected) if sizes is None else sizes, single)
    return f"{off:.1f} ulp: {text}" if off > allowed else ""


def judge_nodes(
    graph: Graph, theirs: Mapping[str, Array], refusals: Mapping[str, str], allowed: float = 2.0
) -> list[Find]:
    """Each node by itself, on the inputs that TensorFlow had."""
    finds = []
    for node in graph:
        if node.op in ("Const", "Placeholder"):
            continue
        inputs = [theirs.get(canonical(ref)) for ref in node.data_inputs]
        if any(value is None for value in inputs):
            continue
        try:
            with np.errstate(all="ignore"):
                results = registry.evaluate(node, inputs)
        except PocketgraphError as error:
            if node.name not in refusals:
                kind = "known" if node.op == "Cholesky" or (node.op in DECOMPOSED and is_wild(inputs)) else "refused"
                finds.append(Find(kind, node.op, str(error)[:300], node.name))
            continue
        if node.name in refusals:
            finds.append(Find("accepted", node.op, refusals[node.name][:200], node.name))
            continue
        for port, result in enumerate(results):
            expected = theirs.get(f"{node.name}:{port}")
            if port and not (node.attrs.get("compute_v", True) and node.attrs.get("compute_uv", True)):
                continue  # memory as it was
            if expected is None or (
                node.op.startswith("FusedBatchNorm") and port >= 3 - 2 * (not node.attrs["is_training"])
            ):
                continue
            bound = (LOOSE | BY_ELEMENT).get(
                node.op, 4 * allowed if node.op in LINEAR and expected.dtype.itemsize == 2 else allowed
            )
            bound *= 2 if expected.dtype.kind == "c" else 1  # a product of complex numbers is four, and two sums
            with np.errstate(all="ignore"):
                sizes = sizes_of(node, inputs, port, expected) if expected.dtype.kind in "fcV" else None
                text = difference(result, expected, bound, sizes, node.op in SINGLE)
            if text:
                known = explained(node, inputs, result, expected)
                finds.append(Find("known" if known else "differs", node.op, known or f"port {port}: {text}", node.name))
                break
    return finds


def judge_session(
    graph: Graph, feeds: Mapping[str, Array], theirs: Mapping[str, Array], engine: str | None, relative: float
) -> list[Find]:
    """The whole graph at once, the ends of it fetched; values that are not finite are not held against LiteRT."""
    used = {canonical(ref) for node in graph for ref in node.inputs}
    left_out = ("Const", "Placeholder", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    left_out += ("Svd", "SelfAdjointEigV2")  # beside the values, memory as it was
    left_out += ("SerializeTensor", "AsString", "StringFormat")  # floats as texts, as in summaries
    fetches = [
        ref for ref in theirs
        if ref not in used and (op := graph[ref.partition(":")[0]].op) not in left_out and "Summary" not in op
    ]  # fmt: skip
    if not fetches or (engine is None and is_wild(list(theirs.values()))):
        return []
    name = engine or "best"
    try:
        with tempfile.TemporaryDirectory() as cache, Session(graph, 1, engine=engine, cache_dir=cache) as session:
            results = session.run(fetches, dict(feeds))
    except Exception as error:  # anything else than our own errors is a find as well
        return [Find("engine", name, f"{type(error).__name__}: {error}"[:300], fetches[0])]
    finds = []
    for ref, result in zip(fetches, results, strict=True):
        coarse = theirs[ref].dtype.name in ("float16", "bfloat16")
        text = loose_difference(result, theirs[ref], relative * 1e4 if coarse else relative)
        if text:
            node: Node = graph[ref.partition(":")[0]]
            finds.append(Find("engine", f"{name} {node.op}", text, ref))
    return finds


def loose_difference(result: Array, expected: Array, relative: float) -> str:
    if result.dtype != expected.dtype:
        return f"type {result.dtype} instead of {expected.dtype}"
    if result.shape != expected.shape:
        return f"shape {list(result.shape)} instead of {list(expected.shape)}"
    if expected.dtype.kind in "OiubSU":
        return difference(result, expected, 0)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    mine, right = result.astype(wide), expected.astype(wide)
    finite = np.isfinite(right)
    if not (np.isfinite(mine) == finite).all():
        return "values that are not finite are elsewhere"
    if expected.dtype.kind == "f" and not np.array_equal(mine[~finite], right[~finite], equal_nan=True):
        return "NaN for infinity, or the other way round, or an infinity of the other sign"
    if not finite.any():
        return ""
    bound = relative * max(1e-3, float(np.abs(right[finite]).max()))
    off = np.abs(mine[finite] - right[finite])
    return f"off by {off.max():.3g}, allowed {bound:.3g}" if off.max() > bound else ""


def value_dtype_ok(node: Node) -> bool:
    """Whether every output has a type that can be fetched."""
    return all(kind is None or kind.name not in ("resource", "variant") for kind in opdefs.output_dtypes(node))
