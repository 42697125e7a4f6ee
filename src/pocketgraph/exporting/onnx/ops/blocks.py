"""Blocks of pixels that become channels or images, and the way back."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.channel_order import to_first
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.nn import image, yield_image
from pocketgraph.graph import Node, Shape
from pocketgraph.litert.constant import Array


@converts("DepthToSpace")
def depth_to_space(emit: OnnxEmit, node: Node) -> None:
    size = int(node.attr("block_size", 2))
    yield_image(emit, node, emit.op("DepthToSpace", [image(emit, node)], None, blocksize=size, mode="DCR"))


@converts("SpaceToDepth")
def space_to_depth(emit: OnnxEmit, node: Node) -> None:
    """ONNX's operator puts the places of a block before the channels, as TensorFlow does."""
    size = int(node.attr("block_size", 2))
    yield_image(emit, node, emit.op("SpaceToDepth", [image(emit, node)], None, blocksize=size))


@converts("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    block, pairs = _blocks(emit, node, value, 2 if node.op == "SpaceToBatch" else None)
    spatial = len(block)
    rank = emit.rank(value)
    pads = np.zeros((rank, 2), np.int64)
    pads[1 : 1 + spatial] = pairs
    first = is_first(value) and spatial == rank - 2 and value.first is not None
    if first and value.first is not None:
        value, pads = value.first, pads[to_first(rank)]
    if pads.any():
        before = value.shape
        value = emit.op("Pad", [value, emit.ints(pads.T.reshape(-1))])
        if before.dims is not None:
            value.shape = Shape([None if n is None else n + int(p.sum()) for n, p in zip(before, pads, strict=True)])
    start = 2 if first else 1
    dims = emit.dims(value)
    sizes: list[OnnxValue] = [emit.slice(dims, 0, 0, start)]
    for place, extent in enumerate(block):
        own = emit.slice(dims, 0, start + place, start + place + 1)
        sizes += [_divided(emit, own, extent), emit.ints([extent])]
    if start + spatial < rank:
        sizes.append(emit.slice(dims, 0, start + spatial, rank))
    split = emit.op("Reshape", [value, emit.concat(sizes)], [None] * (rank + spatial))
    inner = [start + 2 * place + 1 for place in range(spatial)]
    order = [*inner, *range(start), *(start + 2 * place for place in range(spatial))]
    order += list(range(start + 2 * spatial, rank + spatial))
    moved = emit.op("Transpose", [split], [None] * (rank + spatial), perm=order)
    batch = emit.op("Mul", [emit.slice(dims, 0, 0, 1), emit.ints([int(np.prod(block))])], [1])
    final = [batch, emit.slice(dims, 0, 1, 2)] if first else [batch]
    for place, extent in enumerate(block):
        final.append(_divided(emit, emit.slice(dims, 0, start + place, start + place + 1), extent))
    if start + spatial < rank:
        final.append(emit.slice(dims, 0, start + spatial, rank))
    shape = emit.output()[1]
    made = emit.op("Reshape", [moved, emit.concat(final)], _first_shape(shape) if first else shape)
    return emit.from_first(made, shape) if first else made


@converts("BatchToSpaceND", "BatchToSpace")
def batch_to_space(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    block, crops = _blocks(emit, node, value, 2 if node.op == "BatchToSpace" else None)
    spatial = len(block)
    rank = emit.rank(value)
    first = is_first(value) and spatial == rank - 2 and value.first is not None
    if first and value.first is not None:
        value = value.first
    start = 2 if first else 1
    dims = emit.dims(value)
    batch = _divided(emit, emit.slice(dims, 0, 0, 1), int(np.prod(block)))
    sizes = [emit.ints(block), batch, emit.slice(dims, 0, 1, rank)]
    split = emit.op("Reshape", [value, emit.concat(sizes)], [None] * (rank + spatial))
    order = list(range(spatial, spatial + start))
    for place in range(spatial):
        order += [spatial + start + place, place]
    order += list(range(spatial + start + spatial, rank + spatial))
    moved = emit.op("Transpose", [split], [None] * (rank + spatial), perm=order)
    final = [batch, emit.slice(dims, 0, 1, 2)] if first else [batch]
    for place, extent in enumerate(block):
        own = emit.slice(dims, 0, start + place, start + place + 1)
        final.append(emit.op("Mul", [own, emit.ints([extent])], [1]))
    if start + spatial < rank:
        final.append(emit.slice(dims, 0, start + spatial, rank))
    made = emit.op("Reshape", [moved, emit.concat(final)], [None] * rank)
    shape = emit.output()[1]
    if crops.any():
        axes = [start + place for place in range(spatial)]
        ends = [-int(after) if after else 2**31 - 1 for after in crops[:, 1]]
        operands = [made, emit.ints(crops[:, 0].tolist()), emit.ints(ends), emit.ints(axes)]
        made = emit.op("Slice", operands, [None] * rank)
    made.shape = _first_shape(shape) if first else shape
    return emit.from_first(made, shape) if first else made


def _first_shape(shape: Shape) -> Shape:
    return shape if shape.dims is None else Shape([shape[axis] for axis in to_first(len(shape))])


def _divided(emit: OnnxEmit, size: OnnxValue, by: int) -> OnnxValue:
    return emit.op("Div", [size, emit.ints([by])], [1])


def _blocks(emit: OnnxEmit, node: Node, value: OnnxValue, spatial: int | None) -> tuple[list[int], Array]:
    """The extents of a block, and pairs of borders or crops."""
    if spatial is None:
        block = [int(n) for n in emit.static(1, "the block")]
        pairs = np.asarray(emit.static(2, "the borders")).reshape(-1, 2)
    else:
        block = [int(node.attr("block_size", 2))] * spatial
        pairs = np.asarray(emit.static(1, "the borders")).reshape(-1, 2)
    return block, pairs
