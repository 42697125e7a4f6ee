"""Elements and rows by their indices: gathered, scattered, stitched together."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.pass_through import filled
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT32
from pocketgraph.litert.operands import KNOWN


@converts("Gather", "GatherV2", "ResourceGather")
def gather(emit: OnnxEmit, node: Node, value: OnnxValue, indices: OnnxValue) -> OnnxValue:
    _, shape = emit.output()
    axis = 0
    batch = int(node.attr("batch_dims", 0))
    if node.op == "GatherV2":
        axis = int(emit.static(2, "the axis").reshape(-1)[0])
        if axis < 0:
            axis += emit.rank(value)
    if indices.dtype.name not in ("int32", "int64"):
        indices = emit.as_int64(indices)
    if batch:
        return _by_batch(emit, value, indices, axis, batch)
    return emit.op("Gather", [value, indices], shape, axis=axis)


def _by_batch(emit: OnnxEmit, value: OnnxValue, indices: OnnxValue, axis: int, batch: int) -> OnnxValue:
    """Each element of the batch has its own indices: GatherND does that along the axis after the batch."""
    batch = batch + emit.rank(indices) if batch < 0 else batch
    if axis != batch:
        raise emit.unsupported("with batch_dims, ONNX gathers along the first axis after them only")
    pointers = emit.unsqueeze(emit.as_int64(indices), [emit.rank(indices)])
    return emit.op("GatherND", [value, pointers], emit.output()[1], batch_dims=batch)


@converts("GatherNd")
def gather_nd(emit: OnnxEmit, node: Node) -> OnnxValue:
    _refuse_ignored_indices(emit, node)
    value, indices = emit.inputs()
    return emit.op("GatherND", [value, emit.as_int64(indices)], emit.output()[1])


def _refuse_ignored_indices(emit: OnnxEmit, node: Node) -> None:
    if node.attr("bad_indices_policy", b"") == b"IGNORE":
        raise emit.unsupported("it passes over indices that point outside, which ONNX refuses or counts from the end")


@converts("ScatterNd")
def scatter_nd(emit: OnnxEmit, node: Node) -> OnnxValue:
    _refuse_ignored_indices(emit, node)
    indices, updates, shape = emit.inputs()
    dtype, found = emit.output()
    zeros = filled(emit, emit.as_int64(shape), np.zeros(1, dtype.numpy), OnnxValue("", dtype, found))
    return scattered(emit, zeros, indices, updates, "add")


def scattered(
    emit: OnnxEmit, value: OnnxValue, indices: OnnxValue, updates: OnnxValue, reduction: str = "none"
) -> OnnxValue:
    """A tensor with elements exchanged, or added to."""
    attrs: dict[str, Any] = {}
    if reduction != "none":
        emit.since(16 if reduction in ("add", "mul") else 18, f"ONNX scatters with '{reduction}'")
        attrs["reduction"] = reduction
    return emit.op("ScatterND", [value, emit.as_int64(indices), updates], value.shape, **attrs)


SCATTERED = {
    "TensorScatterUpdate": "none", "TensorScatterAdd": "add", "TensorScatterMax": "max", "TensorScatterMin": "min",
}  # fmt: skip


@converts(*SCATTERED, "TensorScatterSub")
def tensor_scatter(emit: OnnxEmit, node: Node) -> OnnxValue:
    _refuse_ignored_indices(emit, node)
    value, indices, updates = emit.inputs()
    if node.op == "TensorScatterSub":
        updates = emit.op("Neg", [updates], updates.shape)
    return scattered(emit, value, indices, updates, SCATTERED.get(node.op, "add"))


@converts("DynamicStitch", "ParallelDynamicStitch")
def stitched(emit: OnnxEmit, node: Node) -> OnnxValue:
    """Rows in the places that indices give; of several for one place the last one stays."""
    count = emit.count // 2
    _, shape = emit.output()
    indices = [emit.reshape(emit.as_int64(value), [-1]) for value in emit.inputs(0, count)]
    rows: list[OnnxValue] = []
    for place, value in enumerate(emit.inputs(count)):
        given = emit.rank(emit.input(place))
        rank = emit.rank(value)
        inner = list(value.shape)[given:]
        if None in inner:
            if given == 1:
                rows.append(value)
                continue
            raise emit.unsupported(f"the shape of its rows must be {KNOWN}")
        rows.append(value if given == 1 and rank else emit.reshape(value, [None, *inner]))
    places, data = emit.concat(indices), emit.concat(rows)
    size = None if shape.dims is None else shape[0]
    if size is None:
        axes: dict[str, Any] = {} if emit.opset >= 18 else {"axes": [0]}
        last = emit.op("ReduceMax", [places], [1], keepdims=1, **axes)
        length = emit.op("Add", [last, emit.ints([1])], [1])
    else:
        length = emit.ints([size])
    inner_dims = emit.slice(emit.dims(data), 0, 1, 2**31 - 1) if emit.rank(data) > 1 else None
    dims = length if inner_dims is None else emit.concat([length, inner_dims])
    zeros = filled(emit, dims, np.zeros(1, data.dtype.numpy), OnnxValue("", data.dtype, shape))
    return emit.op("ScatterND", [zeros, emit.unsqueeze(places, [1]), data], shape)


@converts("DynamicPartition")
def partitioned(emit: OnnxEmit, node: Node, value: OnnxValue, labels: OnnxValue) -> None:
    depth = emit.rank(labels)
    if depth != 1:
        value = emit.reshape(value, [None, *list(value.shape)[depth:]])
        labels = emit.reshape(labels, [-1])
    for port in range(int(node.attr("num_partitions", 1))):
        chosen = emit.op("Equal", [labels, emit.like(port, labels)], labels.shape, BOOL)
        emit.result(emit.op("Compress", [value, chosen], None, axis=0), port)


@converts("GatherTree", "Addons>GatherTree")
def gather_tree(emit: OnnxEmit, node: Node) -> OnnxValue:
    """From the last step back each beam goes on to its parent; what stands behind an end token is one, too."""
    tokens, parents, lengths, end = emit.inputs()
    _, shape = emit.output()
    if shape.dims is None or shape.dims[0] is None:
        raise emit.unsupported("how many steps it has is open")
    end = emit.reshape(end, [])
    lengths = emit.unsqueeze(emit.as_int64(lengths), [1])
    beams = emit.reshape(emit.op("Gather", [emit.dims(tokens), emit.ints([2])]), [])
    first = emit.op("Range", [emit.like(0, beams), beams, emit.like(1, beams)])
    follows = emit.op("Expand", [first, emit.op("Slice", [emit.dims(tokens), emit.ints([1]), emit.ints([3])])])
    found: list[OnnxValue] = []
    for step in reversed(range(shape.dims[0])):
        place = emit.const(np.array(step, np.int64))
        begun = emit.op("Less", [place, lengths], None, BOOL)
        read, given = (
            emit.op("GatherElements", [emit.op("Gather", [every, place], axis=0), follows], axis=1)
            for every in (tokens, parents)
        )
        found.insert(0, emit.unsqueeze(emit.op("Where", [begun, read, end], None, read.dtype), [0]))
        follows = emit.op("Where", [begun, emit.as_int64(given), follows], None, follows.dtype)
    made = emit.op("Concat", found, shape, axis=0)
    ends = emit.cast(emit.op("Equal", [made, end], shape, BOOL), INT32)
    behind = emit.op("CumSum", [ends, emit.const(np.array(0, np.int64))], shape)
    has_ended = emit.op("Greater", [behind, emit.like(0, behind)], shape, BOOL)
    return emit.op("Where", [has_ended, end, made], shape, made.dtype)
