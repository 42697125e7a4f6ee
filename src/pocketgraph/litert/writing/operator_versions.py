"""The version of each operator, by which a runtime tells whether it has the kernel, and the runtime that is needed.

Facts of LiteRT's ``tools/versioning``: op_version.cc and runtime_version.cc. A file says the largest runtime version of
its operators in the metadata ``min_runtime_version``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pocketgraph.formats.tflite_schema import entries
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.writing.schema import OPERATORS

METADATA = "min_runtime_version"
METADATA_BYTES = 16
LEAST = "1.5.0"

RUNTIMES = {name: written[1:] for name, *written in entries("operators") if written}
"""The first runtime of version 1, 2, … of each operator, ``.0`` being left out."""

COMMON = "3:int16 2:int8"
RULES = {
    "ADD": "4:int64 3:int16 2:int8", "SUB": "5:int16 4:int64 3:broadcast>4 2:int8", "DIV": "2:broadcast>4",
    "MUL": "5:int64 4:int16 3:rescaled 2:int8", "AVERAGE_POOL_2D": COMMON, "MAX_POOL_2D": COMMON,
    "CONCATENATION": COMMON, "SOFTMAX": COMMON, "MEAN": COMMON, "MIRROR_PAD": COMMON, "REDUCE_MAX": COMMON,
    "REDUCE_MIN": COMMON, "RELU6": COMMON, "RSQRT": COMMON, "TANH": COMMON, "LOGISTIC": COMMON, "PACK": COMMON,
    "CONV_2D": "6:grouped 4:int16 7:int8,in1=int4 3:int8 5:hybrid_by_channel 2:hybrid",
    "DEPTHWISE_CONV_2D": "5:int16 6:hybrid_by_channel 4:hybrid 7:int8,in1=int4 3:int8 2:dilated",
    "FULLY_CONNECTED": "12:hybrid_by_channel 7:int16 6:two_inputs 5:keep_num_dims 10:int8,in1=int4 4:int8 "
                       "9:hybrid,asymmetric_inputs 3:hybrid",
    "GATHER": "5:batch_dims 4:int16 3:bool 2:int8", "GATHER_ND": "5:bool 3:int16",
    "TRANSPOSE": "6:rank>5 5:int16 4:rank>4 3:bool 2:int8", "TRANSPOSE_CONV": "4:activation 3:in3 2:in1=int8",
    "SPLIT": "4:in1=int16 3:in1=int32 2:in1=int8", "SLICE": "5:rank>4 4:int16 2:int8",
    "UNPACK": "2:int8 2:uint8 3:bool 4:int16", "DEQUANTIZE": "6:int4 3:int16 3:half 5:int8,by_channel 2:int8",
    "QUANTIZE": "4:out=int4 3:by_channel 2:out=int16", "FLOOR_DIV": "3:int16 3:int8 2:float",
    "FLOOR_MOD": "2:int16 2:int8", "ABS": "5:int32 3:int16 2:int8 2:uint8", "RELU": "3:int16 2:int8 2:uint8",
    "STRIDED_SLICE": "6:ellipsis_mask 6:new_axis_mask 4:rank>4 3:bool 2:int8", "REVERSE_V2": "3:int8 2:bool",
    "RESIZE_BILINEAR": "4:int16 3:half_pixel_centers 2:int8",
    "RESIZE_NEAREST_NEIGHBOR": "4:int16 3:half_pixel_centers 3:align_corners 2:int8",
    "MAXIMUM": "4:int16 3:broadcast>4 2:int8", "MINIMUM": "4:int16 3:broadcast>4 2:int8", "TILE": "3:int8",
    "SPACE_TO_BATCH_ND": "4:int16 3:rank!=4 2:int8", "BATCH_TO_SPACE_ND": "4:int16 3:rank!=4 2:int8",
    "EQUAL": "4:int16 2:int8", "NOT_EQUAL": "2:int8", "LEAKY_RELU": "2:int16",
    "BATCH_MATMUL": "3:int16 2:int8 4:hybrid,asymmetric_inputs", "PAD": "4:rank>4 3:int16 2:int8",
    "PADV2": "4:rank>4 3:int16 2:int8", "ARG_MAX": "3:bool 2:int8", "ARG_MIN": "3:bool 2:int8",
    "LESS": COMMON, "GREATER_EQUAL": COMMON, "SPACE_TO_DEPTH": "2:int8", "SPLIT_V": "2:int8", "SUM": "2:int8",
    "LOG_SOFTMAX": "2:int8", "GREATER": "2:int8", "LESS_EQUAL": "2:int8", "SQUARED_DIFFERENCE": "2:int8",
    "DEPTH_TO_SPACE": "2:int8", "TOPK_V2": "3:int16 2:int8", "EXP": "2:int8 2:int16", "LOG": "2:int8 2:int16",
    "REDUCE_PROD": "2:int8 2:int16", "BROADCAST_TO": "3:int8 3:int16",
    "CAST": "7:bfloat16 7:out=bfloat16 6:int4 5:half 5:out=half 4:uint16 4:out=uint16 3:int8 3:out=int8 2:uint32 "
            "2:out=uint32",
    "GELU": "2:int8 2:uint8", "SIGN": "2:int32", "SELECT": "3:rank>4",
}  # fmt: skip
"""Which version an operation has: the first one whose conditions, joined by commas, all hold; see ``CONDITIONS``."""


def _is(number: int, name: str) -> Callable[[Operation], bool]:
    return lambda operation: _type(operation, number) == name


def _type(operation: Operation, number: int) -> str:
    value = operation.inputs[number] if number < len(operation.inputs) else None
    return "" if value is None else value.dtype.name


def _rank(operation: Operation) -> int:
    return max(len(value.shape) for value in operation.inputs if value is not None)


def _is_hybrid(operation: Operation) -> bool:
    return (_type(operation, 0), _type(operation, 1), operation.outputs[0].dtype.name) == ("float", "int8", "float")


def _is_by_channel(value: Value | None) -> bool:
    return value is not None and value.quantization is not None and len(value.quantization.scales) > 1


def _is_grouped(operation: Operation) -> bool:
    source, weights = operation.inputs[:2]
    return source is not None and weights is not None and source.shape[-1] != weights.shape[-1]


def _is_broadcast(operation: Operation) -> bool:
    first, second = operation.inputs[:2]
    return first is not None and second is not None and first.shape != second.shape and _rank(operation) > 4


def _is_rescaled(operation: Operation) -> bool:
    found = [value.quantization for value in (*operation.inputs, *operation.outputs) if value is not None]
    scales = [quantization.scales[0] for quantization in found if quantization is not None]
    return len(scales) == 3 and scales[0] * scales[1] / scales[2] >= 1


CONDITIONS: dict[str, Callable[[Operation], bool]] = {
    **{name: _is(0, name) for name in ("int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool",
                                       "float", "half", "bfloat16")},
    **{f"in1={name}": _is(1, name) for name in ("int4", "int8", "int16", "int32")},
    "rank>4": lambda operation: _rank(operation) > 4,
    "rank>5": lambda operation: _rank(operation) > 5,
    "rank!=4": lambda operation: operation.inputs[0] is not None and len(operation.inputs[0].shape) != 4,
    "broadcast>4": _is_broadcast,
    "rescaled": _is_rescaled,
    "grouped": _is_grouped,
    "hybrid": _is_hybrid,
    "hybrid_by_channel": lambda operation: _is_hybrid(operation) and _is_by_channel(operation.inputs[1]),
    "by_channel": lambda operation: _is_by_channel(operation.inputs[0]) or _is_by_channel(operation.outputs[0]),
    "dilated": lambda operation: max(operation.options["dilation_w"], operation.options["dilation_h"]) > 1,
    "two_inputs": lambda operation: len(operation.inputs) == 2,
    "in3": lambda operation: len(operation.inputs) > 3 and operation.inputs[3] is not None,
}  # fmt: skip
"""What holds of an operation, by name; other names are options that are set, and ``out=T`` is its result's type."""


