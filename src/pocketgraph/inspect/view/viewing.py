"""The public door of views: a model in, a page out, for a file or a notebook."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from pocketgraph.errors import UsageError
from pocketgraph.formats.files import write_atomically
from pocketgraph.freezing.ready_models import Tell, read_directory
from pocketgraph.graph import Graph
from pocketgraph.inspect.node_times import measured
from pocketgraph.inspect.view.changes import AppliedRule
from pocketgraph.inspect.view.overlay import Overlay, OverlayFigures, read_layers
from pocketgraph.inspect.view.page import as_comparison, as_html
from pocketgraph.pages.quantities import bytes_text

Model = Graph | str | os.PathLike[str]
MOST_BYTES = 8_000_000  # of a page in a notebook, which is kept with it
HEIGHT = 640  # pixels of it there


@dataclass(frozen=True)
class ViewPage:
    """A page to walk through a model; in a notebook it shows itself.

    Attributes:
        page: the HTML.
    """

    page: str = field(repr=False)

    def __repr__(self) -> str:
        return f"<ViewPage: {bytes_text(len(self.page))}; save('page.html') writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, whole or not at all.

        Raises:
            UsageError: the path does not end in ``.html``.
        """
        place = os.fspath(path)
        if not place.lower().endswith((".html", ".htm")):
            raise UsageError(f"a page is written as .html, not as '{place}'")
        write_atomically(place, self.page.encode("utf-8", "backslashreplace"))

    def _repr_html_(self) -> str:
        if len(self.page) > MOST_BYTES:
            return f"<p>A page of {len(self.page):,} letters, too large for a notebook: save(&quot;page.html&quot;)</p>"
        style = f"width:100%;height:{HEIGHT}px;border:1px solid #ccc"
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{_quoted(self.page)}"></iframe>'
        )


def view(
    model: Model,
    *,
    compare: Model | None = None,
    measure: bool = False,
    quantization: str | os.PathLike[str] | None = None,
    notify: Tell | None = None,
) -> ViewPage:
    """Draws a model as a page that opens in any browser, without a network.

    >>> from pocketgraph.graph.text_format import parse
    >>> page = view(parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu(x, T=float)"))
    >>> page.save("relu.html")

    Args:
        model: a Graph, or a file or folder of any form that ``pocketgraph.load`` takes.
        compare: another one, to be shown beside it: what vanished, came and changed.
        measure: run it on made-up inputs, and show what each node took and on which engine.
        quantization: the ``.json`` file beside the report of ``quantize``, to show what eight bits lost.
        notify: told what was done to a training or a SavedModel, which is frozen first, a sentence each.

    Returns:
        The page, which ``save`` writes and a notebook shows.

    Raises:
        FormatError: a file is no model, or no such report.
        UsageError, RunError: with ``measure``, the model cannot be run on made-up inputs.
    """
    layers = read_layers(os.fspath(quantization)) if quantization is not None else {}
    graph, overlay = _opened(model, measure, layers, notify)
    if compare is None:
        return ViewPage(as_html(graph, _name(model), overlay))
    other, beside = _opened(compare, measure, layers, notify)
    title = f"{_name(model)} → {_name(compare)}"
    return ViewPage(as_comparison([AppliedRule("", graph, other)], title, (overlay, beside)))


def _opened(
    model: Model, measure: bool, layers: dict[str, OverlayFigures], notify: Tell | None
) -> tuple[Graph, Overlay]:
    if measure:
        graph, trace, description = measured(model, notify)
        return graph, Overlay(trace, description, layers)
    return model if isinstance(model, Graph) else read_directory(model, notify=notify), Overlay(layers=layers)


def _name(model: Model) -> str:
    return "graph" if isinstance(model, Graph) else os.path.basename(os.path.normpath(model))


def _quoted(page: str) -> str:
    """The page as an attribute's value."""
    return page.replace("&", "&amp;").replace('"', "&quot;")
