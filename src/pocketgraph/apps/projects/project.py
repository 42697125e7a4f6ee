"""What every kind of project is made of: a model, what goes in and comes out, and names that languages take."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgraph.apps.live.application_choice import APPLICATIONS
from pocketgraph.apps.projects.app_names import AppName
from pocketgraph.apps.projects.sound import SoundParameters
from pocketgraph.errors import option
from pocketgraph.exporting.export_verification import DifferenceError
from pocketgraph.exporting.model import ExportModel, Port
from pocketgraph.exporting.targets import TARGETS
from pocketgraph.exporting.tool import export_model
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import mostly_not_finite

TOLERANCE, CODED_TOLERANCE = 1e-3, 0.05
"""The largest difference on a device, as a share of the output's peak: of floats, and of models in eight bits."""


ASSUMED = "; nothing told how pixels were scaled in training, this is the usual way"


@dataclass(frozen=True)
class PictureFacts:
    """How a picture becomes the first input.

    Attributes:
        height, width, channels: of the input.
        mean, std: of values from 0 to 255, one number a channel.
        is_assumed: whether nothing tells them, so that they are the usual ones.
    """

    height: int
    width: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    is_assumed: bool = False


@dataclass
class Project:
    """A project in the making.

    Attributes:
        kind: the name of its kind.
        engine: the target that it is built on.
        name: of the app.
        model: what it runs.
        source: the path of a finished .tflite file, which goes in as it is; "" where the model is to be exported.
        picture: how pictures go in; None where the first input is none.
        gives_scores: whether the first output is a score for each class, or one share for the second of two.
        labels: of the classes; empty where nobody gave them.
        golden: one set of inputs and the outputs that must come of them, by public name.
        tolerance: the difference from these that is allowed, as a share of the output's peak.
        by_mean: whether that is the mean difference, as of a model that rounds to codes on its way; else the largest.
        front: what has to be computed in front of the model on the device, in words; "" for nothing.
        sound: what goes in of a recording, as numbers: samples, a spectrogram or its Mfcc; None for anything else.
        notes: what a person should know.
        boxes: a file with a detector's priors or anchors; "" for none.
        app: what a web page uses the model for, one of APPLICATIONS; "" for what it is for, which its writer finds out.
    """

    kind: str
    engine: str
    name: AppName
    model: ExportModel
    source: str
    picture: PictureFacts | None
    gives_scores: bool
    labels: tuple[str, ...]
    golden: tuple[Mapping[str, Array], Mapping[str, Array]]
    tolerance: float
    by_mean: bool
    front: str
    sound: SoundParameters | None
    notes: list[str]
    boxes: str = ""
    app: str = ""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """What goes in."""
        return self.model.main.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """What comes out."""
        return self.model.main.outputs

    @property
    def has_camera(self) -> bool:
        """Whether a camera can feed it: it is a classifier of pictures, or a page that shows anything of them."""
        if self.app:
            return self.app not in ("speech", "benchmark")
        return self.picture is not None and self.gives_scores

    @property
    def shown(self) -> str:
        """What a person gets, in words."""
        if self.app:
            return f"a page that shows {APPLICATIONS[self.app]}"
        if self.kind == "pi" and self.sound is not None:
            return "a program that takes recordings"
        return "a camera app" if self.has_camera else "views that run and time the model"

    def place_model(self, path: str, *, labelled: bool = True, **options: Any) -> None:
        """Puts the model's file or folder where the project wants it: exported and checked, or copied.

        Args:
            path: where.
            labelled: whether it gets the labels.
            options: of the target.

        Raises:
            DifferenceError: it computes something else than the graph.
        """
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if self.source:
            shutil.copyfile(self.source, path)
            return
        model = self.model if labelled else replace(self.model, labels=())
        try:
            made = export_model(model, path, TARGETS[self.engine], options, is_timed=False)
        except DifferenceError as error:
            if self.engine != "tflite" or option("tolerance") not in error.hint:
                raise
            hint = f"{error.hint} of the command export, whose .tflite file app takes"
            raise DifferenceError(error.what, where=error.where, hint=hint) from error
        self.notes += [note for note in made.notes if note not in self.notes]

    def golden_files(self) -> dict[str, bytes]:
        """Golden arrays as they lie in memory, little-endian: ``input_0.bin``, …, ``output_0.bin``, …."""
        return {f"{kind}_{place}.bin": little_endian(array) for kind, place, _, array in self.golden_arrays()}

    def golden_arrays(self) -> Iterator[tuple[str, int, Port, Array]]:
        """``input`` or ``output``, its place, the port, and the array."""
        for kind, ports, arrays in (("input", self.inputs, self.golden[0]), ("output", self.outputs, self.golden[1])):
            for place, port in enumerate(ports):
                yield kind, place, port, arrays[port.name]

    def label_lines(self) -> str:
        """Labels, one a line; empty where there are none."""
        return "".join(f"{label}\n" for label in self.labels)


def little_endian(array: Array) -> bytes:
    """The elements as they lie in the memory of a device."""
    plain = np.ascontiguousarray(array)
    return plain.astype(plain.dtype.newbyteorder("<")).tobytes()


def about(project: Project) -> str:
    """What goes into the model and what comes out, in a few lines."""
    lines = [f"- in: {_said(port)}" for port in project.inputs]
    if project.picture is not None:
        mean, std = (sorted(set(part)) for part in (project.picture.mean, project.picture.std))
        texts = [" / ".join(f"{number:g}" for number in part) for part in (mean, std)]
        lines[0] += f", a picture: (value from 0 to 255 - {texts[0]}) / {texts[1]}"
        lines[0] += ASSUMED if project.picture.is_assumed else ""
    lines += [f"- out: {_said(port)}" for port in project.outputs]
    lines += [f"- {note}" for note in unproven(project.golden[1])]
    if project.gives_scores:
        is_one = math.prod(project.outputs[0].sizes or ()) == 1
        lines[len(project.inputs)] += ", the share of the second class" if is_one else ", a score for each class"
    return "\n".join(lines)


def unproven(golden: Mapping[str, Array]) -> list[str]:
    """Which golden outputs prove nothing of what gives the same, a sentence each."""
    found = {name: mostly_not_finite([array]) for name, array in golden.items()}
    return [
        f"not proven: the golden result '{name}' {why}, so the app's test says nothing of it; give real data with "
        f"{option('data', 'samples')}"
        for name, why in found.items() if why
    ]  # fmt: skip


def _said(port: Port) -> str:
    shape = ", ".join(map(str, port.sizes or ()))
    return f"`{port.name}` {port.dtype.numpy.name} [{shape}]"


def front(project: Project) -> str:
    """A chapter on what is computed in front of the model; "" where nothing is."""
    return f"\n## In front of the model\n\n{project.front}\n" if project.front else ""
