"""Gradients that NumPy computes sooner than LiteRT, which has no operators for them.

LiteRT lays out, shifts or multiplies whole images for each element of a window; the kernels here go over parts of them
that stay in the processor's cache (kernels/nn/convolution_gradients.py, adjacent_windows.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pocketgraph.graph import Node, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.nn.overlapping_windows import MOST_TAPS
from pocketgraph.litert.cost_model import (
    FEW_LAID_OUT,
    LEAST_NUMPY_GRADIENT,
    LEAST_NUMPY_NORM,
    LEAST_SHALLOW_LAYER,
    LEAST_TRAINED_LAYER,
    LONG_LAID_OUT,
    MOST_TURNED,
    POOLED_WITHOUT_TILES_SHARE,
    SHALLOW_CHANNELS,
    WITHOUT_TILES_SHARE,
)
from pocketgraph.litert.rewriting.winograd import share_in_tiles
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.layer_nodes import names_of, nodes_of, trained_images
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.pooled_layers import PooledLayer, pooled_layers
from pocketgraph.runtime.engines.rectified_layers import RectifiedLayer, rectified_layers
from pocketgraph.runtime.engines.trained_norms import PASS as NORMS_PASS
from pocketgraph.runtime.engines.trained_norms import trained_norms

REASON = "NumPy computes this gradient sooner"
PRODUCT_REASON = "NumPy multiplies matrices that change with each run sooner"
LAYER_REASON = "NumPy computes this layer and its gradient sooner"
NORM_REASON = "NumPy normalizes batches of a training sooner"


def sooner_in_numpy(nodes: Iterable[Node], inferred: Any, static: Collection[str]) -> dict[str, str]:
    """Why LiteRT shall not run some of the nodes, by name.

    Args:
        nodes: what LiteRT might run.
        inferred: static shapes and types (kernels.shapes.infer).
        static: the names of nodes whose values are known before the run.
    """
    return {node.name: REASON for node in nodes if node.op in _RULES and _RULES[node.op](node, inferred, static)}


def products_sooner_in_numpy(plan: Plan, inferred: Any, static: Collection[str]) -> dict[str, str]:
    """Why LiteRT shall not run the products of dense layers that are trained, by name: it packs the weights, which are
    others in each run, for each product.

    Args:
        plan: the needed nodes.
        inferred: static shapes and types (kernels.shapes.infer).
        static: the names of nodes whose values are known before the run.
    """
    products = [item for item in plan.items.values() if item.node.op == "MatMul" and _is_large(item, inferred, static)]
    gradients = {item.data[0] for item in products if item.node.attr("transpose_a", False)}
    found: dict[str, str] = {}
    for item in products if gradients else ():
        images, weights = item.data
        if images not in gradients or item.node.attr("transpose_a", False) or weights in plan.fed:
            continue
        readers = [plan.items[name] for name in plan.takers(weights)]
        others = [each for each in readers if each.node.op == "MatMul" and each is not item]
        if len(others) > 1 or any(each not in products or each.data[1] != weights for each in others):
            continue  # the layer is computed several times, as in a loop that is written out
        trained = [each for each in products if each.data[0] == images and each.node.attr("transpose_a", False)]
        found.update((each.node.name, PRODUCT_REASON) for each in (item, *others, *trained))
    return found


def _is_large(item: Item, inferred: Any, static: Collection[str]) -> bool:
    """A product of two float32 matrices that are computed."""
    first, result = (_sizes(inferred, ref, 2) for ref in (str(item.data[0]), f"{item.node.name}:0"))
    if first is None or result is None or any(endpoint.node in static for endpoint in item.data):
        return False
    inner = first[0] if item.node.attr("transpose_a", False) else first[1]
    return inner * result[0] * result[1] >= LEAST_NUMPY_GRADIENT


def layers_sooner_in_numpy(
    plan: Plan, held: Collection[str], inferred: Any, static: Collection[str], without: Collection[str] = ()
) -> dict[str, str]:
    """Why LiteRT shall not run nodes of layers that are trained, by name (engines/trained_layers.py).

    Args:
        plan: the needed nodes.
        held: what is fed, fetched or run.
        inferred: static shapes and types (kernels.shapes.infer).
        static: the names of nodes whose values are known before the run.
        without: passes that are switched off.
    """
    found: dict[str, str] = {}
    for layer in fused_pooled_layers(plan, held, inferred, static, without):
        found.update(dict.fromkeys(names_of(layer), LAYER_REASON))
    if "fused_rectified_layers" not in without:
        for each in rectified_layers(plan, held):
            if _is_in_numpy(each, inferred, static) or _is_wide(each, inferred, static, without):
                found.update(dict.fromkeys(names_of(each), LAYER_REASON))
    for norm in trained_norms(plan, held) if NORMS_PASS not in without else ():
        images = _sizes(inferred, str(norm.norm.data[0]))
        if images is not None and _count(images) >= LEAST_NUMPY_NORM:
            found.update(dict.fromkeys(names_of(norm), NORM_REASON))
    return _single_convolutions(plan, inferred, static, without) | found


def fused_pooled_layers(
    plan: Plan, held: Collection[str], inferred: Any, static: Collection[str], without: Collection[str] = ()
) -> list[PooledLayer]:
    """The layers with a max pool that run as two steps; the arguments are those of ``layers_sooner_in_numpy``."""
    if not {"fused_pooled_layers", "gradients_in_numpy"}.isdisjoint(without):
        return []
    return [
        layer
        for layer in pooled_layers(plan, held)
        if _is_side_by_side(layer.pool_gradient.node, inferred, must_cover=False)
        and (_is_narrow(layer, inferred, static) or _is_wide(layer, inferred, static, without))
    ]


def _is_in_numpy(layer: RectifiedLayer, inferred: Any, static: Collection[str]) -> bool:
    """Whether weights are computed, windows summed up have few elements or one pixel, and all gradients are NumPy's."""
    sizes = _layer_sizes(layer, inferred, static)
    if sizes is None:
        return False
    height, width, depth, _ = sizes[0]
    if layer.conv.node.op == "Conv2D" and height * width > 1 and height * width * depth > FEW_LAID_OUT:
        return False
    gradients = nodes_of((layer.by_weights, layer.by_images))
    return all(_RULES[item.node.op](item.node, inferred, static) for item in gradients)


