"""Gives what comes into a program finer codes, when their steps are much of all noise.

Cepstra and other features come in with strong and weak channels side by side, which one scale for all does not suit.
One operation on floats behind the input makes up for it, and the first layer's weights undo what it does:

    y = W x      becomes    y = (W / f) (f * x)              for a layer that has weights of its own for each number
                 or         y = [W/2 W/2] (x + [-s/4, s/4])  for a convolution over one channel, as in ``stagger``

XNNPACK's convolutions take input channels by four, so that copies of an only channel cost next to nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.linear import LINEAR, float_constant
from pocketgraph.quantize import operators
from pocketgraph.quantize.harm import decibels
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.ranges import Range
from pocketgraph.quantize.running import Array
from pocketgraph.quantize.weights import float_weights

MUCH = 0.25  # of all noise, from which the input's is seen to
QUIET = 40.0  # decibels of the input's own noise, from which it is not
TOGETHER = 4  # input channels that a convolution takes at a time
LARGER = 0.15  # of all weights; what copies may add to them
WEAKEST = 1 / 64  # of the strongest channel; a weaker one counts as this strong


@dataclass(frozen=True)
class Entrance:
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


def finer_entrance(
    program: Program, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range], harm: Mapping[Value, float]
) -> Entrance | None:
    """The program with a finer input, where that is needed and possible.

    Args:
        program: the float program; it stays as it is.
        seen, ranges: what values the tensors take, and the ranges chosen for them.
        harm: the noise that each tensor's codes cause alone.
    """
    for value in program.inputs:
        noise = harm.get(value, 0.0)
        if noise >= MUCH * sum(harm.values()) and decibels(noise) < QUIET:
            return _finer(program, value, seen, ranges)
    return None


def _finer(
    program: Program, value: Value, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range]
) -> Entrance | None:
    uses, before, floats = program.uses(), value, []
    while True:
        if uses[before] != 1 or before in program.outputs:
            return None
        reader = next(operation for operation in program.operations if before in operation.inputs)
        if reader.code != "RESHAPE":
            break
        floats.append(reader)
        before = reader.outputs[0]
    if not operators.can_quantize(reader) or reader.code not in ("CONV_2D", "FULLY_CONNECTED"):
        return None
    kernel = operators.weights(reader)
    if operators.data(reader) is not before or uses[kernel] != 1:
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
        weights = [operators.weights(o).size for o in program.operations if o.code in LINEAR]
        room = int(LARGER * sum(weights) / kernel.size)
        copies = min(TOGETHER, 1 + room)
        if copies < 2 or kernel.shape[3] != 1 or channels != 1:
            return None
        step = ranges[value].quantization().scales[0]
        code, operand = "ADD", ((np.arange(copies) + 0.5) / copies - 0.5) * step
        values = np.repeat(values, copies, axis=3) / copies
        made = Value(f"{value.name}/staggered", FLOAT, (*before.shape[:3], copies))
    change = Operation(
        code, [before, float_constant(f"{made.name}/by", operand)], [made], {"activation": ""}, reader.nodes
    )
    changed = replace(reader, inputs=list(reader.inputs), outputs=list(reader.outputs), options=dict(reader.options))
    changed.inputs[LINEAR[reader.code][0]] = made
    changed.inputs[LINEAR[reader.code][1]] = float_constant(kernel.name, values)
    operations = list(program.operations)
    at = operations.index(reader)
    operations[at : at + 1] = [change, changed]
    result = Program(list(program.inputs), list(program.outputs), operations)
    return Entrance(result, value, made, reader, changed, [*floats, change])


def _factors(seen: Observation, channels: int) -> Array | None:
    """How much stronger to make each channel so that all reach as far; None when they do already."""
    if seen.channel_low is None or seen.channel_high is None or len(seen.channel_low) != channels:
        return None
    strength = np.maximum(np.abs(seen.channel_low), np.abs(seen.channel_high)).astype(np.float64)
    if not strength.max(initial=0) > 0:
        return None
    result: Array = strength.max() / np.maximum(strength, WEAKEST * strength.max())
    return None if np.allclose(result, 1, atol=0.1) else result
