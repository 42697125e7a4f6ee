"""Pairs of a word and a word near it, as word embeddings are trained on."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer
from pocketgraph.kernels.philox import MASK
from pocketgraph.kernels.random.sampling import drawing
from pocketgraph.kernels.registry import Context, kernel

MOST = 1 << 24
"""Pairs of one op."""


@kernel("SkipGramGenerateCandidates")
def skip_gram_candidates(
    input_tensor: Array, min_skips: Array, max_skips: Array, start: Array, limit: Array, emit_self_as_target: Array,
    *, seed: int = 0, seed2: int = 0, context: Context,
) -> tuple[Array, Array]:  # fmt: skip
    """(pairs,) each, in the input's type: each of the ``limit`` words from ``start`` on with those of them that lie
    within the reach that is drawn for it, from ``min_skips`` to ``max_skips``; all words when ``limit`` is negative.

    Raises:
        RunError: a range that there is not.
    """
    least, most, first, count = (integer(value) for value in (min_skips, max_skips, start, limit))
    if input_tensor.ndim != 1 or least < 0 or most < least or not 0 <= first <= input_tensor.size:
        raise RunError(
            f"no skip-grams of {list(input_tensor.shape)} words from {first} on with {least} to {most} skips"
        )
    last = input_tensor.size if count < 0 else min(first + count, input_tensor.size)
    if (last - first) * (2 * min(most, input_tensor.size) + 1) > MOST:
        raise RunError(f"more than {MOST:,} skip-grams")
    source = drawing(context, seed, seed2, 1)
    rng = np.random.default_rng([source.key & MASK, source.counter & MASK, source.counter >> 64])
    with_itself = bool(emit_self_as_target.item())
    tokens: list[int] = []
    labels: list[int] = []
    for word in range(first, last):
        reach = least if least == most else int(rng.integers(least, most + 1))
        for other in range(max(word - reach, first), min(word + reach + 1, last)):
            if other != word or with_itself:
                tokens.append(word)
                labels.append(other)
    return input_tensor[np.array(tokens, np.int64)], input_tensor[np.array(labels, np.int64)]
