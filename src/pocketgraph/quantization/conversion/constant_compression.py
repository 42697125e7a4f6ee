"""Keeps large constants that are read as floats in eight bits all the same, to be expanded when they are needed.

    GATHER(float table) ─ y            GATHER(int8 table) ─DEQUANTIZE─ y
    MUL(x, float constant)             MUL(x, DEQUANTIZE(int8 constant))

Embeddings are read in float where what follows computes in float, and so are the factors and offsets of a normalization
over places. A file would hold four bytes for each of their numbers. LiteRT expands a constant once, when it loads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import ARITHMETIC
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.conversion_recipe import ConvertedProgram
from pocketgraph.quantization.core.operator_rules import is_table
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import Range, quantized
from pocketgraph.quantization.mixed_precision.float_layers import preparation

PRODUCTS = frozenset(("BATCH_MATMUL",))
"""Not a trait: products that may have a constant operand without being layers, as of a matrix for each part."""


def with_compressed_constants(
    converted: ConvertedProgram, untouched: Collection[Value]
) -> tuple[ConvertedProgram, list[str]]:
    """The program with such constants in codes, and what is to be said of it.

    Args:
        converted: what ``convert`` gave; its program stays as it is.
        untouched: results of operations whose factors and offsets stay float, such as those that bring numbers of many
            units to one.
    """
    program = converted.program
    operations, found = compressed(program.operations, ARITHMETIC | PRODUCTS, untouched)
    if not found:
        return converted, []
    numbers = sum(value.size for value in found)
    note = f"{len(found)} large constants that are read as floats are kept in eight bits ({numbers:,} numbers)"
    return replace(converted, program=Program(list(program.inputs), list(program.outputs), operations)), [note]


def compressed(
    operations: Sequence[Operation], operators: Collection[str], untouched: Collection[Value] = ()
) -> tuple[list[Operation], list[Value]]:
    """The operations with large constants that these operators read, and tables, in codes; and which those are.

    A constant has codes for all of these readers or for none: they are as near as the one asks that asks for the most.
    """
    limits: dict[Value, float] = {}
    for operation in operations:
        for value, loudest in _large_constants(operation, operators, untouched):
            limits[value] = min(loudest, limits.get(value, math.inf))
    stored = {value: coded for value, loudest in limits.items() if (coded := _coded(value, loudest)) is not None}
    expanded: dict[Value, Value] = {}
    result: list[Operation] = []
    for operation in operations:
        read = [value for value, _ in _large_constants(operation, operators, untouched) if value in stored]
        if read and is_table(operation):
            result += gather_quantized(operation, stored[read[0]])
            continue
        for value in read:
            if value not in expanded:
                expanded[value] = Value(f"{value.name}/float", FLOAT, value.shape)
                result.append(Operation("DEQUANTIZE", [stored[value]], [expanded[value]]))
        if read:
            inputs = [expanded[value] if value in read else value for value in operation.operands]
            operation = operation.replace(inputs=inputs)
        result.append(operation)
    return result, [*stored]


def _large_constants(
    operation: Operation, operators: Collection[str], untouched: Collection[Value]
) -> list[tuple[Value, float]]:
    """What may have codes of what an operation reads, and which share of its power these may be off by."""
    if is_table(operation) and operation.outputs[0].dtype is FLOAT:
        return [(operation.operands[0], math.inf)]
    if operation.code not in operators or operation.outputs[0] in untouched:
        return []
    constants = [value for value in operation.inputs if value is not None and value.constant is not None]
    return [(value, step_limits.MOST_COMPRESSION_NOISE) for value in constants
            if value.size >= step_limits.FEWEST_COMPRESSED_ELEMENTS and value.dtype is FLOAT]  # fmt: skip


def gather_quantized(operation: Operation, coded: Value) -> list[Operation]:
    """A GATHER from a table of codes, the rows made numbers afterwards."""
    result = operation.outputs[0]
    rows = Value(f"{result.name}/int8", INT8, result.shape, None, coded.quantization)
    taken = Operation("GATHER", [coded, *operation.inputs[1:]], [rows], dict(operation.options), operation.nodes)
    return [taken, Operation("DEQUANTIZE", [rows], [result])]


def quantized_table(table: Value) -> Value:
    """A float constant in int8 codes of one scale."""
    numbers = table.content.numpy()
    quantization = Range(float(numbers.min()), float(numbers.max())).quantization()
    return Value(f"{table.name}/int8", INT8, table.shape, Constant.of(quantized(numbers, quantization)), quantization)


def _coded(value: Value, loudest: float) -> Value | None:
    """The constant in codes; None where it holds other than finite numbers, or the codes would be too far off."""
    numbers = value.content.numpy().astype(np.float64)
    if not np.isfinite(numbers).all():
        return None
    result = quantized_table(value)
    ((scale,), (zero,)) = result.coding.scales, result.coding.zero_points
    off = (result.content.numpy().astype(np.float64) - zero) * scale - numbers
    return result if float((off**2).sum()) <= loudest * float((numbers**2).sum()) else None


def apply(state: QuantizationState) -> bool:
    """The step; what prepares the data, and what was to stay in float, keeps its constants."""
    values = state.converted.values
    untouched = {
        v for operation in [*state.kept, *preparation(state.program, state.options.bits)] for v in operation.outputs
    }
    state.converted, said = with_compressed_constants(state.converted, {values.get(v, v) for v in untouched})
    state.notes += said
    return bool(said)
