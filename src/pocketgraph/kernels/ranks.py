"""Which rank each input of an op must have, as TensorFlow's kernels demand it.

A row's letters stand for the inputs: a digit is the rank, ``s`` a scalar or, where TensorFlow did not know it before, a
vector of one, ``v`` a scalar or a vector, ``=`` the first input's shape,
``#`` as many elements as the first input has, ``*`` anything; ``…`` after a letter that it goes for all of a list.
What else an op demands of its inputs, its kernel says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from pocketgraph.errors import RunError

ROWS = {
    "032221111333333333": "BlockLSTMGrad BlockLSTMGradV2",
    "2222111122222222": "LSTMBlockCellGrad",
    "0": "DecodeBmp DecodeImage DecodePng DecodeWav DecodeWebP ExtractJpegShape ParseTensor",
    "1": (
        "InvertPermutation RandomStandardNormal RandomUniform StatelessRandomGetKeyCounter "
        "StatelessRandomGetKeyCounterAlg TruncatedNormal Unique UniqueWithCounts"
    ),
    "2": "AudioSpectrogram",
    "4": (
        "AvgPool DepthToSpace ExtractImagePatches FractionalAvgPool FractionalMaxPool LRN MaxPool "
        "MaxPoolWithArgmax SpaceToDepth"
    ),
    "5": "AvgPool3D MaxPool3D",
    "*#": "InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad",
    "*0": (
        "AdjustContrastv2 AdjustHue AdjustSaturation ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp "
        "DecodePaddedRaw Fingerprint NthElement RegexFullMatch TopKV2"
    ),
    "*1": (
        "BiasAdd BiasAddV1 BroadcastTo ConjugateTranspose IRFFT IRFFT2D RFFT RFFT2D Reverse "
        "ReverseSequence ReverseV2 SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum Tile Transpose "
        "UniqueV2 UniqueWithCountsV2"
    ),
    "*2": "MirrorPad MirrorPadGrad Pad",
    "*v": "Reshape",
    "*=": (
        "ApproximateEqual EluGrad FakeQuantWithMinMaxArgsGradient LeakyReluGrad Relu6Grad ReluGrad SeluGrad "
        "SoftplusGrad SoftsignGrad"
    ),
    "0*": "Split",
    "10": "StringSplit StringSplitV2",
    "11": (
        "BroadcastArgs BroadcastGradientArgs ListDiff RaggedFillEmptyRowsGrad SparseFillEmptyRowsGrad "
        "StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt StatelessTruncatedNormal "
        "UnicodeEncode"
    ),
    "14": "AvgPoolGrad",
    "15": "AvgPool3DGrad",
    "20": "EncodeWav Multinomial",
    "21": "InTopK SparseSoftmaxCrossEntropyWithLogits",
    "22": "LowerBound MatMul SparseMatMul UpperBound",
    "30": "Mfcc",
    "31": "CTCBeamSearchDecoder CTCGreedyDecoder",
    "41": "ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ResizeNearestNeighborGrad",
    "42": "BatchToSpace SpaceToBatch",
    "43": "Dilation2D DrawBoundingBoxes",
    "44": "Conv2D DepthwiseConv2dNative ResizeBicubicGrad ResizeBilinearGrad",
    "55": "Conv3D",
    "=…": "AccumulateNV2 AddN",
    "v*": "Fill",
    "v1": "UnravelIndex",
    "**0": (
        "GatherV2 MatrixSolveLs UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd "
        "UnsortedSegmentSum"
    ),
    "**1": "ScatterNd",
    "**v": "MatrixSetDiagV2 MatrixSetDiagV3",
    "*0*": "Bincount",
    "*00": (
        "BatchMatrixBandPart FakeQuantWithMinMaxVars MatrixBandPart QuantizeDownAndShrinkRange "
        "QuantizedInstanceNorm QuantizedRelu QuantizedRelu6 RegexReplace"
    ),
    "*1*": "InplaceAdd InplaceSub InplaceUpdate",
    "*10": "HistogramFixedWidth",
    "*1s": "SplitV",
    "*11": "FakeQuantWithMinMaxVarsPerChannel Slice SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum",
    "*20": "PadV2",
    "*v*": "RaggedRange",
    "*vs": "MatrixDiagPartV2 MatrixDiagPartV3",
    "*vv": "Roll",
    "*v…": "DecodeCSV",
    "*…s": "ConcatV2",
    "s*…": "Concat",
    "000": "LinSpace ShardedFilename",
    "sss": "Range",
    "01…": "ConcatOffset",
    "100": "RandomUniformInt",
    "144": "Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput",
    "155": "Conv3DBackpropInputV2",
    "201": "StatelessMultinomial",
    "210": "InTopKV2 NonMaxSuppression",
    "211": "SerializeManySparse SerializeSparse SetSize SparseReorder SparseReshape SparseSoftmax",
    "4**": "MaxPoolV2",
    "400": "QuantizedAvgPool QuantizedMaxPool",
    "412": "ExtractGlimpse ExtractGlimpseV2",
    "414": "Conv2DBackpropFilter DepthwiseConv2dNativeBackpropFilter",
    "421": "ImageProjectiveTransformV2",
    "432": "DrawBoundingBoxesV2",
    "434": "Dilation2DBackpropFilter Dilation2DBackpropInput",
    "4==": "LRNGrad",
    "444": "MaxPoolGrad MaxPoolGradGrad MaxPoolGradWithArgmax",
    "515": "Conv3DBackpropFilterV2",
    "555": "Conv3DBackpropFilter Conv3DBackpropInput MaxPool3DGrad MaxPool3DGradGrad",
    "*000": "AdjustContrast OneHot",
    "*1**": "QuantizedReshape",
    "*1*0": "SparseToDense",
    "*110": (
        "SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtNGrad "
        "SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSumGrad SparseSegmentSumGradV2 "
        "SparseSegmentSumWithNumSegments"
    ),
    "*111": "StridedSlice",
    "*211": "DenseToSparseSetOperation",
    "*=00": "FakeQuantWithMinMaxVarsGradient",
    "0211": "SparseSplit",
    "1*0*": "RaggedBincount",
    "1100": "RaggedFillEmptyRows StatelessRandomUniformInt",
    "1110": (
        "StatelessRandomNormalV2 StatelessRandomUniformFullIntV2 StatelessRandomUniformV2 StatelessTruncatedNormalV2"
    ),
    "1212": "SparseSliceGrad",
    "1222": "SparseAddGrad",
    "1411": "FractionalAvgPoolGrad",
    "2100": "NonMaxSuppressionV2",
    "211*": "SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseTensorDenseAdd",
    "2110": "SparseFillEmptyRows",
    "2111": "SparseCountSparseOutput",
    "2112": "SparseTensorDenseMatMul",
    "211v": "SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse",
    "22*…": "_FusedMatMul",
    "3211": "CTCLoss",
    "4100": "QuantizedResizeBilinear",
    "4111": "ScaleAndTranslate",
    "4210": "ImageProjectiveTransformV3",
    "4211": "CropAndResize CropAndResizeGradImage",
    "4411": "ScaleAndTranslateGrad",
    "4421": "CropAndResizeGradBoxes",
    "*0000": "Requantize",
    "*111*": "TensorStridedSliceUpdate",
    "*1111": "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    "*v000": "MatrixDiagV2 MatrixDiagV3",
    "1111*": "StridedSliceGrad",
    "21000": "NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionWithOverlaps",
    "2110*": "SparseBincount",
    "21111": "SparseSlice",
    "41111": "BatchNormWithGlobalNormalization",
    "41114": "BatchNormWithGlobalNormalizationGrad",
    "44111": "FusedBatchNormGrad",
    "**111": "FusedBatchNormGradV2",
    "**111*": "FusedBatchNormGradV3",
    "444**": "MaxPoolGradGradV2 MaxPoolGradV2",
    "44411": "FractionalMaxPoolGrad",
    "**0000": "QuantizedAdd QuantizedMul",
    "*10000": "QuantizedBiasAdd",
    "111000": "StatelessRandomUniformIntV2",
    "210000": "NonMaxSuppressionV5",
    "211211": "EditDistance SparseSparseMaximum SparseSparseMinimum SparseToSparseSetOperation",
    "220000": "QuantizedMatMul",
    "222211": "GRUBlockCell",
    "430000": "CombinedNonMaxSuppression",
    "440000": "QuantizedConv2D",
    "2112110": "SparseAdd",
    "22221111": "LSTMBlockCell",
    "032221111": "BlockLSTM BlockLSTMV2",
    "2222112222": "GRUBlockCellGrad",
}
RANKS = {op: row for row, ops in ROWS.items() for op in ops.split()}
RANK_NAMES = {"0": "a scalar", "s": "a scalar", "1": "a vector", "2": "a matrix", "v": "a scalar or a vector"}


@lru_cache(maxsize=1024)
def letters(op: str, count: int) -> str:
    """One letter for each of ``count`` inputs of an op; "" when nothing is demanded."""
    row = RANKS.get(op, "")
    place = row.find("…")
    return row if place < 0 else row[: place - 1] + row[place - 1] * (count - len(row) + 2) + row[place + 1 :]


def wrong_input(op: str, shapes: Sequence[Sequence[int]]) -> str:
    """What is wrong with the shapes of an op's inputs, one sentence; "" when each has a rank that the op takes."""
    for number, (letter, shape) in enumerate(zip(letters(op, len(shapes)), shapes, strict=False)):
        if not _fits(letter, shape, shapes[0]):
            name = _name(op, number)
            if letter in "=#":
                what = "the same shape" if letter == "=" else "as many elements"
                return f"{name} must have {what} as {_name(op, 0)}: {list(shape)} and {list(shapes[0])}"
            return f"{name} must be {RANK_NAMES.get(letter) or f'{letter}-dimensional'}, its shape is {list(shape)}"
    return ""


