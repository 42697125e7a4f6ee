"""Gradients of what hands on, moves, joins, gathers and scatters elements.

In lookups by index each element goes back to where it came from, and those from one place are summed. TensorFlow gives
such gradients as pairs of rows and indices; here they are whole tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.dtype import INT32

not_differentiable(
    "StopGradient", "Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike", "Const", "Where", "OneHot",
    "BroadcastGradientArgs", "InvertPermutation", "ConcatOffset", "Unique", "UniqueWithCounts", "NonMaxSuppression",
    "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
)  # fmt: skip


@gradient(
    "Identity",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "EnsureShape",
    "DebugGradientIdentity",
    "PlaceholderWithDefault",
    "Print",
    "XlaSharding",
    "XlaClusterOutput",
)
def passed(op: NodeGradient) -> str:
    return op.grad


gradient("IdentityN")(lambda op: op.grads)


@gradient("PreventGradient")
def prevented(op: NodeGradient) -> str:
    raise GraphError(f"it forbids gradients: {op.attr('message')}")


COUNTERPARTS = {
    "ReverseV2": "ReverseV2", "Reverse": "Reverse", "ReverseSequence": "ReverseSequence",
    "SpaceToDepth": "DepthToSpace", "DepthToSpace": "SpaceToDepth",
    "SpaceToBatchND": "BatchToSpaceND", "BatchToSpaceND": "SpaceToBatchND",
    "SpaceToBatch": "BatchToSpace", "BatchToSpace": "SpaceToBatch",
    "MirrorPad": "MirrorPadGrad", "MirrorPadGrad": "MirrorPad",
    "MatrixDiag": "MatrixDiagPart", "Diag": "DiagPart", "DiagPart": "Diag", "MatrixBandPart": "MatrixBandPart",
}  # fmt: skip
"""Not a trait: ops that move each element to one place, each with the op that moves its gradient back."""


@gradient(*COUNTERPARTS)
def moved_back(op: NodeGradient) -> str:
    layout = op.attrs("seq_dim", "batch_dim", "block_size", "data_format", "mode")
    return op.add(COUNTERPARTS[op.node.op], op.grad, *op.inputs[1:], **layout)


gradient("Reshape", "ExpandDims", "Squeeze")(lambda op: op.add("Reshape", op.grad, op.shape_of_input(0)))


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: NodeGradient) -> str:
    order = op.value(1)
    back = op.add("InvertPermutation", op.inputs[1]) if order is None else op.const(np.argsort(order))
    return op.add(op.node.op, op.grad, back)


gradient("Roll")(lambda op: op.add("Roll", op.grad, op.add("Neg", op.inputs[1]), op.inputs[2]))


@gradient("Slice")
def cut(op: NodeGradient) -> str:
    """Padded with zeros where elements were left out."""
    begin = op.cast(op.inputs[1], INT32)
    begins, before, after = op.value(1), op.static(op.inputs[0]), op.static(op.output())
    if begins is not None and before.is_known and after.is_known:
        behind = np.asarray(before.known) - np.asarray(after.known) - begins
        return op.add("Pad", op.grad, op.const(np.stack([begins, behind], 1)))
    behind_ref = op.add("Sub", op.add("Sub", op.shape_of_input(0), op.shape(op.output())), begin)
    return op.add("Pad", op.grad, op.add("Pack", [begin, behind_ref], axis=1))


@gradient("StridedSlice")
def strided_slice(op: NodeGradient) -> str:
    shape = op.cast(op.shape_of_input(0), op.builder.dtype(op.inputs[1]))
    masks = op.attrs("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return op.add("StridedSliceGrad", shape, *op.inputs[1:], op.grad, **masks)


@gradient("StridedSliceGrad")
def strided_slice_grad(op: NodeGradient) -> list[str | None]:
    masks = op.attrs("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return [None, None, None, None, op.add("StridedSlice", op.grad, *op.inputs[1:4], **masks)]


@gradient("Pad", "PadV2")
def pad(op: NodeGradient) -> list[str | None]:
    """The middle of the gradient; what fills the margin gets the sum of the rest."""
    paddings = op.value(1)
    if paddings is not None:
        begin = op.const(np.asarray(paddings)[:, 0])
    else:
        rank = op.rank(op.inputs[0])
        begin = op.cast(
            op.add("Reshape", op.add("Slice", op.inputs[1], op.const([0, 0]), op.const([rank, 1])), op.const([-1])),
            INT32,
        )
    middle = op.add("Slice", op.grad, begin, op.shape_of_input(0))
    if op.node.op == "Pad":
        return [middle]
    return [middle, None, _rest(op, middle)]


@gradient("MatrixDiagV2", "MatrixDiagV3")
def of_diagonals(op: NodeGradient) -> list[str | None]:
    """The diagonals of the gradient; what fills the rest gets the sum of the rest."""
    diagonals = _diagonals(op, op.grad, op.inputs[1])
    return [diagonals, None, None, None, _rest(op, diagonals)]


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals_of_matrix(op: NodeGradient) -> list[str | None]:
    """Zeros but for the diagonals; what fills up shorter ones gets the sum of that."""
    into = op.add(_alike(op, "MatrixSetDiag"), op.zeros(op.inputs[0]), op.grad, op.inputs[1], **op.attrs("align"))
    return [into, None, _rest(op, into)]


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def with_diagonals(op: NodeGradient) -> list[str | None]:
    _, diagonals, which = op.inputs
    return [
        op.add(op.node.op, op.grad, op.zeros(diagonals), which, **op.attrs("align")),
        _diagonals(op, op.grad, which),
    ]


def _alike(op: NodeGradient, name: str) -> str:
    """Another op on diagonals, of the same version."""
    return name + op.node.op[-2:]


def _diagonals(op: NodeGradient, matrix: str, which: str) -> str:
    return op.add(_alike(op, "MatrixDiagPart"), matrix, which, op.const(0, op.dtype), **op.attrs("align"))


def _rest(op: NodeGradient, part: str) -> str:
    """The sum of what of the gradient is not in a part of it."""
    every = [op.add("Range", op.const(0), op.add("Rank", ref), op.const(1)) for ref in (op.grad, part)]
    return op.add("Sub", op.add("Sum", op.grad, every[0]), op.add("Sum", part, every[1]))


gradient("MatrixDiagPart")(lambda op: op.add("MatrixSetDiag", op.zeros(op.inputs[0]), op.grad))


@gradient("MatrixSetDiag")
def with_diagonal(op: NodeGradient) -> tuple[str, str]:
    diagonal = op.add("MatrixDiagPart", op.grad)
    return op.add("MatrixSetDiag", op.grad, op.zeros(diagonal)), diagonal


Many = Sequence[str | None]


gradient("ConcatV2")(lambda op: [*_parts(op, op.inputs[:-1], len(op.inputs) - 1), None])
gradient("Concat")(lambda op: [None, *_parts(op, op.inputs[1:], 0)])


def _parts(op: NodeGradient, values: Sequence[str], axis_input: int) -> list[str]:
    """The gradient of a concatenation, cut into what belongs to each of the values."""
    axis = int(op.needs_value(axis_input, "its axis"))
    shapes = [op.static(ref) for ref in values]
    sizes = [shape[axis] if shape.rank else None for shape in shapes]
    if None not in sizes:
        parts = op.add("SplitV", op.grad, op.const(sizes), op.const(axis), num_split=len(values))
        return [parts if port == 0 else f"{parts}:{port}" for port in range(len(values))]
    held = [op.shape(ref) for ref in values]
    offsets = op.add("ConcatOffset", op.const(axis if axis >= 0 else axis % op.rank(op.output())), held)
    return [
        op.add("Slice", op.grad, offsets if port == 0 else f"{offsets}:{port}", shape)
        for port, shape in enumerate(held)
    ]


@gradient("Pack")
def pack(op: NodeGradient) -> Many:
    parts = op.add("Unpack", op.grad, num=len(op.inputs), axis=op.attr("axis"))
    return [parts if port == 0 else f"{parts}:{port}" for port in range(len(op.inputs))]


gradient("Unpack")(lambda op: op.add("Pack", _all(op), axis=op.attr("axis")))
gradient("Split")(lambda op: (None, op.add("ConcatV2", _all(op), op.inputs[0])))
gradient("SplitV")(lambda op: op.add("ConcatV2", _all(op), op.inputs[2]))


def _all(op: NodeGradient) -> list[str]:
    return [op.grad_of(port) for port in range(len(op.grads))]


@gradient("Tile")
def tile(op: NodeGradient) -> str:
    """Cut into its repetitions, which are summed."""
    rank = op.rank(op.inputs[0])
    if rank == 0:
        return op.grad
    shape = op.shape_of_input(0)
    pairs = op.add("Pack", [op.cast(op.inputs[1], INT32), shape], axis=1)
    apart = op.add("Reshape", op.grad, op.add("Reshape", pairs, op.const([-1])))
    total = op.add("Sum", apart, op.const(np.arange(0, 2 * rank, 2)))
    return total if op.static(op.inputs[0]).rank is None else op.add("Reshape", total, shape)


@gradient("BroadcastTo")
def broadcast(op: NodeGradient) -> str:
    own = op.shape_of_input(0)
    axes = op.add("BroadcastGradientArgs", own, op.shape(op.output()))
    return op.add("Reshape", op.add("Sum", op.grad, axes), own)


@gradient("Fill")
def fill(op: NodeGradient) -> Many:
    rank = op.add("Rank", op.grad)
    return None, op.add("Sum", op.grad, op.add("Range", op.const(0), rank, op.const(1)))


gradient("Gather")(lambda op: summed_rows(op, op.grad, op.inputs[1], op.shape_of_input(0)))


def summed_rows(op: NodeGradient, rows: str, indices: str, shape: str) -> str:
    """Rows, summed by their indices, in a tensor of this shape."""
    count = op.add("StridedSlice", shape, op.const([0]), op.const([1]), op.const([1]), shrink_axis_mask=1)
    total = op.add("UnsortedSegmentSum", rows, indices, count)
    return op.add("Reshape", total, shape)


@gradient("GatherV2")
def gather_along_axis(op: NodeGradient) -> str:
    axis = int(op.needs_value(2, "its axis"))
    if op.attr("batch_dims"):
        return _gather_in_batches(op, axis)
    shape = op.shape_of_input(0)
    if axis == 0:
        return summed_rows(op, op.grad, op.inputs[1], shape)
    rank, looked_up = op.rank(op.inputs[0]), op.rank(op.inputs[1])
    axis %= rank
    indexed = list(range(axis, axis + looked_up))
    others = [*range(axis), *range(axis + looked_up, rank - 1 + looked_up)]
    rows = op.add("Transpose", op.grad, op.const([*indexed, *others]))
    order = [axis, *(other for other in range(rank) if other != axis)]
    total = summed_rows(op, rows, op.inputs[1], op.add("GatherV2", shape, op.const(order), op.const(0)))
    return op.add("Transpose", total, op.const(np.argsort(order)))


def _gather_in_batches(op: NodeGradient, axis: int) -> str:
    """The rows of a batch are looked up in one table of all batches, each batch behind the one before it."""
    params, indices = op.inputs[:2]
    rank, looked_up = op.rank(params), op.rank(indices)
    axis %= rank
    batches = int(op.attr("batch_dims"))
    batches += looked_up if batches < 0 else 0
    shape, many = op.shape(params), looked_up - batches
    ahead, indexed = list(range(batches)), list(range(axis, axis + many))
    others = [*range(batches, axis), *range(axis + many, rank - 1 + many)]
    rows = op.add("Transpose", op.grad, op.const([*ahead, *indexed, *others]))
    order = [*ahead, axis, *(other for other in range(batches, rank) if other != axis)]
    sizes = op.add("GatherV2", shape, op.const(order), op.const(0))
    outer, count, inner = (
        op.add("StridedSlice", sizes, op.const([begin]), op.const([end]), op.const([1]))
        for begin, end in ((0, batches), (batches, batches + 1), (batches + 1, rank))
    )
    total = op.add("Prod", outer, op.const([0]), keep_dims=True)
    by_batch = op.add("Reshape", indices, op.add("ConcatV2", [total, op.const([-1])], op.const(0)))
    scalar = op.const(np.zeros(0, np.int32))
    batch = op.add("Range", op.const(0), op.add("Reshape", total, scalar), op.const(1))
    starts = op.cast(op.add("ExpandDims", op.mul(batch, count), op.const(1)), op.builder.dtype(indices))
    places = op.add("Reshape", op.add("Add", by_batch, starts), op.const([-1]))
    count_of_all = op.add("Reshape", op.mul(total, count), scalar)
    lines = op.add("ConcatV2", [op.add("Shape", places), inner], op.const(0))
    added = op.add("UnsortedSegmentSum", op.add("Reshape", rows, lines), places, count_of_all)
    return op.add("Transpose", op.add("Reshape", added, sizes), op.const(np.argsort(order)))


@gradient("GatherNd")
def gather_points(op: NodeGradient) -> str:
    return op.add("ScatterNd", op.inputs[1], op.grad, op.cast(op.shape_of_input(0), op.builder.dtype(op.inputs[1])))


gradient("ScatterNd")(lambda op: [None, op.add("GatherNd", op.grad, op.inputs[0])])


@gradient("TensorScatterAdd", "TensorScatterUpdate", "TensorScatterSub")
def scatter_into(op: NodeGradient) -> list[str | None]:
    _, indices, updates = op.inputs
    into = op.grad
    moved = op.add("GatherNd", op.grad, indices)
    if op.node.op == "TensorScatterUpdate":
        into = op.add("TensorScatterUpdate", op.grad, indices, op.zeros(updates))
    if op.node.op == "TensorScatterSub":
        moved = op.add("Neg", moved)
    return [into, None, moved]


@gradient("TensorScatterMax", "TensorScatterMin")
def extreme_into(op: NodeGradient) -> list[str | None]:
    """All that share the extreme share its gradient."""
    x, indices, updates = op.inputs
    chosen = op.add("Equal", updates, op.add("GatherNd", op.output(), indices))
    kept, taken = (op.cast(ref, op.dtype) for ref in (op.add("Equal", x, op.output()), chosen))
    share = op.add("RealDiv", op.grad, op.add("TensorScatterAdd", kept, indices, taken))
    return [op.mul(share, kept), None, op.mul(op.add("GatherNd", share, indices), taken)]


gradient("ScatterNdNonAliasingAdd")(lambda op: [op.grad, None, op.add("GatherNd", op.grad, op.inputs[1])])


@gradient("SparseToDense")
def scattered(op: NodeGradient) -> list[str | None]:
    """The default's gradient is the sum of what no value took the place of."""
    places = op.add("Reshape", op.inputs[0], op.const([-1, op.rank(op.output())]))
    taken = op.add("GatherNd", op.grad, places)
    total = op.add("Sum", taken, op.const([0]))
    every = op.add("Range", op.const(0), op.add("Rank", op.grad), op.const(1))
    by_default = op.add("Sub", op.add("Sum", op.grad, every), total)
    return [None, None, taken if op.rank(op.inputs[2]) else total, by_default]


