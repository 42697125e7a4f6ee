"""Pictures resized, cropped and chosen from."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, div, elementwise, mul, sub, unary, where
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import channels_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, DOUBLE, FLOAT, INT32, INT64
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.image.resizing import (
    CUBIC_STEPS,
    area_weights,
    cubic_table,
    cubic_weights,
    nearest_places,
    positions,
)
from pocketgraph.kernels.image.warping import axis_weights
from pocketgraph.litert.operands import KNOWN, attr_text


@converts("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
def resize(emit: OnnxEmit, node: Node) -> None:
    dtype, shape = emit.output()
    aligned, centred = bool(node.attr("align_corners", False)), bool(node.attr("half_pixel_centers", False))
    if node.op == "ResizeNearestNeighbor" and _is_off(emit.input(0), shape, aligned, centred):
        _pick(emit, shape, aligned, centred)
        return
    if node.op == "ResizeBicubic" and not _is_cubic(emit.input(0).shape, shape, aligned, centred):
        _weigh(emit, shape, aligned, centred)
        return
    source = channels_first(emit, emit.input(0))
    if dtype is INT64:
        raise emit.unsupported(f"64-bit integers are resized only to sizes that are {KNOWN}")
    if source.dtype is not dtype:
        source = emit.cast(source, dtype)
    attrs: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric"}
    if aligned:
        attrs["coordinate_transformation_mode"] = "align_corners"
    elif centred:
        attrs["coordinate_transformation_mode"] = "half_pixel"
    if node.op == "ResizeNearestNeighbor":
        attrs["mode"] = "nearest"
        attrs["nearest_mode"] = "round_prefer_ceil" if aligned else "floor"
        if centred and not aligned:
            attrs["coordinate_transformation_mode"] = "half_pixel"
            attrs["nearest_mode"] = "round_prefer_ceil"
    elif node.op == "ResizeBilinear":
        attrs["mode"] = "linear"
    else:
        attrs["mode"] = "cubic"
        attrs["cubic_coeff_a"] = -0.5 if centred else -0.75
        attrs["exclude_outside"] = int(centred)
    size = emit.input(1)
    if size.constant is None and shape.dims is not None and None not in shape.dims[1:3]:
        size = emit.ints([int(n or 0) for n in shape.dims[1:3]])
    dims = emit.concat([emit.slice(emit.dims(source), 0, 0, 2), emit.as_int64(size)])
    first = Shape([shape[0], shape[3], shape[1], shape[2]]) if shape.dims is not None else None
    if first is not None and first.is_known:
        dims = emit.ints(first.known)
    emit.result(emit.from_first(emit.op("Resize", [source, None, None, dims], first, **attrs), shape))


@converts("ResizeArea", "ScaleAndTranslate")
def resize_by_matrices(emit: OnnxEmit, node: Node) -> OnnxValue:
    """Each new row and column is a weighted sum of the old ones, by the weights of the reference kernels."""
    value, shape = emit.input(0), emit.output()[1]
    sizes = (emit.known_size(value, 1, "the height"), emit.known_size(value, 2, "the width"))
    rows, columns = (int(size) for size in emit.static(1, "the new size"))
    if node.op == "ResizeArea":
        aligned = bool(node.attr("align_corners", False))
        down, along = area_weights(sizes[0], rows, aligned), area_weights(sizes[1], columns, aligned)
    else:
        scale, translation = (emit.static(at, "where each pixel goes") for at in (2, 3))
        kind, antialias = attr_text(node, "kernel_type", "lanczos3"), bool(node.attr("antialias", True))
        try:
            (down, _), (along, _) = axis_weights(kind, (rows, columns), sizes, scale, translation, antialias)
        except ValueError as error:
            raise emit.unsupported(str(error)) from error
    source = channels_first(emit, value if value.dtype is FLOAT else emit.cast(value, FLOAT))
    first = [source.shape[0], source.shape[1], rows, sizes[1]]
    tall = emit.op("MatMul", [emit.const(down.astype(np.float32)), source], first)
    turned = emit.const(np.ascontiguousarray(along.T, np.float32))
    return emit.from_first(emit.op("MatMul", [tall, turned], [*first[:3], columns]), shape)


def _is_off(source: OnnxValue, result: Shape, aligned: bool, centred: bool) -> bool:
    """Whether ONNX's division, in float32 or float64, takes the pixel beside TensorFlow's for any place, or ONNX
    Runtime's Resize has no values of this type, nor wider ones."""
    sizes = [(source.shape[axis], result[axis]) for axis in (1, 2)]
    if not all(length and count for length, count in sizes):
        return False
    if source.dtype in (INT64, DOUBLE):
        return True
    for length, count in sizes:
        assert length
        assert count
        wanted = nearest_places(length, count, aligned, centred)
        if any((_onnx_places(length, count, aligned, centred, kind) != wanted).any() for kind in (np.float32, float)):
            return True
    return False


