"""Several Python threads compute a layer, each for some of a batch's images: NumPy and XNNPACK run beside each other.

Products take one thread each meanwhile. OpenBLAS's own threads wait for each other in each product, which takes many
times as long where other programs have the processors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.arrays import Array

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_THREADS = 8  # each has work arrays of some megabytes, and programs of XNNPACK's
LEAST_SHARE = 40_000_000  # multiplications: of a thread, a millisecond; busy, one does smaller layers as soon

Result = TypeVar("Result")


def threads_for(threads: int, images: int, multiplications: int) -> int:
    """How many threads are to share a batch.

    Args:
        threads: those of the session.
        images: of the batch.
        multiplications: of a convolution of all of them.
    """
    return max(1, min(threads, MOST_THREADS, images, multiplications // LEAST_SHARE))


def largest_share(threads: int, images: int) -> int:
    """How many images a thread has, at most."""
    return -(-images // threads)


def over_images(threads: int, images: int, work: Callable[[slice], Result]) -> list[Result]:
    """What ``work`` gives for each thread's images, in their order; the calling thread takes the first ones."""
    count = max(1, largest_share(threads, images))
    shares = [slice(first, min(first + count, images)) for first in range(0, max(1, images), count)]
    with blas_threads.at_most(1):
        if len(shares) <= 1:
            return [work(share) for share in shares]
        from concurrent.futures import ThreadPoolExecutor

        others: list[Future[Result]] = []
        with ThreadPoolExecutor(len(shares) - 1, "pocketgraph-images") as pool:
            with contextlib.suppress(RuntimeError):  # the system has no more threads, or Python ends
                others.extend(pool.submit(work, share) for share in shares[1:])
            first = [work(share) for share in (shares[0], *shares[1 + len(others) :])]
            found = [other.result() for other in others]
    return [first[0], *found, *first[1:]]


def summed(shares: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The gradients (by the weights, by the bias) of all images, of those of each thread's."""
    with np.errstate(all="ignore"):
        by_weights, by_bias = shares[0]
        for weights, bias in shares[1:]:
            by_weights += weights
            by_bias += bias
        return by_weights, by_bias.astype(np.float32)
