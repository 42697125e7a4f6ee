"""The ops whose kernels each module holds. Written by tools/build_op_index.py."""

KERNELS = {
    "array.concat_split": (
        "Concat ConcatV2 ParallelConcat Pack Unpack Split SplitV Tile Reverse ReverseV2 ReverseSequence Roll TileGrad"
    ),
    "array.diagonals": (
        "MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagPart BatchMatrixDiagPart MatrixSetDiagV2 MatrixSetDiagV3 "
        "MatrixSetDiag BatchMatrixSetDiag MatrixDiagV2 MatrixDiagV3 MatrixDiag BatchMatrixDiag MatrixBandPart "
        "BatchMatrixBandPart Diag DiagPart"
    ),
    "array.filling": "Fill Range LinSpace ZerosLike OnesLike Empty",
    "array.gather_scatter": (
        "Gather GatherV2 GatherNd ScatterNd TensorScatterUpdate TensorScatterAdd ScatterNdNonAliasingAdd "
        "TensorScatterSub TensorScatterMin TensorScatterMax Where OneHot DynamicPartition DynamicStitch "
        "ParallelDynamicStitch"
    ),
    "array.identity": (
        "Const HostConst Identity StopGradient PreventGradient Snapshot PlaceholderWithDefault DeepCopy "
        "DebugGradientIdentity Copy CopyHost GuaranteeConst IdentityN EnsureShape CheckNumerics CheckNumericsV2 "
        "_ListToArray _ArrayToList ImmutableConst"
    ),
    "array.inplace_updates": "InplaceUpdate InplaceAdd InplaceSub",
    "array.padding": "Pad PadV2 MirrorPad MirrorPadGrad",
    "array.periodic_resample": "PeriodicResample",
    "array.reshaping": (
        "Shape ShapeN Rank Size Reshape ExpandDims Squeeze Transpose ConjugateTranspose InvertPermutation BroadcastTo "
        "BroadcastArgs BroadcastGradientArgs ConcatOffset UnravelIndex DataFormatDimMap DataFormatVecPermute"
    ),
    "array.slicing": "Slice StridedSlice StridedSliceGrad TensorStridedSliceUpdate",
    "array.sorting": (
        "TopK TopKV2 ApproxTopK InTopK InTopKV2 NthElement Unique UniqueWithCounts UniqueV2 UniqueWithCountsV2 "
        "ListDiff LowerBound UpperBound"
    ),
    "array.space_to_depth": (
        "SpaceToBatchND BatchToSpaceND SpaceToBatch BatchToSpace SpaceToDepth DepthToSpace ExtractImagePatches "
        "ExtractVolumePatches"
    ),
    "audio.microfrontend": "AudioMicrofrontend",
    "audio.spectrograms": "AudioSpectrogram Mfcc",
    "audio.wav": "DecodeWav EncodeWav",
    "control_flow.assertions": "NoOp ControlTrigger Assert Abort",
    "control_flow.runtime_values": "FakeParam Timestamp DeviceIndex ToBool",
    "image.bipartite_matching": "BipartiteMatch",
    "image.colors": (
        "RGBToHSV HSVToRGB AdjustContrastv2 AdjustContrast AdjustHue AdjustHsvInYiq Addons>AdjustHsvInYiq "
        "AdjustSaturation"
    ),
    "image.connected_components": "ImageConnectedComponents",
    "image.crop_and_resize": "CropAndResize",
    "image.decoding": "DecodeJpeg DecodePng DecodeBmp DecodeGif DecodeImage DecodeWebP",
    "image.distorted_boxes": (
        "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 StatelessSampleDistortedBoundingBox"
    ),
    "image.encoding": (
        "EncodePng EncodeJpeg EncodeJpegVariableQuality DecodeAndCropJpeg ExtractJpegShape DrawBoundingBoxes "
        "DrawBoundingBoxesV2"
    ),
    "image.glimpses": "ExtractGlimpse ExtractGlimpseV2",
    "image.non_max_suppression": (
        "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
        "NonMaxSuppressionWithOverlaps CombinedNonMaxSuppression"
    ),
    "image.resampler": "Resampler Addons>Resampler",
    "image.resizing": (
        "ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad ResizeBicubic ResizeArea"
    ),
    "image.resizing_gradients": "CropAndResizeGradImage CropAndResizeGradBoxes ResizeBicubicGrad",
    "image.warping": (
        "ScaleAndTranslate ScaleAndTranslateGrad ImageProjectiveTransform ImageProjectiveTransformV2 "
        "Addons>ImageProjectiveTransformV2 ImageProjectiveTransformV3"
    ),
    "logging.image_summaries": "ImageSummary",
    "logging.printing": "Print PrintV2",
    "logging.summaries": (
        "ScalarSummary HistogramSummary MergeSummary TensorSummary TensorSummaryV2 AudioSummary AudioSummaryV2"
    ),
    "math.arithmetic": (
        "Add AddV2 Sub Mul Div RealDiv TruncateDiv FloorDiv FloorMod Mod TruncateMod DivNoNan MulNoNan Maximum Minimum "
        "SquaredDifference Pow Atan2 NextAfter Xlogy Xlog1py Xdivy BitwiseAnd BitwiseOr BitwiseXor LeftShift "
        "RightShift LogicalAnd LogicalOr SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad AddN "
        "AccumulateNV2"
    ),
    "math.bessel_functions": (
        "BesselI0e BesselI1e BesselI0 BesselI1 BesselK0e BesselK1e BesselK0 BesselK1 BesselJ0 BesselJ1 BesselY0 "
        "BesselY1 Dawsn Expint Spence FresnelCos FresnelSin"
    ),
    "math.comparison": (
        "Less LessEqual Greater GreaterEqual Equal NotEqual ApproximateEqual Select SelectV2 ClipByValue "
        "CompareAndBitpack"
    ),
    "math.elementwise": (
        "Abs Neg Sign Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh "
        "Atanh Sigmoid Reciprocal Inv Round Rint Ceil Floor Invert IsNan IsInf IsFinite LogicalNot Conj ComplexAbs "
        "Real Imag Angle Complex Cast _HostCast Bitcast PopulationCount"
    ),
    "math.fourier": "FFT IFFT RFFT IRFFT FFT2D IFFT2D RFFT2D IRFFT2D FFT3D IFFT3D RFFT3D IRFFT3D",
    "math.fused_elementwise": "_UnaryOpsComposition",
    "math.gamma_gradients": "IgammaGradA RandomGammaGrad",
    "math.histograms": "Bucketize BucketizeWithInputBoundaries DenseBincount Bincount HistogramFixedWidth",
    "math.linear_algebra": (
        "Cholesky BatchCholesky MatrixInverse BatchMatrixInverse MatrixDeterminant BatchMatrixDeterminant "
        "LogMatrixDeterminant MatrixSolve BatchMatrixSolve MatrixTriangularSolve BatchMatrixTriangularSolve "
        "MatrixSolveLs BatchMatrixSolveLs Svd BatchSvd Qr SelfAdjointEigV2 BatchSelfAdjointEigV2"
    ),
    "math.matrix_decompositions": (
        "SelfAdjointEig BatchSelfAdjointEig Eig Lu CholeskyGrad BatchCholeskyGrad MatrixExponential MatrixSquareRoot "
        "MatrixLogarithm TridiagonalMatMul TridiagonalSolve BandedTriangularSolve"
    ),
    "math.matrix_product": "MatMul SparseMatMul BatchMatMulV3 BatchMatMulV2 BatchMatMul Einsum Cross",
    "math.nearest_neighbors": "NearestNeighbors KMC2ChainInitialization",
    "math.reductions": (
        "Sum Prod Mean Max Min All Any EuclideanNorm ArgMax ArgMin Cumsum Cumprod CumulativeLogsumexp L2Loss"
    ),
    "math.segment_gradients": (
        "SparseSegmentSumGrad SparseSegmentSumGradV2 SparseSegmentMeanGrad SparseSegmentMeanGradV2 "
        "SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2"
    ),
    "math.segments": (
        "SegmentSum UnsortedSegmentSum SegmentProd UnsortedSegmentProd SegmentMin UnsortedSegmentMin SegmentMax "
        "UnsortedSegmentMax SegmentMean SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN "
        "SparseSegmentSumWithNumSegments SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments "
        "UnsortedSegmentJoin"
    ),
    "math.slice_reductions": "ReduceSliceSum ReduceSliceProd ReduceSliceMax ReduceSliceMin",
    "math.special_functions": "Erfinv Erf Erfc Lgamma Digamma Ndtri Igamma Igammac Zeta Polygamma Betainc",
    "nn.activations": (
        "Relu Relu6 Elu Selu Softplus Softsign LeakyRelu ReluGrad Relu6Grad SoftplusGrad SoftsignGrad EluGrad SeluGrad "
        "LeakyReluGrad Softmax LogSoftmax"
    ),
    "nn.beam_backtracking": "GatherTree Addons>GatherTree",
    "nn.convolution": "Conv2D DepthwiseConv2dNative Conv3D FusedPadConv2D FusedResizeAndPadConv2D Dilation2D",
    "nn.convolution_gradients": (
        "Conv2DBackpropInput Conv2DBackpropFilter DepthwiseConv2dNativeBackpropInput "
        "DepthwiseConv2dNativeBackpropFilter Conv3DBackpropInputV2 Conv3DBackpropFilterV2 Conv3DBackpropInput "
        "Conv3DBackpropFilter"
    ),
    "nn.ctc_decoding": "CTCBeamSearchDecoder CTCGreedyDecoder",
    "nn.ctc_loss": "CTCLoss",
    "nn.fractional_pooling": "FractionalMaxPool FractionalAvgPool FractionalMaxPoolGrad FractionalAvgPoolGrad",
    "nn.fused_convolution": "_FusedConv2D _FusedMatMul _FusedDepthwiseConv2dNative",
    "nn.fused_normalization": "_FusedBatchNormEx",
    "nn.general_convolution": "Conv",
    "nn.isotonic_regression": "IsotonicRegression",
    "nn.losses": "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
    "nn.normalization": (
        "BiasAdd BiasAddV1 BiasAddGrad FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGrad "
        "FusedBatchNormGradV2 FusedBatchNormGradV3 BatchNormWithGlobalNormalization "
        "BatchNormWithGlobalNormalizationGrad LRN LRNGrad"
    ),
    "nn.pooling": "MaxPool MaxPoolV2 MaxPool3D AvgPool AvgPool3D MaxPoolWithArgmax MaxPoolGrad AvgPoolGrad",
    "nn.pooling_gradients": (
        "MaxPoolGradV2 AvgPool3DGrad MaxPool3DGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad "
        "MaxPoolGradWithArgmax Dilation2DBackpropInput Dilation2DBackpropFilter"
    ),
    "nn.recurrent": "LSTMBlockCell BlockLSTM BlockLSTMV2 GRUBlockCell",
    "nn.recurrent_gradients": "LSTMBlockCellGrad BlockLSTMGrad BlockLSTMGradV2 GRUBlockCellGrad",
    "parsing.csv_and_raw_bytes": "DecodePaddedRaw DecodeCompressed DecodeCSV DecodeRaw",
    "parsing.examples": "ParseExample ParseExampleV2 ParseSingleExample",
    "parsing.json_examples": "DecodeJSONExample",
    "parsing.sequence_examples": "ParseSequenceExample ParseSequenceExampleV2",
    "parsing.serialized_tensors": (
        "SerializeTensor ParseTensor SerializeSparse SerializeManySparse DeserializeManySparse DeserializeSparse "
        "AddSparseToTensorsMap AddManySparseToTensorsMap TakeManySparseFromTensorsMap"
    ),
    "parsing.single_sequence_example": "ParseSingleSequenceExample",
    "quantized.fake_quant": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel "
        "FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient"
    ),
    "quantized.fused_layers": (
        "QuantizedConv2DPerChannel QuantizedConv2DAndRelu QuantizedConv2DAndRequantize "
        "QuantizedConv2DAndReluAndRequantize QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu "
        "QuantizedConv2DWithBiasAndRequantize QuantizedConv2DWithBiasAndReluAndRequantize "
        "QuantizedConv2DWithBiasSumAndRelu QuantizedConv2DWithBiasSumAndReluAndRequantize "
        "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedDepthwiseConv2D "
        "QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu "
        "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedMatMulWithBias QuantizedMatMulWithBiasAndRelu "
        "QuantizedMatMulWithBiasAndReluAndRequantize QuantizedMatMulWithBiasAndRequantize "
        "QuantizedMatMulWithBiasAndDequantize"
    ),
    "quantized.layers": (
        "QuantizedConv2D QuantizedMatMul QuantizedMul QuantizedAdd QuantizedBiasAdd QuantizedRelu QuantizedRelu6 "
        "QuantizedReluX QuantizedMaxPool QuantizedAvgPool QuantizedReshape QuantizedConcat QuantizedConcatV2"
    ),
    "quantized.normalization": "QuantizedInstanceNorm QuantizedBatchNormWithGlobalNormalization",
    "quantized.quantize_dequantize": (
        "QuantizeV2 Dequantize QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV4 "
        "QuantizeAndDequantizeV3 QuantizeAndDequantizeV4Grad"
    ),
    "quantized.requantization": (
        "RequantizationRange Requantize QuantizeDownAndShrinkRange RequantizationRangePerChannel RequantizePerChannel "
        "QuantizedResizeBilinear"
    ),
    "quantized.uniform": (
        "UniformQuantize UniformDequantize UniformRequantize UniformQuantizedAdd UniformQuantizedClipByValue "
        "UniformQuantizedDot UniformQuantizedDotHybrid"
    ),
    "quantized.uniform_convolution": "UniformQuantizedConvolution UniformQuantizedConvolutionHybrid",
    "random.candidate_sampling": (
        "UniformCandidateSampler LogUniformCandidateSampler AllCandidateSampler ThreadUnsafeUnigramCandidateSampler "
        "LearnedUnigramCandidateSampler FixedUnigramCandidateSampler ComputeAccidentalHits"
    ),
    "random.generators": (
        "StatefulUniform StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniformInt StatefulUniformFullInt "
        "RngSkip RngReadAndSkip StatefulRandomBinomial NonDeterministicInts"
    ),
    "random.sampling": (
        "RandomUniform RandomStandardNormal TruncatedNormal RandomUniformInt RandomShuffle Multinomial RandomGamma "
        "RandomPoisson RandomPoissonV2 StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal "
        "StatelessRandomUniformInt"
    ),
    "random.stateless": (
        "StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg StatelessRandomUniformV2 "
        "StatelessRandomNormalV2 StatelessTruncatedNormalV2 StatelessRandomUniformIntV2 StatelessRandomUniformFullInt "
        "StatelessRandomUniformFullIntV2 StatelessShuffle StatelessMultinomial StatelessRandomGammaV2 "
        "StatelessRandomGammaV3 StatelessRandomPoisson StatelessRandomBinomial"
    ),
    "random.truncated_normals": "ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal",
    "sparse.contrib_feature_crosses": "SparseFeatureCross SparseFeatureCrossV2",
    "sparse.counting": (
        "SparseBincount RaggedBincount DenseCountSparseOutput SparseCountSparseOutput RaggedCountSparseOutput"
    ),
    "sparse.csr_matrices": (
        "SparseTensorToCSRSparseMatrix DenseToCSRSparseMatrix CSRSparseMatrixComponents CSRSparseMatrixToDense "
        "CSRSparseMatrixToSparseTensor SparseMatrixNNZ SparseMatrixTranspose SparseMatrixMatMul "
        "SparseMatrixSparseMatMul"
    ),
    "sparse.feature_crosses": "SparseCross SparseCrossV2 SparseCrossHashed",
    "sparse.ragged": (
        "RaggedRange RaggedGather RaggedTensorToSparse RaggedTensorToTensor RaggedFillEmptyRows RaggedFillEmptyRowsGrad"
    ),
    "sparse.ragged_feature_crosses": "RaggedCross",
    "sparse.sets": "DenseToDenseSetOperation DenseToSparseSetOperation SparseToSparseSetOperation SetSize",
    "sparse.sparse_algebra": (
        "SparseAdd SparseAddGrad SparseSparseMaximum SparseSparseMinimum SparseConcat SparseSlice SparseSliceGrad "
        "SparseSplit SparseReduceSum SparseReduceMax SparseReduceSumSparse SparseReduceMaxSparse SparseSoftmax "
        "SparseDenseCwiseAdd SparseDenseCwiseMul SparseDenseCwiseDiv SparseFillEmptyRowsGrad"
    ),
    "sparse.sparse_tensors": (
        "SparseToDense SparseTensorDenseAdd SparseTensorDenseMatMul SparseReorder SparseReshape SparseFillEmptyRows"
    ),
    "state.barriers": "Barrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize BarrierIncompleteSize",
    "state.checkpoint_files": (
        "ReadFile WriteFile MatchingFiles ShardedFilename ShardedFilespec SaveV2 Save SaveSlices RestoreV2 Restore "
        "RestoreSlice MergeV2Checkpoints"
    ),
    "state.dense_hash_tables": (
        "MutableDenseHashTable MutableDenseHashTableV2 AnonymousMutableDenseHashTable AnonymousHashTable "
        "AnonymousMutableHashTable AnonymousMutableHashTableOfTensors"
    ),
    "state.lookup_tables": (
        "HashTable HashTableV2 MutableHashTable MutableHashTableV2 MutableHashTableOfTensors "
        "MutableHashTableOfTensorsV2 InitializeTable InitializeTableV2 LookupTableInsert LookupTableInsertV2 "
        "LookupTableFind LookupTableFindV2 LookupTableImport LookupTableImportV2 LookupTableRemoveV2 LookupTableSize "
        "LookupTableSizeV2 LookupTableExport LookupTableExportV2 InitializeTableFromTextFile "
        "InitializeTableFromTextFileV2"
    ),
    "state.mutexes": "MutexV2 MutexLock ConsumeMutexLock",
    "state.queues": (
        "FIFOQueue FIFOQueueV2 PaddingFIFOQueue PaddingFIFOQueueV2 QueueEnqueue QueueEnqueueV2 QueueEnqueueMany "
        "QueueEnqueueManyV2 QueueDequeue QueueDequeueV2 QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo "
        "QueueDequeueUpToV2 QueueSize QueueSizeV2 QueueIsClosed QueueIsClosedV2 QueueClose QueueCloseV2 "
        "GetSessionHandle GetSessionHandleV2 GetSessionTensor DeleteSessionTensor"
    ),
    "state.shuffle_and_priority_queues": "RandomShuffleQueue RandomShuffleQueueV2 PriorityQueue PriorityQueueV2",
    "state.stack": "StackV2 Stack StackPush StackPushV2 StackPop StackPopV2 StackClose StackCloseV2",
    "state.staging": (
        "Stage Unstage StagePeek StageSize MapSize OrderedMapSize MapIncompleteSize OrderedMapIncompleteSize "
        "StageClear MapClear OrderedMapClear MapStage OrderedMapStage MapUnstage OrderedMapUnstage MapPeek "
        "OrderedMapPeek MapUnstageNoKey OrderedMapUnstageNoKey"
    ),
    "state.tensor_array": (
        "TensorArrayV3 TensorArray TensorArrayV2 TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3 "
        "TensorArrayRead TensorArrayReadV2 TensorArrayReadV3 TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 "
        "TensorArrayPack TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayScatter "
        "TensorArrayScatterV2 TensorArrayScatterV3 TensorArrayUnpack TensorArraySplit TensorArraySplitV2 "
        "TensorArraySplitV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArrayGrad TensorArrayGradV2 "
        "TensorArrayGradV3 TensorArrayGradWithShape TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3"
    ),
    "state.tensor_list": (
        "TensorListReserve EmptyTensorList TensorListFromTensor TensorListStack TensorListGather TensorListGetItem "
        "TensorListSetItem TensorListPushBack TensorListPopBack TensorListLength TensorListResize "
        "TensorListElementShape TensorListConcatLists TensorListConcatV2 TensorListConcat TensorListSplit "
        "TensorListScatterV2 TensorListScatter TensorListPushBackBatch TensorListScatterIntoExistingList"
    ),
    "state.variable_slices": (
        "ScatterNdUpdate ResourceScatterNdUpdate ScatterNdAdd ResourceScatterNdAdd ScatterNdSub ResourceScatterNdSub "
        "ScatterNdMin ResourceScatterNdMin ScatterNdMax ResourceScatterNdMax StridedSliceAssign "
        "ResourceStridedSliceAssign"
    ),
    "state.variables": (
        "Variable VariableV2 VarHandleOp TemporaryVariable DestroyTemporaryVariable RefIdentity RefSelect "
        "IsVariableInitialized VarIsInitializedOp ReadVariableOp VariableShape DestroyResourceOp Assign "
        "AssignVariableOp AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp CountUpTo ResourceCountUpTo "
        "ResourceGatherNd ResourceGather ScatterUpdate ResourceScatterUpdate ScatterAdd ResourceScatterAdd ScatterSub "
        "ResourceScatterSub ScatterMul ResourceScatterMul ScatterDiv ResourceScatterDiv ScatterMin ResourceScatterMin "
        "ScatterMax ResourceScatterMax DisableCopyOnRead"
    ),
    "state.variants": (
        "OptionalFromValue OptionalNone OptionalHasValue OptionalGetValue EmptyTensorMap TensorMapInsert "
        "TensorMapErase TensorMapHasKey TensorMapLookup TensorMapSize TensorMapStackKeys "
        "CompositeTensorVariantFromComponents CompositeTensorVariantToComponents RaggedTensorToVariant "
        "RaggedTensorFromVariant"
    ),
    "text.edit_distance": "EditDistance",
    "text.hashing": "StringToHashBucket Fingerprint StringToHashBucketFast _TensorToHashBucketFast",
    "text.keyed_hashing": "StringToHashBucketStrong",
    "text.regular_expressions": "RegexReplace StaticRegexReplace RegexFullMatch StaticRegexFullMatch",
    "text.skip_grams": "SkipGramGenerateCandidates",
    "text.strings": (
        "StringJoin StringLower StringUpper StringStrip StringLength Substr StringSplit StringSplitV2 StringToNumber "
        "AsString ReduceJoin EncodeBase64 DecodeBase64 StringFormat"
    ),
    "text.unicode": "UnicodeDecodeWithOffsets UnicodeDecode UnicodeTranscode UnicodeEncode StringNGrams",
    "text.unicode_scripts": "UnicodeScript",
    "training.gradient_accumulators": (
        "ConditionalAccumulator ResourceConditionalAccumulator SparseConditionalAccumulator AccumulatorApplyGradient "
        "ResourceAccumulatorApplyGradient AccumulatorTakeGradient ResourceAccumulatorTakeGradient "
        "AccumulatorNumAccumulated ResourceAccumulatorNumAccumulated AccumulatorSetGlobalStep "
        "ResourceAccumulatorSetGlobalStep SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient"
    ),
    "training.optimizers": (
        "ApplyGradientDescent ResourceApplyGradientDescent ApplyMomentum ResourceApplyMomentum ApplyAdagrad "
        "ResourceApplyAdagrad ApplyAdam ResourceApplyAdam ApplyRMSProp ResourceApplyRMSProp ApplyAdadelta "
        "ResourceApplyAdadelta ApplyAdaMax ResourceApplyAdaMax ApplyAddSign ResourceApplyAddSign ApplyPowerSign "
        "ResourceApplyPowerSign ApplyCenteredRMSProp ResourceApplyCenteredRMSProp ApplyProximalGradientDescent "
        "ResourceApplyProximalGradientDescent ApplyProximalAdagrad ResourceApplyProximalAdagrad ApplyAdagradDA "
        "ResourceApplyAdagradDA ApplyFtrl ResourceApplyFtrl ApplyFtrlV2 ResourceApplyFtrlV2 ApplyAdagradV2 "
        "ResourceApplyAdagradV2 ResourceApplyAdamWithAmsgrad ResourceApplyKerasMomentum"
    ),
    "training.sparse_optimizers": (
        "SparseApplyAdadelta ResourceSparseApplyAdadelta SparseApplyAdagradDA ResourceSparseApplyAdagradDA "
        "SparseApplyCenteredRMSProp ResourceSparseApplyCenteredRMSProp SparseApplyProximalAdagrad "
        "ResourceSparseApplyProximalAdagrad SparseApplyProximalGradientDescent "
        "ResourceSparseApplyProximalGradientDescent SparseApplyRMSProp ResourceSparseApplyRMSProp SparseApplyMomentum "
        "ResourceSparseApplyMomentum SparseApplyAdagrad ResourceSparseApplyAdagrad SparseApplyAdagradV2 "
        "ResourceSparseApplyAdagradV2 SparseApplyFtrl ResourceSparseApplyFtrl SparseApplyFtrlV2 "
        "ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum"
    ),
    "trees.boosted_trees": (
        "BoostedTreesEnsembleResourceHandleOp IsBoostedTreesEnsembleInitialized BoostedTreesCreateEnsemble "
        "BoostedTreesDeserializeEnsemble BoostedTreesSerializeEnsemble BoostedTreesGetEnsembleStates "
        "BoostedTreesPredict BoostedTreesBucketize BoostedTreesQuantileStreamResourceHandleOp "
        "IsBoostedTreesQuantileStreamResourceInitialized BoostedTreesCreateQuantileStreamResource "
        "BoostedTreesQuantileStreamResourceDeserialize BoostedTreesQuantileStreamResourceGetBucketBoundaries"
    ),
    "trees.tensor_forest": (
        "TensorForestTreeResourceHandleOp TensorForestTreeIsInitializedOp TensorForestCreateTreeVariable "
        "TensorForestTreeDeserialize TensorForestTreeSerialize TensorForestTreeSize TensorForestTreePredict"
    ),
}
