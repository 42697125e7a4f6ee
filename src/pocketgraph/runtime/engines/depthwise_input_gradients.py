"""Finds gradients by images of depthwise convolutions that are trained in no other layer, and has XNNPACK compute them.

    sizes, weights, slopes -> DepthwiseConv2dNativeBackpropInput

Each is a convolution of the slopes with weights that are turned around. Traced, with a memory limit or with a time
limit the nodes run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context
from pocketgraph.kernels.windows import image_groups
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    ConvolutionWindows,
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
)
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.trained_convolutions import TrainedConvolutions, trained_convolutions


class DepthwiseGradient(NamedTuple):
    """A node that gives such a gradient."""

    by_images: Item


def depthwise_gradients(plan: Plan, _: Collection[str]) -> list[DepthwiseGradient]:
    """Those of a plan that no other engine computes."""
    found = [item for item in plan.items.values() if item.node.op == "DepthwiseConv2dNativeBackpropInput"]
    return [DepthwiseGradient(item) for item in found if are_free(plan, [item]) and are_float_images([item])]


def depthwise_gradient_parts(plan: Plan, found: DepthwiseGradient, run_apart: RunApart) -> list[PartCall]:
    """The step of such a gradient."""
    item = found.by_images
    outputs = (Endpoint(item.node.name, 0),)
    apart = run_apart({item.node.name: item}, item.data, outputs)
    call = DepthwiseGradientCall(item, apart, trained_convolutions(plan))
    return [PartCall(item.node, frozenset((item.node.name,)), item.data, outputs, call, takes_run=True)]


class DepthwiseGradientCall(LayerCall):
    """The images' sizes, weights and the gradient by the convolution in, the gradient by the images out."""

    def __init__(self, item: Item, apart: Callable[..., tuple[Any, ...]], quick: TrainedConvolutions) -> None:
        super().__init__(apart)
        self.quick = quick
        self.node = item.node
        self.op = "DepthwiseConv2dNative"
        self.windows = ConvolutionWindows(item.node)

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.rectified_convolution import are_plain, together, turned

        sizes, weights, slopes = arrays
        shape = ints(sizes)
        if not are_plain(weights, slopes) or len(shape) != 4 or 0 in shape or shape[3] != weights.shape[2]:
            return None
        spans = self.windows.of(shape[1:3], weights)
        if slopes.shape != (shape[0], *(w.output for w in spans), shape[3]):
            return None
        back = turned(self.op, weights, spans, shape[1:3])
        slopes = np.ascontiguousarray(slopes)
        some = (together(slopes.shape), *slopes.shape[1:])
        with self.quick.turned(run, self.op, back, some) as convolve:
            if convolve is None:
                return None
            context = Context(self.node, run.state, caller=run.caller)
            result: Array = recycled(context, reserve(shape, np.float32), np.float32, is_aligned=True)
            for images in image_groups(len(slopes), 1, some[0]):
                convolve(slopes[images], result[images])
        return (result,)
