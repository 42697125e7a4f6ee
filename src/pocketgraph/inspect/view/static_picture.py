"""Draws all nodes of a graph as an SVG or a PNG, without a browser."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from pocketgraph.errors import UsageError, printable
from pocketgraph.graph import Graph
from pocketgraph.inspect.dot import tint
from pocketgraph.inspect.op_families import COLORS, family
from pocketgraph.inspect.view.nodes import Shown, shown_nodes
from pocketgraph.inspect.view.scope import Scope
from pocketgraph.inspect.view.scopes import flat_scope, label_of, sizes_of

BORDER = 12  # pixels around
LINE, TEXT, DIM = "#98a2ad", "#1f2328", "#444c55"
MOST_PIXELS = 60_000_000  # of a PNG
TWICE = 2  # pixels of a PNG by pixel of the layout, where that fits
CURVE = 12  # straight pieces of an arc in a PNG
NARROW, WIDE = 10.0, 12.0  # pixels of letters

Point = tuple[float, float]


class GraphPicture(NamedTuple):
    """A graph laid out flat: its nodes, the scope that they stand in, and how many are left out."""

    shown: list[Shown]
    scope: Scope
    left_out: int


def flat_picture(graph: Graph) -> GraphPicture:
    """Lays out every node of a graph beside each other, constants and variables folded into their readers."""
    shown, edges = shown_nodes(graph)
    (scope,), left_out = flat_scope(shown, edges)
    return GraphPicture(shown, scope, left_out)


def as_svg(picture: GraphPicture) -> str:
    """The picture as SVG; hovering shows whole names."""
    scope = picture.scope
    assert scope.layout is not None
    width, height = scope.layout.width + 2 * BORDER, scope.layout.height + 2 * BORDER
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{-BORDER} {-BORDER} {width} {height}" font-family="sans-serif" text-anchor="middle">',
        f'<rect x="{-BORDER}" y="{-BORDER}" width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for path, control in _paths(picture):
        (x, y), *rest = path
        text = f"M{x:g} {y:g}"
        for x1, y1 in rest:
            text += f"C{x:g} {(y + y1) / 2:g} {x1:g} {(y + y1) / 2:g} {x1:g} {y1:g}"
            x, y = x1, y1
        dashes = ' stroke-dasharray="3 4"' if control else ""
        parts.append(f'<path d="{text}" fill="none" stroke="{LINE}"{dashes}/>')
    for one, x, y, w, h in _boxes(picture):
        color = COLORS[family(one.node.op)]
        title = escape(printable(f"{one.node.op} {one.node.name} {', '.join(one.outputs)}".strip()))
        parts.append(
            f'<g class="node"><title>{title}</title><rect x="{x - w / 2:g}" y="{y - h / 2:g}" width="{w}" height="{h}" '
            f'rx="7" fill="{tint(color)}" stroke="{color}"/><text x="{x}" y="{y - 3}" font-size="12" font-weight="600" '
            f'fill="{TEXT}">{escape(label_of(one.node.op))}</text><text x="{x}" y="{y + 12}" font-size="11" '
            f'fill="{DIM}">{escape(label_of(one.node.name.rpartition("/")[2]))}</text></g>'
        )
    return "\n".join([*parts, "</svg>\n"])


def as_png(picture: GraphPicture) -> bytes:
    """The picture as PNG, twice as many pixels as the SVG where that is not too large.

    Raises:
        UsageError: it has too many pixels for a file of this kind.
    """
    from PIL import Image, ImageDraw, ImageFont

    layout = picture.scope.layout
    assert layout is not None
    width, height = layout.width + 2 * BORDER, layout.height + 2 * BORDER
    scale = min(TWICE, math.sqrt(MOST_PIXELS / (width * height)))
    if scale < 0.2:
        raise UsageError(
            f"the picture has {width:,} x {height:,} pixels, too many for a PNG", hint="write .svg, or .html"
        )
    image = Image.new("RGB", (math.ceil(width * scale), math.ceil(height * scale)), "#ffffff")
    draw = ImageDraw.Draw(image)

    def at(point: Point) -> Point:
        return (point[0] + BORDER) * scale, (point[1] + BORDER) * scale

    for path, control in _paths(picture):
        points = [at(point) for point in _smooth(path)]
        pieces = pairwise(points)
        for number, (a, b) in enumerate(pieces):
            if not control or number % 2 == 0:
                draw.line([a, b], fill=LINE, width=max(1, round(scale)))
    fonts: list[Any] = [ImageFont.load_default(size=max(4.0, size * scale)) for size in (WIDE, NARROW)]
    for one, x, y, w, h in _boxes(picture):
        color = COLORS[family(one.node.op)]
        box = (*at((x - w / 2, y - h / 2)), *at((x + w / 2, y + h / 2)))
        draw.rounded_rectangle(box, 7 * scale, fill=tint(color), outline=color, width=max(1, round(scale)))
        for text, down, ink, font in (
            (one.node.op, -7, TEXT, fonts[0]),
            (one.node.name.rpartition("/")[2], 9, DIM, fonts[1]),
        ):
            draw.text(at((x, y + down)), _drawable(label_of(text)), fill=ink, font=font, anchor="mm")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _drawable(text: str) -> str:
    """The text with what Pillow's own font has no letter for replaced."""
    return text.replace("…", "...").replace("\n", " ").encode("latin-1", "replace").decode("latin-1")


def _boxes(picture: GraphPicture) -> Iterator[tuple[Shown, int, int, int, int]]:
    scope = picture.scope
    assert scope.layout is not None
    sizes = sizes_of([scope], scope, picture.shown, is_flat=True)
    for item, x, y, (w, h) in zip(scope.items, scope.layout.x, scope.layout.y, sizes, strict=True):
        yield picture.shown[item.number], x, y, w, h


def _paths(picture: GraphPicture) -> Iterator[tuple[list[Point], bool]]:
    """The points of each arrow from box to box, and whether it only says what comes first."""
    scope = picture.scope
    layout = scope.layout
    assert layout is not None
    sizes = sizes_of([scope], scope, picture.shown, is_flat=True)
    for link, route in zip(scope.links, layout.routes, strict=True):
        a, b = link.source, link.target
        (xa, ya), (xb, yb) = (layout.x[a], layout.y[a]), (layout.x[b], layout.y[b])
        if a == b:
            right = xa + sizes[a][0] / 2
            yield [(right, ya - 8), (right + 16, ya), (right, ya + 8)], link.control
            continue
        bends = list(zip(route[::2], route[1::2], strict=True))
        first, last = (bends[0], bends[-1]) if bends else ((xb, yb), (xa, ya))
        start = (xa, ya + sizes[a][1] / 2 * (1 if first[1] >= ya else -1))
        end = (xb, yb - sizes[b][1] / 2 * (1 if last[1] <= yb else -1))
        yield [start, *bends, end], link.control


def _smooth(path: list[Point]) -> list[Point]:
    """Points along the curve through a path, upright at each of its points."""
    points = [path[0]]
    for (x0, y0), (x1, y1) in pairwise(path):
        if x0 == x1:
            points.append((x1, y1))
            continue
        middle = (y0 + y1) / 2
        for number in range(1, CURVE + 1):
            t = number / CURVE
            s = 1 - t
            points.append(
                (s * s * (s + 3 * t) * x0 + t * t * (t + 3 * s) * x1, s**3 * y0 + 3 * s * t * middle + t**3 * y1)
            )
    return points
