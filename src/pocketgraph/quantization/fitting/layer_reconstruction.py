"""Fits a layer's codes so that, given the quantized operand, its results come near those of the float model.

This undoes what the layers before have done to the operand as far as a linear layer can, and leaves the rest small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import WEIGHT_AXIS, WEIGHTED
from pocketgraph.litert.program import Operation
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATION_BOUNDS
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.quantized_weights import (
    QuantizedWeights,
    channel_scales,
    float_weights,
    largest_code,
)
from pocketgraph.quantization.core.thread_map import both, mapped
from pocketgraph.quantization.fitting.adaround import adaround
from pocketgraph.quantization.fitting.im2col import im2col, is_grouped, row_count, sampled_rows
from pocketgraph.quantization.fitting.second_order_rounding import (
    Curvature,
    curvature,
    improve_codes,
    inverse,
    round_in_order,
)

MOST_ELEMENTS = 1 << 23  # of the rows that are looked at, so that they take 100 MB and not more
MOST_INPUTS = 1200  # of one output; fitting takes time as the third power of it
MOST_SHRUNK = 512  # inputs of one output up to which several scales are tried
MOST_AT_ONCE = 1 << 21  # elements of the operand, for channels that are looked at together
OUTPUTS_AT_ONCE = 256  # whose weights are found together, by a thread, while what that takes is in its cache
FEWEST_AT_ONCE = 4  # channels; NumPy adds up those of a single one in another order
FEWEST_SAMPLES = 16


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Attributes:
        rows: how many rows of the operand to look at.
        trust: how strongly the weights are held to the float ones, as a share of the operand's mean second moment.
        scarce: how much more strongly for each input that there is for a row: few rows say little about many weights.
        level, level_scarce: the same for the moments by which codes are chosen.
        rounds: how often targets in the flat parts of the activation are set anew.
        shrinks: the scales tried, as shares of the one that just holds the largest weight.
        seed: of the choice of rows.
        bits: of the weights' codes, 8 or 4.
        adaround: whether codes are first rounded up or down together, by gradient (see adaround.py), and not one
            after the other.
        threads: how many threads to compute with; what comes out does not depend on it.
    """

    rows: int = 16384
    trust: float = 0.05
    scarce: float = 30.0
    level: float = 0.01
    level_scarce: float = 0.3
    rounds: int = 2
    shrinks: tuple[float, ...] = (1.0, 0.9, 0.75)
    seed: int = 0
    bits: int = 8
    adaround: bool = False
    threads: int = 1


def elements(operation: Operation) -> int:
    """How many numbers a row has."""
    kernel = operator_rules.weights(operation)
    return kernel.size if operation.code == "DEPTHWISE_CONV_2D" else kernel.size // kernel.shape[0]


def can_fit(operation: Operation) -> bool:
    """Whether the layer is of a kind and size to be fitted."""
    if operation.code not in WEIGHTED or is_grouped(operation):
        return False
    return operation.code == "DEPTHWISE_CONV_2D" or elements(operation) <= MOST_INPUTS


