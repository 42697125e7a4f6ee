"""What is true of each op beside its signature: one row an op, asked by trait.

    passes         the result is the input, unchanged
    checks         likewise, after a check that may fail
    placeholder    a value comes in from outside
    constant       holds its value as an attribute
    variable       makes a variable or the handle of one
    reference_variable  makes a variable of TensorFlow 1, read by reference
    reference      takes and gives a reference to a variable, and writes nothing
    control_flow   TensorFlow 1's: enter, exit, merge, next_iteration, switch, loop_condition, each a trait too
    call, branch, loop  TensorFlow 2's control flow: runs functions of the graph's library
    reads_handle   takes a variable's handle and changes nothing
    table          makes a lookup table
    table_lookup   looks keys up in one
    random         draws anew each time; nobody misses a draw whose result is not needed
    uniform_noise  draws uniform numbers, as a dropout does
    repeatable     follows from inputs and attributes alone, and graphs repeat it
    view           the same elements under another shape
    moves          only moves elements: what is known of some of them carries over one by one
    joins          likewise, several tensors into one
    shape          looks at the input's shape only
    sized_by_value the result's shape depends on values, and is never larger than the input
    elementwise    each element by itself, of one tensor or of one and a scalar
    polynomial     sums and products, known where they do not depend on what is unknown
    sum, difference, product, quotient, bias
                   arithmetic of two tensors, under all its names
    reciprocal     one divided by each element
    order          says of two numbers which is larger
    resize, pad    makes pictures of another size; adds a border
    array_write, array_read
                   of TensorFlow 1's arrays and 2's lists of tensors
    result_gradient  a gradient that is given the function's result first, and then what comes in
    fake_quantization  rounds to the numbers that codes stand for
    effect         run for what it does, not for a result
    transcendental an exponential, logarithm or power an element: slow
    adds_up        each element of the result is a sum, or a mean, of many of the input's
    any_size       what LiteRT is given for it holds for all sizes, as far as each size stays larger than 1
    discontinuous  the result jumps where the operands hardly change
    matrix_product, convolution  products that take long
    fused_batch_norm, batch_norm  normalize with a mean and a variance
    layer          combines values with weights
    heavy          one call computes enough to be worth the way into another engine
    box_selection  non-maximum suppression
    sequence_decoding  labels out of scores for each step of a sequence
    picture_file, recording
                   numbers out of an encoded picture, or out of sound
    example_parser takes records of tf.Example apart
    feeds_training training data come in
    checkpoint     writes or reads the values of variables
    touches_files, runs_code, uses_network
                   reaches out of the graph: refused unless the caller allows it

What the table of signatures knows (state, types, numbers of inputs) is not repeated: ``graph.opdefs``. Kernels, shapes,
lowerings and costs have tables of their own, with the same names. Who needs a set of ops asks for a trait; a list of
names elsewhere says in its docstring why it is none.
"""

from __future__ import annotations

from functools import lru_cache

