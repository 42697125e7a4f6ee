"""``pocketgraph help``: the guides of the documentation, and what ``--help`` tells of a command."""

from __future__ import annotations

import re
import sys

import click

from pocketgraph.cli.shared.guides import guides, guides_by_heading
from pocketgraph.cli.shared.output import WIDTH, echo, wide_console
from pocketgraph.errors import UsageError, did_you_mean


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(context: click.Context, topic: str | None) -> None:
    """Read the guide on TOPIC, or what --help tells of the command TOPIC; without one: the list of guides.

    \b
      pocketgraph help
      pocketgraph help quantization
    """
    if topic is None:
        echo("Guides, in the order in which a model meets them; `pocketgraph help TOPIC` shows one,")
        echo("`pocketgraph COMMAND --help` tells all of a command. A newcomer begins with `pocketgraph help tutorial`.")
        for heading, names in guides_by_heading().items():
            echo(f"\n{heading}:")
            for name, text in names.items():
                echo(f"  {name:<18}{text}")
        return
    name = topic.removesuffix(".md")
    for spelling in (name, name.replace("_", "-"), name.replace("-", "_")):
        if spelling in guides():
            show(guides()[spelling])
            return
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, click.Group)
    found = group.get_command(context, topic)
    if found is None:
        hint = did_you_mean(topic, [*guides(), *group.list_commands(context)])
        raise UsageError(f"there is no guide or command '{topic}'", hint=hint or "pocketgraph help lists them")
    name = found.name or topic
    echo(found.get_help(click.Context(found, info_name=name, parent=context.parent)))


def show(text: str) -> None:
    """Prints a guide, laid out on a terminal and as it is elsewhere."""
    text = re.sub(r"^<!--.*-->\n+", "", text, flags=re.MULTILINE)  # notes for the tests
    if not sys.stdout.isatty():
        echo(text)
        return
    from rich.markdown import Markdown

    console = wide_console()
    console.print(Markdown(text, hyperlinks=False), width=min(console.width, WIDTH))
