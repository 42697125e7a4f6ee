"""How the pictures of a data set are fed: their values' scaling, and the size that a model takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pocketgraph.datasets.image_loading import Scale
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.picture_input import PictureInput, layout_of
from pocketgraph.errors import UsageError, command_on_model, option, quoted
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.graph_resizing import GraphResizing


@dataclass(frozen=True)
class PictureScaling:
    """How a picture's values from 0 to 255 are fed: ``(value - mean) / std``.

    Attributes:
        mean, std: one number, or one a channel; None where nothing was said, and pictures then use 0 and 255, arrays
            stay as they are.
        width, height: to resize to; None for what the model takes.
        resizing: how the model itself resizes pictures, where it does; None elsewhere.
    """

    mean: Scale | None = None
    std: Scale | None = None
    width: int | None = None
    height: int | None = None
    resizing: GraphResizing | None = None

    def __post_init__(self) -> None:
        if self.std == 0:
            raise UsageError(f"{option('input_std')} is 0; pixels are divided by it")


def is_plane(shape: tuple[int, ...]) -> bool:
    """Whether this is a picture of one or three channels, or a spectrogram like one, and no row of numbers."""
    if len(shape) != 4:
        return False
    return (shape[3] in (1, 3) and min(shape[1:3]) > 1) or (shape[1] in (1, 3) and min(shape[2:]) > 1)


def _others_bound(inputs: tuple[ModelInput, ...]) -> str:
    """What sets an input that takes no picture for good."""
    other = next((item for item in inputs if len(item.shape) < 4), inputs[-1])
    name = other.name.removesuffix(":0")
    value = "[" * len(other.shape) + "0" + "]" * len(other.shape)
    command = f"pocketgraph freeze_graph {{}} -o fixed.pb --bind {quoted(f'{name}={value}')}"
    return command_on_model(command, f"freeze_graph with {name}={value} bound")


def picture_input(inputs: tuple[ModelInput, ...], scaling: PictureScaling) -> PictureInput:
    """The model's only input as one that takes pictures.

    Raises:
        UsageError: it does not, or not with as many channels as are scaled.
    """
    found = _picture_input(inputs, scaling)
    found.check_scales(scaling.mean, scaling.std)
    return found


def _picture_input(inputs: tuple[ModelInput, ...], scaling: PictureScaling) -> PictureInput:
    if len(inputs) != 1:
        names = ", ".join(entry.name for entry in inputs)
        raise UsageError(
            f"the model takes {counted(len(inputs), 'input')} ({names}), not one picture",
            hint=f"give an .npz file with an array for each, or set the others for good: {_others_bound(inputs)}",
        )
    shape = inputs[0].shape
    dtype = FLOAT if inputs[0].dtype.kind == "f" else DType.of_numpy(inputs[0].dtype)
    if len(shape) in (3, 4):
        layout = layout_of(shape)
        height, width = (shape[layout.index(axis)] for axis in "HW")
        channels = shape[layout.index("C")] if "C" in layout else 1
        if channels in (1, 3):
            batch = shape[0] if layout[0] == "N" else 1
            return _checked(PictureInput(inputs[0].name, dtype, height, width, channels, layout, batch), scaling)
    if len(shape) == 2:
        for channels in (1, 3):
            side = round((shape[1] / channels) ** 0.5)
            if side > 1 and side * side * channels == shape[1]:
                return PictureInput(inputs[0].name, dtype, side, side, channels, "N*", shape[0])
    raise UsageError(f"the model takes {list(shape)}, which is no picture", hint="give an .npz file")


def _checked(picture: PictureInput, scaling: PictureScaling) -> PictureInput:
    """With the size that was asked for where the model leaves it open."""
    height, width = picture.height, picture.width
    if (height, width) == (1, 1):
        height, width = scaling.height or 0, scaling.width or 0
        if not height or not width:
            raise UsageError(
                "the model does not say how large its pictures are",
                hint=f"pass {option('input_width')} and {option('input_height')}",
            )
    elif scaling.height not in (None, height) or scaling.width not in (None, width):
        raise UsageError(f"the model takes pictures of {width} x {height} pixels", hint="leave the size out")
    return replace(picture, height=height, width=width, resizing=scaling.resizing if picture.layout != "NCHW" else None)
