"""``pocketgraph dataset``: photos looked through before training, and a new folder made as was decided."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli._data_options import picture_model_options
from pocketgraph.cli._output import echo
from pocketgraph.errors import UsageError


@click.group("dataset", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look through photos in folders, one a class, before a model is trained on them.

    \b
      pocketgraph dataset check flowers/ --model=mobilenet.pb -o page.html --decisions=decisions.jsonl
      pocketgraph dataset apply decisions.jsonl flowers/ -o cleaned/
    """


@command.command("check")
@click.argument("photos")
@click.option("--model", help="A classifier of pictures, of whatever: finds wrong labels and more duplicates.")
@click.option("--output", "-o", help="A page with the photos, .html, or a report, .json.")
@click.option("--decisions", help="Write what is proposed for each photo there, as JSON lines to look through.")
@click.option("--against", help="A folder of photos as the phone takes them: how far are they from these?")
@click.option(
    "--testing_percentage", "--testing-percentage", "testing", type=click.FloatRange(0, 100), default=10,
    show_default=True, help="As in retrain: duplicates across the split are told.",
)  # fmt: skip
@click.option("--validation_percentage", "--validation-percentage", "validation", type=click.FloatRange(0, 100),
              default=10, show_default=True)  # fmt: skip
@click.option(
    "--tensor",
    "--bottleneck_tensor",
    "--bottleneck-tensor",
    "tensor",
    help="What of the model to compare photos by; default: what its last layer takes.",
)
@picture_model_options
def check(photos: str, model: str | None, output: str | None, decisions: str | None, **how: Any) -> None:
    """Find broken, doubled, wrongly labelled, blurred, dark and cut photos in PHOTOS, a folder with one folder a class.

    Nothing is changed. Wrong labels are found with --model, by what a head and neighbours learn of the other photos.
    """
    from pocketgraph.apps.training_data.check import KINDS, check_dataset
    from pocketgraph.apps.training_data.check_page import as_html, verdict
    from pocketgraph.apps.training_data.decisions import write_decisions
    from pocketgraph.cli._progress import progress_bar
    from pocketgraph.formats import load
    from pocketgraph.formats.files import check_place, write_atomically

    if output and not output.endswith((".html", ".json")):
        raise UsageError(f"'{output}' is neither .html nor .json", hint="-o page.html or -o report.json")
    for place in (output, decisions):
        if place:
            check_place(place)
    graph = load(model) if model else None
    how["against"] = how["against"] or ""
    with progress_bar() as tell:
        report = check_dataset(photos, graph, progress=lambda done, of: tell("photos", done, of), **how)
    for line in verdict(report):
        echo(line)
    for kind, about in KINDS.items():
        found = report.of_kind(kind)
        if found:
            echo(f"{len(found):6}  {kind}: {about}; {found[0].path}: {found[0].why}")
    if model and report.cross_validated is None:
        echo("note: labels were not judged: that takes two classes of four photos each", err=True)
    if output:
        text = report.as_json() if output.endswith(".json") else as_html(report)
        write_atomically(output, text.encode("utf-8", "backslashreplace"))
    if decisions:
        count = write_decisions(report.findings, decisions)
        echo(f"{decisions}: {count} decisions to look through; then:")
        echo(f"  pocketgraph dataset apply {decisions} {photos} -o NEW")


@command.command("apply")
@click.argument("decisions")
@click.argument("photos")
@click.option("--output", "-o", required=True, help="The new folder.")
def apply(decisions: str, photos: str, output: str) -> None:
    """Copy PHOTOS into a new folder as DECISIONS (of check, looked through) say: keep, drop or relabel.

    PHOTOS is only read. Photos without a decision are kept.
    """
    from pocketgraph.apps.training_data.decisions import apply_decisions, read_decisions

    counts = apply_decisions(read_decisions(decisions), photos, output)
    echo(f"{output}: {counts['keep']} kept, {counts['relabel']} relabelled, {counts['drop']} dropped")
