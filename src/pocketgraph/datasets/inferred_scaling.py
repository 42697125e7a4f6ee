"""Which pixel values a graph takes, read off what it does to them before its first layer, or off the codes it takes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from pocketgraph.errors import option
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import INT8, UINT8
from pocketgraph.graph.model_file_graph import SCALES, ZERO_POINTS, is_litert_file
from pocketgraph.graph.op_traits import BIASED_SUMS, FUSED_BATCH_NORMS, PRODUCTS, QUOTIENTS, ops_with

THROUGH = ops_with("passes", "view", "moves", "resize", "pad") | {"Cast", "Enter"}
"""Ops behind which pixels have the same range as before."""
DIFFERENCES = ops_with("difference")
MOST_NODES = 64  # that are looked at behind the input
BYTE_CENTRES = (60.0, 200.0)  # means of channels of photographs, in values from 0 to 255
SHARE_CENTRES = (0.3, 0.65)  # the same, in values from 0 to 1
WIDE = 10.0  # a deviation that only values up to 255 have
FULL_SCALE = (200.0, 260.0)  # by which values from 0 to 1 are multiplied to become bytes


@dataclass(frozen=True)
class InferredScaling:
    """The scaling that a graph's first nodes are made for.

    Attributes:
        mean, std: pixels from 0 to 255 are to be fed as ``(pixel - mean) / std``.
        node: the name of the node that tells it.
    """

    mean: float
    std: float
    node: str

    @property
    def is_usual(self) -> bool:
        """Whether pictures are fed like this where nothing is known."""
        return (self.mean, self.std) == (0.0, 255.0)

    def note(self) -> str:
        """What a caller who named no scaling is told."""
        low, high = (0 - self.mean) / self.std, (255 - self.mean) / self.std
        return (
            f"the graph takes pixels from {low:g} to {high:g}, as '{self.node}' shows: {option('input_mean')} "
            f"{self.mean:g}, {option('input_std')} {self.std:g}"
        )


def inferred_scaling(graph: Graph, source: str) -> InferredScaling | None:
    """The scaling that an input's pictures need; None where the graph does nothing to pixels that would tell.

    Sums and products by constants, batch norms and the range of a fake quantization in front of the first layer are
    made for values from 0 to 255, from 0 to 1 or, a range alone, from -1 to 1. So are the eight-bit codes that a LiteRT
    file takes; those of another range are the pixels themselves. Metadata that tell a normalization come before that:
    such a file gives None.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[?,8,8,3])
    ...     most = Const(float 255)
    ...     scaled = RealDiv(x, most, T=float)
    ...     y = Relu(scaled, T=float)
    ... ''')
    >>> inferred_scaling(graph, "x")
    InferredScaling(mean=0.0, std=1.0, node='scaled')

    Args:
        graph: the model.
        source: the node or tensor that takes pictures.
    """
    if is_litert_file(graph):
        return _of_codes(graph, node_name(source))
    waiting = deque([(node_name(source), 1.0, 0.0, "")])
    seen = {node_name(source)}
    while waiting and len(seen) < MOST_NODES:
        name, slope, offset, last = waiting.popleft()
        is_end = False
        for node in {each.name: each for each in graph.consumers.get(name, ())}.values():  # an AddN may read it often
            if node.name in seen or not any(node_name(ref) == name for ref in node.data_inputs):
                continue
            if node.op.startswith("FakeQuantWithMinMax") and not last:
                found = _of_range(graph, node)
                if found is not None:
                    return found
            step = (1.0, 0.0) if node.op in THROUGH or node.op.startswith("FakeQuant") else _affine(graph, node, name)
            if step is None:
                is_end = True
                continue
            seen.add(node.name)
            changed = last if step == (1.0, 0.0) else node.name
            waiting.append((node.name, slope * step[0], offset * step[0] + step[1], changed))
        if is_end and last:
            found = _of_affine(slope, offset, last)
            if found is not None:
                return found
    return None


def _of_codes(graph: Graph, name: str) -> InferredScaling | None:
    attrs = graph[name].attrs
    scales, zeros, dtype = attrs.get(SCALES), attrs.get(ZERO_POINTS), attrs.get("dtype")
    if not isinstance(scales, tuple) or not isinstance(zeros, tuple) or not (dtype is INT8 or dtype is UINT8):
        return None
    about = metadata(graph.extra)
    if about is not None and about.mean:
        return None
    scale, of_black = float(scales[0]), float(zeros[0]) - np.iinfo(dtype.numpy).min
    low, high = -of_black * scale, (255 - of_black) * scale
    return _of_ends(low, high, name) or InferredScaling(of_black, 1 / scale, name)


def _of_affine(slope: float, offset: float, node: str) -> InferredScaling | None:
    """What becomes ``slope * value + offset`` has its centre and its deviation where that is near 0 and 1."""
    if slope == 0 or not np.isfinite([slope, offset]).all():
        return None
    centre, deviation = -offset / slope, 1 / abs(slope)
    if BYTE_CENTRES[0] <= centre <= BYTE_CENTRES[1] or (deviation > WIDE and abs(centre) <= BYTE_CENTRES[1]):
        return InferredScaling(0.0, 1.0, node)
    is_centred = SHARE_CENTRES[0] <= centre <= SHARE_CENTRES[1] and deviation <= 1
    if is_centred or (centre == 0 and FULL_SCALE[0] <= slope <= FULL_SCALE[1]):
        return InferredScaling(0.0, 255.0, node)
    return None


def _affine(graph: Graph, node: Node, name: str) -> tuple[float, float] | None:
    """Slope and offset of a sum or product by a constant, the means over channels; None for all else."""
    data = node.data_inputs
    if node.op in FUSED_BATCH_NORMS and len(data) >= 5 and node_name(data[0]) == name:
        return _batch_norm(graph, node)
    if len(data) != 2:
        return None
    is_first = node_name(data[0]) == name
    value = _number(graph, data[1 if is_first else 0])
    if value is None:
        return None
    if node.op in BIASED_SUMS:
        return 1.0, value
    if node.op in DIFFERENCES:
        return (1.0, -value) if is_first else (-1.0, value)
    if node.op in PRODUCTS:
        return value, 0.0
    if node.op in QUOTIENTS and is_first and value:
        return 1 / value, 0.0
    return None


def _batch_norm(graph: Graph, node: Node) -> tuple[float, float] | None:
    scale, offset, mean, variance = (graph.constant(ref) for ref in node.data_inputs[1:5])
    if scale is None or offset is None or mean is None or variance is None or node.attr("is_training") is True:
        return None
    epsilon = node.attr("epsilon")
    deviations = np.sqrt(variance.numpy() + (epsilon if isinstance(epsilon, float) else 1e-4))
    if deviations.size == 0 or not np.any(mean.numpy()):
        return None
    slopes = scale.numpy() / deviations
    return float(slopes.mean()), float((offset.numpy() - slopes * mean.numpy()).mean())


def _of_range(graph: Graph, node: Node) -> InferredScaling | None:
    """What a fake quantization of the pixels reaches from and to."""
    low, high = node.attr("min"), node.attr("max")
    if len(node.data_inputs) == 3:
        low, high = (_number(graph, ref) for ref in node.data_inputs[1:])
    if not isinstance(low, float) or not isinstance(high, float):
        return None
    return _of_ends(low, high, node.name)


def _of_ends(low: float, high: float, node: str) -> InferredScaling | None:
    for start, end, mean, std in ((0, 255, 0.0, 1.0), (0, 1, 0.0, 255.0), (-1, 1, 127.5, 127.5)):
        if max(abs(low - start), abs(high - end)) <= 0.05 * (end - start):
            return InferredScaling(mean, std, node)
    return None


def _number(graph: Graph, ref: str) -> float | None:
    """The mean of a constant, also behind nodes that hand it on or cast it."""
    for _ in range(8):
        value = graph.constant(ref)
        if value is not None:
            numbers = value.numpy()
            return float(numbers.mean()) if numbers.size and numbers.dtype.kind in "fiu" else None
        node = graph.nodes.get(node_name(ref))
        if node is None or node.op not in THROUGH or len(node.data_inputs) < 1:
            return None
        ref = node.data_inputs[0]
    return None
