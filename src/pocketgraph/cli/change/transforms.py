"""``pocketgraph transforms``: every rule with its parameters and one line, or all about one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.options import names as listed
from pocketgraph.cli.shared.output import echo, echo_json, escape, wide_console

if TYPE_CHECKING:
    from pocketgraph.inspect.rule_page import Page

NAMES = 28  # columns; the few names that are longer go on in the next line


@click.command("transforms")
@click.argument("name", required=False)
@click.option("--rules", multiple=True, metavar="FILE.py", help="Run this Python file, and show its rules, too.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(name: str | None, rules: tuple[str, ...], as_json: bool) -> None:
    """List the transforms of transform_graph, or tell all about one.

    \b
      pocketgraph transforms
      pocketgraph transforms fold_batch_norms
    """
    from pocketgraph.inspect.rule_page import page_of
    from pocketgraph.transforms import tool
    from pocketgraph.transforms.rule_files import load_file

    for path in rules:
        load_file(path)
    if name is not None:
        for one in listed(name):
            page = page_of(tool.find(one.partition("(")[0]))
            echo_json(as_dict(page)) if as_json else show(page)
        return
    pages = [page_of(tool.find(rule)) for rule in tool.names()]
    if as_json:
        echo_json([as_dict(page) for page in pages])
    else:
        show_all(pages)


def as_dict(page: Page) -> dict[str, Any]:
    """A page for programs."""
    return {
        "name": page.name,
        "summary": page.summary,
        "parameters": [
            {
                "name": p.name,
                "type": p.kind.__name__,
                "default": list(p.default) if isinstance(p.default, tuple) else p.default,
                "required": p.required,
                "repeated": p.repeated,
                "meaning": page.meanings.get(p.name, ""),
            }
            for p in page.parameters
        ],
        "given": page.given,
        "call": page.call,
        "result": page.result,
        "text": list(page.text),
        "differs": page.differs,
    }


def show_all(pages: list[Page]) -> None:
    """Prints the table of all rules."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from pocketgraph.inspect.rule_page import spelled

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("transform", overflow="fold", max_width=NAMES)
    table.add_column("what it does, and its parameters", ratio=1)
    for page in pages:
        parameters = ", ".join(spelled(p) for p in page.parameters)
        text = escape(page.summary.replace("``", "")) + (f"\n[dim]{escape(parameters)}[/dim]" if parameters else "")
        table.add_row(page.name, text)
    wide_console().print(table)
    echo("Every transform takes ignore_errors=true. All about one, as in: pocketgraph transforms fold_constants")


def show(page: Page) -> None:
    """Prints one rule's page."""
    from pocketgraph.inspect.rule_page import spelled

    echo(click.wrap_text(f"{page.name}: {page.summary.replace('``', '')}", 100))
    for paragraph in page.text:
        _paragraph(paragraph)
    if page.parameters:
        echo("\nParameters:")
        for p in page.parameters:
            echo(f"  {spelled(p)}")
            if page.meanings.get(p.name):
                echo(click.wrap_text(page.meanings[p.name], 100, "      ", "      "))
    if page.given:
        echo(f"\nGiven:\n{_indented(page.given)}")
        echo(f"\nTransforms:\n{_indented(page.call)}")
        echo(f"\nResult:\n{_indented(page.result)}")
    if page.differs:
        _paragraph(f"Differs from the original: {page.differs}")


def _paragraph(text: str) -> None:
    echo("\n" + click.wrap_text(text.replace("``", ""), 100))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
