"""Operations of Keras along axes: sums, means, extremes, lengths, running sums and softmax."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from pocketgraph.formats.keras.activation_functions import softmax_along
from pocketgraph.formats.keras.layer_writer import KerasTensor, as_float, expanded
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT32, UINT8, UINT16, UINT32

LENGTHS = {1: ("Abs", "Sum"), 2: ("Square", "Sum"), "euclidean": ("Square", "Sum"), "fro": ("Square", "Sum"),
           inf: ("Abs", "Max")}  # fmt: skip
"""What lengths of vectors reduce by which op, by their order; a root follows squares."""


def axis_of(call: OperationCall, value: KerasTensor, *, place: int = 1, usual: int | None = None) -> int:
    """The one axis that an operation is for.

    Raises:
        FormatError: it says none.
    """
    told = call.argument(place, "axis", default=usual)
    if not isinstance(told, int):
        raise call.writer.refuse("is for no single axis, which is not read")
    return told % len(value.dims)


def reduced(call: OperationCall, op: str, value: KerasTensor, axes: list[int], *, keeps: bool = True) -> KerasTensor:
    dims = tuple(1 if axis in axes else size for axis, size in enumerate(value.dims) if keeps or axis not in axes)
    return call.writer.add(op, value, call.writer.const(axes, "axes"), dims=dims, keep_dims=keeps)


def _keeps(call: OperationCall) -> bool:
    return bool(call.argument(2, "keepdims", "keep_dims", default=False))


def reduction(op: str) -> Callable[[OperationCall], KerasTensor]:
    def written(call: OperationCall) -> KerasTensor:
        made = reduced(call, op, _summable(call, op), call.axes(), keeps=_keeps(call))
        first = call.setting("initial") if op in ("Max", "Min") else None
        return made if first is None else call.writer.add(f"{op}imum", made, call.tensor(2, "initial", like=made.dtype))

    return written


def _summable(call: OperationCall, op: str) -> KerasTensor:
    """What is reduced; Keras 3 makes floats of whole numbers for means, and numbers of 32 bits of narrow ones."""
    value = call.tensor(0, "x", "input_tensor")
    if not call.writer.model.is_keras_3 or value.dtype.is_floating:
        return value
    if op == "Mean":
        return as_float(call.writer, value)
    if op not in ("Sum", "Prod") or value.dtype.numpy.itemsize >= 4:
        return value
    wide = UINT32 if value.dtype in (UINT8, UINT16) else INT32
    return call.writer.add("Cast", value, DstT=wide)


def variance(call: OperationCall) -> KerasTensor:
    value, axes = call.tensor(0, "x", "input_tensor"), call.axes()
    value = value if value.dtype.is_floating else as_float(call.writer, value)
    centred = call.writer.add("Sub", value, reduced(call, "Mean", value, axes))
    return reduced(call, "Mean", call.writer.add("Square", centred), axes, keeps=_keeps(call))


def deviation(call: OperationCall) -> KerasTensor:
    return call.writer.add("Sqrt", variance(call))


def log_sum_exp(call: OperationCall) -> KerasTensor:
    value, axes, keeps = call.tensor(0, "x", "input_tensor"), call.axes(), _keeps(call)
    largest = reduced(call, "Max", value, axes)
    total = reduced(call, "Sum", call.writer.add("Exp", call.writer.add("Sub", value, largest)), axes, keeps=keeps)
    last = largest if keeps else reduced(call, "Max", value, axes, keeps=False)
    return call.writer.add("AddV2", call.writer.add("Log", total), last)


def norm(call: OperationCall) -> KerasTensor:
    """The length of vectors, of more axes than one by squares alone."""
    value, order = call.fraction(), call.argument(1, "ord", default="euclidean")
    axes, keeps = call.axes(2), bool(call.argument(3, "keepdims", "keep_dims", default=False))
    if len(axes) > 1 and order not in ("euclidean", "fro"):
        raise call.writer.refuse(f"has ord={order} of matrices, which is not read")
    return _length(call, value, order, axes, keeps=keeps)


def _length(call: OperationCall, value: KerasTensor, order: Any, axes: list[int], *, keeps: bool) -> KerasTensor:
    if order not in LENGTHS:
        raise call.writer.refuse(f"is of the order {order}, which is not read")
    part, op = LENGTHS[order]
    made = reduced(call, op, call.writer.add(part, value), axes, keeps=keeps)
    return call.writer.add("Sqrt", made) if part == "Square" else made


def unit_length(call: OperationCall) -> KerasTensor:
    """Along axes, with TensorFlow's smallest square."""
    return _of_unit_length(call, call.tensor(0, "x"), float(call.argument(2, "epsilon", default=1e-12)))


