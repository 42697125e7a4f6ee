"""Gives the channels of a tensor like ranges, so that one scale does for all: cross-layer equalization.

    y = relu(W x + b);  z = V y      becomes      y' = relu(S W x + S b);  z = (V / S) y'

with a factor S for each channel of y that leaves the channel's reach and its weights in V alike (Nagel et al.,
"Data-Free Quantization Through Weight Equalization and Bias Correction", 2019). A depthwise layer has scales of its own
for each channel; there the reaches alone are made even. With RELU6 the factors are at least 1 and keep each channel
below 3, where it stays what it was for all values up to twice the largest one observed; a few samples do not show how
large that is, so that it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import CONVOLUTIONS, POOLS, WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights, replace_weights
from pocketgraph.quantization.observing.calibration import reobserve
from pocketgraph.quantization.program_pass import copied

CLIPPED = 6.0  # where RELU6 ends
TINY = 1e-30
SQUARED_PEAK_TO_POWER = 16.0  # of a channel, about


class Magnitudes(NamedTuple):
    """Those of a convolution's weights.

    Attributes:
        largest: float64 [results, channels].
        squares: the sums of their squares, float64 [results, channels].
        places: how many weights there are for each result and channel.
    """

    largest: Array
    squares: Array
    places: int

    def divided(self, factors: Array) -> Magnitudes:
        """The weights by a factor a channel."""
        return Magnitudes(self.largest / factors, self.squares / factors**2, self.places)


def equalize_across_layers(
    program: Program, seen: Mapping[Value, Observation], least_gain: float = 0.0
) -> tuple[Program, int]:
    """A program that computes the same with more even channels.

    Args:
        program: the float program; it stays as it is. The new one shares its tensors other than weights, so that
            ``seen`` must be observed anew.
        seen: what values the tensors take.
        least_gain: decibels of rounding's noise, estimated, by which a tensor has to gain.

    Returns:
        The program, and how many tensors were made even.
    """
    result = copied(program)
    readers = result.consumers()
    producers = result.producers()
    done = 0
    for second in result.operations:
        first = _before(second, producers, readers, set(result.outputs))
        observation = seen.get(first.outputs[0]) if first else None
        if first is None or observation is None or observation.channel_low is None or observation.channel_high is None:
            continue
        if first.options.get("activation") == "RELU6" and observation.samples < step_limits.FEWEST_SAMPLES:
            continue
        strength = np.maximum(np.abs(observation.channel_low), np.abs(observation.channel_high)).astype(np.float64)
        magnitudes = None if second.code == "DEPTHWISE_CONV_2D" else _magnitudes(second)
        factors = _factors(first, magnitudes, strength)
        if np.allclose(factors, 1) or (least_gain and _gain(magnitudes, strength, factors) < least_gain):
            continue
        scale_results(first, factors)
        scale_operand(second, factors)
        done += 1
    return result if done else program, done


def _before(
    second: Operation, producers: dict[Value, Operation], readers: dict[Value, list[Operation]], outputs: set[Value]
) -> Operation | None:
    """The layer whose results go to this one only."""
    if second.code not in CONVOLUTIONS or not operator_rules.can_quantize(second):
        return None
    value = operator_rules.data(second)
    while True:
        first = producers.get(value)
        if first is None or len(readers[value]) != 1 or value in outputs:
            return None
        if first.code not in POOLS or first.options.get("activation"):
            break
        value = first.operands[0]
    if first.code not in CONVOLUTIONS or not operator_rules.can_quantize(first):
        return None
    is_grouped = second.code == "CONV_2D" and operator_rules.weights(second).shape[3] != first.outputs[0].shape[3]
    homogeneous = first.options.get("activation", "") in ("", "RELU", "RELU6")
    return first if homogeneous and not is_grouped else None


def _factors(first: Operation, magnitudes: Magnitudes | None, strength: Array) -> Array:
    """How much stronger to make each channel, of which the largest magnitudes are given, float64 [channels].

    ``magnitudes`` are those of the weights that read the channels; None where these are a depthwise layer's.
    """
    alive = _alive(strength)
    is_clipped = first.options.get("activation") == "RELU6"
    reach = np.ones_like(strength)
    if magnitudes is not None:
        reach = (magnitudes.largest / np.maximum(magnitudes.largest.max(axis=1, keepdims=True), TINY)).max(axis=0)
        alive &= reach > 0
        reach = np.sqrt(reach * strength)
    if not alive.any():
        return np.ones_like(strength)
    limit = CLIPPED / step_limits.RELU6_ROOM if is_clipped else float(strength.max())
    factors = reach / np.where(alive, strength, 1)
    factors *= limit / (factors * strength)[alive].max()
    factors[~alive] = (
        1 if is_clipped else np.minimum(np.median(factors[alive]), limit / np.maximum(strength, TINY))[~alive]
    )
    result: Array = np.maximum(factors, 1) if is_clipped else factors
    return result


def _alive(strength: Array) -> Array:
    """Which channels are not taken for dead, bool [channels]."""
    dead_ratio = step_limits.DEAD_CHANNEL_RATIO
    result: Array = strength > max(np.median(strength) / dead_ratio, strength.max(initial=0) / dead_ratio**2)
    return result


def _gain(magnitudes: Magnitudes | None, strength: Array, factors: Array) -> float:
    """By how many decibels these factors lower the noise of eight bits, beside the signal, in half of the results.

    Dead channels in front of a depthwise layer are none of these: many would let a single weak one decide.
    """
    if magnitudes is None:
        alive = _alive(strength)
        noise = [np.median(reach.max() / reach[alive]) ** 2 for reach in (strength, strength * factors)]
    else:
        signal = np.maximum(magnitudes.squares @ strength**2, TINY)
        even = _noise(magnitudes.divided(factors), strength * factors)
        noise = [np.median(each / signal) for each in (_noise(magnitudes, strength), even)]
    return float(10 * np.log10(max(noise[0], TINY) / max(noise[1], TINY)))


def _noise(magnitudes: Magnitudes, strength: Array) -> Array:
    """The power of rounding's noise in each result of a layer, up to a factor: of its operand and of its weights."""
    of_operand = (strength.max() / 255) ** 2 * magnitudes.squares.sum(axis=1)
    steps = magnitudes.largest.max(axis=1) / 127
    result: Array = of_operand + steps**2 * magnitudes.places * (strength**2).sum() / SQUARED_PEAK_TO_POWER
    return result


