"""Random tensors: ordinary numbers, and wild ones with NaN, infinities, zeros of both signs and the types' extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.tensor import Array

WORDS = (b"", b"a", b"Hello", b"x y  z", b"12", b"-3.5", "grüße".encode(), b"a,b,,c", b"  pad ", b"\x00\x01", b"1e5")


def array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], wild: bool = False) -> Array:
    """A tensor of ``dtype`` and ``shape``; ``wild`` puts the awkward values of the type among the ordinary ones."""
    kind = dtype.numpy
    if kind.kind == "O":
        words = np.empty(int(np.prod(shape)), object)
        words[:] = [WORDS[i] for i in rng.integers(0, len(WORDS), words.size)]
        return words.reshape(shape)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        return integers(rng, kind, shape, wild)
    if kind.kind == "c":
        part = DType.named("float" if kind.itemsize == 8 else "double")
        pair = np.stack([array(rng, part, shape, wild), array(rng, part, shape, wild)], -1)
        return pair.view(kind).reshape(shape)
    return floats(rng, kind, shape, wild)


def integers(rng: np.random.Generator, kind: np.dtype[Any], shape: tuple[int, ...], wild: bool) -> Array:
    low, high = (0, 12) if kind.kind == "u" else (-9, 10)
    values = rng.integers(low, high, shape).astype(kind)
    if wild:
        info = np.iinfo(kind)
        extremes = np.array([info.min, info.max, 0, 1, info.max // 2, info.max - 1], kind)
        return np.where(rng.random(shape) < 0.3, rng.choice(extremes, shape), values).astype(kind)
    return values


def floats(rng: np.random.Generator, kind: np.dtype[Any], shape: tuple[int, ...], wild: bool) -> Array:
    scale = rng.choice([0.1, 1.0, 1.0, 5.0])
    values = rng.standard_normal(shape) * scale
    if rng.random() < 0.2:
        values = np.rint(values * 2) / 2  # ties, and halves to be rounded
    if rng.random() < 0.2:
        values = np.abs(values)
    values = values.astype(kind)
    if wild:
        extremes = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-6, 1e4, 88.0, -104.0], np.float64)
        if kind.itemsize >= 4:
            extremes = np.append(extremes, [1e30, -1e30, 3e38, 1e-30])
        chosen = rng.choice(extremes, shape).astype(kind)
        return np.where(rng.random(shape) < 0.3, chosen, values)
    return values


def shape(rng: np.random.Generator, rank: int | None = None, least: int = 0, most: int = 4) -> tuple[int, ...]:
    """A small shape, now and then with an axis of one or none."""
    if rank is None:
        rank = int(rng.integers(least, most + 1))
    return tuple(
        int(rng.choice([1, 2, 3, 4, 5, 7, 0], p=[0.15, 0.25, 0.25, 0.15, 0.1, 0.07, 0.03])) for _ in range(rank)
    )


def broadcastable(rng: np.random.Generator, whole: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``whole``."""
    if rng.random() < 0.5:
        return whole
    cut = int(rng.integers(0, len(whole) + 1))
    return tuple(1 if rng.random() < 0.3 else size for size in whole[cut:])
