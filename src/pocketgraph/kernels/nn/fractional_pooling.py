"""Pools whose windows have two sizes in a random order, so that a picture shrinks by a broken number (Graham, 2014)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.philox import Philox
from pocketgraph.kernels.random.sampling import drawing
from pocketgraph.kernels.registry import Context, kernel


def _window_sizes(size: int, wanted: int, pseudo_random: bool, generator: Philox) -> tuple[list[int], int]:
    """(the size of each window, the blocks of random numbers that were used)."""
    if pseudo_random:
        ratio, least = size / wanted, size // wanted
        most = min((least + 2) / ratio - 1, (size + 1 - least) / ratio - (wanted - 1))
        shift = float(generator.uniform(1, np.dtype(np.float64))[0]) * most
        places = [1, *(math.ceil(ratio * (place + shift)) for place in range(1, wanted)), size + 1]
        return [int(step) for step in np.diff(places)], 1
    sizes = [size // wanted + (number < size % wanted) for number in range(wanted)]
    for place, word in enumerate(generator.words(max(wanted - 1, 0)).tolist()):
        other = place + word % (wanted - place)
        sizes[place], sizes[other] = sizes[other], sizes[place]
    return sizes, -(-wanted // 4)


def _edges(
    value: Array, ratio: Sequence[float], pseudo_random: bool, deterministic: bool, seed: int, seed2: int,
    context: Context,
) -> tuple[Array, Array]:  # fmt: skip
    """Where the windows begin, on both axes; behind the last begin is the picture's end."""
    if value.ndim != 4:
        raise RunError(f"tensor_in must be 4-dimensional, not of shape {list(value.shape)}")
    if len(ratio) != 4 or any(r < 1 for r in ratio) or ratio[0] != 1 or ratio[3] != 1:
        raise RunError(f"pooling_ratio must be four numbers from 1 on, the first and last 1, not {list(ratio)}")
    if not deterministic and (seed or seed2):
        raise RunError("Both seed and seed2 should be 0 if deterministic is false.")
    wanted = [math.floor(size / r) for size, r in zip(value.shape[1:3], ratio[1:3], strict=True)]
    if min(wanted) < 1:
        raise RunError(f"pooling_ratio {list(ratio)} leaves nothing of {list(value.shape)}")
    place = f"fractional/{context.instance}"
    kept = context.state.get(place) if deterministic else None
    if kept is not None and kept[0] == (value.shape[1:3], tuple(wanted)):
        return np.array(kept[1][0]), np.array(kept[1][1])
    generator = drawing(context, seed, seed2, sum(-(-w // 4) for w in wanted) if not pseudo_random else 2)
    edges = []
    for size, count in zip(value.shape[1:3], wanted, strict=True):
        sizes, used = _window_sizes(size, count, pseudo_random, generator)
        generator = generator.skip(used)
        edges.append(np.cumsum([0, *sizes]).astype(np.int64))
    if deterministic:
        context.state[place] = ((value.shape[1:3], tuple(wanted)), edges)
    return edges[0], edges[1]


def _spans(edges: Array, overlapping: bool, size: int) -> list[slice]:
    """What each window covers; overlapping ones reach one further, into the next."""
    ends = ints(edges)
    if any(a > b for a, b in itertools.pairwise(ends)) or (ends and (ends[0] < 0 or ends[-1] > size)):
        raise RunError(f"a pooling sequence must rise from 0 to {size}, not {list(ends[:20])}")
    return [slice(a, min(b + overlapping, size)) for a, b in itertools.pairwise(ends)]


def _largest(values: Array, axis: tuple[int, int]) -> Array:
    """What is no number is passed over; nothing is below the type's lowest finite number."""
    least = (np.iinfo if values.dtype.kind in "iu" else np.finfo)(values.dtype).min
    return np.asarray(np.fmax.reduce(values, axis=axis, initial=least))


def _mean(values: Array, axis: tuple[int, int]) -> Array:
    if values.dtype.kind in "iu":
        total = values.sum(axis=axis, dtype=np.int64)
        return np.asarray(np.trunc(total / (values.shape[1] * values.shape[2])))
    return np.asarray(values.mean(axis=axis, dtype=np.float64))


def _register(op: str, reduce: Callable[..., Array]) -> None:
    @kernel(op)
    def pool(
        value: Array, *, pooling_ratio: Sequence[float], pseudo_random: bool = False, overlapping: bool = False,
        deterministic: bool = False, seed: int = 0, seed2: int = 0, context: Context,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """(what ``reduce`` makes of each window, where the rows of windows begin, where their columns begin)."""
        rows, columns = _edges(value, pooling_ratio, pseudo_random, deterministic, seed, seed2, context)
        wide = widened(value)
        result = np.empty((value.shape[0], rows.size - 1, columns.size - 1, value.shape[3]), value.dtype)
        for i, down in enumerate(_spans(rows, overlapping, value.shape[1])):
            for j, along in enumerate(_spans(columns, overlapping, value.shape[2])):
                result[:, i, j] = reduce(wide[:, down, along], axis=(1, 2))
        return result, rows, columns


_register("FractionalMaxPool", _largest)
_register("FractionalAvgPool", _mean)


@kernel("FractionalMaxPoolGrad")
def fractional_max_pool_grad(
    orig_input: Array, orig_output: Array, out_backprop: Array, row_pooling_sequence: Array,
    col_pooling_sequence: Array, *, overlapping: bool = False,
) -> Array:  # fmt: skip
    """Each gradient goes to the first of its window's largest elements."""
    n, height, width, channels = orig_input.shape
    rows = _spans(row_pooling_sequence, overlapping, height)
    columns = _spans(col_pooling_sequence, overlapping, width)
    if out_backprop.shape != orig_output.shape or orig_output.shape != (n, len(rows), len(columns), channels):
        raise RunError(f"shapes that do not fit: {list(orig_output.shape)} and {list(out_backprop.shape)}")
    wide, grads = widened(orig_input), widened(out_backprop)
    result = np.zeros(orig_input.shape, wide.dtype)
    batch, depth = np.arange(n)[:, None], np.arange(channels)[None, :]
    for i, down in enumerate(rows):
        for j, along in enumerate(columns):
            window = wide[:, down, along].reshape(n, -1, channels)
            down_by, along_by = np.divmod(window.argmax(axis=1), along.stop - along.start)
            result[batch, down.start + down_by, along.start + along_by, depth] += grads[:, i, j]
    return result.astype(orig_input.dtype)


@kernel("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(
    orig_input_tensor_shape: Array, out_backprop: Array, row_pooling_sequence: Array, col_pooling_sequence: Array,
    *, overlapping: bool = False,
) -> Array:  # fmt: skip
    """Each gradient is shared out among its window's elements."""
    shape = reserve(ints(orig_input_tensor_shape), np.float64)
    if len(shape) != 4 or out_backprop.ndim != 4:
        raise RunError(f"out_backprop must be 4-dimensional, and so what was pooled, not {list(shape)}")
    result = np.zeros(shape, np.float64)
    rows = _spans(row_pooling_sequence, overlapping, shape[1])
    columns = _spans(col_pooling_sequence, overlapping, shape[2])
    if out_backprop.shape != (shape[0], len(rows), len(columns), shape[3]):
        raise RunError(f"shapes that do not fit: {list(shape)} and {list(out_backprop.shape)}")
    grads = widened(out_backprop).astype(np.float64)
    for i, down in enumerate(rows):
        for j, along in enumerate(columns):
            count = (down.stop - down.start) * (along.stop - along.start)
            result[:, down, along] += (grads[:, i, j] / max(count, 1))[:, None, None]
    return result.astype(out_backprop.dtype)
