"""How many operands an operator takes, how many results it gives, and which options it cannot do without.

LiteRT's kernels check much of that, but some read operands that are not there. Source: the kernels of the LiteRT
project (``NumInputs`` and ``NumOutputs`` in their ``Prepare``) and of its XNNPACK delegate.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.graph.dtype import BOOL
from pocketgraph.litert.operator_traits import GIVING_BOOL, KEEPING_TYPE, POOLS
from pocketgraph.litert.program import Operation
from pocketgraph.litert.writing import schema

MANY = 1 << 20
"""Of operators that take, or give, as many as there are."""


class Form(NamedTuple):
    """What an operator takes and gives; a last operand or more may be left out where ``least`` is below ``most``."""

    least: int
    most: int
    results: int = 1


_SEGMENTS = ("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_SUM")
_FORMS: dict[str, Form] = {
    "BATCH_TO_SPACE_ND": Form(3, 3), "CALL_ONCE": Form(0, 0, 0), "CONCATENATION": Form(1, MANY),
    "CONV_2D": Form(2, 3), "DEPTHWISE_CONV_2D": Form(2, 3), "DYNAMIC_UPDATE_SLICE": Form(3, 3),
    "FULLY_CONNECTED": Form(2, 3),
    "ASSIGN_VARIABLE": Form(2, 2, 0),
    "NON_MAX_SUPPRESSION_V4": Form(5, 5, 2), "ONE_HOT": Form(4, 4), "PACK": Form(1, MANY), "PADV2": Form(3, 3),
    "RESHAPE": Form(1, 2), "SCATTER_ND": Form(3, 3), "SELECT": Form(3, 3), "SELECT_V2": Form(3, 3), "SLICE": Form(3, 3),
    "SPACE_TO_BATCH_ND": Form(3, 3), "SPLIT": Form(2, 2, MANY), "SPLIT_V": Form(3, 3, MANY),
    "STRIDED_SLICE": Form(4, 4), "TOPK_V2": Form(2, 2, 2), "TRANSPOSE_CONV": Form(3, 4), "UNPACK": Form(1, 1, MANY),
    "VAR_HANDLE": Form(0, 0),
    **dict.fromkeys(_SEGMENTS, Form(3, 3)),
}  # fmt: skip

_OF_ONE = frozenset((
    "ABS", "AVERAGE_POOL_2D", "CAST", "CEIL", "COS", "DEPTH_TO_SPACE", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU",
    "LEAKY_RELU", "LOCAL_RESPONSE_NORMALIZATION", "LOG", "LOGICAL_NOT", "LOGISTIC", "LOG_SOFTMAX", "MAX_POOL_2D", "NEG",
    "QUANTIZE", "READ_VARIABLE", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT", "SHAPE", "SIGN", "SIN", "SOFTMAX",
    "SPACE_TO_DEPTH", "SQRT", "SQUARE", "TANH", "ZEROS_LIKE",
))  # fmt: skip
"""All others take two operands, and give one result."""

_WINDOWS = ("padding", "stride_w", "stride_h", "activation")
_NEEDED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(POOLS, (*_WINDOWS, "filter_w", "filter_h")),
    "CONV_2D": (*_WINDOWS, "dilation_w", "dilation_h"), "DEPTH_TO_SPACE": ("block_size",),
    "DEPTHWISE_CONV_2D": (*_WINDOWS, "multiplier", "dilation_w", "dilation_h"),
    "LEAKY_RELU": ("alpha",), "LOCAL_RESPONSE_NORMALIZATION": ("radius", "bias", "alpha", "beta"),
    "MIRROR_PAD": ("mode",), "PACK": ("values_count",), "SOFTMAX": ("beta",), "SPACE_TO_DEPTH": ("block_size",),
    "SPLIT": ("num_splits",), "SPLIT_V": ("num_splits",), "TRANSPOSE_CONV": ("padding", "stride_w", "stride_h"),
    "UNPACK": ("num",),
}  # fmt: skip
"""Options whose default is of no use, or that passes ask for."""

_POSITIVE = ("stride_w", "stride_h", "dilation_w", "dilation_h", "filter_w", "filter_h", "block_size", "multiplier")
_RANKS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(POOLS, (4,)), "CONV_2D": (4, 4), "DEPTHWISE_CONV_2D": (4, 4), "FULLY_CONNECTED": (0, 2),
    "TRANSPOSE_CONV": (1, 4, 4),
}  # fmt: skip
"""The rank of the first operands; 0 for any."""


def misuse(operation: Operation) -> str:
    """What is wrong with the form of an operation, such as ``ADD with 1 operand, and it takes 2``; empty where nothing
    is."""
    code, count = operation.code, len(operation.inputs)
    if code not in schema.OPERATORS:
        return f"{code}, which LiteRT does not have"
    least, most, results = _FORMS.get(code) or (Form(1, 1) if code in _OF_ONE else Form(2, 2))
    if not least <= count <= most:
        takes = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        return f"{code} with {count} operand{'s' * (count != 1)}, and it takes {takes}"
    if any(operand is None for operand in operation.inputs[:least]):
        return f"{code} with None among the operands that it needs"
    if results == MANY:
        results = max(1, len(operation.outputs))
    if len(operation.outputs) != results:
        return f"{code} with {len(operation.outputs)} results, and it gives {results}"
    given = operation.outputs[0].dtype if operation.outputs else None
    first = operation.inputs[0] if operation.inputs else None
    made = BOOL if code in GIVING_BOOL else first.dtype if code in KEEPING_TYPE and first is not None else None
    if made is not None and given is not made:
        return f"{code} with a result of {given.name if given else 'no type'}, and it gives {made.name} here"
    for place, (rank, operand) in enumerate(zip(_RANKS.get(code, ()), operation.inputs, strict=False)):
        if rank and operand is not None and len(operand.shape) != rank:
            return f"{code} with an operand {place} of shape {list(operand.shape)}, and it takes {rank} dimensions"
    return _wrong_option(operation)


def _wrong_option(operation: Operation) -> str:
    code, options = operation.code, operation.options
    table = schema.OPERATORS[code].options
    known = schema.option_fields(table).by_name if table else {}
    for name, value in options.items():
        if name not in known:
            return f"{code} with the option {name}, and it has {', '.join(known) or 'none'}"
        if name in schema.CHOICES and value not in schema.CHOICES[name]:
            allowed = ", ".join(map(repr, schema.CHOICES[name]))
            return f"{code} with {name}={value!r}, and there are {allowed}"
        if name in _POSITIVE and not (isinstance(value, int) and value > 0):
            return f"{code} with {name}={value!r}, and it takes a whole number from 1"
    missing = [name for name in _NEEDED.get(code, ()) if name not in options]
    if missing:
        return f"{code} without {' and '.join(missing)}"
    counted = {"SPLIT": "num_splits", "SPLIT_V": "num_splits", "UNPACK": "num"}.get(code)
    if counted and options[counted] != len(operation.outputs):
        return f"{code} with {counted}={options[counted]!r} and {len(operation.outputs)} results"
    axis = operation.inputs[0] if code == "SPLIT" else None
    if axis is not None and (axis.size != 1 or axis.dtype.name != "int32"):
        return "SPLIT with a first operand that is no axis, one int32"
    return ""
