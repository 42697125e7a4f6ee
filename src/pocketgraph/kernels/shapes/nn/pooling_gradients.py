"""Shape rules of the gradients of pooling and dilation."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import of_rank
from pocketgraph.kernels.shapes.common_rules import of_input
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("MaxPool3DGrad")(of_input(0, rank=5))
shape_rule("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "Dilation2DBackpropInput")(of_input(0, rank=4))
shape_rule("Dilation2DBackpropFilter")(of_input(1, rank=3))


@shape_rule("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def of_a_pool_gradient(call: ShapeCall) -> Shape:
    """What pooling gives: the shape of the pool's own result."""
    return Shape(of_rank(call.shape(1), 5 if "3D" in call.node.op else 4))


@shape_rule("AvgPoolGrad", "AvgPool3DGrad")
def of_a_mean_pool(call: ShapeCall) -> Shape:
    rank, sizes = 5 if "3D" in call.node.op else 4, call.as_shape(0)
    return Shape(of_rank(sizes if sizes.rank in (None, rank) else UNKNOWN, rank))
