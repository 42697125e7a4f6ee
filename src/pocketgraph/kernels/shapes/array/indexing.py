"""Shape rules of what takes or sets elements by their places: slices, gathers, diagonals, the order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph.op_traits import slice_masks
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, at_least, axis_of, dims_of, merge, of_rank, replaced
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed, held_by, of_input, unchanged
from pocketgraph.kernels.shapes.partial_values import Known, Partial
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule
from pocketgraph.kernels.xla_dimensions import GatherAxes

shape_rule("StridedSliceGrad")(held_by(0))
shape_rule("XlaDynamicUpdateSlice")(unchanged)
shape_rule("XlaDynamicSlice")(held_by(2))


def _with_rest(sizes: Known, size: Shape, whole: Shape) -> Shape:
    """The size of a slice from the beginning, with all of ``whole`` where sizes, of which some are known, say -1."""
    if not isinstance(sizes, Partial) or size.dims is None or whole.dims is None:
        return size
    is_rest = sizes.known & (sizes.numbers == -1)
    return Shape([n if rest else own for rest, own, n in zip(is_rest, size.dims, whole.dims, strict=True)])


def _begins(call: ShapeCall, rank: int | None) -> Sequence[int | None] | None:
    """Where a slice begins at each axis, None where not known or -1, as in TensorFlow; None where nothing is known."""
    found = call.known[1]
    if found is None:
        return None
    numbers, known = (found, None) if isinstance(found, np.ndarray) else (found.numbers, found.known)
    if numbers.ndim != 1 or rank not in (None, numbers.size):
        axes = "each axis" if rank is None else f"each of {rank} axes"
        raise GraphError(f"a slice begins at one place for {axes}, and begin is of shape {list(numbers.shape)}")
    begin = [int(n) if n != -1 and (known is None or known[i]) else None for i, n in enumerate(numbers)]
    for axis, start in enumerate(begin):
        if start is not None and start < 0:
            raise GraphError(f"a slice begins at {start} of axis {axis} of {call.shape(0)}; begin counts from 0 up")
    return begin


@shape_rule("Slice")
def cut(call: ShapeCall) -> Shape:
    shape, size, sizes = call.shape(0), call.as_shape(2), call.integers(2)
    begin = _begins(call, shape.rank if sizes is None else len(sizes))
    if sizes is None:
        ranks = [s for s in (shape.rank, size.rank) if s is not None]
        if not ranks:
            return UNKNOWN
        if begin is not None and all(start == 0 for start in begin) and size.rank == shape.rank:
            return _with_rest(call.known[2], size, shape)
        return size if size.dims is not None else Shape((None,) * ranks[0])
    dims = of_rank(shape, len(sizes))
    out: list[Dim] = []
    for i, (whole, part) in enumerate(zip(dims, sizes, strict=True)):
        start = begin[i] if begin is not None else None
        if part == -1:
            out.append(None if whole is None or start is None else whole - start)
        else:
            if whole is not None and part + (start or 0) > whole:
                raise GraphError(f"a slice of {part} from {start or 0} does not fit into dimension {i} of {shape}")
            out.append(part)
    return Shape(out)


@shape_rule("StridedSlice")
def strided_slice(call: ShapeCall) -> Shape:
    begin, end, strides = (call.integers(i) for i in (1, 2, 3))
    length = next((s[0] for s in (call.shape(i) for i in (1, 2, 3)) if s.rank == 1 and s[0] is not None), None)
    if length is None or length > 254:
        return UNKNOWN
    return sliced(call.shape(0), length, begin, end, strides, call.attr)


def sliced(
    shape: Shape,
    length: int,
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int] | None,
    attr: Any,
) -> Shape:
    """The shape of ``x[begin:end:strides]`` with the five masks that ``StridedSlice`` takes (one bit an entry).

    Args:
        shape: of x.
        length: entries in the slice.
        begin, end, strides: where known.
        attr: gives the mask of a name.
    """
    masks = slice_masks(attr)

    def has(name: str, entry: int) -> bool:
        return bool(masks[name] >> entry & 1)

    if shape.dims is None:
        return UNKNOWN
    used = sum(not has("new_axis", i) and not has("ellipsis", i) for i in range(length))
    skipped = len(shape.dims) - used
    if skipped < 0:
        raise GraphError(f"a slice of {used} dimensions was taken of shape {shape}")
    out: list[Dim] = []
    axis = 0
    for entry in range(length):
        if has("ellipsis", entry):
            out.extend(shape.dims[axis : axis + skipped])
            axis += skipped
            skipped = 0
        elif has("new_axis", entry):
            out.append(1)
        elif has("shrink_axis", entry):
            size = shape.dims[axis]
            axis += 1
            if strides is not None and (strides[entry] == 0 or (strides[entry] < 0 and size is not None)):
                raise GraphError(f"a single index has a stride of {strides[entry]}, not 1")
            at = begin[entry] if begin is not None and end is not None and strides is not None else None
            if at is not None and size is not None and not -size <= at < size:
                raise GraphError(f"slice index {at} of dimension {axis - 1} of {shape} is out of bounds")
        else:
            size = shape.dims[axis]
            axis += 1
            step = None if strides is None else strides[entry]
            first = None if begin is None or has("begin", entry) else begin[entry]
            last = None if end is None or has("end", entry) else end[entry]
            if step == 0:
                raise GraphError("a slice has a stride of 0")
            sure = (begin is not None or has("begin", entry)) and (end is not None or has("end", entry))
            if step is None or not sure:
                out.append(None)
            elif size is not None:
                out.append(len(range(*slice(first, last, step).indices(size))))
            else:
                out.append(_without_size(first, last, step))
    return Shape((*out, *shape.dims[axis:]))


def _without_size(first: int | None, last: int | None, step: int) -> Dim:
    """How many elements a slice of a dimension of unknown size has: known only when it is surely none."""
    if first is not None and last is not None and (first >= 0) == (last >= 0):
        count = len(range(first, last, step))
        return 0 if count == 0 else None
    return None


shape_rule(
    "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax",
    "ScatterNdNonAliasingAdd", "InplaceUpdate", "InplaceAdd", "InplaceSub",
)(unchanged)  # fmt: skip
shape_rule("ScatterNd")(held_by(2))


@shape_rule("OneHot")
def one_hot(call: ShapeCall) -> Shape:
    dims, depth = call.dims(0), call.integer(1)
    at = axis_of(call.attr("axis", -1), len(dims) + 1)
    return Shape((*dims[:at], depth, *dims[at:]))


@shape_rule("Gather")
def gather(call: ShapeCall) -> Shape:
    params, indices = call.shape(0), call.shape(1)
    if call.node.op == "ResourceGather":
        params = call.handle(0)
    return gathered(params, indices, 0)


@shape_rule("GatherV2")
def gather_v2(call: ShapeCall) -> Shape:
    batch = call.attr("batch_dims", 0)
    params, indices, axis = call.shape(0), call.shape(1), call.integer(2)
    if axis is None:
        if params.rank is None or indices.rank is None:
            return UNKNOWN
        return Shape((None,) * (params.rank + indices.rank - 1 - batch))
    return gathered(params, indices, axis, batch)


def gathered(params: Shape, indices: Shape, axis: int, batch: int = 0) -> Shape:
    """The shape of ``params`` with one axis replaced by the indices' shape (less their batch dimensions)."""
    old, new = dims_of(params), dims_of(indices)
    at = axis_of(axis, len(old))
    first = batch + len(new) if batch < 0 else batch
    return Shape((*old[:at], *new[first:], *old[at + 1 :]))