def has_wrong_rank(op: str, known: Mapping[int, Any]) -> bool:
    """Whether one of an op's inputs that are known already, by position, has a rank that it may not have."""
    row = RANKS.get(op, "")
    if not row or "…" in row:
        return False
    return any(
        number < len(row) and row[number] not in "*=#s" and not _fits(row[number], value.shape, ())
        for number, value in known.items()
    )


def _fits(letter: str, shape: Sequence[int], first: Sequence[int]) -> bool:
    if letter == "*":
        return True
    if letter == "=":
        return tuple(shape) == tuple(first)
    if letter == "#":
        return math.prod(shape) == math.prod(first)
    if letter == "s":
        return not shape or tuple(shape) == (1,)
    return len(shape) < 2 if letter == "v" else len(shape) == int(letter)


def _name(op: str, number: int) -> str:
    """The name of an input, as the op's definition has it."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(op)
    if definition is None or any(a.number_attr or a.type_list_attr for a in definition.inputs):
        return f"input {number}"
    return definition.inputs[number].name


MOST_SEEN = 64
"""Shapes that are kept of one op."""


def checked(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which computes ``op``, refusing inputs of wrong ranks; itself when the op has no row here."""
    row = RANKS.get(op)
    if row is None:
        return function
    usual = {"s": 0, "v": 1} | {digit: int(digit) for digit in "0123456789"}
    quick = "…" not in row and not set(row) - usual.keys() - {"*"}
    plain = [(n, usual[letter]) for n, letter in enumerate(row) if letter in usual]

    right_before: set[tuple[tuple[int, ...], ...]] = set()  # in a loop the same shapes come in every round

    def refuse(inputs: Sequence[Any]) -> None:
        if all(isinstance(value, np.ndarray) for value in inputs):
            said = wrong_input(op, [value.shape for value in inputs])
            if said:
                raise RunError(f"{op}: {said}")

    if quick:

        @wraps(function)
        def run(*inputs: Any, **attributes: Any) -> Any:
            for number, rank in plain:
                if getattr(inputs[number], "ndim", rank) != rank:
                    refuse(inputs)
            return function(*inputs, **attributes)

        return run

    @wraps(function)
    def run_by_shapes(*inputs: Any, **attributes: Any) -> Any:
        shapes = tuple([getattr(value, "shape", ()) for value in inputs])
        if shapes not in right_before:
            refuse(inputs)
            if len(right_before) >= MOST_SEEN:
                right_before.clear()
            right_before.add(shapes)
        return function(*inputs, **attributes)

    return run_by_shapes
