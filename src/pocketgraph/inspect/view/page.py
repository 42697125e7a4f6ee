"""Writes a graph, or two beside each other, as one HTML page that asks nobody for anything and works from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pocketgraph.errors import printable
from pocketgraph.graph import Graph
from pocketgraph.graph.function_body import called_functions
from pocketgraph.inspect.op_families import COLORS, family
from pocketgraph.inspect.view.changes import KINDS, AppliedRule, Change, changes, changes_of_chain
from pocketgraph.inspect.view.nodes import LARGE, NOTHING, Shown, functions_as_graphs, shown_nodes
from pocketgraph.inspect.view.overlay import Overlay
from pocketgraph.inspect.view.scope import Scope
from pocketgraph.inspect.view.scopes import nested_scopes, sizes_of
from pocketgraph.package_data import text_beside
from pocketgraph.pages.document import document
from pocketgraph.pages.quantities import counted

MOST_FUNCTIONS = 200  # in a page
MOST_IN_CHAIN = 40_000  # nodes of all graphs of a chain; of more only the first and the last are shown
LONGEST = 4_000  # letters of a name
SCRIPTS = ("scene.js", "draw.js", "panel.js", "page.js")
FAMILIES = {name: number for number, name in enumerate(COLORS)}


def as_html(graph: Graph, title: str, overlay: Overlay = NOTHING) -> str:
    """The page: scopes that open on a click, what each node costs, search.

    Names of the model are data in it, never markup or code; a content security policy allows no script but the
    page's own.

    Args:
        graph: any graph.
        title: the model's file.
        overlay: what is known of its nodes beside it.
    """
    return _page(page_data(graph, title, overlay))


def as_comparison(steps: Sequence[AppliedRule], title: str, overlays: Sequence[Overlay] = ()) -> str:
    """The page with two graphs side by side, what is different in colours.

    Args:
        steps: what was done one after the other, at least one step; each can be looked at, and the whole.
        title: of the page.
        overlays: what is known of the first graph and of the last.
    """
    return _page(comparison_data(steps, title, overlays))


def _page(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    script = "".join(text_beside(__file__, name) for name in SCRIPTS)
    shown_title, summary = escape(data["title"]), escape(data["summary"])
    header = (
        f'<header><h1 title="{shown_title}">{shown_title}</h1><span id="summary" title="{summary}">{summary}</span>'
        '<select id="graphs" aria-label="graph or function"></select>'
        '<select id="steps" aria-label="which rule"></select>'
        '<input id="search" type="search" placeholder="name, op or shape" aria-label="search by name, op or shape">'
        '<select id="color" aria-label="colour by"></select>'
        '<select id="save" aria-label="save the picture"><option value="">save…</option><option value="svg">'
        'SVG</option><option value="png">PNG</option></select>'
        '<button id="fit" type="button">fit</button>'
        '<button id="theme" type="button" aria-label="light or dark">◐</button></header>'
    )
    pane = (
        '<div class="pane"><div class="caption"></div><canvas tabindex="0" role="img" '
        'aria-label="the graph; arrow keys go along its edges"></canvas></div>'
    )
    body = (
        f'{header}\n<main id="stage"><div id="panes">{pane * (2 if data["steps"] else 1)}</div>'
        '<div id="legend"></div><div id="tip" role="tooltip"></div></main>\n'
        f'<aside id="panel" aria-live="polite"></aside>\n<script type="application/json" id="data">{text}</script>'
    )
    return document(data["title"], body, script=script, style=text_beside(__file__, "page.css"), kind="view")


def page_data(graph: Graph, title: str, overlay: Overlay = NOTHING) -> dict[str, Any]:
    """What the page shows, as JSON has it: graphs with nodes, scopes and their places; notes of what is left out."""
    main, names, left_out = _graph_data("main graph", graph, overlay)
    graphs = [main]
    bodies = list(functions_as_graphs(graph))
    for name, body in bodies[:MOST_FUNCTIONS]:
        made, _, missing = _graph_data(name, body, NOTHING)
        graphs.append(made)
        left_out += missing
    notes = _notes([graph], left_out)
    if len(bodies) > MOST_FUNCTIONS:
        notes.append(f"Left out: {len(bodies) - MOST_FUNCTIONS:,} of {len(bodies):,} functions.")
    notes += [f"Times: {note}." for note in (overlay.trace.notes if overlay.trace is not None else ())]
    if overlay.layers and not any(name in overlay.layers for name in names):
        notes.append("None of the layers in the report of quantize is in this graph: is it of another model?")
    summary = (
        f"{counted(len(graph), 'node')}, {len(main['nodes']):,} shown; constants and variables are "
        "folded into their readers"
    )
    if bodies:
        summary += f"; {counted(len(bodies), 'function')}"
    return _data(title, summary, notes, graphs, [])


def comparison_data(steps: Sequence[AppliedRule], title: str, overlays: Sequence[Overlay] = ()) -> dict[str, Any]:
    """What the page with two graphs shows: ``steps`` says which graphs, and what became of each node."""
    whole = AppliedRule("", steps[0].before, steps[-1].after)
    rules = len(steps)
    by_step = [changes(step.before, step.after) for step in steps]
    is_cut = rules > 1 and len(whole.before) + sum(len(step.after) for step in steps) > MOST_IN_CHAIN
    pairs = [(whole, changes_of_chain(steps, by_step))]
    if rules > 1 and not is_cut:
        pairs += [(step, found) for step, found in zip(steps, by_step, strict=True) if found]
    known = dict(zip(map(id, (whole.before, whole.after)), overlays, strict=False))
    numbers: dict[int, int] = {}
    graphs: list[dict[str, Any]] = []
    names: list[list[str]] = []
    left_out = 0
    for step, _ in pairs:
        for graph in (step.before, step.after):
            if id(graph) not in numbers:
                numbers[id(graph)] = len(graphs)
                made, drawn, missing = _graph_data(
                    f"{counted(len(graph), 'node')}", graph, known.get(id(graph), NOTHING)
                )
                graphs.append(made)
                names.append(drawn)
                left_out += missing
    made_steps = []
    for step, found in pairs:
        before, after = numbers[id(step.before)], numbers[id(step.after)]
        name = step.rule or (f"the whole chain of {rules} rules" if rules > 1 else "all changes")
        counts = [sum(change.kind == kind for change in found.values()) for kind in KINDS]
        sides = [_changes(names[at], found, step.rule) for at in (before, after)]
        made_steps.append([_cut(name), before, after, *sides, counts])
    notes = _notes([whole.before, whole.after], left_out)
    if is_cut:
        notes.append(f"The graphs between the {rules} rules are left out of this page, which would be too large.")
    acted = {step.rule for step, found in zip(steps, by_step, strict=True) if found}
    idle = [step.rule for step in steps if step.rule not in acted]
    if rules > 1 and idle:
        notes.append(f"These changed nothing: {', '.join(dict.fromkeys(idle))}.")
    if whole.before.functions or whole.after.functions:
        notes.append("Functions of the library are not compared.")
    summary = (
        f"{counted(len(whole.before), 'node')} before, {len(whole.after):,} after; constants are folded "
        "into their readers"
    )
    return _data(title, summary, notes, graphs, made_steps)


def _changes(names: Sequence[str], found: Mapping[str, Change], rule: str) -> dict[int, list[Any]]:
    """What became of the nodes that are drawn, by their numbers: which of KINDS, how, by which rule."""
    return {
        number: [KINDS.index(change.kind), _cut(change.how), _cut(change.rule or rule)]
        for number, name in enumerate(names)
        if (change := found.get(name)) is not None
    }


def _data(
    title: str, summary: str, notes: list[str], graphs: list[dict[str, Any]], steps: list[list[Any]]
) -> dict[str, Any]:
    return {
        "title": printable(title), "summary": summary, "notes": [printable(note) for note in notes],
        "families": list(COLORS.items()), "graphs": graphs, "steps": steps,
    }  # fmt: skip


def _notes(graphs: Sequence[Graph], left_out: int) -> list[str]:
    notes = []
    if left_out:
        notes.append(
            f"Left out of this page, which would be too large: {left_out:,} nodes. Boxes without + stay closed."
        )
    if any(len(graph) > LARGE for graph in graphs):
        notes.append(f"Shapes and operations are not worked out for graphs of more than {LARGE:,} nodes.")
    return notes


def _graph_data(name: str, graph: Graph, overlay: Overlay) -> tuple[dict[str, Any], list[str], int]:
    """A graph as the page has it, the names of its nodes as they are, and how many are left out."""
    shown, edges = shown_nodes(graph, overlay)
    scopes, left_out = nested_scopes(shown, edges)
    kept = sorted(item.number for scope in scopes for item in scope.items if item.kind == 0)
    number = {old: new for new, old in enumerate(kept)}
    data = {
        "name": _cut(name),
        "nodes": [_node(shown[old], number) for old in kept],
        "scopes": [_scope(scopes, scope, shown, number) for scope in scopes],
    }
    return data, [shown[old].node.name for old in kept], left_out


def _node(one: Shown, number: dict[int, int]) -> list[Any]:
    node = one.node
    inputs = [[_cut(ref), number.get(source, -1), carried] for ref, source, carried in one.inputs]
    return [
        _cut(node.name), _cut(node.op), FAMILIES[family(node.op)], _cut(node.device), inputs, one.outputs,
        [[_cut(key), value] for key, value in one.attributes], one.weights, one.memory, one.flops,
        round(one.microseconds, 2), one.calls, one.engine, _more(one),
    ]  # fmt: skip


def _more(one: Shown) -> dict[str, Any]:
    """What few nodes have: a role, functions that they call, a reason, figures of eight bits, a histogram."""
    found: dict[str, Any] = {}
    if one.role:
        found["role"] = one.role
    if called := dict.fromkeys(called_functions(one.node)):
        found["functions"] = list(map(_cut, called))
    if one.reason:
        found["reason"] = _cut(one.reason)
    if one.layer is not None:
        found["bits"] = [[key, _cut(value)] for key, value in one.layer.figures]
        found["sensitivity"] = one.layer.sensitivity
    if one.histogram is not None:
        bars, *spread = one.histogram
        found["bars"] = [bars, *(float(f"{value:.4g}") for value in spread)]
    return found


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
    width, height = (layout.width, layout.height) if layout is not None else (0, 0)
    return [
        _cut(scope.path), _cut(scope.label), scope.parent, scope.nodes, int(scope.is_open), items, links, width, height,
        scope.copies,
    ]  # fmt: skip


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
