"""``pocketgraph test_streaming_accuracy``: the words of a long recording beside those that were said."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.data_options import json_option, rate_option
from pocketgraph.cli.shared.output import echo, echo_json
from pocketgraph.errors import UsageError


@click.command("test_streaming_accuracy")
@click.option("--wav", required=True, help="The recording.")
@click.option("--graph", "--model", "graph", required=True, help="The frozen model.")
@click.option("--labels", required=True, help="A file with one label a line.")
@click.option("--ground_truth", default="", help="What was said: 'label, milliseconds' a line.")
@click.option("--input_data_name", default="", hidden=True)
@click.option("--input_rate_name", default="", hidden=True)
@click.option("--input_names", nargs=2, default=("", ""), hidden=True)
@click.option("--output_name", default="labels_softmax", show_default=True, help="The tensor of the scores.")
@rate_option
@click.option(
    "--clip_duration_ms", type=click.IntRange(1, 60000), default=1000, show_default=True,
    help="How long a piece of sound the model hears at once.",
)  # fmt: skip
@click.option(
    "--clip_stride_ms", "--sample_stride_ms", type=click.IntRange(1, 60000), default=30,
    show_default=True, help="From the start of one piece to the start of the next.",
)  # fmt: skip
@click.option(
    "--average_window_ms", "--average_window_duration_ms", type=click.IntRange(0, 60000),
    default=500, show_default=True, help="Over which time scores are averaged.",
)  # fmt: skip
@click.option("--time_tolerance_ms", type=click.IntRange(0), default=750, show_default=True,
              help="How far from the time in --ground_truth a word may be found.")  # fmt: skip
@click.option("--suppression_ms", type=click.IntRange(0), default=1500, show_default=True,
              help="How long after a word no other one begins.")  # fmt: skip
@click.option("--detection_threshold", type=float, default=0.7, show_default=True,
              help="What an averaged score has to be over.")  # fmt: skip
@click.option("--minimum_count", type=click.IntRange(1), default=3, show_default=True,
              help="How many results there have to be in the time that is averaged over.")  # fmt: skip
@click.option("--verbose", is_flag=True, help="Print each word as it is found, with the figures so far.")
@json_option
def command(
    wav: str,
    graph: str,
    labels: str,
    ground_truth: str,
    input_data_name: str,
    input_rate_name: str,
    input_names: tuple[str, str],
    output_name: str,
    rate: int | None,
    clip_duration_ms: int,
    clip_stride_ms: int,
    average_window_ms: int,
    time_tolerance_ms: int,
    suppression_ms: int,
    detection_threshold: float,
    minimum_count: int,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find the words of a long recording, and judge them by what was said in it.

    \b
      pocketgraph test_streaming_accuracy --graph=speech.pb --labels=words.txt \\
        --wav=talk.wav --ground_truth=talk.txt --verbose
    """
    from pocketgraph.apps.label_wav import said_words, words_along
    from pocketgraph.apps.live.speech import SoundModel
    from pocketgraph.apps.live.word_recognition import WordRecognizer, judged
    from pocketgraph.datasets.class_labels import read_labels
    from pocketgraph.freezing.ready_models import read_model

    loaded = read_model(graph)
    model = SoundModel(loaded, output_name if output_name.split(":")[0] in loaded else None, rate=rate)
    for name, meant, flag in (
        (input_data_name, model.samples, "--input_data_name"),
        (input_rate_name, model.rate_tensor, "--input_rate_name"),
        (input_names[0], model.samples, "--input_names"),
        (input_names[1], model.rate_tensor, "--input_names"),
    ):  # fmt: skip
        if name and name.removesuffix(":0") != meant.removesuffix(":0"):
            raise UsageError(f"{flag}: the samples go in at '{meant or 'no tensor'}' here, not at '{name}'")
    said = said_words(ground_truth) if ground_truth else []
    names = read_labels(labels)
    recognizer = WordRecognizer(names, average_window_ms, detection_threshold, suppression_ms, minimum_count)
    found = []
    for word in words_along(wav, model, recognizer, clip_ms=clip_duration_ms, stride_ms=clip_stride_ms):
        found.append((word.label, word.time_ms))
        if verbose and not as_json:
            accuracy, verdicts = judged(said, found, time_tolerance_ms, word.time_ms)
            echo(f"{word.time_ms}ms: {word.label}: {word.score:g} ({verdicts[-1]})")
            echo(str(accuracy))
    accuracy, verdicts = judged(said, found, time_tolerance_ms)
    if not as_json:
        echo(str(accuracy))
        return
    words = [{"label": label, "ms": time, "verdict": v} for (label, time), v in zip(found, verdicts, strict=True)]
    figures = {
        name: getattr(accuracy, name) for name in ("truths", "matched", "correct", "wrong", "false_positives", "missed")
    }
    echo_json({"words": words, **figures})