@gradient("SparseTensorDenseMatMul")
def sparse_product(op: NodeGradient) -> list[str | None]:
    """Of A B with A's values at places: by each value the product of a row of the gradient and one of B."""
    indices, values, shape, b = op.inputs
    is_turned, right_is_turned = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))
    flip = op.const([1, 0])
    by_right = op.add("SparseTensorDenseMatMul", indices, values, shape, op.grad, adjoint_a=not is_turned)
    left, right = (
        op.add("StridedSlice", indices, op.const([0, at]), op.const([0, at + 1]), op.const([1, 1]), begin_mask=1,
               end_mask=1, shrink_axis_mask=2) for at in ((1, 0) if is_turned else (0, 1))
    )  # fmt: skip
    rows = op.add("GatherV2", op.grad, left, op.const(0))
    by_rows = op.add("GatherV2", op.add("Transpose", b, flip) if right_is_turned else b, right, op.const(0))
    by_values = op.add("Sum", op.mul(rows, by_rows), op.const([1]))
    return [None, by_values, None, op.add("Transpose", by_right, flip) if right_is_turned else by_right]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def stitch(op: NodeGradient) -> list[str | None]:
    """A row that a later one took the place of gets its gradient too, as in TensorFlow."""
    half = len(op.inputs) // 2
    gathered = [op.add("GatherV2", op.grad, indices, op.const(0)) for indices in op.inputs[:half]]
    return [*(None for _ in gathered), *gathered]


