"""``pocketgraph evaluate``: judges models on data, the first of them being what the others are held against."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli._data_options import check_feeds, data_options, feeds, say_of, scaling, sized
from pocketgraph.cli.options import names

if TYPE_CHECKING:
    from pocketgraph.datasets.dataset import Dataset
    from pocketgraph.quantization.evaluation.model_evaluation import Verdict


@click.command("evaluate")
@click.argument("models", nargs=-1, required=True)
@click.option(
    "--data", "place", required=True, metavar="DIR|NPZ|LIST", help="What to judge on, with classes or without."
)
@click.option("--labels", help="The name of each class, one a line, in the order of the model's scores.")
@click.option("--limit", type=click.IntRange(1), help="Judge on the first so many samples only.")
@click.option(
    "--skip", type=click.IntRange(0), default=0, help="Leave out the first so many, such as those calibrated with."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@data_options
def command(
    models: tuple[str, ...], place: str, labels: str | None, limit: int | None, skip: int, as_json: bool, **how: Any
) -> None:
    """Judge MODELS (graphs and .tflite files) on the same samples.

    Where the data tell the classes: the share of right answers, first and among five, with the interval that the true
    share lies in with 95 % confidence; where they tell numbers: the mean error. For all but the first model: how far
    its answers are from those of the first. Models are judged by their first output; --outputs chooses another.

    \b
      pocketgraph evaluate frozen.pb small.tflite --data=photos/ --labels=labels.txt --skip=100
    """
    from pocketgraph.apps.label_image import read_labels
    from pocketgraph.cli._progress import progress_bar
    from pocketgraph.datasets.dataset import open_dataset
    from pocketgraph.quantization.evaluation.model_evaluation import evaluate, largest_inputs
    from pocketgraph.quantization.evaluation.runnable_models import GraphModel, LiteRTModel, is_litert, open_model

    files = {path: LiteRTModel(path, how["threads"], names(how["outputs"])) for path in models if is_litert(path)}
    taken = [model.inputs[0].shape for model in files.values() if len(model.inputs) == 1]
    opened = [
        files.get(path) or
        open_model(
            path, outputs=names(how["outputs"]), inputs=names(how["inputs"]), values=feeds(how["feed"]),
            threads=how["threads"],
            sizes=lambda graph, shapes: sized(graph, shapes, place, scaling(how, None), taken),
        )
        for path in models
    ]  # fmt: skip
    check_feeds(how["feed"], [model.graph for model in opened if isinstance(model, GraphModel)])
    first = next((model for model in opened if isinstance(model, GraphModel)), None)
    graph = first.graph if first is not None and not place.endswith((".npz", ".npy")) else None
    front = first.front if first is not None else None
    data = open_dataset(place, largest_inputs(opened), scaling(how, graph), front, how["sample_rate"])
    if skip:
        data = data.after(skip)
    if limit:
        data = data.take(limit)
    say_of(data)
    known = read_labels(labels) if labels else None
    odd: list[int] = []
    with progress_bar() as tell:
        verdicts = evaluate(
            opened,
            lambda: _watched(data.samples(), odd),
            len(data),
            lambda scores: data.truth(known, scores),
            tell,
            data.wanted,
        )
    for note in notes(verdicts, data, odd):
        click.echo(f"note: {note}", err=True)
    if as_json:
        click.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=1))
        return
    for line in table([verdict.as_dict() for verdict in verdicts], len(data)):
        click.echo(line)


def _watched(samples: Iterator[list[Any]], odd: list[int]) -> Iterator[list[Any]]:
    """The samples; ``odd`` gets the numbers, from 1 on, of those that hold other than finite numbers."""
    import numpy as np

    for number, sample in enumerate(samples, 1):
        if not all(np.isfinite(array).all() for array in sample if array.dtype.kind == "f"):
            odd.append(number)
        yield sample


def notes(verdicts: list[Verdict], data: Dataset, odd: list[int]) -> Iterator[str]:
    """What the numbers do not say by themselves."""
    if odd:
        which = f"sample {odd[0]} holds" if len(odd) == 1 else f"{len(odd)} samples hold, the first being {odd[0]},"
        yield f"{which} NaN or infinity; take such out of {data.place}"
    if data.classes and all(verdict.accuracy is None and verdict.errors is None for verdict in verdicts):
        yield (
            f"{data.place} tells classes, such as '{data.classes[0]}', but not which score is whose; "
            "--labels names the class of each score"
        )
    compared = [verdict.comparison for verdict in verdicts if verdict.comparison is not None]
    if not all(math.isfinite(comparison.mean_error) for comparison in compared):
        yield f"some results are not finite numbers; look for NaN and infinities in {data.place}"


COLUMNS = (
    ("top1", "top-1", "{:.2%}"),
    ("top1_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("top5", "top-5", "{:.2%}"),
    ("top5_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("true_error", "true error", "{:.4g}"),
    ("true_error_interval", "95 % confident", "{0[0]:.3g}-{0[1]:.3g}"),
    ("agreement", "agrees", "{:.2%}"),
    ("agreement_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("kl", "KL", "{:.5f}"),
    ("snr_db", "SNR dB", "{:.2f}"),
    ("mean_error", "mean error", "{:.3g}"),
    ("mean_error_interval", "95 % confident", "{0[0]:.2g}-{0[1]:.2g}"),
    ("milliseconds", "ms", "{:.2f}"),
    ("bytes", "bytes", "{:,}"),
)


def _is_told(value: Any) -> bool:
    """Whether there is a number, or an interval with both ends."""
    return value is not None and not (isinstance(value, list) and None in value)


def table(rows: list[dict[str, Any]], count: int) -> list[str]:
    """The verdicts in columns."""
    used = [column for column in COLUMNS if any(_is_told(row.get(column[0])) for row in rows)]
    cells = [["model", *(title for _, title, _ in used)]]
    for row in rows:
        filled = [form.format(row[key]) if _is_told(row.get(key)) else "" for key, _, form in used]
        cells.append([row["model"], *filled])
    widths = [max(len(line[index]) for line in cells) for index in range(len(cells[0]))]
    lines = [f"{count} samples" + (f"; agreement is with {rows[0]['model']}" if len(rows) > 1 else "")]
    for line in cells:
        padded = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join([line[0].ljust(widths[0]), *padded]).rstrip())
    return lines
