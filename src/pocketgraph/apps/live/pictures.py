"""Pictures made of pictures: styles, larger and sharper ones, segmentation; and skeletons of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.live.answers import Answer, Frame, Setting, Settings, timed
from pocketgraph.apps.live.geometry import resized_nearest
from pocketgraph.apps.live.pose_decoding import MAPS, people
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.datasets.class_labels import class_name
from pocketgraph.datasets.image_loading import Scale
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

SIZES = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Sides of the picture that the original Stylize application steps through."""
STYLES = "style_num"
OUTSIDE = 3.0
"""A float picture with a larger value than this holds pixels from 0 to 255."""


class PictureApp(Settings):
    """A model whose output is a picture, beside the frame that went in.

    Args:
        graph: takes a picture.
        output: the tensor that holds what comes out: [.., height, width, channels] or [.., channels, height, width].
        how: as in PictureModel.
    """

    kind = "image"

    def __init__(self, graph: Graph, output: str, **how: Any) -> None:
        self.output, self.how, self.graph = output, how, graph
        self.model = PictureModel(graph, [output], fallback=256, **how)

    def __call__(self, given: Frame) -> Answer:
        """The picture that the model makes of a frame."""
        (found,), took = timed(self.model.of_pixels, given.pixels)
        return Answer(picture=as_pixels(found, self.model.mean, self.model.std), milliseconds=took)


def as_pixels(found: Array, mean: Scale, std: Scale) -> Array:
    """An output as a picture.

    Args:
        found: one picture: uint8 as it is; float from 0 to 1, from -1 to 1, or in the input's own scale.
        mean, std: of the input: a value v stands for the pixel ``v * std + mean``.

    Returns:
        uint8 [height, width, 3].

    Raises:
        RunError: it is no picture.
    """
    planes = found.reshape(found.shape[-3:]) if found.ndim > 3 else found
    if planes.ndim == 3 and planes.shape[0] in (1, 3) and planes.shape[2] not in (1, 3):
        planes = planes.transpose(1, 2, 0)
    if planes.ndim == 2:
        planes = planes[..., np.newaxis]
    if planes.ndim != 3 or planes.shape[2] not in (1, 3) or not planes.size:
        raise RunError(f"the output is {found.dtype}{list(found.shape)}, which is no picture")
    if planes.dtype != np.uint8:
        values = np.nan_to_num(planes.astype(np.float32))
        least, most = float(values.min()), float(values.max())
        if most <= OUTSIDE:  # else they are pixels already
            own = np.any(mean) and not (least >= -0.02 and most <= 1.02)
            values = values * _of_channels(std, planes) + _of_channels(mean, planes) if own else values * 255
        planes = np.clip(values, 0, 255).astype(np.uint8)  # cut, not rounded, as the original does
    return np.repeat(planes, 3, axis=2) if planes.shape[2] == 1 else planes


def _of_channels(scale: Scale, planes: Array) -> Array:
    """One number for each of a picture's channels, or one for all."""
    numbers = np.array(scale, np.float32)
    return numbers if numbers.shape in ((), planes.shape[2:]) else numbers.mean()


class StylizeApp(PictureApp):
    """Many styles in one model, mixed by weights that sum to 1.

    ``weights`` takes one number a style; the original application's sliders call ``slide``.
    """

    kind = "stylize"

    def __init__(self, graph: Graph, output: str, labels: Sequence[str] = (), **how: Any) -> None:
        styles = graph[STYLES].shape()
        count = styles.dims[-1] if styles is not None and styles.dims else len(labels) or 26
        how = {**how, "mean": how.get("mean") or 0.0, "std": how.get("std") or 255.0}
        how["feeds"] = {**(how.get("feeds") or {}), STYLES: np.zeros(count or 26, np.float32)}
        super().__init__(graph, output, **how)
        self.weights = np.zeros(count or 26)
        self.weights[0] = 1.0
        self.last = 1 % len(self.weights)
        self.open = self.model.input.guessed
        self.size = self.model.input.width
        names = list(labels) or [f"style {i}" for i in range(len(self.weights))]
        self.names = names[: len(self.weights)] + [f"style {i}" for i in range(len(names), len(self.weights))]

    def settings(self) -> list[Setting]:
        """A slider a style, and the size where the model leaves it open."""
        found = [Setting(f"style{i}", name, float(self.weights[i])) for i, name in enumerate(self.names)]
        if self.open:
            found.insert(0, Setting("size", "Resolution", self.size, choices=SIZES))
        return found

    def change(self, name: str, value: Any) -> None:
        """Moves a slider, or changes the size.

        Raises:
            UsageError: there is none of this name, or it does not take this value.
        """
        if name == "size" and self.open:
            if value not in SIZES:
                raise UsageError(f"'size' is one of {', '.join(map(str, SIZES))}, not {value!r}")
            self.size = int(value)
            self.model = PictureModel(self.graph, [self.output], **{**self.how, "width": value, "height": value})
            return
        number = name.removeprefix("style")
        if not number.isdecimal() or int(number) >= len(self.weights):
            raise UsageError(f"there is no setting '{name}'", hint=f"style0 to style{len(self.weights) - 1}")
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
            raise UsageError(f"'{name}' is a number from 0 to 1, not {value!r}")
        self.weights, self.last = slid(self.weights, int(number), float(value), self.last)

    def __call__(self, given: Frame) -> Answer:
        """A frame in the mixture of styles."""
        total = self.weights.sum()
        shares = self.weights / total if total > 0 else np.full(len(self.weights), 1 / len(self.weights))
        (found,), took = timed(self.model.of_pixels, given.pixels, {f"{STYLES}:0": shares.astype(np.float32)})
        return Answer(picture=as_pixels(found, self.model.mean, self.model.std), milliseconds=took)


