"""Stores large float constants in eight bits each, for a file of a quarter of the size."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor, const
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.transforms._constants import checked_constant
from pocketgraph.transforms._levels import value_range
from pocketgraph.transforms.tool import transform

LEVELS = 256
CHUNK = 1 << 14  # elements: their float64 form stays in the processor's cache
JUST_UNDER_HALF = 0.49999999999999994  # the float64 before 0.5; adding 0.5 would round 0.49999999999999994 up


@transform
def quantize_weights(graph: Graph, *, minimum_size: int = 1024) -> Graph:
    """Replaces each large float constant by an eight-bit one, its range, and a Dequantize of the constant's name.

    Given:   w = Const(float [-1.0, 0.0, 1.55])
             ; quantize_weights(minimum_size=3)
    Result:  w_quantized_const = Const(quint8 [0, 100, 255])
             w_quantized_min = Const(float -1.0)
             w_quantized_max = Const(float 1.55)
             w = Dequantize(w_quantized_const, w_quantized_min, w_quantized_max, T=quint8, mode="MIN_FIRST")

    The range is widened to hold 0, so that 0 stays exactly 0. Constants of other types stay as they are. The search
    for the maximum starts at the smallest normal float, as in the original, so a tensor without positive values gets
    1.1754944e-38 as its maximum, which is as good as 0.

    Args:
        minimum_size: constants of fewer elements stay as they are.

    Raises:
        TransformError: a constant has no ``dtype`` or no ``value``.
    """
    nodes: list[Node] = []
    for node in graph:
        if node.op == "Const":
            weights = checked_constant(node)
            if node.attrs["dtype"] is FLOAT and weights.dtype is FLOAT and weights.size >= minimum_size:
                nodes += _quantized_nodes(node.name, weights)
                continue
        nodes.append(node)
    return graph if len(nodes) == len(graph) else graph.replace(nodes)


def _quantized_nodes(name: str, weights: Tensor) -> list[Node]:
    values = weights.numpy()
    low, high = quantization_range(values)
    parts = [
        const(f"{name}_quantized_const", Tensor.from_numpy(quantized(values, low, high), QUINT8)),
        const(f"{name}_quantized_min", low),
        const(f"{name}_quantized_max", high),
    ]
    return [*parts, Node(name, "Dequantize", [part.name for part in parts], {"T": QUINT8, "mode": b"MIN_FIRST"})]


def quantization_range(values: np.ndarray[Any, Any]) -> tuple[np.float32, np.float32]:
    """The smallest range that holds all values (float32) and 0; never empty."""
    low, high = value_range(values)
    return (low if low < 0 or low == 0 else np.float32(0)), high


def quantized(values: np.ndarray[Any, Any], low: np.float32, high: np.float32) -> np.ndarray[Any, Any]:
    """``round(v * k) - round(low * k)`` with ``k = 256 / ((high - low) * 256 / 255)``, limited to 0…255, as uint8.

    This is MIN_FIRST quantization (tensorflow/core/kernels/quantization_utils.h): float64 arithmetic on float32 values,
    halves rounded away from zero. What has no number, because of NaN or infinity, becomes 0.
    """
    with np.errstate(all="ignore"):
        scale = LEVELS / (float(high - low) * (LEVELS / (LEVELS - 1.0)))
        flat = np.ascontiguousarray(values).reshape(-1)
        result: np.ndarray[Any, Any] = np.zeros(values.shape, np.uint8)
        flat_result = result.reshape(-1)
        if np.isnan(float(low) * scale):
            return result
        base = np.int32(_rounded(float(low) * scale))
        may_have_nan = not np.isfinite(flat.sum())
        product, half, level = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK, np.int32)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK]
            p, h, q = product[: part.size], half[: part.size], level[: part.size]
            np.multiply(part, scale, out=p, dtype=np.float64)
            np.copysign(JUST_UNDER_HALF, p, out=h)
            np.add(p, h, out=p)
            np.copyto(q, p, casting="unsafe")
            np.subtract(q, base, out=q)
            np.clip(q, 0, LEVELS - 1, out=q)
            if may_have_nan:
                q[np.isnan(p)] = 0
            flat_result[start : start + CHUNK] = q
    return result


def _rounded(value: float) -> float:
    return float(np.trunc(value + np.copysign(JUST_UNDER_HALF, value)))
