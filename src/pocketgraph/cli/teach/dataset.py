"""``pocketgraph dataset``: photos looked through before training, and a new folder made as was decided."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any

import click

from pocketgraph.cli.shared.data_options import cluster_option, picture_model_options, say
from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.cli.shared.serving import serve, server_options
from pocketgraph.errors import UsageError, quoted
from pocketgraph.pages.quantities import counted


@click.group("dataset", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Label photos, and look through them, before a model is trained on them.

    \b
      pocketgraph dataset check flowers/ --model=mobilenet.pb -o page.html --decisions=decisions.jsonl
      pocketgraph dataset apply decisions.jsonl flowers/ -o cleaned/
    """


@command.command("check")
@click.argument("photos")
@click.option("--model", help="A classifier of pictures, of whatever: finds wrong labels and more duplicates.")
@click.option("--output", "-o", metavar="FILE.html|.json", help="A page with the photos, .html, or a report, .json.")
@click.option("--decisions", help="Write what is proposed for each photo there, as JSON lines to look through.")
@click.option("--against", help="A folder of photos as the phone takes them: how far are they from these?")
@click.option(
    "--testing_percentage", "testing", type=click.FloatRange(0, 100), default=10,
    show_default=True, help="As in retrain: duplicates across the split are told.",
)  # fmt: skip
@click.option("--validation_percentage", "validation", type=click.FloatRange(0, 100),
              default=10, show_default=True, help="As in retrain.")  # fmt: skip
@click.option(
    "--tensor",
    "--bottleneck_tensor",
    "tensor",
    help="What of the model to compare photos by; default: what its last layer takes.",
)
@cluster_option
@picture_model_options
def check(
    photos: str, model: str | None, output: str | None, decisions: str | None, cluster_address: str, **how: Any
) -> None:  # fmt: skip
    """Find broken, doubled, wrongly labelled, blurred, dark and cut photos in PHOTOS, a folder with one folder a class.

    Nothing is changed. Wrong labels are found with --model: by a last layer that is trained on the other photos, and by
    the photos nearest to each.

    \b
      pocketgraph dataset check flowers/ -o page.html
      pocketgraph dataset check flowers/ --model=mobilenet.pb -o page.html --decisions=decisions.jsonl
    """
    from pocketgraph.apps.training_data.check_page import as_html, verdict
    from pocketgraph.apps.training_data.decisions import write_decisions
    from pocketgraph.apps.training_data.photo_checks import FEWEST_FOR_LABELS, KINDS, check_dataset
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.cluster import connected
    from pocketgraph.datasets.file_lists import files_in, unread
    from pocketgraph.formats.files import check_place, write_atomically
    from pocketgraph.freezing.ready_models import read_model

    if output and not output.endswith((".html", ".json")):
        raise UsageError(f"'{output}' is neither .html nor .json", hint="-o page.html or -o report.json")
    for place in (output, decisions):
        if place:
            check_place(place)
    graph = read_model(model) if model else None
    how["against"] = how["against"] or ""
    with connected(cluster_address), progress_bar() as tell:
        report = check_dataset(photos, graph, progress=lambda done, of: tell("photos", done, of), notify=say, **how)
    for line in verdict(report):
        echo(line)
    for kind, about in KINDS.items():
        found = report.of_kind(kind)
        if found:
            echo(f"{len(found):6}  {kind}: {about}; {found[0].path}: {found[0].why}")
    if hint := unread(files_in(photos)):
        echo(f"note: {hint}", err=True)
    if model and report.cross_validated is None:
        small = [name for name, count in report.counts.items() if count < FEWEST_FOR_LABELS]
        of = f", and '{small[0]}' has {report.counts[small[0]]} that open" if small else ""
        echo(
            f"note: labels were not judged: each class, of two at least, takes {FEWEST_FOR_LABELS} photos{of}", err=True
        )
    if output:
        text = report.as_json() if output.endswith(".json") else as_html(report)
        write_atomically(output, text.encode("utf-8", "backslashreplace"))
        echo(f"written: {output}")
    if decisions:
        count = write_decisions(report.findings, decisions)
        new = os.path.normpath(photos) + "_decided"
        echo(f"{decisions}: {counted(count, 'decision')} to look through; then:")
        echo(f"  pocketgraph dataset apply {quoted(decisions)} {quoted(photos)} -o {quoted(new)}")


@command.command("apply")
@click.argument("decisions")
@click.argument("photos")
@click.option("--output", "-o", required=True, metavar="DIR", help="The new folder.")
def apply(decisions: str, photos: str, output: str) -> None:
    """Copy PHOTOS into a new folder as DECISIONS (of check, looked through) say: keep, drop or relabel.

    PHOTOS is only read. Photos without a decision are kept.

    \b
      pocketgraph dataset apply decisions.jsonl flowers/ -o flowers_2/
    """
    from pocketgraph.apps.training_data.decisions import apply_decisions, read_decisions

    counts = apply_decisions(read_decisions(decisions), photos, output)
    echo(f"{output}: {counts['keep']} kept, {counts['relabel']} relabelled, {counts['drop']} dropped")