def _onnx_places(length: int, count: int, aligned: bool, centred: bool, kind: type[np.floating[Any] | float]) -> Array:
    """Which pixel ONNX's Resize takes for each, computed in a type of floats."""
    places = np.arange(count).astype(kind)
    if aligned:
        places = places * kind(length - 1) / kind(max(count - 1, 1))
    else:
        shift = kind(0.5 if centred else 0)
        places = (places + shift) / (kind(count) / kind(length)) - shift
    whole = np.floor(places + kind(0.5)) if aligned or centred else np.floor(places)
    result: Array = np.clip(whole.astype(np.int64), 0, length - 1)
    return result


def _is_cubic(source: Shape, result: Shape, aligned: bool, centred: bool) -> bool:
    """Whether ONNX's Resize weighs as TensorFlow, which looks weights up; ONNX Runtime makes nothing smaller."""
    for axis in (1, 2):
        length, count = source[axis], result[axis]
        if not length or not count:
            return False
        steps = positions(length, count, aligned, centred) * np.float32(CUBIC_STEPS)
        if count < length or (steps != np.rint(steps)).any():
            return False
    return True


def _weigh(emit: OnnxEmit, shape: Shape, aligned: bool, centred: bool) -> None:
    """Sums of four weighted rows, then of four weighted columns."""
    value = emit.input(0)
    if value.dtype is not FLOAT:
        value = emit.cast(value, FLOAT)
    for axis in (1, 2):
        length, count = value.shape[axis], shape[axis]
        if length and length == count:
            continue
        one_axis = [-1, 1, 1] if axis == 1 else [-1, 1]
        if length and count:
            found = cubic_weights(length, count, aligned, centred)
            columns = [(emit.const(at), emit.const(weight)) for at, weight in zip(*(a.T for a in found), strict=True)]
        else:
            places, weights = _cubic_weights(emit, value, axis, aligned, centred)
            columns = [(_column(emit, places, tap), _column(emit, weights, tap)) for tap in range(4)]
        dims = [shape[at] if at <= axis else value.shape[at] for at in range(4)]
        taps = [
            mul(
                emit,
                emit.op("Gather", [value, at], dims, axis=axis),
                emit.op("Reshape", [weight, emit.ints(one_axis)], [count, *one_axis[1:]]),
            )
            for at, weight in columns
        ]
        value = add(emit, add(emit, taps[0], taps[1]), add(emit, taps[2], taps[3]))
    emit.result(value)


def _column(emit: OnnxEmit, rows: OnnxValue, number: int) -> OnnxValue:
    return emit.op("Gather", [rows, emit.const(np.int64(number))], [rows.shape[0]], axis=1)


