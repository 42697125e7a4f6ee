"""Puts operations on LiteRT's eight-bit kernels: on codes throughout where ranges are known, else on coded weights.

Known ranges arrive as QUANTIZE and DEQUANTIZE pairs (on_grid of lowerings/quantized). An operation between such pairs

    a8 ─DEQUANTIZE─ CONV_2D ─QUANTIZE─ b8
becomes
    a8 ─CONV_2D─ b8

with int8 weights, one scale a channel, and an int32 bias. Convolutions of whole numbers (the original's codes, as
runtime/eight_bit/exact_rewriting.py writes them out) keep every digit: whole_products.py. What is left over of the
operations marked ``may_code`` gets int8 weights and keeps float values: LiteRT then finds the range of the values by
itself while it runs. It does so on one thread, which costs more than it saves where few products are made of each
value; those stay float.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import CHANNELS_AT_A_TIME, FEWEST_CODED_CHANNELS, FEWEST_CODED_PRODUCTS
from pocketgraph.litert.operator_traits import HYBRID, WEIGHT_AXIS, WEIGHTED
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.bounded_activations import add_bounded_grids
from pocketgraph.litert.rewriting.coded_weights import coded_weights, unit_of, widened
from pocketgraph.litert.rewriting.shifted_codes import ONE, shifts_codes
from pocketgraph.litert.rewriting.value_uses import ValueUses
from pocketgraph.litert.rewriting.whole_products import multiply_whole_numbers

SAME_GRID = frozenset(("MAX_POOL_2D", "RESHAPE", "CONCATENATION", "RESIZE_BILINEAR", "TRANSPOSE"))
"""Operators whose operands and results must lie on one grid. AVERAGE_POOL_2D does too but stays between DEQUANTIZE and
QUANTIZE: XNNPACK has all three on floats, and LiteRT's own kernel for codes takes over ten times as long."""
WIDE = frozenset(("FULLY_CONNECTED",))
"""Operators whose weights may be two int8 weights; for convolutions that would cost nearly as much as float does."""
OWN_GRIDS = frozenset(("ADD", "SUB", "MUL"))
ABOUT_ONE = Quantization(((1 + 2.0**-20) / ONE,), (0,))  # the code ONE stands for a little more than 1
SMALLEST_RATIO = 2.0**-9  # of steps, for codes that are multiplied by 1: XNNPACK takes no less than 2^-16 / ONE


def use_eight_bits(program: Program) -> None:
    """Rewrites the marked operations; a program without any stays as it is."""
    has_grids = any(operation.code == "QUANTIZE" for operation in program.operations)
    if has_grids or add_bounded_grids(program):
        _join_grids(program)
        _join_shifts(program)
        _stay_in_codes(program)
        program.drop_unused()
    for operation in list(program.operations):
        if operation.code == "CONV_2D" and operation.whole is not None and int8_weights_pay(operation):
            multiply_whole_numbers(program, operation)
        elif operation.code in HYBRID and operation.may_code and (has_grids or int8_weights_pay(operation)):
            _code_weights(program, operation, has_grids)