ROWS = """
_SwitchN switch control_flow
_TPUCompileMlir runs_code
_XlaCompile runs_code
_XlaHostComputeMlir runs_code
_XlaRun runs_code
Abort runs_code
Abs elementwise any_size
Add sum elementwise polynomial repeatable any_size
AddN polynomial
AddV2 sum elementwise polynomial repeatable any_size
AnonymousHashTable table
ArgMax any_size
Assert effect
AsString repeatable
AudioSpectrogram recording
AutoReloadVariable variable
AvgPool heavy adds_up any_size
AvgPool3D heavy adds_up
AvgPoolGrad heavy
BatchMatMul matrix_product layer heavy any_size
BatchMatMulV2 matrix_product layer heavy any_size
BatchNormWithGlobalNormalization batch_norm layer
BiasAdd bias any_size
BiasAddGrad adds_up
BiasAddV1 bias
BigQueryReader uses_network
BlockLSTM layer heavy
BlockLSTMV2 heavy
BroadcastGradientArgs sized_by_value
Bucketize repeatable
CacheDataset touches_files
CacheDatasetV2 touches_files
CalibrationStatisticsSaver touches_files
Case branch
Cast repeatable any_size
Ceil elementwise discontinuous
CheckNumerics checks
CombinedNonMaxSuppression box_selection
Concat joins moves
ConcatV2 joins moves repeatable any_size
Const constant
ControlTrigger effect
Conv1D layer
Conv2D convolution layer heavy any_size
Conv2DBackpropFilter heavy
Conv2DBackpropInput convolution layer heavy any_size
Conv3D convolution layer heavy
Conv3DBackpropInputV2 layer heavy
CreateSummaryDbWriter touches_files
CreateSummaryFileWriter touches_files
CSVDataset touches_files
CSVDatasetV2 touches_files
CTCBeamSearchDecoder sequence_decoding
CTCGreedyDecoder sequence_decoding
DataServiceDataset uses_network
DataServiceDatasetV2 uses_network
DataServiceDatasetV3 uses_network
DataServiceDatasetV4 uses_network
DatasetToSingleElement feeds_training
DatasetToTFRecord touches_files
DebugIdentity touches_files
DebugIdentityV2 touches_files
DebugIdentityV3 touches_files
DebugNanCount touches_files
DebugNumericSummary touches_files
DebugNumericSummaryV2 touches_files
DecodeBmp picture_file
DecodeImage picture_file
DecodeJpeg picture_file
DecodePng picture_file
DecodeWav recording
DepthToSpace any_size
DepthwiseConv2dNative convolution layer heavy any_size
DepthwiseConv2dNativeBackpropFilter heavy
DepthwiseConv2dNativeBackpropInput heavy
Dilation2D layer
DistributedSave touches_files
Div quotient
DivNoNan quotient
DTensorRestoreV2 touches_files
DumpTensor touches_files
DynamicPartition sized_by_value
EagerPyFunc runs_code
Einsum matrix_product layer heavy any_size
Elu transcendental any_size
EmbeddingLookup layer
EnsureShape checks
Enter enter control_flow
Equal repeatable
Erf transcendental any_size
EuclideanNorm adds_up
Exit exit control_flow
Exp elementwise transcendental any_size
ExpandDims view moves repeatable any_size
ExperimentalCSVDataset touches_files
ExperimentalDatasetToTFRecord touches_files
ExperimentalLMDBDataset touches_files
ExperimentalMatchingFilesDataset touches_files
ExperimentalSqlDataset touches_files
FakeQuantWithMinMaxArgs fake_quantization
FakeQuantWithMinMaxVars fake_quantization
FakeQuantWithMinMaxVarsPerChannel fake_quantization
FileSystemSetConfiguration touches_files
Fill moves repeatable
FixedLengthRecordDataset touches_files
FixedLengthRecordDatasetV2 touches_files
FixedLengthRecordReader touches_files
FixedLengthRecordReaderV2 touches_files
Floor elementwise discontinuous
FloorDiv discontinuous repeatable
FloorMod discontinuous repeatable
FusedBatchNorm fused_batch_norm batch_norm layer heavy any_size
FusedBatchNormGrad heavy
FusedBatchNormGradV2 heavy
FusedBatchNormGradV3 heavy
FusedBatchNormV2 fused_batch_norm batch_norm layer heavy any_size
FusedBatchNormV3 fused_batch_norm batch_norm layer heavy any_size
Gather layer moves
GatherNd repeatable
GatherV2 layer moves repeatable any_size
GcsConfigureBlockCache uses_network
GcsConfigureCredentials uses_network
GenerateBigQueryReaderPartitions uses_network
GenerateVocabRemapping touches_files
Greater repeatable order
GreaterEqual repeatable order
GRUBlockCell layer heavy
HashTable table
HashTableV2 table
Identity passes any_size
IdentityN any_size
If branch
ImportEvent touches_files
IndexTable table
InitializeTableFromTextFile touches_files
InitializeTableFromTextFileV2 touches_files
Inv reciprocal
InvGrad result_gradient
IteratorGetNext feeds_training
IteratorGetNextSync feeds_training
L2Loss adds_up
LeakyRelu any_size
Less repeatable order
LessEqual order
ListDiff sized_by_value
ListSnapshotChunksDataset touches_files
LMDBDataset touches_files
LMDBReader touches_files
LoadAndRemapMatrix touches_files
LoadDataset touches_files
Log elementwise transcendental any_size
LogicalAnd repeatable
LogicalNot repeatable
LogSoftmax transcendental any_size
LookupTableFind table_lookup
LookupTableFindV2 table_lookup
LoopCond loop_condition control_flow
LRN heavy any_size
LRNGrad heavy
LSTMBlockCell layer heavy
MatchingFiles touches_files
MatchingFilesDataset touches_files
MatMul matrix_product layer heavy any_size
Max repeatable any_size
Maximum elementwise repeatable any_size
MaxPool heavy any_size
MaxPool3D heavy
MaxPoolGrad heavy
MaxPoolWithArgmax heavy
Mean adds_up any_size
Merge merge control_flow
MergeV2Checkpoints touches_files checkpoint
Mfcc recording
Min repeatable any_size
Minimum elementwise repeatable any_size
MirrorPad pad any_size
Mod discontinuous
Mul product elementwise polynomial repeatable any_size
Multinomial random
MutableDenseHashTable table
MutableDenseHashTableV2 table
MutableHashTable table
MutableHashTableOfTensors table
MutableHashTableOfTensorsV2 table
MutableHashTableV2 table
Neg elementwise polynomial any_size
NextIteration next_iteration control_flow
NonMaxSuppressionV2 box_selection
NonMaxSuppressionV3 box_selection
NonMaxSuppressionV4 box_selection
NonMaxSuppressionV5 box_selection
NoOp effect
NotEqual repeatable
OneHot repeatable
Pack joins moves repeatable
Pad pad any_size
PadV2 pad any_size
ParameterizedTruncatedNormal random
ParseExample example_parser
ParseExampleV2 example_parser
ParseSingleExample example_parser
PartitionedCall call
Placeholder placeholder
PlaceholderV2 placeholder
PlaceholderWithDefault placeholder
Pow transcendental any_size
Prelu layer
PreventGradient passes
Print effect
PrintV2 effect
Prod polynomial repeatable
PyFunc runs_code
PyFuncStateless runs_code
QuantizedConv2D layer
QuantizedMatMul layer
RandomGamma random
RandomPoisson random
RandomPoissonV2 random
RandomShuffle random
RandomStandardNormal random
RandomUniform random uniform_noise
RandomUniformInt random
Range repeatable
Rank shape repeatable
ReaderRead feeds_training
ReaderReadUpTo feeds_training
ReaderReadUpToV2 feeds_training
ReaderReadV2 feeds_training
ReadFile touches_files
ReadVariableOp reads_handle
RealDiv quotient elementwise any_size
Reciprocal reciprocal
ReciprocalGrad result_gradient
RecordInput feeds_training touches_files
ReduceDataset feeds_training
RefEnter reference enter control_flow
RefExit reference exit control_flow
RefIdentity reference
RefMerge reference merge control_flow
RefNextIteration reference next_iteration control_flow
RefSelect reference
RefSwitch reference switch control_flow
RegexReplace repeatable
RegisterDataset uses_network
RegisterDatasetV2 uses_network
Relu elementwise any_size
Relu6 elementwise any_size
RemoteFusedGraphExecute runs_code
Reshape view moves repeatable any_size
ResizeArea resize
ResizeBicubic resize
ResizeBilinear heavy resize any_size
ResizeNearestNeighbor heavy resize any_size
ResourceGather layer reads_handle
ResourceGatherNd reads_handle
Restore touches_files checkpoint
RestoreSlice touches_files checkpoint
RestoreV2 touches_files checkpoint
ReverseV2 moves
Rint discontinuous
Round discontinuous
Rpc uses_network
RpcCall uses_network
RpcCheckStatus uses_network
RpcClient uses_network
RpcGetValue uses_network
RpcServer uses_network
RpcServerRegister uses_network
RpcServerStart uses_network
Rsqrt elementwise any_size
RsqrtGrad result_gradient
Save touches_files checkpoint
SaveDataset touches_files
SaveDatasetV2 touches_files
SaveSlices touches_files checkpoint
SaveV2 touches_files checkpoint
Select any_size
SelectV2 any_size
Selu transcendental
Shape shape repeatable
ShapeN shape
Sigmoid elementwise transcendental any_size
SigmoidGrad result_gradient
Sign discontinuous any_size
Size shape repeatable
Slice moves repeatable any_size
Snapshot passes
SnapshotChunkDataset touches_files
SnapshotDataset touches_files
SnapshotDatasetReader touches_files
SnapshotDatasetV2 touches_files
SnapshotNestedDatasetReader touches_files
Softmax heavy transcendental any_size
Softplus transcendental
SpaceToDepth any_size
SparseCross repeatable
SparseCrossHashed repeatable
SparseFillEmptyRows repeatable
SparseMatMul layer
SparseReshape repeatable
SparseToDense repeatable
Split moves any_size
SplitV moves
SqlDataset touches_files
Sqrt elementwise any_size
SqrtGrad result_gradient
Square elementwise any_size
SquaredDifference any_size
Squeeze view moves repeatable any_size
StatefulPartitionedCall call
StatelessCase branch
StatelessIf branch
StatelessRandomUniform uniform_noise
StatelessRandomUniformV2 uniform_noise
StatelessWhile loop
StaticRegexReplace repeatable
StopGradient passes any_size
StridedSlice moves repeatable any_size
StringLower repeatable
StringSplit repeatable
StringSplitV2 repeatable
StringToHashBucketFast repeatable
StringToHashBucketStrong repeatable
Sub difference elementwise polynomial repeatable any_size
Sum polynomial adds_up any_size
Switch switch control_flow
Tanh elementwise transcendental any_size
TanhGrad result_gradient
TemporaryVariable reference_variable
TensorArrayGatherV3 array_read
TensorArrayReadV3 array_read
TensorArrayScatterV3 array_write
TensorArraySplitV3 array_write
TensorArrayWriteV3 array_write
TensorListFromTensor array_write
TensorListGetItem array_read
TensorListSetItem array_write
TensorListStack array_read
TextLineDataset touches_files
TextLineReader touches_files
TextLineReaderV2 touches_files
TFRecordDataset touches_files
TFRecordDatasetV2 touches_files
TFRecordReader touches_files
TFRecordReaderV2 touches_files
Tile moves repeatable any_size
TopK discontinuous
TopKV2 discontinuous
TPUCompile runs_code
TPUExecute runs_code
TPUExecuteAndUpdateVariables runs_code
Transpose moves repeatable any_size
TRTEngineOp runs_code
TruncateDiv discontinuous
TruncatedNormal random
TryRpc uses_network
Unique sized_by_value repeatable
UniqueV2 sized_by_value
UniqueWithCounts sized_by_value
Unpack moves
VarHandleOp variable
Variable variable reference_variable
VariableShape reads_handle
VariableV2 variable reference_variable
Where sized_by_value repeatable
While loop
WholeFileReader touches_files
WholeFileReaderV2 touches_files
WriteFile touches_files
XlaCallModule runs_code
XlaCustomCall runs_code
XlaCustomCallV2 runs_code
XlaHostCompute runs_code
XlaLaunch runs_code
XlaLaunchV2 runs_code
XlaSharding passes any_size
"""


@lru_cache(maxsize=1)
def table() -> dict[str, frozenset[str]]:
    """The ops that have each trait."""
    found: dict[str, set[str]] = {}
    for row in ROWS.split("\n"):
        op, *traits = row.split() or [""]
        for trait in traits:
            found.setdefault(trait, set()).add(op)
    return {trait: frozenset(ops) for trait, ops in found.items()}


def ops_with(*traits: str) -> frozenset[str]:
    """The ops that have any of the traits.

    Raises:
        KeyError: there is no such trait.
    """
    known = table()
    return frozenset().union(*(known[trait] for trait in traits))


VARIABLES = ops_with("variable")
"""Ops that make a variable, or the handle of one."""
