"""Finds layers of a convolution, a bias, a rectifier and a max pool in training, and runs each as two steps.

    forward     x, weights, bias -> Conv2D -> BiasAdd -> Relu -> MaxPool
    backward    slopes -> MaxPoolGrad(Relu, MaxPool) -> ReluGrad(Relu)
                       -> Conv2DBackpropFilter(x), BiasAddGrad, Conv2DBackpropInput(weights)

What the second step needs goes in the place of the rectifier's result, which nobody else reads
(kernels/nn/pooled_convolution.py; where windows have many elements, or the gradient by the images is wanted,
wide_pooled_convolution.py). Traced, with a memory limit or with a time limit the nodes run as they are written,
and so they do where a number is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.attr import POOLING
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, plain
from pocketgraph.kernels.windows import Window, spatial, windows
from pocketgraph.litert.cost_model import FEW_LAID_OUT
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    ConvolutionWindows,
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
    attributes,
    chain,
    first_outputs,
    has_windows_of,
    layer_part,
    made_by,
    nodes_of,
    readers,
    waited_for,
)
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.trained_convolutions import TrainedConvolutions, trained_convolutions


class PooledLayer(NamedTuple):
    """The nodes of a layer and of its gradient.

    Attributes:
        conv, bias, relu, pool: what computes it.
        pool_gradient, mask: what computes the gradient by the convolution's result with bias.
        by_weights, by_bias, by_images: the gradients of that; None where nobody wants the one by bias or images.
    """

    conv: Item
    bias: Item
    relu: Item
    pool: Item
    pool_gradient: Item
    mask: Item
    by_weights: Item
    by_bias: Item | None
    by_images: Item | None


def pooled_layers(plan: Plan, held: Collection[str]) -> list[PooledLayer]:
    """The layers of a plan.

    Args:
        plan: what is compiled.
        held: nodes whose results somebody else wants.
    """
    starts = [item for item in plan.items.values() if item.node.op == "Conv2DBackpropFilter"]
    if not starts:
        return []
    outer = waited_for(plan) | set(held)
    layers = [layer for layer in (_of_gradient(plan, item) for item in starts) if layer is not None]
    return [layer for layer in layers if _stands_alone(plan, layer, outer)]


def _of_gradient(plan: Plan, by_weights: Item) -> PooledLayer | None:
    """The layer whose weights' gradient this is, if it is one."""
    found = chain(plan, by_weights.data[2], "ReluGrad", "MaxPoolGrad", "Relu", "BiasAdd", "Conv2D")
    pool = made_by(plan, found[1].data[1], "MaxPool") if found else None
    if pool is None:
        return None
    mask, pool_gradient, relu, bias, conv = found
    gradients = {item.node.op: item for item in readers(plan, mask)}
    by_bias, by_images = gradients.get("BiasAddGrad"), gradients.get("Conv2DBackpropInput")
    layer = PooledLayer(conv, bias, relu, pool, pool_gradient, mask, by_weights, by_bias, by_images)
    is_one = pool.data[0] == mask.data[1] == Endpoint(relu.node.name, 0) and conv.data[0] == by_weights.data[0]
    slopes = Endpoint(mask.node.name, 0)
    is_one = is_one and (by_images is None or by_images.data[1:] == (conv.data[1], slopes))
    is_one = is_one and has_windows_of(conv, (by_weights, by_images))
    is_one = is_one and attributes(pool.node, POOLING) == attributes(pool_gradient.node, POOLING)
    return layer if is_one and are_float_images(nodes_of(layer)) else None


def _stands_alone(plan: Plan, layer: PooledLayer, outer: Collection[str]) -> bool:
    """Whether nobody else reads what is inside of the layer, and no other engine runs any of it.

    Args:
        plan: what is compiled.
        outer: nodes that somebody else wants or waits for.
    """
    gradients = nodes_of((layer.by_weights, layer.by_bias, layer.by_images))
    inner = {layer.conv: [layer.bias], layer.bias: [layer.relu], layer.mask: gradients,
             layer.relu: [layer.pool, layer.pool_gradient, layer.mask], layer.pool_gradient: [layer.mask]}  # fmt: skip
    return are_free(plan, nodes_of(layer)) and not any(
        item.node.name in outer or sorted(readers(plan, item), key=_name) != sorted(known, key=_name)
        for item, known in inner.items()
    )


def _name(item: Item) -> str:
    return item.node.name


def pooled_parts(plan: Plan, layer: PooledLayer, run_apart: RunApart) -> list[PartCall]:
    """The steps of a layer: forward, and its gradients."""
    conv, bias, relu, pool, slopes, mask, by_weights, by_bias, by_images = layer
    quick = trained_convolutions(plan)
    wanted = nodes_of((by_weights, by_bias, by_images))
    given = (*slopes.data, *by_weights.data[:2], *(by_images.data[:2] if by_images else ()))
    forward, backward = partial(_PooledLayerCall, layer, quick), partial(_PooledLayerGradient, layer, quick)
    taken, results = (*conv.data, bias.data[1]), first_outputs([pool, relu])
    return [
        layer_part(pool.node, (conv, bias, relu, pool), taken, results, run_apart, forward),
        layer_part(by_weights.node, (slopes, mask, *wanted), given, first_outputs(wanted), run_apart, backward),
    ]


