"""Lowerings of ops that move elements without computing: reshaping, transposing, repeating."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.pieces import DEEPEST
from pocketgraph.litert.program import Value


@lowers("Reshape", "ExpandDims", "Squeeze")
def reshape(emit: Emit, node: Node) -> None:
    emit.result(emit.reshape(emit.require(emit.input(0), *MOVED), emit.output()[1]))


@lowers("Shape", "ShapeN", "Size", "Rank")
def shape_facts(emit: Emit, node: Node) -> None:
    """The sizes are known, so these are constants."""
    for port in range(len(node.data_inputs)):
        dtype = emit.output(port)[0]
        sizes = emit.input(port).shape
        answer = {"Size": int(np.prod(sizes, dtype=np.int64)), "Rank": len(sizes)}.get(node.op, list(sizes))
        emit.result(emit.const(answer, dtype.numpy), port)


@lowers("ZerosLike", "OnesLike")
def filled_like(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    emit.result(emit.constant_like(source, int(node.op == "OnesLike")))


@lowers("Fill")
def fill(emit: Emit, node: Node) -> None:
    value, shape = emit.require(emit.input(1), *MOVED), emit.output()[1]
    emit.result(_broadcast(emit, value, shape))


@lowers("BroadcastTo")
def broadcast_to(emit: Emit, node: Node) -> None:
    emit.result(_broadcast(emit, emit.require(emit.input(0), *MOVED), emit.output()[1]))


def _broadcast(emit: Emit, value: Value, shape: tuple[int, ...]) -> Value:
    """``value`` in a larger shape, as copies; LiteRT's BROADCAST_TO goes element by element, which takes 4 to 80 times
    as long."""
    if value.shape == shape:
        return value
    if not len(value.shape) <= len(shape) <= DEEPEST or not shape:
        raise emit.unsupported(f"broadcasting from rank {len(value.shape)} to {len(shape)}")
    if 0 in shape:
        raise emit.unsupported("a result without elements")
    own = (1,) * (len(shape) - len(value.shape)) + value.shape
    if any(size not in (1, target) for size, target in zip(own, shape, strict=True)):
        raise emit.unsupported(f"{list(value.shape)} does not broadcast to {list(shape)}")
    value = emit.reshape(value, own)
    if own[-1] < shape[-1] and value.dtype is FLOAT:  # copies of single numbers are quicker as products
        value = emit.add(
            "MUL", [value, emit.const(np.ones(shape[-1:], np.float32))], (*own[:-1], shape[-1]), activation=""
        )
    times = [target // size for size, target in zip(value.shape, shape, strict=True)]
    return value if max(times) == 1 else emit.add("TILE", [value, emit.const(times, np.int32)], shape)


@lowers("Transpose")
def transpose(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    order = emit.axes(1, len(source.shape), "the permutation")
    if sorted(order) != list(range(len(source.shape))):
        raise emit.unsupported(f"the permutation {order}")
    emit.result(_transposed(emit, source, order))


def _transposed(emit: Emit, source: Value, order: list[int]) -> Value:
    """A value with its axes permuted: many axes as fewer, as those that stay together are one, or in several steps,
    each of which takes one axis to its place."""
    if len(order) <= DEEPEST or source.constant is not None:
        return emit.transpose(source, order)
    shape = [source.shape[axis] for axis in order]
    together = _together(source.shape, order)
    if len(together) <= DEEPEST:
        places = {axes[0]: place for place, axes in enumerate(sorted(together))}
        merged = emit.reshape(source, [_size(source.shape, axes) for axes in sorted(together)])
        return emit.reshape(emit.transpose(merged, [places[axes[0]] for axes in together]), shape)
    place = next(place for place, axis in enumerate(order) if place != axis)
    axis = order[place]
    blocks = [range(place), range(place, axis), range(axis, axis + 1), range(axis + 1, len(order))]
    moved = emit.transpose(emit.reshape(source, [_size(source.shape, axes) for axes in blocks]), [0, 2, 1, 3])
    stands = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]
    rest = emit.reshape(moved, [source.shape[axis] for axis in stands])
    return _transposed(emit, rest, [stands.index(axis) for axis in order])


def _together(shape: tuple[int, ...], order: list[int]) -> list[list[int]]:
    """The axes of a permutation in groups that stay side by side, in their new order; without those of one element."""
    found: list[list[int]] = []
    axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    after = dict(itertools.pairwise(axes))
    for axis in order:
        if shape[axis] == 1:
            continue
        if found and after.get(found[-1][-1]) == axis:
            found[-1].append(axis)
        else:
            found.append([axis])
    return found


def _size(shape: tuple[int, ...], axes: Sequence[int]) -> int:
    return math.prod(shape[axis] for axis in axes)


@lowers("Tile")
def tile(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    multiples = [int(m) for m in emit.static(1, "the multiples")]
    shape = [size * count for size, count in zip(source.shape, multiples, strict=True)]
    if tuple(shape) == source.shape:
        emit.result(source)
    elif len(shape) <= DEEPEST and all(1 in pair for pair in zip(source.shape, multiples, strict=True)):
        emit.result(_broadcast(emit, source, tuple(shape)))
    else:
        emit.result(emit.add("TILE", [source, emit.const(multiples, np.int32)], shape))
