"""What LiteRT's operators ask of eight-bit operands: the table of how each one is quantized.

Source: the LiteRT 8-bit quantization specification. An operator that is not listed computes in float.
"""

from __future__ import annotations

from enum import Enum

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.operator_traits import BOUNDS
from pocketgraph.litert.program import Operation, Quantization, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR


class OperatorRule(Enum):
    """How the codes of an operator's results relate to those of its operands."""

    WEIGHTED = "constant weights with a scale for each output channel, a 32-bit bias, and results of their own range"
    SAME = "results and operands all have the same codes"
    OWN = "results have a range of their own"
    FIXED = "results have codes that the operator prescribes"


OPERATOR_RULES: dict[str, OperatorRule] = {
    **dict.fromkeys(LINEAR, OperatorRule.WEIGHTED),
    **dict.fromkeys(
        (
            "AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "GATHER",
            "GATHER_ND", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "MIRROR_PAD", "PACK", "PAD", "PADV2", "REDUCE_MAX",
            "REDUCE_MIN", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SELECT_V2", "SLICE",
            "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
        ),
        OperatorRule.SAME,
    ),
    **dict.fromkeys(
        (
            "ADD", "BATCH_MATMUL", "ELU", "GELU", "LEAKY_RELU", "MEAN", "MUL", "PRELU", "RELU", "RELU6",
            "RELU_N1_TO_1", "SQUARED_DIFFERENCE", "SUB", "SUM",
        ),
        OperatorRule.OWN,
    ),
    **dict.fromkeys(("LOGISTIC", "LOG_SOFTMAX", "SOFTMAX", "TANH"), OperatorRule.FIXED),
}  # fmt: skip

PRESCRIBED_INT8 = {
    "LOGISTIC": Quantization((1 / 256,), (-128,)),
    "SOFTMAX": Quantization((1 / 256,), (-128,)),
    "LOG_SOFTMAX": Quantization((16 / 256,), (127,)),
    "TANH": Quantization((1 / 128,), (0,)),
}
"""The codes of the results of FIXED operators."""

PRESCRIBED_INT16 = dict.fromkeys(("LOGISTIC", "SOFTMAX", "TANH"), Quantization((1 / 32768,), (0,)))
"""Those with int16 codes."""

ONLY_8 = frozenset((
    "DEPTH_TO_SPACE", "ELU", "GELU", "LOG_SOFTMAX", "PRELU", "RELU_N1_TO_1", "SPACE_TO_DEPTH",
    "SQUARED_DIFFERENCE", "TILE",
))  # fmt: skip
"""Operators that have int8 but no int16 form in LiteRT (TILE: not in that of TensorFlow 2.21)."""


LARGE_TABLE = 1024  # elements of a constant that rows are taken from
MOST_RANK = 4  # above this many dimensions LiteRT's eight-bit arithmetic operators do not broadcast


def can_quantize(operation: Operation, bits: int = 8) -> bool:
    """Whether the operator computes with codes of 8 or 16 bits, given these operands."""
    kind = OPERATOR_RULES.get(operation.code)
    if bits == 16 and (operation.code in ONLY_8 or operation.options.get("activation") == "RELU_N1_TO_1"):
        return False
    if kind is None or not any(value.dtype is FLOAT for value in operation.outputs):
        return False
    if any(value.dtype is not FLOAT for value in operation.outputs) and operation.code not in ("ARG_MAX",):
        return False
    if kind is OperatorRule.WEIGHTED:
        return _has_known_weights(operation)
    if kind is OperatorRule.OWN and any(len(value.shape) > MOST_RANK for value in float_operands(operation)):
        return False
    if operation.code in BOUNDS:
        return all(len(value.shape) <= MOST_RANK for value in float_operands(operation))
    if is_table(operation):
        return bits == 8
    return any(value.constant is None for value in float_operands(operation))


def is_layer(operation: Operation) -> bool:
    """Whether the operator is one of those that have weights: a convolution or a product by a matrix."""
    return OPERATOR_RULES.get(operation.code) is OperatorRule.WEIGHTED


def is_quantizable_layer(operation: Operation) -> bool:
    """Whether it is a layer whose weights are known, so that they can have codes."""
    return is_layer(operation) and can_quantize(operation)


def is_table(operation: Operation) -> bool:
    """Whether rows are taken from a constant large enough to be worth codes, as embeddings are."""
    table = operation.inputs[0]
    return operation.code == "GATHER" and table is not None and table.constant is not None and table.size >= LARGE_TABLE


def has_weights(operation: Operation) -> bool:
    """Whether constants are made smaller when the operation computes with codes."""
    return is_layer(operation) or is_table(operation)


def float_operands(operation: Operation) -> list[Value]:
    """The operands that are real numbers."""
    return [value for value in operation.inputs if value is not None and value.dtype is FLOAT]


def data(operation: Operation) -> Value:
    """The operand of a WEIGHTED operator that is not its weights or bias."""
    return operation.operands[LINEAR[operation.code][0]]


def weights(operation: Operation) -> Value:
    """The weights of a WEIGHTED operator."""
    return operation.operands[LINEAR[operation.code][1]]


def bias(operation: Operation) -> Value | None:
    """The bias of a WEIGHTED operator, when it has one."""
    index = LINEAR[operation.code][2]
    return operation.inputs[index] if len(operation.inputs) > index else None


def _has_known_weights(operation: Operation) -> bool:
    kernel, offset = weights(operation), bias(operation)
    known = kernel.constant is not None and kernel.dtype is FLOAT and data(operation).constant is None
    return known and (offset is None or offset.constant is not None)