def _is_narrow(layer: PooledLayer, inferred: Any, static: Collection[str]) -> bool:
    """Windows of few elements, with computed weights."""
    sizes = _layer_sizes(layer, inferred, static)
    if sizes is None or layer.by_images is not None:
        return False
    weights, results = sizes
    elements = weights[0] * weights[1] * weights[2]
    return elements <= FEW_LAID_OUT and _count(results) >= LEAST_NUMPY_GRADIENT


def _is_wide(
    layer: PooledLayer | RectifiedLayer, inferred: Any, static: Collection[str], without: Collection[str]
) -> bool:
    """A convolution without strides, with computed weights, that XNNPACK computes about as soon as it does tiles."""
    sizes, images = _layer_sizes(layer, inferred, static), _sizes(inferred, str(layer.conv.data[0]))
    if sizes is None or images is None:
        return False
    weights, results = sizes
    if isinstance(layer, PooledLayer) and not _lies_side_by_side(layer.pool.node, results[1:3]):
        return False
    shares = _shares_of_tiles(layer.conv.node, weights, images, results, without)
    counted = [*shares[:1] * 2, *(shares[1:] if layer.by_images else ())]  # that by the weights is as much work
    least = POOLED_WITHOUT_TILES_SHARE if isinstance(layer, PooledLayer) else WITHOUT_TILES_SHARE
    return bool(counted) and sum(counted) >= least * len(counted)