def slid(weights: Array, moved: int, value: float, last: int) -> tuple[Array, int]:
    """Weights of styles after one slider was moved, as the original Stylize application keeps their sum at 1.

    The others shrink together, and what falls to 0.01 becomes 0; where they all are 0, the one that was the largest
    before takes the rest.

    Returns:
        the weights, and which of the others is now the largest.
    """
    found = weights.astype(np.float64).copy()
    found[moved] = value
    others = [i for i in range(len(found)) if i != moved]
    total = found[others].sum()
    if total > 0:
        found[others] *= (1 - value) / total
        found[others] = np.where(found[others] <= 0.01, 0.0, found[others])
        last = max(others, key=lambda i: weights[i])
    elif others:
        if last == moved:
            last = (moved + 1) % len(found)
        found[last] = 1 - value
    return found, last


PALETTE = np.array(
    [
        (0, 0, 0), (128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153), (153, 153, 153),
        (250, 170, 30), (220, 220, 0), (107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60), (255, 0, 0),
        (0, 0, 142), (0, 0, 70), (0, 60, 100), (0, 80, 100), (0, 0, 230), (119, 11, 32),
    ],
    np.uint8,
)  # fmt: skip
"""Colours of classes, those of Cityscapes; further classes begin again from the second."""


class SegmentationApp(PictureApp):
    """A class for each pixel, drawn over the frame.

    The output has a score for each class at each place, or the class itself.
    """

    kind = "image"
    table = (Setting("cover", "Colour over the picture", 0.5),)

    def __init__(self, graph: Graph, output: str, labels: Sequence[str] = (), **how: Any) -> None:
        super().__init__(graph, output, **how)
        self.labels, self.cover = tuple(labels), 0.5

    def __call__(self, given: Frame) -> Answer:
        """The frame with the classes' colours, and each class's share of it."""
        (found,), took = timed(self.model.of_pixels, given.pixels)
        is_plane = sum(size > 1 for size in found.shape) == 2  # the best class of each place
        scores = found.squeeze() if is_plane else found.reshape(found.shape[-3:]) if found.ndim > 3 else found
        if scores.ndim not in (2, 3) or min(scores.shape[:2]) < 2:
            raise RunError(
                f"the output is {found.dtype}{list(found.shape)}, neither a picture nor classes of its places"
            )
        classes = (
            scores.argmax(axis=-1) if scores.ndim == 3 and scores.shape[-1] > 1 else scores.reshape(scores.shape[:2])
        )
        classes = classes.astype(np.int64)
        places = np.where(classes < len(PALETTE), classes, 1 + (classes - 1) % (len(PALETTE) - 1))
        colours = PALETTE[places]
        under = resized_nearest(given.pixels, *classes.shape)
        mixed = under * (1 - self.cover) + colours * self.cover
        shares = np.bincount(classes.reshape(-1).clip(0)) / classes.size
        best = sorted(np.flatnonzero(shares >= 0.01).tolist(), key=lambda i: -shares[i])
        named = tuple((class_name(self.labels, i), float(shares[i])) for i in best)
        return Answer(classes=named, picture=mixed.astype(np.uint8), milliseconds=took)


class PoseApp(PictureApp):
    """Skeletons of people out of OpenPose's maps of parts and of limbs."""

    kind = "pose"
    table = (Setting("threshold", "Show parts over", 0.1),)

    def __init__(self, graph: Graph, output: str, **how: Any) -> None:
        how = {**how, "mean": 127.5 if how.get("mean") is None else how["mean"], "std": how.get("std") or 127.5}
        super().__init__(graph, output, **how)
        self.threshold = 0.1

    def __call__(self, given: Frame) -> Answer:
        """Bones as lines, parts as points of one detection a person."""
        (found,), took = timed(self.model.of_pixels, given.pixels)
        if found.ndim < 3 or found.shape[-1] != MAPS:
            raise RunError(f"the output is {found.dtype}{list(found.shape)}, not OpenPose's {MAPS} maps")
        bodies, bones = people(found.reshape(found.shape[-3:]), float(self.threshold))
        return Answer(detections=tuple(bodies), lines=tuple(bones), counts={"now": len(bodies)}, milliseconds=took)
