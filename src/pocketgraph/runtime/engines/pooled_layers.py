"""Finds layers of a convolution, a bias, a rectifier and a max pool in training, and runs each as two steps.

    forward     x, weights, bias -> Conv2D -> BiasAdd -> Relu -> MaxPool
    backward    slopes -> MaxPoolGrad(Relu, MaxPool) -> ReluGrad(Relu) -> Conv2DBackpropFilter(x), BiasAddGrad

What the second step needs goes in the place of the rectifier's result, which nobody else reads
(kernels/nn/pooled_convolution.py). Traced, with a memory limit or with a time limit the nodes run as they are written,
and so they do where a number is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, plain
from pocketgraph.kernels.windows import spatial, windows
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    WINDOW,
    ConvolutionWindows,
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
    attributes,
    chain,
    made_by,
    nodes_of,
    readers,
    waited_for,
)
from pocketgraph.runtime.engines.needed import Item


class PooledLayer(NamedTuple):
    """The nodes of a layer and of its gradient.

    Attributes:
        conv, bias, relu, pool: what computes it.
        pool_gradient, mask: what computes the gradient by the convolution's result with bias.
        by_weights, by_bias: the gradients of that; None where nobody wants the one by the bias.
    """

    conv: Item
    bias: Item
    relu: Item
    pool: Item
    pool_gradient: Item
    mask: Item
    by_weights: Item
    by_bias: Item | None


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
    by_bias = next((item for item in readers(plan, mask) if item.node.op == "BiasAddGrad"), None)
    layer = PooledLayer(conv, bias, relu, pool, pool_gradient, mask, by_weights, by_bias)
    is_one = pool.data[0] == mask.data[1] == Endpoint(relu.node.name, 0) and conv.data[0] == by_weights.data[0]
    alike = attributes(conv.node, WINDOW) == attributes(by_weights.node, WINDOW)
    alike = alike and attributes(pool.node, POOL) == attributes(pool_gradient.node, POOL)
    return layer if is_one and alike and are_float_images(nodes_of(layer)) else None


POOL = ("ksize", "strides", "padding", "explicit_paddings", "data_format")


def _stands_alone(plan: Plan, layer: PooledLayer, outer: Collection[str]) -> bool:
    """Whether nobody else reads what is inside of the layer, and no other engine runs any of it.

    Args:
        plan: what is compiled.
        layer: the layer.
        outer: nodes that somebody else wants or waits for.
    """
    gradients = [layer.by_weights, *([layer.by_bias] if layer.by_bias else [])]
    inner = {layer.conv: [layer.bias], layer.bias: [layer.relu], layer.mask: gradients,
             layer.relu: [layer.pool, layer.pool_gradient, layer.mask], layer.pool_gradient: [layer.mask]}  # fmt: skip
    return are_free(plan, nodes_of(layer)) and not any(
        item.node.name in outer or sorted(readers(plan, item), key=_name) != sorted(known, key=_name)
        for item, known in inner.items()
    )


def _name(item: Item) -> str:
    return item.node.name


def pooled_parts(_: Plan, layer: PooledLayer, run_apart: RunApart) -> list[PartCall]:
    """The steps of a layer: forward, and its gradients."""
    return [_forward(layer, run_apart), _backward(layer, run_apart)]


def _forward(layer: PooledLayer, run_apart: RunApart) -> PartCall:
    members = {item.node.name: item for item in (layer.conv, layer.bias, layer.relu, layer.pool)}
    inputs = (*layer.conv.data, layer.bias.data[1])
    outputs = Endpoint(layer.pool.node.name, 0), Endpoint(layer.relu.node.name, 0)
    call = PooledLayerCall(layer, run_apart(members, inputs, outputs))
    return PartCall(layer.pool.node, frozenset(members), inputs, outputs, call, takes_run=True)


def _backward(layer: PooledLayer, run_apart: RunApart) -> PartCall:
    wanted = [layer.by_weights, *([layer.by_bias] if layer.by_bias else [])]
    members = {item.node.name: item for item in (layer.pool_gradient, layer.mask, *wanted)}
    inputs = (*layer.by_weights.data[:2], *layer.pool_gradient.data)
    outputs = tuple(Endpoint(item.node.name, 0) for item in wanted)
    call = PooledLayerGradient(len(wanted), run_apart(members, inputs, outputs))
    return PartCall(layer.by_weights.node, frozenset(members), inputs, outputs, call, takes_run=True)


class _Kept(NamedTuple):
    """What goes in the place of the rectifier's result.

    Attributes:
        layer: what the gradient needs (a PooledConvolution).
        plainly: computes the rectifier's result after all.
    """

    layer: Any
    plainly: Callable[[], Array]


class PooledLayerCall(LayerCall):
    """Images, weights and bias in; the pooled images and what the gradient needs out."""

    def __init__(self, layer: PooledLayer, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart)
        self.node = layer.pool.node
        self.windows = ConvolutionWindows(layer.conv.node)
        self.pool = {name: plain(value) for name, value in layer.pool.node.attrs.items() if name in POOL}

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.pooled_convolution import fits, pooled_convolution

        x, weights, bias = arrays
        if not fits(x, weights, bias):
            return None
        spans, pool = self.windows.over(x, weights), self.pool
        sizes, steps = spatial(pool["ksize"], "NHWC", "ksize"), spatial(pool["strides"], "NHWC")
        pools = windows([w.output for w in spans], sizes, steps, pool["padding"], (), pool.get("explicit_paddings", ()))
        if sizes != steps or any(w.before or w.after or not w.output for w in pools):
            return None
        found = pooled_convolution(x, weights, bias, spans, pools, partial(self._make, run))
        if found is None:
            return None
        pooled, kept = found
        return pooled, _Kept(kept, lambda: self.apart(run, x, weights, bias)[1])

    def _make(self, run: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        return recycled(Context(self.node, run.state, caller=f"{run.caller}{name}/"), shape, dtype)


class PooledLayerGradient(LayerCall):
    """Images, the weights' sizes, what the layer kept, its result and the gradient by that in; the gradients by the
    weights and, where that is wanted, by the bias out."""

    def __init__(self, wanted: int, apart: Callable[..., tuple[Any, ...]]) -> None:
        """``wanted``: how many gradients."""
        super().__init__(apart)
        self.wanted = wanted

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        if not isinstance(arrays[2], _Kept):  # the layer ran node by node
            return self.apart(run, *arrays)
        found = self.fused(run, *arrays)
        return found if found is not None else self.apart(run, *arrays[:2], arrays[2].plainly(), *arrays[3:])

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.pooled_convolution import pooled_gradients

        _, sizes, kept, pooled, slopes = arrays
        if slopes.shape != pooled.shape or ints(sizes)[-1:] != pooled.shape[-1:]:
            return None
        found = pooled_gradients(kept.layer, pooled, slopes)
        return None if found is None else (found[0].reshape(ints(sizes)), found[1])[: self.wanted]
