"""``pocketgraph retrain``: a classifier of one's own classes, out of photos in folders."""

from __future__ import annotations

import os
from typing import Any

import click

from pocketgraph.cli._data_options import picture_model_options
from pocketgraph.cli._output import echo
from pocketgraph.errors import UsageError

IGNORED = ("learning_rate", "train_batch_size", "test_batch_size", "validation_batch_size", "eval_step_interval")
"""Flags of the original's gradient descent; the layer is solved to convergence here."""


@click.command("retrain")
@click.argument("base", required=False)
@click.option("--image_dir", "--image-dir", "--data", "image_dir", help="A folder with one folder of photos a class.")
@click.option("--model", "--architecture", "model", help="The base: any classifier, .pb, .tflite or a SavedModel.")
@click.option("--output_graph", "--output-graph", "-o", default="retrained_graph.pb", show_default=True)
@click.option("--output_labels", "--output-labels", help="Default: beside the graph, labels.txt.")
@click.option("--summaries_dir", "--summaries-dir", help="Where figures.json goes; default: not written.")
@click.option("--how_many_training_steps", "--how-many-training-steps", type=click.IntRange(1), default=500,
              show_default=True, help="Iterations of the solver at most.")  # fmt: skip
@click.option(
    "--testing_percentage", "--testing-percentage", type=click.FloatRange(0, 100), default=10, show_default=True
)
@click.option("--validation_percentage", "--validation-percentage", type=click.FloatRange(0, 100), default=10,
              show_default=True)  # fmt: skip
@click.option("--print_misclassified_test_images", "--print-misclassified-test-images", is_flag=True)
@click.option(
    "--bottleneck_dir", "--bottleneck-dir", default="", help="Keep features there, so that the next time is quick."
)
@click.option(
    "--bottleneck_tensor", "--bottleneck-tensor", help="What the new layer takes; default: as the old one did."
)
@click.option("--final_tensor_name", "--final-tensor-name", default="final_result", show_default=True)
@click.option("--flip_left_right/--no_flip_left_right", "mirror", default=True,
              help="Train on mirrored photos too.", show_default=True)  # fmt: skip
@click.option("--class_weights", "--class-weights", is_flag=True, help="Small classes count as much as large ones.")
@click.option("--seed", type=int, default=0, show_default=True)
@picture_model_options
@click.option("--learning_rate", "--learning-rate", type=float, hidden=True)
@click.option("--train_batch_size", "--train-batch-size", type=int, hidden=True)
@click.option("--test_batch_size", "--test-batch-size", type=int, hidden=True)
@click.option("--validation_batch_size", "--validation-batch-size", type=int, hidden=True)
@click.option("--eval_step_interval", "--eval-step-interval", type=int, hidden=True)
def command(
    base: str | None,
    image_dir: str | None,
    model: str | None,
    output_graph: str,
    output_labels: str | None,
    summaries_dir: str | None,
    how_many_training_steps: int,
    testing_percentage: float,
    validation_percentage: float,
    print_misclassified_test_images: bool,
    bottleneck_dir: str,
    bottleneck_tensor: str | None,
    final_tensor_name: str,
    mirror: bool,
    class_weights: bool,
    seed: int,
    **how: Any,
) -> None:
    """Teach the classifier BASE the classes of --image_dir: its last layer is made anew.

    Which photos train, validate and test follows from their names, as in the original: a photo never changes sides, and
    photos whose names differ only behind _nohash_ stay together. The layer is solved to convergence.

    \b
      pocketgraph retrain mobilenet.pb --image_dir=flowers/ -o flowers.pb
      pocketgraph label_image --graph=flowers.pb --labels=labels.txt photo.jpg
    """
    from pocketgraph.apps.retraining.tool import retrain
    from pocketgraph.cli._progress import progress_bar
    from pocketgraph.formats import load, save
    from pocketgraph.formats.files import check_place, write_atomically

    base = base or model
    if not base:
        raise UsageError("no base model is given", hint="pocketgraph retrain BASE.pb --image_dir=PHOTOS")
    if not os.path.exists(base):
        raise UsageError(
            f"there is no model '{base}'", hint="the base is a file; architectures are not downloaded any more"
        )
    if not image_dir:
        raise UsageError("Must set flag --image_dir.", hint="a folder with one folder of photos a class")
    for name in IGNORED:
        if how.pop(name) is not None:
            echo(f"note: --{name} is of the original's gradient descent, and not used", err=True)
    labels_file = output_labels or os.path.join(os.path.dirname(output_graph), "labels.txt")
    for place in (output_graph, labels_file):
        check_place(place)
    with progress_bar() as tell:
        made = retrain(
            load(base),
            image_dir,
            testing=testing_percentage,
            validation=validation_percentage,
            final=final_tensor_name,
            bottleneck=bottleneck_tensor,
            bottleneck_dir=bottleneck_dir,
            mirror=mirror,
            class_weights=class_weights,
            steps=how_many_training_steps,
            seed=seed,
            progress=lambda done, total: tell("photos", done, total),
            notify=lambda text: echo(f"note: {text}", err=True),
            **how,
        )
    save(made.graph, output_graph)
    write_atomically(labels_file, "".join(f"{label}\n" for label in made.labels).encode())
    if summaries_dir:
        os.makedirs(summaries_dir, exist_ok=True)
        write_atomically(os.path.join(summaries_dir, "figures.json"), made.as_json().encode())
    counts = made.counts
    echo(f"{len(made.labels)} classes, {counts['training']} photos to train on; cut at '{made.cut.tensor}'")
    for name, text in (
        ("training", "Train accuracy"),
        ("cross_validation", "Cross-validated accuracy"),
        ("validation", "Validation accuracy"),
    ):  # fmt: skip
        if name in made.accuracy:
            echo(f"{text} = {100 * made.accuracy[name]:.1f}%")
    if "testing" in made.accuracy:
        echo(f"Final test accuracy = {100 * made.accuracy['testing']:.1f}% (N={counts['testing']})")
    if print_misclassified_test_images:
        echo("=== MISCLASSIFIED TEST IMAGES ===")
        for mistake in made.mistakes:
            echo(f"{mistake.path:>70}  {mistake.answer}")
    if made.wants_more_photos:
        echo("accuracy still rose with the last quarter of the photos: more of them would help")
    if made.left_out:
        echo(f"{len(made.left_out)} photos did not open and were left out")
    echo(f"{output_graph}, {labels_file}; next:")
    echo(f"  pocketgraph quantize {output_graph} --calibrate={image_dir} -o small.tflite")
    echo(f"  pocketgraph live {output_graph} --labels={labels_file}")
