"""Detect and track: boxes in each frame by the model's family, and the same identity for the same thing over frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.apps.detections import Detection
from pocketgraph.apps.live.anchors import multibox_priors, read_numbers, ssd_anchors
from pocketgraph.apps.live.answers import Answer, Frame, Setting, Settings, timed
from pocketgraph.apps.live.decoders import FAMILIES, Family, Reading
from pocketgraph.apps.live.tracking import Tracker
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.errors import PocketgraphError, UsageError, did_you_mean, option
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.graph.model_file_graph import is_litert_file, is_model_file
from pocketgraph.graph.op_traits import PLACEHOLDERS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.graph_resizing import graph_resizing, resize_nodes
from pocketgraph.runtime.unsupported_help import heads_before

NAMED = "save the model with outputs called boxes, [n, 4] of top, left, bottom, right, and scores, [n]"
"""How the family of decoders that any model can be made for reads boxes."""
FEW = 10  # boxes
USUAL_SIDE = 320  # pixels, of the square that frames are brought to where nothing tells their size

SizesOf: TypeAlias = "Callable[[str], tuple[int | None, ...] | None]"
"""A tensor's sizes by its name; None where even their number is open."""


@dataclass(frozen=True)
class Detector:
    """A graph that is a detector: its family, and the tensor of each part."""

    family: Family
    tensors: Mapping[str, str]


def recognised(graph: Graph, name: str = "", sizes: SizesOf | None = None) -> Detector | None:
    """The family that a graph's outputs are of; None when it is none's.

    Args:
        name: of the family that it has to be.
        sizes: of the graph's tensors, where the caller asks for them too.

    Raises:
        UsageError: there is no such family, or the graph lacks its outputs.
    """
    known = [family.name for family in FAMILIES]
    if name and name not in known:
        raise UsageError(f"there is no decoder '{name}'", hint=did_you_mean(name, known) or ", ".join(known))
    sizes = sizes or sizes_in(graph)
    for family in FAMILIES:
        if name in ("", family.name):
            tensors = _by_place(graph, sizes) if family.name == "postprocessed" else _by_name(graph, family)
            if tensors and family.fits({part: sizes(tensor) for part, tensor in tensors.items()}, tensors):
                return Detector(family, tensors)
    if name:
        parts = next(family for family in FAMILIES if family.name == name).parts
        lacking = "; ".join(f"{part}: {' or '.join(names)}" for part, names in parts.items() if names)
        raise UsageError(f"this graph has not the outputs of {name} ({lacking or 'four outputs of a LiteRT file'})")
    return None


def _by_name(graph: Graph, family: Family) -> dict[str, str] | None:
    found = {}
    outputs = [node_name(name) for name in graph.outputs]
    called = _called(graph)
    for part, names in family.parts.items():
        if is_model_file(graph):  # it runs as a whole
            ends = (end for name in names for end in outputs if end == name or end.endswith(f"/{name}"))
            name = next(ends, None)
        else:
            name = next((name for name in names if name in graph), None)
        if name is None:
            name = next((called[key] for key in names if key in called), None)
        if name is not None:
            found[part] = name
        elif part not in family.optional:
            return None
    return found


def _called(graph: Graph) -> dict[str, str]:
    """The tensors of a SavedModel's outputs by what its signature calls them; those of TensorFlow 2's Object Detection
    API have no other names. Empty where several signatures may be meant."""
    signatures = graph.public_signatures
    main = signatures.get(DEFAULT_SIGNATURE) or (next(iter(signatures.values())) if len(signatures) == 1 else None)
    return {} if main is None else {key: tensor.removesuffix(":0") for key, tensor in main.outputs.items()}


def _by_place(graph: Graph, sizes: SizesOf) -> dict[str, str] | None:
    """Location, category, score and count, in this order, of a LiteRT file that has these four outputs."""
    outputs = list(graph.outputs)
    if not is_litert_file(graph) or len(outputs) != 4:
        return None
    shapes = [sizes(tensor) for tensor in outputs]
    boxes = shapes[0]
    if boxes is None or len(boxes) != 3 or boxes[2] != 4 or any(s is None or len(s) != 2 for s in shapes[1:3]):
        return None
    return dict(zip(("boxes", "classes", "scores", "count"), outputs, strict=True))


