"""Candidate samplers: classes that a training step takes as the wrong ones beside the true ones.

With a seed the classes are those that TensorFlow draws. Sources: Jean and others, On Using Very Large Target
Vocabulary (2015); the counts that are expected of unique draws: 1 - (1 - p)^tries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.philox import Words
from pocketgraph.kernels.random.sampling import drawing
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.kernels.state.checkpoint_files import files_of

Draw = Callable[["_SamplerNumbers"], int]
Chance = Callable[[int], float]
MOST_TRIES = 1 << 24  # draws in all
WORDS_PER_CLASS = 2048  # words that TensorFlow sets aside for each class to be drawn


class _SamplerNumbers(Words):
    """The numbers that TensorFlow's samplers make of a generator's words."""

    AHEAD = 256

    def long(self) -> int:
        return self.word() | self.word() << 32

    def fraction(self) -> float:
        """In [0, 1), with 52 bits."""
        high = self.word()
        return ((high & 0xFFFFF) << 32 | self.word()) / 2.0**52

    def below(self, limit: int, bits: int) -> int:
        """A number in [0, limit), by 32 or 64 bits; what would favour some numbers is drawn again."""
        draw = self.word if bits == 32 else self.long
        if limit & (limit - 1) == 0:
            return draw() & (limit - 1)
        whole = (1 << bits) - 1
        most = whole - whole % limit
        while True:
            value = draw()
            if value < most:
                return value % limit


def _expected(chance: float, count: int, tries: int) -> float:
    chance = float(np.float32(chance))
    if tries == count:
        return chance * count
    return -math.expm1(tries * math.log1p(-chance)) if chance < 1 else 1.0


def sampled(
    words: _SamplerNumbers, true_classes: Array, count: int, unique: bool, classes: int, draw: Draw, chance: Chance
) -> tuple[Array, Array, Array]:
    """(classes int64 (count,), expected counts of the true classes, expected counts of the drawn ones)."""
    if unique and count > classes:
        raise RunError(f"Sampler's range is too small: {count} unique classes of {classes}")
    chosen: list[int] = []
    tries = 0
    seen: set[int] = set()
    while len(chosen) < count:
        tries += 1
        if tries > MOST_TRIES:
            raise RunError(f"{len(chosen)} of {count} unique classes after {tries:,} draws")
        value = draw(words)
        if not unique or value not in seen:
            seen.add(value)
            chosen.append(value)
    spent = tries if unique else count
    given = true_classes.ravel().tolist()
    if any(not 0 <= value < classes for value in given):
        raise RunError(f"a true class is outside [0, {classes})")
    of_true = [_expected(chance(value), count, spent) for value in given]
    of_drawn = [_expected(chance(value), count, spent) for value in chosen]
    return (
        np.array(chosen, np.int64),
        np.array(of_true, np.float32).reshape(true_classes.shape),
        np.array(of_drawn, np.float32),
    )


def _check_columns(true_classes: Array, num_true: int) -> None:
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise RunError(f"true_classes of shape {list(true_classes.shape)} do not have {num_true} columns")


def _run(
    context: Context, true_classes: Array, num_true: int, num_sampled: int, unique: bool, seeds: tuple[int, int],
    classes: int, draw: Draw, chance: Chance,
) -> tuple[Array, Array, Array]:  # fmt: skip
    _check_columns(true_classes, num_true)
    if num_sampled < 1:
        raise RunError(f"num_sampled must be at least 1, not {num_sampled}")
    reserve((num_sampled,), np.float64)
    words = _SamplerNumbers(drawing(context, *seeds, num_sampled * WORDS_PER_CLASS // 4))
    return sampled(words, true_classes, num_sampled, unique, classes, draw, chance)


@kernel("UniformCandidateSampler")
def uniform_candidate_sampler(
    true_classes: Array, *, context: Context, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int = 0, seed2: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Every class of [0, range_max) alike."""
    return _run(
        context, true_classes, num_true, num_sampled, unique, (seed, seed2), range_max,
        lambda words: words.below(range_max, 64), lambda _: 1 / range_max,
    )  # fmt: skip


