"""The ops whose shape rules each module holds. Written by tools/build_op_index.py."""

SHAPE_RULES = {
    "array.concat_split": (
        "Reverse ReverseSequence ReverseV2 Roll Pack ParallelConcat Unpack ConcatV2 Concat Split SplitV Tile TileGrad"
    ),
    "array.diagonals": (
        "MatrixBandPart BatchMatrixBandPart MatrixDiag BatchMatrixDiag MatrixDiagV2 MatrixDiagV3 MatrixDiagPart "
        "BatchMatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixSetDiag BatchMatrixSetDiag MatrixSetDiagV2 "
        "MatrixSetDiagV3 Diag DiagPart"
    ),
    "array.filling": "OnesLike ZerosLike Fill LinSpace Range",
    "array.gather_scatter": (
        "TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMin TensorScatterMax "
        "ScatterNdNonAliasingAdd InplaceUpdate InplaceAdd InplaceSub ScatterNd OneHot Gather GatherV2 GatherNd Where "
        "DynamicPartition DynamicStitch ParallelDynamicStitch"
    ),
    "array.identity": (
        "CheckNumerics CheckNumericsV2 Copy CopyHost DebugGradientIdentity DebugIdentity DebugNanCount DeepCopy "
        "GuaranteeConst HostConst Identity PreventGradient Snapshot StopGradient IdentityN Const Placeholder "
        "PlaceholderV2 PlaceholderWithDefault EnsureShape"
    ),
    "array.padding": "Pad PadV2 MirrorPad MirrorPadGrad",
    "array.reshaping": (
        "DataFormatDimMap DataFormatVecPermute InvertPermutation Rank Size BroadcastGradientArgs Shape ShapeN Reshape "
        "ExpandDims Squeeze ConcatOffset Transpose ConjugateTranspose BroadcastTo BroadcastArgs"
    ),
    "array.slicing": "StridedSliceGrad Slice StridedSlice",
    "array.sorting": (
        "ListDiff UpperBound LowerBound Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 TopK TopKV2 ApproxTopK "
        "NthElement InTopK InTopKV2"
    ),
    "array.space_to_depth": (
        "SpaceToBatchND SpaceToBatch BatchToSpaceND BatchToSpace SpaceToDepth DepthToSpace ExtractImagePatches"
    ),
    "audio.spectrograms": "AudioSpectrogram AudioMicrofrontend Mfcc DecodeWav",
    "control_flow.assertions": "Assert NoOp ControlTrigger",
    "control_flow.branches_and_loops": (
        "Exit NextIteration RefExit RefNextIteration _Retval _Arg Switch RefSwitch LoopCond _SwitchN Merge RefMerge "
        "Enter RefEnter"
    ),
    "image.bipartite_matching": "BipartiteMatch",
    "image.colors": (
        "AdjustContrastv2 AdjustHue AdjustSaturation HSVToRGB RGBToHSV AdjustContrast AdjustHsvInYiq "
        "Addons>AdjustHsvInYiq"
    ),
    "image.connected_components": "ImageConnectedComponents",
    "image.image_files": (
        "DrawBoundingBoxes DrawBoundingBoxesV2 EncodeJpeg EncodePng DecodeGif DecodeJpeg DecodePng DecodeBmp "
        "DecodeAndCropJpeg"
    ),
    "image.non_max_suppression": (
        "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionWithOverlaps NonMaxSuppressionV4 "
        "NonMaxSuppressionV5 CombinedNonMaxSuppression"
    ),
    "image.resizing": (
        "ImageProjectiveTransform ResizeBicubicGrad CropAndResizeGradBoxes ResizeBilinear ResizeNearestNeighbor "
        "ResizeBicubic ResizeArea ExtractGlimpse CropAndResize ResizeBilinearGrad ResizeNearestNeighborGrad "
        "CropAndResizeGradImage Resampler Addons>Resampler"
    ),
    "logging.summaries": (
        "Print PrintV2 ScalarSummary HistogramSummary MergeSummary TensorSummary TensorSummaryV2 AudioSummary "
        "AudioSummaryV2 ImageSummary"
    ),
    "math.elementwise": (
        "Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e Bitcast Cast Ceil "
        "ClipByValue ComplexAbs Conj Cos Cosh Digamma Erf Erfc Erfinv Exp Expm1 Floor Imag Inv Invert IsFinite IsInf "
        "IsNan Lgamma Log Log1p LogicalNot Ndtri Neg PopulationCount Real Reciprocal Rint Round Rsqrt Sigmoid Sign Sin "
        "Sinh Sqrt Square Tan Tanh _HostCast _UnaryOpsComposition Add AddV2 ApproximateEqual Atan2 BitwiseAnd "
        "BitwiseOr BitwiseXor Complex Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual Igamma Igammac "
        "LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual Polygamma "
        "Pow RealDiv RightShift SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlogy Zeta InvGrad ReciprocalGrad "
        "RsqrtGrad SigmoidGrad SqrtGrad TanhGrad AddN AccumulateNV2 Select SelectV2"
    ),
    "math.fourier": "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D",
    "math.linear_algebra": (
        "Cholesky MatrixInverse MatrixExponential MatrixLogarithm MatrixSquareRoot MatrixDeterminant "
        "LogMatrixDeterminant MatrixSolve MatrixTriangularSolve SelfAdjointEigV2 Svd Qr"
    ),
    "math.matrix_product": "Cross MatMul SparseMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum",
    "math.reductions": (
        "Cumprod Cumsum CumulativeLogsumexp Bucketize BucketizeWithInputBoundaries L2Loss Bincount HistogramFixedWidth "
        "Sum Mean Prod Max Min All Any EuclideanNorm ArgMax ArgMin"
    ),
    "math.segments": (
        "SegmentSum SegmentMean SegmentProd SegmentMin SegmentMax UnsortedSegmentSum UnsortedSegmentProd "
        "UnsortedSegmentMin UnsortedSegmentMax SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN "
        "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad SparseSegmentSumGradV2 "
        "SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2"
    ),
    "nn.activations": (
        "Elu EluGrad LeakyRelu LogSoftmax Relu Relu6 Selu Softmax Softplus Softsign LeakyReluGrad Relu6Grad ReluGrad "
        "SeluGrad SoftplusGrad SoftsignGrad"
    ),
    "nn.convolution": (
        "_FusedMatMul Conv2D Conv3D DepthwiseConv2dNative _FusedConv2D _FusedDepthwiseConv2dNative Dilation2D "
        "FusedPadConv2D FusedResizeAndPadConv2D"
    ),
    "nn.convolution_gradients": (
        "Conv3DBackpropInput Conv3DBackpropFilter Conv2DBackpropInput Conv3DBackpropInputV2 Conv2DBackpropFilter "
        "Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter"
    ),
    "nn.ctc": "GatherTree Addons>GatherTree CTCGreedyDecoder CTCBeamSearchDecoder CTCLoss",
    "nn.isotonic_regression": "IsotonicRegression",
    "nn.losses": "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
    "nn.normalization": (
        "LRN BiasAdd BiasAddV1 FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 BatchNormWithGlobalNormalization "
        "LRNGrad BiasAddGrad FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 "
        "BatchNormWithGlobalNormalizationGrad"
    ),
    "nn.pooling": "MaxPool AvgPool MaxPool3D AvgPool3D MaxPoolWithArgmax MaxPoolV2",
    "nn.pooling_gradients": (
        "MaxPool3DGrad MaxPoolGrad MaxPoolGradV2 MaxPoolGradWithArgmax Dilation2DBackpropInput "
        "Dilation2DBackpropFilter MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad AvgPoolGrad AvgPool3DGrad"
    ),
    "nn.recurrent": "BlockLSTM BlockLSTMV2 LSTMBlockCell GRUBlockCell",
    "parsing.csv_and_raw_bytes": "DecodeRaw",
    "parsing.examples": (
        "DecodeJSONExample ParseExample ParseExampleV2 ParseSingleExample ParseSequenceExample ParseSequenceExampleV2 "
        "ParseSingleSequenceExample"
    ),
    "quantized.fake_quant": "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel",
    "quantized.layers": (
        "Dequantize QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 "
        "RequantizationRange RequantizationRangePerChannel QuantizedReshape QuantizedConv2D QuantizedMatMul "
        "QuantizedBiasAdd QuantizedAdd QuantizedMul QuantizedResizeBilinear QuantizedMaxPool QuantizedAvgPool "
        "QuantizeV2 Requantize RequantizePerChannel QuantizedRelu QuantizedRelu6 QuantizedReluX "
        "QuantizeDownAndShrinkRange QuantizedBatchNormWithGlobalNormalization QuantizedInstanceNorm "
        "QuantizedConv2DPerChannel QuantizedConv2DAndRelu QuantizedConv2DAndRequantize "
        "QuantizedConv2DAndReluAndRequantize QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu "
        "QuantizedConv2DWithBiasAndRequantize QuantizedConv2DWithBiasAndReluAndRequantize "
        "QuantizedConv2DWithBiasSumAndRelu QuantizedConv2DWithBiasSumAndReluAndRequantize "
        "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedDepthwiseConv2D "
        "QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu "
        "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedConcat QuantizedConcatV2 "
        "QuantizeAndDequantizeV4Grad"
    ),
    "random.sampling": (
        "RandomShuffle StatelessRandomGetAlg RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal "
        "ParameterizedTruncatedNormal StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal "
        "StatelessRandomUniformInt StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2 "
        "StatelessRandomUniformIntV2 StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 "
        "StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomPoisson StatelessRandomBinomial RandomGamma "
        "RandomPoisson RandomPoissonV2 Multinomial StatelessMultinomial StatelessRandomGetKeyCounter "
        "StatelessRandomGetKeyCounterAlg"
    ),
    "sparse.sets": "DenseToDenseSetOperation DenseToSparseSetOperation SparseToSparseSetOperation SetSize",
    "sparse.sparse_algebra": (
        "SparseSoftmax SparseDenseCwiseAdd SparseDenseCwiseMul SparseDenseCwiseDiv SparseReduceSum SparseReduceMax "
        "SparseFillEmptyRowsGrad SparseAdd SparseSlice SparseConcat SparseSplit SparseSparseMaximum "
        "SparseSparseMinimum SparseAddGrad SparseSliceGrad SparseReduceSumSparse SparseReduceMaxSparse"
    ),
    "sparse.sparse_tensors": "SparseTensorDenseAdd SparseToDense",
    "state.checkpoint_files": "ReadFile SaveV2 Save SaveSlices MergeV2Checkpoints",
    "state.iterators": "IteratorGetNext IteratorGetNextSync OneShotIterator IteratorFromStringHandle IteratorV2",
    "state.lookup_tables": "MutableDenseHashTableV2 HashTableV2 LookupTableFindV2 LookupTableFind",
    "state.queues": "QueueDequeueV2 QueueDequeue",
    "state.tensor_array": (
        "TensorArrayWriteV2 TensorArrayWriteV3 TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySplitV2 "
        "TensorArraySplitV3 TensorArraySizeV2 TensorArraySizeV3 TensorArrayV2 TensorArrayV3 TensorArrayGradV2 "
        "TensorArrayGradV3 TensorArrayGradWithShape TensorArrayReadV2 TensorArrayReadV3 TensorArrayGatherV2 "
        "TensorArrayGatherV3 TensorArrayConcatV2 TensorArrayConcatV3"
    ),
    "state.variables": (
        "RefIdentity AssignAdd AssignSub ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMin "
        "ScatterMax ScatterNdUpdate ScatterNdAdd ScatterNdSub ScatterNdMin ScatterNdMax StridedSliceAssign CountUpTo "
        "DestroyTemporaryVariable ResourceGather VarHandleOp IsVariableInitialized VarIsInitializedOp AssignVariableOp "
        "AssignAddVariableOp AssignSubVariableOp ReadVariableOp Variable VariableV2 TemporaryVariable VariableShape "
        "Assign"
    ),
    "text.strings": (
        "AsString DecodeBase64 EncodeBase64 RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace "
        "StringLength StringLower StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong "
        "StringToNumber StringUpper ReduceJoin StringFormat"
    ),
    "text.unicode": "UnicodeTranscode UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode StringNGrams",
    "training.optimizers": (
        "ApplyGradientDescent ApplyMomentum ApplyAdam ApplyAdagrad ApplyRMSProp ApplyFtrl ApplyAdadelta "
        "ApplyCenteredRMSProp ApplyAdaMax ApplyAddSign ApplyPowerSign ApplyProximalGradientDescent "
        "ApplyProximalAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyFtrlV2 SparseApplyAdadelta SparseApplyAdagrad "
        "SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
        "SparseApplyMomentum SparseApplyProximalAdagrad SparseApplyProximalGradientDescent SparseApplyRMSProp"
    ),
}