def no_detector(hint: str = "") -> UsageError:
    """The error of a graph whose boxes nothing tells how to read, with a hint that goes on with what would tell it."""
    return UsageError("this graph's outputs are no detector's that is known", hint=hint + NAMED)


def unread_boxes(outputs: Mapping[str, Sequence[int]]) -> str:
    """What to say where a model of pictures gives what may be boxes, by name and sizes, that nothing tells how to read;
    "" where nothing looks so: rows of four numbers at least, of the one picture, more of them than classes mostly are.
    """
    rows = {name: sizes for name, sizes in outputs.items() if len(sizes) == 3 and sizes[1] >= FEW and sizes[2] >= 4}
    said = " and ".join(f"'{name}' {list(sizes)}" for name, sizes in rows.items())
    return f"nothing tells how {said} is read; where these are boxes, {NAMED}" if rows else ""


class DetectionApp(Settings):
    """Finds things in each frame and follows them.

    Args:
        graph: a detector.
        labels: one a class.
        decoder: the family's name; by default it is recognised.
        boxes: a file with priors or anchors, for families that need them.
        how: as in PictureModel.

    Raises:
        UsageError: the graph is no detector that is known, or boxes are needed and not given.
        FormatError: the boxes' file is not for this model.
    """

    kind = "detect"
    table = (
        Setting("threshold", "Show scores over", 0.5),
        Setting("overlap", "Boxes are one that overlap by", 0.5),
        Setting("track", "Follow things", "on", choices=("on", "off")),
        Setting("line", "Count crossings of the line at (share of the width)", 0.5),
    )

    def __init__(
        self,
        graph: Graph,
        labels: Sequence[str] = (),
        *,
        decoder: str = "",
        boxes: str | os.PathLike[str] | None = None,
        **how: Any,
    ) -> None:
        found = recognised(graph, decoder)
        if found is None:
            known = ", ".join(family.name for family in FAMILIES)
            raise no_detector(f"pass {option('decoder')} if it is one of {known}; else ")
        family = found.family
        feeds = {name: value for name, value in family.feeds.items() if name in graph}
        how = {**how, "feeds": {**feeds, **(how.get("feeds") or {})}}
        for name, value in (("mean", family.mean), ("std", family.std)):
            how[name] = value if how.get(name) is None else how[name]
        self.parts = list(found.tensors)
        tensors = [found.tensors[part] for part in self.parts]
        side: int | None = USUAL_SIDE
        if family.name == "detection_api" and _keeps_aspect_ratio(graph, how.get("input_layer")):
            side = None
        if family.name == "mtcnn":
            side = 0  # it makes smaller pictures of each one itself, on which faces are as wide as they were
        self.model = PictureModel(graph, tensors, fallback=side, **how)
        self.family, self.labels = (
            family,
            tuple(labels) or (self.model.metadata_of_file.labels if self.model.metadata_of_file else ()),
        )
        self.anchors = self._boxes(boxes)
        self.threshold, self.overlap, self.track, self.line = family.least, 0.5, "on", 0.5
        self.begin()

    def _boxes(self, path: str | os.PathLike[str] | None) -> Array | None:
        """What the family's boxes are relative to."""
        need = self.family.anchors
        if not need or (need == "yolo" and path is None):
            return None
        if need == "yolo":
            return read_numbers(path) if path is not None else None
        probe = np.zeros((self.model.input.height or 1, self.model.input.width or 1, 3), np.uint8)
        found = dict(zip(self.parts, self.model.of_pixels(probe), strict=True))
        count = found["boxes"].size // 4
        if need == "priors":
            if path is None:
                raise UsageError(
                    f"a MultiBox model needs its {8 * count} priors",
                    hint=f"pass {option('priors', 'boxes')}=multibox_location_priors.txt",
                )
            return multibox_priors(path, count)
        if path is not None:
            anchors = read_numbers(path)
            if anchors.size != 4 * count:
                raise UsageError(
                    f"the file has {counted(anchors.size, 'number')}, not 4 for each of the model's "
                    f"{counted(count, 'box')}"
                )
            return anchors.reshape(count, 4)
        made = ssd_anchors(count, self.model.input.height)
        if made is None:
            raise UsageError(
                f"the model has {counted(count, 'box')}, which are not those of an SSD MobileNet",
                hint=f"pass {option('priors', 'boxes')} with a file of center y, center x, height, width of each",
            )
        return made

    def __call__(self, given: Frame) -> Answer:
        """What is in a frame, with identities unless it is alone."""
        pixels = given.pixels[..., ::-1] if self.family.reversed else given.pixels
        arrays, took = timed(self.model.of_pixels, pixels)
        found = self.decoded(arrays, pixels.shape[:2])
        if self.track == "off" or given.alone:
            return Answer(detections=tuple(found), counts={"now": len(found)}, milliseconds=took)
        self.tracker.line = float(self.line)
        self.tracker.see(given.pixels, given.time)
        followed = self.tracker.match(found, given.time)
        return Answer(detections=tuple(followed), counts=self.tracker.counts(), milliseconds=took)

    def decoded(self, arrays: Sequence[Array], size: tuple[int, ...] = (0, 0)) -> list[Detection]:
        """What the model's outputs, in the order of its parts, say is in a frame; ``size`` are its height and width,
        where the model takes pictures as they are."""
        height, width = self.model.input.height or size[0], self.model.input.width or size[1]
        how = Reading(self.labels, height, width, float(self.threshold), self.anchors, float(self.overlap))
        return self.family.decode(dict(zip(self.parts, arrays, strict=True)), how)

    def between(self, given: Frame) -> Answer:
        """Where things are in a frame for which the model does not run; by their motion alone."""
        self.tracker.see(given.pixels, given.time)
        return Answer(detections=tuple(self.tracker.current(given.time)), counts=self.tracker.counts())

    def begin(self) -> None:
        """Forgets what it followed."""
        self.tracker = Tracker()


