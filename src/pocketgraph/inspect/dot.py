"""A graph in the DOT language of Graphviz, as the original graph_to_dot.py writes it or with more in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

from pocketgraph.errors import GraphError, PocketgraphError, printable
from pocketgraph.formats.files import check_place, reason, write_atomically
from pocketgraph.graph import Graph
from pocketgraph.graph.node import parse_ref
from pocketgraph.inspect.op_families import COLORS, family

PICTURES = ("svg", "png", "pdf")
"""Endings of files that Graphviz makes of a DOT text."""


def original_dot(graph: Graph) -> Iterator[str]:
    """The lines of the original: a line a node, one a reference, control edges as all others.

    Differs from the original: quotes and backslashes in names are escaped (there the text breaks).
    """
    yield "digraph graphname {"
    for node in graph:
        yield f"  {quoted(node.name)} [label={quoted(node.op)}];"
        for ref in node.inputs:
            source = ref.removeprefix("^").split(":", 1)[0]
            yield f"  {quoted(source)} -> {quoted(node.name)};"
    yield "}"


def dot(graph: Graph, *, colors: bool = False, shapes: bool = False, clusters: bool = False) -> Iterator[str]:
    """The lines of a picture that says more than the original's: names beside ops, control edges dotted.

    Args:
        graph: any graph.
        colors: fill each node with the colour of its op's family.
        shapes: write the type and shape of what it carries beside each edge, as far as they are known.
        clusters: draw a box around the nodes of each name scope.
    """
    yield "digraph graphname {"
    yield '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="Helvetica", fontsize=11];'
    yield '  edge [fontname="Helvetica", fontsize=9, color="#666666"];'
    yield from _clustered(graph, colors) if clusters else (f"  {_node(graph, name, colors)}" for name in graph.nodes)
    carried = _carried(graph) if shapes else {}
    for node in graph:
        for ref in node.inputs:
            source, port, control = parse_ref(ref)
            style = " [style=dotted, arrowhead=open]" if control else ""
            label = carried.get(f"{source}:{port}", "")
            if label and not control:
                style = f" [label={quoted(label)}]"
            yield f"  {quoted(source)} -> {quoted(node.name)}{style};"
    yield "}"


def write_dot(lines: Iterator[str], path: str) -> None:
    """Writes a DOT file, or the picture that Graphviz makes of it where the name ends in .svg, .png or .pdf.

    Raises:
        PocketgraphError: Graphviz is not installed or refuses the text, or the file cannot be written.
    """
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in PICTURES:
        write_atomically(path, (f"{line}\n".encode(errors="backslashreplace") for line in lines))
        return
    check_place(path)
    program = shutil.which("dot")
    if program is None:
        beside = f"{path.rpartition('.')[0]}.dot"
        raise PocketgraphError(
            f"a .{ending} is drawn by Graphviz, whose program 'dot' is not installed",
            hint=f"apt-get install graphviz (brew install graphviz), or write {beside}",
        )
    text = "\n".join(lines).encode(errors="backslashreplace")
    try:
        done = subprocess.run([program, f"-T{ending}"], input=text, capture_output=True, check=False)
    except OSError as error:
        raise PocketgraphError(f"Graphviz cannot be run: {reason(error)}", where=program) from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise PocketgraphError(f"Graphviz cannot draw this graph: {said[0] if said else done.returncode}")
    write_atomically(path, done.stdout)


def quoted(text: str) -> str:
    """A text as a quoted string of DOT."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _node(graph: Graph, name: str, colors: bool) -> str:
    op = graph[name].op
    color = COLORS[family(op)]
    fill = f', fillcolor="{tint(color)}", color="{color}"' if colors else ""
    label = f"{op}\n{_last_part(name)}"
    return f"{quoted(name)} [label={quoted(label)}, tooltip={quoted(name)}{fill}];"


def _last_part(name: str) -> str:
    """What stands behind a name's last slash, with those that it ends in, so that it is never nothing."""
    return name[name.rstrip("/").rfind("/") + 1 :]


def tint(color: str) -> str:
    """A colour mixed with white, of which it is 55 %."""
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * 0.55):02x}" for part in parts)


def _clustered(graph: Graph, colors: bool) -> Iterator[str]:
    """The nodes in nested boxes, without recursion: scopes may be nested as deeply as a file likes."""
    members: dict[str, list[str]] = {}
    inner: dict[str, list[str]] = {"": []}
    for name in graph.nodes:
        scope = name.rpartition("/")[0]
        members.setdefault(scope, []).append(name)
        while scope not in inner:
            inner[scope] = []
            scope = scope.rpartition("/")[0]
    for scope in inner:
        if scope:
            inner[scope.rpartition("/")[0]].append(scope)
    count = 0
    stack: list[tuple[str, bool]] = [("", False)]
    while stack:
        scope, is_end = stack.pop()
        if is_end:
            yield "  }"
            continue
        if scope:
            yield f'  subgraph cluster_{count} {{ label={quoted(_last_part(scope))}; color="#aaaaaa";'
            count += 1
            stack.append((scope, True))
        yield from (f"  {_node(graph, name, colors)}" for name in members.get(scope, ()))
        stack.extend((each, False) for each in reversed(inner[scope]))


def _carried(graph: Graph) -> dict[str, str]:
    from pocketgraph.kernels.shapes import infer

    try:
        inferred = infer(graph)
    except GraphError:
        return {}
    found = {}
    for node in graph:
        for ref in node.data_inputs:
            name, port, _ = parse_ref(ref)
            dtype, shape = inferred.dtype(f"{name}:{port}"), inferred.shape(f"{name}:{port}")
            if dtype is not None or shape.dims is not None:
                sizes = shape if shape.dims is not None else ""
                found[f"{name}:{port}"] = f"{dtype.name if dtype is not None else '?'}{sizes}"
    return found