def _magnitudes(operation: Operation) -> Magnitudes:
    """Those of a convolution's weights."""
    values = operator_rules.weights(operation).content.numpy()
    values = values.reshape(len(values), -1, values.shape[-1])
    largest = np.maximum(values.max(axis=1), -values.min(axis=1)).astype(np.float64)
    return Magnitudes(largest, np.square(values, dtype=np.float64).sum(axis=1), values.shape[1])


def scale_results(operation: Operation, factors: Array) -> None:
    """Makes a layer's results stronger by a factor a channel, in place."""
    values, bias = float_weights(operation)
    axis = WEIGHT_AXIS[operation.code]
    across = [-1 if index == axis else 1 for index in range(values.ndim)]
    replace_weights(operation, values * factors.reshape(across), bias * factors)


def scale_operand(operation: Operation, factors: Array) -> None:
    """Lets a layer read an operand that is stronger by a factor a channel, in place."""
    values, bias = float_weights(operation)
    each = np.repeat(factors, operation.options["multiplier"]) if operation.code == "DEPTHWISE_CONV_2D" else factors
    replace_weights(operation, values / each, bias)


def apply(state: QuantizationState) -> bool:
    """The step: the program with even channels, observed anew; unless asked for, where they are far from even only."""
    least = 0.0 if state.options.equalize else step_limits.LEAST_EQUALIZATION_GAIN_DB
    state.program, changed = equalize_across_layers(state.program, state.seen, least)
    if changed:
        state.notes.append(f"made the channels of {counted(changed, 'tensor')} even across layers")
        reobserve(state, "seen evened")
    return changed > 0
