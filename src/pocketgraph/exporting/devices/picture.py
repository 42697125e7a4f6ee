"""Draws latency against memory: each device where the model would be on it, and what was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from pocketgraph.errors import printable
from pocketgraph.exporting.devices.device_fit import DeviceEstimate, DeviceFit
from pocketgraph.exporting.devices.device_table import PRECISIONS

WIDTH, TOP, BOTTOM, LEFT, RIGHT = 960, 64, 56, 64, 24
HEIGHT = 620
COLOURS = {"float": "#2f6fc2", "int8": "#c2571a"}
LINE, FIT, TEXT = "#98a2ad", "#e3f3e2", "#1f2328"
LETTER, SMALL = 12, 11  # pixels
WIDE = 6.3  # pixels a letter
MARGIN = 0.15  # powers of ten
SHORT = 24  # letters of a device's name


class Point(NamedTuple):
    """Where a device is in the picture: milliseconds with the error bar, and memory needed as a share of its own."""

    name: str
    precision: str
    low: float
    milliseconds: float
    high: float
    share: float


def points(found: Sequence[DeviceEstimate]) -> list[Point]:
    """The devices whose memory is known, in each precision that something is known of."""
    made = []
    for one in found:
        if one.device.memory is None:
            continue
        for precision, latency in one.latency.items():
            share = one.memory[precision] / one.device.memory
            made.append(Point(one.device.name, precision, latency.low, latency.milliseconds, latency.high, share))
    return made


def as_svg(found: DeviceFit, title: str) -> str:
    """The picture: milliseconds from left to right and the share of memory upwards, both in powers of ten."""
    drawn = points(found.devices)
    across = _LogAxis([v for p in drawn for v in (p.low, p.high)] + ([found.budget_ms] if found.budget_ms else []))
    upwards = _LogAxis([p.share for p in drawn] + [1.0])
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(value: float) -> float:
        return LEFT + across.place(value) * (right - LEFT)

    def y(value: float) -> float:
        return bottom - upwards.place(value) * (bottom - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="{SMALL}" fill="{TEXT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{escape(printable(title))}: latency and memory by device</text>',
    ]
    fits_until = x(found.budget_ms) if found.budget_ms else right
    parts.append(
        f'<rect x="{LEFT}" y="{y(1):.1f}" width="{fits_until - LEFT:.1f}" height="{bottom - y(1):.1f}" fill="{FIT}"/>'
    )
    for value in across.ticks():
        parts.append(f'<path d="M{x(value):.1f} {TOP}V{bottom}" stroke="#e6e9ec"/>')
        parts.append(f'<text x="{x(value):.1f}" y="{bottom + 16}" text-anchor="middle">{value:,.10g}</text>')
    for value in upwards.ticks():
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{right}" stroke="#e6e9ec"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value * 100:,.10g} %</text>')
    parts.append(f'<path d="M{LEFT} {y(1):.1f}H{right}" stroke="{LINE}" stroke-dasharray="5 3"/>')
    parts.append(f'<text x="{right}" y="{y(1) - 5:.1f}" text-anchor="end">all of the device\'s memory</text>')
    if found.budget_ms:
        parts.append(f'<path d="M{fits_until:.1f} {TOP}V{bottom}" stroke="{LINE}" stroke-dasharray="5 3"/>')
        parts.append(f'<text x="{fits_until + 4:.1f}" y="{TOP + 12}">{found.budget_ms:g} ms asked for</text>')
    places = [(point, x(point.milliseconds), y(point.share)) for point in sorted(drawn, key=lambda p: p.milliseconds)]
    taken = [_LatencySpan(at - 6, at + 6, up + 4) for _, at, up in places]
    for point, at, up in places:
        parts += _drawn(point, at, up, x(point.low), x(point.high), taken)
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle">milliseconds of a run</text>')
    for number, (precision, colour) in enumerate(COLOURS.items()):
        at = LEFT + 90 * number
        parts.append(f'<circle cx="{at + 5}" cy="42" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{at + 14}" y="46">{PRECISIONS[precision]}</text>')
    return "\n".join([*parts, "</svg>", ""])


class _LatencySpan(NamedTuple):
    """A line of the picture that a name takes, or a point."""

    begin: float
    end: float
    base: float

    def is_free(self, taken: Sequence[_LatencySpan]) -> bool:
        """Whether nothing else is there."""
        near = (other for other in taken if abs(self.base - other.base) < LETTER)
        return not any(self.begin < other.end and other.begin < self.end for other in near)


def _drawn(point: Point, at: float, up: float, low: float, high: float, taken: list[_LatencySpan]) -> list[str]:
    """The error bar, the point, and its name at the first free place near it; ``taken`` gets the place."""
    colour = COLOURS[point.precision]
    name = point.name if len(point.name) <= SHORT else f"{point.name[:SHORT]}…"
    wide = WIDE * len(name)
    begin = at + 8 if at + 8 + wide < WIDTH - 2 else at - 8 - wide
    heights = [up + 4 + LETTER * step * sign for step in range(40) for sign in (-1, 1)]
    spans = [_LatencySpan(begin, begin + wide, height) for height in heights if TOP + LETTER < height < HEIGHT - BOTTOM]
    span = next((span for span in spans if span.is_free(taken)), _LatencySpan(begin, begin + wide, up + 4))
    taken.append(span)
    span_text = f"{point.milliseconds:.3g} ms ({point.low:.3g} to {point.high:.3g})"
    said = f"{point.name}, {PRECISIONS[point.precision]}: {span_text}"
    edge = span.begin if begin > at else span.end
    return [
        f'<g stroke="{colour}" fill="{colour}"><title>{escape(printable(said))}</title>',
        f'<path d="M{low:.1f} {up:.1f}H{high:.1f}" stroke-width="3" stroke-opacity="0.3"/>',
        f'<path d="M{at:.1f} {up:.1f}L{edge:.1f} {span.base - 4:.1f}" stroke-opacity="0.4"/>',
        f'<circle cx="{at:.1f}" cy="{up:.1f}" r="4"/>',
        f'<text x="{span.begin:.1f}" y="{span.base:.1f}" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
        f"{escape(printable(name))}</text></g>",
    ]


class _LogAxis:
    """From a value to its place between 0 and 1, by its logarithm."""

    def __init__(self, values: Sequence[float]) -> None:
        known = [value for value in values if value > 0] or [1.0]
        self.low = math.log10(min(known)) - MARGIN
        self.high = math.log10(max(known)) + MARGIN

    def place(self, value: float) -> float:
        """0 at the lower end, 1 at the upper one."""
        if value <= 0:
            return 0.0
        return min(1.0, max(0.0, (math.log10(value) - self.low) / (self.high - self.low)))

    def ticks(self) -> list[float]:
        """The powers of ten, and three times these, that are on it."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        found = [each * 10.0**power for power in powers for each in (1, 3)]
        return [value for value in found if self.low <= math.log10(value) <= self.high]
