"""Label sequences out of CTC's classes: the greedy way, and by beam search when a blank may stand between labels.

The algorithm is that of Graves, Sequence Transduction with Recurrent Neural Networks (2012), as TensorFlow's
CTCBeamSearchDecoder runs it: a beam holds the probability that its sequence ends in a blank and that it ends in its
label; a child enters the search when it is likelier than the last beam.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.kernels.arrays import Array, ints, places_in_rows, reserve
from pocketgraph.kernels.registry import kernel

NEVER = -math.inf
"""The logarithm of probability 0."""


@dataclass(eq=False)
class _Beam:
    """One sequence of labels: its last label behind its parent's. Probabilities are logarithms.

    Attributes:
        total, blank, label_end: now: of the sequence at all, ending in a blank, ending in its label.
        old_total, old_blank: the same one step ago.
    """

    parent: _Beam | None = None
    label: int = -1
    total: float = NEVER
    blank: float = NEVER
    label_end: float = NEVER
    old_total: float = NEVER
    old_blank: float = NEVER
    children: dict[int, _Beam] = field(default_factory=dict)

    def drop(self) -> None:
        self.total = self.blank = self.label_end = NEVER

    def labels(self, merge_repeated: bool) -> list[int]:
        found: list[int] = []
        before, beam = -1, self
        while beam.parent is not None:
            if not (merge_repeated and beam.label == before):
                found.append(beam.label)
            before, beam = beam.label, beam.parent
        return found[::-1]


class Leaves:
    """The likeliest ``width`` beams."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._heap: list[tuple[float, int, _Beam]] = []
        self._order = count(0, -1)  # of equals, the later one is the first to go

    def __len__(self) -> int:
        return len(self._heap)

    def admits(self, total: float) -> bool:
        return total > NEVER and (len(self._heap) < self.width or total > self._heap[0][0])

    def push(self, beam: _Beam) -> None:
        entry = (beam.total, next(self._order), beam)
        if len(self._heap) < self.width:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heapreplace(self._heap, entry)[2].drop()

    @property
    def least(self) -> float:
        """What a beam must exceed to be admitted, now and later."""
        return self._heap[0][0] if len(self._heap) >= self.width else NEVER

    def best_first(self) -> list[_Beam]:
        return [beam for _, _, beam in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]


def joined(a: float, b: float) -> float:
    """The logarithm of the sum of two probabilities."""
    high, low = (a, b) if a >= b else (b, a)
    return high if low == NEVER else high + math.log1p(math.exp(low - high))


def search(logits: Array, width: int) -> list[_Beam]:
    """The likeliest beams after all steps of ``logits`` (time, classes; the last class is the blank), best first."""
    root = _Beam(total=0.0, blank=0.0)
    leaves = Leaves(width)
    leaves.push(root)
    wide = logits.astype(np.float64)
    for scores in timed((wide - np.logaddexp.reduce(wide, axis=1, keepdims=True)).tolist()):
        leaves = step(leaves, scores)
    return leaves.best_first()


def step(leaves: Leaves, scores: list[float]) -> Leaves:
    """The beams after one more step, given each class's log probability in it."""
    branches = leaves.best_first()
    leaves = Leaves(leaves.width)
    labels = range(len(scores) - 1)
    likeliest = [] if any(map(math.isnan, scores)) else sorted(labels, key=scores.__getitem__, reverse=True)
    for beam in branches:
        beam.old_total, beam.old_blank = beam.total, beam.blank
    for beam in branches:
        if beam.parent is not None:
            if beam.parent.total > NEVER:
                same = beam.label == beam.parent.label
                beam.label_end = joined(beam.label_end, beam.parent.old_blank if same else beam.parent.old_total)
            beam.label_end += scores[beam.label]
        beam.blank = beam.old_total + scores[-1]
        beam.total = joined(beam.blank, beam.label_end)
        leaves.push(beam)
    for beam in branches:
        if not leaves.admits(beam.old_total):
            continue
        for label in _worth_a_look(beam, leaves.least, scores, likeliest) if likeliest else labels:
            child = beam.children.get(label)
            if child is not None and child.total > NEVER:
                continue
            total = scores[label] + (beam.old_blank if label == beam.label else beam.old_total)
            if leaves.admits(total):
                if child is None:
                    child = beam.children[label] = _Beam(beam, label)
                child.blank, child.label_end, child.total = NEVER, total, total
                leaves.push(child)
            elif child is not None:  # it has lost its place in this very step, and does not grow either
                child.old_total = child.old_blank = NEVER
    return leaves


