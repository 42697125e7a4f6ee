"""``pocketgraph export``: a model in the form that a device runs, with the proof that it is the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import data_options, export_options, fixed_shape_option, say
from pocketgraph.cli.shared.listing_command import ListingCommand
from pocketgraph.cli.shared.options import Truth, labels_option, takes_both_spellings
from pocketgraph.cli.shared.output import echo
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.exporting import Exported


class _ExportCommand(ListingCommand):
    """The command with the options of all targets: the keyword arguments of their exporters."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options and those of the targets, once each."""
        return [*super().get_params(ctx), *_target_options()]


def _targets(formatter: click.HelpFormatter) -> None:
    """The targets with their options."""
    from pocketgraph.exporting.target_options import options_of
    from pocketgraph.exporting.targets import TARGETS

    with formatter.section("Targets"):
        rows = []
        for target in TARGETS.values():
            taken = " ".join(f"--{option}" for option in options_of(target))
            suffixes = f" ({', '.join(target.suffixes)})" if target.suffixes else ""
            rows.append((f"{target.name}{suffixes}", f"{target.summary}. {taken}"))
        formatter.write_dl(rows)


_made: list[click.Parameter] = []


def _target_options() -> list[click.Parameter]:
    from pocketgraph.exporting.target_options import options_of
    from pocketgraph.exporting.targets import TARGETS

    if not _made:
        seen: dict[str, list[str]] = {}
        helps: dict[str, tuple[str, bool, str]] = {}
        for target in TARGETS.values():
            for option in options_of(target).values():
                seen.setdefault(option.name, []).append(target.name)
                metavar = "|".join(map(str, option.choices)) or option.kind.__name__.upper()
                helps.setdefault(option.name, (option.help, option.kind is bool, metavar))
        for name, (text, is_flag, metavar) in helps.items():
            spellings = [f"--{name}", f"option_{name}"]
            help_text = f"[{', '.join(seen[name])}] {text}"
            if is_flag:
                made = click.Option(spellings, is_flag=False, flag_value="true", type=Truth(), help=help_text)
            else:
                made = click.Option(spellings, metavar=metavar, help=help_text)
            takes_both_spellings(made)
            _made.append(made)
    return list(_made)


@click.command("export", cls=_ExportCommand, listing=_targets)
@click.argument("model")
@click.option("-o", "--output", "out", required=True, metavar="FILE|DIR", help="The file or folder to write.")
@click.option("--target", help="What to write; by default what the suffix of OUTPUT means.")
@click.option(
    "--data", "--samples", "samples", metavar="DIR|NPZ|LIST", help="Realistic inputs to check and calibrate with."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many of them.")
@click.option("--signatures", "--signature", "signatures", help="Keys of signatures to take, by commas; default: all.")
@fixed_shape_option
@labels_option()
@click.option("--calibration", help="Score calibration, scale,slope,offset of each class, one a line.")
@click.option("--name", default="", help="The model's name, for the file's metadata.")
@click.option("--description", default="", help="What the model does, for the file's metadata.")
@click.option("--model_version", default="", help="The model's version, for the file's metadata.")
@click.option("--author", default="", help="Who made the model, for the file's metadata.")
@click.option("--license", "license_text", default="", help="The model's licence, for the file's metadata.")
@click.option("--tolerance", type=float, help="Largest difference from the graph, as a share of the output's peak.")
@click.option("--keep_dropout", is_flag=True, help="Keep a dropout, or noise, that training left on; for ONNX.")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@data_options
def command(
    model: str, out: str, name: str, description: str, model_version: str, author: str, license_text: str, **how: Any
) -> None:  # fmt: skip
    """Write MODEL in a form that a device runs: a frozen graph, or the directory of a SavedModel or training.

    The target follows from the suffix of OUTPUT. What was written is run beside the reference engine, where it can run
    here, on --data or made-up inputs; past the tolerance no file stays.

    \b
      pocketgraph export frozen.pb -o model.tflite --labels=labels.txt --preset=mobilenet --data=photos/
      pocketgraph export frozen.pb -o small.tflite --mode=static --data=photos/
      pocketgraph export saved_model/ -o model.tflite --mode=float16
    """
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.exporting import About, export

    about = About(name, description, model_version, author, license_text)
    said = {option.removeprefix("option_"): value for option, value in export_options(how).items()}
    with progress_bar() as tell:
        made = export(model, out, about=about, progress=tell, notify=say, **said)
    _show(made)


def _show(made: Exported) -> None:
    """Prints what was written and how far it is from the graph."""
    for item in made.checks:
        inputs = "made-up inputs" if item.is_made else f"{item.runs} sample{'s' * (item.runs != 1)}"
        time = "" if item.milliseconds is None else f"{item.milliseconds:.3g} ms a run here; "
        echo(f"{item.entry}: {time}on {inputs}:")
        for output in item.outputs:
            shape = ",".join(map(str, output.shape))
            if output.unproven:
                echo(f"  {output.name} [{shape}]: not proven: it {output.unproven} here{item.advice}")
                continue
            same = "" if output.top1 is None else f", same largest in {output.top1:.0%} of rows"
            echo(
                f"  {output.name} [{shape}]: difference at most {output.largest:.3g} ({output.largest_relative:.2g} of "
                f"the peak), {output.mean_relative:.2g} of the peak in the mean{same}"
            )
    if made.unchecked:
        echo(f"{'note' if made.checks else 'not run here'}: {made.unchecked}")
    for note in made.notes:
        echo(note if note.startswith("warning:") else f"note: {note}", err=True)
    count = f", {counted(len(made.files), 'file')}" if len(made.files) > 1 else ""
    echo(f"written: {made.path}{count}, {made.bytes:,} bytes")
