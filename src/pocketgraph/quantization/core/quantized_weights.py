"""Weights as int8 or int4 codes, with a scale for each output channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import LARGEST_CODE, WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Quantization
from pocketgraph.litert.rewriting.weight_folding import LINEAR, float_constant
from pocketgraph.quantization.core import operator_rules

LARGEST_CODE_4 = 7  # of four bits
LARGEST_BIAS = 2**30  # of a 32-bit sum, which must hold the products as well
FEW_WEIGHTS = (4, 32)  # of a channel, that are looked at before all of them
CHANNELS_AT_ONCE = 256  # whose first few times all levels stay in a processor's cache
GRID_TOLERANCE = 1e-3  # of a step, that rounded weights lie off it in float32
ROOM_OF_64_BITS = (
    4.0  # times that a bias of 64 bits may be larger: LiteRT's multiplier makes 0 of what 2^-31 is not enough for
)


@dataclass(frozen=True)
class QuantizedWeights:
    """The weights of one layer.

    Attributes:
        codes: int8, of the weights' shape; from -7 to 7 with four bits.
        scales: float64 [output channels].
        bias: float64 [output channels], in real numbers.
        axis: the axis of ``codes`` that goes along output channels.
        bits: 8 or 4, of each code in the file.
    """

    codes: Array
    scales: Array
    bias: Array
    axis: int
    bits: int = 8

    @cached_property
    def constant(self) -> Constant:
        """The codes as they are in a file: those of four bits two in a byte."""
        return Constant.of(packed(self.codes) if self.bits == 4 else self.codes)

    @cached_property
    def quantization(self) -> Quantization:
        """How the codes are meant."""
        return Quantization(tuple(self.scales.tolist()), (0,) * len(self.scales), self.axis)

    @cached_property
    def largest_scale(self) -> float:
        """Of all output channels."""
        return float(self.scales.max())

    def numpy(self) -> Array:
        """The weights that the codes stand for, float64."""
        across = [-1 if axis == self.axis else 1 for axis in range(self.codes.ndim)]
        result: Array = self.codes * self.scales.reshape(across)
        return result


def float_weights(operation: Operation) -> tuple[Array, Array]:
    """The weights and the bias (zeros when there is none) of a weighted operator, float64."""
    kernel, offset = operator_rules.weights(operation), operator_rules.bias(operation)
    values = kernel.content.numpy().astype(np.float64)
    channels = values.shape[WEIGHT_AXIS[operation.code]]
    if offset is None or offset.constant is None:
        return values, np.zeros(channels)
    return values, offset.constant.numpy().astype(np.float64).reshape(-1)


def replace_weights(operation: Operation, values: Array, bias: Array) -> None:
    """Gives a layer other float weights and another bias, under the old names, in place."""
    _, at_weights, at_bias = LINEAR[operation.code]
    operation.inputs += [None] * (at_bias + 1 - len(operation.inputs))
    for at, array in ((at_weights, values), (at_bias, bias)):
        old = operation.inputs[at]
        name = f"{operation.outputs[0].name}/bias" if old is None else old.name
        operation.inputs[at] = float_constant(name, array)


def channel_scales(values: Array, axis: int, bias: Array, data_scale: float, largest_code: int = LARGEST_CODE) -> Array:
    """The smallest scale for each channel with which codes hold the weights and int32 the bias.

    Args:
        values: the weights.
        axis: the axis along output channels.
        bias: in real numbers, one for each channel.
        data_scale: of the codes of the layer's operand; the bias has the product of both scales. Infinite where the
            bias is a float, so that it is no bound; ROOM_OF_64_BITS times larger where it has 64 bits.
        largest_code: of the weights.
    """
    across = tuple(other for other in range(values.ndim) if other != axis)
    largest = np.maximum(values.max(axis=across, initial=0), -values.min(axis=across, initial=0))
    least = np.maximum(np.abs(bias) / (data_scale * LARGEST_BIAS), np.finfo(np.float32).tiny * 2**20)
    levels = grid_levels(values, axis, largest, largest_code)
    scales: Array = np.maximum(largest / levels, least).astype(np.float32).astype(np.float64)
    return scales


def grid_levels(values: Array, axis: int, largest: Array, largest_code: int) -> Array:
    """How many steps the largest weight of each channel is, so that codes hold what a training has rounded exactly.

    FakeQuant leaves multiples of one step for all channels, of which most do not reach the last code. Where weights are
    no such multiples, the largest one has the last code.
    """
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    levels, left = np.full(len(rows), float(largest_code)), np.flatnonzero(largest)
    parts = [rows[:, :: max(rows.shape[1] // few, 1)] for few in FEW_WEIGHTS] + [rows]
    few = (parts[0][left] / largest[left, np.newaxis]).astype(np.float32)[:, np.newaxis]
    all_levels = np.arange(1, largest_code + 1, dtype=np.float32)[:, np.newaxis]
    may_be = [
        _are_whole(few[at : at + CHANNELS_AT_ONCE] * all_levels).any(axis=1)
        for at in range(0, len(few), CHANNELS_AT_ONCE)
    ]
    left = left[np.concatenate(may_be)] if may_be else left
    for level in range(largest_code if left.size else 0, 0, -1):
        found = left
        for part in parts[1:]:
            found = found[_are_whole(part[found] * (level / largest[found])[:, np.newaxis])]
        levels[found] = level
        left = np.setdiff1d(left, found, assume_unique=True)
    return levels


def _are_whole(numbers: Array) -> Array:
    """Whether all numbers along the last axis are whole, but for the rounding of float32."""
    return np.asarray(np.abs(numbers - np.rint(numbers)).max(axis=-1, initial=0) < GRID_TOLERANCE)


def largest_scale(operation: Operation, data_scale: float, least: float) -> float:
    """The largest of a layer's ``channel_scales`` with eight bits; below ``least``, the smallest that it may be, for
    which no weights are copied."""
    kernel, offset = operator_rules.weights(operation).content, operator_rules.bias(operation)
    values = kernel.numpy()
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest >= least:  # as a scale on the coarsest of grids, of one level
        weights, bias = float_weights(operation)
        return float(channel_scales(weights, WEIGHT_AXIS[operation.code], bias, data_scale).max())
    if offset is None or offset.constant is None:
        return largest / LARGEST_CODE
    bias_scale = float(np.abs(offset.constant.numpy()).max(initial=0)) / (data_scale * LARGEST_BIAS)
    return max(largest / LARGEST_CODE, bias_scale)


def rounded(operation: Operation, data_scale: float, bits: int = 8) -> QuantizedWeights:
    """The layer's weights, each as the nearest code."""
    return rounded_values(*float_weights(operation), WEIGHT_AXIS[operation.code], data_scale, bits)