def _worth_a_look(beam: _Beam, least: float, scores: list[float], likeliest: list[int]) -> list[int]:
    """The labels, in order, with which a beam may exceed ``least``, and those that it was followed by before."""
    found = set(beam.children)
    for label in likeliest:
        if scores[label] + beam.old_total <= least:
            break
        found.add(label)
    return sorted(found)


@kernel("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(
    inputs: Array, sequence_length: Array, *, beam_width: int, top_paths: int, merge_repeated: bool = True
) -> tuple[Array, ...]:
    """(indices…, values…, shapes…, log probabilities [batch, paths]) of the best paths; inputs: time, batch, class.

    Sums are taken in double, where TensorFlow takes some in float32 whatever the input's type.
    """
    if not inputs.shape[2]:
        raise ValueError(f"inputs is not a 3-Tensor of (time, batch, classes): {list(inputs.shape)}")
    lengths = _lengths(inputs, sequence_length)
    if not 1 <= top_paths <= beam_width:
        raise ValueError("requested more paths than the beam width." if top_paths > 0 else "top_paths must be positive")
    scores = np.empty(reserve((len(lengths), top_paths), inputs.dtype), inputs.dtype)
    found: list[list[list[int]]] = []
    for entry, length in enumerate(lengths):
        beams = search(inputs[:length, entry], beam_width)[:top_paths]
        if len(beams) < top_paths:
            raise ValueError("Less leaves in the beam search than requested.")
        scores[entry] = [beam.total for beam in beams]
        found.append([beam.labels(merge_repeated) for beam in beams])
    decoded = [_sparse([paths[path] for paths in found]) for path in range(top_paths)]
    return (*(array for arrays in zip(*decoded, strict=True) for array in arrays), scores)


def _lengths(inputs: Array, sequence_length: Array) -> tuple[int, ...]:
    """How many steps each entry of a batch has."""
    times, batch, _ = inputs.shape
    lengths = ints(sequence_length)
    if len(lengths) != batch or any(not 0 <= n <= times for n in lengths):
        raise ValueError(f"sequence lengths {list(lengths)[:9]} do not fit {list(inputs.shape)}")
    return lengths


def _sparse(rows: list[list[int]]) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of the labels of each entry."""
    indices, shape = places_in_rows(rows)
    return indices, np.array([label for row in rows for label in row], dtype=np.int64), shape


@kernel("CTCGreedyDecoder")
def ctc_greedy_decoder(
    inputs: Array, sequence_length: Array, *, merge_repeated: bool = False, blank_index: int = -1
) -> tuple[Array, Array, Array, Array]:
    """(indices, values, shape, negated score) of the likeliest class at each time of (time, batch, classes)."""
    lengths, classes = _lengths(inputs, sequence_length), inputs.shape[2]
    blank = blank_index % classes
    best = _likeliest(inputs)
    rows, scores = [], np.zeros((len(lengths), 1), dtype=inputs.dtype)
    for entry, length in enumerate(lengths):
        path = best[:length, entry].tolist()
        scores[entry] = -sum(inputs[t, entry, c] for t, c in enumerate(path))
        before = [-1, *path[:-1]]
        rows.append(
            [c for c, last in zip(path, before, strict=False) if c != blank and not (merge_repeated and c == last)]
        )
    return (*_sparse(rows), scores)


def _likeliest(inputs: Array) -> Array:
    """The first largest class of each (time, batch). A NaN is passed over, but as the first class it is the largest."""
    if not inputs.size:
        return np.zeros(inputs.shape[:2], dtype=np.int64)
    missing = np.isnan(inputs)
    best = np.where(missing, -np.inf, inputs).argmax(axis=2)
    return np.asarray(np.where(missing[:, :, 0], 0, best))
