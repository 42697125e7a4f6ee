"""The ops whose lowerings each module holds. Written by tools/build_op_index.py."""

LOWERINGS = {
    "array.concat_split": "ConcatV2 Concat Pack Unpack Split SplitV",
    "array.element_moves": (
        "MatrixDiag BatchMatrixDiag MatrixDiagV2 MatrixDiagV3 MatrixDiagPart BatchMatrixDiagPart MatrixDiagPartV2 "
        "MatrixDiagPartV3 MatrixSetDiag BatchMatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 Diag DiagPart Roll "
        "ExtractImagePatches TensorScatterUpdate"
    ),
    "array.gather_scatter": "Gather GatherV2 GatherNd OneHot ScatterNd",
    "array.identity": (
        "CheckNumerics EnsureShape Identity PlaceholderWithDefault PreventGradient Snapshot StopGradient IdentityN"
    ),
    "array.padding": "Pad PadV2 MirrorPad",
    "array.reshaping": (
        "Reshape ExpandDims Squeeze Shape ShapeN Size Rank ZerosLike OnesLike Fill BroadcastTo Transpose Tile"
    ),
    "array.slicing": "Slice StridedSlice ReverseV2 ReverseSequence StridedSliceGrad",
    "array.sorting": "TopK TopKV2",
    "array.space_to_depth": "DepthToSpace SpaceToDepth SpaceToBatchND BatchToSpaceND SpaceToBatch BatchToSpace",
    "control_flow.assertions": "NoOp",
    "image.bicubic_and_area": "ResizeBicubic ResizeArea",
    "image.resizing": "ResizeBilinear ResizeNearestNeighbor",
    "math.division": "Div FloorDiv TruncateDiv FloorMod TruncateMod DivNoNan MulNoNan Xdivy Xlogy Xlog1py",
    "math.einsum": "Einsum",
    "math.elementwise": (
        "Sigmoid Tanh Exp Log Sqrt Abs Neg Floor Ceil Round Rint Sin Cos Sign LogicalNot Add AddV2 Sub Mul RealDiv "
        "Maximum Minimum Pow SquaredDifference Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr "
        "Square Rsqrt AddN AccumulateNV2 Reciprocal Inv ClipByValue Select SelectV2 Cast Log1p Expm1 IsNan IsInf "
        "IsFinite"
    ),
    "math.gradients": "SigmoidGrad TanhGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad",
    "math.matrix_product": "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3",
    "math.reductions": "Mean Sum Prod Max Min Any All ArgMax ArgMin Cumsum L2Loss",
    "math.special_functions": "Erf Erfc Tan Atan2 Atan Asin Acos",
    "nn.activation_gradients": "ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad",
    "nn.activations": "Relu Relu6 Elu LeakyRelu Softmax LogSoftmax",
    "nn.composed_activations": "Softplus Softsign Selu",
    "nn.computed_weights": "Conv2DBackpropFilter",
    "nn.convolution": (
        "Conv2D FusedPadConv2D DepthwiseConv2dNative DepthwiseConv2d Conv2DBackpropInput FusedResizeAndPadConv2D"
    ),
    "nn.depthwise_gradients": "DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter",
    "nn.local_response": "LRN LRNGrad",
    "nn.losses": "SoftmaxCrossEntropyWithLogits",
    "nn.normalization": (
        "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 BatchNormWithGlobalNormalization BiasAdd BiasAddV1"
    ),
    "nn.normalization_gradients": "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 BiasAddGrad",
    "nn.pooling": "MaxPool AvgPool",
    "nn.pooling_gradients": "MaxPoolGrad AvgPoolGrad",
    "nn.recurrent": "LSTMBlockCell BlockLSTM BlockLSTMV2 GRUBlockCell",
    "nn.unpooling": "MaxPoolWithArgmax",
    "nn.volumes": "Conv3D Conv3DBackpropInputV2 MaxPool3D AvgPool3D",
    "quantized.fake_quant": "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel",
}
