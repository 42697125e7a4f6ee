"""Stores large float constants in eight bits each, for a file of a quarter of the size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, Tensor, const
from pocketgraph.graph.dtype import DOUBLE, FLOAT, HALF, QUINT8
from pocketgraph.graph.op_traits import VARIABLES
from pocketgraph.kernels.quantized.eight_bit_arithmetic import byte_codes
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.original.matchable import matchable
from pocketgraph.transforms.original.quantization_range import SMALLEST_NORMAL, value_range
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant
from pocketgraph.transforms.parts.integer_weights import channel_axes, code_nodes, coded
from pocketgraph.transforms.rule_parameters import Int32
from pocketgraph.transforms.tool import transform

LEVELS = 255  # steps from the least to the greatest code


@transform
def quantize_weights(
    graph: Graph,
    *,
    minimum_size: Int32 = 1024,
    maximum_size: int | None = None,
    num_bits: int = 8,
    per_channel: bool = False,
    symmetric: bool = False,
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Replaces each large float constant by an eight-bit one, its range, and a Dequantize of the constant's name.

    Given:   w = Const(float [-1.0, 0.0, 1.55])
             ; quantize_weights(minimum_size=3)
    Result:  w_quantized_const = Const(quint8 [0, 100, 255])
             w_quantized_min = Const(float -1.0)
             w_quantized_max = Const(float 1.55)
             w = Dequantize(w_quantized_const, w_quantized_min, w_quantized_max, T=quint8, mode="MIN_FIRST")

    The range is widened to hold 0, so that 0 stays exactly 0. Constants of other types stay as they are. The search
    for the maximum starts at the smallest normal float, as in the original, so a tensor of negative values gets
    1.1754944e-38 as its maximum, which is as good as 0.

    Args:
        minimum_size: constants of fewer elements stay as they are.
        maximum_size: constants of more elements stay as they are; for a run of its own that gives them other codes.
        num_bits: 2 to 16. Up to 8 the codes are stored in a byte each, with fewer different values, which compress
            better; from 9 on they take two bytes.
        per_channel: a range for each output channel of the convolution or matrix product that reads the weights, which
            is more exact. The weights are then a Dequantize, a Sub of the zero points, and a Mul by the channels'
            steps, because the Dequantize of TensorFlow 1 knows one range only. Weights that nothing of this kind
            reads get one range; constants of one dimension, such as biases, stay as they are.
        symmetric: signed codes around a zero of 0 (qint8, mode SCALED), as integer engines want weights; slightly
            less exact where the values lie on one side of 0.

    Differs from the original: maximum_size, num_bits, per_channel and symmetric; without them the result is the
    original's, bit for bit, but for two kinds of constants. Where all values are 0, the range ends at 1 (there, at
    1.1754944e-38, and TensorFlow, which takes the steps of such a range as 0, makes NaN of them); and where one is NaN
    or infinite, the constant stays as it is (there, all its values are lost). A negative minimum_size is an error
    (there, it is taken as unsigned, and nothing is quantized).

    Raises:
        TransformError: a constant has no ``dtype`` or no ``value``; minimum_size is negative; num_bits is out of range.
    """
    if minimum_size < 0:
        if not compat.original:
            raise TransformError(f"minimum_size must be 0 or more, not {minimum_size}")
        minimum_size += 1 << 64
    if not 2 <= num_bits <= 16:
        raise TransformError(f"num_bits must be from 2 to 16, not {num_bits}")
    plain = num_bits == 8 and not per_channel and not symmetric
    nodes: list[Node] = []
    may_match = matchable(graph, compat)
    for node in graph:
        if node.op == "Const" and may_match(node):
            weights = checked_constant(node)
            fits = minimum_size <= weights.size and (maximum_size is None or weights.size <= maximum_size)
            wanted = node.attrs["dtype"] is FLOAT and weights.dtype is FLOAT and fits
            if wanted and not (per_channel and len(weights.shape) < 2) and (compat.original or _is_finite(weights)):
                if plain:
                    nodes += _quantized_nodes(node.name, weights, compat)
                else:
                    axes = channel_axes(graph, node.name, len(weights.shape)) if per_channel else ()
                    nodes += code_nodes(node.name, coded(weights.numpy(), num_bits, axes, symmetric))
                continue
        nodes.append(node)
    return graph if len(nodes) == len(graph) else graph.replace(nodes)


def _is_finite(weights: Tensor) -> bool:
    values = weights.numpy()
    return not values.size or bool(np.isfinite(values.min()) and np.isfinite(values.max()))  # NaN is both then


def _quantized_nodes(name: str, weights: Tensor, compat: Compat) -> list[Node]:
    values = weights.numpy()
    low, high = quantization_range(values)
    if not compat.original and (high - low) / LEVELS < SMALLEST_NORMAL:
        high = np.float32(1)
    parts = [
        const(f"{name}_quantized_const", Tensor.from_numpy(byte_codes(values, float(low), float(high)), QUINT8)),
        const(f"{name}_quantized_min", low),
        const(f"{name}_quantized_max", high),
    ]
    return [*parts, Node(name, "Dequantize", [part.name for part in parts], {"T": QUINT8, "mode": b"MIN_FIRST"})]


def quantization_range(values: np.ndarray[Any, Any]) -> tuple[np.float32, np.float32]:
    """The smallest range that holds all values (float32) and 0; never empty."""
    low, high = value_range(values)
    return (low if low < 0 or low == 0 else np.float32(0)), high


def near_misses(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    least, most = arguments.get("minimum_size", 1024), arguments.get("maximum_size")
    for node in graph:
        if node.op == "Const":
            tensor = node.attrs.get("value")
            if isinstance(tensor, Tensor) and tensor.size > 1:
                if tensor.dtype is FLOAT and tensor.size < least:
                    yield Miss(node.name, f"{tensor.size} elements are fewer than minimum_size={least}")
                elif tensor.dtype is FLOAT and most is not None and tensor.size > most:
                    yield Miss(node.name, f"{tensor.size} elements are more than maximum_size={most}")
                elif tensor.dtype in (DOUBLE, HALF) and tensor.size >= least:
                    yield Miss(node.name, f"its type is {tensor.dtype.name}, not float")
        elif node.op in VARIABLES:
            yield Miss(node.name, f"{node.op} holds no value", "freeze_graph")
