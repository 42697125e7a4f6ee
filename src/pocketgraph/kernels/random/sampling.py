"""Random tensors: uniform, normal, truncated normal, integers, shuffles, draws from categories.

An op with a seed draws what TensorFlow's own op draws; without one, it is seeded from the session's generator.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, integer, ints, reserve, sizes_of, widened
from pocketgraph.kernels.philox import MASK, RESERVED, Philox
from pocketgraph.kernels.random.rejection_sampling import each_drawn, gamma, poisson
from pocketgraph.kernels.registry import Context, kernel

FEW = 2048  # numbers that are drawn for several runs at once
AHEAD = 16  # runs

_moving = threading.Lock()  # held while a generator moves on: runs of several threads draw different numbers


def drawing(context: Context, seed: int, seed2: int, blocks: int) -> Philox:
    """The op's generator, which then moves on by ``blocks`` for the next run of the same node in this session."""
    place = f"random/{context.instance}"
    with _moving:
        generator = context.state.get(place)
        if not isinstance(generator, Philox):
            generator = Philox.of_op(seed, seed2, context.rng)
        context.state[place] = generator.skip(blocks)
    return generator


def _after_fork() -> None:
    global _moving
    _moving = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _drawn_ahead(
    context: Context, seed: int, seed2: int, count: int, blocks: int, kind: type[np.floating[Any]] = np.float32
) -> Array:
    """The next ``count`` uniform numbers; those of the runs to come are drawn with them, as calls of NumPy cost most.

    ``blocks`` are used up in a run.

    What is kept counts only while the generator is where it was when it was kept.
    """
    place = f"random ahead/{context.instance}"
    generator = drawing(context, seed, seed2, blocks)
    kept = context.state.get(place)
    if isinstance(kept, tuple) and kept[0] == count:
        turn, remainder = divmod(generator.counter - kept[1].counter, blocks)
        if not remainder and 0 <= turn < len(kept[2]) and generator.key == kept[1].key:
            return np.array(kept[2][turn])
    runs = AHEAD if isinstance(kept, tuple) else 1
    numbers = generator.uniform_runs(runs, count, blocks, kind)
    context.state[place] = (count, generator, numbers)
    return np.array(numbers[0])


@kernel("RandomUniform")
def random_uniform(shape: Array, *, context: Context, dtype: DType, seed: int = 0, seed2: int = 0) -> Array:
    """Numbers in [0, 1)."""
    sizes, count = sizes_of(shape)
    if 0 < count <= FEW and dtype.numpy == np.float32:
        return _drawn_ahead(context, seed, seed2, count, count * RESERVED).reshape(sizes)
    return drawing(context, seed, seed2, count * RESERVED).uniform(count, dtype.numpy).reshape(sizes)


@kernel("RandomStandardNormal")
def random_standard_normal(shape: Array, *, context: Context, dtype: DType, seed: int = 0, seed2: int = 0) -> Array:
    sizes, count = sizes_of(shape)
    return drawing(context, seed, seed2, count * RESERVED).normal(count, dtype.numpy).reshape(sizes)


@kernel("TruncatedNormal")
def truncated_normal(shape: Array, *, context: Context, dtype: DType, seed: int = 0, seed2: int = 0) -> Array:
    """Normal numbers within two standard deviations."""
    sizes, count = sizes_of(shape)
    return drawing(context, seed, seed2, count * RESERVED).truncated_normal(count, dtype.numpy).reshape(sizes)


def bounds(minval: Array, maxval: Array) -> tuple[int, int]:
    """The two ends of a range of integers, the upper one left out.

    Raises:
        RunError: the range is empty.
    """
    low, high = integer(minval), integer(maxval)
    if low >= high:
        raise RunError(f"Need minval < maxval, got {low} >= {high}")
    return low, high


@kernel("RandomUniformInt")
def random_uniform_int(
    shape: Array, minval: Array, maxval: Array, *, context: Context, seed: int = 0, seed2: int = 0
) -> Array:
    """Integers in [minval, maxval)."""
    low, high = bounds(minval, maxval)
    sizes = reserve(ints(shape), np.float64)
    count = int(np.prod(sizes, dtype=np.int64))
    return drawing(context, seed, seed2, count * RESERVED).integers(count, low, high, minval.dtype).reshape(sizes)


