"""What a detector's outputs mean: one decoder a family, found by names and shapes of the outputs.

Boxes come out as top, left, bottom, right, as shares of the picture that the model was given. Sources: the detectors of
the Android demo (MultiBox, Object Detection API, YOLO); Liu et al., "SSD"; Zhou et al., "Objects as Points"; Zhang et
al., "MTCNN".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.apps.detections import Detection, clipped, sigmoid, without_overlaps
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.nn.activations import softmax

YOLO_ANCHORS = (1.08, 1.19, 3.42, 4.41, 6.63, 11.38, 9.42, 5.11, 16.62, 10.52)
"""Widths and heights in cells, of tiny-yolo-voc."""
LARGEST_SHARE = 2.0  # that a box reaches beyond its picture; more are pixels
SSD_SCALES = (10.0, 10.0, 5.0, 5.0)
"""What the Object Detection API multiplies offsets of y, x, height and width by."""


@dataclass(frozen=True)
class Reading:
    """How outputs are read.

    Attributes:
        labels: one for each class; a class beyond them is called by its index.
        height, width: of the picture that the model was given, in pixels.
        least: detections of lower scores are none.
        anchors: [n, 4] of center y, center x, height, width; or priors [n, 4, 2]; or YOLO's [boxes, 2]; by family.
        overlap: boxes of one class that overlap more than so are one.
    """

    labels: Sequence[str] = ()
    height: int = 1
    width: int = 1
    least: float = 0.5
    anchors: Array | None = None
    overlap: float = 0.5

    def label(self, index: int, first: int = 0) -> str:
        """The name of a class; ``first`` is the index of the labels' first line."""
        place = index - first
        return self.labels[place] if 0 <= place < len(self.labels) else f"class {index}"


