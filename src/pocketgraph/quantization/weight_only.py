"""Weights in few bits without calibration: the file shrinks, and the tensors in between stay float."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR, float_constant
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.canonical.masked_values import bound_masks
from pocketgraph.quantization.conversion.constant_compression import (
    PRODUCTS,
    compressed,
    gather_quantized,
    quantized_table,
)
from pocketgraph.quantization.conversion.float16_weights import expanded_float16
from pocketgraph.quantization.conversion.int8_conversion import quantized_kernel
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.conversion_recipe import ConvertedProgram
from pocketgraph.quantization.core.layerwise_execution import samples_in_memory
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights, float_weights
from pocketgraph.quantization.fitting.weight_fitting import may_have_four_bits
from pocketgraph.quantization.fitting.weight_only_fitting import (
    WeightOnlyCodes,
    fitted_to_samples,
    fitted_to_training,
    multiplies_codes,
    nearest_codes,
    wider_weights,
)
from pocketgraph.quantization.mixed_precision.float_epsilons import epsilon_operations
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.observing.calibration_checks import check_weights
from pocketgraph.quantization.program_pass import copied

IN_ROUNDS = "the rounds of a loop"


def quantize_weights(
    program: Program,
    samples: Samples,
    count: int,
    *,
    dynamic: bool,
    graphs: Sequence[Graph] = (),
    bits: int = 8,
    with_tables: bool = True,
    rounding: str = "fitted",
    threads: int = 1,
    progress: Progress | None = None,
) -> QuantizationState:
    """The lighter program and what is known of it, for the report.

    Args:
        program: the float program; it stays as it is.
        samples, count: what to fit the codes to; perhaps none.
        dynamic, with_tables: as for ``with_quantized_weights``.
        graphs: those whose nodes the program's operations name; without samples, their batch norms tell what training
            saw. None for codes that are just the nearest.
        bits: 8, or 4 for the large layers.
        rounding: see QuantizationOptions.
        threads: how many threads to compute with.
        progress: told how far it is.

    Raises:
        RunError: weights are not finite, or a sample leads to values that are not.
    """
    check_weights(program)
    tell = progress or silent
    observed = copied(program)
    bound_masks(observed)  # only an infinity that a layer makes tells of damage
    seen = observe(observed, samples, count, tell, threads, keeps_floats=True) if count else {}
    layers = codable_layers(program, bits, step_limits.FEWEST_CODED_ELEMENTS)
    if rounding == "nearest" or not layers or not (graphs or count):
        codes = nearest_codes(layers)
    elif count:
        held = samples_in_memory(program, samples, count)
        codes = fitted_to_samples(
            program, layers, held, dynamic=dynamic, rounding=rounding, threads=threads, progress=tell
        )
    else:
        codes = fitted_to_training(program, layers, graphs, rounding=rounding, threads=threads, progress=tell)
    wider = wider_weights(codes, dynamic=dynamic)
    weights = {operation: found for operation, found in codes.weights.items() if operation not in wider}
    halves = [operation for operation, bits_of_floats in wider.items() if bits_of_floats == 16]
    light = with_quantized_weights(program, dynamic=dynamic, weights=weights, halves=halves, with_tables=with_tables)
    values = {value: value for value in program.inputs}
    values.update((value, value) for operation in program.operations for value in operation.outputs)
    tables = sum(operator_rules.is_table(operation) for operation in program.operations) if with_tables else 0
    in_bodies = layers_in_bodies(program) if with_tables else {}
    notes = _notes(weights, codes, tables, len(halves), in_bodies, dynamic=dynamic)
    options = QuantizationOptions(rounding=rounding, threads=threads)
    state = QuantizationState(
        program, samples, count, options, tell, seen=seen, weights=weights, halves=halves, notes=notes
    )
    state.converted = ConvertedProgram(light, values, [])
    return state


def code_bodies(state: QuantizationState) -> bool:
    """The step: layers in loops and branches get weights in eight bits, and what is around them stays in float."""
    program = state.converted.program
    for operation in program.operations:
        dynamic = state.options.bits == 8
        operation.bodies = tuple(with_quantized_weights(body, dynamic=dynamic) for body in operation.bodies)
    coded, fewest = layers_in_bodies(state.program), step_limits.FEWEST_COMPRESSED_ELEMENTS
    for where, count in coded.items():
        why = ", because a round's rounding comes back in all later ones" if where == IN_ROUNDS else ""
        note = f"{counted(count, 'layer')} in {where}: weights in eight bits, and what is around them in float{why}"
        state.notes.append(note)
    for where, count in (layers_in_bodies(state.program, fewest=1) - coded).items():
        state.notes.append(f"{counted(count, 'layer')} in {where} in float, of fewer than {fewest} weights each")
    return bool(coded)


def layers_in_bodies(
    program: Program, around: str = "branches", fewest: int = step_limits.FEWEST_COMPRESSED_ELEMENTS
) -> Counter[str]:
    """How many layers with so many weights or more programs of its operations hold, by where they are: in the rounds
    of loops, with the branches there, or in other branches. Those of the usual ``fewest`` get codes."""
    found: Counter[str] = Counter()
    for operation in program.operations:
        where = IN_ROUNDS if operation.code == "WHILE" else around
        for body in operation.bodies:
            found[where] += len(codable_layers(body, 8, fewest))
            found += layers_in_bodies(body, where, fewest)
    return found


def _notes(
    weights: Mapping[Operation, QuantizedWeights],
    codes: WeightOnlyCodes,
    tables: int,
    halves: int,
    in_bodies: Mapping[str, int],
    *,
    dynamic: bool,
) -> list[str]:
    """What was done, a sentence each."""
    if not weights and not tables and not halves and not in_bodies:
        return [
            f"no layer has {step_limits.FEWEST_COMPRESSED_ELEMENTS} weights or more, so that nothing was made smaller"
        ]
    few = "and LiteRT quantizes the tensors as they come" if dynamic else "expanded to float when the model is loaded"
    notes = [f"weights of {counted(len(weights), 'layer')} in few bits, {few}"] if weights else []
    if fitted := len(set(codes.fitted) & set(weights)):
        notes.append(f"codes and biases of {counted(fitted, 'layer')} are fitted to {codes.fitted_to}")
    if halves:
        notes.append(f"{counted(halves, 'small layer')}, which codes would hurt most, with float16 weights")
    for where, count in in_bodies.items():
        notes.append(f"{counted(count, 'layer')} in {where} likewise, each weight as its nearest code")
    if tables:
        notes.append(f"{counted(tables, 'table')} that rows are taken from in eight bits")
    return notes


def codable_layers(program: Program, bits: int, fewest: int) -> dict[Operation, int]:
    """The layers with so many weights or more, and of how many bits their codes are; without those whose results must
    not become zero or less."""
    kept = set(epsilon_operations(program))
    return {
        operation: bits if may_have_four_bits(operation) else 8
        for operation in program.operations
        if operation not in kept
        and operator_rules.is_quantizable_layer(operation)
        and operator_rules.weights(operation).size >= fewest
    }


def with_quantized_weights(
    program: Program,
    *,
    dynamic: bool,
    bits: int = 8,
    with_tables: bool = True,
    weights: Mapping[Operation, QuantizedWeights] | None = None,
    halves: Collection[Operation] = (),
) -> Program:
    """A program with int8 or int4 weights, one scale an output channel.

    Args:
        program: the float program; it stays as it is.
        dynamic: have LiteRT compute with eight bits too where it quantizes operands by itself and that pays; otherwise,
            and for all other operators, weights are expanded to float when the model is loaded.
        bits: 8, or 4 for the large layers.
        with_tables: have constants that rows are taken from in eight bits as well, as embeddings are, those that
            products read which are no layers, and layers in loops and branches; a graph has no place for those.
        weights: the codes of each layer that gets some; by default the nearest ones of all large layers, as those in
            loops and branches have in any case.
        halves: the layers that get float16 weights, which are expanded when the model is loaded.
    """
    layers = codable_layers(program, bits, step_limits.FEWEST_COMPRESSED_ELEMENTS)
    chosen = nearest_codes(layers).weights if weights is None else weights
    result = copied(program)
    operations: list[Operation] = []
    kernels: dict[Value, Value] = {}
    shared: dict[Value, Value] = {}
    tables: dict[Value, Value] = {}
    for original, operation in zip(program.operations, result.operations, strict=True):
        if with_tables:
            operation.bodies = tuple(
                with_quantized_weights(body, dynamic=dynamic, bits=bits) for body in original.bodies
            )
        if with_tables and operator_rules.is_table(operation):
            table = operation.inputs[0]
            assert table is not None
            if table not in tables:
                tables[table] = quantized_table(table)
            operations += gather_quantized(operation, tables[table])
            continue
        if original in chosen:
            kernel = operator_rules.weights(operation)
            _, at, at_bias = LINEAR[operation.code]
            if kernel not in kernels:
                kernels[kernel] = quantized_kernel(kernel.name, chosen[original])
            coded = kernels[kernel]
            if dynamic and multiplies_codes(original):
                operation.inputs[at] = coded
                if operation.code == "FULLY_CONNECTED":
                    operation.options["asymmetric_inputs"] = True
            else:
                if kernel not in shared:
                    shared[kernel] = Value(f"{kernel.name}/float", FLOAT, kernel.shape)
                    operations.append(Operation("DEQUANTIZE", [coded], [shared[kernel]]))
                operation.inputs[at] = shared[kernel]
            _, bias = float_weights(original)
            if not np.array_equal(bias, chosen[original].bias):
                had = operator_rules.bias(original)
                name = f"{operation.outputs[0].name}/bias" if had is None else had.name
                operation.inputs += [None] * (at_bias + 1 - len(operation.inputs))
                operation.inputs[at_bias] = float_constant(name, chosen[original].bias)
        elif original in halves:
            at = LINEAR[operation.code][1]
            kernel = operator_rules.weights(operation)
            if kernel not in shared:
                expansion = expanded_float16(kernel)
                shared[kernel] = expansion.outputs[0]
                operations.append(expansion)
            operation.inputs[at] = shared[kernel]
        operations.append(operation)
    result.operations = compressed(operations, PRODUCTS)[0] if with_tables else operations
    return result
