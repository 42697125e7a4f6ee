"""Lowerings of reductions, arg-max and running sums."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import MOST_DIMENSIONS, binary, choice
from pocketgraph.litert.lowerings.pieces import DEEPEST, in_32_bits, pad
from pocketgraph.litert.narrow_floats import NARROW
from pocketgraph.litert.program import Value
from pocketgraph.litert.writing import schema

REDUCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Mean": ("MEAN", ("float", "int32", "int64")),
    "Sum": ("SUM", ("float", "int32", "int64")),
    "Prod": ("REDUCE_PROD", ("float", "int32", "int64")),
    "Max": ("REDUCE_MAX", ("float", "int32", "int64")),
    "Min": ("REDUCE_MIN", ("float", "int32", "int64")),
    "Any": ("REDUCE_ANY", ("bool",)),
    "All": ("REDUCE_ALL", ("bool",)),
}

MOST_AXES = 6
"""How many axes XNNPACK's reductions have."""
MANY = 4096  # terms that LiteRT adds one after the other without losing digits that count; more are summed by axis


MOST_MULTIPLIED = 128  # elements of a running product, each an operator
MOST_SEGMENTS = 1 << 20  # that a list of constant places makes


@lowers(*REDUCTIONS)
def reduction(emit: Emit, node: Node) -> Value:
    code, dtypes = REDUCTIONS[node.op]
    source = emit.require(emit.input(0), *dtypes)
    axes = sorted(emit.axes(1, len(source.shape), "the reduced axes"))
    if len(set(axes)) != len(axes):
        raise emit.unsupported(f"the reduced axes {axes}, of which one comes twice")
    if not axes:
        return source
    keep = bool(node.attr("keep_dims", node.attr("keepdims", False)))
    return summed(emit, source, axes, keep=keep) if code == "SUM" else reduced(emit, code, source, axes, keep=keep)


def summed(emit: Emit, source: Value, axes: list[int], *, keep: bool) -> Value:
    """The sum over these axes, the last one first where there are many terms."""
    if source.dtype is FLOAT and len(axes) > 1 and math.prod([source.shape[axis] for axis in axes]) > MANY:
        source = reduced(emit, "SUM", source, axes[-1:], keep=True)
    return reduced(emit, "SUM", source, axes, keep=keep)


def reduced(emit: Emit, code: str, source: Value, axes: list[int], *, keep: bool) -> Value:
    shape = [1 if axis in axes else size for axis, size in enumerate(source.shape) if keep or axis not in axes]
    rank = len(source.shape)
    if rank > MOST_AXES or (rank > MOST_DIMENSIONS and (source.shape[-1] == 1 or _is_reshaped(emit, source))):
        return emit.reshape(_over_few_axes(emit, code, source, axes, keep=keep), shape)
    return emit.add(code, [source, emit.const(axes, np.int32)], shape, keep_dims=keep)


def _is_reshaped(emit: Emit, source: Value) -> bool:
    """Whether a reshape gave a value its axes, as of the groups of a normalization: fewer take less time.

    Others may be of a volume, whose channels come to lie last where nothing reshapes it.
    """
    before = next((each for each in reversed(emit.operations) if source in each.outputs), None)
    return before is not None and before.code == "RESHAPE"


def _over_few_axes(emit: Emit, code: str, source: Value, axes: list[int], *, keep: bool) -> Value:
    """The reduction with neighbouring axes as one and without those of 1, for which XNNPACK takes up to 30 times as
    long; over one after the other where there are still too many."""
    runs: list[tuple[bool, int]] = []  # whether it is reduced, and its size
    for axis, size in enumerate(source.shape):
        is_reduced = axis in axes
        if size != 1 and runs and runs[-1][0] == is_reduced:
            runs[-1] = (is_reduced, runs[-1][1] * size)
        elif size != 1:
            runs.append((is_reduced, size))
    while any(is_reduced for is_reduced, _ in runs):
        sizes = [size for _, size in runs]
        places = [place for place, (is_reduced, _) in enumerate(runs) if is_reduced]
        if len(runs) > MOST_AXES:
            if code == "MEAN" and source.dtype is not FLOAT:
                raise emit.unsupported("means of whole numbers over so many axes")
            last = places[-1]
            places = [last]
            sizes = [math.prod(sizes[:last]), sizes[last], math.prod(sizes[last + 1 :])]
            source = reduced(emit, code, emit.reshape(source, sizes), [1], keep=False)
        else:
            source = reduced(emit, code, emit.reshape(source, sizes), places, keep=keep)
        runs = [run for place, run in enumerate(runs) if place not in places]
    return source


@lowers("ArgMax", "ArgMin", takes=("float", "int32", "uint8", "int8", "bool"))
def arg_extreme(emit: Emit, node: Node, source: Value) -> Value:
    if not source.shape:
        raise emit.unsupported(f"{node.op} of a scalar")
    axes = emit.axes(1, len(source.shape))
    if len(axes) != 1:
        raise emit.unsupported(f"{node.op} over {len(axes)} axes")
    dtype = node.attr("output_type", DType.named("int64"))
    shape = [size for axis, size in enumerate(source.shape) if axis != axes[0]]
    if dtype.name not in ("int32", "int64"):
        raise emit.unsupported(f"{node.op} with results of type {dtype.name}")
    code = "ARG_MAX" if node.op == "ArgMax" else "ARG_MIN"
    operand = emit.const(axes[0], np.int32)
    return emit.add(code, [source, operand], shape, dtype, output_type=schema.TENSOR_TYPES[dtype.name])