@shape_rule("GatherNd")
def gather_nd(call: ShapeCall) -> Shape:
    *places, depth = call.dims(1, 1)
    params = call.dims(0)
    if depth is None:
        return UNKNOWN
    if depth > len(params):
        raise GraphError(f"indices of {depth} numbers cannot select from shape {call.shape(0)}")
    return Shape((*places, *params[depth:]))


shape_rule("Where")(lambda call: Shape((None, call.shape(0).rank)))


@shape_rule("DynamicPartition")
def dynamic_partition(call: ShapeCall) -> Sequence[Shape]:
    data, rank, count = call.dims(0), len(call.dims(1)), call.count("num_partitions")
    merge(Shape(data[:rank]), call.shape(1))
    return [Shape((None, *data[rank:]))] * count


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(call: ShapeCall) -> Shape:
    count = len(call.inputs) // 2
    rest, largest = UNKNOWN, -1
    all_known = True
    for i in range(count):
        indices, data, values = call.shape(i), call.shape(count + i), call.integers(i)
        if data.dims is not None and indices.dims is not None:
            rest = merge(rest, Shape(data.dims[len(indices.dims) :]))
        if values is None:
            all_known = False
        else:
            largest = max([largest, *values])
    return Shape((largest + 1 if all_known else None, *dims_of(rest)))


