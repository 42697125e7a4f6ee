"""Weights as integer codes: of 2 to 16 bits, with one range for all or one a channel, with or without a zero point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor, const, node_name
from pocketgraph.graph.dtype import FLOAT, QINT8, QINT16, QUINT8, QUINT16
from pocketgraph.graph.tensor import Array
from pocketgraph.passes.channel_scaling import LINEAR

CHANNELS = {
    "Conv2D": (3,), "DepthwiseConv2dNative": (2, 3), "Conv2DBackpropInput": (2,), "MatMul": (1,), "Conv3D": (4,),
    "FusedPadConv2D": (3,), "FusedResizeAndPadConv2D": (3,),
}  # fmt: skip
"""The dimensions of the weights that count the output channels."""
PLACES = {**{op: place.weights for op, place in LINEAR.items()}, "FusedPadConv2D": 2}
PLACES["FusedResizeAndPadConv2D"] = 3


class IntegerWeights(NamedTuple):
    """IntegerWeights, and what they stand for: ``(codes - zero) * step``.

    Attributes:
        codes: integers, of the weights' shape.
        step: float32, a scalar or of a shape that is broadcast against the codes.
        zero: the code of 0, likewise; integers in float32.
    """

    codes: Array
    step: Array
    zero: Array


def channel_axes(graph: Graph, name: str, rank: int) -> tuple[int, ...]:
    """The dimensions of a constant that count output channels for all who read it; () when there is no such thing."""
    found: set[tuple[int, ...]] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        for reader in graph.consumers.get(current, ()):
            if reader.op in ("Identity", "StopGradient"):
                waiting.append(reader.name)
                continue
            places = [i for i, ref in enumerate(reader.data_inputs) if node_name(ref) == current]
            fits = reader.op in CHANNELS and places == [PLACES[reader.op]]
            axes = CHANNELS[reader.op] if fits else ()
            found.add((0,) if reader.op == "MatMul" and fits and reader.attr("transpose_b") else axes)
    only = found.pop() if len(found) == 1 else ()
    return only if all(axis < rank for axis in only) else ()


def coded(values: Array, num_bits: int, axes: tuple[int, ...], symmetric: bool) -> IntegerWeights:
    """The codes of float32 weights; 0 stays exactly 0, and what is no number becomes 0.

    Args:
        values: the weights.
        num_bits: the codes have this many bits.
        axes: the dimensions that have a step of their own for each index; () for one step.
        symmetric: codes from ``-(2 ** (num_bits - 1) - 1)`` to as much above zero, and a zero of 0; else codes from 0
            to ``2 ** num_bits - 1``.
    """
    others = tuple(axis for axis in range(values.ndim) if axis not in axes)
    finite = values if np.isfinite(values.sum(dtype=np.float64)) else np.nan_to_num(values, posinf=0, neginf=0)
    low = np.minimum(finite.min(axis=others, keepdims=bool(axes)), 0).astype(np.float64)
    high = np.maximum(finite.max(axis=others, keepdims=bool(axes)), 0).astype(np.float64)
    if symmetric:
        top = (1 << (num_bits - 1)) - 1
        step = np.maximum(-low, high) / top
    else:
        top = (1 << num_bits) - 1
        step = (high - low) / top
    step = step.astype(np.float32)
    step = np.where(step >= np.finfo(np.float32).tiny, step, np.float32(1))  # TensorFlow takes less than that for zero
    zero = np.zeros_like(step) if symmetric else np.rint(-low / step).astype(np.float32)
    codes = np.rint(finite / step)
    codes += zero
    np.clip(codes, -top if symmetric else 0, top, out=codes)
    small = (np.int8, np.uint8) if num_bits <= 8 else (np.int16, np.uint16)
    return IntegerWeights(codes.astype(small[0] if symmetric else small[1]), np.asarray(step), np.asarray(zero))


def code_nodes(name: str, found: IntegerWeights) -> list[Node]:
    """The nodes that make the weights of the codes again; the last one has the weights' name.

    One step for all is a Dequantize. More are a Dequantize that gives the codes as floats, a Sub of the zero points
    where they are not 0, and a Mul, which TensorFlow 1 runs, too (its Dequantize has no axis).
    """
    symmetric = found.codes.dtype.kind == "i"
    wide = found.codes.dtype.itemsize > 1
    dtype = (QINT16 if wide else QINT8) if symmetric else (QUINT16 if wide else QUINT8)
    top = np.iinfo(found.codes.dtype).max
    mode = b"SCALED" if symmetric else b"MIN_FIRST"
    codes = const(f"{name}_quantized_const", Tensor.from_numpy(found.codes, dtype))
    single = found.step.ndim == 0
    step = found.step if single else np.float32(1)
    low = -step * np.float32(top) if symmetric else -step * (found.zero if single else np.float32(0))
    ends = [
        const(f"{name}_quantized_min", np.float32(low)),
        const(f"{name}_quantized_max", np.float32(step * np.float32(top) + (0 if symmetric else low))),
    ]
    levels = Node(
        name if single else f"{name}_quantized_levels",
        "Dequantize",
        [codes.name, *(end.name for end in ends)],
        {"T": dtype, "mode": mode},
    )
    nodes = [codes, *ends, levels]
    if single:
        return nodes
    if found.zero.any():
        zero = const(f"{name}_quantized_zero", found.zero)
        nodes += [zero, Node(f"{name}_quantized_centred", "Sub", [levels.name, zero.name], {"T": FLOAT})]
    source = nodes[-1].name
    scale = const(f"{name}_quantized_step", found.step)
    return [*nodes, scale, Node(name, "Mul", [source, scale.name], {"T": FLOAT})]
