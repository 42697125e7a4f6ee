"""Random tensors drawn from a generator that a variable holds (tf.random.Generator), and from a range of its own.

The variable is int64 (3,): a counter of 128 bits and a key of 64, from which Philox draws TensorFlow's own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, UINT64
from pocketgraph.kernels.arrays import Array, integer, sizes_of
from pocketgraph.kernels.philox import MASK, RESERVED, Philox
from pocketgraph.kernels.random.rejection_sampling import binomial, each_drawn, sizes_ending
from pocketgraph.kernels.random.sampling import bounds
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.state.variables import Variable

PHILOX = 1


def _taken(resource: Variable, algorithm: int, blocks: int) -> Philox:
    """The variable's generator, which moves on by so many blocks."""
    if algorithm != PHILOX:
        raise RunError(f"Unsupported algorithm id: {algorithm}; CPU kernels draw by Philox (1)")
    with resource.lock:
        state = resource.read()
        if state.dtype != np.int64 or state.ndim != 1 or state.size < 3:
            raise RunError(f"the state of a Philox generator is int64 (3,), not {state.dtype} {list(state.shape)}")
        low, high, key = (int(v) & MASK for v in state[:3])
        generator = Philox(key, low | high << 64)
        after = generator.skip(blocks).counter
        changed = state.copy()
        changed[:2] = np.array([after & MASK, after >> 64], np.uint64).view(np.int64)
        resource.assign(changed)
    return generator


def _register(op: str, draw: Callable[[Philox, int, np.dtype[Any]], Array], default: DType = FLOAT) -> None:
    @kernel(op)
    def numbers(resource: Variable, algorithm: Array, shape: Array, *, dtype: DType = default) -> Array:
        sizes, count = sizes_of(shape)
        return draw(_taken(resource, integer(algorithm), count * RESERVED), count, dtype.numpy).reshape(sizes)


_register("StatefulUniform", Philox.uniform)
_register("StatefulStandardNormalV2", Philox.normal)
_register("StatefulTruncatedNormal", Philox.truncated_normal)
_register("StatefulUniformFullInt", Philox.bits, UINT64)


@kernel("StatefulUniformInt")
def stateful_uniform_int(
    resource: Variable, algorithm: Array, shape: Array, minval: Array, maxval: Array, *, dtype: DType = INT64
) -> Array:
    """Integers in [minval, maxval)."""
    low, high = bounds(minval, maxval)
    sizes, count = sizes_of(shape)
    generator = _taken(resource, integer(algorithm), count * RESERVED)
    return generator.integers(count, low, high, dtype.numpy).reshape(sizes)


@kernel("RngSkip")
def rng_skip(resource: Variable, algorithm: Array, delta: Array) -> tuple[()]:
    """Moves the state on by ``delta`` times 256 blocks."""
    _taken(resource, integer(algorithm), integer(delta) * RESERVED)
    return ()


@kernel("RngReadAndSkip")
def rng_read_and_skip(resource: Variable, alg: Array, delta: Array) -> Array:
    """The state, which then moves on as RngSkip moves it."""
    with resource.lock:
        before = resource.read()
        _taken(resource, integer(alg), integer(delta) * RESERVED)
    return before


@kernel("StatefulRandomBinomial")
def stateful_random_binomial(
    resource: Variable, algorithm: Array, shape: Array, counts: Array, probs: Array, *, dtype: DType = INT64
) -> Array:
    """Binomial numbers; ``shape`` ends with what ``counts`` and ``probs`` broadcast to."""
    sizes = sizes_ending(shape, counts, probs)
    sets = math.prod(np.broadcast_shapes(counts.shape, probs.shape))
    each = math.prod(sizes) // max(1, sets)
    generator = _taken(resource, integer(algorithm), sets * 2 * 100 * (each + 3) // 4 * RESERVED)
    return each_drawn(lambda n, p: binomial(generator, n, p), sizes, (counts, probs), dtype.numpy)


@kernel("NonDeterministicInts")
def non_deterministic_ints(shape: Array, *, dtype: DType = INT64) -> Array:
    """Integers of all values that the type has, from the operating system."""
    sizes, count = sizes_of(shape)
    bits = np.random.default_rng().bytes(count * dtype.numpy.itemsize)
    return np.asarray(np.frombuffer(bits, dtype.numpy).reshape(sizes).copy())
