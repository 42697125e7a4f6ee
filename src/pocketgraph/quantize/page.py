"""The per-layer report as one HTML page without outside parts, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from pocketgraph.quantize.layers import Layer, Report

WIDTH, HEIGHT = 160, 36  # pixels of a histogram
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; } th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #ddd; }
th { position: sticky; top: 0; background: #fff; } td.name, td.words { text-align: left; max-width: 30em; }
tr.float { color: #666; background: #f6f6f6; } svg { display: block; } .cut { fill: #c33; } .bar { fill: #47a; }
.line { stroke: #47a; fill: none; stroke-width: 2; } .axis { stroke: #999; } code { background: #f3f3f3; }
"""


def to_json(report: Report, about: dict[str, Any] | None = None) -> str:
    """The report as JSON; numbers that are not finite are null."""
    total = report.total
    content = {
        **(about or {}),
        "samples": report.samples,
        "agreement": total.agreement,
        "kl": total.kl,
        "snr_db": total.snr,
        "cosine": total.cosine,
        "float_bytes": report.float_bytes,
        "bytes": report.bytes,
        "notes": report.notes,
        "layers": [asdict(layer) for layer in report.layers],
        "by_harm": [layer.name for layer in report.ranked()],
    }
    return json.dumps(_finite(content), indent=1) + "\n"


def to_html(report: Report, title: str) -> str:
    """The report as a page."""
    total = report.total
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1>",
        f"<p>Over {report.samples} samples: same best class in {total.agreement:.1%}, KL {total.kl:.4f}, "
        f"signal to noise {_number(total.snr)} dB, cosine {total.cosine:.5f}. "
        f"{report.float_bytes:,} bytes of float weights became a file of {report.bytes:,}.</p>",
        "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in report.notes) + "</ul>",
        "<h2>Signal to noise along the model</h2>",
        _curve([layer.snr for layer in report.layers]),
        "<p>Decibels of each layer's result in the eight-bit model, with all errors before it; where it falls, "
        "something is lost.</p>",
        "<h2>Layers by harm</h2>",
        _table(report.ranked()),
        "<h2>All layers in running order</h2>",
        _table(report.layers),
        "<p><b>alone</b>: decibels left at the scores when only this tensor is rounded to codes. <b>weights</b>: "
        "decibels of the weights' nearest codes. <b>here</b>: decibels of this tensor with everything before it "
        "quantized. Red bars lie outside of the range that has codes.</p></html>",
    ]
    return "\n".join(parts) + "\n"


def summary(report: Report, most: int = 5) -> list[str]:
    """The lines to print after quantizing."""
    total = report.total
    lines = [
        f"{report.samples} calibration samples: same best class {total.agreement:.1%}, KL {total.kl:.4f}, "
        f"signal to noise {_number(total.snr)} dB (unseen data do worse: pocketgraph evaluate)",
        f"{report.float_bytes:,} bytes of float weights -> {report.bytes:,} bytes "
        f"({report.bytes / max(report.float_bytes, 1):.2f} x)",
        *report.notes,
    ]
    worst = report.ranked()[:most]
    if worst:
        lines.append("what hurts most (decibels left at the scores when only this tensor is rounded):")
        lines += [
            f"  {_number(layer.activation_noise):>6}  {layer.name}  {layer.action or 'fine as it is'}"
            for layer in worst
        ]
    return lines


def _table(layers: Sequence[Layer]) -> str:
    head = ["layer", "operator", "alone", "weights", "here", "cosine", "seen", "codes for", "values", "action"]
    rows = ["<table><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for layer in layers:
        codes = "" if math.isnan(layer.scale) else f"{layer.chosen_low:.4g} … {layer.chosen_high:.4g}"
        cells = [
            f"<td class='name'>{escape(layer.name)}</td><td>{escape(layer.operator)}</td>",
            f"<td>{_number(layer.activation_noise)}</td><td>{_number(layer.weight_noise)}</td>",
            f"<td>{_number(layer.snr)}</td><td>{layer.cosine:.5f}</td>",
            f"<td>{layer.low:.4g} … {layer.high:.4g}</td><td>{codes}</td>",
            f"<td>{_bars(layer)}</td><td class='words'>{escape(layer.action)}</td>",
        ]
        rows.append(f"<tr class='{'float' if layer.in_float else 'int8'}'>" + "".join(cells) + "</tr>")
    return "\n".join(rows) + "</table>"


def _bars(layer: Layer) -> str:
    """The histogram, the heights as square roots so that rare values show."""
    bars = layer.histogram
    top = math.sqrt(max(bars, default=0)) or 1
    step = WIDTH / max(len(bars), 1)
    shapes = []
    for index, share in enumerate(bars):
        tall = HEIGHT * math.sqrt(share) / top
        middle = layer.low + (layer.high - layer.low) * (index + 0.5) / len(bars)
        cut = not math.isnan(layer.scale) and not (layer.chosen_low <= middle <= layer.chosen_high)
        if tall > 0:
            shapes.append(
                f"<rect class='{'cut' if cut else 'bar'}' x='{index * step:.1f}' y='{HEIGHT - tall:.1f}' "
                f"width='{step * 0.9:.1f}' height='{tall:.1f}'/>"
            )
    return f"<svg width='{WIDTH}' height='{HEIGHT}'>{''.join(shapes)}</svg>"


def _curve(decibels: Sequence[float]) -> str:
    wide, tall, most = 900, 180, 60.0
    points = [
        f"{20 + index * (wide - 40) / max(len(decibels) - 1, 1):.1f},"
        f"{tall - 15 - min(max(value, 0), most) / most * (tall - 30):.1f}"
        for index, value in enumerate(decibels)
    ]
    grid = "".join(
        f"<line class='axis' stroke-dasharray='2 4' x1='20' x2='{wide - 20}' y1='{y:.1f}' y2='{y:.1f}'/>"
        f"<text x='0' y='{y + 4:.1f}' font-size='10'>{level}</text>"
        for level in (0, 20, 40, 60)
        for y in [tall - 15 - level / most * (tall - 30)]
    )
    return f"<svg width='{wide}' height='{tall}'>{grid}<polyline class='line' points='{' '.join(points)}'/></svg>"


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.1f}" if math.isfinite(value) else "exact"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