def _shares_of_tiles(
    conv: Node, weights: tuple[int, ...], images: tuple[int, ...], results: tuple[int, ...], without: Collection[str]
) -> tuple[float, ...]:
    """Of a convolution and its gradient by the images, which share of the plain convolution's time tiles take; none
    where XNNPACK shall not compute it with weights that change."""
    height, width, depth, count = weights
    if not conv.op.startswith("Conv2D") or set(conv.attr("strides", ())) != {1}:
        return ()
    borders = list(conv.attr("explicit_paddings", None) or [0] * 8)[2:6]
    if any(border >= size for border, size in zip(borders, (height, height, width, width), strict=True)):
        return ()  # then the gradient by the images is no convolution
    if not _is_for_xnnpack(weights, results, without):
        return ()
    if "winograd_training" in without:
        return (WITHOUT_TILES_SHARE,) * 2
    shares = share_in_tiles(results, (height, width), depth), share_in_tiles(images, (height, width), count)
    return tuple(WITHOUT_TILES_SHARE if share is None else share for share in shares)


def _is_for_xnnpack(weights: tuple[int, ...], results: tuple[int, ...], without: Collection[str]) -> bool:
    """Whether a convolution is large enough for XNNPACK with weights that change, and not a product of matrices."""
    least = LEAST_SHALLOW_LAYER if weights[2] < SHALLOW_CHANNELS else LEAST_TRAINED_LAYER
    work = weights[0] * weights[1] * weights[2] * _count(results)
    return "changing_weights" not in without and weights[:2] != (1, 1) and work >= least


def _single_convolutions(
    plan: Plan, inferred: Any, static: Collection[str], without: Collection[str]
) -> dict[str, str]:
    """Why LiteRT shall not run convolutions that are trained, and their gradients, by name, where they are in no layer
    of ``layers_sooner_in_numpy`` (engines/single_convolutions.py); the arguments are those of it."""
    trained = trained_images(plan)
    found: dict[str, str] = {}
    for name, item in plan.items.items():
        refs: tuple[Endpoint | str, ...]
        if item.node.op == "Conv2D" and item.data[0] in trained:
            refs, place = (item.data[1], item.data[0], f"{name}:0"), 0
        elif item.node.op == "Conv2DBackpropInput":
            refs, place = (item.data[1], f"{name}:0", item.data[2]), 1
        elif item.node.op == "Conv2DBackpropFilter":
            refs, place = (f"{name}:0", item.data[0], item.data[2]), 0
        else:
            continue
        weights, images, results = (_sizes(inferred, str(ref)) for ref in refs)
        if weights is None or images is None or results is None:
            continue
        if isinstance(refs[0], Endpoint) and refs[0].node in static:
            continue
        shares = _shares_of_tiles(item.node, weights, images, results, without)
        is_strided = item.node.op == "Conv2D" and set(item.node.attr("strides", ())) != {1}
        if is_strided and _is_for_xnnpack(weights, results, without):
            found[name] = LAYER_REASON  # there are no tiles of these
        elif shares and shares[place] >= WITHOUT_TILES_SHARE:
            found[name] = LAYER_REASON
    return found


def _lies_side_by_side(pool: Node, sizes: Sequence[int]) -> bool:
    """Whether a pool's windows over so many rows and columns neither overlap nor have a border."""
    window = tuple(pool.attr("ksize", ()))[1:3]
    has_border = pool.attr("padding") != b"VALID" and any(n % m for n, m in zip(sizes, window, strict=True))
    return tuple(pool.attr("strides", ()))[1:3] == window and not has_border


