"""Fits a layer's codes so that, given the quantized operand, its results come near those of the float model.

This undoes what the layers before have done to the operand as far as a linear layer can, and leaves the rest small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import WEIGHT_AXIS, WEIGHTED
from pocketgraph.litert.program import Operation
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATION_BOUNDS
from pocketgraph.litert.two_threads import both
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.quantized_weights import (
    QuantizedWeights,
    channel_scales,
    float_weights,
    largest_code,
)
from pocketgraph.quantization.core.thread_map import mapped
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
MUCH_WORK = 1 << 24  # multiplications of a layer's rows, from which several threads compute them
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
    bounds = ACTIVATION_BOUNDS.get(operation.options.get("activation", ""), (-np.inf, np.inf))
    depthwise = operation.code == "DEPTHWISE_CONV_2D"
    if depthwise:
        matrix = values.reshape(-1, values.shape[3]).T
        solution, offset, middle, moments = _solved_by_channel(matrix, bias, wanted, given, bounds, fit)
        ready, parts = curvature(moments), [slice(None)]  # all channels are rounded in one order of inputs
    else:
        solver = solver or OperandSolver(given, fit)
        solution, offset = _solved_by_output(values.reshape(len(values), -1), bias, wanted, solver, bounds)
        shared, _, ready = solver.prepared
        middle, moments = shared.middle, shared.moments
        parts = _parts(len(values))

    def coded(part: slice) -> tuple[Array, Array, Array]:
        return _codes(solution[part], offset[part], middle, moments, ready, data_scale, fit)

    codes, scales, offset = map(np.concatenate, zip(*mapped(coded, parts, fit.threads), strict=True))
    shaped = codes.T.reshape(values.shape) if depthwise else codes.reshape(values.shape)
    return QuantizedWeights(shaped.astype(np.int8), scales, offset, WEIGHT_AXIS[operation.code], fit.bits)


def _parts(count: int) -> list[slice]:
    """The outputs that are computed together: always as many, on which it depends how OpenBLAS adds up."""
    many = OUTPUTS_AT_ONCE if count > OUTPUTS_AT_ONCE else max(OUTPUTS_AT_ONCE // 2, 1)
    return [slice(start, min(start + many, count)) for start in range(0, count, many)]


def _solved_by_channel(
    matrix: Array, bias: Array, wanted: Array, given: Array, bounds: tuple[float, float], fit: FitSettings
) -> tuple[Array, Array, Array, Array]:
    """What ``_solved`` finds for a depthwise layer, with the means of its inputs and the moments for rounding.

    Channels have nothing to do with each other, and all at once they take much memory.
    """
    many = max(MOST_AT_ONCE // max(given[..., 0].size, 1), FEWEST_AT_ONCE)
    ends = np.linspace(0, len(matrix), -(-len(matrix) // many) + 1).astype(int)

    def solved(part: slice) -> tuple[Array, Array, Array, Array]:
        operand, exact = _statistics(_channels(given, part), fit), _channels(wanted, part)
        first = _first_goal(matrix[part], bias[part], exact, operand.rows, bounds)
        found = _solved(matrix[part], bias[part], first, operand, inverse(operand.held), bounds, fit.rounds)
        return *found, operand.middle, operand.moments

    parts = [slice(start, end) for start, end in pairwise(ends)]
    solution, offset, middle, moments = map(np.concatenate, zip(*mapped(solved, parts, fit.threads), strict=True))
    return solution, offset, middle, moments


def _solved_by_output(
    matrix: Array, bias: Array, wanted: Array, solver: OperandSolver, bounds: tuple[float, float]
) -> tuple[Array, Array]:
    """What ``_solved`` finds for a layer whose outputs read the same rows, some outputs at a time.

    What they aim at first does not wait for the statistics of the rows: it is computed beside them, by other threads.
    """
    given, fit = solver.given[np.newaxis], solver.fit
    parts = _parts(len(matrix))

    def first_goal(part: slice) -> Goal:
        return _first_goal(matrix[part], bias[part], wanted[np.newaxis], given, bounds)

    most = max(MOST_ELEMENTS // (given.shape[1] * OUTPUTS_AT_ONCE), 1)  # more take memory
    calls: list[Callable[[], Any]] = [lambda: solver.statistics, *(partial(first_goal, part) for part in parts[:most])]
    threads = fit.threads if given.size * len(matrix) >= MUCH_WORK else 1
    first: dict[int, Goal] = dict(enumerate(mapped(lambda call: call(), calls, threads)[1:]))
    operand, inverses, _ = solver.prepared

    def solved(at: int) -> tuple[Array, Array]:
        part = parts[at]
        goal = first.pop(at) if at in first else first_goal(part)
        return _solved(matrix[part], bias[part], goal, operand, inverses, bounds, fit.rounds)

    solution, offset = map(np.concatenate, zip(*mapped(solved, range(len(parts)), threads), strict=True))
    return solution, offset


def _channels(rows: Array, part: slice) -> Array:
    """Some channels of the rows of a depthwise layer, float64 [channels, rows, inputs]."""
    result: Array = rows[..., part].transpose(2, 0, 1).astype(np.float64)
    return result


class OperandStatistics(NamedTuple):
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
    def statistics(self) -> OperandStatistics:
        """Those of the rows."""
        return _statistics(self.given[np.newaxis], self.fit)

    @cached_property
    def prepared(self) -> tuple[OperandStatistics, Array, Curvature]:
        """The statistics of the rows, the inverse of their moments ``held``, and the curvature for rounding."""
        found = self.statistics
        inverses, ready = both(lambda: inverse(found.held), lambda: curvature(found.moments), self.fit.threads)
        return found, inverses, ready


def _statistics(rows: Array, fit: FitSettings) -> OperandStatistics:
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
    return OperandStatistics(rows, middle, centred, ridge, _raised(moments, ridge), level)


class Goal(NamedTuple):
    """What the results of a layer are to come near.

    Attributes:
        target: the results of the float layer, [rows, outputs].
        about: in their flat parts what the quantized layer reaches, elsewhere the target; without the mean.
        mean: of each output, float64 [outputs].
    """

    target: Array
    about: Array
    mean: Array


def _first_goal(matrix: Array, bias: Array, wanted: Array, given: Array, bounds: tuple[float, float]) -> Goal:
    """The goal for the float layer's own weights; see ``_solved`` for the arguments."""
    target = _product(wanted, matrix)
    target += bias.astype(wanted.dtype)
    return _goal(target, given, matrix, bias, bounds)


