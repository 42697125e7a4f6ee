"""Fourier transforms over the last one, two or three axes, computed in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import COMPLEX64, FLOAT
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel


def _last(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _complex(rank: int, function: Callable[..., Any]) -> Callable[[Array], Array]:
    def run(input: Array) -> Array:
        if input.dtype.kind != "c":
            raise TypeError(f"complex numbers are wanted, not {input.dtype}")
        if input.ndim < rank:
            raise ValueError(f"Input must have rank at least {rank}, its shape is {list(input.shape)}")
        if not input.size:
            return input
        return np.asarray(function(input.astype(np.complex128), axes=_last(rank))).astype(input.dtype)

    return run


def _lengths(input: Array, fft_length: Array, rank: int, halved: bool) -> tuple[int, ...]:
    """The lengths, once it is sure that the input is as long, or half as long and one, and that so long a transform
    may be made."""
    lengths = ints(fft_length)
    if len(lengths) != rank or input.ndim < rank or min(lengths) < 0:
        raise ValueError(f"fft_length must be {rank} sizes, not {list(lengths)}, for an input of {list(input.shape)}")
    for axis, length in zip(range(-rank, 0), lengths, strict=True):
        least = length // 2 + 1 if halved and axis == -1 and length else length
        if 0 < input.shape[axis] < least:
            raise ValueError(
                f"Input dimension {input.ndim + axis} must have length of at least {least} but got: {input.shape[axis]}"
            )
    reserve((*input.shape[: input.ndim - len(lengths)], *lengths), np.complex128)
    return lengths


def _from_real(rank: int) -> Callable[..., Array]:
    def run(input: Array, fft_length: Array, *, Tcomplex: DType = COMPLEX64) -> Array:
        lengths = _lengths(input, fft_length, rank, False)
        if not input.size or not all(lengths):  # whatever memory held, in TensorFlow
            last = lengths[-1] // 2 + 1 if lengths[-1] else 0
            return np.zeros((*input.shape[:-rank], *lengths[:-1], last), Tcomplex.numpy)
        return np.asarray(np.fft.rfftn(input.astype(np.float64), s=lengths, axes=_last(rank))).astype(Tcomplex.numpy)

    return run


def _to_real(rank: int) -> Callable[..., Array]:
    def run(input: Array, fft_length: Array, *, Treal: DType = FLOAT) -> Array:
        lengths = _lengths(input, fft_length, rank, True)
        if not input.size or not all(lengths):
            return np.zeros((*input.shape[:-rank], *lengths), Treal.numpy)
        return np.asarray(np.fft.irfftn(input.astype(np.complex128), s=lengths, axes=_last(rank))).astype(Treal.numpy)

    return run


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    kernel(f"FFT{_suffix}")(_complex(_rank, np.fft.fftn))
    kernel(f"IFFT{_suffix}")(_complex(_rank, np.fft.ifftn))
    kernel(f"RFFT{_suffix}")(_from_real(_rank))
    kernel(f"IRFFT{_suffix}")(_to_real(_rank))
