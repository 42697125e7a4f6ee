"""Finds batch norms that are trained, and runs each, and its gradients, as one step, with its rectifier.

    forward     x, scale, offset, averages -> FusedBatchNorm -> Relu (or Relu6)
    backward    slopes -> ReluGrad -> FusedBatchNormGrad

What LiteRT has are ten operators, each of which reads and writes all images. Traced, or with a limit of memory or time,
the nodes run as they are written (kernels/nn/trained_normalization.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import FUSED_BATCH_NORMS
from pocketgraph.kernels.arrays import Array
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    LayerCall,
    RunApart,
    are_float_images,
    are_free,
    layer_part,
    made_by,
    nodes_of,
    waited_for,
)
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.rectified_layers import RECTIFIERS

PASS = "trained_batch_norms"
GRADIENTS = {name.replace("Norm", "NormGrad") for name in FUSED_BATCH_NORMS}


class TrainedNorm(NamedTuple):
    """The nodes of a batch norm and of its gradients.

    Attributes:
        norm, relu: what computes it; None where no rectifier alone takes what it gives.
        mask, gradient: what computes the rectifier's gradient, which nobody else takes, and of that those of the norm.
    """

    norm: Item
    relu: Item | None
    mask: Item | None
    gradient: Item


def trained_norms(plan: Plan, held: Collection[str]) -> list[TrainedNorm]:
    """The batch norms of a plan that are trained.

    Args:
        plan: what is compiled.
        held: nodes whose results somebody else wants.
    """
    found: list[TrainedNorm] = []
    inner = held
    for gradient in [item for item in plan.items.values() if item.node.op in GRADIENTS]:
        norm = plan.items.get(gradient.data[3].node)
        if norm is None or gradient.data[3] != Endpoint(norm.node.name, 3) or norm.node.op not in FUSED_BATCH_NORMS:
            continue
        inner = waited_for(plan) | set(held) if inner is held else inner
        relu, mask = _rectifier(plan, norm, inner), made_by(plan, gradient.data[0], *RECTIFIERS)
        if mask is not None and (mask.node.name in inner or len(plan.takers(gradient.data[0])) > 1):
            mask = None
        one = TrainedNorm(norm, relu, mask, gradient)
        images = [each for each in nodes_of(one) if each not in (norm, gradient)]
        if are_free(plan, nodes_of(one)) and are_float_images(images) and _is_plain(plan, norm, gradient):
            found.append(one)
    return found


def _rectifier(plan: Plan, norm: Item, held: Collection[str]) -> Item | None:
    """The rectifier that alone takes what a batch norm gives."""
    takers = plan.takers(Endpoint(norm.node.name, 0))
    only = plan.items[takers[0]] if len(takers) == 1 else None
    is_one = only is not None and only.node.op in RECTIFIERS.values() and norm.node.name not in held
    return only if is_one else None


def _is_plain(plan: Plan, norm: Item, gradient: Item) -> bool:
    """Whether both are float32, by the batch's statistics and with channels last, and the gradient is the norm's."""
    alike = all(
        each.node.attrs.get("T") is FLOAT
        and each.node.attr("U", FLOAT) is FLOAT
        and each.node.attr("data_format", b"NHWC") == b"NHWC"
        and each.node.attr("is_training", True)
        for each in (norm, gradient)
    )
    is_its = gradient.data[1:3] == norm.data[:2] and gradient.data[4] == Endpoint(norm.node.name, 4)
    is_taken = any(plan.takers(Endpoint(gradient.node.name, port)) for port in (3, 4))
    return alike and is_its and not is_taken


def trained_norm_parts(plan: Plan, found: TrainedNorm, run_apart: RunApart) -> list[PartCall]:
    """The steps of a batch norm: forward, and its gradients."""
    norm, relu, mask, gradient = found
    name = norm.node.name
    results = Endpoint(relu.node.name if relu else name, 0), *(Endpoint(name, port) for port in range(1, 5))
    if norm.node.op == "FusedBatchNormV3":
        results = *results, Endpoint(name, 5)
    inputs = (*mask.data, *gradient.data[1:]) if mask else gradient.data
    slopes = tuple(Endpoint(gradient.node.name, port) for port in range(3))
    forward, backward = partial(_NormCall, found), partial(_NormGradient, found)
    return [
        layer_part((relu or norm).node, nodes_of((norm, relu)), norm.data, results, run_apart, forward),
        layer_part(gradient.node, nodes_of((mask, gradient)), inputs, slopes, run_apart, backward),
    ]


class _NormCall(LayerCall):
    """Images, scale, offset and running averages in; the result, rectified, and the op's other outputs out."""

    def __init__(self, found: TrainedNorm, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart, (found.relu or found.norm).node)
        self.norm = found.norm.node
        self.rectifier = found.relu.node.op if found.relu else ""

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.normalization import handed_out
        from pocketgraph.kernels.nn.trained_normalization import normalized

        x, scale, offset, *averages = arrays
        if not _are_plain([x], [scale, offset]):
            return None
        result = self.result(run, x.shape)
        source = np.ascontiguousarray(x)
        mean, variance = normalized(source, scale, offset, self.norm.attr("epsilon", 1e-4), result, self.rectifier)
        factor = self.norm.attr("exponential_avg_factor", 1.0)
        others = handed_out(mean, variance, x.size // len(mean), averages, factor, scale.dtype)
        empty = (np.zeros((), np.float32),) if self.norm.op == "FusedBatchNormV3" else ()
        return (result, *others, *empty)


class _NormGradient(LayerCall):
    """Slopes, the rectified result, images, scale, mean and variance in; the gradients by images, scale and offset
    out."""

    def __init__(self, found: TrainedNorm, apart: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__(apart, found.gradient.node)
        self.rectifier = RECTIFIERS[found.mask.node.op] if found.mask else ""

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        from pocketgraph.kernels.nn.trained_normalization import normalization_gradients

        slopes, *others = arrays
        rectified = others.pop(0) if self.rectifier else None
        x, scale, mean, variance, *_ = others
        images = [x, slopes] if rectified is None else [x, slopes, rectified]
        if not _are_plain(images, [scale, mean, variance]):
            return None
        by_images = self.result(run, x.shape)
        x, slopes, *masks = map(np.ascontiguousarray, images)
        epsilon = self.node.attr("epsilon", 1e-4)
        given = slopes, masks[0] if masks else None, x, scale, mean, variance, epsilon
        return (by_images, *normalization_gradients(*given, by_images, self.rectifier))


def _are_plain(images: list[Array], vectors: list[Array]) -> bool:
    """Whether images and what each channel has are float32 and fit."""
    first = images[0]
    return (
        first.ndim == 4
        and first.size > 0
        and all(each.shape == first.shape for each in images)
        and all(each.shape == first.shape[3:] for each in vectors)
        and all(each.dtype == np.float32 for each in (*images, *vectors))
    )