@kernel("RandomShuffle")
def random_shuffle(value: Array, *, context: Context, seed: int = 0, seed2: int = 0) -> Array:
    """The rows in another order."""
    if value.ndim < 1 or value.shape[0] < 2:
        return value
    return shuffled(value, drawing(context, seed, seed2, -(-value.shape[0] // 4)))


def shuffled(value: Array, generator: Philox) -> Array:
    """The rows of ``value``, of which there are some, each changed with one of those that follow."""
    size = value.shape[0]
    words = generator.words(size - 1).tolist()
    order = list(range(size))
    for i, word in enumerate(words):
        other = i + word % (size - i)
        order[i], order[other] = order[other], order[i]
    return value[order]


@kernel("Multinomial")
def multinomial(
    logits: Array, num_samples: Array, *, context: Context, seed: int = 0, seed2: int = 0, output_dtype: DType = INT64
) -> Array:
    """(rows, num_samples) class numbers, drawn by the row's unnormalised log probabilities."""
    count = integer(num_samples)

    def draw(numbers: int, blocks: int) -> Array:
        if 0 < numbers <= FEW:
            return _drawn_ahead(context, seed, seed2, numbers, blocks, np.float64)
        return drawing(context, seed, seed2, blocks).uniform(numbers, np.dtype(np.float64))

    return chosen_classes(logits, count, draw, output_dtype)


def chosen_classes(logits: Array, count: int, draw: Callable[[int, int], Array], output_dtype: DType) -> Array:
    """``count`` class numbers a row of ``logits``; ``draw`` gives as many uniform doubles as it is told, and is told
    how many blocks the op uses up."""
    rows, classes = logits.shape
    if count < 0 or classes < 1:
        raise RunError(f"{count} draws from {classes} classes")
    reserve((rows, count), np.float64)
    whole = 2 * (-(-count // 4) * 4)  # a double takes two words
    uniform = draw(rows * count, rows * whole * RESERVED)
    values = widened(logits).astype(np.float64)
    if rows == 1 and math.isfinite(values.sum()):  # as in a loop that draws one number after the other
        total = np.exp(values[0] - values.max()).cumsum()
        chosen = np.asarray(total.searchsorted(uniform * total[-1], "right"))
        return chosen.reshape(1, count).astype(output_dtype.numpy)
    finite = np.isfinite(values)
    top = np.where(finite, values, -np.inf).max(axis=1, keepdims=True)
    totals = np.cumsum(np.where(finite, np.exp(values - top), 0.0), axis=1)
    draws = uniform.reshape(rows, count) * totals[:, -1:]
    found = [np.searchsorted(total, draw, side="right") for total, draw in zip(totals, draws, strict=True)]
    return np.array(found).reshape(rows, count).astype(output_dtype.numpy)


@kernel("RandomGamma")
def random_gamma(shape: Array, alpha: Array, *, context: Context, seed: int = 0, seed2: int = 0) -> Array:
    """Gamma numbers of rate 1, ``shape`` of them for each shape parameter ``alpha``."""
    sizes = reserve((*ints(shape), *alpha.shape), np.float64)
    generator = drawing(context, seed, seed2, math.prod(sizes) * RESERVED)
    return each_drawn(lambda a: gamma(generator, a), sizes, (alpha,), alpha.dtype)


@kernel("RandomPoisson", "RandomPoissonV2")
def random_poisson(
    shape: Array, rate: Array, *, context: Context, seed: int = 0, seed2: int = 0, dtype: DType = INT64
) -> Array:
    """Poisson numbers, ``shape`` of them for each mean ``rate``."""
    sizes = reserve((*ints(shape), *rate.shape), np.float64)
    generator = drawing(context, seed, seed2, math.prod(sizes) * RESERVED)
    kind = dtype if "dtype" in context.node.attrs else DType.of_numpy(rate.dtype)
    return each_drawn(lambda means: poisson(generator, means, kind), sizes, (rate,), kind.numpy)


def stateless(seed: Array) -> Philox:
    """The generator of a stateless op: the two seeds are mixed by one block of their own."""
    first, second = (s & MASK for s in ints(seed))
    mixed = Philox(0x02461E293EC8F720, first | (second << 64)).blocks(1)[0].astype(object)
    return Philox(int(mixed[0]) | int(mixed[1]) << 32, (int(mixed[2]) | int(mixed[3]) << 32) << 64)
