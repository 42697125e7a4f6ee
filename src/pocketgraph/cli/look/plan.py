"""``pocketgraph plan``: which parts of a model run on which engine, and why not elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import say, threads_option
from pocketgraph.cli.shared.options import named_files, names, signature_option
from pocketgraph.cli.shared.output import NamesCell, echo, echo_json, escape, wide_console
from pocketgraph.errors import UsageError

if TYPE_CHECKING:
    from pocketgraph.runtime.description import Description

SAID = {"wrong": "DIFFERS from", "unclear": "cannot be compared on these feeds with"}
MOST_REASONS = 20  # rows of the table; the rest is one line


@click.command("plan")
@click.argument("model")
@click.option(
    "--inputs", "-i", multiple=True, metavar="NAME=1,224,224,3|NAME=FILE",
    help="An input's shape, or a file that has it; several times if need be. Default: as declared, 1 where open.",
)  # fmt: skip
@click.option("--outputs", "-o", default="", help="Comma list of tensors to compute. Default: the likely outputs.")
@click.option("--nodes", "all_nodes", is_flag=True, help="List every node that LiteRT does not run, with the reason.")
@click.option("--passes", "all_passes", is_flag=True, help="List every pass: its name, what it does, what it did here.")
@click.option(
    "--engine",
    metavar="NAME",
    help="auto: measure the installed engines on each large part and take the fastest; or one that is to run it all, "
    "such as litert or openvino.",
)
@click.option("--strict", is_flag=True, help="For a session that has TensorFlow's values for NaN and infinities too.")
@click.option(
    "--check",
    is_flag=True,
    help="Run once on made-up feeds and compare each compiled part with the reference "
    "engine; exit with 1 when one is wrong.",
)
@threads_option
@signature_option
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(
    model: str,
    inputs: tuple[str, ...],
    outputs: str,
    all_nodes: bool,
    all_passes: bool,
    check: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Show which parts of MODEL run on LiteRT, which on the reference engine, and why.

    \b
      pocketgraph plan small.pb
      pocketgraph plan small.pb --inputs=x=8,48,48,3 --nodes
    """
    from pocketgraph.apps.model_plan import plan

    files = [text for text in inputs if os.path.isfile(text.partition("=")[2] or text)]
    given = [*(shape_of(text) for text in inputs if text not in files), *named_files(files)]
    description = plan(model, given, names(outputs) or None, check=check, notify=say, **how)
    checked = description.checked
    if as_json:
        checks = {"checked": [{"part": part, "is": verdict} for part, verdict in checked]} if check else {}
        echo_json({**as_dict(description), **checks})
    else:
        show(description, model, all_nodes)
        show_passes(description, all_passes)
        if check:
            show_checked(checked)
    if any(verdict == "wrong" for _, verdict in checked):
        sys.exit(1)


def show_checked(checked: Sequence[tuple[str, str]]) -> None:
    """Prints what came of the comparisons."""
    if not checked:
        echo("No compiled part ran that could be compared.")
    for part, verdict in checked:
        echo(f"{part}: {'agrees with' if verdict == 'right' else SAID[verdict]} the reference engine")


def shape_of(text: str) -> tuple[str, tuple[int, ...]]:
    """``NAME=1,2,3`` taken apart; ``NAME=`` is a scalar.

    Raises:
        UsageError: it is not of that form.
    """
    name, equals, sizes = text.partition("=")
    try:
        if not equals:
            raise ValueError
        shape = tuple(int(size) for size in sizes.split(",") if size.strip())
        if any(size < 0 for size in shape):
            raise ValueError
    except ValueError:
        raise UsageError(f"'{text}' is no shape", hint="write --inputs=NAME=1,224,224,3") from None
    return name, shape


def as_dict(description: Description) -> dict[str, Any]:
    """The description for programs."""
    return {
        "feeds": {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in description.feeds.items()},
        "fetches": description.fetches,
        "parts": [
            {
                "runs_on": p.runs_on,
                "measured": p.measured,
                "when_it_runs": p.is_dynamic,
                "nodes": p.nodes,
                "inputs": p.inputs,
                "outputs": p.outputs,
            }
            for p in description.parts
        ],
        "reasons": dict(description.reasons),
        "passes": {"changed_the_graph": description.passes, "switched_off": description.without},
    }


def show(description: Description, model: str, all_nodes: bool) -> None:
    """Prints the parts and the reasons."""
    from rich.table import Table

    console = wide_console()
    feeds = ", ".join(f"{name} {dtype}{list(shape)}" for name, (dtype, shape) in description.feeds.items())
    console.print(escape(f"{model}: {', '.join(description.fetches)} from {feeds or 'no inputs'}"), soft_wrap=True)
    parts = Table(title="parts", title_justify="left")
    for title in ("runs on", "nodes", "takes", "gives"):
        parts.add_column(title, justify="right" if title == "nodes" else "left", no_wrap=title == "nodes")
    for part in description.parts:
        parts.add_row(escape(part.place), str(len(part.nodes)), brief(part.inputs), brief(part.outputs))
    console.print(parts)
    for place, part in enumerate(description.parts, 1):
        for line in part.measured:
            console.print(escape(f"part {place}: {line}"), soft_wrap=True)
    reasons = {name: reason for name, reason in description.reasons.items() if description.ops.get(name) != "Const"}
    if not reasons:
        whole = description.parts[0].runs_on if description.parts else "litert"
        console.print(escape(f"{'LiteRT' if whole == 'litert' else whole} runs all of it."))
        return
    table = Table(title="why not on LiteRT", title_justify="left")
    if all_nodes:
        for title in ("node", "op", "reason"):
            table.add_column(title, overflow="fold", no_wrap=title == "nodes")
        for name, reason in reasons.items():
            table.add_row(NamesCell(name), NamesCell(description.ops.get(name, "?")), escape(reason))
    else:
        for title in ("nodes", "op", "reason"):
            table.add_column(
                title, justify="right" if title == "nodes" else "left", overflow="fold", no_wrap=title == "nodes"
            )
        for count, op, reason in description.grouped()[:MOST_REASONS]:
            table.add_row(str(count), NamesCell(op), escape(reason))
    console.print(table)
    if not all_nodes and len(description.grouped()) > MOST_REASONS:
        console.print("More: pocketgraph plan --nodes lists every node.")


def show_passes(description: Description, all_passes: bool) -> None:
    """Prints the passes that changed the graph and those that are switched off, or all of them."""
    from rich.table import Table

    console = wide_console()
    if not all_passes:
        console.print(f"graph passes that changed something: {', '.join(description.passes) or 'none'}", soft_wrap=True)
        if description.without:
            console.print(f"passes switched off: {', '.join(description.without)}", soft_wrap=True)
        return
    from pocketgraph.runtime import pass_registry

    table = Table(title="passes", title_justify="left")
    for title in ("pass", "over", "what it does", "here"):
        table.add_column(title, overflow="fold")
    for row in pass_registry.all_passes():
        here = "changed it" if row.name in description.passes else "" if row.over == pass_registry.GRAPH else "on"
        table.add_row(row.name, row.over, row.does, "off" if row.name in description.without else here)
    console.print(table)


def brief(tensors: tuple[str, ...]) -> NamesCell:
    """Some tensor names, and how many more."""
    return NamesCell(*tensors[:4], rest=f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")
