"""Shape rules of sparse tensors made dense."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("SparseTensorDenseAdd")
def sparse_dense_add(call: ShapeCall) -> Shape:
    return call.shape(3)


@shape_rule("SparseToDense")
def sparse_to_dense(call: ShapeCall) -> Shape:
    return call.as_shape(1)
