"""Rewrites a float program as one that computes with int8 codes.

    x ─CONV_2D─ RELU6 ─SOFTMAX─ y
becomes, with float inputs and outputs and the softmax kept in float,
    x ─QUANTIZE─ CONV_2D(int8) ─DEQUANTIZE─ SOFTMAX ─ y
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pocketgraph.datasets.image_loading import Scale
from pocketgraph.errors import UsageError
from pocketgraph.graph.dtype import FLOAT, INT4, INT8, INT16, INT32, INT64, UINT8
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.quantization.conversion.average_pooling import average_pool_of_codes
from pocketgraph.quantization.conversion.equal_codes import same_codes
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.conversion_recipe import (
    ConversionRecipe,
    ConvertedProgram,
    quantized_operations,
    shared_quantization,
)
from pocketgraph.quantization.core.operator_rules import (
    OPERATOR_RULES,
    PRESCRIBED_INT8,
    PRESCRIBED_INT16,
    OperatorRule,
    float_operands,
    is_layer,
)
from pocketgraph.quantization.core.quantization_options import io_types
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import ROOM_OF_64_BITS, QuantizedWeights, largest_scale, rounded
from pocketgraph.quantization.core.value_range import Range, quantized

MOST_BYTE = 255  # a pixel's largest value

ADDITIONS = ("ADD", "SUB", "SQUARED_DIFFERENCE")
MOST_SCALE_RATIO = 2.0**14  # times that an operand's step may be the result's; LiteRT ends the process at 2^19
MOST_SCALE_RATIO_INT16 = 2.0**12  # of int16 codes; there it does so at 2^14
MOST_SUM_RATIO = 256.0  # times that the step of a layer's sums may be its result's; XNNPACK refuses the file from there
SMALLEST_BOUNDED_SCALE = 2.0**-28  # of results whose bounds at 1 and 6 LiteRT takes; their codes end far below 1
BEYOND_ALL_CODES = {"RELU6": "RELU", "RELU_N1_TO_1": ""}
"""Activations, and what is left of them, where no code is as large as their bound."""
STANDS_FOR_INFINITY = 1e30  # of a constant that stands for infinity, such as what a maximum is padded with


def convert(program: Program, recipe: ConversionRecipe) -> ConvertedProgram:
    """The program with codes wherever the recipe and LiteRT's operators allow it; the argument stays as it is.

    Raises:
        UsageError: ``recipe.io`` is none of the types for codes of these bits.
    """
    types = io_types(f"int{recipe.bits}")
    if recipe.io not in types:
        raise UsageError(f"inputs and outputs are {' or '.join(types)}, not '{recipe.io}'")
    return _Int8Conversion(program, recipe).run()


def tensor_codes(program: Program, recipe: ConversionRecipe) -> dict[Value, Quantization]:
    """The codes of each tensor that has some where ``convert`` does not keep its maker and its readers in float."""
    conversion = _Int8Conversion(program, recipe)
    known = conversion.quantizations
    return {value: known[leader] for value, leader in conversion.leaders.items() if leader in known}


class _Int8Conversion:
    def __init__(self, program: Program, recipe: ConversionRecipe) -> None:
        self.program = program
        self.recipe = recipe
        self.type = INT16 if recipe.bits == 16 else INT8
        self.prescribed = PRESCRIBED_INT16 if recipe.bits == 16 else PRESCRIBED_INT8
        while True:
            self.coded = quantized_operations(program, self.recipe)
            self.leaders = shared_quantization(program, self.coded)
            self.quantizations = self.choose()
            beyond = [operation for operation in self.coded if self.is_beyond(operation)]
            if not beyond:
                break
            self.recipe = replace(self.recipe, keep=[*self.recipe.keep, *beyond])
        self.done: list[Operation] = []
        self.as_codes: dict[Value, Value] = {}
        self.as_floats: dict[Value, Value] = {}
        self.as_bytes: dict[Value, Value] = {}
        self.constants: dict[tuple[Value, Quantization], Value] = {}
        self.kernels: dict[str, list[Value]] = {}

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
            kind = OPERATOR_RULES[operation.code]
            for value in operation.outputs:
                leader = self.leaders[value]
                makers[leader] = makers.get(leader, 0) + (kind is not OperatorRule.SAME)
                if kind is OperatorRule.FIXED:
                    prescribed.setdefault(leader, []).append(self.prescribed[operation.code])
            if kind is OperatorRule.SAME:
                for value in float_operands(operation):
                    if value in self.recipe.ranges and value.constant is not None:
                        cover(operation.outputs[0], self.recipe.ranges[value])
                    elif value.constant is not None:
                        numbers = value.constant.numpy()
                        usual = numbers[np.abs(numbers) < STANDS_FOR_INFINITY]
                        if usual.size:
                            cover(operation.outputs[0], Range(float(usual.min()), float(usual.max())))
        chosen = {leader: span.quantization(self.recipe.bits) for leader, span in ranges.items()}
        for leader, wanted in prescribed.items():
            if len(wanted) == makers[leader] and len(set(wanted)) == 1:
                chosen[leader] = wanted[0]
        if self.recipe.bits == 8:
            for operation in filter(is_layer, self.coded):
                self.reach_sums(operation, chosen)
        return chosen

    def reach_sums(self, operation: Operation, chosen: dict[Value, Quantization]) -> None:
        """Makes the steps of a layer's result coarser where its sums have far coarser ones: it is next to silent."""
        result = self.leaders[operation.outputs[0]]
        most = MOST_SUM_RATIO * chosen[result].scales[0]
        step = self.sum_step(operation, chosen, most)
        if step >= most:
            coarser = float(np.float32(2 * step / MOST_SUM_RATIO))
            chosen[result] = Quantization((coarser,), chosen[result].zero_points, chosen[result].axis)

    def sum_step(self, operation: Operation, chosen: Mapping[Value, Quantization], most: float) -> float:
        """What one more in a layer's 32-bit sum means in its largest channel; below ``most``, it may mean more."""
        data = operator_rules.data(operation)
        data_step = chosen[self.leaders.get(data, data)].scales[0]
        weights = self.recipe.weights.get(operation)
        if weights is not None:
            return data_step * weights.largest_scale
        return data_step * largest_scale(operation, data_step, most / data_step)

    def is_beyond(self, operation: Operation) -> bool:
        """Whether the steps of an addition's operands and result are too far apart for LiteRT's 32-bit arithmetic."""
        if operation.code not in ADDITIONS:
            return False
        operands = [self.step(operation, value) for value in float_operands(operation)]
        return max(operands) / self.quantization(operation.outputs[0]).scales[0] > (
            MOST_SCALE_RATIO_INT16 if self.recipe.bits == 16 else MOST_SCALE_RATIO
        )

    def step(self, operation: Operation, value: Value) -> float:
        quantization = self.quantization(value) if value.constant is None else self.of_constant(operation, value)
        return quantization.scales[0]

    def of_constant(self, operation: Operation, value: Value) -> Quantization:
        """The codes of a constant operand."""
        if OPERATOR_RULES[operation.code] is OperatorRule.SAME:
            return self.quantization(operation.outputs[0])
        numbers = value.content.numpy()
        span = self.recipe.ranges.get(value) or Range(float(numbers.min()), float(numbers.max()))
        return span.quantization(self.recipe.bits)

    def run(self) -> ConvertedProgram:
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
        same = same_codes(result)
        result.substitute(same)
        result.drop_unused()
        values = {value: same.get(made, made) for value, made in {**self.as_floats, **self.as_codes}.items()}
        return ConvertedProgram(result, values, self.coded)

    def entering(self, value: Value) -> Value:
        has_codes = value.dtype is FLOAT and self.leaders[value] in self.quantizations
        if self.recipe.io != "float" and has_codes:
            made = Value(value.name, self.type, value.shape, None, self.quantization(value))
            self.as_codes[value] = made
            if self.recipe.io == "uint8":
                given = bytes_of(made)
                made.name = f"{value.name}/{self.type.name}"
                self.done.append(Operation("QUANTIZE", [given], [made]))
                return given
            return made
        self.as_floats[value] = value
        return value

    def leaving(self, value: Value) -> Value:
        if self.recipe.io == "float" or value not in self.as_codes:
            return self.floats(value)
        codes = self.as_codes[value]
        if self.recipe.io != "uint8":
            return codes
        if codes not in self.as_bytes:
            self.as_bytes[codes] = bytes_of(codes)
            self.done.append(Operation("QUANTIZE", [codes], [self.as_bytes[codes]]))
        return self.as_bytes[codes]

    def quantization(self, value: Value) -> Quantization:
        return self.quantizations[self.leaders[value]]

    def codes(self, value: Value) -> Value:
        """The value as codes, converted when needed."""
        if value not in self.as_codes:
            made = Value(f"{value.name}/{self.type.name}", self.type, value.shape, None, self.quantization(value))
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
        outputs, options = list(operation.outputs), dict(operation.options)
        made = Operation(operation.code, operands, outputs, options, operation.nodes, bodies=operation.bodies)
        self.done.append(made)

    def with_coded_weights(self, operation: Operation) -> None:
        """A layer in float but for its weights."""
        self.with_floats(operation)
        made = self.done[-1]
        chosen = self.recipe.weights.get(operation) or rounded(operation, 1.0)
        _, at_weights, at_bias = LINEAR[operation.code]
        name = operator_rules.weights(operation).name
        made.inputs += [None] * (at_bias + 1 - len(made.inputs))
        made.inputs[at_weights] = self.kernel(name, chosen)
        bias = chosen.bias.astype(np.float32)
        had = operator_rules.bias(operation)
        is_same = (
            had is not None and had.constant is not None and np.array_equal(had.constant.numpy().reshape(-1), bias)
        )
        if not is_same:  # the steps of a loop share theirs
            made.inputs[at_bias] = Value(f"{name}/bias", FLOAT, bias.shape, Constant.of(bias))
        if operation.code == "FULLY_CONNECTED":
            made.options["asymmetric_inputs"] = True

    def with_codes(self, operation: Operation) -> None:
        operands: list[Value | None]
        if is_layer(operation):
            operands = self.weighted_operands(operation)
        else:
            operands = [None if value is None else self.operand(operation, value) for value in operation.inputs]
        results, requantized = [], []
        for value in operation.outputs:
            made = Value(value.name, self.type, value.shape, None, self.quantization(value))
            self.as_codes[value] = made
            wanted = self.prescribed.get(operation.code)
            if wanted is not None and wanted != made.quantization:
                first = Value(f"{value.name}/prescribed", self.type, value.shape, None, wanted)
                requantized.append(Operation("QUANTIZE", [first], [made]))
                made = first
            results.append(made)
        if operation.code == "AVERAGE_POOL_2D" and self.type is INT8 and operands[0] is not None:
            only_codes = self.recipe.io != "float"  # who asks for codes may have a device without floats
            average = average_pool_of_codes(operation, operands[0], results[0], only_codes=only_codes)
            if average is not None:
                self.done += average
                return
        options, code = dict(operation.options), operation.code
        if self.quantization(operation.outputs[0]).scales[0] < SMALLEST_BOUNDED_SCALE:
            code = {**BEYOND_ALL_CODES, "RELU_N1_TO_1": "QUANTIZE"}.get(code, code)
            if options.get("activation") in BEYOND_ALL_CODES:
                options["activation"] = BEYOND_ALL_CODES[options["activation"]]
        if self.recipe.bits == 16 and operation.code in ("ADD", "SUB"):
            options["power_of_two_scales"] = False  # what LiteRT asks for unless it is told otherwise
        self.done.append(Operation(code, operands, results, options, operation.nodes))
        self.done += requantized

    def operand(self, operation: Operation, value: Value) -> Value:
        if value.dtype is not FLOAT:
            return self.floats(value)
        if value.constant is None:
            return self.codes(value)
        quantization = self.of_constant(operation, value)
        if (value, quantization) not in self.constants:
            constant = Constant.of(quantized(value.constant.numpy(), quantization, self.recipe.bits))
            made = Value(f"{value.name}/{self.type.name}", self.type, value.shape, constant, quantization)
            self.constants[value, quantization] = made
        return self.constants[value, quantization]

    def kernel(self, name: str, chosen: QuantizedWeights) -> Value:
        """Weights as a constant; the same one for layers that have the same codes, as an unrolled loop's steps do."""
        made = quantized_kernel(name, chosen)
        known = self.kernels.setdefault(made.name, [])
        for kernel in known:
            if kernel.constant is None or kernel.quantization != chosen.quantization:
                continue
            if np.array_equal(kernel.constant.numpy(), chosen.constant.numpy()):
                return kernel
        known.append(made)
        return made

    def weighted_operands(self, operation: Operation) -> list[Value | None]:
        at_data, at_weights, at_bias = LINEAR[operation.code]
        source = self.codes(operator_rules.data(operation))
        data_scale = source.coding.scales[0]
        wide = self.recipe.bits == 16  # with a bias of 64 bits
        chosen = self.recipe.weights.get(operation) or rounded(operation, data_scale * (ROOM_OF_64_BITS if wide else 1))
        count = len(chosen.scales)
        name = operator_rules.weights(operation).name
        kernel = self.kernel(name, chosen)
        limit = 2**47 if wide else 2**31 - 1
        result = operation.outputs[0]
        shift = self.recipe.shifts.get(result, 0.0) * self.quantization(result).scales[0]
        offsets = np.clip(np.rint((chosen.bias + shift) / (chosen.scales * data_scale)), -limit, limit)
        products = (chosen.scales.astype(np.float64) * data_scale).astype(np.float32)
        by_channel = Quantization(tuple(products.tolist()), (0,) * count, 0)
        dtype = INT64 if wide else INT32
        bias = Value(f"{name}/bias", dtype, (count,), Constant.of(offsets.astype(dtype.numpy)), by_channel)
        operands = list(operation.inputs) + [None] * (at_bias + 1 - len(operation.inputs))
        operands[at_data], operands[at_weights], operands[at_bias] = source, kernel, bias
        return operands


