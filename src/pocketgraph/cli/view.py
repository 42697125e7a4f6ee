"""``pocketgraph view``: a model as a page to walk through, or as a picture."""

from __future__ import annotations

import os

import click

from pocketgraph.cli._output import echo
from pocketgraph.errors import UsageError

ENDINGS = (".html", ".htm", ".svg", ".png")


@click.command("view")
@click.argument("model")
@click.option(
    "--output", "-o", default="", help="page.html, graph.svg or graph.png. Default: MODEL's name with .html, here."
)
@click.option("--measure", is_flag=True, help="Run the model on made-up inputs, and show what each node took.")
def command(model: str, output: str, measure: bool) -> None:
    """Draw MODEL as a page that opens in any browser, without a network; or as an SVG or PNG of all nodes.

    \b
      pocketgraph view small.pb
      pocketgraph view small.pb -o small.html --measure
      pocketgraph view small.pb -o small.svg
    """
    from pocketgraph.formats import load
    from pocketgraph.formats.files import check_place, write_atomically

    name = os.path.basename(os.path.normpath(model))
    output = output or f"{os.path.splitext(name)[0] or name}.html"
    ending = os.path.splitext(output)[1].lower()
    if ending not in ENDINGS:
        raise UsageError(f"a view is written as .html, .svg or .png, not as '{output}'", hint="-o page.html")
    check_place(output)
    trace = None
    if measure:
        if ending not in ENDINGS[:2]:
            raise UsageError("times are shown in the page only", hint="-o page.html, or without --measure")
        from pocketgraph.inspect.measured import measured

        graph, trace = measured(model)
    else:
        graph = load(model)
    if ending in ENDINGS[:2]:
        from pocketgraph.inspect.view.page import as_html

        write_atomically(output, as_html(graph, name, trace).encode("utf-8", "backslashreplace"))
        echo(f"{output}: {os.path.getsize(output):,} bytes; open it in a browser")
        return
    from pocketgraph.inspect.view.picture import as_png, as_svg, flat_picture

    picture = flat_picture(graph)
    write_atomically(
        output, as_svg(picture).encode("utf-8", "backslashreplace") if ending == ".svg" else as_png(picture)
    )
    left = f"; left out because there are too many: {picture.left_out:,}" if picture.left_out else ""
    echo(f"{output}: {len(picture.shown) - picture.left_out:,} of {len(graph):,} nodes, the others folded in{left}")
