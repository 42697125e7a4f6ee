"""freeze_graph: one graph with constants out of a training graph and its checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from pocketgraph.cli.shared.options import flag_bool, names, one_file
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import FormatError, FreezeError, UsageError

MOST_OF_A_KIND = 3  # lines about repairs that differ in names alone
_UNUSED = "Accepted and not used, as in the original."


@click.command("freeze_graph")
@click.argument("path", required=False, default="", metavar="[DIR|GRAPH]")
@click.option("--input_graph", default="", help="GraphDef file, binary or text.")
@click.option("--input_saver", default="", help="SaverDef file: which saver wrote the checkpoint.")
@click.option(
    "--input_checkpoint", "--checkpoint", default="",
    help="Checkpoint: its prefix, .index file or directory. Default: the latest one beside the graph.",
)  # fmt: skip
@click.option("--checkpoint_version", type=int, default=2, help="1 or 2; both are recognised.")
@click.option("--output_graph", "--output", "-o", default="", help="Where the frozen graph goes; text if .pbtxt.")
@flag_bool("--input_binary", help="Accepted; the content decides.", expose_value=False)
@click.option(
    "--output_node_names", "--outputs", default="",
    help="Output nodes, with commas. Default: the one that stands out, if there is one.",
)  # fmt: skip
@click.option("--restore_op_name", default="save/restore_all", help=_UNUSED, expose_value=False)
@click.option("--filename_tensor_name", default="save/Const:0", help=_UNUSED, expose_value=False)
@flag_bool("--clear_devices", default=True, help="Drop the device of every node.")
@click.option("--initializer_nodes", default="", help="Ops to be run after restoring.")
@click.option(
    "--variable_names_whitelist", "--variable_names_allowlist", default="",
    help="Freeze only these variables, with commas.",
)  # fmt: skip
@click.option(
    "--variable_names_blacklist", "--variable_names_denylist",
    default="", help="Do not freeze these variables, with commas.",
)  # fmt: skip
@click.option("--input_meta_graph", default="", help="MetaGraphDef file (.meta).")
@click.option("--input_saved_model_dir", default="", help="Directory of a SavedModel.")
@click.option("--saved_model_tags", default="serve", show_default=True, help="Its tags, with commas.")
@click.option("--signature", default="", help="Which signature gives the inputs and outputs.")
@click.option(
    "--bind", multiple=True, metavar="NAME=VALUE",
    help="Fix an input, such as phase_train=false or keep_prob=1.0, and take the branches out that this decides. "
    "May be repeated.",
)  # fmt: skip
@click.option(
    "--repair", is_flag=False, flag_value="all", default="", metavar="[NAMES]",
    help="Repair what training left behind: flags, inputs, updates, references, dropout, with commas; all if none is "
    "named.",
)  # fmt: skip
@click.option(
    "--functional_control_flow", "control_flow", type=click.Choice(["lower", "keep"]), default=None,
    help="If, Case and While of TensorFlow 2: make them TensorFlow 1's, or keep them. Default: lower for a SavedModel.",
)  # fmt: skip
@flag_bool("--allow_training_batch_norm", help="Freeze batch norms that use the statistics of the batch.")
@flag_bool("--moving_averages", help="Take the moving averages that training kept of variables, not their last values.")
def command(
    path: str,
    input_graph: str,
    input_saver: str,
    input_checkpoint: str,
    checkpoint_version: int,
    output_graph: str,
    output_node_names: str,
    input_meta_graph: str,
    input_saved_model_dir: str,
    saved_model_tags: str,
    signature: str,
    bind: tuple[str, ...],
    repair: str,
    **how: Any,
) -> None:
    """Make one graph with constants out of a training graph and its checkpoint.

    \b
      pocketgraph freeze_graph training/ -o frozen.pb
      pocketgraph freeze_graph --input_graph=training/graph.pbtxt --input_checkpoint=training/model.ckpt-1000 \\
        --output_node_names=softmax --output_graph=frozen.pb
      pocketgraph freeze_graph saved_model/ -o frozen.pb --signature=serving_default
      pocketgraph freeze_graph training/ -o frozen.pb --bind is_training=false --repair
    """
    from pocketgraph import formats
    from pocketgraph.freezing.binding import split
    from pocketgraph.freezing.tool import freeze_with_report
    from pocketgraph.freezing.training_dir import names_checkpoint

    if checkpoint_version not in (1, 2):
        raise UsageError(f"Invalid checkpoint version (must be '1' or '2'): {checkpoint_version}")
    whitelist = how.pop("variable_names_whitelist")
    _check_files(
        {"graph": "" if input_saved_model_dir else input_graph, "meta graph": input_meta_graph, "saver": input_saver}
    )
    if (input_graph or input_meta_graph) and not input_checkpoint and (os.path.isdir(path) or names_checkpoint(path)):
        path, input_checkpoint = "", path  # values alone, whose graph is elsewhere, as errors say to type
    source = _checked_source(one_file(path, input_saved_model_dir or input_meta_graph or input_graph))
    if not output_graph:
        raise UsageError("no place for the frozen graph was named", hint="add -o frozen.pb")
    frozen = freeze_with_report(
        source,
        names(output_node_names) or None,
        (input_checkpoint or None) if source != input_saved_model_dir else None,
        variable_names_whitelist=names(whitelist) if whitelist else None,
        variable_names_blacklist=names(how.pop("variable_names_blacklist")),
        initializer_nodes=names(how.pop("initializer_nodes")),
        saver=_saver(input_saver or input_meta_graph),
        tags=saved_model_tags if saved_model_tags != "serve" else None,
        signature=signature or None,
        bind=dict(map(split, bind)),
        repair=repair or False,
        **how,
    )
    if input_meta_graph:
        echo(f"Loaded meta graph file '{input_meta_graph}")  # the original leaves the quote open too
    formats.save(frozen.graph, output_graph, text=output_graph.endswith(".pbtxt"))
    if frozen.source != source or frozen.checkpoint != input_checkpoint:
        echo(f"Froze {frozen.source}" + (f" with {frozen.checkpoint}" if frozen.checkpoint else ""))
    echo(f"Froze {len(frozen.variables)} variables.")
    echo(f"Converted {len(frozen.variables)} variables to const ops.")
    echo(f"{len(frozen.graph)} ops in the final graph.")
    if not output_node_names:
        echo(f"Output: {', '.join(frozen.graph.outputs)}")
    for line in first_of_a_kind(frozen.repaired):
        echo(f"repaired: {line}")
    for warning in frozen.warnings:
        echo(f"warning: {warning}", err=True)


def first_of_a_kind(lines: Sequence[str]) -> Iterator[str]:
    """At most MOST_OF_A_KIND of the lines that differ in names alone, and how many more there are."""
    kinds: dict[str, list[str]] = {}
    for line in lines:
        kinds.setdefault(re.sub(r"'[^']*'|\(\w+ to ", "", line), []).append(line)
    for alike in kinds.values():
        *shown, last = alike[:MOST_OF_A_KIND]
        yield from shown
        more = len(alike) - MOST_OF_A_KIND
        yield f"{last} (and {more} more like it)" if more > 0 else last


def _check_files(files: Mapping[str, str]) -> None:
    """Refuses a file that does not exist, in the words of the original; by what it is, "" where none is named."""
    from pocketgraph.formats.files import near

    for kind, file in files.items():
        if file and not os.path.exists(file):
            raise FreezeError(f"Input {kind} file '{file}' does not exist!", hint=near(file))


def _checked_source(source: str) -> str:
    from pocketgraph.formats.files import near

    if not source:
        raise UsageError(
            "nothing to freeze was named", hint="give a training directory, or --input_graph and --input_checkpoint"
        )
    if not os.path.exists(source) and not os.path.exists(source + ".index"):
        raise FreezeError(f"'{source}' does not exist", hint=near(source))
    return source


def _saver(file: str) -> str | None:
    """The scope of the saver that a SaverDef or MetaGraphDef file names."""
    if not file:
        return None
    from pocketgraph.formats.saver_def import restore_op

    try:
        return restore_op(file).rpartition("/")[0]
    except FormatError:
        return ""
