"""What is true of LiteRT's operators: sets that passes, quantization and exporters ask for."""

ARITHMETIC = frozenset(("ADD", "DIV", "MUL", "SUB"))
"""Element by element of two operands, with an activation behind it."""
IN_PLACE = ARITHMETIC | {"DYNAMIC_UPDATE_SLICE", "SOFTMAX"}
"""LiteRT's own kernels may write the result over an operand of the same size that nothing else reads."""
BOUNDS = frozenset(("MAXIMUM", "MINIMUM"))
"""Element by element of two operands, without one."""
BINARY = ARITHMETIC | BOUNDS
CONVOLUTIONS = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D"))
WEIGHTED = CONVOLUTIONS | {"FULLY_CONNECTED"}
"""Sums of products with weights of their own."""
HYBRID = frozenset(("CONV_2D", "FULLY_CONNECTED"))
"""With int8 weights they take a float operand too, which they quantize themselves, anew for each input."""
PADS = frozenset(("MIRROR_PAD", "PAD", "PADV2"))
REDUCTIONS = frozenset(("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM"))
"""Of numbers, along axes."""
POOLS = frozenset(("AVERAGE_POOL_2D", "MAX_POOL_2D"))
WEIGHT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}
"""The axis of the weights that goes along output channels."""
LARGEST_CODE = 127
"""Of weights, which are symmetric: -128 is not used, as the LiteRT specification asks."""
ELEMENTWISE = frozenset((
    "ABS", "ADD", "CAST", "CEIL", "COS", "DIV", "ELU", "EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GELU",
    "GREATER", "GREATER_EQUAL", "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR",
    "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "POW", "PRELU", "RELU", "RELU6", "RELU_N1_TO_1",
    "ROUND", "RSQRT", "SELECT", "SELECT_V2", "SIGN", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH",
))  # fmt: skip
UNARY = frozenset(("ABS", "ELU", "EXP", "LEAKY_RELU", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "TANH"))
"""Element by element of one operand, of floats, which XNNPACK computes."""
GIVING_BOOL = frozenset((
    "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "NOT_EQUAL",
    "REDUCE_ALL", "REDUCE_ANY",
))  # fmt: skip
KEEPING_TYPE = (ELEMENTWISE - GIVING_BOOL - {"CAST", "SELECT", "SELECT_V2"}) | {
    "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CUMSUM", "DEPTH_TO_SPACE", "GATHER", "GATHER_ND", "LOG_SOFTMAX", "MEAN",
    "MIRROR_PAD", "PACK", "PAD", "PADV2", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "RESHAPE", "REVERSE_SEQUENCE",
    "REVERSE_V2", "SLICE", "SOFTMAX", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT_V", "STRIDED_SLICE", "SUM", "TILE",
    "TRANSPOSE", "UNPACK", *POOLS,
}  # fmt: skip
"""Their results are of their first operand's type."""
SIZED_BY_SHAPES = ELEMENTWISE | WEIGHTED | POOLS | {
    "BATCH_MATMUL", "BITCAST", "CONCATENATION", "DEPTH_TO_SPACE", "GATHER", "LOG_SOFTMAX", "PACK", "SOFTMAX",
    "SPACE_TO_DEPTH", "UNPACK",
}  # fmt: skip
"""What they make has sizes that follow from the shapes of what they take."""
SIZED_BY_OPERANDS = frozenset((
    "BROADCAST_TO", "MEAN", "PAD", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "RESHAPE", "SLICE", "SPLIT",
    "STRIDED_SLICE", "SUM", "TILE", "TRANSPOSE",
))  # fmt: skip
"""The sizes follow from the values of operands too: those of all but one."""