def rounded_values(values: Array, bias: Array, axis: int, data_scale: float, bits: int = 8) -> QuantizedWeights:
    """Float64 weights, each as the nearest code; ``axis`` goes along output channels."""
    scales = channel_scales(values, axis, bias, data_scale, largest_code(bits))
    return with_scales(values, scales, bias, axis, bits)


def with_scales(values: Array, scales: Array, bias: Array, axis: int, bits: int = 8) -> QuantizedWeights:
    """Weights as the nearest codes of given scales."""
    across = [-1 if index == axis else 1 for index in range(values.ndim)]
    coded = values / scales.reshape(across)
    np.clip(np.rint(coded, out=coded), -largest_code(bits), largest_code(bits), out=coded)
    return QuantizedWeights(coded.astype(np.int8), scales, bias, axis, bits)


def largest_code(bits: int) -> int:
    """The largest code of 8 or 4 bits."""
    return LARGEST_CODE_4 if bits == 4 else LARGEST_CODE


def packed(codes: Array) -> Array:
    """Four-bit codes two in a byte, uint8 [elements / 2 rounded up], the earlier one in the lower half."""
    nibbles = codes.reshape(-1).astype(np.uint8) & 15
    if nibbles.size % 2:
        nibbles = np.append(nibbles, np.uint8(0))
    result: Array = nibbles[::2] | (nibbles[1::2] << 4)
    return result
