"""Gives narrow tensors finer steps by computing channels several times, each copy's steps a part of a step apart.

    y = relu6(W x + b);  z = V y     becomes     y' = relu6([W; W] x + [b - s/4; b + s/4]);  z = [V/2 V/2] y'

for a tensor whose codes are a step ``s`` apart: the two roundings of a number fall on either side of it more often than
not, and their mean has steps of ``s / 2``. Depthwise layers and pooling between the two layers take the copies along.

The first layers of a narrow network have a few channels that all later ones depend on, so that their steps are most of
the noise; and often some of these channels are constant, as batch norm with a scale of nearly 0 leaves them. Copies go
where those were, which costs nothing, and beyond that for as much additional work as the caller allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATION_BOUNDS
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights, replace_weights
from pocketgraph.quantization.core.value_range import Range

T = TypeVar("T")
PASSING = ("AVERAGE_POOL_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D")
"""What may stand between two layers: it treats each channel by itself."""


@dataclass(frozen=True)
class ChannelChain:
    """A layer that mixes channels, what treats each of its channels by itself, and the layer that mixes them next.

    Attributes:
        places: where the operations stand in the program, in order.
        idle: bool [channels]: those that always have the same value.
        rests: float64 [channels]: for an idle channel, its value as the last layer reads it.
        weight: float64 [channels]: how strongly what is wrong with a channel comes out of the last layer, as a square.
    """

    places: tuple[int, ...]
    idle: Array
    rests: Array
    weight: Array

    @property
    def width(self) -> int:
        """How many channels there are."""
        return len(self.idle)

    @property
    def live(self) -> int:
        """How many channels are not idle."""
        return self.width - int(self.idle.sum())

    def copies(self, width: int) -> Array:
        """How many times to compute each live channel so that they fill a tensor of this width, int [live]."""
        counts = np.ones(self.live, np.int64)
        weight = self.weight[~self.idle]
        for _ in range(width - self.live):
            gain = weight * (1.0 / counts**2 - 1.0 / (counts + 1) ** 2)
            counts[gain.argmax()] += 1
        result: Array = counts
        return result

    def left(self, width: int) -> float:
        """The share of the noise that is left with this width: ``n`` copies have steps of an ``n``-th."""
        weight = self.weight[~self.idle]
        return float((weight / self.copies(width) ** 2).sum() / max(weight.sum(), 1e-300))


@dataclass(frozen=True)
class Replication:
    """A program with copied channels, which computes the same as the one it was made from.

    Attributes:
        shifts: for each widened tensor by how many steps the codes of each channel are to lie above its numbers.
        sources: for each widened tensor the one whose place it took, and which of its channels each one is.
        left: the share of each widened tensor's noise that is left.
        added: the additional work, as a share of the program's; see ``int8_effort``.
    """

    program: Program
    shifts: Mapping[Value, Array]
    sources: Mapping[Value, tuple[Value, Array]]
    left: Mapping[Value, float]
    added: float = 0.0

    def carried(self, known: Mapping[Value, T]) -> dict[Value, T]:
        """What is known of the tensors of the program before, for those of this one."""
        result = dict(known)
        for value, (old, _) in self.sources.items():
            if old in result:
                result[value] = result.pop(old)
        return result

    def observed(self, seen: Mapping[Value, Observation]) -> dict[Value, Observation]:
        """What was seen of the tensors of the program before, for those of this one."""
        result = self.carried(seen)
        for value, (_, source) in self.sources.items():
            if value in result:
                result[value] = result[value].of_channels(source)
        return result

    def relieved(self, sensitivity: Mapping[Value, float]) -> dict[Value, float]:
        """The noise that each tensor's codes cause alone, estimated for the widened ones."""
        result = self.carried(sensitivity)
        return {value: noise * self.left.get(value, 1.0) for value, noise in result.items()}

    def note(self) -> str:
        """What was done and why, in a sentence."""
        wide = [f"{value.name} ({old.shape[-1]} to {value.shape[-1]})" for value, (old, _) in self.sources.items()]
        idle = sum(old.shape[-1] - len(set(source.tolist())) for old, source in self.sources.values())
        text = f"computed channels of {', '.join(wide)} more than once, their steps staggered, so that they are finer"
        if idle:
            text += f"; {idle} channels that are always the same made room"
        if self.added:
            text += f"; expect up to {self.added:.0%} more time, {option('widen')}=0 leaves the channels as they are"
        return text


