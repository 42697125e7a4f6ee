"""``pocketgraph generate_streaming_test_wav``: a long recording of known words over noise."""

from __future__ import annotations

import os
from typing import Any

import click

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo

PERCENT = click.FloatRange(0, 100)


@click.command("generate_streaming_test_wav")
@click.option("--data_dir", metavar="DIR", default="/tmp/speech_dataset", show_default=True,
              help="A folder of recordings a word; nothing is downloaded.")  # fmt: skip
@click.option("--output_audio_file", metavar="FILE", default="/tmp/speech_commands_train/streaming_test.wav",
              show_default=True, help="The recording to write.")  # fmt: skip
@click.option("--output_labels_file", metavar="FILE", default="/tmp/speech_commands_train/streaming_test_labels.txt",
              show_default=True, help="The words to write: 'label, milliseconds' a line.")  # fmt: skip
@click.option("--wanted_words", metavar="A,B", default="yes,no,up,down,left,right,on,off,stop,go", show_default=True,
              help="Words that the model knows; others are _unknown_.")  # fmt: skip
@click.option(
    "--background_dir", metavar="DIR", default="", help="Of noises; default: _background_noise_ in --data_dir."
)
@click.option("--background_volume", type=click.FloatRange(0, 1), default=0.1, show_default=True,
              help="How loud noise is at most.")  # fmt: skip
@click.option("--test_duration_seconds", type=click.IntRange(1, 86400), default=600, show_default=True,
              help="How long the recording is.")  # fmt: skip
@click.option("--word_gap_ms", type=click.IntRange(1, 600000), default=2000, show_default=True,
              help="How far apart words are on average.")  # fmt: skip
@click.option("--unknown_percentage", type=click.IntRange(0, 100), default=30, show_default=True,
              help="How many words are unknown ones.")  # fmt: skip
@click.option("--testing_percentage", type=PERCENT, default=10, show_default=True,
              help="Of the recordings that are tested with, by their names; words are taken from these.")  # fmt: skip
@click.option("--validation_percentage", type=PERCENT, default=10, show_default=True,
              help="Of the recordings that are validated with.")  # fmt: skip
@click.option("--silence_percentage", type=PERCENT, default=10.0, show_default=True, help="As in train.py.")
@click.option("--sample_rate", type=click.IntRange(1000, 192000), default=16000, show_default=True,
              help="Samples a second; other recordings are resampled.")  # fmt: skip
@click.option("--clip_duration_ms", type=click.IntRange(1, 60000), default=1000, show_default=True,
              help="How long the recording of a word is.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of what is drawn; default: another one each time.")
@click.option("--data_url", metavar="URL", hidden=True, expose_value=False)
@click.option("--background_frequency", metavar="NUMBER", hidden=True, expose_value=False)
@click.option("--window_size_ms", metavar="NUMBER", hidden=True, expose_value=False)
@click.option("--window_stride_ms", metavar="NUMBER", hidden=True, expose_value=False)
@click.option("--feature_bin_count", metavar="NUMBER", hidden=True, expose_value=False)
def command(
    data_dir: str, output_audio_file: str, output_labels_file: str, wanted_words: str, background_dir: str, **how: Any
) -> None:
    """Write a long recording of words from a data set over noise, and when which of them begins.

    test_streaming_accuracy says what a model hears in it.

    \b
      pocketgraph generate_streaming_test_wav --data_dir=words/ --wanted_words=yes,no --unknown_percentage=0 \\
        --testing_percentage=50 --output_audio_file=long.wav --output_labels_file=long.txt
    """
    import numpy as np

    from pocketgraph.apps.speech_commands.streaming_recording import streaming_recording
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import check_folder, check_place, write_atomically
    from pocketgraph.kernels.audio.wav import encode_wav

    places = {path: os.path.dirname(path) or "." for path in (output_audio_file, output_labels_file)}
    for path, folder in places.items():
        check_folder(folder)
        if os.path.isdir(folder):
            check_place(path)
    made = streaming_recording(data_dir, names(wanted_words), noise_folder=background_dir, warn=say, **how)
    for folder in places.values():  # as the original does
        os.makedirs(folder, exist_ok=True)
    content = encode_wav(made.samples[:, None], np.array(how["sample_rate"]))
    write_atomically(output_audio_file, bytes(content.item()))
    echo(f"Saved streaming test wav to {output_audio_file}")
    write_atomically(output_labels_file, "".join(f"{word}, {time:f}\n" for word, time in made.words).encode())
    echo(f"Saved streaming test labels to {output_labels_file}")
