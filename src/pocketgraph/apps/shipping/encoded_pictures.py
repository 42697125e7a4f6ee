"""A graph that decodes pictures itself, cut behind that part: devices hand over pixels, and so do samples.

bytes ─DecodeJpeg─ Cast ─ ResizeBilinear ─┊─ Mul ─ Conv2D …
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from pocketgraph.apps.shipping.model_entry import ModelEntry
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.graph.op_traits import CONTRACTIONS, NO_DEFAULT_PLACEHOLDERS, PICTURE_FILES, ops_with
from pocketgraph.graph.order import dependents, reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.quantization.input_cut import behind
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.encoded_samples import BASE64, file_form

PROBED = ((37, 53), (61, 45))  # rows and columns of two pictures, from which a fixed size is one that both become
MOST_CANDIDATES = 24  # tensors
CHANNELS = (1, 3)
EVEN = 1e-2  # of the range: by so much pixels of one value may differ behind decoder and resizing
ENCODERS = ("EncodePng", "EncodeJpeg")
"""Not a trait: what makes the file of a picture."""


def pixel_entry(graph: Graph, outputs: Sequence[str]) -> ModelEntry | None:
    """The first tensor behind the decoder and in front of the first layer that is a picture of a fixed size, else the
    first one of any size; None where the graph decodes none.

    Args:
        graph: the model.
        outputs: what is to be computed.
    """
    needed = reachable(graph, [node_name(name) for name in outputs])
    texts = [
        node for node in graph
        if node.name in needed and node.op in NO_DEFAULT_PLACEHOLDERS and node.attr("dtype") is STRING
    ]  # fmt: skip
    if len(texts) != 1 or not any(graph[name].op in PICTURE_FILES for name in needed):
        return None
    source = texts[0]
    probes = [_probe(graph, source, value, size) for value, size in zip((0, 255), PROBED, strict=True)]
    inferred, layers = infer(graph), CONTRACTIONS
    of_any_size: ModelEntry | None = None
    for name in _candidates(graph, source.name, needed, outputs, inferred):
        if any(graph[node].op in layers for node in reachable(graph, [name])):
            break
        shape = inferred.shape(canonical(name)).dims
        low, high = (run(name) for run in probes)
        if low is not None and high is not None and low.ndim == 4:
            shape = tuple(one if one == other else None for one, other in zip(low.shape, high.shape, strict=False))
        if shape is None or len(shape) != 4 or shape[3] not in CHANNELS:
            continue
        if None not in shape[1:]:
            return _entry(graph, name, shape, outputs, low, high)
        of_any_size = of_any_size or _entry(graph, name, shape, outputs, low, high)
    return of_any_size


def _entry(
    graph: Graph, name: str, shape: Sequence[int | None], outputs: Sequence[str], low: Array | None, high: Array | None
) -> ModelEntry:
    """The graph behind a tensor of pictures, given what that is for a black and for a white one."""
    cut = behind(graph, {name: (FLOAT, (None, *shape[1:]))})
    return ModelEntry(cut.replace(inputs=(), signatures={}, outputs=list(outputs)), (name,), *_scaling(low, high))


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
    is_base64 = file_form(graph, source.name).endswith(BASE64)
    rank = 0 if shape is None or shape.rank is None else shape.rank
    content = stream.getvalue()
    fed = np.full((1,) * rank, base64.urlsafe_b64encode(content) if is_base64 else content, object)
    session = Session(graph)

    def run(name: str) -> Array | None:
        try:
            return np.asarray(session.run([name], {source.name: fed})[0])
        except PocketgraphError:
            return None

    return run


def _scaling(low: Array | None, high: Array | None) -> tuple[float | None, float | None]:
    """Mean and std by what black and white become; None where that is not one value each."""
    if low is None or high is None:
        return None, None
    span = float(high.mean() - low.mean())
    if span <= 0 or max(float(np.ptp(low)), float(np.ptp(high))) > EVEN * span:
        return None, None
    std = 255 / span
    return round(-float(low.mean()) * std, 3) + 0.0, float(f"{std:.5g}")


def pictures_before_encoding(graph: Graph, outputs: Sequence[str]) -> dict[str, str]:
    """For outputs that are files of pictures, in base64 or not, the floats that become the pixels of each.

    x ─ … ─ Mul ─┊─ Cast ─ StridedSlice ─ EncodePng ─ EncodeBase64
    """
    found = {}
    for name in outputs:
        before = reachable(graph, [node_name(name)], data_only=True)
        encoders = [graph[one] for one in before if graph[one].op in ENCODERS]
        if len(encoders) != 1:
            continue
        tensor = encoders[0].data_inputs[0]
        while (node := graph.producer(tensor)).op in ops_with("passes", "moves") | {"Cast"} and node.data_inputs:
            tensor = node.data_inputs[0]
        found[name] = tensor
    return found
