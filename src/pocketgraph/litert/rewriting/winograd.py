"""Wide convolutions by Winograd's method: fewer multiplications, in products of matrices.

A tile of 2 x 2 results of a 3x3 window takes 16 multiplications instead of 36, one of 4 x 4 takes 36 instead of 144.
XNNPACK's convolutions with larger windows moreover run at two thirds of the rate of its 1x1 ones (AVX-512, LiteRT 2.3):

    x ─CONV_2D 3x3
becomes
    x ─PAD┬ DEPTHWISE_CONV_2D 4x1, stride 2x1 ┬ DEPTHWISE_CONV_2D 1x4, stride 1x2 ─ CONV_2D 1x1 ┬ ADD, SUB, …
          ├ … (4 of them)                     ├ … (16 of them)                                  ├ …

The depthwise windows are the transform of the tiles, row by row, then column by column, the same in every channel.
Results differ from those of the plain convolution by rounding: by 3e-6 of the largest for tiles of 2 and
windows of 3, 1e-5 for windows of 5 and 7, 2e-5 for tiles of 4, under windows of 3 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.nn.tile_transforms import Tiling
from pocketgraph.litert.cost_model import (
    CALLED_BY_SEVERAL,
    FEWEST_TILED_CHANNELS,
    LARGER_TILE_SHARE,
    MOVED_BY_SEVERAL,
    MOVED_PER_MEGABYTE,
    ROWS_OF_A_PRODUCT,
    SEVERAL_SHARE,
    SMALL_OPERATION,
    TILED_AT_ONCE,
    TILED_ELEMENT,
    TILED_PRODUCT,
    TILED_SHARE,
    TILED_WEIGHT,
)
from pocketgraph.litert.program import Operation, Program
from pocketgraph.litert.rewriting.narrow_convolutions import has_wide_kernels

MOST_GROUPS = 8  # of images, where weights are computed: each has some hundred operations of its own
TILES = {1: (1,), 3: (2, 4), 5: (2, 4), 7: (2,)}
"""Results of a tile along an axis, for windows of so many elements; larger ones lose digits (7x7 by 4: 6e-5)."""


def convolve_in_tiles(program: Program) -> None:
    """Convolutions with many channels are computed by Winograd's method where that is quicker.

    Where a value is infinite, what it makes NaN reaches as far as its tile.
    """
    if not is_used():
        return
    by_several = bool(program.by_several)
    tilings = {each: tiling for each in program.operations if (tiling := tiling_of(each, by_several=by_several))}
    if not tilings:
        return
    from pocketgraph.litert.rewriting.tiled_convolution import TiledConvolution  # which few first plans need

    operations: list[Operation] = []
    for operation in program.operations:
        tiling = tilings.get(operation)
        operations += TiledConvolution(operation, tiling).operations if tiling else [operation]
    program.operations = operations


def is_used() -> bool:
    """Whether tiles are used on this processor; on others they were not measured."""
    return has_wide_kernels()


def depends_on_threads(program: Program) -> bool:
    """Whether other convolutions are computed in tiles where there are several threads."""
    return any(tiling_of(each) != tiling_of(each, by_several=True) for each in program.operations)


def tiling_of(operation: Operation, *, by_several: bool = False) -> Tiling | None:
    """The tiles of a convolution, where several threads compute it or one; None where it stays as it is."""
    if operation.code != "CONV_2D" or len(operation.inputs) != 3:
        return None
    source, weights, bias = operation.inputs
    if source is None or weights is None or weights.constant is None or bias is None or bias.constant is None:
        return None
    if weights.dtype is not FLOAT or weights.quantization is not None or source.dtype is not FLOAT:
        return None
    if any(operation.options[key] != 1 for key in ("stride_h", "stride_w", "dilation_h", "dilation_w")):
        return None
    _, height, width, depth = weights.shape
    if depth != source.shape[3]:
        return None
    return best_tiling(operation.outputs[0].shape, (height, width), depth, TILED_SHARE, by_several=by_several)


Time: TypeAlias = Callable[[int, tuple[int, int], int, int, Tiling], float]
"""About how long a convolution takes in tiles, in multiplications of a plain one: by batch, window, channels in,
channels out and tiles."""


def best_tiling(
    result: Sequence[int],
    window: tuple[int, int],
    depth: int,
    share: float,
    time: Time | None = None,
    *,
    by_several: bool = False,
) -> Tiling | None:
    """The tiles by which a convolution is computed soonest; None where none is quick enough.

    Args:
        result: its shape, NHWC.
        window: its rows and columns; strides and dilations are 1.
        depth: the channels of its input.
        share: of the plain convolution's time, up to which tiles are worth it.
        time: how long it takes in tiles, with one thread; by default on LiteRT.
        by_several: whether several threads compute it, on LiteRT: in the same tiles as one, where that is not longer.
    """
    found = _soonest(tuple(result), window, depth, time or _time)
    if found is None or found[0] > share:
        return None
    if by_several:  # they share the plain convolution evenly, and products of tiles, too, but not the rest
        needed = _time(result[0], window, depth, result[3], found[1], MOVED_BY_SEVERAL, CALLED_BY_SEVERAL)
        if needed > SEVERAL_SHARE * _multiplications(result, window, depth):
            return None
    return found[1]


def share_in_tiles(result: Sequence[int], window: tuple[int, int], depth: int) -> float | None:
    """The share of a plain convolution's time that one with computed weights takes in tiles; None where there are none.

    Args:
        result, window, depth: as ``best_tiling`` has them.
    """
    found = _soonest(tuple(result), window, depth, time_in_groups) if is_used() else None
    return None if found is None else found[0]


def images_together(images: int, window: tuple[int, int], depth: int, count: int, tiling: Tiling) -> int:
    """How many images are taken together whose weights are computed: each group reads the transformed weights again.

    Args:
        images: how many there are.
        window, depth, count, tiling: as ``Time`` has them.
    """
    points = (tiling.rows + window[0] - 1) * (tiling.columns + window[1] - 1)
    image = tiling.down * tiling.across * points * (depth + count) * 4
    at_once = max(TILED_AT_ONCE, 2 * points * depth * count * 4)
    return -(-images // max(1, min(images, MOST_GROUPS, -(-images * image // at_once))))


def time_in_groups(batch: int, window: tuple[int, int], depth: int, count: int, tiling: Tiling) -> float:
    """A ``Time`` where images are taken in groups, whose tiles and results stay in the cache."""
    together = images_together(batch, window, depth, count, tiling)
    return _time(together, window, depth, count, tiling) * batch / together


@lru_cache(maxsize=1024)  # layers repeat each other, and several passes ask
def _soonest(result: tuple[int, ...], window: tuple[int, int], depth: int, time: Time) -> tuple[float, Tiling] | None:
    """The tiles that take the least time, and which share of the plain convolution's."""
    batch, *sizes, count = result
    height, width = window
    if min(count, depth) < FEWEST_TILED_CHANNELS or height == width == 1:
        return None
    found: list[tuple[float, Tiling]] = []
    for rows, columns in product(TILES.get(height, ()), TILES.get(width, ())):
        if max(rows, columns) > 2 and 1 not in (height, width) and rows != columns:
            continue
        down, across = (-(-size // tile) for size, tile in zip(sizes, (rows, columns), strict=True))
        tiling = Tiling(rows, columns, down, across)
        needed = time(batch, (height, width), depth, count, tiling)
        found.append((needed * (1 if max(rows, columns) <= 2 else 1 / LARGER_TILE_SHARE), tiling))
    if not found:
        return None
    best, tiling = min(found)
    return best / max(_multiplications(result, window, depth), 1), tiling


def _multiplications(result: Sequence[int], window: tuple[int, int], depth: int) -> int:
    """Of a plain convolution."""
    return math.prod(result) * math.prod(window) * depth


def _time(
    batch: int, window: tuple[int, int], depth: int, count: int, tiling: Tiling, moving: float = 1, calling: float = 1
) -> float:
    """About how long it takes in tiles, in multiplications of a plain convolution.

    Args:
        batch, window, depth, count, tiling: as for ``Time``.
        moving: how many times as long the transforms take.
        calling: likewise, calling operations.
    """
    height, width = window
    down, across = tiling.rows + height - 1, tiling.columns + width - 1  # elements of a tile of the source
    tiles, points = batch * tiling.down * tiling.across, down * across
    rows = -(-tiles // ROWS_OF_A_PRODUCT) * ROWS_OF_A_PRODUCT
    image = batch * (tiling.down * tiling.rows + height - 1) * (tiling.across * tiling.columns + width - 1)
    lines = batch * tiling.down * (tiling.across * tiling.columns + width - 1) * down * depth
    sums = 2 * down * across + 2 * tiling.columns * down + (across > 4) * 2 * points
    made = tiles * tiling.rows * tiling.columns * count
    moved = (
        image * depth + lines * (height > 1) + tiles * points * depth * (width > 1) + sums * tiles * count + 2 * made
    )
    each = TILED_ELEMENT + MOVED_PER_MEGABYTE * made * 4 / 1e6
    operations = down + 2 * points + sums + tiling.rows + 3
    return (
        TILED_PRODUCT * rows * points * count * depth
        + TILED_WEIGHT * points * count * depth
        + moving * each * moved
        + calling * SMALL_OPERATION * operations
    )