def _of_unit_length(call: OperationCall, value: KerasTensor, least: float) -> KerasTensor:
    squares = reduced(call, "Sum", call.writer.add("Square", value), call.axes())
    squares = call.writer.add("Maximum", squares, call.writer.const(least, "epsilon", FLOAT))
    return call.writer.add("Mul", value, call.writer.add("Rsqrt", squares))


def normalized(call: OperationCall) -> KerasTensor:
    """As ``keras.ops.normalize``, whose ``epsilon`` is the smallest length."""
    value, order = call.fraction(), call.setting("order", default=2)
    least = float(call.setting("epsilon", default=1e-7))
    if order == 2:
        return _of_unit_length(call, value, least**2)
    length = _length(call, value, order, call.axes(), keeps=True)
    length = call.writer.add("Maximum", length, call.writer.const(least, "epsilon", FLOAT))
    return call.writer.add("RealDiv", value, length)


def running(op: str) -> Callable[[OperationCall], KerasTensor]:
    """Sums or products of the elements so far."""

    def written(call: OperationCall) -> KerasTensor:
        value = call.tensor(0, "x")
        axis = axis_of(call, value, usual=0 if call.is_of_keras_2 else None)
        excludes, turns = (bool(call.setting(name)) for name in ("exclusive", "reverse"))
        along = call.writer.const(axis, "axis")
        return call.writer.add(op, call.number(), along, exclusive=excludes, reverse=turns)

    return written


def extreme(op: str) -> Callable[[OperationCall], KerasTensor]:
    """The place of the largest element along an axis, or of the smallest."""

    def written(call: OperationCall) -> KerasTensor:
        value = call.tensor(0, "x", "input")
        axis = axis_of(call, value, usual=0 if call.is_of_keras_2 else None)
        dims = (*value.dims[:axis], *value.dims[axis + 1 :])
        told = call.setting("output_type", default="int64" if call.is_of_keras_2 else "int32")
        places = call.writer.const(axis, "axis")
        made = call.writer.add(op, value, places, dims=dims, output_type=DType.named(str(told)))
        return expanded(call.writer, made, axis) if call.setting("keepdims") else made

    return written


def softmax(op: str) -> Callable[[OperationCall], KerasTensor]:
    def written(call: OperationCall) -> KerasTensor:
        value = call.tensor(0, "x", "logits")
        axis = call.argument(1, "axis", default=-1 if call.is_of_keras_2 else range(len(value.dims)))
        return softmax_along(call.writer, value, axis if isinstance(axis, int) else list(axis), op)

    return written


OPERATIONS: dict[str, Callable[[OperationCall], KerasTensor | list[KerasTensor]]] = {
    **{name: reduction(name) for name in ("Mean", "Sum", "Max", "Min", "Any", "All", "Prod")},
    "Amax": reduction("Max"), "Amin": reduction("Min"), "Var": variance, "Std": deviation, "Logsumexp": log_sum_exp,
    "Norm": norm, "L2Normalize": unit_length, "Normalize": normalized, "Cumsum": running("Cumsum"),
    "Cumprod": running("Cumprod"), "Argmax": extreme("ArgMax"), "Argmin": extreme("ArgMin"),
    "Softmax": softmax("Softmax"), "LogSoftmax": softmax("LogSoftmax"),
}  # fmt: skip
"""How each operation of these is written."""
