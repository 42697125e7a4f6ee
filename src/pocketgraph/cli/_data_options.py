"""What the commands that read data have in common: options for pictures, presets, and other feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pocketgraph.errors import UsageError
from pocketgraph.graph import canonical

if TYPE_CHECKING:
    from pocketgraph.datasets.dataset import Dataset
    from pocketgraph.datasets.picture_scaling import PictureScaling
    from pocketgraph.graph import Graph

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = (
    click.option("--preset", help="Scaling and layers of a known family; `label_image --preset=list` shows them."),
    click.option("--input_mean", "--input-mean", type=float, help="Subtract this from each pixel value of 0 to 255."),
    click.option("--input_std", "--input-std", type=float, help="Then divide by this."),
    click.option(
        "--input_width", "--input-width", type=click.IntRange(1, 1 << 14), help="Where the model leaves it open."
    ),
    click.option("--input_height", "--input-height", type=click.IntRange(1, 1 << 14), help="Likewise."),
    click.option(
        "--sample_rate",
        "--sample-rate",
        type=click.IntRange(1000, 192000),
        help="Samples a second that the model hears; other recordings are resampled; default: the graph's, or 16000.",
    ),
    click.option("--inputs", help="Tensors to feed, by commas; default: the placeholders."),
    click.option("--outputs", help="Tensors to compute, by commas; default: the likely outputs."),
    click.option("--feed", multiple=True, metavar="NAME=VALUE", help="Set another placeholder, as in keep_prob=1."),
    click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads to compute with."),
)


def data_options(function: F) -> F:
    """Adds the options."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def scaling(how: dict[str, Any], graph: Graph | None) -> PictureScaling:
    """How pictures are fed: as the flags say, else as the preset that is named or that the graph's layers show."""
    from pocketgraph.datasets import presets
    from pocketgraph.datasets.picture_scaling import PictureScaling

    named = presets.get(how["preset"]) if how["preset"] else None
    chosen = named or (presets.recognise(graph) if graph is not None else None)
    mean, std = how["input_mean"], how["input_std"]
    if chosen is not None and (mean is None or std is None):
        mean = chosen.mean if mean is None else mean
        std = chosen.std if std is None else std
        if named is None:
            click.echo(
                f"note: the layers are those of --preset={chosen.name}: input_mean {mean:g}, input_std {std:g}",
                err=True,
            )
    return PictureScaling(mean, std, how["input_width"], how["input_height"])


def say_of(data: Dataset) -> None:
    """Notes what is easily overlooked about the data."""
    if data.is_unscaled:
        click.echo(
            f"note: {data.place}: values from 0 to 255 are fed as they are; --input_mean and --input_std scale them",
            err=True,
        )
    others = data.other_rates()
    if others:
        rates = " or ".join(f"{rate:,}" for rate in sorted(others))
        click.echo(
            f"note: {data.place}: {others.total()} of {len(data)} recordings have {rates} samples a second and are "
            f"resampled to {data.rate:,}; --sample_rate tells another rate of the model",
            err=True,
        )


def sized(
    graph: Graph,
    shapes: Mapping[str, tuple[int, ...]],
    place: str | None,
    picture: PictureScaling,
    others: Sequence[tuple[int, ...]] = (),
) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs, sizes that the graph leaves open being those of the samples.

    Arrays have sizes. Pictures are resized to what the flags say, else to what another model takes, which stands beside
    this one, else to what ``shapes`` has.

    Args:
        graph: it has the inputs, any of its tensors.
        shapes: of the inputs, some size where it is open.
        place: where the samples are.
        picture: how pictures are fed.
        others: the shapes of the only inputs of the models beside it.
    """
    from pocketgraph.datasets.named_arrays import sized_by_arrays
    from pocketgraph.kernels.shapes import infer

    inferred = infer(graph)
    declared = {name: inferred.shape(canonical(name)).dims or () for name in shapes}
    left = {
        name: [axis for axis, size in enumerate(sizes) if axis and size is None] for name, sizes in declared.items()
    }
    if place is None or not any(left.values()):
        return dict(shapes)
    if place.endswith((".npz", ".npy")):
        return sized_by_arrays(place, shapes, left)
    if len(shapes) != 1:
        return dict(shapes)
    ((name, shape),) = shapes.items()
    given = dict(zip(left[name], (picture.height, picture.width), strict=False))
    known = next((other for other in others if len(other) == len(shape)), shape)
    result = tuple(given.get(at) or known[at] if at in left[name] else size for at, size in enumerate(shape))
    if known is shape and len(left[name]) == 2 and not any(given.values()) and min(result[at] for at in left[name]) > 1:
        click.echo(
            f"note: the model leaves the size of its pictures open; they are resized to {result[left[name][1]]} x "
            f"{result[left[name][0]]} (--input_width, --input_height)",
            err=True,
        )
    return {name: result}


def check_feeds(texts: tuple[str, ...], graphs: Sequence[Graph]) -> None:
    """Refuses values for what no graph has.

    Raises:
        UsageError: there is such a value.
    """
    from pocketgraph.errors import did_you_mean
    from pocketgraph.graph import node_name

    for name in feeds(texts):
        if graphs and not any(node_name(name) in graph.nodes for graph in graphs):
            raise UsageError(
                f"--feed: the graph has no node '{name}'", hint=did_you_mean(name, (node.name for node in graphs[0]))
            )


def feeds(texts: tuple[str, ...]) -> dict[str, bool | int | float]:
    """What other placeholders are set to."""
    found: dict[str, bool | int | float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name] = (
                value == "true" if value in ("true", "false") else float(value) if "." in value else int(value)
            )
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--feed '{text}' is not NAME=VALUE with a number, true or false")
    return found
