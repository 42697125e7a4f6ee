"""Where a sliding window lies: output sizes, padding of each kind, data formats, strided views of the taps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, reserve


class Window(NamedTuple):
    """A window sliding along one axis.

    Attributes:
        taps: how many elements it has.
        stride: how far it moves.
        dilation: how far apart its elements are.
        before: the padding before the first element.
        after: the padding after the last one.
        output: how many places it takes.
    """

    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    output: int

    @property
    def reach(self) -> int:
        """How many elements it covers, gaps included."""
        return (self.taps - 1) * self.dilation + 1


@lru_cache(maxsize=1024)
def window(
    size: int, taps: int, stride: int, padding: str, dilation: int = 1, explicit: tuple[int, int] = (0, 0)
) -> Window:
    """The window of an axis of ``size`` elements.

    SAME gives ceil(size / stride) places and splits the padding that these need, the odd element behind; VALID pads
    nothing; EXPLICIT pads as said.

    Raises:
        RunError: an unknown padding, a stride or dilation below 1, or a window larger than what it slides over.
    """
    if stride < 1 or dilation < 1 or taps < 1:
        raise RunError(f"a window of {taps} with stride {stride} and dilation {dilation} slides over nothing")
    reach = (taps - 1) * dilation + 1
    if padding == "SAME":
        output = -(-size // stride)
        total = max((output - 1) * stride + reach - size, 0)
        return Window(taps, stride, dilation, total // 2, total - total // 2, output)
    if padding == "VALID":
        before = after = 0
    elif padding == "EXPLICIT":
        before, after = explicit
        if before < 0 or after < 0:
            raise RunError(f"explicit paddings cannot be negative: {before}, {after}")
    else:
        raise RunError(f"no padding is called '{padding}' (SAME, VALID, EXPLICIT)")
    output = int((size + before + after - reach + stride) / stride)  # towards 0, as in C++
    if output < 0:
        raise RunError(f"a window of {reach} does not fit into {size + before + after} elements")
    return Window(taps, stride, dilation, before, after, output)


def channels_axis(data_format: str) -> int:
    """1 for NCHW, NCW and NCDHW, -1 for NHWC, NWC and NDHWC.

    Raises:
        RunError: another format.
    """
    if data_format in ("NHWC", "NDHWC", "NWC"):
        return -1
    if data_format in ("NCHW", "NCDHW", "NCW"):
        return 1
    raise RunError(f"the data format '{data_format}' is not one of NHWC, NCHW, NDHWC, NCDHW")


def to_channels_last(x: Array, data_format: str) -> Array:
    """An image batch with its channels last, as a view; ``data_format`` says where they are."""
    return x if channels_axis(data_format) == -1 else np.moveaxis(x, 1, -1)


def from_channels_last(x: Array, data_format: str) -> Array:
    """An image batch with channels last in the order of ``data_format``."""
    return x if channels_axis(data_format) == -1 else np.ascontiguousarray(np.moveaxis(x, -1, 1))


def spatial(values: Sequence[int], data_format: str, what: str = "strides") -> tuple[int, ...]:
    """The entries of a per-axis list (strides, ksize, dilations) that belong to the spatial axes.

    Raises:
        RunError: the list asks for something along the batch or the channels.
    """
    batch, channel, inner = split_axes(values, data_format)
    if batch != 1 or channel != 1:
        raise RunError(f"{what} {list(values)} go along the batch or the channels of {data_format}")
    return inner


def split_axes(values: Sequence[int], data_format: str) -> tuple[int, int, tuple[int, ...]]:
    """(batch, channel, spatial entries) of a per-axis list."""
    if len(values) != len(data_format):
        raise RunError(f"{list(values)} has not one entry for each of {data_format}")
    if channels_axis(data_format) == 1:
        return int(values[0]), int(values[1]), tuple(int(v) for v in values[2:])
    return int(values[0]), int(values[-1]), tuple(int(v) for v in values[1:-1])


def windows(
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (),
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
) -> tuple[Window, ...]:
    """The windows of all spatial axes; ``explicit_paddings`` is the op's list: a pair for each axis of the format."""
    spread = dilations or (1,) * len(sizes)
    pairs: Sequence[tuple[int, int]] = [(0, 0)] * len(sizes)
    if padding == "EXPLICIT":
        if len(explicit_paddings) != 2 * len(data_format):
            raise RunError(f"explicit_paddings {list(explicit_paddings)} has not one pair for each of {data_format}")
        flat = [int(p) for p in explicit_paddings]
        every = list(zip(flat[::2], flat[1::2], strict=True))
        outside = (*every[0], *every[channels_axis(data_format)])
        if any(outside):
            raise RunError(
                f"explicit_paddings {list(explicit_paddings)} pad the batch or the channels of {data_format}"
            )
        pairs = every[2:] if channels_axis(data_format) == 1 else every[1:-1]
    return tuple(
        window(size, t, s, padding, d, pair)
        for size, t, s, d, pair in zip(sizes, taps, strides, spread, pairs, strict=True)
    )


