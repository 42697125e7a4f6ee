"""Lowerings of elements by index."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.nn.unpooling import compared, origin_of_places, unpooled
from pocketgraph.litert.lowerings.pieces import in_32_bits
from pocketgraph.litert.program import Value


@lowers("Gather", "GatherV2")
def gather(emit: Emit, node: Node) -> Value:
    source, indices = emit.require(emit.input(0), *MOVED), emit.require(emit.input(1), "int32", "int64")
    batch = int(node.attr("batch_dims", 0))
    axis = 0 if node.op == "Gather" else emit.axes(2, len(source.shape))[0]
    batch = batch + len(indices.shape) if batch < 0 else batch
    return emit.add("GATHER", [source, indices], emit.output()[1], axis=axis, batch_dims=batch)


@lowers("GatherNd")
def gather_nd(emit: Emit, node: Node) -> Value:
    if node.attr("bad_indices_policy", b"") == b"IGNORE":
        raise emit.unsupported("indices that may point outside")
    source, indices = emit.require(emit.input(0), *MOVED), emit.require(emit.input(1), "int32", "int64")
    return emit.add("GATHER_ND", [source, indices], emit.output()[1])


@lowers("OneHot", takes=("int32", "int64", "uint8", "int8"))
def one_hot(emit: Emit, node: Node, indices: Value) -> Value:
    if indices.dtype.size == 1:
        indices = emit.add("CAST", [indices], indices.shape, INT32)
    depth = int(np.asarray(emit.static(1, "the depth")).reshape(-1)[0])
    on, off = (emit.require(value, "float", "int32", "int64", "uint8", "int8", "bool") for value in emit.inputs(2, 4))
    return emit.add(
        "ONE_HOT",
        [indices, emit.const(depth, np.int32), on, off],
        emit.output()[1],
        on.dtype,
        axis=int(node.attr("axis", -1)),
    )


@lowers("ScatterNd")
def scatter(emit: Emit, node: Node) -> Value:
    """Puts the places of a pooling back where the indices are just those; LiteRT's own operator does the rest."""
    if node.attr("bad_indices_policy", b"") == b"IGNORE":
        raise emit.unsupported("indices that may point outside")
    updates = emit.require(emit.input(1), "float", "int32", "int64", "int8", "uint8", "bool")
    shape = tuple(int(size) for size in np.asarray(emit.static(2, "the shape")).reshape(-1))
    origin = origin_of_places(emit, updates, shape) if updates.dtype is FLOAT else None
    if origin is not None:
        image, windows = origin
        pooled = emit.reshape(updates, (windows.image[0], *windows.counts, windows.image[3]))
        return emit.reshape(unpooled(emit, pooled, compared(emit, image, windows), windows), shape)
    return _added_up(emit, emit.input(0), updates, shape)


def _added_up(emit: Emit, indices: Value, updates: Value, shape: tuple[int, ...]) -> Value:
    indices = in_32_bits(emit, emit.require(indices, "int32", "int64"))
    if updates.dtype is BOOL or not indices.shape or not shape or updates.shape == ():
        raise emit.unsupported(f"scattering {updates.dtype.name} to {list(shape)}")
    return emit.add("SCATTER_ND", [indices, updates, emit.const(shape, np.int32)], shape, updates.dtype)


@lowers("TensorScatterAdd", "TensorScatterSub")
def scatter_to(emit: Emit, node: Node) -> Value:
    """What is scattered to zeros, added to all elements."""
    if node.attr("bad_indices_policy", b"") == b"IGNORE":
        raise emit.unsupported("indices that may point outside")
    value, updates = (emit.require(emit.input(place), "float", "int32", "int64") for place in (0, 2))
    scattered = _added_up(emit, emit.input(1), updates, value.shape)
    return binary(emit, "ADD" if node.op == "TensorScatterAdd" else "SUB", value, scattered)


@lowers("DynamicStitch", "ParallelDynamicStitch")
def stitch(emit: Emit, node: Node) -> Value:
    """All rows one behind the other, of which those are gathered that the last index of a place tells."""
    count = len(node.data_inputs) // 2
    places = [np.asarray(emit.static(at, "the indices")) for at in range(count)]
    parts = [emit.require(value, *MOVED) for value in emit.inputs(count, 2 * count)]
    flat = np.concatenate([place.reshape(-1) for place in places])
    shape = emit.output()[1]
    if flat.size < shape[0] or set(flat.tolist()) != set(range(shape[0])):
        raise emit.unsupported(f"rows that no index names, of {shape[0]}")
    rows = np.zeros(shape[0], np.int32)
    for row, place in enumerate(flat.tolist()):  # the last one counts
        rows[place] = row
    filled = [
        emit.reshape(part, (place.size, *shape[1:])) for part, place in zip(parts, places, strict=True) if place.size
    ]
    return emit.add("GATHER", [emit.concatenated(filled, 0), emit.const(rows)], shape, axis=0, batch_dims=0)
