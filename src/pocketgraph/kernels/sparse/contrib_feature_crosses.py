"""Crosses of features as ``tf.contrib.layers`` made them: like SparseCross, with an older hash as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.graph.dtype import INT64, STRING
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.murmur_hash import GOLDEN_RATIO, MASK, SEED
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.sparse.feature_crosses import LARGEST, _crossed, _number, sparse_cross

SIGN = 1 << 63


def _combined(first: int, second: int) -> int:
    """The older way to make one 64-bit hash of two; the shift to the right keeps the sign, as in the original."""
    signed = first - (SIGN << 1) if first & SIGN else first
    return first ^ (second + GOLDEN_RATIO + (first << 10 & MASK) + (signed >> 4)) & MASK


@kernel("SparseFeatureCross")
def sparse_feature_cross(*parts: Array, N: int, hashed_output: bool, num_buckets: int) -> tuple[Array, Array, Array]:
    """(indices, values, shape): texts joined by ``_X_``, or hashes modulo ``num_buckets``."""
    if not hashed_output:
        return sparse_cross(*parts, N=N, num_buckets=0, hash_key=0, out_type=STRING)

    def hashed(values: Sequence[Any]) -> int:
        result = SEED
        for value in values:
            result = _combined(result, _number(value))
        return result % (num_buckets if num_buckets > 0 else LARGEST)

    places, found, shape = _crossed(parts, N, hashed)
    return places, np.array(found, np.int64), shape


@kernel("SparseFeatureCrossV2")
def sparse_feature_cross_v2(
    *parts: Array, N: int, hashed_output: bool, num_buckets: int, hash_key: int
) -> tuple[Array, Array, Array]:
    """The same with SparseCross's hash."""
    kind = INT64 if hashed_output else STRING
    return sparse_cross(*parts, N=N, num_buckets=num_buckets, hash_key=hash_key, out_type=kind)
