"""``pocketgraph view``: a model as a page to walk through, or as a picture."""

from __future__ import annotations

import os

import click

from pocketgraph.cli.shared.options import default_place
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError
from pocketgraph.pages.quantities import counted

PAGES = (".html", ".htm")
ENDINGS = (*PAGES, ".svg", ".png")
OWN = b'<body class="pocketgraph view">'
"""In each page of it."""


@click.command("view")
@click.argument("model")
@click.option(
    "--output", "-o", default="", help="page.html, graph.svg or graph.png. Default: MODEL's name with .html, here."
)
@click.option("--measure", is_flag=True, help="Run the model on made-up inputs: what each node took, on which engine.")
@click.option("--compare", metavar="OTHER", help="Show MODEL and OTHER side by side: what vanished, came and changed.")
@click.option("--quantization", metavar="REPORT.json", help="Show what eight bits lost, from the report of quantize.")
def command(model: str, output: str, measure: bool, compare: str | None, quantization: str | None) -> None:
    """Draw MODEL as a page that opens in any browser, without a network; or as an SVG or PNG of all nodes.

    \b
      pocketgraph view small.pb
      pocketgraph view small.pb -o small.html --measure
      pocketgraph view frozen.pb --compare=small.pb -o difference.html
      pocketgraph view frozen.pb --quantization=small.report.json
      pocketgraph view small.pb -o small.svg
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import check_place, write_atomically

    name = os.path.basename(os.path.normpath(model))
    output = output or default_place(f"{os.path.splitext(name)[0] or name}.html", OWN)
    ending = os.path.splitext(output)[1].lower()
    if ending not in ENDINGS:
        raise UsageError(f"a view is written as .html, .svg or .png, not as '{output}'", hint="-o page.html")
    more = [
        flag
        for flag, given in (("--measure", measure), ("--compare", compare), ("--quantization", quantization))
        if given
    ]
    if more and ending not in PAGES:
        raise UsageError(f"{more[0]} is for pages", hint=f"-o page.html, or without {more[0]}")
    check_place(output)
    if ending in PAGES:
        from pocketgraph.inspect.view.viewing import view

        view(model, compare=compare, measure=measure, quantization=quantization, notify=say).save(output)
        echo(f"{output}: {os.path.getsize(output):,} bytes; open it in a browser")
        return
    from pocketgraph.freezing.ready_models import read_directory
    from pocketgraph.inspect.view.static_picture import as_png, as_svg, flat_picture

    graph = read_directory(model, notify=say)
    picture = flat_picture(graph)
    write_atomically(
        output, as_svg(picture).encode("utf-8", "backslashreplace") if ending == ".svg" else as_png(picture)
    )
    left = f"; left out because there are too many: {picture.left_out:,}" if picture.left_out else ""
    echo(
        f"{output}: {len(picture.shown) - picture.left_out:,} of {counted(len(graph), 'node')}, the "
        f"others folded in{left}"
    )
