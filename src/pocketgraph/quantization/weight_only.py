"""Weights in few bits without calibration: the file shrinks, and the tensors in between stay float."""

from __future__ import annotations

import math

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.linear import LINEAR
from pocketgraph.quantization.conversion.constant_compression import gather_quantized, quantized_table
from pocketgraph.quantization.conversion.int8_conversion import quantized_kernel
from pocketgraph.quantization.core import cost_model, operator_rules
from pocketgraph.quantization.core.conversion_recipe import ConvertedProgram
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights, rounded
from pocketgraph.quantization.fitting.weight_fitting import may_have_four_bits
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.observing.calibration_checks import check_weights
from pocketgraph.quantization.pipeline import Outcome
from pocketgraph.quantization.program_pass import copied

DYNAMIC = ("CONV_2D", "FULLY_CONNECTED")
"""Operators that quantize their float operand themselves, anew for each input, when their weights are int8."""


def quantize_weights(
    program: Program,
    samples: Samples,
    count: int,
    *,
    dynamic: bool,
    bits: int = 8,
    with_tables: bool = True,
    threads: int = 1,
    progress: Progress | None = None,
) -> Outcome:
    """The lighter program and what is known of it, for the report.

    Args:
        program, dynamic, bits, with_tables: as for ``with_quantized_weights``.
        samples, count: to see what values the tensors take; perhaps none.
        threads: how many threads to compute with.
        progress: told how far it is.

    Raises:
        RunError: weights are not finite, or a sample leads to values that are not.
    """
    check_weights(program)
    light = with_quantized_weights(program, dynamic=dynamic, bits=bits, with_tables=with_tables)
    seen = observe(program, samples, count, progress or silent, threads) if count else {}
    values = {value: value for value in program.inputs}
    values.update((value, value) for operation in program.operations for value in operation.outputs)
    weights = {o: _rounded(o, bits) for o in program.operations if _is_lightened(o)}
    tables = sum(operator_rules.is_table(operation) for operation in program.operations) if with_tables else 0
    few = "and LiteRT quantizes the tensors as they come" if dynamic else "expanded to float when the model is loaded"
    notes = [f"weights of {len(weights)} layers in few bits, {few}"]
    if tables:
        notes.append(f"{tables} table{'s' if tables > 1 else ''} that rows are taken from in eight bits")
    if not weights and not tables:
        notes = [
            f"no layer has {cost_model.FEWEST_COMPRESSED_ELEMENTS} weights or more, so that nothing was made smaller"
        ]
    return Outcome(program, ConvertedProgram(light, values, []), seen, weights=weights, notes=notes)


def with_quantized_weights(program: Program, *, dynamic: bool, bits: int = 8, with_tables: bool = True) -> Program:
    """A program with int8 or int4 weights, one scale an output channel.

    Args:
        program: the float program; it stays as it is.
        dynamic: have LiteRT compute with eight bits too where it quantizes operands by itself; otherwise, and for all
            other operators, weights are expanded to float when the model is loaded.
        bits: 8, or 4 for the large layers.
        with_tables: have constants that rows are taken from in eight bits as well, as embeddings are.
    """
    result = copied(program)
    operations: list[Operation] = []
    kernels: dict[Value, Value] = {}
    shared: dict[Value, Value] = {}
    tables: dict[Value, Value] = {}
    for operation in result.operations:
        if with_tables and operator_rules.is_table(operation):
            table = operation.inputs[0]
            assert table is not None
            if table not in tables:
                tables[table] = quantized_table(table)
            operations += gather_quantized(operation, tables[table])
            continue
        if _is_lightened(operation):
            kernel = operator_rules.weights(operation)
            at = LINEAR[operation.code][1]
            if kernel not in kernels:
                kernels[kernel] = quantized_kernel(kernel.name, _rounded(operation, bits))
            coded = kernels[kernel]
            if dynamic and operation.code in DYNAMIC:
                operation.inputs[at] = coded
                if operation.code == "FULLY_CONNECTED":
                    operation.options["asymmetric_inputs"] = True
            else:
                if kernel not in shared:
                    shared[kernel] = Value(f"{kernel.name}/float", FLOAT, kernel.shape)
                    operations.append(Operation("DEQUANTIZE", [coded], [shared[kernel]]))
                operation.inputs[at] = shared[kernel]
        operations.append(operation)
    result.operations = operations
    return result


def _is_lightened(operation: Operation) -> bool:
    return (
        operator_rules.is_quantizable_layer(operation)
        and operator_rules.weights(operation).size >= cost_model.FEWEST_COMPRESSED_ELEMENTS
    )


def _rounded(operation: Operation, bits: int) -> QuantizedWeights:
    """The weights as codes; without a bias of 32 bits the operand's scale is no bound."""
    return rounded(operation, math.inf, bits if may_have_four_bits(operation) else 8)
