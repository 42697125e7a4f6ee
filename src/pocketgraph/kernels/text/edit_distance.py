"""Edit distances between sequences of two sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph.groups import by_key
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many insertions, deletions and replacements make the one sequence the other (Levenshtein)."""
    before = list(range(len(second) + 1))
    for place, item in enumerate(timed(first), 1):
        row = [place]
        for other, wanted in enumerate(second, 1):
            row.append(min(before[other] + 1, row[-1] + 1, before[other - 1] + (item != wanted)))
        before = row
    return before[-1]


def _sequences(indices: Array, values: Array, shape: tuple[int, ...]) -> dict[tuple[int, ...], list[Any]]:
    """By all indices but the last, the values in their order."""
    if indices.shape != (values.size, len(shape)):
        raise RunError(f"indices of shape {list(indices.shape)} for {values.size} values of shape {list(shape)}")
    if indices.size and bool(((indices < 0) | (indices >= np.array(shape))).any()):
        raise RunError(f"indices point outside {list(shape)}")
    return by_key((tuple(row[:-1]), value) for row, value in zip(indices.tolist(), values.tolist(), strict=True))


@kernel("EditDistance")
def edit_distances(
    hypothesis_indices: Array, hypothesis_values: Array, hypothesis_shape: Array, truth_indices: Array,
    truth_values: Array, truth_shape: Array, *, normalize: bool = True,
) -> Array:  # fmt: skip
    """float32: the distance of each pair of sequences along the last axis, as a share of the truth's length if so said.

    Where the truth is empty a share is infinite, and 0 if the hypothesis is empty as well.
    """
    ours, theirs = ints(hypothesis_shape), ints(truth_shape)
    if len(ours) != len(theirs) or len(ours) < 2:
        raise RunError(f"Expected hypothesis and truth of one rank, 2 or more: {list(ours)} and {list(theirs)}")
    result = np.zeros(reserve([max(a, b) for a, b in zip(ours[:-1], theirs[:-1], strict=True)], np.float32), np.float32)
    said = _sequences(hypothesis_indices, hypothesis_values, ours)
    right = _sequences(truth_indices, truth_values, theirs)
    for place in {*said, *right}:
        distance, length = float(edit_distance(said.get(place, []), right.get(place, []))), len(right.get(place, []))
        if normalize:
            distance = distance / length if length else np.inf
        result[place] = distance
    return result