@lowers("Cumsum", takes=("float", "int32", "int64"))
def running_sum(emit: Emit, node: Node, source: Value) -> Value:
    if not source.shape:
        raise emit.unsupported("Cumsum of a scalar")
    (axis,) = emit.axes(1, len(source.shape))
    return emit.add(
        "CUMSUM",
        [source, emit.const(axis, np.int32)],
        source.shape,
        exclusive=bool(node.attr("exclusive", False)),
        reverse=bool(node.attr("reverse", False)),
    )


@lowers("Cumprod", takes=("float", "int32"))
def running_product(emit: Emit, node: Node, source: Value) -> Value:
    """
    Given:   x = Placeholder(dtype=float, shape=[?,3])
             y = Cumprod(x, 1, T=float)
    Result:  a, b, c = UNPACK(x, axis=1)
             y = PACK(a, MUL(a, b), MUL(MUL(a, b), c), axis=1)
    """
    (axis,) = emit.axes(1, len(source.shape))
    is_reverse, left_out = bool(node.attr("reverse", False)), int(node.attr("exclusive", False))
    whole, count = source.shape, source.shape[axis]
    if not 0 < count <= MOST_MULTIPLIED:
        raise emit.unsupported(f"running products of {count} elements")
    if left_out == count:
        return emit.constant_like(source, 1)
    if len(whole) > DEEPEST:
        source = emit.reshape(source, (math.prod(whole[:axis]), count, math.prod(whole[axis + 1 :])))
        axis = 1
    thin = source.shape[:axis] + source.shape[axis + 1 :]
    parts = emit.add_many("UNPACK", [source], [(source.dtype, thin)] * count, num=count, axis=axis)
    parts = (parts[::-1] if is_reverse else parts)[: count - left_out]
    found = list(itertools.accumulate(parts, lambda product, part: binary(emit, "MUL", product, part)))
    shape = (*source.shape[:axis], len(found), *source.shape[axis + 1 :])
    packed = found[::-1] if is_reverse else found
    made = emit.add("PACK", [*packed], shape, values_count=len(found), axis=axis)
    if left_out:
        pairs = np.zeros((len(shape), 2), np.int32)
        pairs[axis, int(is_reverse)] = 1
        made = pad(emit, made, pairs, 1)
    return emit.reshape(made, whole)


@lowers("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def segments(emit: Emit, node: Node) -> Value:
    source, places = emit.require(emit.input(0), "float", "int32"), emit.require(emit.input(1), "int32", "int64")
    count = int(np.asarray(emit.static(2, "the number of segments")).reshape(-1)[0])
    rank = len(places.shape)
    dtype = node.attr("T", FLOAT)
    if isinstance(dtype, DType) and dtype.name in NARROW:
        raise emit.unsupported("segments of 16-bit floats, of which an empty one has the largest or smallest")
    if not rank or not source.size or not count:
        raise emit.unsupported(f"{node.op} of {list(source.shape)} in {count} segments by {list(places.shape)}")
    operands = [source, in_32_bits(emit, places), emit.const(count, np.int32)]
    code = f"UNSORTED_SEGMENT_{node.op.removeprefix('UnsortedSegment').upper()}"
    return emit.add(code, operands, (count, *source.shape[rank:]))


@lowers("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin", takes=("float",))
def sorted_segments(emit: Emit, node: Node, source: Value) -> Value:
    places = np.asarray(emit.static(1, "the segments"))
    if (
        places.shape != source.shape[:1]
        or (np.diff(places) < 0).any()
        or not 0 <= places[0] <= places[-1] < MOST_SEGMENTS
    ):
        raise emit.unsupported(
            f"segments that are not sorted, or not of {list(source.shape)}, or over {MOST_SEGMENTS:,}"
        )
    sizes = np.bincount(places)
    shape = (len(sizes), *source.shape[1:])
    operands = [source, emit.const(places, np.int32), emit.const(len(sizes), np.int32)]
    code = node.op.removeprefix("Segment").upper().replace("MEAN", "SUM")
    total = emit.add(f"UNSORTED_SEGMENT_{code}", operands, shape)
    column = sizes.reshape(-1, *[1] * (len(shape) - 1))
    if node.op == "SegmentMean":
        total = binary(emit, "DIV", total, emit.const(np.maximum(column, 1), np.float32))
    elif code in ("MAX", "MIN") and not sizes.all():  # of none LiteRT gives the lowest or the highest
        total = choice(emit, emit.const(column > 0), total, emit.const(0, np.float32))
    return total


@lowers("L2Loss", takes=("float",))
def half_squared_norm(emit: Emit, node: Node, source: Value) -> Value:
    flat = emit.reshape(source, (source.size,))
    total = emit.add("SUM", [emit.add("SQUARE", [flat], flat.shape), emit.const([0], np.int32)], (), keep_dims=False)
    return emit.add("MUL", [total, emit.const(0.5, np.float32)], (), activation="")