def collect(operation: Operation, operands: Sequence[Iterable[Array]], count: int, fit: FitSettings) -> list[Array]:
    """Rows of the layer's operand as several programs have it, from the same places; see ``im2col`` for the shapes.

    Args:
        operation: the layer.
        operands: its operand for each sample, as numbers, in each program; as many samples are looked at as give enough
            rows.
        count: how many samples there are.
        fit: how many rows, and the seed of the choice.
    """
    rng = np.random.default_rng(fit.seed)
    rows = min(fit.rows, max(MOST_ELEMENTS // elements(operation), 1))
    used = min(count, max(FEWEST_SAMPLES, -(-rows // row_count(operation))))
    most = max(1, rows // max(used, 1))
    found: list[list[Array]] = [[] for _ in operands]
    for arrays in islice(zip(*operands, strict=True), used):
        at = sampled_rows(operation, most, rng)
        for part, array in zip(found, arrays, strict=True):
            part.append(im2col(operation, array, at))
    return [np.concatenate(part) for part in found]


def reconstruct(
    operation: Operation,
    wanted: Array,
    given: Array,
    data_scale: float,
    fit: FitSettings,
    solver: OperandSolver | None = None,
) -> QuantizedWeights:
    """Codes for the layer.

    Args:
        operation: the float layer.
        wanted, given: rows of the float and of the quantized operand.
        data_scale: of the operand's codes.
        fit: how.
        solver: of ``given``, where several layers read these rows; depthwise layers do without.
    """
    values, bias = float_weights(operation)
    depthwise = operation.code == "DEPTHWISE_CONV_2D"
    matrix = values.reshape(-1, values.shape[3]).T if depthwise else values.reshape(len(values), -1)
    bounds = ACTIVATION_BOUNDS.get(operation.options.get("activation", ""), (-np.inf, np.inf))
    if depthwise:  # channels have nothing to do with each other, and all at once they take much memory
        many = max(MOST_AT_ONCE // max(given[..., 0].size, 1), FEWEST_AT_ONCE)
        ends = np.linspace(0, len(matrix), -(-len(matrix) // many) + 1).astype(int)
    else:  # large products, in float32
        many = OUTPUTS_AT_ONCE if len(matrix) > OUTPUTS_AT_ONCE else max(OUTPUTS_AT_ONCE // 2, 1)
        ends = np.append(np.arange(0, len(matrix), many), len(matrix))
        shared, inverted, ready = (solver or OperandSolver(given, fit)).prepared

    def solved(part: slice) -> tuple[Array, Array, Array, Array]:
        operand = _statistics(_channels(given, part), fit) if depthwise else shared
        exact = _channels(wanted, part) if depthwise else wanted[np.newaxis]
        inverses = inverse(operand.held) if depthwise else inverted
        solution, offset = _solved(matrix[part], bias[part], exact, operand, inverses, bounds, fit.rounds)
        return solution, offset, operand.middle, operand.moments

    def coded(part: slice) -> tuple[Array, Array, Array]:
        solution, offset, middle, moments = solved(part)
        return _codes(solution, offset, middle, moments, ready, data_scale, fit)

    parts = [slice(start, end) for start, end in pairwise(ends)]
    if depthwise:  # all channels are rounded in one order of inputs
        found = map(np.concatenate, zip(*mapped(solved, parts, fit.threads), strict=True))
        solution, offset, middle, moments = found
        codes, scales, offset = _codes(solution, offset, middle, moments, curvature(moments), data_scale, fit)
    else:
        codes, scales, offset = map(np.concatenate, zip(*mapped(coded, parts, fit.threads), strict=True))
    shaped = codes.T.reshape(values.shape) if depthwise else codes.reshape(values.shape)
    return QuantizedWeights(shaped.astype(np.int8), scales, offset, WEIGHT_AXIS[operation.code], fit.bits)


def _channels(rows: Array, part: slice) -> Array:
    """Some channels of the rows of a depthwise layer, float64 [channels, rows, inputs]."""
    result: Array = rows[..., part].transpose(2, 0, 1).astype(np.float64)
    return result


class _OperandStatistics(NamedTuple):
    """Rows of a layer's quantized operand, with what serves all outputs that read them.

    Attributes:
        rows: [1 or outputs, rows, inputs].
        middle: the mean of each input, float64 [1 or outputs, inputs].
        centred: the rows without it.
        ridge: how strongly weights are held to the float ones, [1 or outputs].
        held: the second moments about the mean, with the ridge, float64 [1 or outputs, inputs, inputs].
        moments: those by which codes are chosen, of the same shape; without the first axis where they are shared.
    """

    rows: Array
    middle: Array
    centred: Array
    ridge: Array
    held: Array
    moments: Array


@dataclass(eq=False)
class OperandSolver:
    """What serves all layers, but depthwise ones, that read the same rows: worked out once, when it is first needed.

    Attributes:
        given: rows of the quantized operand.
        fit: how; but for the bits, the same for all these layers.
    """

    given: Array
    fit: FitSettings

    @cached_property
    def prepared(self) -> tuple[_OperandStatistics, Array, Curvature]:
        """The statistics of the rows, the inverse of their moments ``held``, and the curvature for rounding."""
        found = _statistics(self.given[np.newaxis], self.fit)
        inverses, ready = both(lambda: inverse(found.held), lambda: curvature(found.moments), self.fit.threads)
        return found, inverses, ready


def _statistics(rows: Array, fit: FitSettings) -> _OperandStatistics:
    middle = rows.mean(axis=1, dtype=np.float64)  # [groups, inputs]
    centred = rows - middle[:, np.newaxis].astype(rows.dtype)
    is_shared = rows.dtype != np.float64
    if is_shared:
        moments = (centred[0].T @ centred[0])[np.newaxis]  # of one array with itself: half of the work
    else:
        moments = np.einsum("gri,grj->gij", centred, centred)
    moments = moments.astype(np.float64) / rows.shape[1]
    size = rows.shape[2]
    scarcity = size / rows.shape[1]
    power = np.trace(moments, axis1=1, axis2=2) / size
    ridge = (fit.trust + fit.scarce * scarcity) * power + 1e-9
    level = _raised(moments, (fit.level + fit.level_scarce * scarcity) * power + 1e-9)
    level = level[0] if is_shared else level
    return _OperandStatistics(rows, middle, centred, ridge, _raised(moments, ridge), level)


def _solved(
    matrix: Array,
    bias: Array,
    wanted: Array,
    operand: _OperandStatistics,
    inverses: Array,
    bounds: tuple[float, float],
    rounds: int,
) -> tuple[Array, Array]:
    """The weights and biases in floats with which results come near those of the float layer.

    Args:
        matrix, bias: of the float layer, [outputs, inputs] and [outputs].
        wanted: rows of the float operand, as those of the quantized one.
        operand: the quantized one.
        inverses: of its moments ``held``.
        bounds: between which the layer's activation keeps its results.
        rounds: how often targets in its flat parts are set anew.
    """
    given, middle, centred, ridge = operand.rows, operand.middle, operand.centred, operand.ridge
    depthwise = wanted.dtype == np.float64
    target = _product(wanted, matrix)  # [rows, outputs]
    target += bias.astype(wanted.dtype)
    low, high = bounds
    has_flat_parts = low > -np.inf or high < np.inf
    solution, offset = matrix, bias
    for _ in range(rounds if has_flat_parts else 1):  # without them, targets stay the same
        goal = target
        if has_flat_parts:
            reached = _product(given, solution)
            reached += offset.astype(given.dtype)
        if low > -np.inf:
            goal = np.where((target <= low) & (reached <= low), reached, goal)
        if high < np.inf:
            goal = np.where((target >= high) & (reached >= high), reached, goal)
        mean = goal.mean(axis=0, dtype=np.float64)
        if depthwise:
            cross = np.einsum("gri,rg->gi", centred, goal - mean) / len(goal)
            solution = np.einsum("gij,gj->gi", inverses, cross + ridge[:, np.newaxis] * matrix)
        else:
            # these arrays are large, and new ones cost time
            about = np.subtract(goal, mean.astype(goal.dtype), out=reached if has_flat_parts else target)
            cross = about.T @ centred[0] / len(goal)
            solution = (cross + ridge[0] * matrix) @ inverses[0]
        offset = mean - np.einsum("oi,oi->o", solution, np.broadcast_to(middle, solution.shape))
    return solution, offset


def _codes(
    solution: Array,
    offset: Array,
    middle: Array,
    moments: Array,
    ready: Curvature,
    data_scale: float,
    fit: FitSettings,
) -> tuple[Array, Array, Array]:
    """The codes of weights, [outputs, inputs], their scales, and the bias that goes with them."""
    top = largest_code(fit.bits)
    largest = channel_scales(solution, 0, offset, data_scale, top)
    shrinks = fit.shrinks if solution.shape[1] <= MOST_SHRUNK else fit.shrinks[:1]
    tried = np.multiply.outer(shrinks, largest).astype(np.float32).astype(np.float64)
    codes, lost = round_in_order(solution, tried, ready, top)
    best, every = lost.argmin(axis=0), np.arange(len(largest))
    chosen, scales = codes[best, every], tried[best, every]
    if fit.adaround:
        chosen = adaround(solution, scales, moments, top)
    chosen = improve_codes(chosen, solution, scales, ready, top)
    apart = solution - chosen * scales[:, np.newaxis]
    return chosen, scales, offset + np.einsum("oi,oi->o", apart, np.broadcast_to(middle, solution.shape))


def _raised(moments: Array, by: Array) -> Array:
    result: Array = moments + by[:, np.newaxis, np.newaxis] * np.eye(moments.shape[1])
    return result


def _product(rows: Array, matrix: Array) -> Array:
    """Rows times weights, [rows, outputs]."""
    if len(rows) == 1 and len(rows) != len(matrix):
        result: Array = rows[0] @ matrix.T.astype(rows.dtype)
    else:
        result = np.einsum("gri,gi->rg", rows, matrix)
    return result


def products(operation: Operation, rows: Array, values: Array) -> Array:
    """What a layer with these weights makes of rows of its operand, without bias, float [rows, output channels]."""
    if operation.code == "DEPTHWISE_CONV_2D":
        result: Array = np.einsum("rij,ij->rj", rows, values.reshape(-1, values.shape[3]).astype(rows.dtype))
        return result
    product: Array = rows @ values.reshape(len(values), -1).T.astype(rows.dtype)
    return product


def correct_bias(operation: Operation, weights: QuantizedWeights, wanted: Array, given: Array) -> QuantizedWeights:
    """The same codes with a bias that makes the results' means, over the rows, those of the float layer."""
    values, bias = float_weights(operation)
    coded = weights.numpy()
    if operation.code == "DEPTHWISE_CONV_2D":
        drift = np.einsum("ij,ij->j", wanted.mean(axis=0, dtype=np.float64), values.reshape(-1, values.shape[3]))
        drift -= np.einsum("ij,ij->j", given.mean(axis=0, dtype=np.float64), coded.reshape(-1, values.shape[3]))
    else:
        drift = values.reshape(len(values), -1) @ wanted.mean(axis=0, dtype=np.float64)
        drift -= coded.reshape(len(values), -1) @ given.mean(axis=0, dtype=np.float64)
    return QuantizedWeights(weights.codes, weights.scales, bias + drift, weights.axis, weights.bits)
