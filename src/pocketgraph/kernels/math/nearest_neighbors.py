"""The nearest of some centers, as clustering estimators ask for them."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.registry import kernel


@kernel("NearestNeighbors")
def nearest_neighbors(points: Array, centers: Array, k: Array) -> tuple[Array, Array]:
    """(numbers of the ``k`` nearest centers (points, k), their squared distances), the nearest first."""
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1] != centers.shape[1]:
        raise RunError(f"Input points and centers do not fit: {list(points.shape)} and {list(centers.shape)}")
    if k.ndim:
        raise RunError(f"Input k should be a scalar, not of shape {list(k.shape)}")
    count = integer(k)
    if count <= 0:
        raise RunError(f"Input k should be positive, not {count}")
    if not len(centers) and len(points):
        raise RunError("there are no centers")
    count = min(count, len(centers))
    reserve((len(points), len(centers)), np.float64)
    wide, ends = points.astype(np.float64), centers.astype(np.float64)
    distances = (wide**2).sum(1)[:, None] - 2 * wide @ ends.T + (ends**2).sum(1)
    order = np.argsort(distances, axis=1, kind="stable")[:, :count]
    found = np.maximum(np.take_along_axis(distances, order, 1), 0)
    return order.astype(np.int64), found.astype(np.float32)


@kernel("KMC2ChainInitialization")
def kmc2_chain_initialization(distances: Array, seed: Array) -> Array:
    """One of the points, the likelier the further it is: the end of a Markov chain over them. Right in distribution;
    the choice itself is not TensorFlow's."""
    if distances.ndim != 1 or seed.ndim:
        raise RunError(f"distances must be a vector and seed a scalar, not {list(distances.shape)}, {list(seed.shape)}")
    source = np.random.default_rng(integer(seed) % 2**64)
    chosen, reached = 0, 0.0
    for place, distance in enumerate(distances.tolist()):
        if place == 0 or distance > reached * source.random():
            chosen, reached = place, distance
    return np.array(chosen, np.int64)
