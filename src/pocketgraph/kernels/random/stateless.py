"""Random tensors drawn from an explicit key and counter: the second generation of stateless ops.

The numbers are TensorFlow's own (Philox) where the op draws one word after the other; gamma, Poisson and binomial
draws have the right distribution only. ThreeFry is not computed by TensorFlow's CPU kernels either.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, UINT64
from pocketgraph.kernels.arrays import Array, integer, ints, reserve, sizes_of, widened
from pocketgraph.kernels.philox import Philox
from pocketgraph.kernels.random.sampling import bounds, chosen_classes, shuffled, stateless
from pocketgraph.kernels.registry import kernel

PHILOX, AUTOMATIC = 1, 3
WORD = 2**64


def _generator(key: Array, counter: Array, alg: Array) -> Philox:
    """The generator that key (1,) and counter (2,) of 64 bits each describe."""
    if integer(alg) not in (PHILOX, AUTOMATIC):
        raise RunError(f"Unsupported algorithm id: {integer(alg)}; CPU kernels draw by Philox (1)")
    if key.shape != (1,) or counter.ndim != 1 or counter.size < 2:
        raise RunError(f"a Philox generator is a key of 1 and a counter of 2, not {list(key.shape + counter.shape)}")
    low, high = (c % WORD for c in ints(counter)[:2])
    return Philox(integer(key) % WORD, low | high << 64)


@kernel("StatelessRandomGetAlg")
def stateless_random_get_alg() -> Array:
    """The number of the algorithm that fits the device: Philox."""
    return np.array(PHILOX, dtype=np.int32)


@kernel("StatelessRandomGetKeyCounter")
def stateless_random_get_key_counter(seed: Array) -> tuple[Array, Array]:
    """(key (1,), counter (2,)) that the two seeds are mixed into."""
    found = stateless(seed)
    words = [found.counter % WORD, found.counter >> 64]
    return np.array([found.key], dtype=np.uint64), np.array(words, dtype=np.uint64)


@kernel("StatelessRandomGetKeyCounterAlg")
def stateless_random_get_key_counter_alg(seed: Array) -> tuple[Array, Array, Array]:
    return (*stateless_random_get_key_counter(seed), stateless_random_get_alg())


@kernel("StatelessRandomUniformV2")
def stateless_random_uniform_v2(shape: Array, key: Array, counter: Array, alg: Array, *, dtype: DType = FLOAT) -> Array:
    """Numbers in [0, 1)."""
    sizes, count = sizes_of(shape)
    return _generator(key, counter, alg).uniform(count, dtype.numpy).reshape(sizes)


@kernel("StatelessRandomNormalV2")
def stateless_random_normal_v2(shape: Array, key: Array, counter: Array, alg: Array, *, dtype: DType = FLOAT) -> Array:
    sizes, count = sizes_of(shape)
    return _generator(key, counter, alg).normal(count, dtype.numpy).reshape(sizes)


@kernel("StatelessTruncatedNormalV2")
def stateless_truncated_normal_v2(
    shape: Array, key: Array, counter: Array, alg: Array, *, dtype: DType = FLOAT
) -> Array:
    """Normal numbers within two standard deviations."""
    sizes, count = sizes_of(shape)
    return _generator(key, counter, alg).truncated_normal(count, dtype.numpy).reshape(sizes)


@kernel("StatelessRandomUniformIntV2")
def stateless_random_uniform_int_v2(
    shape: Array, key: Array, counter: Array, alg: Array, minval: Array, maxval: Array
) -> Array:
    """Integers in [minval, maxval)."""
    low, high = bounds(minval, maxval)
    sizes, count = sizes_of(shape)
    return _generator(key, counter, alg).integers(count, low, high, minval.dtype).reshape(sizes)


@kernel("StatelessRandomUniformFullInt")
def stateless_random_uniform_full_int(shape: Array, seed: Array, *, dtype: DType = UINT64) -> Array:
    """Integers of all values that the type has."""
    sizes, count = sizes_of(shape)
    return stateless(seed).bits(count, dtype.numpy).reshape(sizes)


@kernel("StatelessRandomUniformFullIntV2")
def stateless_random_uniform_full_int_v2(
    shape: Array, key: Array, counter: Array, alg: Array, *, dtype: DType = UINT64
) -> Array:
    sizes, count = sizes_of(shape)
    return _generator(key, counter, alg).bits(count, dtype.numpy).reshape(sizes)


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


def _source(generator: Philox) -> np.random.Generator:
    return np.random.default_rng([generator.key, generator.counter % WORD, generator.counter >> 64])


def _ending(shape: Array, *parameters: Array) -> tuple[int, ...]:
    """``shape``, once it is sure that the parameters broadcast to it."""
    sizes = reserve(ints(shape), np.float64)
    for parameter in parameters:
        axes = zip(parameter.shape[::-1], sizes[::-1], strict=False)
        if parameter.ndim > len(sizes) or any(p not in (1, s) for p, s in axes):
            raise RunError(f"shapes that do not fit: {list(parameter.shape)} and {list(sizes)}")
    return sizes


def _doubled(value: Array) -> Array:
    return widened(value).astype(np.float64)


@kernel("StatelessRandomGammaV2")
def stateless_random_gamma(shape: Array, seed: Array, alpha: Array) -> Array:
    """Right in distribution; the numbers themselves are not TensorFlow's."""
    sizes = _ending(shape, alpha)
    return _source(stateless(seed)).standard_gamma(_doubled(alpha), size=sizes).astype(alpha.dtype)


@kernel("StatelessRandomGammaV3")
def stateless_random_gamma_v3(shape: Array, key: Array, counter: Array, alg: Array, alpha: Array) -> Array:
    """Right in distribution; the numbers themselves are not TensorFlow's."""
    sizes = _ending(shape, alpha)
    return _source(_generator(key, counter, alg)).standard_gamma(_doubled(alpha), size=sizes).astype(alpha.dtype)


@kernel("StatelessRandomPoisson")
def stateless_random_poisson(shape: Array, seed: Array, lam: Array, *, dtype: DType) -> Array:
    """Right in distribution; the numbers themselves are not TensorFlow's."""
    sizes = _ending(shape, lam)
    return np.asarray(_source(stateless(seed)).poisson(_doubled(lam), size=sizes)).astype(dtype.numpy)


@kernel("StatelessRandomBinomial")
def stateless_random_binomial(shape: Array, seed: Array, counts: Array, probs: Array, *, dtype: DType = INT64) -> Array:
    """Right in distribution; the numbers themselves are not TensorFlow's."""
    sizes = _ending(shape, counts, probs)
    trials = np.floor(_doubled(counts)).astype(np.int64)
    return np.asarray(_source(stateless(seed)).binomial(trials, _doubled(probs), size=sizes)).astype(dtype.numpy)
