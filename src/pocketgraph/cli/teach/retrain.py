"""``pocketgraph retrain``: a classifier of one's own classes, out of photos in folders."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import cluster_option, picture_model_options, say
from pocketgraph.cli.shared.options import default_place, page_place, seed_option, together
from pocketgraph.cli.shared.output import CALLED, echo
from pocketgraph.errors import GOES_ON, FormatError, PocketgraphError, UsageError, option
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.apps.retraining.fine_tuning import Tuning
    from pocketgraph.apps.retraining.tool import Retrained

IGNORED_TEXTS = "intermediate_output_graphs_dir", "checkpoint_path", "logging_verbosity"
IGNORED = ("test_batch_size", "validation_batch_size", "eval_step_interval", "intermediate_store_frequency",
           *IGNORED_TEXTS)  # fmt: skip
"""Flags of the original's gradient descent and what that writes; the layer is solved to convergence here."""
DOWNLOADED = "frozen_graph.pb", "quantized_graph.pb"
"""What the files of MobileNets are called that the original downloaded."""
BASE = "http://download.tensorflow.org/models/mobilenet_v1_1.0_224_frozen.tgz"
"""What the original downloaded where nobody named a model."""
DEFAULT = "retrained_graph.pb"
DISTORTIONS = ("mirror", "random_crop", "random_scale", "random_brightness", "phone")
NAMED = 5  # files that were left out
TUNING = ("learning_rate", "train_batch_size")
"""Likewise, but for --train_layers, which is trained by gradient descent."""


@click.command("retrain")
@click.argument("base", required=False)
@click.option(
    "--image_dir",
    "--data",
    "image_dir",
    help="A folder with one folder of photos, or .wav files, a class; or a table (.csv, .tsv, .npz) with classes.",
)
@click.option(
    "--model",
    "--architecture",
    "--tfhub_module",
    "model",
    help="The base: any classifier of pictures, recordings or rows, a frozen graph or a SavedModel.",
)
@click.option("--output_graph", "-o", default="",
              help=f"The new model: a frozen graph; default: {DEFAULT}, where that name is free.")  # fmt: skip
@click.option("--output_labels",
              help="Where the names of the classes go; default: beside the graph, labels.txt if free.")  # fmt: skip
@click.option("--saved_model_dir", default="", metavar="DIR", help="Write a SavedModel too, to a new directory.")
@click.option("--report", metavar="FILE.html", help="The page about it; default: beside the graph, under its name.")
@click.option("--summaries_dir", help="Where figures.json and curves for TensorBoard go.")
@click.option("--how_many_training_steps", type=click.IntRange(1),
              help="Steps of --train_layers (1500), or iterations of the solver (500), at most.")  # fmt: skip
@click.option("--train_layers", type=click.IntRange(0), default=0, show_default=True,
              help="Train so many of the base's last layers too, on distorted photos.")  # fmt: skip
@click.option(
    "--testing_percentage", "testing", type=click.FloatRange(0, 100), default=10, show_default=True,
    help="How many per cent are kept aside to test the finished model.",
)  # fmt: skip
@click.option("--validation_percentage", "validation", type=click.FloatRange(0, 100), default=10,
              show_default=True, help="How many per cent are kept aside to choose settings by.")  # fmt: skip
@click.option("--print_misclassified_test_images", is_flag=True,
              help="List the photos of the test that are named wrongly.")  # fmt: skip
@click.option("--bottleneck_dir", default="", help="Keep features there, so that the next time is quick.")
@click.option("--bottleneck_tensor", "bottleneck", help="What the new layer takes; default: as the old one did.")
@click.option("--final_tensor_name", "final", default="final_result", show_default=True,
              help="What the output is called in the new model.")  # fmt: skip
@click.option("--flip_left_right/--no_flip_left_right", "mirror", default=True,
              help="Train on mirrored photos too.", show_default=True)  # fmt: skip
@click.option("--random_crop", type=click.FloatRange(0, 100), default=0, show_default=True,
              help="Cut up to so many per cent off the margins of photos that train.")  # fmt: skip
@click.option("--random_scale", type=click.FloatRange(0, 400), default=0, show_default=True,
              help="Make them larger by up to so many per cent.")  # fmt: skip
