"""Operators that only put elements in other places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.exporting.c.operators.elementwise import known
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.operators.shapes import joined, stretched, strides
from pocketgraph.exporting.c.unit import CConstant, Pointer, Unit, array_of, c_type, number, operand
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Value

UNSIGNED_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""What carries elements of so many bytes."""


def moved(
    unit: Unit, source: Value, result: Value, sizes: Sequence[int], steps: Sequence[int], to: Sequence[int],
    start: int = 0, to_start: int = 0,
) -> None:  # fmt: skip
    """Copies a block of ``sizes``; strides and starts are in elements."""
    if not math.prod(sizes):
        return
    width = source.dtype.size
    sizes, (a, b) = joined(sizes, steps, to)
    come: Pointer | CConstant = unit.at(source, start)
    go = unit.at(result, to_start)
    if len(sizes) == 1 and a == [1] and b == [1]:
        unit.call("support.h", "memcpy", go, come, sizes[0] * width)
        return
    name = f"pg_copy_{8 * width}"
    table = unit.table("pg_places", [len(sizes), sizes, a, b])
    unit.call("copy.h", name, table, come, go, definition=f"PG_COPY({name}, {UNSIGNED_TYPES[width]})")


def filled(unit: Unit, result: Value, text: str) -> None:
    """Fills a tensor with a number."""
    name, kind = f"pg_fill_{result.dtype.name}", c_type(result.dtype)
    unit.call("copy.h", name, text, result.size, result, definition=f"PG_FILL({name}, {kind})")


