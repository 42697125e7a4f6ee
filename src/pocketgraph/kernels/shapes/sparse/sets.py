"""Shape rules of sets in the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule
from pocketgraph.kernels.shapes.sparse.sparse_algebra import sparse_rank, sparse_tensor


@shape_rule("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(call: ShapeCall) -> Sequence[Shape]:
    if call.node.op == "SparseToSparseSetOperation":
        return sparse_tensor(sparse_rank(call, 0))
    return sparse_tensor(call.shape(0).rank)


@shape_rule("SetSize")
def set_size(call: ShapeCall) -> Shape:
    sizes = call.as_shape(2)
    return UNKNOWN if sizes.dims is None or not sizes.dims else Shape(sizes.dims[:-1])