@click.option("--random_brightness", type=click.FloatRange(0, 100), default=0,
              show_default=True, help="Make them brighter or darker by up to so many per cent.")  # fmt: skip
@click.option("--phone_distortions", "phone", is_flag=True,
              help="Distort them as phones do: frame, lens, exposure, blur, noise, JPEG; default with --train_layers.",
)  # fmt: skip
@click.option("--class_weights", is_flag=True, help="Small classes count as much as large ones.")
@click.option("--sample_rate", type=click.IntRange(1000, 192000),
              help="Samples a second that a base of recordings hears; default: the graph's, or 16000.")  # fmt: skip
@seed_option("Of every choice by chance")
@cluster_option
@picture_model_options
@click.option("--learning_rate", type=click.FloatRange(0, min_open=True),
              help="Of --train_layers, at its highest; default: 0.001.")  # fmt: skip
@click.option("--train_batch_size", type=click.IntRange(1), help="Of --train_layers; default: 32.")
@together(*(click.option(f"--{name}", type=str if name in IGNORED_TEXTS else int, hidden=True) for name in IGNORED))
@click.option("--model_dir", metavar="DIR", default="", help="Where the base lies that --architecture names.")
def command(
    base: str | None,
    image_dir: str | None,
    model: str | None,
    output_graph: str,
    output_labels: str | None,
    saved_model_dir: str,
    report: str | None,
    summaries_dir: str | None,
    how_many_training_steps: int | None,
    train_layers: int,
    print_misclassified_test_images: bool,
    bottleneck_dir: str,
    cluster_address: str,
    model_dir: str,
    **how: Any,
) -> None:
    """Teach the classifier BASE the classes of --image_dir: its last layer is made anew.

    Which photos train, validate and test follows from their names, as in the original: a photo never changes sides, and
    photos whose names differ only behind _nohash_ stay together. The layer is solved to convergence; with
    --train_layers the base's last ones are then trained on with it. A call that was interrupted goes on where it was
    when it is made again. A table needs no BASE: its columns are made alike, and the layer takes them.

    \b
      pocketgraph retrain mobilenet.pb --image_dir=flowers/ -o flowers.pb
      pocketgraph label_image --graph=flowers.pb --labels=labels.txt photo.jpg
    """
    from pocketgraph.apps.retraining.distortions import Distortions
    from pocketgraph.apps.retraining.retraining_page import as_html, next_commands
    from pocketgraph.apps.retraining.table_features import is_table
    from pocketgraph.apps.retraining.tool import ITERATIONS, retrain
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.cluster import connected
    from pocketgraph.formats import save
    from pocketgraph.formats.files import check_folder, check_place, write_atomically
    from pocketgraph.freezing.ready_models import read_model

    base = _in_folder(base or model, model_dir)
    image_dir = _checked_folder(base, image_dir)
    given = {name: how.pop(name) for name in (*TUNING, *IGNORED)}
    tuning = _tuning(train_layers, how_many_training_steps, given)
    distortions = Distortions(*(how.pop(name) for name in DISTORTIONS))
    if not output_graph:
        output_graph = DEFAULT if os.path.isdir(_unfinished(DEFAULT)) else default_place(DEFAULT)
    beside = DEFAULT if output_graph in CALLED else output_graph  # a pipe has no folder
    labels_file = output_labels or os.path.join(os.path.dirname(beside), "labels.txt")
    page = page_place(report or f"{os.path.splitext(beside)[0]}.html")
    for place in (output_graph, labels_file):
        check_place(place, base)
    for folder in filter(None, (summaries_dir, bottleneck_dir, saved_model_dir)):
        check_folder(folder)
    _check_saved_model_place(saved_model_dir, (output_graph, labels_file, page, summaries_dir or ""))
    unfinished = _unfinished(output_graph)
    if os.path.isdir(unfinished):
        echo("note: going on from an interrupted call", err=True)
    with connected(cluster_address), progress_bar() as tell, _removed_on_errors(unfinished):
        made = retrain(
            read_model(base, notify=say) if base else None,
            image_dir,
            bottleneck_dir=bottleneck_dir or unfinished,
            distortions=distortions,
            tuning=tuning,
            steps=how_many_training_steps or ITERATIONS,
            progress=tell,
            notify=say,
            **how,
        )
    if not (output_labels or os.path.exists(beside)):  # of a model that is made again they are its own
        labels_file = _free_labels_file(labels_file, os.path.splitext(beside)[0], made.labels)
    save(made.graph, output_graph)
    commands = next_commands(made, beside, labels_file, image_dir)
    html = as_html(made, os.path.basename(beside), os.path.getsize(output_graph), commands)
    write_atomically(page, html.encode("utf-8", "backslashreplace"))
    write_atomically(labels_file, "".join(f"{label}\n" for label in made.labels).encode())
    if summaries_dir:
        _write_summaries(made, summaries_dir)
    if saved_model_dir:
        _write_saved_model(made, saved_model_dir)
    shutil.rmtree(unfinished, ignore_errors=True)
    kind = "rows" if is_table(image_dir) else "photos" if made.scaling else "recordings"
    _print_figures(made, kind)
    _print_notes(made, kind, print_misclassified_test_images)
    written = [output_graph, labels_file, page, *([saved_model_dir] if saved_model_dir else [])]
    echo(f"{', '.join(written)}; next:")
    for command_line in commands:
        echo(f"  {command_line}")