@kernel("LogUniformCandidateSampler")
def log_uniform_candidate_sampler(
    true_classes: Array, *, context: Context, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int = 0, seed2: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """By Zipf's law: class k with log((k + 2) / (k + 1)) / log(range_max + 1)."""
    span = math.log1p(range_max)
    return _run(
        context, true_classes, num_true, num_sampled, unique, (seed, seed2), range_max,
        lambda words: (int(math.exp(words.fraction() * span)) - 1) % range_max,
        lambda value: math.log((value + 2.0) / (value + 1.0)) / span,
    )  # fmt: skip


@kernel("AllCandidateSampler")
def all_candidate_sampler(true_classes: Array, *, num_true: int, num_sampled: int) -> tuple[Array, Array, Array]:
    """Every class of [0, num_sampled) once."""
    _check_columns(true_classes, num_true)
    reserve((num_sampled,), np.float64)
    of_true, of_drawn = np.ones(true_classes.shape, np.float32), np.ones(num_sampled, np.float32)
    return np.arange(num_sampled, dtype=np.int64), of_true, of_drawn


@kernel("ThreadUnsafeUnigramCandidateSampler", "LearnedUnigramCandidateSampler")
def learned_unigram_candidate_sampler(
    true_classes: Array, *, context: Context, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int = 0, seed2: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """By how often each class was a true one so far, plus one."""
    place = f"unigrams/{context.instance}"
    weights: Array = context.state.setdefault(place, np.ones(reserve((range_max,), np.float64), np.int64))
    totals = np.cumsum(weights)
    total = int(totals[-1])
    found = _run(
        context, true_classes, num_true, num_sampled, unique, (seed, seed2), range_max,
        lambda words: int(np.searchsorted(totals, words.below(total, 32), side="right")),
        lambda value: float(weights[value]) / total,
    )  # fmt: skip
    np.add.at(weights, true_classes.ravel(), 1)
    return found


@kernel("FixedUnigramCandidateSampler")
def fixed_unigram_candidate_sampler(
    true_classes: Array, *, context: Context, num_true: int, num_sampled: int, unique: bool, range_max: int,
    vocab_file: str = "", distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0,
    unigrams: Sequence[float] = (), seed: int = 0, seed2: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """By given frequencies, each to the power of ``distortion``; an engine reads ``vocab_file`` only where it may."""
    counts = list(unigrams)
    if vocab_file:
        lines = files_of(context).read(vocab_file).decode(errors="replace").splitlines()
        counts = [float(line.rpartition(",")[2]) for line in lines if line.strip()]
    weights = np.array([0.0] * num_reserved_ids + [w**distortion for w in counts], np.float64)
    places = np.arange(weights.size)
    weights = weights[places % num_shards == shard].astype(np.float32).astype(np.float64)
    if weights.size != range_max or not weights.any():
        raise RunError(f"range_max is {range_max} but {weights.size} frequencies are given")
    totals = np.cumsum(weights)
    total = float(totals[-1])
    picker = _Weighted(weights)
    return _run(
        context, true_classes, num_true, num_sampled, unique, (seed, seed2), range_max,
        picker.draw, lambda value: float(weights[value]) / total,
    )  # fmt: skip


class _Weighted:
    """Places drawn by their weights, by Walker's alias method (Vose, 1991).

    A place is drawn evenly, then kept or swapped for its partner.
    """

    def __init__(self, weights: Array) -> None:
        shares = (weights * weights.size / weights.sum()).tolist()
        self.kept, self.partner = [1.0] * len(shares), list(range(len(shares)))
        low = [place for place, share in enumerate(shares) if share < 1]
        high = [place for place, share in enumerate(shares) if share >= 1]
        while low and high:
            small, large = low.pop(), high.pop()
            self.kept[small], self.partner[small] = float(np.float32(shares[small])), large
            shares[large] -= 1 - shares[small]
            (low if shares[large] < 1 else high).append(large)

    def draw(self, words: _SamplerNumbers) -> int:
        share = (words.word() & 0x7FFFFF) / 2.0**23
        place = words.below(len(self.kept), 32)
        return place if share < self.kept[place] else self.partner[place]


@kernel("ComputeAccidentalHits")
def compute_accidental_hits(
    true_classes: Array, sampled_candidates: Array, *, num_true: int
) -> tuple[Array, Array, Array]:
    """(rows int32, places int64 among the drawn classes, weights of -lowest float32) where a true class was drawn."""
    _check_columns(true_classes, num_true)
    places = {value: place for place, value in enumerate(ints(sampled_candidates))}
    hits = [
        (row, places[value]) for row, values in enumerate(true_classes.tolist()) for value in values if value in places
    ]
    weights = np.full(len(hits), np.finfo(np.float32).min, np.float32)
    return (np.array([row for row, _ in hits], np.int32), np.array([place for _, place in hits], np.int64), weights)
