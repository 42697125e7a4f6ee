"""``pocketgraph label_image``: says what is in pictures."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli._data_options import picture_model_options
from pocketgraph.cli._output import echo
from pocketgraph.cli.options import flag_bool
from pocketgraph.errors import FormatError, PocketgraphError, UsageError

if TYPE_CHECKING:
    from pocketgraph.apps.label_image import Labeler, Prediction

DEFAULT_SELF_TEST = 653  # "military uniform" in the labels of the original's default model


@click.command("label_image")
@click.argument("pictures", nargs=-1)
@click.option("--image", multiple=True, help="A picture to label; may be repeated, and pictures may just be listed.")
@click.option("--graph", help="The frozen classifier, .pb or .pbtxt.")
@click.option("--labels", help="A file with one label a line; without it indexes are shown.")
@picture_model_options
@click.option("--output_layer", "--output-layer", help="The node that gives the scores.")
@click.option("--top", "-k", type=click.IntRange(1), default=5, show_default=True, help="How many labels to show.")
@click.option(
    "--style",
    type=click.Choice(["cpp", "python"]),
    default="cpp",
    help="Lines as the original C++ program writes them, 'label (index): score', or its Python twin, 'label score'.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@click.option("--feed", multiple=True, metavar="NAME=VALUE", help="Feed another input too, as in --feed keep_prob=1.")
@click.option(
    "--root_dir", "--root-dir", default="", help="Look for --image and --graph (not --labels) in this folder."
)
@flag_bool(
    "--self_test", "--self-test", help="Fail unless the best label is the one expected of Grace Hopper's picture."
)
def command(
    pictures: tuple[str, ...],
    image: tuple[str, ...],
    graph: str | None,
    labels: str | None,
    top: int,
    style: str,
    as_json: bool,
    root_dir: str,
    self_test: bool,
    **how: Any,
) -> None:
    """Say what is in PICTURES (JPEG, PNG, BMP, GIF or WebP; folders of them) with an image classifier.

    Sizes and layers are taken from the graph where they are not given; a preset such as mobilenet is found by its
    layer names. Scaling is (pixel - input_mean) / input_std, by default that of the preset, else 0 and 255 as in the
    original. The original wrote its results to the log on stderr; these lines go to stdout.

    \b
      pocketgraph label_image --graph=small.pb --labels=labels.txt photo.jpg
      pocketgraph label_image --graph=small.pb --preset=mobilenet --top=3 --json *.jpg
    """
    if how["preset"] == "list":
        list_presets()
        return
    paths = [file for path in (*image, *pictures) for file in files_of(rooted(root_dir, path))]
    if not graph:
        raise UsageError("no graph is given", hint="pass --graph=FROZEN.pb, and --labels=LABELS.txt for names")
    if not paths:
        raise UsageError("no picture is given", hint="pass --image=PICTURE, or list pictures at the end")
    labeler = make_labeler(rooted(root_dir, graph), labels, how)
    results: list[dict[str, Any]] = []
    failures: list[PocketgraphError] = []
    for number, path in enumerate(paths):
        try:
            predictions = label(labeler, path, top, self_test, warn=number == 0)
        except FormatError as error:
            if len(paths) == 1:
                raise
            echo(f"error: {error}", err=True)
            failures.append(error)
            continue
        results.append({"image": path, "predictions": [vars(p) for p in predictions]})
        if not as_json:
            if len(paths) > 1:
                echo(("\n" if len(results) > 1 else "") + f"{path}:")
            for prediction in predictions:
                echo(line(prediction, style))
    if as_json:
        echo(json.dumps(results, indent=2))
    if failures:
        raise PocketgraphError(f"{len(failures)} of {len(paths)} pictures could not be labelled")


def make_labeler(graph: str, labels: str | None, how: dict[str, Any]) -> Labeler:
    """The labeler that the flags describe."""
    from pocketgraph.apps.label_image import Labeler
    from pocketgraph.datasets.class_labels import read_labels
    from pocketgraph.formats import load

    names = read_labels(labels) if labels else []
    labeler = Labeler(
        load(graph),
        names,
        preset=how["preset"],
        input_layer=how["input_layer"],
        output_layer=how["output_layer"],
        width=how["width"],
        height=how["height"],
        mean=how["mean"],
        std=how["std"],
        feeds=dict(feed_value(text) for text in how["feed"]),
        threads=how["threads"],
    )
    if labeler.preset and not how["preset"]:
        found = labeler.preset
        echo(
            f"note: the layers are those of --preset={found.name}: input_mean {labeler.mean:g}, "
            f"input_std {labeler.std:g}",
            err=True,
        )
    return labeler


def feed_value(text: str) -> tuple[str, bool | int | float]:
    """``keep_prob=1`` taken apart; the value is true, false or a number."""
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


def label(labeler: Labeler, path: str, top: int, self_test: bool, *, warn: bool) -> list[Prediction]:
    """The best labels of one picture; with ``self_test`` fails where the very best is not the expected one."""
    from pocketgraph.apps.label_image import mismatch

    scores = labeler.scores(path)
    if warn and (warning := mismatch(labeler.labels, len(scores))):
        echo(f"warning: {warning}", err=True)
    predictions = labeler.best(scores, top)
    expected = labeler.preset.self_test if labeler.preset else None
    wanted = DEFAULT_SELF_TEST if expected is None else expected
    if self_test and predictions[0].index != wanted:
        raise PocketgraphError(
            f"Expected label #{wanted} but got #{predictions[0].index}", where=path, hint="Self-test failed!"
        )
    return predictions


def line(prediction: Prediction, style: str) -> str:
    """One line of results."""
    if style == "python":
        import numpy as np

        return f"{prediction.label} {np.float32(prediction.score)!s}"
    return str(prediction)


def files_of(path: str) -> list[str]:
    """The pictures of a folder and of those inside, in order; a file by itself."""
    from pocketgraph.datasets import file_lists

    if not os.path.isdir(path):
        if file_lists.is_recording(path):
            raise UsageError("this is a recording", where=path, hint="pocketgraph label_wav says what is heard in it")
        return [path]
    files, _ = file_lists.of_folder(path)
    return sorted(file for file in files if file_lists.is_picture(file))


def rooted(root: str, path: str) -> str:
    """The path inside ``root`` when there is one; as in the original a path that starts with / is inside too."""
    return os.path.join(root, path.lstrip("/")) if root else path


def list_presets() -> None:
    """Prints what each preset stands for."""
    from pocketgraph.datasets.presets import PRESETS

    for p in PRESETS.values():
        how = f"{p.size} x {p.size}, input_mean {p.mean:g}, input_std {p.std:g}, {p.input_layer} -> {p.output_layer}"
        echo(f"{p.name:20} {p.about}\n{'':20} {how}")