def _unfinished(graph: str) -> str:
    """The folder that a call which was interrupted goes on from."""
    return f"{graph}.unfinished"


def _in_folder(base: str | None, folder: str) -> str | None:
    """The base's file: as it is named, or where the original put networks that it downloaded: Inception v3's into the
    folder itself, that of ``mobilenet_0.50_224`` into a folder ``mobilenet_v1_0.50_224`` there."""
    if not folder or (base and os.path.exists(base)):
        return base
    name = base or "inception_v3"  # as in the original
    versioned = re.sub(r"^mobilenet_(?=\d)", "mobilenet_v1_", name)
    files = ["classify_image_graph_def.pb"] if name == "inception_v3" else []
    files += [os.path.join(part, file) for part in (name, versioned) for file in DOWNLOADED]
    places = [os.path.join(folder, file) for file in (name, *files)]
    return next((place for place in places if os.path.isfile(place)), base)


def _checked_folder(base: str | None, folder: str | None) -> str:
    """The folder of examples, or the table.

    Raises:
        UsageError: there is none, or no base for it.
    """
    from pocketgraph.apps.retraining.table_features import is_table

    if not base and not (folder and is_table(folder)):
        raise UsageError(
            "no base model is given", hint=f"give a trained graph behind retrain, such as the .pb in {BASE}"
        )
    if base and not os.path.exists(base):
        raise UsageError(f"there is no model '{base}'", hint=_by_hand(base))
    if not folder:
        raise UsageError(
            "Must set flag --image_dir.", hint="a folder with one folder of photos a class; or --data=TABLE.csv"
        )
    return folder


def _by_hand(base: str) -> str:
    """What to do where a base is no file: what is downloaded by hand, and what to pass then."""
    if not re.match(r"https?://", base):
        return "the base is a file; no network is downloaded any more: unpack its archive, and name the .pb inside"
    address = base if base.endswith((".tgz", ".tar.gz", ".zip", ".pb")) else f"{base}?tf-hub-format=compressed"
    return (
        f"no network is downloaded here: fetch {address} with a browser or curl -L, unpack it into a folder of its "
        "own, and pass --model=FOLDER, which holds saved_model.pb, or the .pb file in it"
    )


def _free_labels_file(usual: str, stem: str, labels: Iterable[str]) -> str:
    """Where the names of the classes go that nobody named a file for: not over those of another model."""
    from pocketgraph.datasets.class_labels import read_labels

    with contextlib.suppress(FormatError):
        if os.path.exists(usual) and read_labels(usual) != [*labels]:
            own = f"{stem}_labels.txt"
            echo(f"note: {usual} names other classes, and stays: those of this model are in {own}", err=True)
            return own
    return usual


