"""Shape rules of pools and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import of_rank, window
from pocketgraph.kernels.shapes.common_rules import of_input
from pocketgraph.kernels.shapes.nn.window_sizes import convolved, layout_of, per_axis, spatial_axes
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax", "MaxPoolV2")
def pool(call: ShapeCall) -> Shape | Sequence[Shape]:
    rank = 5 if call.node.op.endswith("3D") else 4
    layout = layout_of(call, rank)
    image = of_rank(call.shape(0), rank)
    if call.node.op == "MaxPoolV2":
        sizes, strides = call.integers(1), call.integers(2)
        if sizes is None or strides is None:
            return Shape((image[0], None, None, None))
    else:
        sizes, strides = list(per_axis(call, "ksize", rank)), list(per_axis(call, "strides", rank))
    channel, axes = spatial_axes(layout)
    channels = window(image[channel], sizes[channel], strides[channel], call.attr("padding"))
    if sizes[channel] == 1 and strides[channel] == 1:
        channels = image[channel]
    pads: Any = call.attr("explicit_paddings", ())
    wide = [sizes[axis] for axis in axes]
    shape = convolved(image, wide, channels, layout, strides, call.attr("padding"), (1,) * rank, pads)
    return [shape, shape] if call.node.op == "MaxPoolWithArgmax" else shape


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