@command.command("label")
@click.argument("photos")
@click.option("--classes", help="Names by commas, a key each; the file of labels keeps them for the next time.")
@click.option("--output", "-o", help="The file of labels, .jsonl, which is only added to; default: beside PHOTOS.")
@click.option("--rater", help="Who decides; default: the name of the user. Several raters share a file.")
@click.option("--boxes/--no-boxes", default=None, help="Draw boxes around things instead of naming whole photos.")
@click.option("--model", help="A classifier that knows the classes: what it doubts most comes first.")
@click.option("--labels", help="The model's labels, a line each.")
@server_options
@picture_model_options
def label(
    photos: str, classes: str | None, output: str | None, rater: str | None, boxes: bool | None,
    model: str | None, labels: str | None, host: str, port: int, browser: bool, **how: Any,
) -> None:  # fmt: skip
    """Label PHOTOS, a folder of photos or of folders of photos, by keyboard, on a page of this machine.

    A decision is on the disk before the page counts it: the command can end at any time, and goes on where it was.
    PHOTOS is only read.

    \b
      pocketgraph dataset label photos/ --classes=daisy,roses,tulips
      pocketgraph dataset label photos/ --classes=person,bicycle --boxes
    """
    import getpass

    from pocketgraph.apps.embeddings import photos_in
    from pocketgraph.apps.label_image import Labeler
    from pocketgraph.apps.labelling.exports import export_command
    from pocketgraph.apps.labelling.labelling_server import LabelServer
    from pocketgraph.apps.labelling.labels_file import LabelsFile
    from pocketgraph.apps.labelling.suggestions import in_doubt_first, suggestions
    from pocketgraph.apps.live.tls_certificate import self_signed
    from pocketgraph.apps.page_server import LOOPBACK, Place
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.datasets.class_labels import read_labels
    from pocketgraph.freezing.ready_models import read_model

    found = [(one.path, os.path.relpath(one.path, photos).replace(os.sep, "/")) for one in photos_in(photos)]
    place = output or os.path.abspath(photos) + ".labels.jsonl"
    file = LabelsFile(place, names(classes) or (), boxes)
    if rater is None:
        rater = "rater"
        with contextlib.suppress(OSError, KeyError, ImportError):
            rater = getpass.getuser()
    suggested: Any = [None] * len(found)
    order = list(range(len(found)))
    if model:
        labeler = Labeler(read_model(model), read_labels(labels) if labels else (), **how)
        with progress_bar() as tell:
            suggested = suggestions(
                labeler, file.classes, [path for path, _ in found], lambda done, of: tell("photos", done, of)
            )
        order = in_doubt_first(suggested)
    if file.torn:
        echo(f"note: {file.torn} lines of {place} were left unfinished by a server that was killed", err=True)
    with contextlib.suppress(KeyboardInterrupt), self_signed(host in LOOPBACK) as (certificate, key):
        server = LabelServer(
            photos,
            [found[i][1] for i in order],
            file,
            rater,
            [suggested[i] for i in order],
            Place(host, port, certificate=certificate, key=key),
        )
        serve(server, f"{counted(len(found), 'photo')}, {len(file.of(rater))} of them judged by {rater}, are", browser)
    echo(f"{place}; next:")
    echo(f"  {export_command(place, photos, has_boxes=file.has_boxes)}")


@command.command("export")
@click.argument("labels")
@click.argument("photos")
@click.option(
    "--output",
    "-o",
    metavar="DIR|FILE",
    help="A new folder with one folder a class; a table, .csv; boxes as COCO, .json.",
)
def export(labels: str, photos: str, output: str | None) -> None:
    """Make a folder, a table or COCO's boxes of LABELS (of label), and say how far raters agree.

    Of several raters the majority counts, or what was settled on the page; photos without one are left out and named.

    \b
      pocketgraph dataset export photos.labels.jsonl photos/ -o flowers/
    """
    from pocketgraph.apps.embeddings import photos_in
    from pocketgraph.apps.labelling.exports import as_coco, as_csv, as_folders, resolve_labels
    from pocketgraph.apps.labelling.labels_file import LabelsFile
    from pocketgraph.apps.labelling.rater_agreement import agreement
    from pocketgraph.formats.files import check_place

    file = LabelsFile(labels, must_exist=True)
    inside = [os.path.relpath(one.path, photos).replace(os.sep, "/") for one in photos_in(photos)]
    settled, agreed = resolve_labels(file), agreement(file)
    judged = {*settled.judgements, *settled.skipped, *settled.disputed}
    left = sum(path not in judged for path in inside)
    echo(f"{counted(len(settled.judgements), 'photo')} labelled, {len(settled.skipped)} skipped, {left} not judged")
    counts = Counter(one.label for one in settled.judgements.values() if one.kind == "label")
    counts.update(box.label for one in settled.judgements.values() for box in one.boxes)
    for name in file.classes:
        echo(f"{counts[name]:6}  {name}")
    measure = "boxes with their like" if file.has_boxes else "Cohen's kappa"
    for one, other, count, value in agreed.pairs:
        echo(f"{one}, {other}: {measure} {value:.3f} of {counted(count, 'photo')} that both judged")
    if len(agreed.raters) > 2 and not file.has_boxes:
        echo(
            f"all {counted(len(agreed.raters), 'rater')}: Fleiss' kappa {agreed.fleiss:.3f} of "
            f"{counted(agreed.shared, 'photo')}"
        )
    for path in settled.disputed:
        echo(f"note: {path} is disputed and left out; settle it on the page of dataset label", err=True)
    if not output:
        return
    check_place(output)
    if output.endswith(".csv"):
        echo(f"{output}: {as_csv(settled, file, output)} rows")
    elif output.endswith(".json"):
        echo(f"{output}: {as_coco(settled, file, photos, output)} boxes")
    else:
        echo(f"{output}: {as_folders(settled, inside, photos, output)} photos; next:")
        echo(f"  pocketgraph dataset check {output}")
