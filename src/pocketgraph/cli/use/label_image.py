"""``pocketgraph label_image``: says what is in pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import feeds, json_option, picture_model_options, say, with_model
from pocketgraph.cli.shared.options import flag_bool, labels_option, signature_option
from pocketgraph.cli.shared.output import echo, echo_json, one_line
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.apps.label_image import Labeler, LabelledPicture, Prediction

LONGEST_LABEL = 200  # letters that are printed
DEFAULT_SELF_TEST = 653  # "military uniform" in the labels of the original's default model


@click.command("label_image")
@click.argument("pictures", nargs=-1)
@click.option("--image", multiple=True, help="A picture to label; may be repeated, and pictures may just be listed.")
@click.option("--graph", help="The frozen classifier, .pb or .pbtxt; it may be listed before the pictures, too.")
@labels_option("; default: one beside the graph, else indexes")
@picture_model_options
@click.option("--output_layer", help="The node that gives the scores.")
@click.option("--top", "-k", type=click.IntRange(1), default=5, show_default=True, help="How many labels to show.")
@click.option(
    "--style",
    type=click.Choice(["cpp", "python"]),
    default="cpp",
    help="Lines as the original C++ program writes them, 'label (index): score', or its Python twin, 'label score'.",
)
@json_option
@click.option("--feed", multiple=True, metavar="NAME=VALUE", help="Feed another input too, as in --feed keep_prob=1.")
@click.option("--root_dir", default="", help="Look for --image and --graph (not --labels) in this folder.")
@signature_option
@flag_bool("--self_test", help="Fail unless the best label is the one expected of Grace Hopper's picture.")
def command(
    pictures: Sequence[str],
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
      pocketgraph label_image --graph=small.pb --preset=mobilenet --top=3 --json photos/roses/*.jpg
    """
    if how["preset"] == "list":
        list_presets()
        return
    from pocketgraph.apps.label_image import labeler_of, labelled, pictures_at, without_names

    graph, pictures = with_model(graph, pictures, root_dir)
    named = (*image, *pictures)
    paths = [file for path in named for file in pictures_at(rooted(root_dir, path))]
    if not paths or "" in named:
        raise UsageError("no picture is given", hint="pass --image=PICTURE, or list pictures at the end")
    labeler = labeler_of(rooted(root_dir, graph), labels or (), notify=say, feeds=feeds(how.pop("feed")), **how)
    results: list[dict[str, Any]] = []
    failures = 0
    for found in labelled(labeler, paths, top, warn):
        if found.problem is not None:
            echo(f"error: {found.problem}", err=True)
            failures += 1
            continue
        if self_test:
            check_self_test(labeler, found)
        results.append({"image": found.picture, "predictions": [vars(p) for p in found.predictions]})
        if not as_json:
            if len(paths) > 1:
                echo(("\n" if len(results) > 1 else "") + f"{one_line(found.picture)}:")
            for prediction in found.predictions:
                echo(line(prediction, style))
    if as_json:
        echo_json(results)
    if results and not labeler.labels:
        say(without_names())
    if failures:
        raise PocketgraphError(f"{failures} of {counted(len(paths), 'picture')} could not be labelled")


def check_self_test(labeler: Labeler, found: LabelledPicture) -> None:
    """Fails where the very best label is not the expected one."""
    expected = labeler.preset.self_test if labeler.preset else None
    wanted = DEFAULT_SELF_TEST if expected is None else expected
    if found.predictions[0].index != wanted:
        raise PocketgraphError(
            f"Expected label #{wanted} but got #{found.predictions[0].index}", where=found.picture,
            hint="Self-test failed!",
        )  # fmt: skip


def warn(text: str) -> None:
    """Prints a warning."""
    echo(f"warning: {text}", err=True)


def line(prediction: Prediction, style: str) -> str:
    """One line of results, with a label of any length cut; --json has it whole."""
    if len(prediction.label) > LONGEST_LABEL:
        import dataclasses

        prediction = dataclasses.replace(prediction, label=f"{prediction.label[:LONGEST_LABEL]}…")
    if style == "python":
        import numpy as np

        return f"{prediction.label} {np.float32(prediction.score)!s}"
    return str(prediction)


def rooted(root: str, path: str) -> str:
    """The path inside ``root`` when there is one; as in the original a path that starts with / is inside too."""
    return os.path.join(root, path.lstrip("/")) if root else path


def list_presets() -> None:
    """Prints what each preset stands for."""
    from pocketgraph.datasets.presets import PRESETS

    for p in PRESETS.values():
        how = f"{p.size} x {p.size}, input_mean {p.mean:g}, input_std {p.std:g}, {p.input_layer} -> {p.output_layer}"
        echo(f"{p.name:20} {p.about}\n{'':20} {how}")
