"""Lowerings of local response normalization and its gradient.

LiteRT's operator takes a power of each element one at a time. Here the squares of neighbouring channels are added up by
a convolution with a band of ones, as TensorFlow does it, and the power is what XNNPACK has fast kernels for.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.cost_model import MOST_RESPONSE_CHANNELS
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import image
from pocketgraph.litert.lowering import MAY_QUANTIZE, WHOLE_NUMBERS, lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value, sliding

CODED = ("QuantizeV2", "Requantize", "QuantizedConv2D", "QuantizedMatMul")
"""Not a trait: ops that show that a graph computes in eight bits."""


@lowers("LRN")
def local_response_normalization(emit: Emit, node: Node) -> Value:
    source, settings = image(emit, 0, "NHWC"), _settings(emit, node)
    radius, bias, alpha, beta = settings
    if bias < 0 or alpha < 0:
        raise emit.unsupported(f"powers of numbers that may be negative, as with bias {bias} and alpha {alpha}")
    if source.shape[3] > MOST_RESPONSE_CHANNELS or bias == 0 or _has_codes(emit):
        return emit.add(
            "LOCAL_RESPONSE_NORMALIZATION", [source], source.shape, radius=radius, bias=bias, alpha=alpha, beta=beta
        )
    norm = _norm(emit, source, radius, bias, alpha)
    return _normalized(emit, source, norm, beta)


def _has_codes(emit: Emit) -> bool:
    """Whether the graph has eight-bit codes, whose ranges are found while running: the last place counts for them."""
    return any(node.op in CODED or WHOLE_NUMBERS in node.attrs or MAY_QUANTIZE in node.attrs for node in emit.graph)


@lowers("LRNGrad")
def of_local_response_normalization(emit: Emit, node: Node) -> Value:
    gradient, source, result = (image(emit, index, "NHWC") for index in range(3))
    radius, bias, alpha, beta = _settings(emit, node)
    if (
        not gradient.shape == source.shape == result.shape
        or source.shape[3] > MOST_RESPONSE_CHANNELS
        or bias <= 0
        or alpha < 0
    ):
        raise emit.unsupported(f"the gradient of a normalization of {list(source.shape)} with bias {bias}")
    norm = _norm(emit, source, radius, bias, alpha)
    direct = _normalized(emit, gradient, norm, beta)
    each = binary(emit, "DIV", binary(emit, "MUL", gradient, result), norm)
    shared = _neighbour_sums(emit, each, radius, 2 * alpha * beta)
    return binary(emit, "SUB", direct, binary(emit, "MUL", source, shared))


def _settings(emit: Emit, node: Node) -> tuple[int, float, float, float]:
    """(channels to either side, bias, alpha, beta)."""
    radius = int(node.attr("depth_radius", 5))
    if radius < 0:
        raise emit.unsupported(f"a depth_radius of {radius}")
    return radius, float(node.attr("bias", 1.0)), float(node.attr("alpha", 1.0)), float(node.attr("beta", 0.5))


def _norm(emit: Emit, source: Value, radius: int, bias: float, alpha: float) -> Value:
    """bias + alpha times the sum of the squares of the channels around."""
    squares = binary(emit, "MUL", source, source)
    return binary(emit, "ADD", _neighbour_sums(emit, squares, radius, alpha), number(emit, bias))


def _neighbour_sums(emit: Emit, value: Value, radius: int, factor: float) -> Value:
    """``factor`` times the sums over the channels around each one."""
    depth = value.shape[3]
    places = np.arange(depth)
    band = np.where(np.abs(places[:, None] - places) <= radius, factor, 0)
    weights = emit.const(band.reshape(depth, 1, 1, depth), np.float32)
    return emit.add("CONV_2D", [value, weights, None], value.shape, **sliding())


def _normalized(emit: Emit, value: Value, norm: Value, beta: float) -> Value:
    """``value`` divided by ``norm`` to the power of ``beta``."""
    if beta in (0.5, 0.75):
        root = emit.add("SQRT", [norm], norm.shape)
        norm = root if beta == 0.5 else binary(emit, "MUL", root, emit.add("SQRT", [root], norm.shape))
    elif beta != 1:
        logarithm = emit.add("LOG", [norm], norm.shape)
        power = emit.add("EXP", [binary(emit, "MUL", logarithm, number(emit, -beta))], norm.shape)
        return binary(emit, "MUL", value, power)
    return binary(emit, "DIV", value, norm)
