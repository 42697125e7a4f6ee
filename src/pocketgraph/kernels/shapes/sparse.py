"""Shape rules of sparse tensors, their sets and their arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, merge, of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed, held_by, of_input
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("SparseSoftmax", "SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")(of_input(1, rank=1))
shape_rule("SparseReduceSum", "SparseReduceMax")(fixed(UNKNOWN))


shape_rule("SparseFillEmptyRowsGrad")(lambda call: [Shape(of_rank(call.shape(0), 1)), SCALAR])


def sparse_rank(call: ShapeCall, indices: int) -> Dim:
    """How many axes the sparse tensor has whose indices are this input."""
    return of_rank(call.shape(indices), 2)[1]


def sparse_tensor(rank: Dim) -> list[Shape]:
    return [Shape((None, rank)), VECTOR, Shape((rank,))]


shape_rule("SparseAdd", "SparseSlice", "SparseConcat")(lambda call: sparse_tensor(sparse_rank(call, 0)))


@shape_rule("SparseSplit")
def sparse_split(call: ShapeCall) -> Sequence[Shape]:
    count = call.count("num_split")
    return [shape for shape in sparse_tensor(sparse_rank(call, 1)) for _ in range(count)]


shape_rule("SparseSparseMaximum", "SparseSparseMinimum")(lambda call: sparse_tensor(sparse_rank(call, 0))[:2])
shape_rule("SparseAddGrad")(lambda call: [Shape((of_rank(call.shape(i), 2)[0],)) for i in (1, 2)])
shape_rule("SparseSliceGrad")(lambda call: Shape((of_rank(call.shape(1), 2)[0],)))


@shape_rule("SparseReduceSumSparse", "SparseReduceMaxSparse")
def sparse_reduction_to_sparse(call: ShapeCall) -> Sequence[Shape]:
    return sparse_tensor(sparse_rank(call, 0) if call.attr("keep_dims", False) else None)


shape_rule("SparseTensorDenseAdd")(of_input(3))
shape_rule("SparseToDense")(held_by(1))


@shape_rule("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(call: ShapeCall) -> Sequence[Shape]:
    if call.node.op == "SparseToSparseSetOperation":
        return sparse_tensor(sparse_rank(call, 0))
    return sparse_tensor(call.shape(0).rank)


@shape_rule("SetSize")
def set_size(call: ShapeCall) -> Shape:
    sizes = call.as_shape(2)
    return UNKNOWN if sizes.dims is None or not sizes.dims else Shape(sizes.dims[:-1])


@shape_rule("RaggedTensorToTensor")
def padded_rows(call: ShapeCall) -> Shape:
    """An axis for the rows, one for each partition of them, and those of a value."""
    values = call.shape(1)
    if values.dims is None:
        return call.as_shape(0)
    types = call.attr("row_partition_types", ())
    partitions = len(types) - (tuple(types[:1]) in (("FIRST_DIM_SIZE",), (b"FIRST_DIM_SIZE",)))
    return merge(Shape((None,) * (partitions + 1) + values.dims[1:]), call.as_shape(0))
