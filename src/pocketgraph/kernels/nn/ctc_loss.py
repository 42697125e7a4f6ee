"""Connectionist temporal classification: the loss of label sequences under class scores, and its gradient.

Graves, Fernández, Gomez, Schmidhuber: Connectionist temporal classification (2006), equations 4 to 16, in logarithms.
"""

from __future__ import annotations

import itertools

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.sparse.sparse_algebra import checked


def _labels(indices: Array, values: Array, batch: int) -> list[list[int]]:
    """The labels of each entry of the batch, in the order of their places."""
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise RunError(f"labels_indices is not a matrix of two columns: {list(indices.shape)}")
    checked(indices, values, np.array([max(batch, 0), 2**62]))
    rows: list[list[int]] = [[] for _ in range(batch)]
    for (row, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        rows[row].append(int(value))
    return rows


def _without_padding(labels: list[int], blank: int, entry: int) -> list[int]:
    """The labels in front of the first that is the blank or beyond, behind which there may be no others."""
    if any(label < 0 for label in labels):
        raise RunError(f"a label of entry {entry} is negative: {labels[:9]}")
    kept = list(itertools.takewhile(lambda label: label < blank, labels))
    if any(label < blank for label in labels[len(kept) :]):
        raise RunError(
            f"a label follows padding, which is {blank} (the blank) and more, in entry {entry}: {labels[:9]}"
        )
    return kept


def _behind(values: Array, by: int) -> Array:
    """``values`` moved ``by`` places on; what comes in is impossible."""
    result = np.full_like(values, -np.inf)
    if by < values.size:
        result[by:] = values[: values.size - by]
    return result


def _forward(logs: Array, spread: list[int], blank: int, merge: bool, own: bool) -> Array:
    """(time, places): the logarithm of how likely a path is at each place of the labels with blanks, at each time.

    ``own`` is whether what the path emits at that time counts.
    """
    jumps = np.array([u > 1 and x != blank and (not merge or x != spread[u - 2]) for u, x in enumerate(spread)])
    loops = np.array([merge or x == blank for x in spread])
    emitted = logs[:, spread]
    ahead = np.full(emitted.shape, -np.inf, dtype=logs.dtype)
    ahead[0, :2] = 0
    for t in timed(range(1, logs.shape[0])):
        before = ahead[t - 1] + emitted[t - 1]
        near = np.logaddexp(np.where(loops, before, -np.inf), _behind(before, 1))
        ahead[t] = np.logaddexp(near, np.where(jumps, _behind(before, 2), -np.inf))
    return ahead + emitted if own else ahead


def _one(logits: Array, labels: list[int], blank: int, merge: bool) -> tuple[float, Array]:
    """(loss, gradient (time, classes)) of one sequence."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    logs = np.log(chances)
    spread = [blank, *itertools.chain.from_iterable((label, blank) for label in labels)]
    # A path may be read from its end as well, so the way back is the same walk over all that reversed.
    both = _forward(logs, spread, blank, merge, True)
    both = both + _forward(logs[::-1], spread[::-1], blank, merge, False)[::-1, ::-1]
    total = np.array(-np.inf, dtype=logits.dtype)
    sums = np.full_like(chances, -np.inf)
    for place, label in enumerate(spread):
        total = np.logaddexp(total, both[0, place])
        sums[:, label] = np.logaddexp(sums[:, label], both[:, place])
    if not np.isfinite(total):
        return np.inf, chances
    return -float(total), np.asarray(chances - np.exp(sums - total))


@kernel("CTCLoss")
def ctc_loss(
    inputs: Array,
    labels_indices: Array,
    labels_values: Array,
    sequence_length: Array,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
) -> tuple[Array, Array]:
    """(loss (batch,), gradient by ``inputs``) of scores (time, batch, classes), the last class being the blank."""
    if inputs.shape[2] < 1:
        raise RunError(f"inputs is not a 3-Tensor of scores: {list(inputs.shape)}")
    times, batch, classes = reserve(inputs.shape, np.float64)
    lengths = ints(sequence_length)
    if batch < 1 or len(lengths) != batch or any(not 0 <= n <= times for n in lengths):
        raise RunError(f"sequence lengths {list(lengths)[:9]} do not fit inputs {list(inputs.shape)}")
    blank = classes - 1
    losses, gradient = np.zeros(batch, dtype=inputs.dtype), np.zeros_like(inputs)
    for entry, labels in enumerate(_labels(labels_indices, labels_values, batch)):
        length = lengths[entry]
        if not labels and length:
            raise RunError(f"Labels length is zero in batch {entry}")
        given = len(labels)
        if preprocess_collapse_repeated:
            labels = [label for label, _ in itertools.groupby(labels)]
        labels = _without_padding(labels, blank, entry)
        if given > length and not ignore_longer_outputs_than_inputs:  # padding and what is repeated take time, too
            raise RunError(
                f"Not enough time for target transition sequence (required: {given}, available: {length}) in "
                f"entry {entry}; ignore_longer_outputs_than_inputs skips such entries"
            )
        if given > length or not length:
            continue
        loss, found = _one(inputs[:length, entry].astype(np.float64), labels, blank, ctc_merge_repeated)
        losses[entry], gradient[:length, entry] = loss, found
    return losses, gradient