def bytes_of(value: Value) -> Value:
    """The same numbers as uint8 codes: those of int8, each 128 more."""
    codes = value.coding
    quantization = Quantization(codes.scales, tuple(zero + 128 for zero in codes.zero_points), codes.axis)
    return Value(f"{value.name}/uint8", UINT8, value.shape, None, quantization)


def take_pixels(program: Program, mean: Scale, std: Scale) -> None:
    """Lets the bytes of a picture be the codes of a program that takes uint8, where ``(byte - mean) / std`` is fed.

    Cameras and task libraries feed bytes as they are, whatever the scale of the input says.
    """
    if isinstance(mean, tuple) or isinstance(std, tuple):  # an input has one scale for all channels
        return
    value = program.inputs[0]
    is_picture = len(value.shape) == 4 and value.shape[3] in (1, 3)
    if value.dtype is UINT8 and value.quantization is not None and is_picture and std > 0 and 0 <= mean <= MOST_BYTE:
        value.quantization = Quantization((1 / std,), (round(mean),))


def left_in_float(program: Program, names: Sequence[str], io: str) -> list[str]:
    """What is to be said of inputs and outputs, of these names, that stay float although codes were asked for."""
    ends = zip(names, (*program.inputs, *program.outputs), strict=True)
    left = [f"'{name}'" for name, value in ends if io != "float" and value.dtype is FLOAT]
    if len(left) == 1:
        return [f"{left[0]} stays float32: what is next to it computes in float"]
    return [f"{', '.join(left)} stay float32: what is next to them computes in float"] if left else []


def quantized_kernel(name: str, chosen: QuantizedWeights) -> Value:
    """Weights as a constant of int8 or int4 codes."""
    dtype = INT4 if chosen.bits == 4 else INT8
    return Value(f"{name}/{dtype.name}", dtype, chosen.codes.shape, chosen.constant, chosen.quantization)


def apply(state: QuantizationState) -> bool:
    """The step."""
    state.converted = convert(state.program, state.recipe)
    return True
