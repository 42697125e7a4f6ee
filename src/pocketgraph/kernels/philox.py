"""The counter-based generator Philox 4x32-10, and numbers drawn from it as TensorFlow draws them.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array

_FACTORS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
MASK = 2**64 - 1
ROUNDS = 10
_KEY_STEPS = np.arange(ROUNDS, dtype=np.uint64).reshape(-1, 1, 1) * np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)
TINIEST = np.float32(1e-7)
"""Box-Muller's logarithm never sees less than this."""
RESERVED = 256
"""Blocks that one group of truncated normals may use up."""


@dataclass(frozen=True)
class Philox:
    """A place in one sequence of random blocks.

    Attributes:
        key: 64 bits that choose the sequence.
        counter: 128 bits, the number of the next block.
    """

    key: int
    counter: int

    @staticmethod
    def seeded(seed: int, seed2: int) -> Philox:
        """The generator of an op with these two seed attributes."""
        return Philox(seed & MASK, (seed2 & MASK) << 64)

    @staticmethod
    def of_op(seed: int, seed2: int, source: np.random.Generator | None) -> Philox:
        """Likewise; where both are 0, of seeds that ``source``, or the system, gives."""
        if seed == 0 and seed2 == 0:
            drawn = (source or np.random.default_rng()).integers(1, 2**62, size=2)
            seed, seed2 = (int(s) for s in drawn)
        return Philox.seeded(seed, seed2)

    def skip(self, blocks: int) -> Philox:
        """The generator after so many blocks of four numbers; the counter of 128 bits goes round."""
        return Philox(self.key, (self.counter + blocks) & (2**128 - 1))

    def blocks(self, count: int, stride: int = 1) -> Array:
        """uint32 (count, 4): this block and those that follow, every ``stride``-th."""
        return self._blocks(np.arange(count, dtype=np.uint64) * np.uint64(stride))

    def uniform_runs(
        self, runs: int, count: int, distance: int, kind: type[np.floating[Any]] = np.float32
    ) -> list[Array]:
        """``count`` numbers in [0, 1), float32 or float64, of each of several runs that start ``distance`` blocks
        apart."""
        each = 2 if kind is np.float64 else 4
        size = -(-count // each)
        starts = np.arange(runs, dtype=np.uint64) * np.uint64(distance)
        blocks = self._blocks((starts[:, None] + np.arange(size, dtype=np.uint64)).ravel())
        if kind is np.float64:
            return list(_doubles(blocks.reshape(-1, 2)).reshape(runs, each * size)[:, :count])
        return list(_floats(blocks.reshape(runs, each * size)[:, :count]))

    def uniform_pairs(self, offsets: Array) -> Array:
        """(n, 2) doubles in [0, 1) of the blocks this far (n,) from this one."""
        return _doubles(self._blocks(offsets).reshape(-1, 2)).reshape(-1, 2)

    def normal_pairs(self, offsets: Array) -> Array:
        """(n, 2) normally distributed doubles of the blocks this far (n,) from this one."""
        pairs = self.uniform_pairs(offsets)
        return _box_muller(pairs[:, 0], pairs[:, 1])

    def _blocks(self, offsets: Array) -> Array:
        """uint32 (n, 4): the blocks this far (n,) from this one."""
        low, high = self.counter & MASK, self.counter >> 64
        with np.errstate(over="ignore"):
            lower = np.uint64(low) + offsets
            upper = np.uint64(high) + (lower < np.uint64(low)).astype(np.uint64)
        # Words 0 and 2 are multiplied, words 1 and 3 mixed in; each pair is one array, as calls of NumPy cost most.
        factors, others = np.stack((lower & _LOW, upper & _LOW)), np.stack((lower >> _SHIFT, upper >> _SHIFT))
        for key in (np.array([[self.key & 0xFFFFFFFF], [self.key >> 32]], np.uint64) + _KEY_STEPS) & _LOW:
            products = (factors * _FACTORS)[::-1]
            factors = products >> _SHIFT
            factors ^= others
            factors ^= key
            others = products & _LOW
        return np.stack((factors[0], others[0], factors[1], others[1]), axis=1).astype(np.uint32)

    def words(self, count: int) -> Array:
        """The first ``count`` 32-bit words."""
        return self.blocks(-(-count // 4)).ravel()[:count]

    def uniform(self, count: int, dtype: np.dtype[np.generic]) -> Array:
        """``count`` numbers in [0, 1)."""
        if dtype == np.float64:
            return _doubles(self.words(2 * count).reshape(-1, 2))
        words = self.words(count)
        if dtype == np.float16:
            bits = (words & np.uint32(0x3FF)).astype(np.uint16) | np.uint16(15 << 10)
            return np.asarray(bits.view(np.float16) - np.float16(1))
        if dtype == np.float32:
            return _floats(words)
        bits = (words & np.uint32(0x7F)).astype(np.uint16) | np.uint16(127 << 7)
        return np.asarray(bits.view(dtype).astype(np.float32) - np.float32(1)).astype(dtype)

    def normal(self, count: int, dtype: np.dtype[np.generic]) -> Array:
        """``count`` normally distributed numbers, by Box and Muller."""
        if dtype == np.float64:
            pairs = _doubles(self.blocks(-(-count // 2)).reshape(-1, 2)).reshape(-1, 2)
            return _box_muller(pairs[:, 0], pairs[:, 1]).ravel()[:count]
        floats = _floats(self.blocks(-(-count // 4))).reshape(-1, 2)
        return _box_muller(floats[:, 0], floats[:, 1]).ravel()[:count].astype(dtype)

    def truncated_normal(self, count: int, dtype: np.dtype[np.generic], limit: float = 2.0) -> Array:
        """``count`` normally distributed numbers nearer to 0 than ``limit``; those beyond are drawn again."""
        size = 2 if dtype == np.float64 else 4
        kind = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        groups = -(-count // size)
        result = np.zeros((groups, size), dtype=kind)
        filled = np.zeros(groups, dtype=np.int64)
        stride = size * RESERVED // 4
        for block in range(stride):
            missing = np.flatnonzero(filled < size)
            if not missing.size:
                break
            if block < 4:
                words = self.skip(block).blocks(groups, stride)[missing]
            else:
                words = np.concatenate([self.skip(int(g) * stride + block).blocks(1) for g in missing])
            numbers = _doubles(words.reshape(-1, 2)) if size == 2 else _floats(words.ravel())
            pairs = numbers.reshape(-1, 2)
            drawn = _box_muller(pairs[:, 0], pairs[:, 1]).reshape(missing.size, -1)
            for column in drawn.T:
                good = (np.abs(column) < limit) & (filled[missing] < size)
                result[missing[good], filled[missing[good]]] = column[good]
                filled[missing[good]] += 1
        return result.ravel()[:count].astype(dtype)

    def bits(self, count: int, dtype: np.dtype[np.generic]) -> Array:
        """``count`` integers, 32 or 64 bits wide, of all values alike."""
        if dtype.itemsize == 8:
            pairs = self.words(2 * count).reshape(-1, 2).astype(np.uint64)
            return np.asarray(pairs[:, 0] | (pairs[:, 1] << _SHIFT)).view(dtype)
        return self.words(count).view(dtype)

    def integers(self, count: int, low: int, high: int, dtype: np.dtype[np.generic]) -> Array:
        """``count`` integers in [low, high), 32 or 64 bits wide."""
        values = self.bits(count, np.dtype(f"u{dtype.itemsize}")).astype(np.uint64)
        shifted: Array = np.uint64(low & MASK) + values % np.uint64(high - low)
        return shifted.astype(np.int64).astype(dtype)


class Words:
    """The 32-bit words of a generator, one after the other."""

    AHEAD = 64  # words that are made at once

    def __init__(self, generator: Philox) -> None:
        self._generator = generator
        self._left: list[int] = []

    def word(self) -> int:
        """The next one."""
        if not self._left:
            self._left = self._generator.words(self.AHEAD).tolist()[::-1]
            self._generator = self._generator.skip(self.AHEAD // 4)
        return self._left.pop()


def _floats(words: Array) -> Array:
    bits = (words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return np.asarray(bits.view(np.float32) - np.float32(1))


def _doubles(pairs: Array) -> Array:
    """float64 in [0, 1) of pairs of words, the first of which holds the upper bits."""
    wide = pairs.astype(np.uint64)
    bits = ((wide[:, 0] & np.uint64(0xFFFFF)) << _SHIFT) | wide[:, 1] | np.uint64(1023 << 52)
    return np.asarray(bits.view(np.float64) - 1.0)


def _box_muller(u: Array, v: Array) -> Array:
    """(n, 2) normal numbers of n pairs of uniform ones."""
    kind = u.dtype.type
    radius = np.sqrt(kind(-2) * np.log(np.maximum(u, kind(TINIEST if kind is np.float32 else 1e-7))))
    angle = kind(2 * np.pi) * v
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)
