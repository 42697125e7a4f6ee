"""Whether TensorFlow Mobile's default library runs a graph: the kernels that its Android and iOS builds link.

Source: the file lists of TensorFlow 1.15's android_tensorflow_lib (android_core_ops and android_extended_ops) and the
types that register_types.h keeps there: float, int32 and bool, where a kernel does not list its own. A session places
the whole graph when it is made, so that nodes nobody needs must have kernels too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cache

from pocketgraph.errors import command_on_model, option
from pocketgraph.exporting.required_ops import kernel_class
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.runtime.unsupported_help import help_with

NAME = "tfmobile"

ANY = """
    Const Placeholder PlaceholderV2 PlaceholderWithDefault ImmutableConst NoOp Assign ParseExample ParseSingleExample
    ParseSingleSequenceExample DecodeJSONExample _Arg _Retval _ListToArray _ArrayToList SymbolicGradient RemoteCall
    Identity IdentityN StopGradient PreventGradient Snapshot RefIdentity _Send _Recv _HostSend _HostRecv Cast Reshape
    ExpandDims Squeeze Shape ShapeN Size Rank EnsureShape Bitcast Range LinSpace Variable VariableV2 TemporaryVariable
    DestroyTemporaryVariable IsVariableInitialized BroadcastArgs BroadcastGradientArgs Switch Merge Enter Exit
    NextIteration RefSwitch RefMerge RefEnter RefExit RefNextIteration LoopCond ControlTrigger Abort RefSelect Abs Add
    AddV2 BitwiseAnd BitwiseOr BitwiseXor Cos Cosh Div RealDiv TruncateDiv DivNoNan Equal NotEqual ApproximateEqual Erf
    Exp Floor FloorDiv FloorMod TruncateMod Greater GreaterEqual Invert IsFinite IsNan LeftShift RightShift Less
    LessEqual Log Maximum Minimum Mul Neg Pow Inv Reciprocal Round Rsqrt Select Sigmoid Sign Sin Sinh Sqrt Square
    SquaredDifference Sub Tan Tanh Xlogy Xdivy SigmoidGrad TanhGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad LogicalAnd
    LogicalOr LogicalNot DataFormatDimMap DataFormatVecPermute DecodeWav EncodeWav DynamicPartition Einsum FakeQuant*
    FIFOQueue FIFOQueueV2 ListDiff PopulationCount CTCGreedyDecoder CTCBeamSearchDecoder DecodeBmp DynamicStitch FFT
    FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D InTopK InTopKV2 Assert Print HashTable
    HashTableV2 LookupTable* InitializeTable* MatrixDiag MatrixDiagPart MatrixSetDiag All Any Save SaveSlices SaveV2
    Restore RestoreSlice RestoreV2 MergeV2Checkpoints ShardedFilename ShardedFilespec SparseFillEmptyRows SparseReshape
    AudioSpectrogram Mfcc Stack StackV2 StackPush* StackPop* StackClose* StringJoin *Summary TensorArray* Where Queue*
    PaddingFIFOQueue PaddingFIFOQueueV2 GetSessionHandle* GetSessionTensor DeleteSessionTensor QuantizeV2 Dequantize
    QuantizeDownAndShrinkRange RequantizationRange Requantize QuantizedRelu QuantizedRelu6 QuantizedReluX QuantizedAdd
    QuantizedMul QuantizedBatchNormWithGlobalNormalization QuantizedBiasAdd QuantizedConcat QuantizedConv2D
    QuantizedInstanceNorm QuantizedMatMul QuantizedAvgPool QuantizedMaxPool QuantizedReshape QuantizedResizeBilinear
    Multinomial RandomUniform RandomUniformInt RandomStandardNormal RandomGamma TruncatedNormal StatelessRandom*
    StatelessTruncatedNormal