def _keeps_aspect_ratio(graph: Graph, layer: str | None) -> bool:
    """Whether a graph brings pictures to a size that follows from theirs, so that it takes them as they are."""
    names = [node_name(layer)] if layer else [node.name for node in graph if node.op in PLACEHOLDERS]
    return any(resize_nodes(graph, name) and graph_resizing(graph, name) is None for name in names)


def sizes_in(graph: Graph) -> SizesOf:
    """What gives the sizes of a graph's tensors: one inference, when the first is asked for, serves all."""
    known: list[Inferred | None] = []

    def sizes(tensor: str) -> tuple[int | None, ...] | None:
        if not known:
            try:
                known.append(infer(graph))
            except PocketgraphError:
                known.append(None)
        inferred = known[0]
        return None if inferred is None else inferred.shape(canonical(tensor)).dims

    return sizes


def class_counts(graph: Graph) -> set[int]:
    """How many classes a detector may tell apart, the scores from which its boxes are selected being with one for the
    background or without; empty where nothing in the graph says it, as of one score a box."""
    sizes = sizes_in(graph)
    known: set[int | None] = set()
    for node in graph:
        if node.op not in ops_with("box_selection") or len(node.data_inputs) < 2:
            continue
        boxes = sizes(node.data_inputs[0]) or (None,)
        of_scores = reachable(graph, [node_name(node.data_inputs[1])], data_only=True, missing_ok=True)
        for name in heads_before(graph, node):
            dims = sizes(name) if node_name(name) in of_scores else None
            if dims is not None:
                known.add(dims[-1] if len(dims) > 1 and dims[-1] not in boxes[:-1] else None)
    found = recognised(graph, sizes=sizes) if not known else None
    if found is not None and found.family.name == "ssd":
        dims = sizes(found.tensors["scores"])
        known.add(dims[-1] if dims else None)
    return set() if None in known else {count for size in known if size for count in (size, size - 1) if count}
