"""Makes channels equally strong wherever only layers read them that treat each channel by itself.

    a = W x;  b = V y;  both = [a, b];  z = relu(k both + c)     becomes     a' = S a;  …;  z = relu((k / S) both' + c)

Parts that are joined have the same codes, so that weak ones would have next to none. The factors go into weights that
have a scale for each channel on both sides (depthwise ones, and each layer's results), which costs nothing: unlike
cross-layer equalization (see ``equalize``), which moves the trouble on to weights that channels share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import POOLS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.channels.cross_layer_equalization import scale_operand, scale_results
from pocketgraph.quantization.core import operator_rules, step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.observing.calibration import observe_tensors
from pocketgraph.quantization.program_pass import copied

HOMOGENEOUS = ("", "RELU")  # activations that scaling commutes with


def equalize_channels(program: Program, seen: Mapping[Value, Observation]) -> tuple[Program, list[Value]]:
    """A program that computes the same, and its tensors whose values are others than in ``seen``.

    Args:
        program: the float program; it stays as it is, and is the result when there is nothing to gain. A new one has
            the same tensors but for weights.
        seen: what values the tensors take.
    """
    result = copied(program)
    channels = _Channels(result, seen)
    factors = channels.factors()
    if not (factors > 1).any():
        return program, []
    for operation in channels.making:
        scale_results(operation, factors[channels.of[operation.outputs[0]]])
    for operation in channels.taking:
        scale_operand(operation, factors[channels.of[operator_rules.data(operation)]])
    return result, [value for value, numbers in channels.of.items() if (factors[numbers] > 1).any()]


class _Channels:
    """The channels of layers' results, numbered throughout the program, and which tensors have which.

    Attributes:
        of: the numbers of each tensor's channels, int [channels].
        making: the layers whose results' channels are numbered.
        taking: the layers that can undo a factor.
    """

    def __init__(self, program: Program, seen: Mapping[Value, Observation]) -> None:
        self.of: dict[Value, Array] = {}
        self.making: list[Operation] = []
        self.taking: list[Operation] = []
        self._strength: list[Array] = []
        self._fixed: set[int] = set()
        self._count = 0
        self._weights = Counter(o.inputs[1] for o in program.operations if is_layer(o))
        for operation in program.operations:
            if operation.code in POOLS or operation.code == "CONCATENATION":
                self._pass_on(operation)
            else:
                self._take(operation)
                self._make(operation, seen)
        for value in program.outputs:
            self._fix(value)

    def _is_own_layer(self, operation: Operation) -> bool:
        is_own = operator_rules.is_quantizable_layer(operation) and self._weights[operation.inputs[1]] == 1
        return is_own and operation.code != "TRANSPOSE_CONV"

    def _make(self, operation: Operation, seen: Mapping[Value, Observation]) -> None:
        if not self._is_own_layer(operation) or operation.options.get("activation", "") not in HOMOGENEOUS:
            return
        value = operation.outputs[0]
        found = seen.get(value)
        if found is None or found.channel_low is None or found.channel_high is None:
            return
        strength = np.maximum(np.abs(found.channel_low), np.abs(found.channel_high)).astype(np.float64)
        if len(strength) != value.shape[-1]:
            return
        self.of[value] = np.arange(self._count, self._count + len(strength))
        self._count += len(strength)
        self._strength.append(strength)
        self.making.append(operation)

    def _pass_on(self, operation: Operation) -> None:
        values = [value for value in operation.inputs if value is not None]
        result = operation.outputs[0]
        is_along = operation.code != "CONCATENATION" or operation.options.get("axis") in (-1, len(result.shape) - 1)
        is_plain = not operation.options.get("activation") and is_along and all(value in self.of for value in values)
        if is_plain:
            self.of[result] = np.concatenate([self.of[value] for value in values])
        else:
            for value in values:
                self._fix(value)

    def _take(self, operation: Operation) -> None:
        is_taking = operation.code == "DEPTHWISE_CONV_2D" and self._is_own_layer(operation)
        for value in operation.inputs:
            if value is None or value not in self.of:
                continue
            if is_taking and value is operator_rules.data(operation):
                self.taking.append(operation)
            else:
                self._fix(value)

    def _fix(self, value: Value) -> None:
        if value in self.of:
            self._fixed.update(self.of[value].tolist())

    def factors(self) -> Array:
        """How much stronger to make each channel, float64 [channels]: as strong as the strongest beside it."""
        if not self._strength:
            return np.ones(0)
        strength = np.concatenate(self._strength)
        strongest = strength.copy()
        for _ in range(2):  # what is beside a channel in one tensor may be beside others in another
            for numbers in self.of.values():
                strongest[numbers] = strongest[numbers].max()
        is_alive = strength > strongest / step_limits.DEAD_CHANNEL_RATIO
        factors = np.where(is_alive, strongest / np.where(is_alive, strength, 1), 1.0)
        factors[factors < step_limits.WORTHWHILE_FACTOR] = 1.0
        factors[list(self._fixed)] = 1.0
        result: Array = factors
        return result


def apply(state: QuantizationState) -> bool:
    """The step: the program with even channels, what changed observed anew."""
    state.program, changed = equalize_channels(state.program, state.seen)
    if not changed:
        return False
    state.notes.append(
        f"made the channels of {counted(len(changed), 'tensor')} even in front of layers that take each by itself"
    )
    state.seen = observe_tensors(state, state.program, changed)
    return True