def replicate_channels(
    program: Program,
    coded: Collection[Operation],
    ranges: Mapping[Value, Range],
    sensitivity: Mapping[Value, float],
    quiet: float,
    most: float,
) -> Replication:
    """Copies channels where that spares most noise for its work.

    Args:
        program: the float program; it stays as it is.
        coded: the operations that will compute with codes.
        ranges: of the tensors. That no value will be outside of them is what proves channels constant.
        sensitivity: the noise that each tensor's codes cause alone.
        quiet: the sum of noise below which nothing is done.
        most: how much work may be added, as a share of the program's.
    """
    found = {chain.places: chain for chain in chains(program, coded, ranges)}
    total, noise = (
        sum(sensitivity.values()),
        {places: _noise(program, chain, sensitivity) for places, chain in found.items()},
    )
    plain = sum(step_limits.int8_effort(operation) for operation in program.operations)
    widths: dict[tuple[int, ...], int] = {}
    best = _widened(program, found, widths)
    left = total
    while left > quiet:
        steps = []
        for places, chain in found.items():
            now = widths.get(places, chain.live)
            width = next((wide for wide in (chain.width, 2 * chain.width) if wide > now), 0)
            if not width or not chain.live:
                continue
            gain = noise[places] * (chain.left(now) - chain.left(width))
            tried = _widened(program, found, {**widths, places: width})
            added = sum(step_limits.int8_effort(operation) for operation in tried.program.operations) / plain - 1
            if gain >= step_limits.WORTHWHILE_NOISE_SHARE * total and added <= most:
                steps.append((gain / max(added - best.added, 1e-6), gain, places, width, replace(tried, added=added)))
        if not steps:
            break
        _, gain, places, width, best = max(steps, key=lambda step: step[:2])
        widths[places] = width
        left -= gain
    return best


def chains(program: Program, coded: Collection[Operation], ranges: Mapping[Value, Range]) -> list[ChannelChain]:
    """Where channels can be copied."""
    inside = set(coded)
    uses = Counter(value for operation in program.operations for value in operation.inputs if value is not None)
    readers: dict[Value, int] = {}
    for at, operation in enumerate(program.operations):
        readers.update((value, at) for value in operation.inputs if value is not None)
    found = []
    for at, first in enumerate(program.operations):
        if not _mixes(first, inside, uses) or first.outputs[0].shape[3] > step_limits.WIDEST_REPLICATED_CHANNELS:
            continue
        places = [at]
        while True:
            value = program.operations[places[-1]].outputs[0]
            if uses[value] != 1 or value in program.outputs or value not in ranges:
                break
            follower = program.operations[readers[value]]
            places.append(readers[value])
            if _mixes(follower, inside, uses) and operator_rules.data(follower) is value:
                found.append(ChannelChain(tuple(places), *_idle(program, places, ranges), _weight(program, places)))
                break
            if not _passes(follower, inside, uses):
                break
    return found


def _mixes(operation: Operation, coded: Collection[Operation], uses: Mapping[Value, int]) -> bool:
    if operation.code != "CONV_2D" or operation not in coded or uses[operator_rules.weights(operation)] > 1:
        return False
    return operator_rules.weights(operation).shape[3] == operator_rules.data(operation).shape[3]


def _passes(operation: Operation, coded: Collection[Operation], uses: Mapping[Value, int]) -> bool:
    if operation.code not in PASSING or operation not in coded:
        return False
    if operation.code == "DEPTHWISE_CONV_2D":
        return operation.options["multiplier"] == 1 and uses[operator_rules.weights(operation)] == 1
    return True


