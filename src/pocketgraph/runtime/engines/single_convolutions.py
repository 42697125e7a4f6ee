"""Finds convolutions of a training, and gradients by their images, that are in no fused layer; XNNPACK computes them.

    x, weights             -> Conv2D
    sizes, weights, slopes -> Conv2DBackpropInput or DepthwiseConv2dNativeBackpropInput

Such a gradient is a convolution of the slopes with weights that are turned around. Networks with batch norms between
convolutions and rectifiers have them. Traced, or with a limit of memory or time, the nodes run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.windows import image_groups
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    ConvolutionWindows,
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
    first_outputs,
    layer_part,
    trained_images,
)
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.trained_convolutions import TrainedConvolutions, trained_convolutions

BY_IMAGES = {"Conv2DBackpropInput": "Conv2D", "DepthwiseConv2dNativeBackpropInput": "DepthwiseConv2dNative"}
"""By the op of a gradient: whose it is."""


def single_convolutions(plan: Plan, _: Collection[str]) -> list[tuple[Item]]:
    """The nodes of a plan that give a convolution or such a gradient and that no other engine computes: layers of 1."""
    images = trained_images(plan)
    found = [
        item for item in plan.items.values()
        if item.node.op in BY_IMAGES or (item.node.op == "Conv2D" and item.data[0] in images)
    ]  # fmt: skip
    return [(item,) for item in found if are_free(plan, [item]) and are_float_images([item])]


def single_convolution_parts(plan: Plan, layer: tuple[Item], run_apart: RunApart) -> list[PartCall]:
    """The step of such a node."""
    (item,) = layer
    kind = _InputGradientCall if item.node.op in BY_IMAGES else _ConvolutionCall
    call = partial(kind, item, trained_convolutions(plan))
    return [layer_part(item.node, [item], item.data, first_outputs([item]), run_apart, call)]


class _SingleCall(LayerCall):
    def __init__(self, item: Item, quick: TrainedConvolutions, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart, item.node)
        self.quick = quick
        self.op = BY_IMAGES.get(item.node.op, item.node.op)
        self.windows = ConvolutionWindows(item.node)

    def _filled(self, run: Any, shape: tuple[int, ...], source: Array, together: int, convolve: Any) -> Array:
        """What a convolution of so many images at a time gives."""
        result = self.result(run, reserve(shape, np.float32))
        for images in image_groups(len(source), 1, together):
            convolve(source[images], result[images])
        return result


class _ConvolutionCall(_SingleCall):
    """Images and weights in, their convolution out."""

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
        from pocketgraph.kernels.nn.rectified_convolution import are_plain, together

        x, weights = arrays
        if not are_plain(x, weights) or x.shape[3] != weights.shape[2]:
            return None
        spans = self.windows.over(x, weights)
        shape = (len(x), *(w.output for w in spans), weights.shape[3])
        if 0 in shape:
            return None
        some = together(shape)
        kind = ConvolutionKind(self.op, (some, *x.shape[1:]), weights.shape, spans, "")
        with self.quick.given(run, kind, weights) as convolve:
            return convolve and (self._filled(run, shape, np.ascontiguousarray(x), some, convolve),)


class _InputGradientCall(_SingleCall):
    """The images' sizes, weights and the gradient by the convolution in, the gradient by the images out."""

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.rectified_convolution import are_plain, together, turned

        sizes, weights, slopes = arrays
        shape = ints(sizes)
        if not are_plain(weights, slopes) or len(shape) != 4 or 0 in shape or shape[3] != weights.shape[2]:
            return None
        spans = self.windows.of(shape[1:3], weights)
        channels = shape[3] if self.op == "DepthwiseConv2dNative" else weights.shape[3]
        if slopes.shape != (shape[0], *(w.output for w in spans), channels):
            return None
        back = turned(self.op, weights, spans, shape[1:3])
        some = (together(slopes.shape), *slopes.shape[1:])
        with self.quick.turned(run, self.op, back, some) as convolve:
            return convolve and (self._filled(run, shape, np.ascontiguousarray(slopes), some[0], convolve),)