def windows_of_op(
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int] = (),
    explicit_paddings: Sequence[int] = (),
    *,
    dilations_are: str = "dilations",
) -> tuple[Window, ...]:
    """``windows`` by the op's own lists: ``strides`` and ``dilations`` with an entry for each axis of the format.

    Args:
        sizes, taps: of the spatial axes alone.
        strides, padding, data_format, explicit_paddings: the op's attributes.
        dilations: another one; empty where the op has none.
        dilations_are: what the op calls its dilations.

    Raises:
        RunError: as in ``window``; strides or dilations go along the batch or the channels.
    """
    steps = spatial(strides, data_format)
    spread = spatial(dilations, data_format, dilations_are) if dilations else ()
    return windows(sizes, taps, steps, padding, spread, explicit_paddings, data_format)


def padded(x: Array, spans: Sequence[Window], value: float | int = 0) -> Array:
    """``x`` (batch, spatial…, channels) with the windows' padding round it."""
    pairs = [(0, 0), *((w.before, w.after) for w in spans), (0, 0)]
    if not any(b or a for b, a in pairs):
        return x
    sizes = reserve([size + b + a for size, (b, a) in zip(x.shape, pairs, strict=True)], x.dtype)
    wide = np.empty(sizes, x.dtype)
    for axis, (before, after) in enumerate(pairs):
        inner = [slice(b, size + b) for size, (b, _) in zip(x.shape[:axis], pairs[:axis], strict=True)]
        for border in (slice(0, before), slice(sizes[axis] - after, None)):
            place = (*inner, border)
            wide[place] = value
    wide[inside(x.shape[1:-1], spans)] = x
    return wide


def inside(sizes: Sequence[int], spans: Sequence[Window]) -> tuple[slice, ...]:
    """The part of a padded tensor (batch, spatial…, channels) that is no padding."""
    return (slice(None), *(slice(w.before, w.before + n) for n, w in zip(sizes, spans, strict=True)))


def outer_sizes(sizes: Sequence[int], spans: Sequence[Window]) -> list[int]:
    """The sizes of spatial axes with all that the windows reach."""
    return [max(n + w.before + w.after, (w.output - 1) * w.stride + w.reach) for n, w in zip(sizes, spans, strict=True)]


def outer_zeros(shape: Sequence[int], spans: Sequence[Window], dtype: np.dtype[Any]) -> Array:
    """Zeros of ``shape`` (batch, spatial…, channels) with all round them that the windows reach; ``inside`` is the
    part of ``shape``."""
    return np.zeros(reserve((shape[0], *outer_sizes(shape[1:-1], spans), shape[-1]), dtype), dtype=dtype)


MOST_TAPS = 1 << 22  # elements of a window, which are walked over one by one


def taps(spans: Sequence[Window]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For every element of the window: its index, and the part of the padded input (batch, spatial…, channels) that it
    sees, place by place."""
    if math.prod(w.taps for w in spans) > MOST_TAPS:
        raise RunError(f"a window of {' x '.join(str(w.taps) for w in spans)} elements; {MOST_TAPS:,} are possible")
    for index in np.ndindex(*(w.taps for w in spans)):
        starts = [i * w.dilation for i, w in zip(index, spans, strict=True)]
        yield (
            index,
            (
                slice(None),
                *(
                    slice(s, s + (w.output - 1) * w.stride + 1 if w.output else s, w.stride)
                    for s, w in zip(starts, spans, strict=True)
                ),
            ),
        )


def window_view(x: Array, spans: Sequence[Window]) -> Array:
    """What lies under the windows of the padded ``x`` (batch, spatial…, channels), without copying.

    Returns:
        (batch, places…, elements of a window…, channels), read-only.
    """
    places = (span.output for span in spans)
    return np.lib.stride_tricks.as_strided(
        x,
        shape=(x.shape[0], *places, *(span.taps for span in spans), x.shape[-1]),
        strides=(
            x.strides[0],
            *(step * span.stride for step, span in zip(x.strides[1:-1], spans, strict=True)),
            *(step * span.dilation for step, span in zip(x.strides[1:-1], spans, strict=True)),
            x.strides[-1],
        ),
        writeable=False,
    )


def blocks(images: int, rows: int, row: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Images and rows that are taken together: several images, or some rows of one, of ``most`` elements.

    Args:
        images: how many there are.
        rows: of each image.
        row: elements of a row.
        most: elements of a block; a single row may have more.
    """
    if rows * row <= most:
        step = max(1, most // max(1, rows * row))
        for first in range(0, images, step):
            yield slice(first, first + step), slice(None)
        return
    step = max(1, most // row)
    for image in range(images):
        for first in range(0, rows, step):
            yield slice(image, image + 1), slice(first, first + step)


def image_groups(images: int, image: int, most: int) -> Iterator[slice]:
    """Images that are taken together: as many as have ``most`` elements in all, or one.

    Args:
        images: how many there are.
        image: elements of each.
        most: elements of a group; a single image may have more.
    """
    step = max(1, most // max(1, image))
    for first in range(0, images, step):
        yield slice(first, first + step)