def _cubic_weights(
    emit: OnnxEmit, value: OnnxValue, axis: int, aligned: bool, centred: bool
) -> tuple[OnnxValue, OnnxValue]:
    """What ``cubic_weights`` gives, for sizes that are known when the model runs."""
    length = emit.dim(value, axis)
    count = emit.as_int64(emit.op("Gather", [emit.input(1), emit.ints([axis - 1])], [1], axis=0))
    scale = div(emit, emit.cast(length, FLOAT), emit.cast(count, FLOAT))
    last = sub(emit, length, emit.ints([1]))
    if aligned:
        steps = sub(emit, count, emit.ints([1]))
        between = div(emit, emit.cast(last, FLOAT), emit.cast(elementwise(emit, "Max", [steps, emit.ints([1])]), FLOAT))
        scale = where(emit, elementwise(emit, "Greater", [steps, emit.ints([0])], BOOL), between, scale)
    shift = emit.const(np.float32(0.5 if centred else 0))
    places = sub(emit, mul(emit, add(emit, emit.cast(emit.count_up(count, [None]), FLOAT), shift), scale), shift)
    floor = unary(emit, "Floor", places)
    step = unary(emit, "Round", mul(emit, sub(emit, places, floor), emit.const(np.float32(CUBIC_STEPS))))
    table = emit.const(cubic_table(centred))
    weights = emit.op("Gather", [table, emit.as_int64(step)], [None, 4], axis=0)
    raw = add(emit, emit.unsqueeze(emit.as_int64(floor), [1]), emit.ints([-1, 0, 1, 2]))
    indices = elementwise(emit, "Max", [elementwise(emit, "Min", [raw, last]), emit.ints([0])])
    if centred:
        weights = where(emit, elementwise(emit, "Equal", [indices, raw], BOOL), weights, emit.const(np.float32(0)))
        weights = div(emit, weights, reduce(emit, "ReduceSum", weights, [1], True))
    return indices, weights


def _pick(emit: OnnxEmit, shape: Shape, aligned: bool, centred: bool) -> None:
    """The nearest pixels by index."""
    value = emit.input(0)
    for axis in (1, 2):
        places = nearest_places(int(value.shape[axis] or 0), int(shape[axis] or 0), aligned, centred)
        dims = [shape[at] if at <= axis else value.shape[at] for at in range(4)]
        value = emit.op("Gather", [value, emit.const(places)], dims, axis=axis)
    emit.result(value)