@moves("TRANSPOSE")
def transpose(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    own = strides(source.shape)
    steps = [own[axis] for axis in known(operation.inputs[1])]
    moved(unit, source, result, result.shape, steps, strides(result.shape))


@moves("SLICE")
def slice_(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    own = strides(source.shape)
    start = sum(place * step for place, step in zip(known(operation.inputs[1]), own, strict=True))
    moved(unit, source, result, result.shape, own, strides(result.shape), start)


@moves("STRIDED_SLICE")
def strided_slice(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    begins, ends, step = (known(value) for value in operation.inputs[1:4])
    options = operation.options
    if options.get("ellipsis_mask") or options.get("new_axis_mask"):
        raise Unsupported("STRIDED_SLICE with an ellipsis or a new axis")
    own, start = strides(source.shape), 0
    sizes: list[int] = []
    steps: list[int] = []
    for axis, size in enumerate(source.shape):
        if axis >= len(begins):
            sizes.append(size)
            steps.append(own[axis])
            continue
        mask = 1 << axis
        if options.get("shrink_axis_mask", 0) & mask:
            start += (begins[axis] % size if size else 0) * own[axis]
            continue
        begin = None if options.get("begin_mask", 0) & mask else begins[axis]
        end = None if options.get("end_mask", 0) & mask else ends[axis]
        taken = range(size)[begin : end : step[axis]]
        start += (taken.start if taken else 0) * own[axis]
        sizes.append(len(taken))
        steps.append(step[axis] * own[axis])
    if math.prod(sizes) != result.size:
        raise Unsupported(f"STRIDED_SLICE of {list(source.shape)} to {list(result.shape)}")
    moved(unit, source, result, sizes, steps, strides(sizes), start)


@moves("BROADCAST_TO")
def broadcast_to(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    moved(unit, source, result, result.shape, stretched(source.shape, result.shape), strides(result.shape))


@moves("TILE")
def tile(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    sizes: list[int] = []
    steps: list[int] = []
    for times, size, step in zip(known(operation.inputs[1]), source.shape, strides(source.shape), strict=True):
        sizes += [times, size]
        steps += [0, step]
    moved(unit, source, result, sizes, steps, strides(sizes))


@moves("REVERSE_V2")
def reverse(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    steps, start = list(strides(source.shape)), 0
    for axis in {axis % len(source.shape) for axis in known(operation.inputs[1])}:
        start += (source.shape[axis] - 1) * steps[axis]
        steps[axis] = -steps[axis]
    moved(unit, source, result, result.shape, steps, strides(result.shape), start)


@moves("REVERSE_SEQUENCE")
def reverse_sequence(unit: Unit, operation: Operation, source: Value, lengths: Value, result: Value) -> None:
    steps, rows = (operation.options.get(name, 0) or 0 for name in ("sequence_axis", "batch_axis"))
    first, second = sorted((steps % len(source.shape), rows % len(source.shape)))
    shape = source.shape
    fields = [
        math.prod(shape[:first]), shape[first], math.prod(shape[first + 1 : second]), shape[second],
        math.prod(shape[second + 1 :]) * source.dtype.size, int(steps % len(shape) == first),
    ]  # fmt: skip
    name = f"pg_reverse_sequence_{lengths.dtype.name}"
    unit.call(
        "copy.h", name, unit.table("pg_sequences", fields), source, lengths, result,
        definition=f"PG_REVERSE_SEQUENCE({name}, {c_type(lengths.dtype)})",
    )  # fmt: skip


@moves("CONCATENATION", "PACK")
def concatenation(unit: Unit, operation: Operation) -> None:
    result = operation.outputs[0]
    if operation.options.get("activation"):
        raise Unsupported("CONCATENATION with an activation")
    axis = operation.options["axis"] % len(result.shape)
    own, at = strides(result.shape), 0
    for value in operation.operands:
        shape = value.shape
        if operation.code == "PACK":
            shape = (*shape[:axis], 1, *shape[axis:])
        moved(unit, value, result, shape, strides(shape), own, 0, at * own[axis])
        at += shape[axis]


@moves("SPLIT", "SPLIT_V", "UNPACK")
def split(unit: Unit, operation: Operation) -> None:
    place = {"SPLIT": (1, 0), "SPLIT_V": (0, 2), "UNPACK": (0, None)}[operation.code]
    source = operand(operation, place[0])
    axis = operation.options["axis"] if place[1] is None else known(operation.inputs[place[1]])[0]
    axis %= len(source.shape)
    own, at = strides(source.shape), 0
    for value in operation.outputs:
        shape = value.shape
        if operation.code == "UNPACK":
            shape = (*shape[:axis], 1, *shape[axis:])
        moved(unit, source, value, shape, own, strides(shape), at * own[axis])
        at += shape[axis]


@moves("PAD", "PADV2")
def pad(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    pairs = array_of(operation.inputs[1]).reshape(-1, 2)
    text = "0" if source.quantization is None else str(source.quantization.zero_points[0])
    if operation.code == "PADV2":
        value = array_of(operation.inputs[2]).reshape(-1)[0]
        text = number(value, np.float64 if value.dtype == np.float64 else np.float32)
    filled(unit, result, text)
    own = strides(result.shape)
    start = int(sum(int(before) * step for (before, _), step in zip(pairs, own, strict=True)))
    moved(unit, source, result, source.shape, strides(source.shape), own, 0, start)


@moves("MIRROR_PAD")
def mirror_pad(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    pairs = array_of(operation.inputs[1]).reshape(-1, 2)
    edge = int(operation.options["mode"] == "SYMMETRIC")
    befores = [int(before) for before, _ in pairs]
    fields = [len(result.shape), edge, result.shape, source.shape, befores, strides(source.shape)]
    name = f"pg_mirror_{8 * source.dtype.size}"
    unit.call(
        "mirror.h", name, unit.table("pg_mirrored", fields), source, result,
        definition=f"PG_MIRROR({name}, {UNSIGNED_TYPES[source.dtype.size]})",
    )  # fmt: skip


@moves("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks_and_channels(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    block = operation.options["block_size"]
    fine, coarse = (source, result) if operation.code == "SPACE_TO_DEPTH" else (result, source)
    batch, height, width = coarse.shape[:3]
    channels = fine.shape[3]
    picture = strides((batch, height, block, width, block, channels))
    deep = strides((batch, height, width, block, block, channels))
    deep = (deep[0], deep[1], deep[3], deep[2], deep[4], deep[5])
    steps, to = (picture, deep) if fine is source else (deep, picture)
    moved(unit, source, result, (batch, height, block, width, block, channels), steps, to)


@moves("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def blocks_and_batch(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    """A copy for each place in a block: of all its pixels to, or from, one part of the batch."""
    blocks = known(operation.inputs[1])
    borders = array_of(operation.inputs[2]).reshape(-1, 2)
    is_cutting = operation.code == "SPACE_TO_BATCH_ND"
    picture, parts = (source, result) if is_cutting else (result, source)
    if is_cutting and borders.any():
        filled(unit, result, "0" if source.quantization is None else str(source.quantization.zero_points[0]))
    count, batch = len(blocks), picture.shape[0]
    of_picture, of_parts = strides(picture.shape), strides(parts.shape)
    for number_, place in enumerate(np.ndindex(*blocks)):
        at, part_at = 0, number_ * batch * of_parts[0]
        sizes, steps, part_steps = [batch], [of_picture[0]], [of_parts[0]]
        for axis in range(count):
            block, before = blocks[axis], int(borders[axis][0])
            size, length = picture.shape[axis + 1], parts.shape[axis + 1]
            first = max(0, -(-(before - place[axis]) // block))
            last = min(length, -(-(size + before - place[axis]) // block))
            at += (first * block + place[axis] - before) * of_picture[axis + 1]
            part_at += first * of_parts[axis + 1]
            sizes.append(max(0, last - first))
            steps.append(block * of_picture[axis + 1])
            part_steps.append(of_parts[axis + 1])
        sizes += picture.shape[count + 1 :]
        steps += of_picture[count + 1 :]
        part_steps += of_parts[count + 1 :]
        if is_cutting:
            moved(unit, source, result, sizes, steps, part_steps, at, part_at)
        else:
            moved(unit, source, result, sizes, part_steps, steps, part_at, at)


@emits("ZEROS_LIKE")
def zeros_like(unit: Unit, operation: Operation) -> None:
    filled(unit, operation.outputs[0], "0")