def version(operation: Operation) -> int:
    """The version of the operator at work, as the official converter says it."""
    for rule in RULES.get(operation.code, "").split():
        number, conditions = rule.split(":")
        if all(_holds(operation, condition) for condition in conditions.split(",")):
            return int(number)
    return OPERATORS[operation.code].version


def _holds(operation: Operation, condition: str) -> bool:
    if condition.startswith("out="):
        return operation.outputs[0].dtype.name == condition.removeprefix("out=")
    known = CONDITIONS.get(condition)
    return known(operation) if known is not None else bool(operation.options.get(condition))


def runtime(operation: Operation) -> str:
    """The first version of the runtime that has this operator; of versions newer than the table the last it knows."""
    if operation.code not in RUNTIMES:
        return LEAST
    runtimes = RUNTIMES[operation.code]
    found = runtimes[min(version(operation), len(runtimes)) - 1]
    return found if found.count(".") == 2 else f"{found}.0"


def least_runtime(operations: Iterable[Operation]) -> str:
    """The first version of the runtime that has them all."""
    return max((runtime(operation) for operation in operations), key=_parts, default=LEAST)


def needed(programs: Iterable[Program]) -> dict[str, bytes]:
    """The metadata that tells the runtime which a file of these programs needs."""
    least = least_runtime(operation for program in programs for operation in program.operations)
    return {METADATA: least.encode().ljust(METADATA_BYTES, b"\0")}


def _parts(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
