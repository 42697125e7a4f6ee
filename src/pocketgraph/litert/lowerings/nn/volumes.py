"""Lowerings of convolutions and pools over three axes, by LiteRT's operators for two.

LiteRT's own CONV_3D has no fast kernel. A window over frames is a window over one picture whose channels are those of
all frames in it; pooling goes over the pictures first and over the frames then (the largest value of each, and the
number of elements that count for a mean, are the same in two steps).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import image, spatial, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn.convolution import window_shape
from pocketgraph.litert.lowerings.nn.pooling import pooled
from pocketgraph.litert.lowerings.pieces import cut, pad
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import Value, sliding

TO_NDHWC = (0, 2, 3, 4, 1)


@lowers("Conv3D")
def conv3d(emit: Emit, node: Node) -> None:
    """The frames under each window side by side as channels, then a convolution of pictures."""
    layout = volume_format(emit, node)
    source, kernel = image(emit, 0, layout), emit.require(emit.input(1), "float")
    count, frames, *_, channels = source.shape
    deep, height, width, depth, outputs = kernel.shape
    if depth != channels:
        raise emit.unsupported(f"a filter for {depth} channels meets {channels}")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1,) * 5), layout, "dilations")
    padding = attr_text(node, "padding")
    left, before, after = along_frames(frames, deep, strides[0], dilations[0], padding)
    if deep == 1 and strides[0] == 1:
        wide = source
    else:
        taps = frames_under(
            emit, source, (before, after), left, strides[0], [tap * dilations[0] for tap in range(deep)]
        )
        wide = emit.concatenated(taps, 4)
    pictures = emit.reshape(wide, (count * left, *wide.shape[2:]))
    weights = emit.reshape(emit.transpose(kernel, (4, 1, 2, 0, 3)), (outputs, height, width, deep * depth))
    picture = window_shape(source.shape[2:4], (height, width), strides[1:], dilations[1:], padding)
    how = sliding(padding, strides[1:], dilations[1:])
    result = emit.add("CONV_2D", [pictures, weights, None], (count * left, *picture, outputs), **how)
    yield_image(emit, emit.reshape(result, (count, left, *picture, outputs)), layout)


def frames_under(
    emit: Emit, source: Value, borders: tuple[int, int], left: int, stride: int, places: Sequence[int]
) -> list[Value]:
    """For each place in a window the frames that lie there, ``left`` of them, each ``stride`` frames after the last.

    Strided frames are taken whole groups at a time, so that whole frames are copied and not elements.
    """
    count, frames, *picture = source.shape
    before, after = borders
    size = [count, left, *picture]
    if stride > 1:
        groups = left + max(places) // stride
        after = max(groups * stride - frames - before, 0)
    padded = pad(emit, source, np.array([[0, 0], [before, after], *[[0, 0]] * len(picture)], np.int32))
    if stride == 1:
        return [cut(emit, padded, [0, place, *[0] * len(picture)], size) for place in places]
    whole = cut(emit, padded, [0] * len(padded.shape), [count, groups * stride, *picture])
    grouped = emit.reshape(whole, (count, groups, stride, math.prod(picture)))
    part = [count, left, 1, math.prod(picture)]
    return [emit.reshape(cut(emit, grouped, [0, place // stride, place % stride, 0], part), size) for place in places]


@lowers("Conv3DBackpropInputV2")
def transposed_conv3d(emit: Emit, node: Node) -> None:
    """The share of each frame of the filter by a transposed convolution of pictures, then their sum at their places."""
    layout = volume_format(emit, node)
    size = [int(length) for length in emit.static(0, "the output size")]
    if layout == "NCDHW":
        size = [size[axis] for axis in TO_NDHWC]
    kernel, source = emit.require(emit.input(1), "float"), image(emit, 2, layout)
    count, frames, *_, channels = source.shape
    deep, height, width, outputs, _ = kernel.shape
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1,) * 5), layout, "dilations")
    padding = attr_text(node, "padding")
    if dilations != (1, 1, 1):
        raise emit.unsupported("a transposed convolution with dilation")
    left, before, _ = along_frames(size[1], deep, strides[0], 1, padding)
    picture = window_shape((size[2], size[3]), (height, width), strides[1:], (1, 1), padding)
    if (left, *picture) != source.shape[1:4]:
        raise emit.unsupported(f"an output of {size} does not come from {list(source.shape)}")
    shape = [count * frames, size[2], size[3], deep * outputs]
    weights = emit.reshape(emit.transpose(kernel, (0, 3, 1, 2, 4)), (deep * outputs, height, width, channels))
    shares = emit.add(
        "TRANSPOSE_CONV",
        [emit.const(shape, np.int32), weights, emit.reshape(source, (count * frames, *source.shape[2:]))],
        shape,
        dtype=source.dtype,
        padding=padding,
        stride_h=strides[1],
        stride_w=strides[2],
        activation="",
    )
    pixels = size[2] * size[3]
    rows = emit.reshape(shares, (count, frames, pixels, deep * outputs))
    taps = [cut(emit, rows, [0, 0, 0, tap * outputs], [count, frames, pixels, outputs]) for tap in range(deep)]
    summed = at_their_frames(emit, taps, strides[0], max(before + size[1], 1))
    cropped = cut(emit, summed, [0, before, 0, 0], [count, size[1], pixels, outputs])
    yield_image(emit, emit.reshape(cropped, size), layout)


def at_their_frames(emit: Emit, taps: Sequence[Value], stride: int, least: int) -> Value:
    """The sum of values (count, frames, pixels, channels), the n-th one's frame i at the frame i * stride + n.

    Has ``least`` frames or more. Frames whose number leaves the same remainder by the stride are summed up by
    themselves, and the sums taken one frame from each in turn.
    """
    count, frames, pixels, channels = taps[0].shape
    steps = max(-(-len(taps) // stride) - 1 + frames, -(-least // stride))
    sums: list[Value] = []
    for remainder in range(stride):
        total: Value | None = None
        for shift, tap in enumerate(taps[remainder::stride]):
            borders = np.array([[0, 0], [shift, steps - frames - shift], [0, 0], [0, 0]], np.int32)
            moved = pad(emit, tap, borders)
            total = moved if total is None else emit.add("ADD", [total, moved], moved.shape, activation="")
        if total is None:  # a stride beyond the filter leaves frames that nothing reaches
            total = emit.const(np.zeros((count, steps, pixels, channels), np.float32))
        sums.append(emit.reshape(total, (count, steps, pixels * channels)))

    return emit.reshape(emit.concatenated(sums, 2), (count, steps * stride, pixels, channels))


@lowers("MaxPool3D", "AvgPool3D")
def pool3d(emit: Emit, node: Node) -> None:
    """Over each picture, then over the frames."""
    layout = volume_format(emit, node)
    source = image(emit, 0, layout)
    window = spatial(emit, attr_list(node, "ksize"), layout, "ksize")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    padding = attr_text(node, "padding")
    count, frames, *picture, channels = source.shape
    code = "MAX_POOL_2D" if node.op == "MaxPool3D" else "AVERAGE_POOL_2D"
    flat = emit.reshape(source, (count * frames, *picture, channels))
    flat = _pooled(emit, code, flat, window[1:], strides[1:], padding)
    height, width = flat.shape[1:3]
    columns = emit.reshape(flat, (count, frames, height * width, channels))
    columns = _pooled(emit, code, columns, (window[0], 1), (strides[0], 1), padding)
    yield_image(emit, emit.reshape(columns, (count, columns.shape[1], height, width, channels)), layout)


def _pooled(
    emit: Emit, code: str, source: Value, window: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> Value:
    """As ``pooled``; the picture itself where there is nothing to do."""
    is_plain = window == (1, 1) and strides == (1, 1)
    return source if is_plain else pooled(emit, code, source, window, strides, padding)


def along_frames(frames: int, window: int, stride: int, dilation: int, padding: str) -> tuple[int, int, int]:
    """(windows along the first axis, zero frames before, zero frames after)."""
    reach = (window - 1) * dilation + 1
    if padding == "VALID":
        return (frames - reach) // stride + 1, 0, 0
    windows = -(-frames // stride)
    missing = max((windows - 1) * stride + reach - frames, 0)
    return windows, missing // 2, missing - missing // 2


def volume_format(emit: Emit, node: Node) -> str:
    """``NDHWC`` or ``NCDHW``; anything else is refused, and so is padding that is neither SAME nor VALID."""
    found = attr_text(node, "data_format", "NDHWC") or "NDHWC"
    if found not in ("NDHWC", "NCDHW"):
        raise emit.unsupported(f"the data format {found} has no LiteRT operator")
    if attr_text(node, "padding") not in ("SAME", "VALID"):
        raise emit.unsupported(f"{node.op} with {attr_text(node, 'padding') or 'unknown'} padding")
    return found
