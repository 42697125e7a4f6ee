"""Facts of the public TensorFlow Lite schema (version 3): operator numbers, option tables, enum values.

Source: ``schema.fbs`` of the LiteRT project. Only what the lowering emits is listed; to emit one more operator, add its
row.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pocketgraph.graph.record import Record

VERSION = 3
IDENTIFIER = b"TFL3"

TENSOR_TYPES = {
    "float": 0, "half": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6, "int16": 7, "complex64": 8,
    "int8": 9, "double": 10, "complex128": 11, "uint64": 12, "uint32": 15, "uint16": 16, "int4": 17,
    "bfloat16": 18, "resource": 13,
}  # fmt: skip
"""TensorType numbers by TensorFlow's dtype names."""

PADDINGS = {"SAME": 0, "VALID": 1}
ACTIVATIONS = {"": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
MIRROR_PAD_MODES = {"REFLECT": 0, "SYMMETRIC": 1}


class Field(Record):
    """One field of an option table: its slot and how it is stored (see flatbuffer.py)."""

    slot: int
    kind: str


class OptionFields(Record):
    """An option table: its number in the BuiltinOptions union and its fields by name."""

    number: int
    by_name: dict[str, Field]


class Operator(NamedTuple):
    """A builtin operator: its number, the name of its option table (empty when it has none), and its version.

    The version is the first one that LiteRT still registers; the kernels look at their operands, not at it.
    """

    number: int
    options: str
    version: int = 1


@cache
def option_fields(name: str) -> OptionFields:
    """The option table of this name in OPTIONS."""
    number, fields = OPTIONS[name]
    words = [word.split(":") for word in fields.split()]
    return OptionFields(number, {field: Field(int(slot), kind) for slot, field, kind in words})


_ACTIVATION = "0:activation:i8"

OPTIONS: dict[str, tuple[int, str]] = {
    "Conv2D": (1, "0:padding:i8 1:stride_w:i32 2:stride_h:i32 3:activation:i8 4:dilation_w:i32 5:dilation_h:i32"),
    "DepthwiseConv2D": (
        2,
        "0:padding:i8 1:stride_w:i32 2:stride_h:i32 3:multiplier:i32 4:activation:i8 5:dilation_w:i32 6:dilation_h:i32",
    ),
    "Pool2D": (5, "0:padding:i8 1:stride_w:i32 2:stride_h:i32 3:filter_w:i32 4:filter_h:i32 5:activation:i8"),
    "FullyConnected": (8, "0:activation:i8 2:keep_num_dims:bool 3:asymmetric_inputs:bool"),
    "Softmax": (9, "0:beta:f32"),
    "Concatenation": (10, "0:axis:i32 1:activation:i8"),
    "Add": (11, _ACTIVATION + " 1:power_of_two_scales:bool"),
    "LocalResponseNormalization": (13, "0:radius:i32 1:bias:f32 2:alpha:f32 3:beta:f32"),
    "ResizeBilinear": (15, "2:align_corners:bool 3:half_pixel_centers:bool"),
    "Reshape": (17, "0:new_shape:[i32]"),
    "SpaceToDepth": (19, "0:block_size:i32"),
    "Mul": (21, _ACTIVATION),
    "Pad": (22, ""),
    "Gather": (23, "0:axis:i32 1:batch_dims:i32"),
    "BatchToSpaceND": (24, ""),
    "SpaceToBatchND": (25, ""),
    "Transpose": (26, ""),
    "Reducer": (27, "0:keep_dims:bool"),
    "Sub": (28, _ACTIVATION + " 1:power_of_two_scales:bool"),
    "Div": (29, _ACTIVATION),
    "StridedSlice": (
        32,
        "0:begin_mask:i32 1:end_mask:i32 2:ellipsis_mask:i32 3:new_axis_mask:i32 4:shrink_axis_mask:i32",
    ),
    "Exp": (33, ""),
    "TopKV2": (34, ""),
    "Split": (35, "0:num_splits:i32"),
    "LogSoftmax": (36, ""),
    "Cast": (37, "0:in_type:i8 1:out_type:i8"),
    "MaximumMinimum": (39, ""),
    "ArgMax": (40, "0:output_type:i8"),
    "Less": (41, ""),
    "Neg": (42, ""),
    "PadV2": (43, ""),
    "Greater": (44, ""),
    "GreaterEqual": (45, ""),
    "LessEqual": (46, ""),
    "Slice": (48, ""),
    "TransposeConv": (49, "0:padding:i8 1:stride_w:i32 2:stride_h:i32 3:activation:i8"),
    "Tile": (51, ""),
    "Equal": (53, ""),
    "NotEqual": (54, ""),
    "Shape": (55, "0:out_type:i8"),
    "Pow": (56, ""),
    "ArgMin": (57, "0:output_type:i8"),
    "Pack": (59, "0:values_count:i32 1:axis:i32"),
    "LogicalOr": (60, ""),
    "OneHot": (61, "0:axis:i32"),
    "LogicalAnd": (62, ""),
    "LogicalNot": (63, ""),
    "Unpack": (64, "0:num:i32 1:axis:i32"),
    "FloorDiv": (65, ""),
    "Square": (66, ""),
    "ZerosLike": (67, ""),
    "FloorMod": (72, ""),
    "ResizeNearestNeighbor": (74, "0:align_corners:bool 1:half_pixel_centers:bool"),
    "LeakyRelu": (75, "0:alpha:f32"),
    "SquaredDifference": (76, ""),
    "MirrorPad": (77, "0:mode:i8"),
    "Abs": (78, ""),
    "SplitV": (79, "0:num_splits:i32"),
    "ReverseV2": (81, ""),
    "GatherNd": (83, ""),
    "Cos": (84, ""),
    "ReverseSequence": (87, "0:sequence_axis:i32 1:batch_axis:i32"),
    "DepthToSpace": (94, "0:block_size:i32"),
    "ScatterNd": (97, ""),
    "SelectV2": (98, ""),
    "BatchMatMul": (101, "0:adj_x:bool 1:adj_y:bool"),
    "Cumsum": (102, "0:exclusive:bool 1:reverse:bool"),
    "BroadcastTo": (104, ""),
    "CallOnce": (103, "0:init_subgraph:i32"),
    "VarHandle": (111, "0:container:string 1:shared_name:string"),
    "ReadVariable": (112, ""),
    "AssignVariable": (113, ""),
    "Gelu": (116, "0:approximate:bool"),
    "ATan2": (122, ""),
    "Sign": (123, ""),
}
"""The option tables by name: the number, and a ``slot:name:kind`` word for each field."""

_FIRST_VERSION = {"BROADCAST_TO": 2}

OPERATORS: dict[str, Operator] = {
    name: Operator(number, options, _FIRST_VERSION.get(name, 1))
    for name, number, options in (
        ("ADD", 0, "Add"), ("AVERAGE_POOL_2D", 1, "Pool2D"), ("CONCATENATION", 2, "Concatenation"),
        ("CONV_2D", 3, "Conv2D"), ("DEPTHWISE_CONV_2D", 4, "DepthwiseConv2D"), ("DEPTH_TO_SPACE", 5, "DepthToSpace"),
        ("DEQUANTIZE", 6, ""), ("FLOOR", 8, ""), ("FULLY_CONNECTED", 9, "FullyConnected"),
        ("LOCAL_RESPONSE_NORMALIZATION", 13, "LocalResponseNormalization"), ("LOGISTIC", 14, ""),
        ("MAX_POOL_2D", 17, "Pool2D"), ("MUL", 18, "Mul"), ("RELU", 19, ""), ("RELU_N1_TO_1", 20, ""),
        ("RELU6", 21, ""), ("RESHAPE", 22, "Reshape"), ("RESIZE_BILINEAR", 23, "ResizeBilinear"),
        ("SOFTMAX", 25, "Softmax"), ("SPACE_TO_DEPTH", 26, "SpaceToDepth"), ("TANH", 28, ""), ("PAD", 34, "Pad"),
        ("GATHER", 36, "Gather"), ("BATCH_TO_SPACE_ND", 37, "BatchToSpaceND"),
        ("SPACE_TO_BATCH_ND", 38, "SpaceToBatchND"), ("TRANSPOSE", 39, "Transpose"), ("MEAN", 40, "Reducer"),
        ("SUB", 41, "Sub"), ("DIV", 42, "Div"), ("STRIDED_SLICE", 45, "StridedSlice"), ("EXP", 47, "Exp"),
        ("TOPK_V2", 48, "TopKV2"), ("SPLIT", 49, "Split"), ("LOG_SOFTMAX", 50, "LogSoftmax"), ("CAST", 53, "Cast"),
        ("PRELU", 54, ""), ("MAXIMUM", 55, "MaximumMinimum"), ("ARG_MAX", 56, "ArgMax"),
        ("MINIMUM", 57, "MaximumMinimum"), ("LESS", 58, "Less"), ("NEG", 59, "Neg"), ("PADV2", 60, "PadV2"),
        ("GREATER", 61, "Greater"), ("GREATER_EQUAL", 62, "GreaterEqual"), ("LESS_EQUAL", 63, "LessEqual"),
        ("SELECT", 64, ""), ("SLICE", 65, "Slice"), ("SIN", 66, ""), ("TRANSPOSE_CONV", 67, "TransposeConv"),
        ("TILE", 69, "Tile"), ("EQUAL", 71, "Equal"), ("NOT_EQUAL", 72, "NotEqual"), ("LOG", 73, ""),
        ("SUM", 74, "Reducer"), ("SQRT", 75, ""), ("RSQRT", 76, ""), ("POW", 78, "Pow"), ("ARG_MIN", 79, "ArgMin"),
        ("REDUCE_PROD", 81, "Reducer"), ("REDUCE_MAX", 82, "Reducer"), ("PACK", 83, "Pack"),
        ("LOGICAL_OR", 84, "LogicalOr"), ("ONE_HOT", 85, "OneHot"), ("LOGICAL_AND", 86, "LogicalAnd"),
        ("LOGICAL_NOT", 87, "LogicalNot"), ("UNPACK", 88, "Unpack"), ("REDUCE_MIN", 89, "Reducer"),
        ("FLOOR_DIV", 90, "FloorDiv"), ("REDUCE_ANY", 91, "Reducer"), ("SQUARE", 92, "Square"),
        ("ZEROS_LIKE", 93, "ZerosLike"), ("FLOOR_MOD", 95, "FloorMod"),
        ("RESIZE_NEAREST_NEIGHBOR", 97, "ResizeNearestNeighbor"),
        ("LEAKY_RELU", 98, "LeakyRelu"), ("SQUARED_DIFFERENCE", 99, "SquaredDifference"),
        ("MIRROR_PAD", 100, "MirrorPad"), ("ABS", 101, "Abs"), ("SPLIT_V", 102, "SplitV"), ("CEIL", 104, ""),
        ("REVERSE_V2", 105, "ReverseV2"), ("GATHER_ND", 107, "GatherNd"),
        ("COS", 108, "Cos"), ("ELU", 111, ""), ("QUANTIZE", 114, ""), ("ROUND", 116, ""),
        ("NON_MAX_SUPPRESSION_V4", 120, ""), ("SCATTER_ND", 122, "ScatterNd"), ("SELECT_V2", 123, "SelectV2"),
        ("BATCH_MATMUL", 126, "BatchMatMul"), ("CUMSUM", 128, "Cumsum"),
        ("CALL_ONCE", 129, "CallOnce"), ("VAR_HANDLE", 142, "VarHandle"), ("READ_VARIABLE", 143, "ReadVariable"),
        ("ASSIGN_VARIABLE", 144, "AssignVariable"), ("BROADCAST_TO", 130, "BroadcastTo"),
        ("SHAPE", 77, "Shape"),
        ("REDUCE_ALL", 140, "Reducer"),
        ("REVERSE_SEQUENCE", 112, "ReverseSequence"), ("GELU", 150, "Gelu"), ("ATAN2", 156, "ATan2"),
        ("SIGN", 158, "Sign"), ("UNSORTED_SEGMENT_PROD", 153, ""), ("UNSORTED_SEGMENT_MAX", 154, ""),
        ("UNSORTED_SEGMENT_SUM", 155, ""), ("UNSORTED_SEGMENT_MIN", 157, ""),
    )
}  # fmt: skip