def _idle(program: Program, places: list[int], ranges: Mapping[Value, Range]) -> tuple[Array, Array]:
    """Which channels are constant for whatever values of the first operand are in its range, and what they are."""
    first = program.operations[places[0]]
    values, bias = float_weights(first)
    span = ranges[operator_rules.data(first)]
    low, high = min(span.low, 0.0), max(span.high, 0.0)
    upper, lower = np.maximum(values, 0), np.minimum(values, 0)
    least = _activated(first, (upper * low + lower * high).sum(axis=(1, 2, 3)) + bias)
    greatest = _activated(first, (upper * high + lower * low).sum(axis=(1, 2, 3)) + bias)
    own = ranges[first.outputs[0]]
    idle = greatest - least <= step_limits.CONSTANT_CHANNEL_SHARE * max(own.high - own.low, 1e-30)
    rests = (least + greatest) / 2
    for place in places[1:]:
        operation = program.operations[place]
        if operation.code.endswith("POOL_2D"):
            continue  # what is outside of the picture does not count
        values, bias = float_weights(operation)
        if operation.options["padding"] == "SAME" and max(values.shape[1:3]) > 1:
            idle = idle & (rests == 0)  # others are no longer constant at the border
        if operation.code == "DEPTHWISE_CONV_2D":
            rests = _activated(operation, rests * values.sum(axis=(0, 1, 2)) + bias)
    return idle, rests


def _weight(program: Program, places: list[int]) -> Array:
    result = np.ones(program.operations[places[0]].outputs[0].shape[3])
    for place in places[1:]:
        operation = program.operations[place]
        if operation.code in LINEAR:
            values, _ = float_weights(operation)
            result = result * (values**2).sum(axis=(0, 1, 2))
    return result


def _activated(operation: Operation, values: Array) -> Array:
    low, high = ACTIVATION_BOUNDS.get(operation.options.get("activation", ""), (-np.inf, np.inf))
    result: Array = np.clip(values, low, high)
    return result


def _noise(program: Program, chain: ChannelChain, sensitivity: Mapping[Value, float]) -> float:
    return sum(sensitivity.get(program.operations[place].outputs[0], 0.0) for place in chain.places[:-1])


def _widened(
    program: Program, found: Mapping[tuple[int, ...], ChannelChain], widths: Mapping[tuple[int, ...], int]
) -> Replication:
    """The program with these widths of chains."""
    operations = list(program.operations)
    shifts: dict[Value, Array] = {}
    sources: dict[Value, tuple[Value, Array]] = {}
    left: dict[Value, float] = {}
    for places, width in widths.items():
        chain = found[places]
        counts = chain.copies(width)
        source = np.repeat(np.flatnonzero(~chain.idle), counts)
        turn = np.concatenate([np.arange(count) for count in counts])
        each = np.repeat(counts, counts)
        made: Value | None = None
        for place in places:
            old = operations[place]
            new = old.replace(inputs=list(old.inputs), outputs=list(old.outputs), options=dict(old.options))
            if made is not None:
                new.inputs[0] = made
            if place == places[-1]:
                _read_copies(new, chain, source, each)
            else:
                if new.code in LINEAR:
                    _make_copies(new, source)
                value = old.outputs[0]
                made = Value(value.name, FLOAT, (*value.shape[:-1], width))
                new.outputs = [made]
                sources[made] = value, source
                left[made] = chain.left(width)
                if new.code in LINEAR:
                    shifts[made] = (turn + 0.5) / each - 0.5
            operations[place] = new
    return Replication(Program(list(program.inputs), list(program.outputs), operations), shifts, sources, left)


def _make_copies(operation: Operation, source: Array) -> None:
    values, bias = float_weights(operation)
    axis = WEIGHT_AXIS[operation.code]
    replace_weights(operation, np.take(values, source, axis=axis), bias[source])


def _read_copies(operation: Operation, chain: ChannelChain, source: Array, each: Array) -> None:
    values, bias = float_weights(operation)
    constant = values.sum(axis=(1, 2))[:, chain.idle] @ chain.rests[chain.idle]
    replace_weights(operation, values[..., source] / each, bias + constant)


def apply(state: QuantizationState) -> bool:
    """The step: finer steps where a few channels decide."""
    quiet = 10 ** (-state.options.quiet / 10)
    finer = replicate_channels(state.program, state.coded, state.ranges, state.sensitivity, quiet, state.options.widen)
    if not finer.sources:
        return False
    state.program, state.shifts = finer.program, finer.shifts
    state.seen = finer.observed(state.seen)
    state.ranges = finer.carried(state.ranges)
    state.sensitivity = finer.relieved(state.sensitivity)
    state.notes.append(finer.note())
    return True
