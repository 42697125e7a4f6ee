"""Finds layers of a convolution, a bias, a rectifier and a max pool in training, and runs each as two steps.

    forward     x, weights, bias -> Conv2D -> BiasAdd -> Relu -> MaxPool
    backward    MaxPoolGrad(Relu, MaxPool, slopes) -> Conv2DBackpropFilter(x)

What the second step needs goes in the place of the rectifier's result, which nobody else reads
(kernels/nn/pooled_convolution.py). Traced, with a memory limit or with a time limit the nodes run as they are written,
and so they do where a number is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, plain
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.step_calls import is_reference_output

PASS = "fused_pooled_layers"

RunApart = Callable[[Mapping[str, Item], Sequence[Endpoint], Sequence[Endpoint]], Callable[..., tuple[Any, ...]]]
"""Makes what runs nodes one by one: (their items, inputs, outputs) give a function of the Run and the inputs."""


class PooledLayer(NamedTuple):
    """The nodes of a layer and of its gradient.

    Attributes:
        conv, bias, relu, pool: what computes it.
        pool_gradient, weight_gradient: what computes the gradient by its weights.
    """

    conv: Item
    bias: Item
    relu: Item
    pool: Item
    pool_gradient: Item
    weight_gradient: Item

    @property
    def names(self) -> frozenset[str]:
        return frozenset(item.node.name for item in self)


def pooled_layers(plan: Plan, held: Collection[str]) -> list[PooledLayer]:
    """The layers of a plan.

    Args:
        plan: what is compiled.
        held: nodes whose results somebody else wants.
    """
    starts = [item for item in plan.items.values() if item.node.op == "Conv2DBackpropFilter"]
    if not starts:
        return []
    waited = {name for item in plan.items.values() for name in item.control}
    layers = [layer for layer in (_of_gradient(plan, item) for item in starts) if layer is not None]
    return [layer for layer in layers if _stands_alone(plan, layer, held, waited)]


def _of_gradient(plan: Plan, weight_gradient: Item) -> PooledLayer | None:
    """The layer whose weights' gradient this is, if it is one."""
    pool_gradient = _made_by(plan, weight_gradient.data[2], "MaxPoolGrad")
    relu = None if pool_gradient is None else _made_by(plan, pool_gradient.data[0], "Relu")
    bias = None if relu is None else _made_by(plan, relu.data[0], "BiasAdd")
    conv = None if bias is None else _made_by(plan, bias.data[0], "Conv2D")
    pool = None if pool_gradient is None else _made_by(plan, pool_gradient.data[1], "MaxPool")
    if pool_gradient is None or relu is None or bias is None or conv is None or pool is None:
        return None
    layer = PooledLayer(conv, bias, relu, pool, pool_gradient, weight_gradient)
    is_one = pool.data[0] == Endpoint(relu.node.name, 0) and conv.data[0] == weight_gradient.data[0]
    alike = _attributes(conv.node, WINDOW) == _attributes(weight_gradient.node, WINDOW)
    alike = alike and _attributes(pool.node, POOL) == _attributes(pool_gradient.node, POOL)
    plainly = all(item.node.attr("data_format", b"NHWC") == b"NHWC" for item in layer)
    return layer if is_one and alike and plainly and all(i.node.attrs.get("T") is FLOAT for i in layer) else None


WINDOW = ("strides", "padding", "explicit_paddings", "dilations", "data_format")
POOL = ("ksize", "strides", "padding", "explicit_paddings", "data_format")


def _attributes(node: Node, names: Sequence[str]) -> list[Any]:
    return [node.attr(name, b"NHWC" if name == "data_format" else None) or None for name in names]


def _made_by(plan: Plan, endpoint: Endpoint, op: str) -> Item | None:
    item = plan.items.get(endpoint.node) if endpoint not in plan.fed and endpoint.port == 0 else None
    return item if item is not None and item.node.op == op else None


def _stands_alone(plan: Plan, layer: PooledLayer, held: Collection[str], waited: Collection[str]) -> bool:
    """Whether nobody else reads what is inside of the layer, and no other engine runs any of it."""
    names = layer.names
    if len(names) != len(layer) or any(item.control for item in layer):
        return False
    if any(name in plan.parts or plan.frames[name].depth for name in names):
        return False
    inner = {layer.conv: [layer.bias], layer.bias: [layer.relu], layer.relu: [layer.pool, layer.pool_gradient],
             layer.pool_gradient: [layer.weight_gradient]}  # fmt: skip
    for item, readers in inner.items():
        read_by = [name for found in plan.taken_from(item.node.name).values() for name in found]
        if (
            item.node.name in held
            or item.node.name in waited
            or sorted(read_by) != sorted(reader.node.name for reader in readers)
        ):
            return False
    return True


