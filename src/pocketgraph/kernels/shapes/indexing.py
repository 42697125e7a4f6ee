"""Shape rules of slicing, gathering, scattering and of results sized by values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, at_least, axis_of, merge, of_rank, replaced
from pocketgraph.kernels.shapes.rules import Call, shape_rule


@shape_rule("Slice")
def cut(call: Call) -> Shape:
    shape, begin, size = call.shape(0), call.integers(1), call.as_shape(2)
    sizes = call.integers(2)
    if sizes is None:
        ranks = [s for s in (shape.rank, size.rank) if s is not None]
        if not ranks:
            return UNKNOWN
        if begin is not None and not any(begin) and size.rank == shape.rank:
            return size
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
def strided_slice(call: Call) -> Shape:
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
    masks = {name: int(attr(f"{name}_mask", 0)) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

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
            axis += 1
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


@shape_rule("Gather", "ResourceGather")
def gather(call: Call) -> Shape:
    params, indices = call.shape(0), call.shape(1)
    if call.node.op == "ResourceGather":
        params = call.handle(0)
    return gathered(params, indices, 0)


@shape_rule("GatherV2")
def gather_v2(call: Call) -> Shape:
    batch = call.attr("batch_dims", 0)
    params, indices, axis = call.shape(0), call.shape(1), call.integer(2)
    if axis is None:
        if params.rank is None or indices.rank is None:
            return UNKNOWN
        return Shape((None,) * (params.rank + indices.rank - 1 - batch))
    return gathered(params, indices, axis, batch)


def gathered(params: Shape, indices: Shape, axis: int, batch: int = 0) -> Shape:
    """The shape of ``params`` with one axis replaced by the indices' shape (less their batch dimensions)."""
    if params.dims is None or indices.dims is None:
        return UNKNOWN
    at = axis_of(axis, len(params.dims))
    first = batch + len(indices.dims) if batch < 0 else batch
    return Shape((*params.dims[:at], *indices.dims[first:], *params.dims[at + 1 :]))


@shape_rule("GatherNd")
def gather_nd(call: Call) -> Shape:
    params, indices = call.shape(0), at_least(call.shape(1), 1)
    if params.dims is None or indices.dims is None or indices.dims[-1] is None:
        return UNKNOWN
    depth = indices.dims[-1]
    if depth > len(params.dims):
        raise GraphError(f"indices of {depth} numbers cannot select from shape {params}")
    return Shape((*indices.dims[:-1], *params.dims[depth:]))


@shape_rule("ScatterNd")
def scatter_nd(call: Call) -> Shape:
    return call.as_shape(2)


@shape_rule(
    "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax",
    "ScatterNdNonAliasingAdd", "InplaceUpdate", "InplaceAdd", "InplaceSub",
)  # fmt: skip
def first_input(call: Call) -> Shape:
    return call.shape(0)


@shape_rule("SparseTensorDenseAdd")
def sparse_dense_add(call: Call) -> Shape:
    return call.shape(3)


@shape_rule("SparseToDense")
def sparse_to_dense(call: Call) -> Shape:
    return call.as_shape(1)


@shape_rule("Where")
def where(call: Call) -> Shape:
    return Shape((None, call.shape(0).rank))


@shape_rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(call: Call) -> Sequence[Shape]:
    shapes = [Shape((None,)), call.shape(0)]
    if call.node.op.endswith("V2"):
        shapes = [UNKNOWN, UNKNOWN]
    return [*shapes, Shape((None,))]


@shape_rule("ListDiff")
def list_diff(call: Call) -> Sequence[Shape]:
    return [Shape((None,)), Shape((None,))]


@shape_rule("DynamicPartition")
def dynamic_partition(call: Call) -> Sequence[Shape]:
    data, partitions, count = call.shape(0), call.shape(1), call.count("num_partitions")
    if data.dims is None or partitions.dims is None:
        return [UNKNOWN] * count
    merge(Shape(data.dims[: len(partitions.dims)]), partitions)
    return [Shape((None, *data.dims[len(partitions.dims) :]))] * count


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(call: Call) -> Shape:
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
    if rest.dims is None:
        return UNKNOWN
    return Shape((largest + 1 if all_known else None, *rest.dims))


@shape_rule("TopK", "TopKV2")
def top_k(call: Call) -> Sequence[Shape]:
    shape = at_least(call.shape(0), 1)
    k = call.attr("k") if call.node.op == "TopK" else call.integer(1)
    if shape.dims is None:
        return [UNKNOWN, UNKNOWN]
    last = shape.dims[-1]
    if last is not None and k is not None and k > last:
        raise GraphError(f"the {k} largest of {last} were asked for")
    return [replaced(shape.dims, {len(shape.dims) - 1: k})] * 2


@shape_rule("ApproxTopK")
def approx_top_k(call: Call) -> Sequence[Shape]:
    shape = at_least(call.shape(0), 1)
    if shape.dims is None or not call.attr("aggregate_to_topk", True):
        return [UNKNOWN, UNKNOWN]
    axis = axis_of(call.attr("reduction_dimension", -1), len(shape.dims))
    return [replaced(shape.dims, {axis: call.attr("k")})] * 2


@shape_rule("NthElement")
def nth_element(call: Call) -> Shape:
    shape = at_least(call.shape(0), 1)
    return UNKNOWN if shape.dims is None else Shape(shape.dims[:-1])


@shape_rule("InTopK", "InTopKV2")
def in_top_k(call: Call) -> Shape:
    (rows, _), (labels,) = of_rank(call.shape(0), 2), of_rank(call.shape(1), 1)
    return merge(Shape((rows,)), Shape((labels,)))


@shape_rule("UpperBound", "LowerBound")
def search_sorted(call: Call) -> Shape:
    return call.shape(1)
