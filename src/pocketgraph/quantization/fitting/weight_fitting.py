"""The codes of all layers' weights, one layer after the other, each given those before it."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import blas_threads
from pocketgraph.litert.operator_traits import HYBRID, WEIGHTED
from pocketgraph.litert.program import Operation, Program
from pocketgraph.quantization.conversion.int8_conversion import convert, tensor_codes
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe, quantized_operations
from pocketgraph.quantization.core.layerwise_execution import LayerwiseExecution, samples_in_memory
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import Sample, Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import (
    GRID_TOLERANCE,
    ROOM_OF_64_BITS,
    QuantizedWeights,
    float_weights,
    rounded,
)
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
    *,
    in_floats: bool = False,
) -> dict[Operation, QuantizedWeights]:
    """The codes of every layer; those that read the same rows are fitted together, where the first of them is.

    Args:
        program: the float program.
        samples, count: what to fit to.
        recipe: what is coded and how.
        options: how to round.
        tell: how far it is.
        resume: where codes are kept, and taken from when there are some.
        in_floats: as for ``ProgramRunner``.
    """
    fitting = _WeightFitting(program, recipe, options, resume or ResumeState())
    if options.rounding != "nearest":
        groups = fitting.groups_to_fit()
        fitting.fit(groups, samples_in_memory(program, samples, count), tell, in_floats=in_floats)
    return fitting.weights


class _WeightFitting:
    """The codes of a program's layers, by ``weights``: the nearest ones at first; see ``fit_weights``."""

    def __init__(
        self, program: Program, recipe: ConversionRecipe, options: QuantizationOptions, kept: ResumeState
    ) -> None:
        self.program, self.recipe, self.options, self.kept = program, replace(recipe, io="float"), options, kept
        self.order = {operation: at for at, operation in enumerate(program.operations)}
        coded = [*quantized_operations(program, recipe), *recipe.hybrid]
        layers = (operation for operation in coded if is_layer(operation) and operation.code != "TRANSPOSE_CONV")
        self.layers = sorted(layers, key=self.order.__getitem__)
        uses = Counter(operator_rules.weights(operation) for operation in self.layers)
        self.shared = {operation for operation in self.layers if uses[operator_rules.weights(operation)] > 1}
        decided = [self.order[operation] for operation in coded]
        shapes = [operator_rules.weights(operation).shape for operation in self.layers]
        # others, when another part stays in float
        self.stage = f"weights {zlib.crc32(f'{decided} {shapes}'.encode()):08x}"
        self.codes = tensor_codes(program, self.recipe)
        nearest = mapped(self.nearest_codes, self.layers, options.threads)
        self.weights = dict(zip(self.layers, nearest, strict=True))

    def operand_scale(self, operation: Operation) -> float:
        """The scale of what a layer reads; infinite where its bias is a float."""
        quantization = self.codes.get(operator_rules.data(operation))
        if operation in self.recipe.hybrid or quantization is None:
            return math.inf
        return quantization.scales[0] * (ROOM_OF_64_BITS if self.recipe.bits == 16 else 1)

    def nearest_codes(self, operation: Operation) -> QuantizedWeights:
        """Each weight as the nearest code."""
        return rounded(operation, self.operand_scale(operation), weight_bits(operation, self.program, self.options))

    def groups_to_fit(self) -> list[list[Operation]]:
        """Layers that read the same rows, in running order; codes that an interrupted call had found are taken."""
        alike: dict[Hashable, list[Operation]] = {}
        for operation in self.layers:
            known = self.kept.get(f"{self.stage}/{self.order[operation]}")
            is_step = operation in self.shared and operation in self.recipe.hybrid  # of a loop: one bias for all steps
            if known:
                self.weights[operation] = replace(
                    self.weights[operation], codes=known["codes"], scales=known["scales"], bias=known["bias"]
                )
            elif is_reducible(operation) and not is_step:
                alike.setdefault(rows_read(operation), []).append(operation)
        return list(alike.values())

    def fit(self, groups: list[list[Operation]], held: list[Sample], tell: Progress, *, in_floats: bool) -> None:
        """Fits the groups one after the other, while the next one's rows are collected in the float program."""
        threads = self.options.threads
        settings = FitSettings(seed=self.options.seed, threads=threads)
        exact = LayerwiseExecution(held, max(threads - 1, 1))
        coded = LayerwiseExecution(held, threads, in_floats=in_floats)

        def exact_rows(operations: list[Operation]) -> Array:
            operand = exact.to(self.program, operator_rules.data(operations[0]))
            return collect(operations[0], [operand], len(held), settings)[0]

        number = len(self.layers) - sum(map(len, groups))
        rows = mapped_ahead(exact_rows, groups, min(threads - 1, 1))  # they do not wait for codes
        for operations, wanted in zip(groups, rows, strict=True):
            before = convert(self.program, replace(self.recipe, weights=self.weights))
            operand = coded.to(before.program, before.values[operator_rules.data(operations[0])])
            (given,) = collect(operations[0], [operand], len(held), settings)
            self.fit_group(operations, wanted, given, settings)
            number += len(operations)
            tell("fitting weights", number, len(self.layers))

    def fit_group(self, operations: list[Operation], wanted: Array, given: Array, settings: FitSettings) -> None:
        """Fits layers that read these rows, ``wanted`` in the float program and ``given`` in the eight-bit one."""
        solver = OperandSolver(given, settings)
        for operation in operations:
            nearest, scale = self.weights[operation], self.operand_scale(operation)
            rounding = "corrected" if operation in self.shared else self.options.rounding  # their codes are the same
            how = replace(settings, bits=nearest.bits)
            found = fitted_codes(operation, wanted, given, scale, nearest, rounding, how, solver)
            name = f"{self.stage}/{self.order[operation]}"
            self.kept.put(name, {"codes": found.codes, "scales": found.scales, "bias": found.bias})
            self.weights[operation] = found


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
        if rounding == "corrected" or not can_fit(operation) or _sums_overflow(operation, wanted, given):
            return correct_bias(operation, nearest, wanted, given)
        how = replace(fit, adaround=rounding == "adaround")
        held = held_exactly(operation, nearest)
        if not held.any():
            return reconstruct(operation, wanted, given, data_scale, how, solver)
        kept = correct_bias(operation, nearest, wanted, given)
        if held.all():
            return kept
        found = reconstruct(operation, wanted, given, data_scale, how, solver)
        across = [-1 if axis == kept.axis else 1 for axis in range(kept.codes.ndim)]
        return replace(
            kept,
            codes=np.where(held.reshape(across), kept.codes, found.codes),
            scales=np.where(held, kept.scales, found.scales),
            bias=np.where(held, kept.bias, found.bias),
        )


