"""The codes of all layers' weights, one layer after the other, each given those before it."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import blas_threads
from pocketgraph.litert.operator_traits import HYBRID, WEIGHTED
from pocketgraph.litert.program import Operation, Program
from pocketgraph.quantization.conversion.int8_conversion import convert, tensor_codes
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe, quantized_operations
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import ROOM_OF_64_BITS, QuantizedWeights, rounded
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.core.thread_map import mapped, mapped_ahead
from pocketgraph.quantization.fitting.im2col import is_grouped, rows_read
from pocketgraph.quantization.fitting.layer_reconstruction import (
    FitSettings,
    OperandSolver,
    can_fit,
    collect,
    correct_bias,
    reconstruct,
)
from pocketgraph.quantization.fitting.layerwise_execution import LayerwiseExecution, samples_in_memory

FEWEST_FOR_4 = 1024  # weights; layers with fewer keep eight bits
SMALL = HYBRID
"""Operators whose weights may have four bits; depthwise layers have few weights and are hurt most."""


def may_have_four_bits(operation: Operation) -> bool:
    """Whether LiteRT takes weights of four bits: not for groups, nor (in TensorFlow 2.21) for a single channel."""
    return operation.code in SMALL and not is_grouped(operation) and operator_rules.weights(operation).shape[0] > 1


def weight_bits(operation: Operation, program: Program, options: QuantizationOptions) -> int:
    """How many bits the weights of a layer get: 4 where asked for, but not in layers that read the program's inputs."""
    if options.weights != "int4" or not may_have_four_bits(operation):
        return 8
    is_first = operator_rules.data(operation) in program.inputs
    return 8 if is_first or operator_rules.weights(operation).size < FEWEST_FOR_4 else 4


def fit_weights(
    program: Program,
    samples: Samples,
    count: int,
    recipe: ConversionRecipe,
    options: QuantizationOptions,
    tell: Progress,
    resume: ResumeState | None = None,
) -> dict[Operation, QuantizedWeights]:
    """The codes of every layer; those that read the same rows are fitted together, where the first of them is.

    Args:
        program: the float program.
        samples, count: what to fit to.
        recipe: what is coded and how.
        options: how to round.
        tell: how far it is.
        resume: where codes are kept, and taken from when there are some.
    """
    order = {operation: at for at, operation in enumerate(program.operations)}
    coded_operations = [*quantized_operations(program, recipe), *recipe.hybrid]
    layers = sorted(
        (each for each in coded_operations if is_layer(each) and each.code != "TRANSPOSE_CONV"), key=order.__getitem__
    )
    codes = tensor_codes(program, replace(recipe, io="float"))

    def operand_scale(operation: Operation) -> float:
        quantization = codes.get(operator_rules.data(operation))
        if operation in recipe.hybrid or quantization is None:
            return math.inf  # the bias is a float
        return quantization.scales[0] * (ROOM_OF_64_BITS if recipe.bits == 16 else 1)

    def nearest_codes(operation: Operation) -> QuantizedWeights:
        return rounded(operation, operand_scale(operation), weight_bits(operation, program, options))

    weights = dict(zip(layers, mapped(nearest_codes, layers, options.threads), strict=True))
    if options.rounding == "nearest":
        return weights
    uses = Counter(operator_rules.weights(operation) for operation in layers)
    shared = {operation for operation in layers if uses[operator_rules.weights(operation)] > 1}
    held = samples_in_memory(program, samples, count)
    exact, coded = LayerwiseExecution(held, max(options.threads - 1, 1)), LayerwiseExecution(held, options.threads)
    fit = FitSettings(seed=options.seed, threads=options.threads)
    kept = resume or ResumeState()
    decided = [order[operation] for operation in coded_operations]
    shapes = [operator_rules.weights(operation).shape for operation in layers]
    stage = f"weights {zlib.crc32(f'{decided} {shapes}'.encode()):08x}"  # others, when another part stays in float
    alike: dict[Hashable, list[Operation]] = {}
    for operation in layers:
        known = kept.get(f"{stage}/{order[operation]}")
        is_step = operation in shared and operation in recipe.hybrid  # of a loop: one bias for all steps as well
        if known:
            weights[operation] = replace(
                weights[operation], codes=known["codes"], scales=known["scales"], bias=known["bias"]
            )
        elif is_reducible(operation) and not is_step:
            alike.setdefault(rows_read(operation), []).append(operation)

    def exact_rows(operations: list[Operation]) -> Array:
        operand = exact.to(program, operator_rules.data(operations[0]))
        return collect(operations[0], [operand], len(held), fit)[0]

    def fit_alike(operations: list[Operation], wanted: Array) -> None:
        before = convert(program, replace(recipe, weights=weights, io="float"))
        operand = coded.to(before.program, before.values[operator_rules.data(operations[0])])
        (given,) = collect(operations[0], [operand], len(held), fit)
        solver = OperandSolver(given, fit)
        for operation in operations:
            nearest, scale = weights[operation], operand_scale(operation)
            rounding = "corrected" if operation in shared else options.rounding  # their codes must be the same
            how = replace(fit, bits=nearest.bits)
            found = fitted_codes(operation, wanted, given, scale, nearest, rounding, how, solver)
            kept.put(f"{stage}/{order[operation]}", {"codes": found.codes, "scales": found.scales, "bias": found.bias})
            weights[operation] = found

    number = len(layers) - sum(map(len, alike.values()))
    groups = list(alike.values())
    rows = mapped_ahead(exact_rows, groups, min(options.threads - 1, 1))  # they do not wait for codes
    for operations, wanted in zip(groups, rows, strict=True):
        fit_alike(operations, wanted)
        number += len(operations)
        tell("fitting weights", number, len(layers))
    return weights


def is_reducible(operation: Operation) -> bool:
    """Whether the layer is a product of a matrix with rows of its operand, so that its codes can be fitted."""
    return operation.code in WEIGHTED and not is_grouped(operation)


def fitted_codes(
    operation: Operation,
    wanted: Array,
    given: Array,
    data_scale: float,
    nearest: QuantizedWeights,
    rounding: str,
    fit: FitSettings,
    solver: OperandSolver | None = None,
) -> QuantizedWeights:
    """The codes of a layer, from rows of its operand in the float model and in the eight-bit one.

    Args:
        operation: the layer; see ``is_reducible``.
        wanted, given: the rows; see ``collect``.
        data_scale: of the operand's codes.
        nearest: the layer's nearest codes.
        rounding: see QuantizationOptions.
        fit: how.
        solver: see ``reconstruct``.
    """
    with blas_threads.at_most(1):  # they would wait for each other, and sums depend on how many there are
        if rounding == "corrected" or not can_fit(operation):
            return correct_bias(operation, nearest, wanted, given)
        how = replace(fit, adaround=rounding == "adaround")
        return reconstruct(operation, wanted, given, data_scale, how, solver)


def apply(state: QuantizationState) -> bool:
    """The step."""
    state.weights = fit_weights(
        state.program, state.samples, state.count, state.recipe, state.options, state.progress, state.resume
    )
    return True