def _layer_sizes(
    layer: PooledLayer | RectifiedLayer, inferred: Any, static: Collection[str]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The sizes of a convolution's weights and results; None where they are not known, or weights are constant."""
    weights, results = _sizes(inferred, str(layer.conv.data[1])), _sizes(inferred, f"{layer.conv.node.name}:0")
    if weights is None or results is None or layer.conv.data[1].node in static:
        return None
    return weights, results


def _by_filter(node: Node, inferred: Any, static: Collection[str]) -> bool:
    """Windows of few elements; of many where their matrix is long, and has so few output channels that LiteRT takes as
    long to transpose it as to multiply; or of one pixel, where nothing is laid out."""
    made, slopes = _sizes(inferred, f"{node.name}:0"), _sizes(inferred, canonical(node.data_inputs[2]))
    if made is None or slopes is None:
        return False
    elements = made[0] * made[1] * made[2]
    is_long = made[3] <= MOST_TURNED and math.prod(slopes[:3]) >= LONG_LAID_OUT * elements
    is_quick = elements <= FEW_LAID_OUT or made[:2] == (1, 1) or is_long
    return is_quick and elements * _count(slopes) >= LEAST_NUMPY_GRADIENT


def _by_image(node: Node, inferred: Any, static: Collection[str]) -> bool:
    """Windows of one pixel with computed weights: a product of matrices that lie as they are."""
    weights, slopes = (_sizes(inferred, canonical(node.data_inputs[place])) for place in (1, 2))
    if weights is None or slopes is None or node_name(node.data_inputs[1]) in static or weights[:2] != (1, 1):
        return False
    return set(node.attr("strides", ())) == {1} and weights[2] * _count(slopes) >= LEAST_NUMPY_GRADIENT


def _depthwise_by_filter(node: Node, inferred: Any, static: Collection[str]) -> bool:
    made, slopes = _sizes(inferred, f"{node.name}:0"), _sizes(inferred, canonical(node.data_inputs[2]))
    return made is not None and slopes is not None and made[0] * made[1] * _count(slopes) >= LEAST_NUMPY_GRADIENT


def _depthwise_by_image(node: Node, inferred: Any, static: Collection[str]) -> bool:
    """With computed weights; XNNPACK has kernels for constant ones."""
    weights, slopes = (_sizes(inferred, canonical(node.data_inputs[place])) for place in (1, 2))
    if weights is None or slopes is None or node_name(node.data_inputs[1]) in static:
        return False
    return weights[0] * weights[1] * _count(slopes) >= LEAST_NUMPY_GRADIENT


def _of_max_pool(node: Node, inferred: Any, static: Collection[str]) -> bool:
    images = _sizes(inferred, canonical(node.data_inputs[0]))
    if images is None or _count(images) < LEAST_NUMPY_GRADIENT:
        return False
    return _is_side_by_side(node, inferred) or _is_without_gaps(node)


def _is_without_gaps(node: Node) -> bool:
    """Windows along rows and columns that overlap, or lie side by side (kernels/nn/overlapping_windows.py)."""
    window, steps = (tuple(node.attr(name, ())) for name in ("ksize", "strides"))
    if node.attr("data_format", b"NHWC") != b"NHWC" or len(window) != 4 or window[0] != 1 or window[3] != 1:
        return False
    return all(step <= taps <= MOST_TAPS for taps, step in zip(window[1:3], steps[1:3], strict=True))


def _is_side_by_side(node: Node, inferred: Any, *, must_cover: bool = True) -> bool:
    """Windows that lie side by side and cover the images (kernels/nn/adjacent_windows.py), or, where they need not, all
    of them that they have room for."""
    images, largest = (_sizes(inferred, canonical(node.data_inputs[place])) for place in (0, 2))
    if images is None or largest is None or node.attr("data_format", b"NHWC") != b"NHWC":
        return False
    window = tuple(node.attr("ksize", ()))
    if window != tuple(node.attr("strides", ())) or len(window) != 4 or window[0] != 1 or window[3] != 1:
        return False
    is_covered = all(
        count * size == length for count, size, length in zip(largest, window, images, strict=True) if size > 1
    )
    return is_covered or (not must_cover and node.attr("padding") == b"VALID")


def _sizes(inferred: Any, ref: str, rank: int = 4) -> tuple[int, ...] | None:
    """The sizes of a float32 tensor of this rank, where they are known."""
    shape = inferred.shape(ref)
    if not shape.is_known or len(shape.known) != rank or inferred.dtype(ref) is not FLOAT:
        return None
    return tuple(shape.known)


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * shape[1] * shape[2] * shape[3]


_RULES = {
    "Conv2DBackpropFilter": _by_filter,
    "Conv2DBackpropInput": _by_image,
    "DepthwiseConv2dNativeBackpropFilter": _depthwise_by_filter,
    "DepthwiseConv2dNativeBackpropInput": _depthwise_by_image,
    "MaxPoolGrad": _of_max_pool,
}
