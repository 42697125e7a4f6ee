"""``pocketgraph label_wav``: what is said in recordings."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

import click

from pocketgraph.cli.shared.data_options import (
    few_labels_option,
    few_threads_option,
    json_option,
    rate_option,
    say,
    with_model,
)
from pocketgraph.cli.shared.options import labels_option
from pocketgraph.cli.shared.output import echo, echo_json
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.pages.quantities import counted


@click.command("label_wav")
@click.argument("recordings", nargs=-1)
@click.option("--wav", multiple=True, help="A recording; may be repeated, and recordings may just be listed.")
@click.option("--wav_dir", help="A folder whose .wav files are labelled, each under its name.")
@click.option("--graph", help="The frozen model, .pb or .pbtxt; it may be listed before the recordings, too.")
@labels_option("; default: one beside the graph, else indexes")
@click.option("--input_name", help="The tensor of a file's content; default: the one that is decoded.")
@click.option("--output_name", help="The tensor of the scores; default: the likely output.")
@rate_option
@few_labels_option
@click.option(
    "--style",
    type=click.Choice(["python", "cpp"]),
    default="python",
    help="Lines as label_wav.py writes them, 'label (score = 0.12345)', or as label_wav.cc, 'label (index): score'.",
)
@json_option
@few_threads_option
def command(
    recordings: Sequence[str],
    wav: tuple[str, ...],
    wav_dir: str | None,
    graph: str | None,
    labels: str | None,
    how_many_labels: int,
    style: str,
    as_json: bool,
    **how: Any,
) -> None:
    """Say what is in RECORDINGS (WAV files) with a model of spoken words.

    Recordings of another rate than the model's are resampled.

    \b
      pocketgraph label_wav --graph=speech.pb --labels=words.txt yes.wav
    """
    from pocketgraph.apps.label_wav import WavLabeler
    from pocketgraph.apps.live.application_choice import unlike_scores
    from pocketgraph.freezing.ready_models import read_model
    from pocketgraph.quantization.class_names import labels_of

    graph, recordings = with_model(graph, recordings)
    paths = [*wav, *recordings]
    if wav_dir is not None:
        found = sorted(glob.glob(os.path.join(glob.escape(wav_dir), "*.wav")))
        if not found:
            raise FormatError("there is no .wav file in this folder", where=wav_dir)
        paths.extend(found)
    if not paths:
        raise UsageError("no recording is given", hint="pass --wav=RECORDING, or list recordings at the end")
    loaded = read_model(graph, [how["output_name"]] if how["output_name"] else None)
    labeler = WavLabeler(loaded, **how)
    labeler.labels = tuple(labels_of(labels, graph, loaded, labeler.model.output, say))
    if warning := unlike_scores(loaded, labeler.model.output, labeler.labels):
        echo(f"warning: {warning}", err=True)
    results = []
    failures = 0
    for path in paths:
        try:
            best = labeler(path, how_many_labels)
        except FormatError as error:
            if len(paths) == 1:
                raise
            echo(f"error: {error}", err=True)
            failures += 1
            continue
        results.append(
            {"wav": path, "predictions": [{"label": name, "index": i, "score": score} for name, i, score in best]}
        )
        if as_json:
            continue
        if len(paths) > 1:
            echo(f"\n{path}")
        for name, index, score in best:
            echo(f"{name} (score = {score:.5f})" if style == "python" else f"{name} ({index}): {score:g}")
    if as_json:
        echo_json(results)
    if failures:
        raise PocketgraphError(f"{failures} of {counted(len(paths), 'recording')} could not be labelled")