def fused_pooled_layers(plan: Plan, wanted: Collection[Endpoint], run_apart: RunApart) -> list[PartCall]:
    """The layers of a plan as parts, two for each.

    Args:
        plan: what is compiled.
        wanted: tensors that leave the plan.
        run_apart: makes what runs nodes one by one.
    """
    parts: list[PartCall] = []
    for layer in pooled_layers(plan, {endpoint.node for endpoint in (*wanted, *plan.fed)}):
        forward, backward = _forward(layer, run_apart), _backward(layer, run_apart)
        inputs = {
            e for part in (forward, backward) for e in part.inputs if e not in plan.fed and e.node not in layer.names
        }
        if not any(is_reference_output(plan.items[e.node].node.op, e.port) for e in inputs):
            parts += [forward, backward]
    return parts


def _forward(layer: PooledLayer, run_apart: RunApart) -> PartCall:
    members = {item.node.name: item for item in layer[:4]}
    inputs = (*layer.conv.data, layer.bias.data[1])
    outputs = Endpoint(layer.pool.node.name, 0), Endpoint(layer.relu.node.name, 0)
    call = _ForwardCall(layer, run_apart(members, inputs, outputs))
    return PartCall(layer.pool.node, frozenset(members), inputs, outputs, call, takes_run=True)


def _backward(layer: PooledLayer, run_apart: RunApart) -> PartCall:
    members = {item.node.name: item for item in layer[4:]}
    inputs = (*layer.weight_gradient.data[:2], *layer.pool_gradient.data)
    outputs = (Endpoint(layer.weight_gradient.node.name, 0),)
    call = _BackwardCall(run_apart(members, inputs, outputs))
    return PartCall(layer.weight_gradient.node, frozenset(members), inputs, outputs, call, takes_run=True)


class _Kept(NamedTuple):
    """What goes in the place of the rectifier's result.

    Attributes:
        layer: what the gradient needs (a PooledConvolution).
        plainly: computes the rectifier's result after all.
    """

    layer: Any
    plainly: Callable[[], Array]


class _ForwardCall:
    """A layer as a call: the Run, images, weights and bias in; the pooled images and what the gradient needs out."""

    traces_itself = True
    is_pure = True

    def __init__(self, layer: PooledLayer, apart: Callable[..., tuple[Any, ...]]) -> None:
        self.apart = apart
        self.node = layer.pool.node
        self.window = {name: plain(value) for name, value in layer.conv.node.attrs.items() if name in WINDOW}
        self.pool = {name: plain(value) for name, value in layer.pool.node.attrs.items() if name in POOL}

    def __call__(self, run: Any, *arrays: Array) -> tuple[Any, ...]:
        if run.trace is None and run.ledger is None and run.deadline is None:
            found = self._fused(run, *arrays)
            if found is not None:
                return found
        return self.apart(run, *arrays)

    def _fused(self, run: Any, x: Array, weights: Array, bias: Array) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.pooled_convolution import fits, pooled_convolution
        from pocketgraph.kernels.windows import spatial, windows, windows_of_op

        if not fits(x, weights, bias):
            return None
        window, pool = self.window, self.pool
        spans = windows_of_op(
            x.shape[1:3], weights.shape[:2], window["strides"], window["padding"], "NHWC",
            window.get("dilations", ()), window.get("explicit_paddings", ()),
        )  # fmt: skip
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


class _BackwardCall:
    """The gradient by a layer's weights as a call: the Run, images, the weights' sizes, what the layer kept, its
    result and the gradient by that in, the gradient out."""

    traces_itself = True
    is_pure = True

    def __init__(self, apart: Callable[..., tuple[Any, ...]]) -> None:
        self.apart = apart

    def __call__(self, run: Any, x: Array, sizes: Array, kept: Any, pooled: Array, slopes: Array) -> tuple[Any, ...]:
        if isinstance(kept, _Kept):
            from pocketgraph.kernels.nn.pooled_convolution import weight_gradient

            if slopes.shape == pooled.shape and ints(sizes)[-1:] == pooled.shape[-1:]:
                found = weight_gradient(kept.layer, slopes)
                if found is not None:
                    return (found.reshape(ints(sizes)),)
            kept = kept.plainly()
        return self.apart(run, x, sizes, kept, pooled, slopes)