@gradient("DynamicPartition")
def partition(op: NodeGradient) -> str:
    data, partitions = op.inputs
    shape = op.shape(partitions)
    count = op.add("Prod", shape, op.const([0]))
    places = op.add("Reshape", op.add("Range", op.const(0), count, op.const(1)), shape)
    number = len(op.grads)
    parts = op.add("DynamicPartition", places, partitions, num_partitions=number)
    indices = [parts if port == 0 else f"{parts}:{port}" for port in range(number)]
    stitched = op.add("DynamicStitch", indices, [op.grad_of(port) for port in range(number)])
    return op.add("Reshape", stitched, op.shape(data))


@gradient("TopK", "TopKV2")
def largest(op: NodeGradient) -> str:
    shape = op.shape_of_input(0)
    last = op.add("StridedSlice", shape, op.const([-1]), op.const([0]), op.const([1]), shrink_axis_mask=1)
    size = op.add("Prod", shape, op.const([0]))
    found = op.output(1)
    width = op.add(
        "StridedSlice", op.add("Shape", found), op.const([-1]), op.const([0]), op.const([1]), shrink_axis_mask=1
    )
    by_row = op.add("Reshape", found, op.add("Pack", [op.const(-1), width], axis=0))
    starts = op.add("ExpandDims", op.add("Range", op.const(0), size, last), op.const(1))
    flat = op.add("Reshape", op.add("Add", op.cast(by_row, INT32), starts), op.const([-1, 1]))
    rows = op.add("Reshape", op.grad, op.const([-1]))
    return op.add("Reshape", op.add("ScatterNd", flat, rows, op.add("Reshape", size, op.const([1]))), shape)