class _Kept(NamedTuple):
    """What goes in the place of the rectifier's result.

    Attributes:
        layer: what the gradient needs: a PooledConvolution, or what ``wide_pooled_gradients`` takes as ``larger``.
        spans, pools: the windows of convolution and pool.
        plainly: computes the rectifier's result after all.
    """

    layer: Any
    spans: Sequence[Window]
    pools: Sequence[Window]
    plainly: Callable[[], Array]


class _PooledLayerCall(LayerCall):
    """Images, weights and bias in; the pooled images and what the gradient needs out."""

    def __init__(self, layer: PooledLayer, quick: TrainedConvolutions, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart, layer.pool.node)
        self.quick = quick
        self.may_be_narrow = layer.by_images is None
        self.windows = ConvolutionWindows(layer.conv.node)
        self.pool = {name: plain(value) for name, value in layer.pool.node.attrs.items() if name in POOLING}

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
        from pocketgraph.kernels.nn.pooled_convolution import fits, pooled_convolution
        from pocketgraph.kernels.nn.rectified_convolution import together
        from pocketgraph.kernels.nn.wide_pooled_convolution import wide_pooled_convolution

        x, weights, bias = arrays
        if not fits(x, weights, bias):
            return None
        spans, pool = self.windows.over(x, weights), self.pool
        sizes, steps = spatial(pool["ksize"], "NHWC", "ksize"), spatial(pool["strides"], "NHWC")
        pools = windows([w.output for w in spans], sizes, steps, pool["padding"], (), pool.get("explicit_paddings", ()))
        if sizes != steps or any(w.before or w.after or not w.output for w in pools):
            return None
        layer = x, weights, bias, spans, pools, partial(self._make, run)
        found: tuple[Array, Any] | None
        if self.may_be_narrow and weights[..., 0].size <= FEW_LAID_OUT:
            found = pooled_convolution(*layer)
        else:
            images = together((len(x), *(w.output for w in spans), len(bias))), *x.shape[1:]
            kind = ConvolutionKind("Conv2D", images, weights.shape, spans, "Relu")
            with self.quick.given(run, kind, weights, bias) as convolve:
                found = wide_pooled_convolution(np.ascontiguousarray(x), *layer[1:], convolve)
        if found is None:
            return None
        pooled, kept = found
        return pooled, _Kept(kept, spans, pools, lambda: self.apart(run, x, weights, bias)[1])

    def _make(self, run: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        return recycled(Context(self.node, run.state, caller=f"{run.caller}{name}/"), shape, dtype)


class _PooledLayerGradient(LayerCall):
    """What the layer kept, its result and the gradient by that, images, the weights' sizes, and where the gradient by
    the images is wanted their sizes and the weights in; the gradients that are wanted, by weights, bias and images,
    out."""

    def __init__(self, layer: PooledLayer, quick: TrainedConvolutions, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart, (layer.by_images or layer.by_weights).node)
        self.quick = quick
        self.wants_images = layer.by_images is not None
        self.wants_bias = layer.by_bias is not None

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        if not isinstance(arrays[0], _Kept):  # the layer ran node by node
            return self.apart(run, *arrays)
        found = self.fused(run, *arrays)
        return found if found is not None else self.apart(run, arrays[0].plainly(), *arrays[1:])

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.pooled_convolution import PooledConvolution, pooled_gradients

        kept, pooled, slopes, _, given, *_ = arrays
        sizes = ints(given)
        if slopes.shape != pooled.shape or sizes[-1:] != pooled.shape[-1:]:
            return None
        if not isinstance(kept.layer, PooledConvolution):
            return self._wide(run, *arrays)
        found = pooled_gradients(kept.layer, pooled, slopes)
        return None if found is None else (found[0].reshape(sizes), found[1])[: 1 + self.wants_bias]

    def _wide(
        self, run: Any, kept: _Kept, pooled: Array, slopes: Array, x: Array, given: Array, *others: Array
    ) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.convolution_gradients import backprop_filter
        from pocketgraph.kernels.nn.rectified_convolution import together, turned
        from pocketgraph.kernels.nn.wide_pooled_convolution import wide_pooled_gradients

        x, sizes = np.ascontiguousarray(x), ints(given)
        layer = kept.layer, pooled, slopes, kept.spans, kept.pools
        by_filter = self.quick.by_filter("Conv2D") or backprop_filter
        if not self.wants_images:
            found = wide_pooled_gradients(x, sizes, *layer, None, None, by_filter)
            return None if found is None else found[: 1 + self.wants_bias]
        images, weights = others
        if ints(images) != x.shape or weights.shape != sizes or weights.dtype != np.float32:
            return None
        by_images = self.result(run, x.shape)
        back = turned("Conv2D", weights, kept.spans, x.shape[1:3])
        made = len(x), *(w.output for w in kept.spans), sizes[-1]
        some = together(made), *made[1:]
        with self.quick.turned(run, "Conv2D", back, some) as convolve:
            found = wide_pooled_gradients(x, weights, *layer, by_images, convolve, by_filter)
        return None if found is None else (*found[: 1 + self.wants_bias], by_images)