def _goal(target: Array, given: Array, solution: Array, offset: Array, bounds: tuple[float, float]) -> Goal:
    """The goal for weights and biases found so far."""
    low, high = bounds
    goal = room = target
    if low > -np.inf or high < np.inf:
        reached = room = _product(given, solution)
        reached += offset.astype(given.dtype)
        if low > -np.inf:
            goal = np.where((target <= low) & (reached <= low), reached, goal)
        if high < np.inf:
            goal = np.where((target >= high) & (reached >= high), reached, goal)
    mean = goal.mean(axis=0, dtype=np.float64)
    if goal.dtype == np.float64:  # of a depthwise layer: einsum adds up in the order of the memory
        return Goal(target, goal - mean, mean)
    return Goal(target, np.subtract(goal, mean.astype(goal.dtype), out=room), mean)  # a new array would cost time


def _solved(
    matrix: Array,
    bias: Array,
    goal: Goal,
    operand: OperandStatistics,
    inverses: Array,
    bounds: tuple[float, float],
    rounds: int,
) -> tuple[Array, Array]:
    """The weights and biases in floats with which results come near those of the float layer.

    Args:
        matrix, bias: of the float layer, [outputs, inputs] and [outputs].
        goal: for these weights, from rows of the float operand and of the quantized one.
        operand: the quantized one.
        inverses: of its moments ``held``.
        bounds: between which the layer's activation keeps its results.
        rounds: how often targets in its flat parts are set anew.
    """
    centred, ridge = operand.centred, operand.ridge
    depthwise = centred.dtype == np.float64
    has_flat_parts = bounds[0] > -np.inf or bounds[1] < np.inf
    solution, offset = matrix, bias
    for number in range(rounds if has_flat_parts else 1):  # without them, targets stay the same
        if number:
            goal = _goal(goal.target, operand.rows, solution, offset, bounds)
        if depthwise:
            cross = np.einsum("gri,rg->gi", centred, goal.about) / len(goal.about)
            solution = np.einsum("gij,gj->gi", inverses, cross + ridge[:, np.newaxis] * matrix)
        else:
            cross = goal.about.T @ centred[0] / len(goal.about)
            solution = (cross + ridge[0] * matrix) @ inverses[0]
        offset = goal.mean - np.einsum("oi,oi->o", solution, np.broadcast_to(operand.middle, solution.shape))
    return solution, offset


def _codes(
    solution: Array, offset: Array, middle: Array, moments: Array, ready: Curvature, data_scale: float, fit: FitSettings
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
    result: Array = moments.copy()
    np.einsum("gii->gi", result)[:] += by[:, np.newaxis]
    return result


def _product(rows: Array, matrix: Array) -> Array:
    """Rows times weights, [rows, outputs]."""
    is_shared = len(rows) == 1 and len(matrix) != 1
    result: Array = rows[0] @ matrix.T.astype(rows.dtype) if is_shared else np.einsum("gri,gi->rg", rows, matrix)
    return result


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
