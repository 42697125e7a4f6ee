"""What a detector finds in photos, before and after, drawn for the page about a shipment.

photo ─ frozen.pb or model.tflite ─┊─ what of the model chooses boxes ─ boxes over the photo
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import numpy as np
from PIL import Image

from pocketgraph.apps.detections import Detection
from pocketgraph.apps.live.answers import Answer
from pocketgraph.apps.live.detection import DetectionApp, class_counts, recognised
from pocketgraph.apps.live.drawing import annotated
from pocketgraph.apps.photo_figures import figure, picture_in_page
from pocketgraph.apps.shipping.shipment import FROZEN, MODEL
from pocketgraph.datasets import image_loading
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.file_sizes import are_pictures
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.sample_reading import Notify, SampleReading
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import load
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.document import text
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.class_names import labels_beside_detector
from pocketgraph.quantization.evaluation.runnable_models import open_model

MOST_PHOTOS = 2  # photos
SIDE = 300  # pixels of a photo's longer side in the page
MOST_NAMED = 5  # things in the line below a photo


def box_heads(graph: Graph, outputs: Sequence[str], heads: Sequence[str]) -> set[str]:
    """The heads that say where boxes are and not how likely: scores of a selection do not depend on them.

    Args:
        graph: the model, with its selection of boxes.
        outputs: what it computes.
        heads: tensors in front of the selection.
    """
    needed = reachable(graph, [node_name(name) for name in outputs])
    selections = [graph[name] for name in needed if graph[name].op in ops_with("box_selection")]
    scores = [node_name(node.data_inputs[1]) for node in selections if len(node.data_inputs) > 1]
    if not scores:
        return set()
    behind_scores = reachable(graph, scores)
    return {name for name in heads if node_name(name) in needed - behind_scores}


def names_told(
    labels: str | os.PathLike[str] | None, model: str, graph: Graph, heads: Collection[str], notify: Notify
) -> list[str]:
    """The names in the file of labels that the caller names, or of a detector in one beside it; else none.

    Args:
        labels: the caller's file.
        model: the path.
        graph: the model, with its selection of boxes.
        heads: the ``box_heads``.
        notify: told which file beside the model is taken.
    """
    if labels is not None:
        return read_labels(labels)
    is_detector = bool(heads) or recognised(graph) is not None
    return labels_beside_detector(model, graph, class_counts(graph), notify) if is_detector else []


def found_boxes(
    graph: Graph, labels: Sequence[str], outputs: Sequence[str], paths: Sequence[str], source: SampleSource | None,
    reading: SampleReading, skip: int,
) -> tuple[str, str]:  # fmt: skip
    """Photos with the boxes that a detector finds in them as floats and as what ships, as HTML, and why there are none;
    "" for both where it is no detector, or the samples are no photos.

    Args:
        graph: the model, with its selection of boxes.
        labels: the name of each class.
        outputs: tensors of the graph that the files give, in their order.
        paths: frozen.pb and model.tflite.
        source: the samples.
        reading: how they are read.
        skip: samples that it was made with.
    """
    if source is None or not are_pictures(source) or recognised(graph) is None:
        return "", ""
    try:
        return _drawn(DetectionApp(graph, labels), outputs, paths, source, reading, skip), ""
    except PocketgraphError as error:  # as boxes are relative to some that only the model's user has
        return "", f"which boxes it finds in photos: {error}"


def _drawn(
    app: DetectionApp, outputs: Sequence[str], paths: Sequence[str], source: SampleSource, reading: SampleReading,
    skip: int,
) -> str:  # fmt: skip
    frozen, file = load(paths[0]), open_model(paths[1], outputs=outputs)
    model = open_model(frozen, outputs=outputs, sizes=lambda graph, shapes: reading.sized(graph, shapes, source))
    photos = reading.open(source, model.inputs, reading.scaling(frozen)).after(skip).take(MOST_PHOTOS)
    shown = ""
    for path, sample in zip(photos.files, photos.samples(), strict=True):
        pixels = _resized(image_loading.read(path, 3))
        size = next((array.shape[-3:-1] for array in sample if array.ndim > 2), (0, 0))
        for name, each in ((FROZEN, model), (MODEL, file)):
            answers = app.model.of_pixels(pixels, dict(zip(outputs, each.run(sample), strict=False)))
            found = app.decoded(answers, size)
            drawn = annotated(pixels, Answer(detections=tuple(found)))
            shown += figure(picture_in_page(drawn, SIDE, f"{path}, {name}"), text(f"{name}: {_words(found, app)}"))
    return f'<div class="figures">{shown}</div>'


def _resized(pixels: Array) -> Array:
    """A photo as large as the page shows it, so that lines and words over it can be read."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    share = SIDE / max(picture.size)
    width, height = (max(1, round(side * share)) for side in picture.size)
    return np.asarray(picture.resize((width, height)))


def _words(found: Sequence[Detection], app: DetectionApp) -> str:
    """What was found, the surest first."""
    if not found:
        return f"nothing with a score of {app.threshold:g} or more"
    ranked = sorted(found, key=lambda one: -one.score)[:MOST_NAMED]
    named = ", ".join(f"{one.label} {one.score:.2f}".strip() for one in ranked)
    return f"{counted(len(found), 'box')}: {named}{', …' if len(found) > MOST_NAMED else ''}"
