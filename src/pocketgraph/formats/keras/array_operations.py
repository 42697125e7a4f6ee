"""Operations of Keras that move, choose and count elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pocketgraph.formats.keras.axis_operations import axis_of
from pocketgraph.formats.keras.layer_writer import (
    Dims,
    KerasTensor,
    broadcast,
    contraction,
    pair,
    transposed,
)
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.formats.keras.window_layers import convolved, pooling, resized, strided
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64


def choice(call: OperationCall) -> KerasTensor:
    """Of two tensors by a third."""
    which = call.tensor(0, "condition", like=BOOL)
    one, other = call.operands((1, ("x", "x1")), (2, ("y", "x2")))
    dims = broadcast(which.dims, broadcast(one.dims, other.dims))
    return call.writer.add("SelectV2", which, one, other, dims=dims)


def swapped(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x")
    rank = len(value.dims)
    one, other = (int(call.argument(place, name)) % rank for place, name in ((1, "axis1"), (2, "axis2")))
    return transposed(call.writer, value, _exchanged(rank, one, other))


def _exchanged(rank: int, one: int, other: int) -> list[int]:
    """The order of axes in which two are in each other's place."""
    order = list(range(rank))
    order[one], order[other] = other, one
    return order


def moved(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x")
    rank = len(value.dims)
    sources, places = ([axis % rank for axis in pair(call.argument(place, name), 1)]
                       for place, name in ((1, "source"), (2, "destination")))  # fmt: skip
    order = [axis for axis in range(rank) if axis not in sources]
    for place, source in sorted(zip(places, sources, strict=True)):
        order.insert(place, source)
    return transposed(call.writer, value, order)


def flipped(call: OperationCall) -> KerasTensor:
    return call.writer.add("ReverseV2", call.tensor(0, "x", "tensor"), call.writer.const(call.axes(), "axis"))


def repeated(call: OperationCall) -> KerasTensor:
    value, count = call.tensor(0, "x", "input"), call.argument(1, "repeats")
    axis = axis_of(call, value, place=2)
    size = value.dims[axis]
    if not isinstance(count, int) or size is None:
        raise call.writer.refuse("repeats by more than one number, or along an open size, which is not read")
    return _chosen(call, value, np.repeat(np.arange(size), count), axis)


def _chosen(call: OperationCall, value: KerasTensor, places: Any, axis: int) -> KerasTensor:
    indices = places if isinstance(places, KerasTensor) else call.writer.const(np.asarray(places), "indices")
    dims = (*value.dims[:axis], *indices.dims, *value.dims[axis + 1 :])
    return call.writer.add("GatherV2", value, indices, call.writer.const(axis, "axis"), dims=dims)


def taken(call: OperationCall) -> KerasTensor:
    value, places = call.tensor(0, "x", "params"), call.argument(1, "indices")
    told = call.setting("axis", default=None if call.writer.kind == "Take" else 0)
    if call.setting("batch_dims") or not isinstance(told, int):
        raise call.writer.refuse("takes elements of a flat tensor, or of each example, which is not read")
    if isinstance(places, KerasTensor):
        if places.dtype not in (INT32, INT64):
            raise call.writer.refuse("takes elements at places that are no whole numbers, which is not read")
    else:
        size, places = value.dims[told], np.asarray(places)
        if np.any(places < 0) and (size is None or call.is_of_keras_2):
            raise call.writer.refuse("takes elements from the end, which is not read")
        places = np.where(places < 0, places + (size or 0), places)
    return _chosen(call, value, places, told % len(value.dims))


def tiled(call: OperationCall) -> KerasTensor:
    value, (counts, known) = call.tensor(0, "x", "input"), call.shape(1, "repeats", "multiples")
    if len(counts) != len(value.dims):
        raise call.writer.refuse("repeats along other axes than the tensor has, which is not read")
    dims = tuple(one and count and one * count for one, count in zip(value.dims, known, strict=True))
    return call.writer.add("Tile", value, call.writer.sizes(counts), dims=dims)


def padded(call: OperationCall) -> KerasTensor:
    value, ends = call.tensor(0, "x", "tensor"), call.argument(1, "pad_width", "paddings")
    mode = str(call.argument(2, "mode", default="constant")).lower()
    ends = [pair(one) for one in ends] if isinstance(ends, list) else [pair(ends)] * len(value.dims)
    if mode not in ("constant", "reflect", "symmetric") or len(ends) != len(value.dims):
        raise call.writer.refuse(f"fills by mode={mode}, or along other axes than the tensor has, which is not read")
    dims: Dims = tuple(None if size is None else size + sum(end) for size, end in zip(value.dims, ends, strict=True))
    margins = call.writer.const(ends, "paddings")
    if mode != "constant":
        return call.writer.add("MirrorPad", value, margins, dims=dims, mode=mode.upper().encode())
    filling = call.argument(3, "constant_values", default=0)
    return call.writer.add("PadV2", value, margins, call.writer.const(filling, "filling", value.dtype), dims=dims)


def split(call: OperationCall) -> list[KerasTensor]:
    value, told = call.tensor(0, "x", "value"), call.argument(1, "indices_or_sections", "num_or_size_splits")
    axis = axis_of(call, value, place=2, usual=0)
    size = value.dims[axis]
    if size is None:
        raise call.writer.refuse("splits an open size, which is not read")
    if isinstance(told, int):
        sizes = [size // told] * told
    else:
        sizes = [int(one) for one in told] if call.is_of_keras_2 else np.diff([0, *told, size]).tolist()
        sizes = [size - sum(sizes) - 1 if one == -1 else one for one in sizes]  # one may be what remains
    parts = call.writer.const(sizes, "sizes")
    made = call.writer.add("SplitV", value, parts, call.writer.const(axis, "axis"), num_split=len(sizes))
    before, after = value.dims[:axis], value.dims[axis + 1 :]
    refs = [f"{made.ref}:{at}" if at else made.ref for at in range(len(sizes))]
    return [made._replace(ref=ref, dims=(*before, one, *after)) for ref, one in zip(refs, sizes, strict=True)]


def broadcasted(call: OperationCall) -> KerasTensor:
    value, (sizes, dims) = call.tensor(0, "x", "input"), call.shape(1, "shape")
    return call.writer.add("BroadcastTo", value, call.writer.sizes(sizes), dims=dims)


def one_hot(call: OperationCall) -> KerasTensor:
    value, depth = call.tensor(0, "x", "indices"), int(call.argument(1, "num_classes", "depth"))
    if call.setting("axis", default=-1) not in (-1, None) or call.setting("sparse"):
        raise call.writer.refuse("has its vectors along another axis than the last, which is not read")
    kind = DType.named(str(call.setting("dtype", default="float32")))
    on, off = (call.writer.const(number, "number", kind) for number in (1, 0))
    dims = (*value.dims, depth)
    return call.writer.add("OneHot", value, call.writer.const(depth, "depth"), on, off, dims=dims, axis=-1)


def einsum(call: OperationCall) -> KerasTensor:
    call.read.update(range(len(call.given)))
    given = call.given[0] if len(call.given) == 1 and isinstance(call.given[0], list) else call.given
    equation = call.setting("subscripts") or given[0]
    values: Sequence[Any] = [one for one in given if isinstance(one, (KerasTensor, np.ndarray))]
    if "->" not in str(equation) or len(values) not in (1, 2):
        raise call.writer.refuse("sums without '->', or not one or two tensors, which is not read")
    tensors = (one if isinstance(one, KerasTensor) else call.writer.const(one, "number", FLOAT) for one in values)
    return contraction(call.writer, str(equation), *tensors)


def leaky_relu(call: OperationCall) -> KerasTensor:
    slope = float(call.argument(1, "negative_slope", "alpha", default=0.2))
    return call.writer.add("LeakyRelu", call.fraction(), alpha=slope)


def resize(call: OperationCall) -> KerasTensor:
    value, (sizes, _) = call.tensor(0, "images", "image"), call.shape(1, "size")
    told = {name: call.setting(name) for name in ("antialias", "crop_to_aspect_ratio", "pad_to_aspect_ratio",
                                                       "preserve_aspect_ratio")}  # fmt: skip
    wrong = [name for name, one in told.items() if one]
    if call.setting("data_format") == "channels_first" or wrong or len(value.dims) != 4:
        raise call.writer.refuse(f"resizes with {', '.join(wrong) or 'other axes'}, which is not read")
    method = str(call.argument(2, "interpolation", "method", default="bilinear"))
    return resized(call.writer, value, sizes, method, is_centred=True)


def summed(call: OperationCall) -> KerasTensor:
    values: list[KerasTensor] = call.argument(0, "inputs")
    return reduce(lambda one, other: call.writer.add("AddV2", one, other, dims=broadcast(one.dims, other.dims)), values)


def unstacked(call: OperationCall) -> list[KerasTensor]:
    value = call.tensor(0, "x", "value")
    axis = axis_of(call, value, place=2, usual=0)
    count, dims = value.dims[axis], (*value.dims[:axis], *value.dims[axis + 1 :])
    if count is None:
        raise call.writer.refuse("takes an open size apart, which is not read")
    made = call.writer.add("Unpack", value, dims=dims, axis=axis, num=count)
    return [made._replace(ref=f"{made.ref}:{at}" if at else made.ref) for at in range(count)]


def patches(call: OperationCall) -> KerasTensor:
    """Each window of pictures as the channels of one pixel."""
    value, size = call.tensor(0, "images"), call.argument(1, "size")
    size, padding = pair(size), str(call.setting("padding", default="valid"))
    strides, rates = pair(call.setting("strides", default=size)), pair(call.setting("dilation_rate", default=1))
    if len(value.dims) != 4 or len(size) != 2 or call.setting("data_format") == "channels_first":
        raise call.writer.refuse("cuts what are no batches of pictures with channels last, which is not read")
    spans = [(one - 1) * rate + 1 for one, rate in zip(size, rates, strict=True)]
    sizes = [strided(*each, padding) for each in zip(value.dims[1:3], spans, strides, strict=True)]
    ksizes, steps, between = ((1, *two, 1) for two in (size, strides, rates))
    depth = None if value.dims[3] is None else value.dims[3] * size[0] * size[1]
    return call.writer.add("ExtractImagePatches", value, dims=(value.dims[0], *sizes, depth), ksizes=ksizes,
                           strides=steps, rates=between, padding=padding.upper().encode())  # fmt: skip


def blocks(op: str) -> Callable[[OperationCall], KerasTensor]:
    """Blocks of pixels as channels, or the other way round."""

    def written(call: OperationCall) -> KerasTensor:
        value, size = call.tensor(0, "x"), int(call.argument(1, "block_size"))
        if len(value.dims) != 4 or call.setting("data_format") == "channels_first" or None in value.dims[1:]:
            raise call.writer.refuse(
                "moves blocks of other than pictures of known sizes, channels last, which is not read"
            )
        height, width, depth = (one or 0 for one in value.dims[1:])
        is_packed = op == "SpaceToDepth"
        dims = [one // size if is_packed else one * size for one in (height, width)]
        channels = depth * size**2 if is_packed else depth // size**2
        return call.writer.add(op, value, dims=(value.dims[0], *dims, channels), block_size=size)

    return written


def windows(rule: Callable[..., KerasTensor]) -> Callable[[OperationCall], KerasTensor]:
    """As the layer whose settings the operation has, of which the rule reads all."""

    def written(call: OperationCall) -> KerasTensor:
        call.read.update(call.writer.config)
        return rule(call.writer, *(call.tensor(place) for place in range(len(call.given))))

    return written


def rolled(call: OperationCall) -> KerasTensor:
    value, shifts, axes = call.tensor(0, "x", "input"), call.argument(1, "shift"), call.argument(2, "axis")
    if axes is None or not isinstance(shifts, int | list):
        raise call.writer.refuse("rolls a flat tensor, or by what is computed, which is not read")
    along = [axis % len(value.dims) for axis in pair(axes, 1)]
    places = call.writer.const(pair(shifts, len(along)), "shift"), call.writer.const(along, "axis")
    return call.writer.add("Roll", value, *places)


def ordered(port: int) -> Callable[[OperationCall], KerasTensor]:
    """Elements along an axis from the smallest up, or the places of these."""

    def written(call: OperationCall) -> KerasTensor:
        value, writer = call.tensor(0, "x", "values"), call.writer
        axis = axis_of(call, value, usual=-1 if call.is_of_keras_2 else None)
        if not value.dtype.is_floating and value.dtype not in (INT32, INT64):
            raise writer.refuse(f"sorts elements of type {value.dtype.name}, which is not read")
        order = _exchanged(len(value.dims), axis, len(value.dims) - 1)

        def turned(one: KerasTensor) -> KerasTensor:
            """Smallest as largest, without an overflow."""
            if one.dtype.is_floating:
                return writer.add("Neg", one)
            return writer.add("Sub", writer.const(-1, "end", one.dtype), one, dims=one.dims)

        last = transposed(writer, value, order)
        count = writer.size(last, len(order) - 1) if last.dims[-1] is None else writer.const(last.dims[-1], "count")
        made = writer.add("TopKV2", turned(last), count, dims=last.dims)
        found = made._replace(ref=f"{made.ref}:1", dtype=INT32) if port else turned(made)
        return transposed(writer, found, order)

    return written


def taken_along(call: OperationCall) -> KerasTensor:
    value, places, writer = call.tensor(0, "x"), call.tensor(1, "indices"), call.writer
    axis = axis_of(call, value, place=2)
    size, rank = value.dims[axis], len(value.dims)
    others = [[*one.dims[:axis], *one.dims[axis + 1 :]] for one in (value, places)]
    if size is None or others[0] != others[1] or places.dtype not in (INT32, INT64):
        raise writer.refuse("takes along an open size, or for each of other sizes, which is not read")
    order = _exchanged(rank, axis, rank - 1)
    from_start = writer.add("FloorMod", places, writer.const(size, "size", places.dtype))
    value, places = (transposed(writer, one, order) for one in (value, from_start))
    last = writer.const(rank - 1, "axis")
    return transposed(writer, writer.add("GatherV2", value, places, last, dims=places.dims, batch_dims=rank - 1), order)


def largest(call: OperationCall) -> list[KerasTensor]:
    value, count = call.tensor(0, "x", "input"), int(call.argument(1, "k", default=1))
    made = call.writer.add("TopKV2", value, call.writer.const(count, "k"), dims=(*value.dims[:-1], count))
    return [made, made._replace(ref=f"{made.ref}:1", dtype=INT32)]


OPERATIONS: dict[str, Callable[[OperationCall], KerasTensor | list[KerasTensor]]] = {
    "Where": choice, "Swapaxes": swapped, "Moveaxis": moved, "Flip": flipped, "Repeat": repeated, "Take": taken,
    "Tile": tiled, "Pad": padded, "Split": split, "BroadcastTo": broadcasted, "OneHot": one_hot, "Einsum": einsum,
    "LeakyRelu": leaky_relu, "Resize": resize, "AddN": summed, "Unstack": unstacked, "TopK": largest,
    "MaxPool": windows(pooling), "AveragePool": windows(pooling), "Roll": rolled, "Sort": ordered(0),
    **{name: windows(convolved) for name in ("Conv", "DepthwiseConv", "SeparableConv")},
    "Argsort": ordered(1), "TakeAlongAxis": taken_along,
    "ExtractPatches": patches, "DepthToSpace": blocks("DepthToSpace"), "SpaceToDepth": blocks("SpaceToDepth"),
}  # fmt: skip
"""How each operation of these is written."""