"""
"""Not a trait: ops whose kernels list their own types, and are there for all that desktop builds have."""
LISTED = """
    AddN BiasAdd BiasAddV1 BiasAddGrad AssignAdd AssignSub Fill ZerosLike OnesLike Gather GatherV2 GatherNd OneHot Pack
    Unpack Slice Split SplitV StridedSlice StridedSliceGrad StridedSliceAssign ReverseSequence Concat ConcatV2
    ConcatOffset MatMul ArgMax ArgMin BatchMatMul BatchMatMulV2 CropAndResize* BatchToSpace BatchToSpaceND SpaceToBatch
    SpaceToBatchND DepthToSpace SpaceToDepth MirrorPad MirrorPadGrad Pad PadV2 Max Mean Min Prod Sum Relu Relu6 ReluGrad
    Relu6Grad ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad Reverse ReverseV2
    ScatterNd* SegmentSum SegmentMean SegmentMin SegmentMax SegmentProd UnsortedSegment* SparseToDense Tile TileGrad
    TopK TopKV2 Apply* Transpose ConjugateTranspose InvertPermutation Unique*
"""
"""Not a trait: ops with kernels for float, int32 and bool."""
FLOATING = """
    Softmax LogSoftmax NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
    NonMaxSuppressionWithOverlaps AvgPool AvgPoolGrad MaxPool MaxPoolGrad MaxPoolWithArgmax MaxPoolV2 Conv2D
    Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilter* Conv3DBackpropInput* AvgPool3D AvgPool3DGrad
    MaxPool3D MaxPool3DGrad DepthwiseConv2dNative DepthwiseConv2dNativeBackprop* FusedResizeAndPadConv2D FusedPadConv2D
    _FusedConv2D BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad FusedBatchNorm FusedBatchNormV2
    FusedBatchNormV3 FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 CheckNumerics LRN LRNGrad LeakyRelu
    LeakyReluGrad Elu EluGrad Selu SeluGrad Softplus SoftplusGrad Softsign SoftsignGrad SoftmaxCrossEntropyWithLogits
    SparseSoftmaxCrossEntropyWithLogits
"""
"""Not a trait: ops with kernels for float alone."""
QUANTIZED_TOO = re.compile(r"(Concat(V2)?|Fill|Gather(V2|Nd)?|Pack|Unpack|StridedSlice|Slice|Split)$")
"""Ops of ``LISTED`` that list the quantized types besides."""
TYPE_ATTRS = ("T", "Tparams", "dtype")
NUMBERS = ("float", "int32", "bool")


def lacking(graph: Graph) -> dict[str, str]:
    """Why the default library does not run a graph, by node; of every node, as it wants a kernel for each."""
    return {node.name: reason for node in graph if (reason := _reason(graph, node))}


def help_on_mobile(graph: Graph, name: str, needed: Mapping[str, str]) -> str:
    """What would help with a node that the default library has nothing for.

    Args:
        graph: the graph.
        name: the node.
        needed: the nodes that the outputs need.
    """
    if name not in needed:
        return "nothing needs it: transform_graph's strip_unused_nodes takes it out"
    op = graph[name].op if name in graph else ""
    if re.match(r"(Decode(Jpeg|Png|Gif|Image|Raw)|ReadFile)", op):
        return f"feed what comes out of it, and strip it: strip_unused with {option('input_node_names')}"
    if op in graph.functions or re.match(r"(Stateful)?PartitionedCall$", op):
        return "transform_graph's inline_partitionedcall writes it out"
    return help_with(graph, name) or (
        f"build the library with it: {command_on_model('pocketgraph print_selective_registration_header {}')}, "
        "or export to tflite"
    )


def _reason(graph: Graph, node: Node) -> str:
    if node.op in graph.functions:
        return "the library runs no functions of the graph's own"
    if node.op.startswith(("tfl.", "onnx.")):
        return "this is an operator of another runtime's file"
    types = [value for name in TYPE_ATTRS if isinstance(value := node.attrs.get(name), DType)]
    for kind, has in (("any", ANY), ("listed", LISTED), ("floating", FLOATING)):
        if not _pattern(has).fullmatch(node.op):
            continue
        if kind == "any":
            return "" if kernel_class(node) is not None or not types else f"it has no kernel for {types[0].base.name}"
        allowed = ("float",) if kind == "floating" else NUMBERS
        for dtype in types:
            name = dtype.base.name
            is_quantized = QUANTIZED_TOO.match(node.op) and name.lstrip("q").startswith(("int", "uint")) and "q" in name
            if name not in allowed and not is_quantized:
                return f"{name} is not among its types there ({', '.join(allowed)})"
        return ""
    return "it is not among the ops that mobile builds link"


@cache
def _pattern(names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names.split())))
