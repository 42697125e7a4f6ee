"""``pocketgraph wav_to_features``: the numbers that a network of spoken words is given of a recording, as C."""

from __future__ import annotations

from dataclasses import fields

import click

from pocketgraph.cli.shared.options import one_file
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError


def _is_true(context: click.Context, parameter: click.Parameter, value: str) -> bool:
    return value.lower() not in ("", "0", "false", "no")


@click.command("wav_to_features")
@click.argument("recording", required=False)
@click.option("--input_wav", metavar="FILE", help="The recording, of 16-bit samples; the same as RECORDING.")
@click.option("--output_c_file", "-o", metavar="FILE", required=True, help="The C file to write.")
@click.option("--preprocess", type=click.Choice(["mfcc", "average", "micro"]), default="mfcc", show_default=True,
              help="How a spectrum becomes features.")  # fmt: skip
@click.option("--quantize", is_flag=False, flag_value="1", default="", callback=_is_true, metavar="[1]",
              help="Write unsigned char, 0 to 255 as in train.py --quantize, not float.")  # fmt: skip
@click.option("--sample_rate", type=click.IntRange(1000, 192000), default=16000, show_default=True,
              help="Samples a second that the recording has.")  # fmt: skip
@click.option("--clip_duration_ms", type=click.IntRange(1, 600000), default=1000, show_default=True,
              help="Of the recording that counts; a shorter one is filled with silence.")  # fmt: skip
@click.option("--window_size_ms", type=click.FloatRange(0, 60000), default=30.0, show_default=True,
              help="How long a piece is whose spectrum is computed.")  # fmt: skip
@click.option("--window_stride_ms", type=click.FloatRange(0, 60000), default=10.0, show_default=True,
              help="From the start of one piece to the start of the next.")  # fmt: skip
@click.option("--feature_bin_count", type=click.IntRange(1, 4096), default=40, show_default=True,
              help="Features of a piece.")  # fmt: skip
def command(
    recording: str | None, input_wav: str | None, output_c_file: str, quantize: bool, **settings: float
) -> None:
    """Write what a network of spoken words is given of RECORDING as a C file, to test a device's own code with.

    The file is the one that wav_to_features.py of TensorFlow's speech_commands writes, byte by byte.

    \b
      pocketgraph wav_to_features yes.wav -o yes.c
      pocketgraph wav_to_features --input_wav=yes.wav --output_c_file=yes.c --preprocess=micro --quantize=1
    """
    from pocketgraph.apps.speech_commands.wav_features import FeatureSettings, c_source, features_of
    from pocketgraph.formats.files import check_place, write_atomically

    wav = one_file(recording, input_wav)
    if not wav:
        raise UsageError("no recording is given", hint="pass --input_wav=RECORDING.wav")
    check_place(output_c_file, wav)
    chosen = FeatureSettings(**{field.name: settings[field.name] for field in fields(FeatureSettings)})  # type: ignore[arg-type]
    features, rate = features_of(wav, chosen)
    if rate != chosen.sample_rate:
        echo(f"warning: {wav} has {rate} samples a second, and --sample_rate is {chosen.sample_rate}", err=True)
    source = c_source(features, chosen, wav=wav, output=output_c_file, quantize=quantize)
    write_atomically(output_c_file, (piece.encode(errors="surrogateescape") for piece in source))
    echo(f'Wrote to "{output_c_file}"')
