"""Gives what comes into a program finer codes, when their steps are much of all noise.

Cepstra and other features come in with strong and weak channels side by side, which one scale for all does not suit.
One operation on floats behind the input makes up for it, and the first layer's weights undo what it does:

    y = W x      becomes    y = (W / f) (f * x)              for a layer that has weights of its own for each number
                 or         y = [W/2 W/2] (x + [-s/4, s/4])  for a convolution over one channel, by replication

XNNPACK's convolutions take input channels by four, so that copies of an only channel cost next to nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import HYBRID
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR, float_constant
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.sensitivity import RESUMED, decibels, noise_of_codes, powers_of_codes
from pocketgraph.quantization.observing.calibration import observe_tensors
from pocketgraph.quantization.ranges.range_selection import choose


@dataclass(frozen=True)
class _EqualizedInput:
    """A program whose input has finer codes.

    Attributes:
        program: the program, which computes the same.
        old, new: the tensor whose codes were coarse, and the one that has codes now.
        layer, changed: the first layer, as it was and as it is.
        floats: the operations before it, which stay in float.
    """

    program: Program
    old: Value
    new: Value
    layer: Operation
    changed: Operation
    floats: list[Operation]

    @property
    def note(self) -> str:
        """What was done and why, in a sentence."""
        how = "copied with staggered steps" if self.floats[-1].code == "ADD" else "its channels made even"
        return f"{self.old.name}: {how}, because the steps of what comes in would be much of the noise"


def equalize_input(
    program: Program,
    seen: Mapping[Value, Observation],
    ranges: Mapping[Value, Range],
    sensitivity: Mapping[Value, float],
) -> _EqualizedInput | None:
    """The program with a finer input, where that is needed and possible.

    Args:
        program: the float program; it stays as it is.
        seen, ranges: what values the tensors take, and the ranges chosen for them.
        sensitivity: the noise that each tensor's codes cause alone.
    """
    for value in program.inputs:
        noise = sensitivity.get(value, 0.0)
        if (
            noise >= step_limits.MUCH_NOISE_SHARE * sum(sensitivity.values())
            and decibels(noise) < step_limits.QUIET_INPUT_DECIBELS
        ):
            return _finer(program, value, seen, ranges)
    return None


def _finer(
    program: Program, value: Value, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range]
) -> _EqualizedInput | None:
    uses, before, floats = program.uses(), value, []
    while True:
        if uses[before] != 1 or before in program.outputs:
            return None
        reader = next(operation for operation in program.operations if before in operation.inputs)
        if reader.code != "RESHAPE":
            break
        floats.append(reader)
        before = reader.outputs[0]
    if not operator_rules.can_quantize(reader) or reader.code not in HYBRID:
        return None
    kernel = operator_rules.weights(reader)
    if operator_rules.data(reader) is not before or uses[kernel] != 1:
        return None
    values, _ = float_weights(reader)
    if reader.code == "FULLY_CONNECTED":
        factors = _factors(seen[value], value.shape[-1])
        if factors is None or values.shape[1] % len(factors):
            return None
        each = np.tile(factors, values.shape[1] // len(factors))
        code, operand, values = "MUL", np.resize(factors, before.shape[-1:]), values / each
        made = Value(f"{value.name}/even", FLOAT, before.shape)
        if before.shape[-1] % len(factors):
            return None
    else:
        channels = before.shape[3]
        weights = [operator_rules.weights(o).size for o in program.operations if o.code in LINEAR]
        room = int(step_limits.MOST_COPIED_WEIGHTS_SHARE * sum(weights) / kernel.size)
        copies = min(step_limits.INPUT_CHANNELS_AT_A_TIME, 1 + room)
        if copies < 2 or kernel.shape[3] != 1 or channels != 1:
            return None
        step = ranges[value].quantization().scales[0]
        code, operand = "ADD", ((np.arange(copies) + 0.5) / copies - 0.5) * step
        values = np.repeat(values, copies, axis=3) / copies
        made = Value(f"{value.name}/staggered", FLOAT, (*before.shape[:3], copies))
    change = Operation(
        code, [before, float_constant(f"{made.name}/by", operand)], [made], {"activation": ""}, reader.nodes
    )
    changed = reader.replace(inputs=list(reader.inputs), outputs=list(reader.outputs), options=dict(reader.options))
    changed.inputs[LINEAR[reader.code][0]] = made
    changed.inputs[LINEAR[reader.code][1]] = float_constant(kernel.name, values)
    operations = list(program.operations)
    at = operations.index(reader)
    operations[at : at + 1] = [change, changed]
    result = Program(list(program.inputs), list(program.outputs), operations)
    return _EqualizedInput(result, value, made, reader, changed, [*floats, change])


def _factors(seen: Observation, channels: int) -> Array | None:
    """How much stronger to make each channel so that all reach as far; None when they do already."""
    if seen.channel_low is None or seen.channel_high is None or len(seen.channel_low) != channels:
        return None
    strength = np.maximum(np.abs(seen.channel_low), np.abs(seen.channel_high)).astype(np.float64)
    if not strength.max(initial=0) > 0:
        return None
    result: Array = strength.max() / np.maximum(strength, step_limits.WEAKEST_CHANNEL_SHARE * strength.max())
    return None if np.allclose(result, 1, atol=0.1) else result


def apply(state: QuantizationState) -> bool:
    """The step: the program with finer codes of what comes in, where that lessens the noise."""
    found = equalize_input(state.program, state.seen, state.ranges, state.sensitivity)
    if found is None or found.layer not in state.coded:
        return False
    seen = observe_tensors(state, found.program, [found.new])
    span = choose(seen[found.new], state.range_method)
    samples = islice(state.samples(), len(state.resume.get(RESUMED)))  # those that the noise before was measured on
    powers = powers_of_codes(found.program, samples, {found.new: span}, threads=state.options.threads)
    noise = float(noise_of_codes(powers)[0])
    if noise >= state.sensitivity[found.old]:
        return False
    state.program, state.seen, state.ranges = found.program, seen, {**state.ranges, found.new: span}
    others = {value: other for value, other in state.sensitivity.items() if value is not found.old}
    state.sensitivity = {found.new: noise, **others}
    state.stay_in_float(found.floats)
    state.notes.append(found.note)
    return True
