"""Finds convolutions with bias and rectifier that are trained, and runs each, and all its gradients, as one step.

    forward     x, weights, bias -> Conv2D -> BiasAdd -> Relu (or Relu6)
    backward    slopes -> ReluGrad -> BiasAddGrad, Conv2DBackpropFilter, Conv2DBackpropInput

Depthwise ones too. Traced, with a memory limit or with a time limit the nodes run as they are written
(kernels/nn/rectified_convolution.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.arrays import ints, reserve
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    ConvolutionWindows,
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
    chain,
    first_outputs,
    has_windows_of,
    layer_part,
    nodes_of,
    readers,
    waited_for,
)
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.trained_convolutions import TrainedConvolutions, trained_convolutions

CONVOLUTIONS = "Conv2D|DepthwiseConv2dNative"
RECTIFIERS = {"ReluGrad": "Relu", "Relu6Grad": "Relu6"}
"""By the op of a gradient: whose it is."""


class RectifiedLayer(NamedTuple):
    """The nodes of a layer and of its gradients.

    Attributes:
        conv, bias, relu: what computes it.
        mask, by_bias, by_weights: what computes the rectifier's gradient, and of that those by bias and weights.
        by_images: the gradient by the images; None where nobody wants it.
    """

    conv: Item
    bias: Item
    relu: Item
    mask: Item
    by_bias: Item
    by_weights: Item
    by_images: Item | None


def rectified_layers(plan: Plan, held: Collection[str]) -> list[RectifiedLayer]:
    """The layers of a plan.

    Args:
        plan: what is compiled.
        held: nodes whose results somebody else wants.
    """
    masks = [item for item in plan.items.values() if item.node.op in RECTIFIERS]
    layers = [layer for layer in (_of_mask(plan, mask) for mask in masks) if layer is not None]
    if not layers:
        return []
    inner = waited_for(plan) | set(held)
    return [
        layer
        for layer in layers
        if are_free(plan, nodes_of(layer))
        and not any(item.node.name in inner for item in (layer.conv, layer.bias, layer.mask))
        and readers(plan, layer.conv) == [layer.bias]
        and readers(plan, layer.bias) == [layer.relu]
    ]


def _of_mask(plan: Plan, mask: Item) -> RectifiedLayer | None:
    """The layer whose rectifier's gradient this is, if it is one."""
    found = chain(plan, mask.data[1], RECTIFIERS[mask.node.op], "BiasAdd", CONVOLUTIONS)
    if not found:
        return None
    relu, bias, conv = found
    gradients = {item.node.op: item for item in readers(plan, mask)}
    by_bias = gradients.pop("BiasAddGrad", None)
    by_weights = gradients.pop(f"{conv.node.op}BackpropFilter", None)
    by_images = gradients.pop(f"{conv.node.op}BackpropInput", None)
    if by_bias is None or by_weights is None or gradients:
        return None
    layer = RectifiedLayer(conv, bias, relu, mask, by_bias, by_weights, by_images)
    slopes = Endpoint(mask.node.name, 0)
    is_one = by_weights.data[0] == conv.data[0] and by_weights.data[2] == slopes
    is_one = is_one and (by_images is None or by_images.data[1:] == (conv.data[1], slopes))
    is_one = is_one and len(readers(plan, mask)) == 2 + (by_images is not None)
    is_one = is_one and has_windows_of(conv, (by_weights, by_images))
    return layer if is_one and are_float_images(nodes_of(layer)) else None


def rectified_parts(plan: Plan, layer: RectifiedLayer, run_apart: RunApart) -> list[PartCall]:
    """The steps of a layer: forward, and its gradients."""
    conv, bias, relu, mask, by_bias, by_weights, by_images = layer
    quick = trained_convolutions(plan)
    wanted = nodes_of((by_weights, by_bias, by_images))
    given = (*conv.data, *mask.data, by_weights.data[1], *(by_images.data[:1] if by_images else ()))
    forward, backward = partial(_RectifiedLayerCall, layer, quick), partial(_RectifiedLayerGradient, layer, quick)
    taken = (*conv.data, bias.data[1])
    return [
        layer_part(relu.node, (conv, bias, relu), taken, first_outputs([relu]), run_apart, forward),
        layer_part(mask.node, (mask, *wanted), given, first_outputs(wanted), run_apart, backward),
    ]


class _RectifiedLayerCall(LayerCall):
    """Images, weights and bias in, the rectified results out."""

    def __init__(
        self, layer: RectifiedLayer, quick: TrainedConvolutions, apart: Callable[..., tuple[Any, ...]]
    ) -> None:
        super().__init__(apart, layer.relu.node)
        self.quick = quick
        self.op = layer.conv.node.op
        self.windows = ConvolutionWindows(layer.conv.node)

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
        from pocketgraph.kernels.nn.rectified_convolution import are_plain, rectified_convolution, together

        x, weights, bias = arrays
        channels = int(np.prod(weights.shape[2:])) if self.op == "DepthwiseConv2dNative" else weights.shape[-1]
        if not are_plain(x, weights) or x.shape[3] != weights.shape[2] or bias.shape != (channels,):
            return None
        spans = self.windows.over(x, weights)
        shape = reserve((len(x), *(w.output for w in spans), channels), np.float32)
        result = self.result(run, shape)
        x = np.ascontiguousarray(x)
        some = (together(shape), *x.shape[1:])
        kind = ConvolutionKind(self.op, some, weights.shape, spans, self.node.op)
        with self.quick.given(run, kind, weights, bias) as convolve:
            rectified_convolution(self.op, x, weights, bias, spans, result, self.node.op, convolve)
        return (result,)


class _RectifiedLayerGradient(LayerCall):
    """Images, weights, slopes, results, and the sizes of weights and images in; the gradients by weights and bias, and
    by the images where that is wanted, out."""

    def __init__(
        self, layer: RectifiedLayer, quick: TrainedConvolutions, apart: Callable[..., tuple[Any, ...]]
    ) -> None:
        super().__init__(apart, (layer.by_images or layer.mask).node)
        self.quick = quick
        self.wants_images = layer.by_images is not None
        self.rectifier = layer.relu.node.op
        self.op = layer.conv.node.op
        self.windows = ConvolutionWindows(layer.conv.node)

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.rectified_convolution import are_plain, rectified_gradients, together, turned

        x, weights, slopes, rectified, *sizes = arrays
        wanted = [weights.shape, x.shape][: len(sizes)]
        if not are_plain(x, weights, slopes, rectified) or slopes.shape != rectified.shape or len(x) != len(slopes):
            return None
        if [ints(each) for each in sizes] != wanted or x.shape[3] != weights.shape[2]:
            return None
        spans, by_filter = self.windows.over(x, weights), self.quick.by_filter(self.op)
        layer = self.op, x, weights, rectified, slopes, spans
        if not self.wants_images:
            return rectified_gradients(*layer, None, self.rectifier, None, by_filter)
        by_images = self.result(run, x.shape)
        back = turned(self.op, weights, spans, x.shape[1:3])
        some = (together(slopes.shape), *slopes.shape[1:])
        with self.quick.turned(run, self.op, back, some) as convolve:
            found = rectified_gradients(*layer, by_images, self.rectifier, convolve, by_filter)
        return (*found, by_images)
