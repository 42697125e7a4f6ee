"""Pixels that are equal and touch, numbered as one."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel


@kernel("ImageConnectedComponents")
def image_connected_components(image: Array) -> Array:
    """int64 of the shape (n, rows, columns): one number for all pixels that are equal, not zero, and joined by edges.

    The number is that of the first of these pixels, in the order of memory, plus 1; 0 for zeros. (The original takes
    another of the pixels, by an order of its own; ``tf.contrib.image`` numbers them anew after it either way.)

    Raises:
        RunError: another rank.
    """
    if image.ndim != 3:
        raise RunError(f"expected a tensor of shape (N, H, W), not {list(image.shape)}")
    zero = b"" if image.dtype == object else image.dtype.type(0)
    is_on = np.asarray(image != zero)
    found = np.where(is_on, np.arange(1, image.size + 1).reshape(image.shape), 0)
    joins = []
    for axis in (1, 2):
        size = image.shape[axis]
        first, second = (np.take(np.arange(image.size).reshape(image.shape), range(*ends), axis) for ends in
                         ((0, max(size - 1, 0)), (min(1, size), size)))  # fmt: skip
        flat = image.ravel()
        same = np.asarray(flat[first] == flat[second]) & is_on.ravel()[first]
        joins.append((first[same], second[same]))
    labels = found.ravel()
    while True:  # every pixel takes the least number around it, then the number that pixel has: log steps, mostly
        before = labels.copy()
        for first, second in joins:
            least = np.minimum(labels[first], labels[second])
            np.minimum.at(labels, first, least)
            np.minimum.at(labels, second, least)
        on = labels > 0
        labels[on] = labels[labels[on] - 1]
        if np.array_equal(before, labels):
            return np.asarray(labels.reshape(image.shape).astype(np.int64))
