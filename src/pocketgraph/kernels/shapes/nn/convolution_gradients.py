"""Shape rules of what convolutions give back."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import of_input
from pocketgraph.kernels.shapes.nn.window_sizes import layout_of, spatial_axes
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("Conv3DBackpropInput")(of_input(0, rank=5))
shape_rule("Conv3DBackpropFilter")(of_input(1, rank=5))


@shape_rule(
    "Conv2DBackpropInput", "Conv3DBackpropInputV2", "Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter",
)  # fmt: skip
def convolution_gradient(call: ShapeCall) -> Shape:
    rank = 5 if "3D" in call.node.op else 4
    sizes = call.as_shape(1 if "Filter" in call.node.op else 0)
    dims = list(of_rank(sizes, rank) if sizes.rank in (None, rank) else (None,) * rank)
    if "Filter" not in call.node.op and sizes.rank in (None, rank):
        channel, _ = spatial_axes(layout_of(call, rank))
        kernel, gradient = of_rank(call.shape(1), rank), of_rank(call.shape(2), rank)
        dims[0] = merge_dim(dims[0], gradient[0])
        if "Depthwise" not in call.node.op and dims[channel] is None:
            dims[channel] = kernel[-2]
    return Shape(dims)
