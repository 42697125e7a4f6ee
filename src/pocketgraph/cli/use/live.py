"""``pocketgraph live``: a model on a camera, a microphone, a folder or a video, on a page or in files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import feeds, picture_model_options, say
from pocketgraph.cli.shared.options import labels_option, signature_option
from pocketgraph.cli.shared.output import echo
from pocketgraph.cli.shared.serving import serve, server_options
from pocketgraph.errors import FormatError, PocketgraphError, UsageError, did_you_mean

if TYPE_CHECKING:
    from pocketgraph.apps.live.answers import Application

KINDS = ("classify", "detect", "stylize", "image", "pose", "speech", "embed", "benchmark")
MOST_NOTES = 100
"""Mistakes that the terminal is told of."""


@click.command("live")
@click.argument("model")
@click.option("--app", "kind", type=click.Choice(KINDS), help="What the model is for; default: as its outputs tell.")
@labels_option(", also of words or styles")
@click.option(
    "--input",
    "source",
    metavar="NUMBER|FILE|DIR",
    help="Camera number, folder, picture, video, .wav, or - ; default: the page's camera.",
)
@click.option("--camera", type=int, help="The same as --input with a camera's number.")
@click.option(
    "--output",
    "-o",
    metavar="FILE|DIR",
    help="Write x.png, a folder of pictures, x.gif, x.jsonl or -; there is no page then.",
)
@click.option("--save", default="", help="A folder that the page may save pictures in, by label: training data.")
@server_options
@picture_model_options
@click.option("--output_layer", help="The node that is read.")
@click.option("--decoder", default="", help="A detector's family, where its outputs' names do not tell.")
@click.option("--priors", "boxes", help="A detector's priors or anchors.")
@click.option("--sample_rate", type=click.IntRange(1000, 192000), help="Samples a second that it hears.")
@click.option("--threshold", type=float, help="Show scores over this.")
@click.option(
    "--heard_ms", type=int, help="Milliseconds of sound that a model of any length hears at once.  [default: 1000]"
)
@click.option(
    "--wake", metavar="SMALL", help="A small model that hears or sees everything; MODEL runs when it wakes it."
)
@click.option("--wake_word", default="", help="The label of the small model that wakes the large one.")
@click.option("--wake_labels", help="The labels of the small model.")
@signature_option
@click.option("--feed", multiple=True, metavar="NAME=VALUE", help="Feed another input too, as in --feed keep_prob=1.")
def command(
    model: str,
    source: str | None,
    camera: int | None,
    output: str | None,
    host: str,
    port: int,
    save: str,
    browser: bool,
    threshold: float | None,
    **how: Any,
) -> None:
    """Run MODEL on what a camera sees or a microphone hears.

    Without --output this serves a page on this machine alone; --host=0.0.0.0 lets the home network in, with the token
    in the address that is printed. With --output there is no page: the form for a Raspberry Pi and for scripts.

    \b
      pocketgraph live small.pb --labels=labels.txt
      pocketgraph live detector.pb --input=street.mjpeg -o street.gif
      pocketgraph live speech.pb --labels=words.txt --input=talk.wav -o -
    """
    if camera is not None:
        if source is not None:
            raise UsageError("--camera and --input are both given", hint="one of them is enough")
        source = str(camera)
    application = _application(model, threshold, how)
    if output is not None:
        if source is None:
            source = "0"
        _write(application, source, output)
        return
    _serve(application, model, source, host, port, save, browser)


def _application(model: str, threshold: float | None, how: dict[str, Any]) -> Application:
    """The application that the flags describe."""
    from pocketgraph.apps.label_image import without_names
    from pocketgraph.apps.live.application_choice import APPLICATIONS, application, chosen, misfit, shows_numbers
    from pocketgraph.apps.live.detection import class_counts
    from pocketgraph.apps.picture_model import find_output
    from pocketgraph.datasets.class_labels import read_labels
    from pocketgraph.freezing.ready_models import read_model
    from pocketgraph.quantization.class_names import labels_beside_detector, labels_of

    kind, labels, signature, heard = (how.pop(name) for name in ("kind", "labels", "signature", "heard_ms"))
    wake, wake_word, wake_labels = (how.pop(name) for name in ("wake", "wake_word", "wake_labels"))
    how["feeds"] = feeds(how.pop("feed"))
    wanted = [how["output_layer"]] if how["output_layer"] else None
    graph = read_model(model, wanted, signature=signature, notify=say)
    names = read_labels(labels) if labels else []
    found, output = chosen(graph, how["output_layer"], kind, names)
    if found == "benchmark" and kind is None and not labels:  # one share is of two classes where a file names them
        found, output = chosen(graph, how["output_layer"], labels=("", ""))
        two = labels_of(None, model, graph, output, lambda note: None) if found == "classify" and output else ()
        found = found if len(two) == 2 else "benchmark"
    if found == "speech":
        output = output or find_output(graph)
    if found in ("classify", "speech") and output is not None:
        given = labels_of(labels, model, graph, output, say)
    elif found == "detect" and not labels:
        given = labels_beside_detector(model, graph, class_counts(graph), say)
    else:
        given = names
    made: Application = application(graph, kind, given, **how)
    if warning := misfit(graph, made):
        echo(f"warning: {warning}", err=True)
    if shows_numbers(made):
        say(without_names())
    if wake:
        from pocketgraph.apps.live.wake_cascade import WakeApp

        words = read_labels(wake_labels) if wake_labels else ()
        if words and wake_word not in words:
            said = did_you_mean(wake_word, words) or ", ".join(words[:20])
            raise UsageError(f"the small model has no label '{wake_word}'", hint=said)
        small = application(
            read_model(wake, notify=say), None, words, sample_rate=how["sample_rate"], threads=how["threads"]
        )
        made = WakeApp(small, made, wake_word)
    elif wake_word or wake_labels:
        raise UsageError("--wake_word and --wake_labels are of a small model", hint="pass it: --wake=SMALL.pb")
    if threshold is not None:
        made.change("threshold", threshold)
    if heard is not None:
        if not any(row.name == "heard_ms" for row in made.settings()):
            raise UsageError("--heard_ms is for models that hear recordings of any length, and this is none")
        made.change("heard_ms", heard)
    if kind is None:
        echo(f"note: --app={made.kind}: {APPLICATIONS[made.kind]}", err=True)
    return made


def _write(application: Application, source: str, output: str) -> None:
    """Answers in files."""
    from pocketgraph.apps.live.answers import Sound
    from pocketgraph.apps.live.file_output import writer
    from pocketgraph.apps.live.newest_frame import Newest
    from pocketgraph.apps.live.sources import is_endless, stream

    failures: list[FormatError] = []

    def broken(error: FormatError) -> None:
        echo(f"error: {error}; it is left out", err=True)
        failures.append(error)

    target = writer(output)
    frames: Any = stream(source, broken=broken)
    if is_endless(source):
        frames = Newest(frames)
        echo("note: Ctrl-C ends it", err=True)
    try:
        for given in frames:
            if isinstance(given, Sound) != application.hears and application.kind != "benchmark":
                takes = "sound" if application.hears else "pictures"
                raise UsageError(f"the model takes {takes}, and '{source}' gives something else")
            target(given, application(given))
    except KeyboardInterrupt:
        pass
    finally:
        said = target.close()
    if output not in ("-", "/dev/stdout"):
        echo(said)
    if failures:
        raise PocketgraphError(f"{len(failures)} of the pictures in '{source}' could not be read")


def _serve(
    application: Application, model: str, source: str | None, host: str, port: int, save: str, browser: bool
) -> None:
    """The page, until it is interrupted."""
    from pocketgraph.apps.live.live_server import LiveServer
    from pocketgraph.apps.live.sources import stream
    from pocketgraph.apps.live.tls_certificate import self_signed
    from pocketgraph.apps.page_server import LOOPBACK, Place

    printed: set[str] = set()

    def tell(error: Exception) -> None:
        import traceback

        from pocketgraph.apps.live.viewer import unexpected

        text = unexpected(error)
        if text not in printed and len(printed) < MOST_NOTES:  # once, not once a frame
            printed.add(text)
            echo(f"error: this program made a mistake: {text}; POCKETGRAPH_DEBUG=1 shows the traceback", err=True)
            if os.environ.get("POCKETGRAPH_DEBUG"):
                echo("".join(traceback.format_exception(error)), err=True)

    if save:
        os.makedirs(save, exist_ok=True)
    frames = None if source is None else (lambda: stream(source))
    with self_signed(host in LOOPBACK) as (certificate, key):
        place = Place(host, port, certificate=certificate, key=key)
        server = LiveServer(application, os.path.basename(model), place, frames, save, tell)
        serve(server, f"{os.path.basename(model)} is live", browser)
