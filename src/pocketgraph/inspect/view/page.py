"""Writes a graph as one HTML page that asks nobody for anything and works from a file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

from pocketgraph.errors import printable
from pocketgraph.graph import Graph
from pocketgraph.inspect.op_families import COLORS, family
from pocketgraph.inspect.view.nodes import LARGE, Shown, functions_as_graphs, shown_nodes
from pocketgraph.inspect.view.scopes import Scope, nested_scopes, sizes_of
from pocketgraph.runtime import StepTrace

MOST_FUNCTIONS = 200  # in a page
LONGEST = 4_000  # letters of a name
FILES = ("page.js", "page.css")
FAMILIES = {name: number for number, name in enumerate(COLORS)}


def as_html(graph: Graph, title: str, trace: StepTrace | None = None) -> str:
    """The page: scopes that open on a click, what each node costs, search.

    Names of the model are data in it, never markup or code; a content security policy allows no script but the
    page's own.

    Args:
        graph: any graph.
        title: the model's file.
        trace: a run of the graph, for times.
    """
    data = page_data(graph, title, trace)
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    script, style = (resources.files("pocketgraph.inspect.view").joinpath(f).read_text("utf-8") for f in FILES)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data: blob:"
    shown_title, summary = escape(printable(title)), escape(data["summary"])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown_title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header><h1 title="{shown_title}">{shown_title}</h1><span id="summary" title="{summary}">{summary}</span>'
        '<select id="graphs" aria-label="graph or function"></select>'
        '<input id="search" type="search" placeholder="name, op or shape" aria-label="search by name, op or shape">'
        '<select id="color" aria-label="colour by"><option value="family">op family</option></select>'
        '<select id="save" aria-label="save the picture"><option value="">save…</option><option value="svg">'
        'SVG</option><option value="png">PNG</option></select>'
        '<button id="fit" type="button">fit</button>'
        '<button id="theme" type="button" aria-label="light or dark">◐</button></header>\n'
        '<main id="stage"><canvas id="canvas" tabindex="0" role="img" aria-label="the graph; arrow keys go along its '
        'edges"></canvas><div id="legend"></div><div id="tip" role="tooltip"></div></main>\n'
        '<aside id="panel" aria-live="polite"></aside>\n'
        f'<script type="application/json" id="data">{text}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def page_data(graph: Graph, title: str, trace: StepTrace | None = None) -> dict[str, Any]:
    """What the page shows, as JSON has it: graphs with nodes, scopes and their places; notes of what is left out."""
    main, left_out = _graph_data("main graph", graph, trace)
    graphs, notes = [main], []
    bodies = list(functions_as_graphs(graph))
    for name, body in bodies[:MOST_FUNCTIONS]:
        made, missing = _graph_data(name, body, None)
        graphs.append(made)
        left_out += missing
    if left_out:
        notes.append(
            f"Left out of this page, which would be too large: {left_out:,} nodes. Boxes without + stay closed."
        )
    if len(graph) > LARGE:
        notes.append(f"Shapes and operations are not worked out for graphs of more than {LARGE:,} nodes.")
    if len(bodies) > MOST_FUNCTIONS:
        notes.append(f"{len(bodies) - MOST_FUNCTIONS:,} of {len(bodies):,} functions are left out.")
    shown = len(main["nodes"])
    summary = f"{len(graph):,} nodes, {shown:,} shown; constants and variables are folded into their readers"
    if bodies:
        summary += f"; {len(bodies):,} functions"
    return {
        "title": printable(title),
        "summary": summary,
        "notes": notes,
        "families": list(COLORS.items()),
        "graphs": graphs,
    }


def _graph_data(name: str, graph: Graph, trace: StepTrace | None) -> tuple[dict[str, Any], int]:
    shown, edges = shown_nodes(graph, trace)
    scopes, left_out = nested_scopes(shown, edges)
    kept = sorted(item.number for scope in scopes for item in scope.items if item.kind == 0)
    number = {old: new for new, old in enumerate(kept)}
    return {
        "name": _cut(name),
        "nodes": [_node(shown[old], number) for old in kept],
        "scopes": [_scope(scopes, scope, shown, number) for scope in scopes],
    }, left_out


def _node(one: Shown, number: dict[int, int]) -> list[Any]:
    node = one.node
    inputs = [[_cut(ref), number.get(source, -1), carried] for ref, source, carried in one.inputs]
    return [
        _cut(node.name), _cut(node.op), FAMILIES[family(node.op)], _cut(node.device), inputs, one.outputs,
        [[_cut(key), value] for key, value in one.attributes], one.weights, one.memory, one.flops,
        round(one.microseconds, 2), one.calls, one.engine,
    ]  # fmt: skip


def _scope(scopes: Sequence[Scope], scope: Scope, shown: Sequence[Shown], number: dict[int, int]) -> list[Any]:
    items, links, layout = [], [], scope.layout
    if layout is not None:
        sizes = sizes_of(scopes, scope, shown)
        items = [
            [item.kind, number[item.number] if item.kind == 0 else item.number, x, y, w, h]
            for item, x, y, (w, h) in zip(scope.items, layout.x, layout.y, sizes, strict=True)
        ]
        links = [
            [link.source, link.target, int(link.control), link.label, link.count, route]
            for link, route in zip(scope.links, layout.routes, strict=True)
        ]
    size = (layout.width, layout.height) if layout is not None else (0, 0)
    return [_cut(scope.path), _cut(scope.label), scope.parent, scope.nodes, int(scope.is_open), items, links, *size]


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
