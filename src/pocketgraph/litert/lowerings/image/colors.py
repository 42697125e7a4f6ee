"""Lowerings of the colours of images: RGB and HSV, contrast, hue, saturation.

They are the steps of the reference kernels (``kernels/image/colors.py``), three channels at once where possible.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary, choice
from pocketgraph.litert.lowerings.math.reductions import reduced
from pocketgraph.litert.lowerings.pieces import cut, number
from pocketgraph.litert.narrow_floats import NARROW
from pocketgraph.litert.program import Value


def _colors(emit: Emit, node: Node) -> Value:
    source = emit.require(emit.input(0), "float")
    dtype = node.attr("T", FLOAT)
    if isinstance(dtype, DType) and dtype.name in NARROW:
        raise emit.unsupported("colours of 16 bits, which are rounded at every step")
    if not source.shape or source.shape[-1] != 3:
        raise emit.unsupported(f"{node.op} of {list(source.shape)}, whose last dimension is not 3 colours")
    return source


def _single(emit: Emit) -> Value:
    """The number by which an image is changed."""
    return emit.reshape(emit.require(emit.input(1), "float"), ())


def _channels(emit: Emit, source: Value) -> list[Value]:
    """Its three channels, (…, 1) each."""
    size = [*source.shape[:-1], 1]
    return [cut(emit, source, [0] * (len(size) - 1) + [place], size) for place in range(3)]


def _range(emit: Emit, channels: list[Value]) -> tuple[Value, Value]:
    """The least and the greatest channel."""
    red, green, blue = channels
    low, high = (binary(emit, code, binary(emit, code, red, green), blue) for code in ("MINIMUM", "MAXIMUM"))
    return low, high


def _hsv(emit: Emit, channels: list[Value], low: Value, high: Value) -> tuple[Value, Value]:
    """Hue and saturation, (…, 1), of channels with their least and greatest one, which is the value."""
    red, green, blue = channels
    nothing = number(emit, 0)
    span = binary(emit, "SUB", high, low)
    is_light = binary(emit, "GREATER", high, nothing, BOOL)
    saturation = choice(emit, is_light, binary(emit, "DIV", span, high), nothing)
    is_colored = binary(emit, "GREATER", span, nothing, BOOL)
    sixth = binary(emit, "DIV", number(emit, 1), binary(emit, "MUL", span, number(emit, 6)))

    def turned(one: Value, other: Value, third: int) -> Value:
        hue = binary(emit, "MUL", sixth, binary(emit, "SUB", one, other))
        return binary(emit, "ADD", hue, number(emit, third / 3)) if third else hue

    def is_high(channel: Value) -> Value:
        return binary(emit, "EQUAL", channel, high, BOOL)

    below = choice(emit, is_high(green), turned(blue, red, 1), turned(red, green, 2))
    hue = choice(emit, is_high(red), turned(green, blue, 0), below)
    is_negative = binary(emit, "LESS", hue, nothing, BOOL)
    hue = choice(emit, is_negative, binary(emit, "ADD", hue, number(emit, 1)), hue)
    return choice(emit, is_colored, hue, nothing), saturation


def _full(emit: Emit, hue: Value) -> Value:
    """Red, green and blue (…, 3) of full saturation and value, by hue (…, 1)."""
    distance = binary(emit, "MUL", hue, number(emit, 6))
    away = binary(emit, "SUB", distance, emit.const([3, 2, 4], np.float32))
    away = emit.add("ABS", [away], away.shape)
    ramp = binary(emit, "MUL", away, emit.const([1, -1, -1], np.float32))
    ramp = binary(emit, "ADD", ramp, emit.const([-1, 2, 2], np.float32))
    return _in_unit(emit, ramp)


def _in_unit(emit: Emit, value: Value) -> Value:
    return binary(emit, "MINIMUM", binary(emit, "MAXIMUM", value, number(emit, 0)), number(emit, 1))


def _rgb(emit: Emit, hue: Value, saturation: Value, value: Value) -> Value:
    pale = binary(emit, "SUB", number(emit, 1), saturation)
    mixed = binary(emit, "ADD", pale, binary(emit, "MUL", _full(emit, hue), saturation))
    return binary(emit, "MUL", mixed, value)


@lowers("RGBToHSV")
def rgb_to_hsv(emit: Emit, node: Node) -> Value:
    source = _colors(emit, node)
    channels = _channels(emit, source)
    low, high = _range(emit, channels)
    return emit.concatenated([*_hsv(emit, channels, low, high), high], len(source.shape) - 1)


@lowers("HSVToRGB")
def hsv_to_rgb(emit: Emit, node: Node) -> Value:
    return _rgb(emit, *_channels(emit, _colors(emit, node)))


@lowers("AdjustSaturation")
def adjust_saturation(emit: Emit, node: Node) -> Value:
    channels, scale = _channels(emit, _colors(emit, node)), _single(emit)
    low, high = _range(emit, channels)
    hue, saturation = _hsv(emit, channels, low, high)
    return _rgb(emit, hue, _in_unit(emit, binary(emit, "MUL", saturation, scale)), high)


@lowers("AdjustHue")
def adjust_hue(emit: Emit, node: Node) -> Value:
    source, delta = _colors(emit, node), _single(emit)
    channels = _channels(emit, source)
    low, high = _range(emit, channels)
    span = binary(emit, "SUB", high, low)
    above = [binary(emit, "SUB", channel, low) for channel in channels]
    turned = binary(emit, "ADD", _hsv(emit, above, number(emit, 0), span)[0], delta)
    full = _full(emit, binary(emit, "SUB", turned, emit.add("FLOOR", [turned], turned.shape)))
    mixed = binary(emit, "ADD", binary(emit, "MUL", full, span), low)
    return choice(emit, binary(emit, "EQUAL", full, number(emit, 1), BOOL), high, mixed)


@lowers("AdjustContrastv2")
def adjust_contrast(emit: Emit, node: Node) -> Value:
    source, factor = emit.require(emit.input(0), "float"), _single(emit)
    rank = len(source.shape)
    if rank < 3:
        raise emit.unsupported(f"the contrast of {list(source.shape)}, which is no picture")
    mean = source
    for axis in (rank - 2, rank - 3):  # a row first: few terms one after the other
        mean = reduced(emit, "MEAN", mean, [axis], keep=True)
    away = binary(emit, "SUB", source, mean)
    return binary(emit, "ADD", binary(emit, "MUL", away, factor), mean)
