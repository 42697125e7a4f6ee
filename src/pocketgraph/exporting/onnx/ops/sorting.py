"""The largest, the different, the counted."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, DOUBLE, FLOAT, INT32, INT64


@converts("TopKV2", "TopK")
def largest(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    value = emit.input(0)
    count = emit.vector(emit.input(1)) if node.op == "TopKV2" else emit.ints([int(node.attr("k", 1))])
    shape = emit.output()[1]
    made, places = emit.ops("TopK", [value, count], 2, [shape, shape], [None, INT64], axis=-1, largest=1, sorted=1)
    return made, emit.cast(places, plain_type(node.dtype("index_type", INT32)))


@converts("NthElement")
def nth(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    place = emit.vector(emit.input(1))
    count = emit.op("Add", [place, emit.ints([1])], [1])
    largest = int(bool(node.attr("reverse", False)))
    made, _ = emit.ops("TopK", [value, count], 2, None, [None, INT64], axis=-1, largest=largest, sorted=1)
    made.shape = Shape(None if value.shape.dims is None else [*value.shape.dims[:-1], None])
    return emit.op("Gather", [made, emit.reshape(place, [])], emit.output()[1], axis=-1)


@converts("InTopKV2", "InTopK")
def among_the_largest(emit: OnnxEmit, node: Node, scores: OnnxValue, targets: OnnxValue) -> OnnxValue:
    count = emit.as_int64(emit.input(2)) if node.op == "InTopKV2" else emit.const(np.int64(node.attr("k", 1)))
    places = emit.unsqueeze(emit.as_int64(targets), [1])
    inside = emit.op("Mod", [places, emit.dim(scores, 1)], places.shape)
    own = emit.op("GatherElements", [scores, inside], places.shape, axis=1)
    above = emit.cast(emit.op("Greater", [scores, own], scores.shape, BOOL), INT64)
    better = reduce(emit, "ReduceSum", above, [1], True)
    # As TensorFlow: a class that is none is not among them, nor is any in a row that is not finite.
    finite = reduce(emit, "ReduceSum", emit.op("Sub", [scores, scores], scores.shape), [1], True)
    found = emit.op("Less", [better, count], places.shape, BOOL)
    for same in ([places, inside], [finite, emit.like(0, scores)]):
        found = emit.op("And", [found, emit.op("Equal", same, places.shape, BOOL)], places.shape, BOOL)
    return emit.squeeze(found, [1])


@converts("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    if emit.rank(value) != 1:
        raise emit.unsupported("only the different elements of vectors have an ONNX form")
    outputs = emit.ops("Unique", [value], 4, [[None]] * 4, [None, INT64, INT64, INT64], sorted=0)
    kind = plain_type(node.dtype("out_idx", INT32))
    emit.result(outputs[0], 0)
    emit.result(emit.cast(outputs[2], kind), 1)
    if "Counts" in node.op:
        emit.result(emit.cast(outputs[3], kind), 2)


@converts("Bincount", "DenseBincount")
def counted(emit: OnnxEmit, node: Node) -> OnnxValue:
    """Each number against each bin; numbers beyond the last bin are left out."""
    if node.op == "DenseBincount" and (emit.rank(emit.input(0)) != 1 or node.attr("binary_output", False)):
        raise emit.unsupported("ONNX counts vectors only")
    value, size = emit.reshape(emit.as_int64(emit.input(0)), [-1]), emit.as_int64(emit.input(1))
    weights = emit.input(2)
    hits = emit.matches(value, emit.count_up(size, [None]))
    dtype, shape = emit.output()
    amounts = emit.cast(hits, dtype)
    if weights.shape.elements != 0:
        amounts = emit.op("Mul", [amounts, emit.reshape(weights, [-1, 1])], [None, None])
    made = reduce(emit, "ReduceSum", amounts, [0], False)
    made.shape = shape
    return made


@converts("HistogramFixedWidth")
def histogram(emit: OnnxEmit, node: Node, value: OnnxValue, limits: OnnxValue, count: OnnxValue) -> OnnxValue:
    value = emit.cast(emit.reshape(value, [-1]), FLOAT)
    low, high = (emit.cast(emit.slice(limits, 0, place, place + 1), FLOAT) for place in (0, 1))
    bins = emit.cast(count, FLOAT)
    span = emit.op("Sub", [high, low], [1])
    scaled = emit.op("Mul", [emit.op("Div", [emit.op("Sub", [value, low]), span]), bins])
    last = emit.op("Sub", [bins, emit.const(np.float32(1))], [])
    held = emit.op("Max", [emit.op("Min", [emit.op("Floor", [scaled]), last]), emit.const(np.float32(0))], [None])
    hits = emit.matches(emit.as_int64(held), emit.count_up(emit.as_int64(count), [None]))
    made = reduce(emit, "ReduceSum", emit.cast(hits, INT32), [0], False)
    made.shape = emit.output()[1]
    return made


@converts("ListDiff")
def without(emit: OnnxEmit, node: Node, value: OnnxValue, others: OnnxValue) -> tuple[OnnxValue, ...]:
    hits = reduce(emit, "ReduceMax", emit.cast(emit.matches(value, others), INT32), [1], False)
    stays = emit.op("Equal", [hits, emit.const(np.int32(0))], [None], BOOL)
    places = emit.reshape(emit.op("NonZero", [stays], [1, None], INT64), [-1])
    left = emit.op("Gather", [value, places], [None], axis=0)
    return left, emit.cast(places, plain_type(node.dtype("out_idx", INT32)))


@converts("Bucketize")
def interval(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """How many boundaries an element is not below; NaN is below none."""
    dtype, shape = emit.output()
    limits = emit.const(node.attr("boundaries", []), np.float64 if value.dtype is DOUBLE else np.float32)
    if value.dtype is not DOUBLE:
        value = emit.cast(value, FLOAT)
    rank = emit.rank(value)
    below = elementwise(emit, "Less", [emit.unsqueeze(value, [rank]), limits], BOOL)
    made = reduce(emit, "ReduceSum", emit.cast(unary(emit, "Not", below), dtype), [rank], False)
    made.shape = shape
    return made