@shape_rule("XlaGather")
def xla_gather(call: ShapeCall) -> Shape:
    """Sizes of windows at the axes that the message calls offsets, and those of the starts around them."""
    rank, starts = len(call.dims(0)), call.dims(1)
    sizes: Sequence[int | None] = call.integers(2) or [None] * rank
    axes = GatherAxes.of(call.attr("dimension_numbers", "").encode("latin-1"))
    try:
        axes.check(rank, len(starts))
    except ValueError as error:
        raise GraphError(str(error)) from None
    around = iter([size for axis, size in enumerate(starts) if axis != axes.vector])
    windows = dict(zip(axes.offset, (sizes[axis] for axis in axes.window_axes(rank)), strict=True))
    found = len(starts) - (axes.vector < len(starts)) + len(windows)
    return Shape(windows[axis] if axis in windows else next(around) for axis in range(found))


shape_rule("MatrixBandPart", "BatchMatrixBandPart")(unchanged)


shape_rule("MatrixDiag", "BatchMatrixDiag")(lambda call: Shape((*call.dims(0, 1), call.dims(0)[-1])))


@shape_rule("MatrixDiagV2", "MatrixDiagV3")
def matrices_of_diagonals(call: ShapeCall) -> Shape:
    """A size of -1 is the smallest that the diagonals fit in, square where neither size is said."""
    dims, diagonals = call.dims(0, 1), call.integers(1)
    rows, columns = call.integer(2), call.integer(3)
    if not diagonals or rows is None or columns is None:
        return UNKNOWN
    low, high, width = diagonals[0], diagonals[-1], dims[-1]
    if width is None:
        rows, columns = (None if size == -1 else size for size in (rows, columns))
    else:
        least_rows, least_columns = width - min(high, 0), width + max(low, 0)
        if rows == columns == -1:
            rows = columns = max(least_rows, least_columns)
        rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    return Shape((*dims[: -1 if low == high else -2], rows, columns))


@shape_rule("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(call: ShapeCall) -> Shape:
    *batch, rows, columns = call.dims(0, 2)
    return Shape((*batch, None if rows is None or columns is None else min(rows, columns)))


@shape_rule("MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals_of_matrices(call: ShapeCall) -> Shape:
    """The longest of the diagonals wanted; several are rows."""
    (*batch, rows, columns), diagonals = call.dims(0, 2), call.integers(1)
    if not diagonals:
        return UNKNOWN
    low, high = diagonals[0], diagonals[-1]
    band = () if low == high else (high - low + 1,)
    if rows is None or columns is None:
        return Shape((*batch, *band, None))
    return Shape((*batch, *band, max(0, min(rows + min(high, 0), columns - max(low, 0)))))


shape_rule("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")(
    lambda call: at_least(call.shape(0), 2)
)
shape_rule("Diag")(lambda call: Shape(call.dims(0) * 2))
shape_rule("DiagPart")(lambda call: Shape(call.dims(0)[: len(call.dims(0)) // 2]))


shape_rule("ListDiff")(fixed(VECTOR, VECTOR))
shape_rule("XlaSort")(unchanged)
shape_rule("UpperBound", "LowerBound")(of_input(1))


@shape_rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(call: ShapeCall) -> Sequence[Shape]:
    shapes = [Shape((None,)), call.shape(0)]
    if call.node.op.endswith("V2"):
        shapes = [UNKNOWN, UNKNOWN]
    return [*shapes, Shape((None,))]


@shape_rule("TopK", "TopKV2")
def top_k(call: ShapeCall) -> Sequence[Shape]:
    *before, last = call.dims(0, 1)
    k = call.attr("k") if call.node.op == "TopK" else call.integer(1)
    if last is not None and k is not None and k > last:
        raise GraphError(f"the {k} largest of {last} were asked for")
    return [Shape((*before, k))] * 2


@shape_rule("ApproxTopK")
def approx_top_k(call: ShapeCall) -> Sequence[Shape]:
    dims = call.dims(0, 1)
    if not call.attr("aggregate_to_topk", True):
        return [UNKNOWN, UNKNOWN]
    axis = axis_of(call.attr("reduction_dimension", -1), len(dims))
    return [replaced(dims, {axis: call.attr("k")})] * 2


shape_rule("NthElement")(lambda call: Shape(call.dims(0, 1)[:-1]))


@shape_rule("InTopK", "InTopKV2")
def in_top_k(call: ShapeCall) -> Shape:
    (rows, _), (labels,) = of_rank(call.shape(0), 2), of_rank(call.shape(1), 1)
    return merge(Shape((rows,)), Shape((labels,)))
