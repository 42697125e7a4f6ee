"""Rewrites a float program as one that computes with int8 codes.

    x ─CONV_2D─ RELU6 ─SOFTMAX─ y
becomes, with float inputs and outputs and the softmax kept in float,
    x ─QUANTIZE─ CONV_2D(int8) ─DEQUANTIZE─ SOFTMAX ─ y
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.quantize import operators
from pocketgraph.quantize.operators import KINDS, PRESCRIBED, Kind, float_operands
from pocketgraph.quantize.ranges import Range, codes
from pocketgraph.quantize.weights import Weights, rounded
from pocketgraph.runtime.engines.litert.constant import Constant
from pocketgraph.runtime.engines.litert.linear import LINEAR
from pocketgraph.runtime.engines.litert.program import Operation, Program, Quantization, Value

ADDING = ("ADD", "SUB", "SQUARED_DIFFERENCE")
MOST_APART = 2.0**14  # times that an operand's step may be the result's; LiteRT ends the process at 2^19
ENORMOUS = 1e30  # of a constant that stands for infinity, such as what a maximum is padded with


@dataclass(frozen=True)
class Recipe:
    """How to quantize a program.

    Attributes:
        ranges: what values each tensor takes; a tensor without range is kept in float.
        keep: operations that go on computing in float.
        weights: codes of layers whose weights are not just rounded.
        io: ``float`` or ``int8``: what goes in and comes out.
        hybrid: layers with int8 weights whose operand LiteRT quantizes anew each time and whose results are float.
    """

    ranges: Mapping[Value, Range]
    keep: Collection[Operation] = ()
    weights: Mapping[Operation, Weights] = field(default_factory=dict)
    io: str = "float"
    hybrid: Collection[Operation] = ()


@dataclass
class Converted:
    """A quantized program, and what became of each tensor of the float program.

    Attributes:
        program: the quantized program.
        values: the int8 or float value that stands for each tensor.
        quantized: the float program's operations that compute with codes now.
    """

    program: Program
    values: dict[Value, Value]
    quantized: list[Operation]


def convert(program: Program, recipe: Recipe) -> Converted:
    """The program with int8 codes wherever the recipe and LiteRT's operators allow it; the argument stays as it is.

    Raises:
        UsageError: ``recipe.io`` is neither ``float`` nor ``int8``.
    """
    if recipe.io not in ("float", "int8"):
        raise UsageError(f"inputs and outputs are float or int8, not '{recipe.io}'")
    return _Conversion(program, recipe).run()


def coded_operations(program: Program, recipe: Recipe) -> list[Operation]:
    """The operations that will compute with codes."""
    kept = {*recipe.keep, *recipe.hybrid}
    made_in_float: set[Value] = set()
    chosen = []
    for operation in program.operations:
        moving = [value for value in float_operands(operation) if value.constant is None]
        known = all(value in recipe.ranges for value in moving) and all(
            value in recipe.ranges or KINDS.get(operation.code) in (Kind.SAME, Kind.FIXED)
            for value in operation.outputs
        )
        # Moving data about in codes pays only if they are codes already.
        idle = KINDS.get(operation.code) is Kind.SAME and all(value in made_in_float for value in moving)
        if operation not in kept and known and not idle and operators.can_quantize(operation):
            chosen.append(operation)
        else:
            made_in_float.update(operation.outputs)
    return chosen


def shared_codes(program: Program, coded: Collection[Operation]) -> dict[Value, Value]:
    """For each tensor the one that stands for all that must have its codes."""
    leader: dict[Value, Value] = {}

    def find(value: Value) -> Value:
        while leader.get(value, value) is not value:
            value = leader[value]
        return value

    for operation in coded:
        if KINDS[operation.code] is not Kind.SAME:
            continue
        members = [v for v in (*float_operands(operation), *operation.outputs) if v.constant is None]
        for value in members[1:]:
            leader[find(value)] = find(members[0])
    values = [*program.inputs, *(value for operation in program.operations for value in operation.outputs)]
    return {value: find(value) for value in values}


class _Conversion:
    def __init__(self, program: Program, recipe: Recipe) -> None:
        self.program = program
        self.recipe = recipe
        while True:
            self.coded = coded_operations(program, self.recipe)
            self.leaders = shared_codes(program, self.coded)
            self.quantizations = self.choose()
            beyond = [operation for operation in self.coded if self.is_beyond(operation)]
            if not beyond:
                break
            self.recipe = replace(self.recipe, keep=[*self.recipe.keep, *beyond])
        self.done: list[Operation] = []
        self.as_codes: dict[Value, Value] = {}
        self.as_floats: dict[Value, Value] = {}
        self.kernels: dict[tuple[str, bytes, Quantization], Value] = {}

    def choose(self) -> dict[Value, Quantization]:
        """The codes of each group of tensors that share them, by the group's leader."""
        ranges: dict[Value, Range] = {}
        prescribed: dict[Value, list[Quantization]] = {}
        makers: dict[Value, int] = {}

        def cover(value: Value, span: Range | None) -> None:
            leader = self.leaders.get(value, value)
            if span is not None:
                ranges[leader] = ranges[leader].union(span) if leader in ranges else span

        touched = {value for operation in self.coded for value in (*operation.inputs, *operation.outputs)}
        for value in self.leaders:
            if value in touched:
                cover(value, self.recipe.ranges.get(value))
        for operation in self.coded:
            kind = KINDS[operation.code]
            for value in operation.outputs:
                leader = self.leaders[value]
                makers[leader] = makers.get(leader, 0) + (kind is not Kind.SAME)
                if kind is Kind.FIXED:
                    prescribed.setdefault(leader, []).append(PRESCRIBED[operation.code])
            if kind is Kind.SAME:
                for value in float_operands(operation):
                    if value.constant is not None:
                        numbers = value.constant.numpy()
                        usual = numbers[np.abs(numbers) < ENORMOUS]
                        if usual.size:
                            cover(operation.outputs[0], Range(float(usual.min()), float(usual.max())))
        chosen = {leader: span.quantization() for leader, span in ranges.items()}
        for leader, wanted in prescribed.items():
            if len(wanted) == makers[leader] and len(set(wanted)) == 1:
                chosen[leader] = wanted[0]
        return chosen

    def is_beyond(self, operation: Operation) -> bool:
        """Whether the steps of an addition's operands and result are too far apart for LiteRT's 32-bit arithmetic."""
        if operation.code not in ADDING:
            return False
        operands = [self.step(operation, value) for value in float_operands(operation)]
        return max(operands) / self.quantization(operation.outputs[0]).scales[0] > MOST_APART

    def step(self, operation: Operation, value: Value) -> float:
        quantization = self.quantization(value) if value.constant is None else self.of_constant(operation, value)
        return quantization.scales[0]

    def of_constant(self, operation: Operation, value: Value) -> Quantization:
        """The codes of a constant operand."""
        if KINDS[operation.code] is Kind.SAME:
            return self.quantization(operation.outputs[0])
        assert value.constant is not None
        numbers = value.constant.numpy()
        return Range(float(numbers.min()), float(numbers.max())).quantization()

    def run(self) -> Converted:
        inputs = [self.entering(value) for value in self.program.inputs]
        coded = set(self.coded)
        for operation in self.program.operations:
            if operation in coded:
                self.with_codes(operation)
            elif operation in self.recipe.hybrid:
                self.with_coded_weights(operation)
            else:
                self.with_floats(operation)
        outputs = [self.leaving(value) for value in self.program.outputs]
        result = Program(inputs, outputs, self.done)
        result.drop_unused()
        return Converted(result, {**self.as_floats, **self.as_codes}, self.coded)

    def entering(self, value: Value) -> Value:
        has_codes = value.dtype is FLOAT and self.leaders[value] in self.quantizations
        if self.recipe.io == "int8" and has_codes:
            made = Value(value.name, INT8, value.shape, None, self.quantization(value))
            self.as_codes[value] = made
            return made
        self.as_floats[value] = value
        return value

    def leaving(self, value: Value) -> Value:
        if self.recipe.io == "int8" and value in self.as_codes:
            return self.as_codes[value]
        return self.floats(value)

    def quantization(self, value: Value) -> Quantization:
        return self.quantizations[self.leaders[value]]

    def codes(self, value: Value) -> Value:
        """The value as codes, converted when needed."""
        if value not in self.as_codes:
            made = Value(f"{value.name}/int8", INT8, value.shape, None, self.quantization(value))
            self.done.append(Operation("QUANTIZE", [self.floats(value)], [made]))
            self.as_codes[value] = made
        return self.as_codes[value]

    def floats(self, value: Value) -> Value:
        """The value as plain numbers, converted when needed."""
        if value.constant is not None or value.dtype is not FLOAT:
            return self.as_floats.get(value, value)
        if value not in self.as_floats:
            made = Value(f"{value.name}/float", FLOAT, value.shape)
            self.done.append(Operation("DEQUANTIZE", [self.as_codes[value]], [made]))
            self.as_floats[value] = made
        return self.as_floats[value]

    def with_floats(self, operation: Operation) -> None:
        operands = [None if value is None else self.floats(value) for value in operation.inputs]
        for value in operation.outputs:
            self.as_floats[value] = value
        self.done.append(
            Operation(operation.code, operands, list(operation.outputs), dict(operation.options), operation.nodes)
        )

    def with_coded_weights(self, operation: Operation) -> None:
        """A layer in float but for its weights."""
        self.with_floats(operation)
        made = self.done[-1]
        chosen = self.recipe.weights.get(operation) or rounded(operation, 1.0)
        _, at_weights, at_bias = LINEAR[operation.code]
        name = operators.weights(operation).name
        made.inputs += [None] * (at_bias + 1 - len(made.inputs))
        made.inputs[at_weights] = self.kernel(name, chosen)
        bias = chosen.bias.astype(np.float32)
        made.inputs[at_bias] = Value(f"{name}/bias", FLOAT, bias.shape, Constant.of(bias))
        if operation.code == "FULLY_CONNECTED":
            made.options["asymmetric_inputs"] = True

    def with_codes(self, operation: Operation) -> None:
        operands: list[Value | None]
        if KINDS[operation.code] is Kind.WEIGHTED:
            operands = self.weighted_operands(operation)
        else:
            operands = [None if value is None else self.operand(operation, value) for value in operation.inputs]
        results, requantized = [], []
        for value in operation.outputs:
            made = Value(value.name, INT8, value.shape, None, self.quantization(value))
            self.as_codes[value] = made
            wanted = PRESCRIBED.get(operation.code)
            if wanted is not None and wanted != made.quantization:
                first = Value(f"{value.name}/prescribed", INT8, value.shape, None, wanted)
                requantized.append(Operation("QUANTIZE", [first], [made]))
                made = first
            results.append(made)
        self.done.append(Operation(operation.code, operands, results, dict(operation.options), operation.nodes))
        self.done += requantized

    def operand(self, operation: Operation, value: Value) -> Value:
        if value.dtype is not FLOAT:
            return self.floats(value)
        if value.constant is None:
            return self.codes(value)
        quantization = self.of_constant(operation, value)
        constant = Constant.of(codes(value.constant.numpy(), quantization))
        return Value(f"{value.name}/int8", INT8, value.shape, constant, quantization)

    def kernel(self, name: str, chosen: Weights) -> Value:
        """Weights as a constant; the same one for layers that have the same codes, as an unrolled loop's steps do."""
        quantization = Quantization(
            tuple(float(scale) for scale in chosen.scales), (0,) * len(chosen.scales), chosen.axis
        )
        key = name, chosen.codes.tobytes(), quantization
        if key not in self.kernels:
            constant = Constant.of(chosen.codes)
            self.kernels[key] = Value(f"{name}/int8", INT8, chosen.codes.shape, constant, quantization)
        return self.kernels[key]

    def weighted_operands(self, operation: Operation) -> list[Value | None]:
        at_data, at_weights, at_bias = LINEAR[operation.code]
        source = self.codes(operators.data(operation))
        assert source.quantization is not None
        data_scale = source.quantization.scales[0]
        chosen = self.recipe.weights.get(operation) or rounded(operation, data_scale)
        count = len(chosen.scales)
        scales = tuple(float(scale) for scale in chosen.scales)
        name = operators.weights(operation).name
        kernel = self.kernel(name, chosen)
        limit = 2**31 - 1
        offsets = np.clip(np.rint(chosen.bias / (chosen.scales * data_scale)), -limit, limit).astype(np.int32)
        by_channel = Quantization(tuple(float(np.float32(s * data_scale)) for s in scales), (0,) * count, 0)
        bias = Value(f"{name}/bias", INT32, (count,), Constant.of(offsets), by_channel)
        operands = list(operation.inputs) + [None] * (at_bias + 1 - len(operation.inputs))
        operands[at_data], operands[at_weights], operands[at_bias] = source, kernel, bias
        return operands
