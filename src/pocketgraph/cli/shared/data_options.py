"""What the commands that read data have in common: options for pictures, presets, and other feeds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from pocketgraph.budgets import usable_processors
from pocketgraph.cli.shared.options import names, together
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError

SIDE = click.IntRange(1, 1 << 14)  # pixels


def with_model(graph: str | None, listed: Sequence[str], root_dir: str = "") -> tuple[str, Sequence[str]]:
    """``--graph`` and what is listed; without that flag, the first that is listed is the model, as for other commands.

    Raises:
        UsageError: no model is given.
    """
    from pocketgraph.formats.detect import KERAS_SUFFIXES, MODEL_SUFFIXES, MODELS, identify, model_at

    if graph:
        return graph, listed
    first = model_at(os.path.join(root_dir, listed[0])) if listed else ""
    is_named = first.lower().endswith(MODEL_SUFFIXES + KERAS_SUFFIXES)  # if it is missing, that is said
    if is_named or (os.path.exists(first) and identify(first).kind in MODELS):
        return listed[0], listed[1:]
    raise UsageError("no graph is given", hint="pass --graph=FROZEN.pb, and --labels=LABELS.txt for names")


def known_preset(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A preset's name, if there is such a one, also where nothing is left for it to say."""
    from pocketgraph.datasets import presets

    return presets.get(value).name if value else None


_READING = (
    click.option(
        "--preset",
        callback=known_preset,
        help="Scaling and layers of a known family; `label_image --preset=list` shows them.",
    ),
    click.option("--input_mean", type=float, help="Subtract this from each pixel value of 0 to 255."),
    click.option("--input_std", type=float, help="Then divide it by this."),
    click.option("--input_width", type=SIDE, help="Width of pictures, where the model leaves it open."),
    click.option("--input_height", type=SIDE, help="Height of pictures, where the model leaves it open."),
    click.option(
        "--sample_rate",
        type=click.IntRange(1000, 192000),
        help="Samples a second that the model hears; other recordings are resampled; default: the graph's, or 16000.",
    ),
)
threads_option = click.option(
    "--threads", type=click.IntRange(1), default=usable_processors, help="Threads to compute with; default: all cores."
)
few_threads_option = click.option("--threads", type=click.IntRange(1), help="How many threads to compute with.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
few_labels_option = click.option(
    "--how_many_labels", "-k", type=click.IntRange(1), default=3, show_default=True, help="How many labels to show."
)
feed_option = click.option(
    "--feed", multiple=True, metavar="NAME=VALUE", help="Set another placeholder, as in keep_prob=1."
)
sample_options = together(*_READING, feed_option)
"""How samples are read."""
data_options = together(
    *_READING,
    click.option("--inputs", help="Tensors to feed, by commas; default: the placeholders."),
    click.option("--outputs", help="Tensors to compute, by commas; default: the likely outputs."),
    feed_option,
    threads_option,
)
"""How samples are read, and which tensors they go through."""
picture_model_options = together(
    click.option(
        "--preset", help="Size, scaling and layers of a known family; `label_image --preset=list` shows them."
    ),
    click.option("--input_layer", help="The node that takes the picture."),
    click.option("--input_width", "width", type=SIDE, help="Resize to this width; where the model leaves it open."),
    click.option("--input_height", "height", type=SIDE, help="Resize to this height; where the model leaves it open."),
    click.option("--input_mean", "mean", type=float, help="Subtract this from each pixel value of 0 to 255."),
    click.option("--input_std", "std", type=float, help="Then divide it by this."),
    few_threads_option,
)
"""Of a model that takes one picture, by the names that PictureModel's arguments have."""
rate_option = click.option(
    "--sample_rate", "rate", type=click.IntRange(1000, 192000),
    help="Samples a second that the model hears; default: what its graph tells, or 16,000.",
)  # fmt: skip
fixed_shape_option = click.option(
    "--input_shape", multiple=True, metavar="NAME:1,224,…",
    help="Fixes the sizes of an input; without NAME of the only one.",
)  # fmt: skip
shape_option = click.option(
    "--input_shape", multiple=True, metavar="NAME:1,100,…",
    help="The sizes of an input that the model leaves open; without NAME of the only one.",
)  # fmt: skip
cluster_option = click.option(
    "--cluster", "cluster_address", default="", metavar="local|ray://…",
    help="Share the work out: local, local:N workers, or ray://HOST:PORT (extra cluster).",
)  # fmt: skip


def reading_options(how: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``quantize`` and ``evaluate`` that these options say, by their names there."""
    plain = ("preset", "input_mean", "input_std", "input_width", "input_height", "sample_rate", "threads")
    listed = {"inputs": names(how["inputs"]), "outputs": names(how["outputs"]), "feeds": feeds(how["feed"])}
    return {**{name: how[name] for name in plain}, **listed}


def export_options(how: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``export`` and ``make_project`` that options say, by their names there; what nobody said is left
    to their defaults."""
    reading = reading_options(how)
    said: dict[str, Any] = {
        **{name: value for name, value in how.items() if name not in ("feed", "input_shape")},
        **{name: how[name] or None for name in ("labels", "calibration") if name in how},
        **reading, "signatures": names(how["signatures"]) or None, "inputs": reading["inputs"] or None,
        "outputs": reading["outputs"] or None, "values": reading["feeds"], "shapes": shapes_of(how["input_shape"]),
    }  # fmt: skip
    return {name: value for name, value in said.items() if value is not None and name != "feeds"}


def say(text: str) -> None:
    """Prints a note."""
    echo(f"note: {text}", err=True)


def feeds(texts: tuple[str, ...]) -> dict[str, bool | int | float]:
    """What other placeholders are set to, of ``keep_prob=1`` and the like."""
    return dict(_feed(text) for text in texts)


def _feed(text: str) -> tuple[str, bool | int | float]:
    name, _, value = text.rpartition("=")
    if name and value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            if name:
                return name, kind(value)
        except ValueError:
            continue
    raise UsageError(f"--feed '{text}' is not NAME=VALUE with a number, true or false")


def shapes_of(texts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Sizes by input name, "" for the only one."""
    found = {}
    for text in texts:
        name, _, sizes = text.rpartition(":")
        try:
            found[name] = tuple(int(size) for size in sizes.split(",") if size)
            if any(size < 0 for size in found[name]):
                raise ValueError
        except ValueError:
            raise UsageError(f"--input_shape '{text}' is not NAME:1,224,224,3 or the like") from None
    return found