def held_exactly(operation: Operation, nearest: QuantizedWeights) -> Array:
    """Which channels lose nothing by their nearest codes, as after a training with FakeQuant; bool [channels].

    Those of zeros alone never do, and say nothing of a training: none is named where there is no other.
    """
    values, _ = float_weights(operation)
    off = np.moveaxis(np.abs(nearest.numpy() - values), nearest.axis, 0).reshape(len(nearest.scales), -1)
    held = off.max(axis=1, initial=0) < 2 * GRID_TOLERANCE * nearest.scales
    has_codes = np.moveaxis(nearest.codes, nearest.axis, 0).reshape(len(held), -1).any(axis=1)
    return np.asarray(held & (held & has_codes).any())


def _sums_overflow(operation: Operation, wanted: Array, given: Array) -> bool:
    """Whether sums of products of a layer's results with rows of its operand may be more than a float32 holds."""
    values, _ = float_weights(operation)
    weight = max(float(np.abs(values).max(initial=0)) * given.shape[-1], 1.0)
    peak = max(float(np.abs(rows).max(initial=0)) for rows in (wanted, given))
    return bool(peak * peak * weight * len(given) > float(np.finfo(np.float32).max))


def apply(state: QuantizationState) -> bool:
    """The step."""
    state.weights = fit_weights(
        state.program, state.samples, state.count, state.recipe, state.options, state.progress, state.resume,
        in_floats=state.has_float_sums,
    )  # fmt: skip
    return True
