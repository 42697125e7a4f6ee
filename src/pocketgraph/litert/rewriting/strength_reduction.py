"""Finds what fewer or simpler operations compute: leaky rectifiers spelled out, convolutions that only scale."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import FEW_PRELU_CHANNELS
from pocketgraph.litert.operator_traits import CONVOLUTIONS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.narrow_convolutions import MOST_WRITTEN_OUT
from pocketgraph.litert.rewriting.value_uses import ValueUses

MOST_DEPTH = 8  # operations that a negative part is spelled with


def recognise_leaky_rectifiers(program: Program) -> None:
    """A rectifier plus a multiple of the negative part of the same value is a rectifier with a slope.

    Networks spell it ``relu(x) + alpha * (x - abs(x)) * 0.5``, ``relu(x) - alpha * relu(-x)`` or
    ``where(x > 0, x, alpha * x)``. Over few channels and pixels the larger one of x and alpha * x is quicker than
    PRELU, because alpha is written out for all pixels.
    """
    producers = program.producers()
    operations = []
    for operation in program.operations:
        operations.append(operation)
        if operation.code == "SELECT_V2":
            found = _chosen_slope(operation, producers)
        elif operation.code in ("ADD", "SUB") and not operation.options.get("activation"):
            found = _slope(operation, producers)
        else:
            continue
        if found is None:
            continue
        value, slope = found
        if (slope == slope[0]).all() and 0 < slope[0] < 1:
            operation.code, operation.inputs, operation.options = "LEAKY_RELU", [value], {"alpha": float(slope[0])}
            continue
        constant = Constant.of(slope.astype(np.float32))
        alpha = Value(f"{operation.outputs[0].name}/alpha", FLOAT, constant.shape, constant)
        is_narrow = slope.size < FEW_PRELU_CHANNELS and value.size <= MOST_WRITTEN_OUT
        if not is_narrow or not (slope <= 1).all():
            operation.code, operation.inputs, operation.options = "PRELU", [value, alpha], {}
            continue
        product = Value(f"{operation.outputs[0].name}/below", FLOAT, value.shape)
        operations.insert(-1, Operation("MUL", [value, alpha], [product], {"activation": ""}, operation.nodes))
        operation.code, operation.inputs, operation.options = "MAXIMUM", [value, product], {}
    program.operations = operations
    program.drop_unused()


def _slope(operation: Operation, producers: dict[Value, Operation]) -> tuple[Value, Array] | None:
    """The value that a sum or difference rectifies, and its slopes below zero: float64, a scalar or over channels."""
    left, right = operation.operands
    pairs = [(left, right)] if operation.code == "SUB" else [(left, right), (right, left)]
    for above, below in pairs:
        rectifier = producers.get(above)
        if rectifier is None or rectifier.code != "RELU":
            continue
        value = rectifier.operands[0]
        found = _negative_part(below, producers, MOST_DEPTH)
        if found is None or found[0] is not value or value.dtype is not FLOAT:
            continue
        if value.shape != operation.outputs[0].shape:
            continue
        slope = -found[1] if operation.code == "SUB" else found[1]
        if np.isfinite(slope).all():
            return value, slope
    return None


def _chosen_slope(operation: Operation, producers: dict[Value, Operation]) -> tuple[Value, Array] | None:
    """The same for a choice between a value and a multiple of it, by its sign."""
    condition, yes, no = operation.operands
    test = producers.get(condition)
    if test is None or test.code not in ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
        return None
    value, bound = test.operands
    if bound.constant is None or bound.size != 1 or bound.constant.numpy().item() != 0:
        return None
    same, multiple = (yes, no) if test.code.startswith("GREATER") else (no, yes)
    product = producers.get(multiple)
    if same is not value or product is None or product.code != "MUL":
        return None
    if product.options.get("activation") or value.dtype is not FLOAT or value.shape != operation.outputs[0].shape:
        return None
    factors = [factor for factor in product.operands if factor is not value]
    if len(factors) != 1 or factors[0].constant is None or not value.shape:
        return None
    if factors[0].size != 1 and not factors[0].size == factors[0].shape[-1] == value.shape[-1]:
        return None
    slope = factors[0].constant.numpy().reshape(-1).astype(np.float64)
    return (value, slope) if np.isfinite(slope).all() else None


def _negative_part(value: Value, producers: dict[Value, Operation], depth: int) -> tuple[Value, Array] | None:
    """(x, f) when a value is f * min(x, 0): f a scalar or a vector over the last axis."""
    operation = producers.get(value)
    if operation is None or depth == 0 or operation.options.get("activation"):
        return None
    first = operation.operands[0]
    if operation.code == "MUL":
        for inner, factor in (operation.operands, operation.operands[::-1]):
            if factor.constant is None or inner.shape != value.shape:
                continue
            if factor.size != 1 and factor.size != factor.shape[-1]:
                continue
            found = _negative_part(inner, producers, depth - 1)
            if found is not None:
                return found[0], found[1] * factor.constant.numpy().reshape(-1).astype(np.float64)
        return None
    if operation.code == "NEG":
        found = _negative_part(first, producers, depth - 1)
        return (found[0], -found[1]) if found is not None else None
    if operation.code == "RELU":  # relu(-x) is -min(x, 0)
        negated = producers.get(first)
        return (negated.operands[0], np.array([-1.0])) if negated is not None and negated.code == "NEG" else None
    if operation.code == "SUB":  # x - |x| is 2 min(x, 0)
        absolute = producers.get(operation.operands[1])
        is_twice = absolute is not None and absolute.code == "ABS" and absolute.inputs[0] is first
        return (first, np.array([2.0])) if is_twice else None
    if operation.code == "MINIMUM":
        for inner_value, bound in (operation.operands, operation.operands[::-1]):
            is_bound = bound.constant is not None and bound.size == 1 and inner_value.shape == value.shape
            if is_bound and float(bound.content.numpy().reshape(())) == 0:
                return inner_value, np.array([1.0])
    return None


def scale_without_convolutions(program: Program) -> None:
    """A convolution by one number, from one channel to one, is a product and a sum, which take a tenth of its time."""
    operations = []
    for operation in program.operations:
        operations.append(operation)
        if operation.code not in CONVOLUTIONS:
            continue
        source, weights, bias = operation.inputs
        if source is None or weights is None or weights.constant is None or weights.dtype is not FLOAT:
            continue
        if weights.shape != (1, 1, 1, 1) or source.shape != operation.outputs[0].shape or source.shape[3] != 1:
            continue
        if bias is None or bias.constant is None or weights.quantization is not None:
            continue
        (result,) = operation.outputs
        product = Value(f"{result.name}/scaled", FLOAT, source.shape)
        operations.insert(
            -1, Operation("MUL", [source, _scalar(weights)], [product], {"activation": ""}, operation.nodes)
        )
        activation = operation.options.get("activation", "")
        operation.code, operation.inputs = "ADD", [product, _scalar(bias)]
        operation.options = {"activation": activation}
    program.operations = operations


def _scalar(value: Value) -> Value:
    content = value.content.reshaped(())
    return Value(f"{value.name}/scalar", value.dtype, (), content)


def choose_among_logits(program: Program) -> None:
    """The largest of the shares that logits come to is that of the largest logit, so that nothing normalizes them."""
    view = ValueUses(program)
    for operation in program.operations:
        if operation.code != "ARG_MAX":
            continue
        shares, axis = operation.operands
        if axis.constant is None:
            continue
        reader, softmax = operation, view.only_source(shares)
        if softmax is not None and softmax.code == "RESHAPE" and softmax.inputs[0] is not None:
            reader, softmax = softmax, view.only_source(softmax.inputs[0])
        if softmax is None or softmax.code != "SOFTMAX" or softmax.options.get("beta", 1.0) <= 0:
            continue
        is_last = int(axis.constant.numpy().reshape(())) in (-1, len(shares.shape) - 1)
        if is_last and shares.shape[-1:] == softmax.outputs[0].shape[-1:]:
            reader.inputs[0] = softmax.inputs[0]
    program.drop_unused()


def reshape_instead_of_transposing(program: Program) -> None:
    """A transpose that only moves axes of size 1 moves no element."""
    for operation in program.operations:
        if operation.code != "TRANSPOSE":
            continue
        source, order = operation.operands
        if order.constant is None:
            continue
        moved = [int(axis) for axis in order.constant.numpy() if source.shape[int(axis)] != 1]
        if moved == sorted(moved):
            shape = operation.outputs[0].shape
            sizes = Constant.of(np.array(shape, np.int32))
            operand = Value(f"{operation.outputs[0].name}/sizes", INT32, sizes.shape, sizes)
            operation.code, operation.inputs, operation.options = "RESHAPE", [source, operand], {"new_shape": shape}