def _tuning(layers: int, steps: int | None, given: Mapping[str, Any]) -> Tuning | None:
    """How the base's last layers are trained; None where they are not. Flags without a use are named in notes."""
    from pocketgraph.apps.retraining.fine_tuning import Tuning

    for name in IGNORED if layers else (*TUNING, *IGNORED):
        if given[name] is not None:
            echo(f"note: --{name} is of the original's gradient descent, and not used", err=True)
    if not layers:
        return None
    values = (steps, *(given[name] for name in TUNING))
    return Tuning(
        layers, **{key: value for key, value in zip(("steps", "rate", "batch"), values, strict=True) if value}
    )


def _check_saved_model_place(folder: str, others: Iterable[str]) -> None:
    """Refuses a directory for a SavedModel, if one is wanted, that is not new or will not be when it is written."""
    from pocketgraph.formats.meta_graph_writer import check_new_directory

    if not folder:
        return
    check_new_directory(folder)
    whole = pathlib.Path(folder).resolve()
    for other in others:
        if other and pathlib.Path(other).resolve().is_relative_to(whole):  # on other drives of Windows, too
            raise UsageError(
                f"a SavedModel is a new directory, and {other} is to be written there",
                where=folder,
                hint=f"give another {option('saved_model_dir')}",
            )


def _write_saved_model(made: Retrained, folder: str) -> None:
    """Writes what retrain.py exports: the graph with a signature to serve it by."""
    from pocketgraph.apps.retraining.retrained_graph import with_serving_signature
    from pocketgraph.formats.meta_graph_writer import save_saved_model
    from pocketgraph.kernels.shapes import infer

    graph = with_serving_signature(made.graph, takes_photos=made.scaling is not None)
    (scores,) = graph.outputs
    save_saved_model(graph, folder, shapes={scores: infer(graph).shape(scores)})


def _write_summaries(made: Retrained, folder: str) -> None:
    """Writes the figures, and curves for TensorBoard."""
    from pocketgraph.formats.event_file import write_scalars
    from pocketgraph.formats.files import write_atomically

    os.makedirs(folder, exist_ok=True)
    write_atomically(os.path.join(folder, "figures.json"), made.as_json().encode())
    for run, tag in (("train", "cross_entropy"), ("validation", "accuracy")):
        points = [(step, {tag: figures[tag]}) for step, figures in made.figures if tag in figures]
        if points:
            write_scalars(os.path.join(folder, run), points)


def _print_figures(made: Retrained, kind: str) -> None:
    counts = made.counts
    echo(f"{counted(len(made.labels), 'class')}, {counts['training']} {kind} to train on; cut at '{made.cut.tensor}'")
    if made.trained_layers:
        echo(
            f"{counted(len(made.trained_layers), 'layer of the base was', 'layers of the base were')} trained too, "
            f"from '{made.trained_layers[0]}' on"
        )
    for name, text in (
        ("training", "Train accuracy"),
        ("cross_validation", "Cross-validated accuracy"),
        ("head_cross_validation", "Cross-validated accuracy of the new layer alone"),
        ("validation", "Validation accuracy"),
    ):  # fmt: skip
        if name in made.accuracy:
            echo(f"{text} = {100 * made.accuracy[name]:.1f}%")
    if "testing" in made.accuracy:
        echo(f"Final test accuracy = {100 * made.accuracy['testing']:.1f}% (N={counts['testing']})")


def _print_notes(made: Retrained, kind: str, lists_mistakes: bool) -> None:
    if lists_mistakes:
        echo("=== MISCLASSIFIED TEST IMAGES ===")
        for mistake in made.mistakes:
            echo(f"{mistake.path:>70}  {mistake.answer}")
    if made.wants_more_photos:
        echo(f"accuracy still rose with the second half of the {kind}: more of them would help")
    if made.left_out:
        some = ", ".join(made.left_out[:NAMED]) + (", …" if len(made.left_out) > NAMED else "")
        left_out = counted(len(made.left_out), "file that did not open was", "files that did not open were")
        echo(f"{left_out} left out: {some}")


@contextlib.contextmanager
def _removed_on_errors(folder: str) -> Iterator[None]:
    """Removes a folder where the call is wrong; one that was killed, or stopped by hand, goes on from it."""
    try:
        yield
    except PocketgraphError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except KeyboardInterrupt as stop:
        if os.path.isdir(folder):
            vars(stop)[GOES_ON] = True
        raise
