"""Fits a layer's codes so that, given the quantized operand, its results come near those of the float model.

This undoes what the layers before have done to the operand as far as a linear layer can, and leaves the rest small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from pocketgraph.quantize import operators
from pocketgraph.quantize.patches import REDUCIBLE, is_grouped, patches, positions, rows_of
from pocketgraph.quantize.rounding import loss, round_rows
from pocketgraph.quantize.running import Running, Samples
from pocketgraph.quantize.weights import Weights, channel_scales, float_weights
from pocketgraph.runtime.engines.litert.program import Operation

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 1 << 23  # of the rows that are looked at, so that they take 100 MB and not more
MOST_INPUTS = 1200  # of one output; fitting takes time as the third power of it
MOST_SHRUNK = 512  # inputs of one output up to which several scales are tried
FEWEST_SAMPLES = 16
BOUNDS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


@dataclass(frozen=True)
class Fit:
    """How to fit.

    Attributes:
        rows: how many rows of the operand to look at.
        trust: how strongly the weights are held to the float ones, as a share of the operand's mean second moment.
        scarce: how much more strongly for each input that there is for a row: few rows say little about many weights.
        rounds: how often targets in the flat parts of the activation are set anew.
        shrinks: the scales tried, as shares of the one that just holds the largest weight.
        seed: of the choice of rows.
    """

    rows: int = 16384
    trust: float = 0.01
    scarce: float = 0.3
    rounds: int = 2
    shrinks: tuple[float, ...] = (1.0, 0.9, 0.75)
    seed: int = 0


def elements(operation: Operation) -> int:
    """How many numbers a row has."""
    kernel = operators.weights(operation)
    return kernel.size if operation.code == "DEPTHWISE_CONV_2D" else kernel.size // kernel.shape[0]


def can_fit(operation: Operation) -> bool:
    """Whether the layer is of a kind and size to be fitted."""
    if operation.code not in REDUCIBLE or is_grouped(operation):
        return False
    return operation.code == "DEPTHWISE_CONV_2D" or elements(operation) <= MOST_INPUTS


def collect(
    operation: Operation, exact: Running, quantized: Running, samples: Samples, count: int, fit: Fit
) -> tuple[Array, Array]:
    """Rows of the float operand and of the quantized one, from the same places; see ``patches`` for the shapes.

    Args:
        operation: the layer.
        exact, quantized: make its float operand and its quantized one.
        samples: what to run them on; as many as give enough rows.
        count: how many samples there are.
        fit: how many rows, and the seed of the choice.
    """
    rng = np.random.default_rng(fit.seed)
    rows = min(fit.rows, max(MOST_ELEMENTS // elements(operation), 1))
    used = min(count, max(FEWEST_SAMPLES, -(-rows // rows_of(operation))))
    most = max(1, rows // max(used, 1))
    wanted, given = [], []
    for sample in islice(samples(), used):
        at = positions(operation, most, rng)
        wanted.append(patches(operation, exact.numbers(sample)[0], at))
        given.append(patches(operation, quantized.numbers(sample)[0], at))
    return np.concatenate(wanted), np.concatenate(given)


def reconstruct(operation: Operation, wanted: Array, given: Array, data_scale: float, fit: Fit) -> Weights:
    """Codes for the layer.

    Args:
        operation: the float layer.
        wanted, given: rows of the float and of the quantized operand.
        data_scale: of the operand's codes.
        fit: how.
    """
    values, bias = float_weights(operation)
    axis = operators.WEIGHT_AXIS[operation.code]
    depthwise = operation.code == "DEPTHWISE_CONV_2D"
    matrix = values.reshape(-1, values.shape[3]).T if depthwise else values.reshape(len(values), -1)
    if depthwise:
        wanted, given = wanted.transpose(2, 0, 1), given.transpose(2, 0, 1)  # [channels, rows, inputs]
    else:
        wanted, given = wanted[np.newaxis], given[np.newaxis]
    wanted, given = wanted.astype(np.float64), given.astype(np.float64)
    target = _product(wanted, matrix) + bias  # [rows, outputs]
    middle = given.mean(axis=1)  # [groups, inputs]
    centred = given - middle[:, np.newaxis]
    moments = np.einsum("gri,grj->gij", centred, centred) if depthwise else centred.transpose(0, 2, 1) @ centred
    moments /= given.shape[1]
    size = matrix.shape[1]
    scarcity = size / given.shape[1]
    ridge = (fit.trust + fit.scarce * scarcity) * np.trace(moments, axis1=1, axis2=2) / size + 1e-9
    solid = moments + ridge[:, np.newaxis, np.newaxis] * np.eye(size)
    inverse = np.linalg.inv(solid)
    low, high = BOUNDS.get(operation.options.get("activation", ""), (-np.inf, np.inf))
    solution, offset = matrix, bias
    for _ in range(fit.rounds):
        reached = _product(given, solution) + offset
        goal = np.where((target <= low) & (reached <= low), reached, target)
        goal = np.where((target >= high) & (reached >= high), reached, goal)
        mean = goal.mean(axis=0)
        if depthwise:
            cross = np.einsum("gri,rg->gi", centred, goal - mean) / len(goal)
            solution = np.einsum("gij,gj->gi", inverse, cross + ridge[:, np.newaxis] * matrix)
        else:
            cross = (goal - mean).T @ centred[0] / len(goal)
            solution = (cross + ridge[0] * matrix) @ inverse[0]
        offset = mean - np.einsum("oi,oi->o", solution, np.broadcast_to(middle, solution.shape))
    moments = solid if depthwise else solid[0]
    shaped = solution.T.reshape(values.shape) if depthwise else solution.reshape(values.shape)
    largest = channel_scales(shaped, axis, offset, data_scale)
    best = np.full(len(largest), np.inf)
    chosen, scales = np.zeros_like(solution), largest.copy()
    for shrink in fit.shrinks if size <= MOST_SHRUNK else fit.shrinks[:1]:
        tried = (largest * shrink).astype(np.float32).astype(np.float64)
        codes = round_rows(solution, tried, moments)
        cost = loss(solution, codes, tried, moments)
        better = cost < best
        best = np.where(better, cost, best)
        chosen[better], scales[better] = codes[better], tried[better]
    found = chosen * scales[:, np.newaxis]
    offset = offset + np.einsum("oi,oi->o", solution - found, np.broadcast_to(middle, solution.shape))
    shaped = chosen.T.reshape(values.shape) if depthwise else chosen.reshape(values.shape)
    return Weights(shaped.astype(np.int8), scales, offset, axis)


def _product(rows: Array, matrix: Array) -> Array:
    """Rows times weights, [rows, outputs]."""
    if len(rows) == 1 and len(rows) != len(matrix):
        result: Array = rows[0] @ matrix.T
    else:
        result = np.einsum("gri,gi->rg", rows, matrix)
    return result


def correct_bias(operation: Operation, weights: Weights, wanted: Array, given: Array) -> Weights:
    """The same codes with a bias that makes the results' means, over the rows, those of the float layer."""
    values, bias = float_weights(operation)
    coded = weights.numpy()
    if operation.code == "DEPTHWISE_CONV_2D":
        drift = np.einsum("ij,ij->j", wanted.mean(axis=0, dtype=np.float64), values.reshape(-1, values.shape[3]))
        drift -= np.einsum("ij,ij->j", given.mean(axis=0, dtype=np.float64), coded.reshape(-1, values.shape[3]))
    else:
        drift = values.reshape(len(values), -1) @ wanted.mean(axis=0, dtype=np.float64)
        drift -= coded.reshape(len(values), -1) @ given.mean(axis=0, dtype=np.float64)
    return Weights(weights.codes, weights.scales, bias + drift, weights.axis)