def detection_api(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """Outputs of the Object Detection API: boxes, scores, classes, already without overlaps.

    Class indices count from 1, those of ``zero_based`` outputs from 0; a first label ``???`` stands before the classes.
    """
    boxes, scores = found["boxes"].reshape(-1, 4), found["scores"].reshape(-1)
    classes = found["classes"].reshape(-1) if "classes" in found else None
    count = int(found["count"].reshape(-1)[0]) if "count" in found else len(scores)
    first = int("zero_based" not in found) - int(bool(how.labels) and how.labels[0] == "???")
    kept = [i for i in range(min(count, len(scores))) if scores[i] >= how.least]
    return [
        clipped(
            Detection(
                _box(boxes[i]), float(scores[i]), "" if classes is None else how.label(round(float(classes[i])), first)
            )
        )
        for i in kept
    ]


def multibox(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """MultiBox: a linear code of left, top, right, bottom around priors, and one logit a box."""
    if how.anchors is None:
        raise AssertionError("MultiBox is read with priors")
    coded = found["boxes"].reshape(-1, 4).astype(np.float64)
    sides = np.clip(coded * how.anchors[:, :, 1] + how.anchors[:, :, 0], 0, 1)
    scores = sigmoid(found["scores"].reshape(-1))
    some = [Detection(_box(sides[i][[1, 0, 3, 2]]), float(scores[i])) for i in np.flatnonzero(scores >= how.least)]
    return without_overlaps(some, how.overlap)


def ssd(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """SSD before its post-processing: offsets from anchors, and scores of classes (logits or shares).

    A first column of scores that has no label is the background's.
    """
    if how.anchors is None:
        raise AssertionError("SSD is read with anchors")
    coded = found["boxes"].reshape(-1, 4).astype(np.float64) / SSD_SCALES
    anchors = how.anchors
    centers = coded[:, :2] * anchors[:, 2:] + anchors[:, :2]
    halves = np.exp(np.minimum(coded[:, 2:], 50)) * anchors[:, 2:] / 2
    boxes = np.concatenate([centers - halves, centers + halves], axis=1)
    scores = found["scores"].reshape(len(boxes), -1).astype(np.float64)
    if scores.min(initial=0) < 0 or scores.max(initial=0) > 1:
        scores = sigmoid(scores)
    scores = scores[:, 1:]  # the background's
    first = 1 if how.labels and how.labels[0] == "???" else 0
    some = [
        clipped(Detection(_box(boxes[i]), float(scores[i, j]), how.label(int(j) + first)))
        for i, j in zip(*np.nonzero(scores >= how.least), strict=True)
    ]
    return without_overlaps(some, how.overlap)


def yolo(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """YOLO v2: a grid of cells, in each some boxes of x, y, width, height, confidence, and a logit a class."""
    grid = found["grid"].astype(np.float64)
    grid = grid.reshape(grid.shape[-3:])
    anchors = np.array(YOLO_ANCHORS).reshape(-1, 2) if how.anchors is None else how.anchors.reshape(-1, 2)
    rows, columns, depth = grid.shape
    cells = grid.reshape(rows, columns, len(anchors), depth // len(anchors))
    y = (np.arange(rows)[:, None, None] + sigmoid(cells[..., 1])) / rows
    x = (np.arange(columns)[None, :, None] + sigmoid(cells[..., 0])) / columns
    width = np.exp(np.minimum(cells[..., 2], 50)) * anchors[:, 0] / columns
    height = np.exp(np.minimum(cells[..., 3], 50)) * anchors[:, 1] / rows
    shares = softmax(cells[..., 5:])
    best = shares.argmax(axis=-1)
    scores = sigmoid(cells[..., 4]) * shares.max(axis=-1)
    boxes = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=-1)
    some = [
        clipped(Detection(_box(boxes[at]), float(scores[at]), how.label(int(best[at]))))
        for at in zip(*np.nonzero(scores >= how.least), strict=True)
    ]
    return without_overlaps(some, how.overlap)


def heat_maps(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """Objects as points: peaks of a class's map, with sizes and offsets (in cells) where there are such."""
    heat = found["heat"].astype(np.float64)
    heat = heat.reshape(heat.shape[-3:])
    if heat.min(initial=0) < 0 or heat.max(initial=0) > 1:
        heat = sigmoid(heat)
    rows, columns, _ = heat.shape
    padded = np.pad(heat, ((1, 1), (1, 1), (0, 0)), constant_values=-1)
    around = np.max([padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3)], axis=0)
    sizes = found["sizes"].reshape(rows, columns, 2) if "sizes" in found else np.ones((rows, columns, 2))
    offsets = found["offsets"].reshape(rows, columns, 2) if "offsets" in found else np.full((rows, columns, 2), 0.5)
    some = []
    for y, x, kind in zip(*np.nonzero((heat >= how.least) & (heat == around)), strict=True):
        cy, cx = y + offsets[y, x, 1], x + offsets[y, x, 0]
        w, h = sizes[y, x]
        box = ((cy - h / 2) / rows, (cx - w / 2) / columns, (cy + h / 2) / rows, (cx + w / 2) / columns)
        some.append(clipped(Detection(_box(box), float(heat[y, x, kind]), how.label(int(kind)))))
    return without_overlaps(some, how.overlap)


def faces(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """MTCNN as one graph: boxes in pixels (top, left, bottom, right), five landmarks (five y, then five x)."""
    scores = found["scores"].reshape(-1)
    boxes = found["boxes"].reshape(-1, 4) / (how.height, how.width, how.height, how.width)
    marks = found["points"].reshape(len(scores), 2, 5) / np.array([how.height, how.width])[:, None]
    return [
        clipped(
            Detection(_box(boxes[i]), float(scores[i]), "", None, tuple((float(x), float(y)) for y, x in marks[i].T))
        )
        for i in np.flatnonzero(scores >= how.least)
    ]


def selected(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """What a graph has itself selected with non_max_suppression: boxes (top, left, bottom, right, in pixels where they
    reach beyond 2), scores, and classes that count from 0."""
    boxes = found["boxes"].reshape(-1, 4).astype(np.float64)
    in_pixels = bool(boxes.max(initial=0) > LARGEST_SHARE)
    shares = boxes / (how.height, how.width, how.height, how.width) if in_pixels else boxes
    return detection_api({**found, "boxes": shares, "zero_based": np.ones(1)}, how)


def _box(sides: Any) -> tuple[float, float, float, float]:
    top, left, bottom, right = (float(side) for side in sides)
    return top, left, bottom, right


Sizes = Mapping[str, tuple[int | None, ...] | None]
"""The inferred sizes of outputs by part; None where even their number is open."""
Tensors = Mapping[str, str]
"""The names of outputs by part."""


def _anchored(sizes: Sizes, tensors: Tensors) -> bool:
    """Boxes [.., n, 4] (or [.., n, 1, 4]), and scores of as many; four columns of them only under a detector's own
    names, as any graph may join rows of four."""
    boxes, scores = sizes["boxes"], sizes["scores"]
    if boxes is None or scores is None or len(boxes) < 3 or len(scores) < 3:
        return False
    is_own = not tensors["scores"].rpartition("/")[2].startswith("concat")
    return boxes[-1] == 4 and boxes[1] == scores[1] and (is_own or scores[-1] != 4)


def _listed(sizes: Sizes, tensors: Tensors) -> bool:
    """Boxes [n, 4], or so of one picture, and a score each."""
    boxes, scores = sizes["boxes"], sizes["scores"]
    if boxes is None or scores is None or len(boxes) not in (2, 3) or len(scores) != len(boxes) - 1:
        return False
    return boxes[-1] == 4 and (len(boxes) == 2 or boxes[0] in (1, None))


def _gridded(sizes: Sizes, tensors: Tensors) -> bool:
    """A square grid whose depth holds five boxes of at least one class."""
    grid = sizes["grid"]
    return (
        grid is not None and len(grid) == 4 and (grid[3] or 0) >= 30 and (grid[3] or 0) % 5 == 0 and grid[1] == grid[2]
    )


def _mapped(sizes: Sizes, tensors: Tensors) -> bool:
    heat = sizes["heat"]
    return heat is not None and len(heat) == 4


@dataclass(frozen=True)
class Family:
    """One family of detectors.

    Attributes:
        name: as ``--decoder`` takes it.
        parts: for each output that the decoder reads, the names that such a node has.
        decode: the outputs by part as detections.
        least: the lowest score that the original application showed.
        mean, std: of the picture's values where nothing else tells them.
        reversed: whether the model takes blue, green, red.
        anchors: which boxes it needs: "", "priors", "anchors" or "yolo".
        optional: parts that may lack.
        feeds: values of other placeholders of these names, where the graph has them.
        fits: whether outputs of these sizes and names can be this family's.
    """

    name: str
    parts: Mapping[str, tuple[str, ...]]
    decode: Callable[[Mapping[str, Array], Reading], list[Detection]]
    least: float
    mean: float = 127.5
    std: float = 127.5
    reversed: bool = False
    anchors: str = ""
    optional: frozenset[str] = frozenset()
    feeds: Mapping[str, Any] = field(default_factory=dict)
    fits: Callable[[Sizes, Tensors], bool] = lambda sizes, tensors: True


def postprocessed(found: Mapping[str, Array], how: Reading) -> list[Detection]:
    """A LiteRT file that ends in TFLite_Detection_PostProcess; its classes count from 0."""
    return detection_api({**found, "zero_based": np.ones(1)}, how)


FAMILIES = (
    Family(
        "detection_api",
        {
            "boxes": ("detection_boxes",),
            "scores": ("detection_scores",),
            "classes": ("detection_classes",),
            "count": ("num_detections",),
        },
        detection_api,
        0.6,
        optional=frozenset({"classes", "count"}),
    ),
    Family(
        "multibox",
        {"boxes": ("output_locations/Reshape",), "scores": ("output_scores/Reshape",)},
        multibox,
        0.1,
        128.0,
        128.0,
        anchors="priors",
    ),
    Family(
        "ssd",
        {
            "boxes": ("raw_outputs/box_encodings", "Squeeze", "concat"),
            "scores": ("raw_outputs/class_predictions", "convert_scores", "concat_1"),
        },
        ssd,
        0.6,
        anchors="anchors",
        fits=_anchored,
    ),
    Family(
        "mtcnn",
        {"boxes": ("box",), "scores": ("prob",), "points": ("landmarks",)},
        faces,
        0.7,
        0.0,
        1.0,
        reversed=True,
        feeds={"min_size": 40.0, "thresholds": (0.6, 0.7, 0.7), "factor": 0.709},
    ),
    Family("yolo", {"grid": ("output",)}, yolo, 0.25, 0.0, 255.0, anchors="yolo", fits=_gridded),
    Family(
        "heat_maps",
        {
            "heat": ("heat_map", "heatmap", "center_heatmap", "hm"),
            "sizes": ("size", "wh"),
            "offsets": ("offset", "reg"),
        },
        heat_maps,
        0.3,
        optional=frozenset({"sizes", "offsets"}),
        fits=_mapped,
    ),
    Family(
        "selected",
        {
            "boxes": ("boxes", "output_boxes", "pred_boxes"),
            "scores": ("scores", "output_scores", "pred_scores"),
            "classes": ("classes", "output_classes", "pred_classes"),
        },
        selected,
        0.3,
        0.0,
        255.0,
        optional=frozenset({"classes"}),
        fits=_listed,
    ),
    Family(
        "postprocessed",
        {"boxes": (), "classes": (), "scores": (), "count": ()},  # by place, in a LiteRT file
        postprocessed,
        0.6,
    ),
)
"""The families, the surest first."""
