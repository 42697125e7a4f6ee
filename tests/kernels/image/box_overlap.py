"""How much boxes overlap, pair by pair: what suppression is compared with."""

import numpy as np

from pocketgraph.kernels.arrays import Array


def overlap(box: Array, others: Array) -> Array:
    """The intersection over union of ``box`` (4,) with each of ``others`` (n, 4); 0 where one is empty."""
    low = np.minimum(others[:, :2], others[:, 2:])
    high = np.maximum(others[:, :2], others[:, 2:])
    mine_low, mine_high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    area = np.prod(high - low, axis=1)
    mine = np.prod(mine_high - mine_low)
    shared = np.prod(np.maximum(np.minimum(high, mine_high) - np.maximum(low, mine_low), 0), axis=1)
    with np.errstate(all="ignore"):
        ratio = shared / (area + mine - shared)
    return np.asarray(np.where((area <= 0) | (mine <= 0), 0, ratio))
