"""The gradient of a wide convolution by its weights in Winograd's tiles: fewer multiplications, in matrix products.

F(m, r) is ``result ((filter g) * (data d))`` (tile_transforms.py). So the gradient by ``g`` is, summed up over all
tiles, ``filter' ((data d) * (result' s))``, where ``s`` is the gradient by a tile's results and ``'`` transposes. Along
two axes both transforms are products with a Kronecker product, and the sums over tiles are a matrix product for each
point. Results differ from those of the plain sums by rounding: by 1e-5 of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.nn.tile_transforms import POINTS, tile_transform
from pocketgraph.kernels.windows import Window, blocks, window_view

PASS = "tiled_gradients"
"""The pass without which all such gradients are plain sums."""

TILES = (2, 3, 4)  # results of a tile along an axis
FEWEST_CHANNELS = 32  # in and out, below which transforms take as long as products
TOGETHER = 1 << 18  # elements of the wider transform of tiles that are taken together: 1 MB of float32

# In multiplications of a plain gradient, as measured with 32 to 128 channels and windows of 3x3 and 5x5:
MOVED = 16  # laying out one number
TRANSFORMED = 1.4  # a multiplication in a transform
SUMMED = 24  # adding one number of a block's products to those before
SHARE = 0.9  # of the plain gradient's multiplications, up to which tiles are worth it


def best_tile(images: int, shape: Sequence[int], spans: Sequence[Window]) -> int | None:
    """How many results a tile has along each axis where tiles are quicker than plain sums; None where they are not.

    Args:
        images: how many there are.
        shape: of the weights, (rows, columns, channels, outputs).
        spans: the windows along rows and columns.
    """
    if len(spans) != 2 or min(shape[2:]) < FEWEST_CHANNELS:
        return None
    if any(span.stride != 1 or span.dilation != 1 or span.taps < 2 for span in spans):
        return None
    tiles = [tile for tile in TILES if tile + max(shape[:2]) - 2 <= len(POINTS)]
    plain = images * math.prod(span.output for span in spans) * math.prod(shape)
    found = min(((_time(images, shape, spans, tile), tile) for tile in tiles), default=None)
    return found[1] if found is not None and found[0] <= SHARE * plain else None


def _time(images: int, shape: Sequence[int], spans: Sequence[Window], tile: int) -> float:
    """About how long it takes in tiles, in multiplications of a plain gradient."""
    height, width, channels, outputs = shape
    count = images * math.prod(-(-span.output // tile) for span in spans)
    points, results = (tile + height - 1) * (tile + width - 1), tile * tile
    passes = math.ceil(count * points * max(channels, outputs) / TOGETHER)
    moved = points * channels + results * outputs
    transformed = points * points * channels + points * results * outputs
    products = points * channels * outputs
    return count * (MOVED * moved + TRANSFORMED * transformed + products) + passes * SUMMED * products


def backprop_filter_in_tiles(
    x: Array, shape: tuple[int, ...], slopes: Array, spans: Sequence[Window], tile: int
) -> Array:
    """The gradient by the weights; where a number is not finite, none of it need be.

    Args:
        x: the images, float32 (batch, rows, columns, channels).
        shape: of the weights, (rows, columns, channels, outputs).
        slopes: the gradient by the result, float32 (batch, rows, columns, outputs).
        spans: the windows along rows and columns, without strides or dilations.
        tile: how many results a tile has along each axis.
    """
    height, width, channels, outputs = shape
    of_images, of_slopes, back = _matrices(tile, height, width)
    points, (down, across) = len(of_images), (-(-span.output // tile) for span in spans)
    row = points * across * max(channels, outputs)
    most = max(row, min(TOGETHER, len(x) * down * row)) // max(channels, outputs)  # tiles of a block, and their points
    rooms = [np.empty(most * count, np.float32) for count in (channels, channels, outputs, outputs)]
    total, product = (
        np.zeros((points, channels, outputs), np.float32),
        np.empty((points, channels, outputs), np.float32),
    )
    borders = [(span.before, tile + taps - 1) for span, taps in zip(spans, shape, strict=False)]
    for images, first, last in _blocks(len(x), down, row):
        given = _tiles(x[images], borders, (first, last), across, tile, rooms[0])
        made = _product(of_images, given, rooms[1]).reshape(points, -1, channels)
        given = _tiles(slopes[images], [(0, tile), (0, tile)], (first, last), across, tile, rooms[2])
        made_of_slopes = _product(of_slopes, given, rooms[3]).reshape(points, -1, outputs)
        np.matmul(made.transpose(0, 2, 1), made_of_slopes, out=product)
        total += product
    found: Array = back @ total.reshape(points, -1)
    return found.reshape(shape)


@lru_cache(maxsize=16)
def _matrices(tile: int, height: int, width: int) -> tuple[Array, Array, Array]:
    """What transforms tiles of images, those of slopes, and the sums over all tiles, each laid out as one column."""
    axes = tile_transform(tile, height), tile_transform(tile, width)
    pairs = [(axis.data, axis.result.T, axis.filter.T) for axis in axes]
    first, second, third = (np.kron(*both).astype(np.float32) for both in zip(*pairs, strict=True))
    return first, second, third


def _blocks(images: int, down: int, row: int) -> Iterator[tuple[slice, int, int]]:
    """Images, and the first and last of their rows of tiles, that are taken together."""
    for some, rows in blocks(images, down, row, TOGETHER):
        yield some, rows.start or 0, down if rows.stop is None else min(rows.stop, down)


def _tiles(
    images: Array, axes: Sequence[tuple[int, int]], rows: tuple[int, int], across: int, tile: int, room: Array
) -> Array:
    """Tiles of images laid out in ``room``: a row for each element of a tile, (elements, tiles and channels).

    Args:
        images: (batch, rows, columns, channels).
        axes: along rows and columns, how far before the first result a tile begins, and how many elements it has.
        rows: the first of the rows of tiles, and the one after the last.
        across: tiles in a row.
        tile: how far tiles are apart.
        room: float32, in one dimension.
    """
    (above, height), (before, width) = axes
    first, last = rows
    top, left = first * tile - above, -before
    sizes = (last - first - 1) * tile + height, (across - 1) * tile + width
    source = _cut(images, (top, left), sizes)
    spans = Window(height, tile, 1, 0, 0, last - first), Window(width, tile, 1, 0, 0, across)
    view = window_view(source, spans).transpose(3, 4, 0, 1, 2, 5)
    made: Array = room[: view.size].reshape(height * width, -1)
    made.reshape(view.shape)[...] = view
    return made


def _cut(images: Array, start: tuple[int, int], sizes: tuple[int, int]) -> Array:
    """Some rows and columns of images, with zeros where these have none."""
    if start == (0, 0) and sizes == images.shape[1:3]:
        return images
    made = np.zeros((len(images), *sizes, images.shape[3]), np.float32)
    into, of = [], []
    for begin, size, length in zip(start, sizes, images.shape[1:3], strict=True):
        low, high = max(begin, 0), min(begin + size, length)
        into.append(slice(low - begin, high - begin))
        of.append(slice(low, high))
    made[:, into[0], into[1]] = images[:, of[0], of[1]]
    return made


def _product(matrix: Array, given: Array, room: Array) -> Array:
    made: Array = room[: len(matrix) * given.shape[1]].reshape(len(matrix), -1)
    np.matmul(matrix, given, out=made)
    return made
