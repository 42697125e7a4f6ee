"""Gives the channels of a tensor like ranges, so that one scale does for all: cross-layer equalization.

    y = relu(W x + b);  z = V y      becomes      y' = relu(S W x + S b);  z = (V / S) y'

with a factor S for each channel of y (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
Correction", 2019). With RELU6 the factors are at least 1 and keep each channel below 3, where it stays what it was for
all values up to twice the largest one observed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import CONVOLUTIONS, POOLS, WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights, replace_weights
from pocketgraph.quantization.observing.calibration import reobserve
from pocketgraph.quantization.program_pass import copied

CLIPPED = 6.0  # where RELU6 ends
PASSING = POOLS
"""What may stand between two layers: it treats channels alike, and scaling commutes with it."""


def equalize_across_layers(
    program: Program, seen: Mapping[Value, Observation], mixing: float = 0.5
) -> tuple[Program, int]:
    """A program that computes the same with more even channels.

    Args:
        program: the float program; it stays as it is. The new one shares its tensors other than weights, so that
            ``seen`` must be observed anew.
        seen: what values the tensors take.
        mixing: how far channels are made even where the next layer mixes them, from 0 to 1. There a stronger channel
            means smaller weights, which lie less well on the steps of the output channel's scale. A depthwise layer has
            scales of its own for each channel; there it is always 1.

    Returns:
        The program, and how many tensors were made even.
    """
    result = copied(program)
    readers = result.consumers()
    producers = result.producers()
    done = 0
    for second in result.operations:
        first = _before(second, producers, readers, set(result.outputs))
        if first is None:
            continue
        observation = seen.get(first.outputs[0])
        if observation is None or observation.channel_low is None or observation.channel_high is None:
            continue
        power = 1.0 if second.code == "DEPTHWISE_CONV_2D" else mixing
        factors = _factors(first, observation.channel_low, observation.channel_high, power)
        if np.allclose(factors, 1):
            continue
        scale_results(first, factors)
        scale_operand(second, factors)
        done += 1
    return result, done


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
        if first.code not in PASSING or first.options.get("activation"):
            break
        source = first.inputs[0]
        assert source is not None
        value = source
    if first.code not in CONVOLUTIONS or not operator_rules.can_quantize(first):
        return None
    is_grouped = second.code == "CONV_2D" and operator_rules.weights(second).shape[3] != first.outputs[0].shape[3]
    homogeneous = first.options.get("activation", "") in ("", "RELU", "RELU6")
    return first if homogeneous and not is_grouped else None


def _factors(first: Operation, low: Array, high: Array, power: float) -> Array:
    """How much stronger to make each channel."""
    strength = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    alive = strength > strength.max(initial=0) / step_limits.DEAD_CHANNEL_RATIO
    if not alive.any():
        return np.ones_like(strength)
    limit = CLIPPED / step_limits.RELU6_ROOM if first.options.get("activation") == "RELU6" else float(strength.max())
    factors = np.where(alive, limit / np.where(alive, strength, 1), 1.0) ** power
    result: Array = np.maximum(factors, 1.0)
    return result


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
    """The step: the program with even channels, observed anew."""
    state.program, changed = equalize_across_layers(state.program, state.seen)
    state.notes.append(f"made the channels of {changed} tensors even")
    if changed:
        reobserve(state, "seen evened")
    return changed > 0