def int8_weights_pay(operation: Operation) -> bool:
    """Whether int8 weights of a HYBRID operation make up for finding the range of its operand at each run.

    Of windows over a block of channels or more, results that do not fill a block take as long as a full one, in float
    as with codes.
    """
    source, weights, result = operation.inputs[0], operation.inputs[1], operation.outputs[0]
    if operation.code != "CONV_2D" or source is None or weights is None:
        return True
    made, *window, channels = weights.shape
    products = result.size * (weights.size // made)
    if max(window) > 1 and channels >= CHANNELS_AT_A_TIME:
        products = products // made * -(-made // CHANNELS_AT_A_TIME) * CHANNELS_AT_A_TIME
    return channels >= FEWEST_CODED_CHANNELS and products >= FEWEST_CODED_PRODUCTS * (source.size + result.size)


def _code_weights(program: Program, operation: Operation, exactly: bool) -> None:
    """Gives an operation on floats int8 weights."""
    source, weights, result = operation.inputs[0], operation.inputs[1], operation.outputs[0]
    if source is None or weights is None or result.dtype is not FLOAT:
        return
    source, coded = _coded(program, operation, source, weights, exactly)
    if coded is not None:
        operation.inputs[:2] = [source, coded]
        if operation.code == "FULLY_CONNECTED":
            operation.options["asymmetric_inputs"] = True


def _coded(
    program: Program, operation: Operation, source: Value, weights: Value, exactly: bool
) -> tuple[Value, Value | None]:
    """int8 weights and what they are multiplied with: ``source``, or that twice."""
    if exactly and operation.code in WIDE and weights.constant is not None:
        values = weights.constant.numpy()
        unit = unit_of(values, float(np.abs(values).max(initial=0)))
        if unit:
            twice, wide = widened(program, operation, weights, unit, source)
            if twice is not source:
                return twice, wide
    return source, coded_weights(weights, WEIGHT_AXIS[operation.code])


def _join_grids(program: Program) -> None:
    """Codes that are turned to floats and at once to the same codes again are just codes."""
    producers = program.producers()
    replaced: dict[Value, Value] = {}
    for operation in program.operations:
        if operation.code != "QUANTIZE" or operation.inputs[0] is None:
            continue
        before = producers.get(operation.inputs[0])
        if before is None or before.code != "DEQUANTIZE" or before.inputs[0] is None:
            continue
        if before.inputs[0].quantization == operation.outputs[0].quantization:
            replaced[operation.outputs[0]] = before.inputs[0]
    program.substitute(replaced)


def _join_shifts(program: Program) -> None:
    """Two constants that are added one after the other are added at once: a bias, and what rounding adds to it."""
    view = ValueUses(program)
    gone = []
    for operation in program.operations:
        before = view.only_source(operation.inputs[0]) if operation.code == "ADD" else None
        if before is None or before.code != "ADD" or before.options.get("activation"):
            continue
        source, first, second = before.inputs[0], before.inputs[1], operation.inputs[1]
        if first is None or first.constant is None or second is None or second.constant is None or source is None:
            continue
        total = Constant.of(first.constant.numpy() + second.constant.numpy())
        if source.shape == operation.outputs[0].shape:
            operation.inputs = [source, Value(f"{first.name}/shifted", FLOAT, total.shape, total)]
            operation.nodes = before.nodes + operation.nodes
            gone.append(before)
    program.drop(gone)


def _stay_in_codes(program: Program) -> None:
    """Lets operations between codes work on the codes."""
    view = ValueUses(program)
    gone = []
    for last in list(program.operations):
        if last.code != "QUANTIZE":
            continue
        operation = view.only_source(last.inputs[0])
        if operation is None or len(operation.outputs) != 1:
            continue
        opened = [view.producers.get(v) if v is not None and v.constant is None else None for v in operation.inputs]
        codes = [before.inputs[0] if before is not None and before.code == "DEQUANTIZE" else None for before in opened]
        if shifts_codes(program, view, operation, last.outputs[0]) or _takes_codes(
            program, operation, codes, last.outputs[0]
        ):
            view.absorb(operation, last)
            gone.append(last)
    program.drop(gone)


def _on_grid(program: Program, operation: Operation, codes: Value, like: Value) -> Value:
    """Codes as those of another grid, made before ``operation``.

    By a product with 1: XNNPACK multiplies by the ratio of two steps in float32 there, but in QUANTIZE by that ratio
    rounded to multiples of 1/256, which moves one code of a hundred to the next. The 1 is a little more, for halves to
    be rounded away from zero.
    """
    if codes.quantization == like.quantization or codes.quantization is None or like.quantization is None:
        return codes
    moved = Value(f"{codes.name}/moved", INT8, codes.shape, None, like.quantization)
    made = Operation("QUANTIZE", [codes], [moved])
    if codes.quantization.scales[0] / like.quantization.scales[0] >= SMALLEST_RATIO:
        one = Value(f"{codes.name}/one", INT8, (1,), Constant.of(np.array([ONE], np.int8)), ABOUT_ONE)
        made = Operation("MUL", [codes, one], [moved], {"activation": ""})
    program.operations.insert(program.operations.index(operation), made)
    return moved


def _takes_codes(program: Program, operation: Operation, codes: list[Value | None], result: Value) -> bool:
    """Puts ``operation`` on codes, where it can be; ``codes`` are those of its operands that have any."""
    if operation.code in WEIGHTED:
        return operation.may_code and codes[0] is not None and _convolves_codes(program, operation, codes[0])
    moving = [index for index, value in enumerate(operation.inputs) if value is not None and value.dtype is FLOAT]
    found = [codes[index] for index in moving]
    if any(value is None for value in found):
        return False
    if operation.code == "CONCATENATION":
        found = [_on_grid(program, operation, value, result) for value in found if value is not None]
        for index, value in zip(moving, found, strict=True):
            operation.inputs[index] = value
        return True
    if operation.code in SAME_GRID:
        if any(value is None or value.quantization != result.quantization for value in found):
            return False
    elif operation.code not in OWN_GRIDS:
        return False
    for index in moving:
        operation.inputs[index] = codes[index]
    return True


def _convolves_codes(program: Program, operation: Operation, source: Value) -> bool:
    weights, bias = operation.inputs[1], operation.inputs[2] if len(operation.inputs) > 2 else None
    if weights is None or source.quantization is None or bias is None or bias.constant is None:
        return False
    source, coded = _coded(program, operation, source, weights, True)
    if coded is None or coded.quantization is None or source.quantization is None:
        return False
    scales = np.array(coded.quantization.scales, np.float64) * source.quantization.scales[0]
    levels: Array = np.rint(bias.constant.numpy().astype(np.float64) / scales)
    if not (np.abs(levels) < 2**31).all():
        return False
    grid = Quantization(tuple(scales.astype(np.float32).tolist()), (0,) * scales.size)
    codes = Constant.of(levels.astype(np.int32))
    operation.inputs[:3] = [source, coded, Value(f"{bias.name}/codes", INT32, bias.shape, codes, grid)]
    return True
