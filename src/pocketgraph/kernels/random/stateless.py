"""Random tensors of stateless ops: drawn from a seed, or from an explicit key and counter.

The numbers are TensorFlow's own (Philox). ThreeFry is not computed by TensorFlow's CPU kernels either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, UINT64
from pocketgraph.kernels.arrays import Array, integer, ints, sizes_of
from pocketgraph.kernels.philox import MASK, Philox
from pocketgraph.kernels.random.rejection_sampling import binomial, each_drawn, gamma, poisson, sizes_ending
from pocketgraph.kernels.random.sampling import bounds, chosen_classes, shuffled, stateless
from pocketgraph.kernels.registry import kernel

PHILOX, AUTOMATIC = 1, 3


def _generator(key: Array, counter: Array, alg: Array) -> Philox:
    """The generator that key (1,) and counter (2,) of 64 bits each describe."""
    if integer(alg) not in (PHILOX, AUTOMATIC):
        raise RunError(f"Unsupported algorithm id: {integer(alg)}; CPU kernels draw by Philox (1)")
    if key.shape != (1,) or counter.ndim != 1 or counter.size < 2:
        raise RunError(f"a Philox generator is a key of 1 and a counter of 2, not {list(key.shape + counter.shape)}")
    low, high = (c & MASK for c in ints(counter)[:2])
    return Philox(integer(key) & MASK, low | high << 64)


@kernel("StatelessRandomGetAlg")
def stateless_random_get_alg() -> Array:
    """The number of the algorithm that fits the device: Philox."""
    return np.array(PHILOX, dtype=np.int32)


@kernel("StatelessRandomGetKeyCounter")
def stateless_random_get_key_counter(seed: Array) -> tuple[Array, Array]:
    """(key (1,), counter (2,)) that the two seeds are mixed into."""
    found = stateless(seed)
    words = [found.counter & MASK, found.counter >> 64]
    return np.array([found.key], dtype=np.uint64), np.array(words, dtype=np.uint64)


@kernel("StatelessRandomGetKeyCounterAlg")
def stateless_random_get_key_counter_alg(seed: Array) -> tuple[Array, Array, Array]:
    return (*stateless_random_get_key_counter(seed), stateless_random_get_alg())


def _of(source: Sequence[Array]) -> Philox:
    """The generator of a seed, or of key, counter and algorithm, which the later ops are given."""
    return stateless(source[0]) if len(source) == 1 else _generator(*source)


def _register(op: str, draw: Callable[[Philox, int, np.dtype[Any]], Array], default: DType = FLOAT) -> None:
    @kernel(op, f"{op}V2")
    def numbers(shape: Array, *source: Array, dtype: DType = default) -> Array:
        sizes, count = sizes_of(shape)
        return draw(_of(source), count, dtype.numpy).reshape(sizes)


_register("StatelessRandomUniform", Philox.uniform)
_register("StatelessRandomNormal", Philox.normal)
_register("StatelessTruncatedNormal", Philox.truncated_normal)
_register("StatelessRandomUniformFullInt", Philox.bits, UINT64)


@kernel("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def stateless_random_uniform_int(shape: Array, *source_and_ends: Array) -> Array:
    """Integers in [minval, maxval), the last two inputs."""
    *source, minval, maxval = source_and_ends
    low, high = bounds(minval, maxval)
    sizes, count = sizes_of(shape)
    return _of(source).integers(count, low, high, minval.dtype).reshape(sizes)


@kernel("StatelessShuffle")
def stateless_shuffle(value: Array, key: Array, counter: Array, alg: Array) -> Array:
    """The rows in another order."""
    generator = _generator(key, counter, alg)
    return shuffled(value, generator) if value.ndim and len(value) > 1 else value


@kernel("StatelessMultinomial")
def stateless_multinomial(logits: Array, num_samples: Array, seed: Array, *, output_dtype: DType = INT64) -> Array:
    """(rows, num_samples) class numbers, drawn by the row's unnormalised log probabilities."""
    draw = lambda numbers, _: stateless(seed).uniform(numbers, np.dtype(np.float64))  # noqa: E731
    return chosen_classes(logits, integer(num_samples), draw, output_dtype)


@kernel("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_random_gamma(shape: Array, *source_and_alpha: Array) -> Array:
    """Gamma numbers of rate 1; ``shape`` ends with that of the last input, alpha."""
    *source, alpha = source_and_alpha
    generator = _of(source)
    return each_drawn(lambda a: gamma(generator, a), sizes_ending(shape, alpha), (alpha,), alpha.dtype)


@kernel("StatelessRandomPoisson")
def stateless_random_poisson(shape: Array, seed: Array, lam: Array, *, dtype: DType) -> Array:
    """Poisson numbers; ``shape`` ends with that of the means, ``lam``."""
    generator = stateless(seed)
    return each_drawn(lambda rate: poisson(generator, rate, dtype), sizes_ending(shape, lam), (lam,), dtype.numpy)


@kernel("StatelessRandomBinomial")
def stateless_random_binomial(shape: Array, seed: Array, counts: Array, probs: Array, *, dtype: DType = INT64) -> Array:
    """Binomial numbers; ``shape`` ends with what ``counts`` and ``probs`` broadcast to."""
    generator = stateless(seed)
    sizes = sizes_ending(shape, counts, probs)
    return each_drawn(lambda n, p: binomial(generator, n, p), sizes, (counts, probs), dtype.numpy)
