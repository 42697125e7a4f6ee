"""``pocketgraph label_text``: what texts are."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from pocketgraph.cli.shared.data_options import few_labels_option, few_threads_option, json_option, say, with_model
from pocketgraph.cli.shared.options import labels_option, names
from pocketgraph.cli.shared.output import echo, echo_json
from pocketgraph.errors import UsageError, quoted

SHOWN = 60  # characters of a text


@click.command("label_text")
@click.argument("texts", nargs=-1)
@click.option(
    "--data", metavar="CSV|DIR|TXT", help="A table with a column of texts, a folder of .txt files, or a list."
)
@click.option("--graph", help="The model: a graph, a directory, or a .tflite file; it may stand before the texts, too.")
@click.option("--reader", metavar="GRAPH", help="The graph that reads texts for a .tflite file that does not.")
@labels_option("; default: beside the graph, or in a table of it, else indexes")
@click.option("--output_name", help="The tensor of the scores; default: the likely output.")
@few_labels_option
@json_option
@few_threads_option
def command(
    texts: Sequence[str],
    data: str | None,
    graph: str | None,
    reader: str | None,
    labels: str | None,
    output_name: str | None,
    how_many_labels: int,
    as_json: bool,
    threads: int | None,
) -> None:
    """Say what TEXTS are with a classifier of texts.

    \b
      pocketgraph label_text --graph=reviews.pb --labels=opinions.txt "a lovely film" "a dull one"
      pocketgraph label_text --graph=out/model.tflite --reader=out/frozen.pb --data=reviews.csv
    """
    from pocketgraph.apps.label_text import TextLabeler, texts_of
    from pocketgraph.datasets.class_labels import read_labels
    from pocketgraph.quantization.class_names import labels_of

    graph, texts = with_model(graph, texts)
    if bool(texts) == bool(data):
        raise UsageError("give texts, or --data with a table or folder of them")
    for text in filter(os.path.isfile, texts):
        say(f"'{text}' is labelled as these letters, not what the file has; \"$(cat {quoted(text)})\" gives that")
    labeler = TextLabeler(
        graph, read_labels(labels) if labels else (), reader=reader, outputs=names(output_name or "") or None,
        threads=threads,
    )  # fmt: skip
    if labeler.scores is not None:
        labeler.labels = tuple(labels_of(labels, graph, *labeler.scores, say))
    shown = texts_of(data) if data else list(texts)
    results = []
    for text, best in zip(shown, labeler(data if data else list(texts), how_many_labels), strict=False):
        results.append(
            {"text": text, "predictions": [{"label": name, "index": at, "score": score} for name, at, score in best]}
        )
        if as_json:
            continue
        if len(shown) > 1:
            line = " ".join(text.split())
            echo(f"\n{line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}")
        for name, _, score in best:
            echo(f"{name} (score = {score:.5f})")
    if as_json:
        echo_json(results, ensure_ascii=False)
