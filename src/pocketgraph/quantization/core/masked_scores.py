"""Scores that a mask takes out of a softmax: no codes are spent on how far below the others it puts them.

    scores ─ADD(0 or -1e9)─ SOFTMAX

In a range from -1e9 all other scores would have the same code.
"""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value

VANISHING = 88.0  # below a row's largest score, from which float32 has an exponential of 0
APART = 1000.0  # below 0 or the sample's largest score, from which a whole row may be masked
FARTHER = 8  # times as far below 0 as the largest scores of other rows are from it, from which a row is masked
EVEN_SHARE = 0.01  # of how far below 0 they are, within which the scores of such a row lie
HALF_CODE = 1 / 512  # of a softmax's results in eight bits


def normalized_scores(program: Program) -> set[Value]:
    """The tensors that softmaxes alone read, also through reshapes that keep rows whole."""
    readers, found = program.consumers(), set[Value]()

    def keeps_rows(value: Value, reshaped: Value) -> bool:
        return reshaped in found and reshaped.shape[-1:] == value.shape[-1:]

    for operation in reversed(program.operations):
        for value in set(operation.outputs).intersection(readers).difference(program.outputs):
            if all(
                each.code == "SOFTMAX" or (each.code == "RESHAPE" and keeps_rows(value, each.outputs[0]))
                for each in readers[value]
            ):
                found.add(value)
    return found


def without_masks(scores: Array) -> Array:
    """The scores, float32 [..., row], with those that a softmax turns into 0 only as low as eight bits can tell.

    All of a row's, as low as that, are less than half a code of the results together. Rows that are masked as a whole,
    as those of padding are, count as 0.
    """
    top = scores.max(initial=-np.inf)
    if not (math.isfinite(top) and scores.min() < max(top, 0) - VANISHING):
        return scores
    tops = scores.max(axis=-1, keepdims=True)
    levels, lows = tops.astype(np.float64), scores.min(axis=-1, keepdims=True)
    is_masked = (levels < -APART) & (levels * (1 + EVEN_SHARE) < lows)
    is_far = ~is_masked & (levels < levels.max(initial=-np.inf, where=~is_masked) - APART)
    near = np.abs(levels).max(initial=0, where=~(is_masked | is_far))
    is_masked |= is_far & (levels < -FARTHER * near)
    lowest = tops - np.float32(math.log(scores.shape[-1] / HALF_CODE))
    result: Array = np.where(is_masked, np.float32(0), np.where(scores < tops - VANISHING, lowest, scores))
    return result