@converts("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def suppression(emit: OnnxEmit, node: Node, boxes: OnnxValue, scores: OnnxValue, most: OnnxValue) -> OnnxValue:
    threshold: OnnxValue | None
    if node.op == "NonMaxSuppression":
        threshold = emit.const(np.float32(node.attr("iou_threshold", 0.5)))
    else:
        threshold = emit.input(3)
    least = emit.vector(emit.input(4)) if node.op == "NonMaxSuppressionV3" else None
    if least is not None:
        least = emit.reshape(emit.cast(emit.input(4), FLOAT), [1])
    operands = [
        emit.unsqueeze(emit.cast(boxes, FLOAT), [0]), emit.unsqueeze(emit.cast(scores, FLOAT), [0, 1]),
        emit.vector(most),
        emit.reshape(emit.cast(threshold, FLOAT), [1]), least,
    ]  # fmt: skip
    found = emit.op("NonMaxSuppression", operands, [None, 3], INT64)
    column = emit.op("Gather", [found, emit.const(np.int64(2))], [None], axis=1)
    return emit.cast(column, INT32)


@converts("CropAndResize")
def crop_and_resize(emit: OnnxEmit, node: Node, picture: OnnxValue, boxes: OnnxValue, which: OnnxValue) -> OnnxValue:
    """Each box's pixels by index: rows and columns beside each place are gathered and weighed."""
    height, width = (int(n) for n in emit.static(3, "the size of the crops"))
    method = attr_text(node, "method", "bilinear")
    picture = emit.cast(picture, FLOAT)
    rows = _places(emit, picture, boxes, 1, 0, 2, height)
    columns = _places(emit, picture, boxes, 2, 1, 3, width)
    outside = emit.const(np.float32(node.attr("extrapolation_value", 0.0)))
    if method == "nearest":
        ys, xs = (unary(emit, "Floor", add(emit, p, emit.const(np.float32(0.5)))) for p in (rows, columns))
        found = _pixels(emit, picture, which, ys, xs)
    else:
        top, left = unary(emit, "Floor", rows), unary(emit, "Floor", columns)
        bottom, right = unary(emit, "Ceil", rows), unary(emit, "Ceil", columns)
        down = emit.unsqueeze(sub(emit, rows, top), [2, 3])
        along = emit.unsqueeze(sub(emit, columns, left), [1, 3])
        upper, lower = (
            _between(emit, _pixels(emit, picture, which, y, left), _pixels(emit, picture, which, y, right), along)
            for y in (top, bottom)
        )
        found = _between(emit, upper, lower, down)
    inside = elementwise(
        emit, "And",
        [emit.unsqueeze(_inside(emit, picture, rows, 1), [2, 3]),
         emit.unsqueeze(_inside(emit, picture, columns, 2), [1, 3])], BOOL,
    )  # fmt: skip
    return emit.op("Where", [inside, found, outside], emit.output()[1], FLOAT)


def _places(
    emit: OnnxEmit, picture: OnnxValue, boxes: OnnxValue, axis: int, low: int, high: int, count: int
) -> OnnxValue:
    """Where each box's samples lie along one axis, in pixels: [boxes, count]."""
    extent = emit.cast(emit.dim(picture, axis), FLOAT)
    last = emit.op("Sub", [extent, emit.const(np.float32(1))], [1])
    start, stop = (emit.slice(boxes, 1, place, place + 1) for place in (low, high))
    if count > 1:
        steps = emit.const(np.arange(count, dtype=np.float32) / np.float32(count - 1))
        span = mul(emit, sub(emit, stop, start), last)
        return add(emit, mul(emit, start, last), mul(emit, span, steps))
    return mul(emit, mul(emit, add(emit, start, stop), emit.const(np.float32(0.5))), last)


def _inside(emit: OnnxEmit, picture: OnnxValue, places: OnnxValue, axis: int) -> OnnxValue:
    last = emit.op("Sub", [emit.cast(emit.dim(picture, axis), FLOAT), emit.const(np.float32(1))], [1])
    above = elementwise(emit, "GreaterOrEqual", [places, emit.const(np.float32(0))], BOOL)
    below = elementwise(emit, "LessOrEqual", [places, last], BOOL)
    return elementwise(emit, "And", [above, below], BOOL)


def _pixels(emit: OnnxEmit, picture: OnnxValue, which: OnnxValue, rows: OnnxValue, columns: OnnxValue) -> OnnxValue:
    """The pixels of each box at these rows and columns: [boxes, rows, columns, channels]."""
    held = []
    for places, axis in ((rows, 1), (columns, 2)):
        last = emit.op("Sub", [emit.dim(picture, axis), emit.ints([1])], [1])
        whole = emit.cast(places, INT64)
        held.append(elementwise(emit, "Max", [elementwise(emit, "Min", [whole, last]), emit.ints([0])]))
    numbers = emit.unsqueeze(emit.as_int64(which), [1, 2])
    height, width = emit.dim(picture, 1), emit.dim(picture, 2)
    at = add(emit, mul(emit, numbers, height), emit.unsqueeze(held[0], [2]))
    at = add(emit, mul(emit, at, width), emit.unsqueeze(held[1], [1]))
    channels = emit.known_size(picture, 3, "the number of channels")
    return emit.op("Gather", [emit.reshape(picture, [None, channels]), at], [*at.shape, channels], axis=0)


def _between(emit: OnnxEmit, a: OnnxValue, b: OnnxValue, share: OnnxValue) -> OnnxValue:
    return add(emit, a, mul(emit, sub(emit, b, a), share))


@converts("AdjustContrastv2")
def contrast(emit: OnnxEmit, node: Node, value: OnnxValue, factor: OnnxValue) -> OnnxValue:
    rank = emit.rank(value)
    mean = reduce(emit, "ReduceMean", value, [rank - 3, rank - 2], True)
    return add(emit, mul(emit, sub(emit, value, mean), factor), mean)
