"""Lowerings of joining and splitting along an axis."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT64
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.program import Value


@lowers("ConcatV2", "Concat")
def concat(emit: Emit, node: Node) -> None:
    last = len(node.data_inputs) - 1
    where, parts = (last, emit.inputs(0, last)) if node.op == "ConcatV2" else (0, emit.inputs(1))
    parts = [emit.require(part, *MOVED) for part in parts]
    shape = emit.output()[1]
    (axis,) = emit.axes(where, len(shape))
    if len(parts) == 1:
        emit.result(parts[0])
        return
    emit.result(emit.add("CONCATENATION", list(parts), shape, axis=axis, activation=""))


@lowers("Pack")
def pack(emit: Emit, node: Node) -> None:
    parts = [emit.require(part, *MOVED) for part in emit.inputs()]
    shape = emit.output()[1]
    axis = int(node.attr("axis", 0)) % len(shape)
    if len(parts) == 1:
        emit.result(emit.reshape(parts[0], shape))
        return
    if parts[0].dtype is BOOL:  # which LiteRT joins, but does not pack
        thin = (*shape[:axis], 1, *shape[axis + 1 :])
        parts = [emit.reshape(part, thin) for part in parts]
        emit.result(emit.add("CONCATENATION", list(parts), shape, axis=axis, activation=""))
        return
    emit.result(emit.add("PACK", list(parts), shape, values_count=len(parts), axis=axis))


@lowers("Unpack")
def unpack(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    rank, axis = len(source.shape), int(node.attr("axis", 0))
    if not -rank <= axis < rank or int(node.attr("num", 0)) != source.shape[axis]:
        raise emit.unsupported(f"{node.attr('num', 0)} parts of {list(source.shape)} along the axis {axis}")
    axis, count = axis % rank, source.shape[axis]
    shape = tuple(size for index, size in enumerate(source.shape) if index != axis)
    if source.dtype is INT64:  # which LiteRT splits, but does not unpack
        _yield_all(emit, [emit.reshape(part, shape) for part in _parts(emit, source, axis, [1] * count)])
        return
    _yield_all(emit, emit.add_many("UNPACK", [source], [(source.dtype, shape)] * count, num=count, axis=axis))


@lowers("Split")
def split(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(1), *MOVED)
    (axis,) = emit.axes(0, len(source.shape))
    count = int(node.attr("num_split", 1))
    if count < 1 or source.shape[axis] % count:
        raise emit.unsupported(f"{source.shape[axis]} elements do not split into {count} equal parts")
    if count == 1:
        emit.result(source)
        return
    if source.dtype is BOOL:  # which LiteRT cuts, but does not split
        _yield_all(emit, _parts(emit, source, axis, [source.shape[axis] // count] * count))
        return
    shape = tuple(size // count if index == axis else size for index, size in enumerate(source.shape))
    operands = [emit.const(axis, np.int32), source]
    _yield_all(emit, emit.add_many("SPLIT", operands, [(source.dtype, shape)] * count, num_splits=count))


@lowers("SplitV")
def split_v(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    (axis,) = emit.axes(2, len(source.shape))
    sizes = [int(size) for size in np.asarray(emit.static(1, "the sizes")).reshape(-1)]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(size for size in sizes if size != -1)
    if sum(sizes) != source.shape[axis] or min(sizes) < 0:
        raise emit.unsupported(f"the sizes {sizes} of {list(source.shape)}")
    if len(sizes) == 1:
        emit.result(source)
        return
    if source.dtype is BOOL:
        _yield_all(emit, _parts(emit, source, axis, sizes))
        return
    shapes = [tuple(part if index == axis else size for index, size in enumerate(source.shape)) for part in sizes]
    operands = [source, emit.const(sizes, np.int32), emit.const(axis, np.int32)]
    _yield_all(emit, emit.add_many("SPLIT_V", operands, [(source.dtype, s) for s in shapes], num_splits=len(sizes)))


def _parts(emit: Emit, value: Value, axis: int, sizes: list[int]) -> list[Value]:
    """Slices of these sizes along an axis, one behind the other."""
    from pocketgraph.litert.lowerings.pieces import cut

    parts, place = [], 0
    for count in sizes:
        begin, size = [0] * len(value.shape), list(value.shape)
        begin[axis], size[axis] = place, count
        parts.append(cut(emit, value, begin, size))
        place += count
    return parts


def _yield_all(emit: Emit, values: list[Value]) -> None:
    for port, value in enumerate(values):
        emit.result(value, port)
