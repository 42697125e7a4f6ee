"""The ops whose gradients each module holds. Written by tools/build_op_index.py."""

GRADIENTS = {
    "array.gathering": (
        "Gather GatherV2 GatherNd ScatterNd TensorScatterAdd TensorScatterUpdate TensorScatterSub DynamicStitch "
        "ParallelDynamicStitch DynamicPartition TopK TopKV2"
    ),
    "array.joining": "ConcatV2 Concat Pack Unpack Split SplitV Tile BroadcastTo Fill",
    "array.moving": (
        "ReverseV2 Reverse ReverseSequence SpaceToDepth DepthToSpace SpaceToBatchND BatchToSpaceND SpaceToBatch "
        "BatchToSpace MirrorPad MirrorPadGrad MatrixDiag Diag DiagPart MatrixBandPart Reshape ExpandDims Squeeze "
        "Transpose Roll Slice StridedSlice StridedSliceGrad Pad PadV2 MatrixDiagV2 MatrixDiagV3 MatrixDiagPartV2 "
        "MatrixDiagPartV3 MatrixSetDiagV2 MatrixSetDiagV3 MatrixDiagPart MatrixSetDiag"
    ),
    "array.pass_through": (
        "StopGradient Shape ShapeN Rank Size ZerosLike OnesLike Const Where OneHot BroadcastGradientArgs "
        "InvertPermutation ConcatOffset Unique UniqueWithCounts NonMaxSuppression NonMaxSuppressionV2 "
        "NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 Identity Snapshot CheckNumerics EnsureShape "
        "DebugGradientIdentity PlaceholderWithDefault Print IdentityN PreventGradient"
    ),
    "control_flow.branches": "Merge Switch",
    "image.resizing": (
        "DecodeJpeg DecodePng DecodeImage DecodeBmp DecodeGif EncodeJpeg EncodePng ResizeBilinear ResizeBicubic "
        "ResizeNearestNeighbor CropAndResize"
    ),
    "math.arithmetic": (
        "Equal NotEqual Less LessEqual Greater GreaterEqual ApproximateEqual LogicalAnd LogicalOr FloorDiv TruncateDiv "
        "ArgMax ArgMin Bucketize Range LinSpace InTopK InTopKV2 Add AddV2 Sub Mul MulNoNan Div RealDiv DivNoNan "
        "FloorMod Mod SquaredDifference Pow Maximum Minimum Atan2 Xdivy Xlogy Zeta Select SelectV2 ClipByValue AddN "
        "AccumulateNV2"
    ),
    "math.complex_numbers": "Complex Real Imag Conj ComplexAbs Angle",
    "math.einsum": "Einsum",
    "math.elementwise": (
        "Floor Ceil Round Rint Sign IsNan IsInf IsFinite LogicalNot Abs Square Exp Expm1 Log Log1p Sin Cos Tan Sinh "
        "Cosh Erf Erfc Lgamma Digamma Asinh Acosh Atanh Asin Atan Neg Acos Reciprocal Inv Sqrt Rsqrt Tanh Sigmoid "
        "TanhGrad SigmoidGrad Cast"
    ),
    "math.matrix_product": "MatMul BatchMatMul BatchMatMulV2 MatrixInverse MatrixDeterminant MatrixSolve Cross",
    "math.reductions": (
        "All Any Sum Mean Max Min Prod NthElement EuclideanNorm L2Loss Cumsum Cumprod CumulativeLogsumexp"
    ),
    "math.segments": (
        "SegmentSum SegmentMean UnsortedSegmentSum SegmentMax SegmentMin UnsortedSegmentMax UnsortedSegmentMin "
        "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN"
    ),
    "nn.activations": (
        "Relu Relu6 Elu Selu LeakyRelu Softplus Softsign ReluGrad Relu6Grad LeakyReluGrad Softmax LogSoftmax "
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel QuantizeAndDequantize "
        "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3"
    ),
    "nn.convolutions": (
        "Conv2D DepthwiseConv2dNative Conv3D Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput "
        "Conv3DBackpropInputV2 Conv2DBackpropFilter Dilation2D BiasAdd BiasAddV1"
    ),
    "nn.losses": "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits CTCLoss",
    "nn.normalization": (
        "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 BatchNormWithGlobalNormalization LRN BlockLSTM"
    ),
    "nn.pooling": "MaxPool MaxPool3D MaxPoolV2 MaxPoolWithArgmax AvgPool AvgPool3D AvgPoolGrad",
    "state.tensor_array": (
        "TensorArrayV3 TensorArraySizeV3 TensorArrayGradV3 TensorArrayCloseV3 TensorArrayReadV3 TensorArrayGatherV3 "
        "TensorArrayWriteV3 TensorArrayScatterV3 TensorArrayConcatV3 TensorArraySplitV3"
    ),
    "state.tensor_list": (
        "TensorListReserve EmptyTensorList TensorListLength TensorListElementShape TensorListGetItem TensorListSetItem "
        "TensorListStack TensorListFromTensor TensorListPushBack TensorListPopBack"
    ),
    "state.variables": (
        "Assign AssignAdd AssignSub Variable VariableV2 VarHandleOp VarIsInitializedOp VariableShape "
        "IsVariableInitialized LookupTableFind LookupTableFindV2 ReadVariableOp ResourceGather"
    ),
}
