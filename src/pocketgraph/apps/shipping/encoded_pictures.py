"""A graph that decodes pictures itself, cut behind that part: devices hand over pixels, and so do samples.

bytes ─DecodeJpeg─ Cast ─ ResizeBilinear ─┊─ Mul ─ Conv2D …
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from pocketgraph.apps.shipping.model_entry import ModelEntry
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import dependents, reachable
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.quantization.input_cut import behind
from pocketgraph.runtime import Session

PROBED = ((37, 53), (61, 45))  # rows and columns of two pictures, from which a fixed size is one that both become
MOST_CANDIDATES = 24
CHANNELS = (1, 3)
EVEN = 1e-2  # of the range: by so much pixels of one value may differ behind decoder and resizing
DECODERS = ops_with("picture_file")


def pixel_entry(graph: Graph, outputs: Sequence[str]) -> ModelEntry | None:
    """The first tensor behind the decoder that is a picture of a fixed size; None where the graph decodes none."""
    needed = reachable(graph, [node_name(name) for name in outputs])
    texts = [
        node for node in graph
        if node.name in needed and node.op in ("Placeholder", "PlaceholderV2") and node.attr("dtype") is STRING
    ]  # fmt: skip
    if len(texts) != 1 or not any(graph[name].op in DECODERS for name in needed):
        return None
    source = texts[0]
    black, white = (_probe(graph, source, value, size) for value, size in zip((0, 255), PROBED, strict=True))
    inferred = infer(graph)
    for name in _candidates(graph, source.name, needed, outputs, inferred):
        shape = inferred.shape(canonical(name)).dims
        low, high = (run(name) for run in (black, white))
        if low is not None and high is not None and low.ndim == 4 and low.shape == high.shape:
            shape = low.shape
        if shape is None or len(shape) != 4 or None in shape[1:] or shape[3] not in CHANNELS:
            continue
        cut = behind(graph, {name: (FLOAT, (None, *shape[1:]))})
        return ModelEntry(cut.replace(inputs=(), signatures={}, outputs=list(outputs)), (name,), *_scaling(low, high))
    return None


def _candidates(
    graph: Graph, source: str, needed: set[str], outputs: Sequence[str], inferred: Inferred
) -> Iterator[str]:
    """Floats behind the source through which all that it says goes, the first ones first."""
    count = 0
    for node in dependents(graph, [source]):
        if node.name not in needed:
            continue
        shape = inferred.shape(canonical(node.name)).dims
        is_float = inferred.dtype(canonical(node.name)) is FLOAT and (shape is None or len(shape) == 4)
        if not is_float or node.op in ops_with("control_flow"):
            continue
        if source not in reachable(graph, [node_name(name) for name in outputs], stop={node.name}):
            count += 1
            yield node.name
        if count >= MOST_CANDIDATES:
            return


def _probe(graph: Graph, source: Node, value: int, size: tuple[int, int]) -> Any:
    """What gives any tensor for a picture of one value, encoded; None where that does not run."""
    stream = io.BytesIO()
    Image.fromarray(np.full((*size, 3), value, np.uint8)).save(stream, "JPEG", quality=95)
    shape = source.shape()
    rank = 0 if shape is None or shape.rank is None else shape.rank
    fed = np.full((1,) * rank, stream.getvalue(), object)
    session = Session(graph)

    def run(name: str) -> np.ndarray[Any, Any] | None:
        try:
            return np.asarray(session.run([name], {source.name: fed})[0])
        except PocketgraphError:
            return None

    return run


def _scaling(low: np.ndarray[Any, Any] | None, high: np.ndarray[Any, Any] | None) -> tuple[float | None, float | None]:
    """Mean and std by what black and white become; None where that is not one value each."""
    if low is None or high is None:
        return None, None
    span = float(high.mean() - low.mean())
    if span <= 0 or max(float(np.ptp(low)), float(np.ptp(high))) > EVEN * span:
        return None, None
    std = 255 / span
    return round(-float(low.mean()) * std, 3) + 0.0, float(f"{std:.5g}")
