"""The per-layer report on one HTML page without outside parts, as JSON, and in a few lines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from pocketgraph.quantization.report.layer_report import LayerReport, QuantizationReport
from pocketgraph.runtime.answer_metrics import Comparison

WIDTH, HEIGHT = 160, 36  # pixels of a histogram
KINDS = (("from_weights", "weights"), ("from_operand", "operand"), ("from_steps", "steps"), ("from_cutting", "cut off"))
"""The kinds of error: an attribute of Layer, and its name on the page, which is also its class."""
LEVELS = (10, 20, 30, 40, 50, 60)  # decibels at which the bars of the histograms of errors begin
STYLE = """
:root { --blue: #3b6ea5; --red: #c0392b; --amber: #c98a1b; --green: #3f8f5f; --violet: #7a5ba6; --grey: #8a9099; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1.5em 2em 4em; max-width: 1500px; color: #1d2329;
  background: #fff; }
h1 { font-size: 1.5em; margin: 0 0 .6em; overflow-wrap: anywhere; } h2 { font-size: 1.15em; margin: 2em 0 .3em; }
p, li { max-width: 60em; } li { overflow-wrap: anywhere; } li.warning { color: var(--red); font-weight: 600; }
.cards { display: flex; flex-wrap: wrap; gap: .8em; margin: 1em 0; }
.card { border: 1px solid #dde1e6; border-radius: 6px; padding: .5em 1em; min-width: 8em; }
.card b { display: block; font-size: 1.45em; font-weight: 600; } .card span { color: #5b646e; font-size: .9em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: .3em .6em; text-align: right; border-bottom: 1px solid #e6e9ed; vertical-align: middle; }
th { position: sticky; top: 0; background: #f4f6f8; font-weight: 600; white-space: nowrap; }
th:first-child, th:last-child, td.name { text-align: left; max-width: 22em; overflow-wrap: anywhere; }
td.words { text-align: left; min-width: 14em; } td.name { min-width: 13em; }
td.name small { color: #5b646e; display: block; } tr.float { color: #7a828b; background: #fafbfc; }
td.bad { color: var(--red); font-weight: 600; } td.fair { color: #9a6a10; }
svg { display: block; } .curve { min-width: 700px; }
.cut, .cut_off { fill: var(--red); } .bar, .steps { fill: var(--blue); }
.weights { fill: var(--amber); } .operand { fill: var(--violet); } .all { fill: var(--grey); }
.line { stroke: var(--blue); fill: none; stroke-width: 2; }
.dot { fill: var(--blue); } .dot.float { fill: var(--grey); }
.axis { stroke: #c3c9d0; } text { fill: #5b646e; font: 11px system-ui, sans-serif; }
.row { display: flex; flex-wrap: wrap; gap: 1.5em; } figure { margin: 0; } figcaption { color: #5b646e; }
details { margin-top: 1em; } summary { cursor: pointer; font-size: 1.15em; font-weight: 600; }
"""
MEANINGS = (
    ("at the scores", "decibels left at the scores when only this tensor is rounded to codes; the order is by it"),
    ("weights", "decibels left in this layer's results when only its weights are codes"),
    ("operand", "decibels left in them when only its operand is codes"),
    ("steps", "decibels that the width of this tensor's steps leaves of it"),
    ("cut off", "decibels that cutting off what lies outside of its range leaves; empty where nothing is"),
    ("here", "decibels of this tensor in the quantized model, with all errors before it"),
)


def to_json(report: QuantizationReport, about: dict[str, Any] | None = None) -> str:
    """The report as JSON; numbers that are not finite are null."""
    total = report.total
    judged = total.count > 0
    content = {
        **(about or {}),
        "samples": report.samples,
        "agreement": total.agreement if judged and total.width > 1 else None,
        "kl": total.kl if judged and total.width > 1 else None,
        "snr_db": total.snr if judged else None,
        "cosine": total.cosine if judged else None,
        "unseen": _figures(report.judged) if report.are_unseen else None,
        "float_bytes": report.float_bytes,
        "bytes": report.bytes,
        "notes": report.notes,
        "steps": dict(report.steps),
        "errors_by_kind": {
            title: {"from_db": list(LEVELS), "layers": _tally(report, attribute)} for attribute, title in KINDS
        },
        "layers": [asdict(layer) for layer in report.layers],
        "by_harm": [layer.name for layer in report.ranked()],
    }
    return json.dumps(_finite(content), indent=1) + "\n"


def _figures(compared: Comparison | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    told = {"agreement": compared.agreement, "kl": compared.kl} if compared.width > 1 else {}
    return {"samples": compared.count, **told, "snr_db": compared.snr, "cosine": compared.cosine}


def to_html(report: QuantizationReport, title: str) -> str:
    """The report as a page."""
    ranked = report.ranked()
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1>",
        _cards(report),
        "<ul>" + "".join(_note(note) for note in report.notes) + "</ul>",
    ]
    if report.total.count:
        parts += [
            "<h2>Signal to noise along the model</h2>",
            "<p>Decibels of each layer's result in the quantized model, with all errors before it; where it falls, "
            "something is lost. Grey: computed in float.</p>",
            _curve(report.layers),
        ]
    histograms = [_histogram(report, attribute, kind) for attribute, kind in KINDS if sum(_tally(report, attribute))]
    if histograms:
        parts += [
            "<h2>Errors by kind</h2>",
            "<p>How many layers are left how many decibels by each kind of error alone. What stands on the left "
            "hurts.</p>",
            f"<div class='row'>{''.join(histograms)}</div>",
        ]
    parts += [
        "<h2>Layers by harm</h2>",
        "<p>"
        + "; ".join(f"<b>{name}</b>: {text}" for name, text in MEANINGS)
        + ". Red bars in a histogram lie outside "
        "of the range that has codes.</p>",
        _table(ranked),
        f"<details><summary>All {len(report.layers)} layers in running order</summary>",
        _table(report.layers),
        "</details>",
        _steps(report),
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def summary(report: QuantizationReport, most: int = 5) -> list[str]:
    """The lines to print after quantizing."""
    total = report.total
    lines = []
    if total.count and report.judged is None:
        classes = f"same best class {total.agreement:.1%}, KL {total.kl:.4f}, " if total.width > 1 else ""
        lines.append(
            f"on {report.samples} of the calibration samples: {classes}"
            f"signal to noise {_with_unit(total.snr)} (unseen data do worse: pocketgraph evaluate)"
        )
    lines += report.notes
    worst = report.ranked()[:most]
    if worst and not math.isnan(worst[0].activation_noise):
        lines.append("what hurts most (decibels left at the scores when only this tensor is rounded):")
        lines += [
            f"  {_number(layer.activation_noise):>6}  {layer.name}  {layer.action or 'fine as it is'}"
            for layer in worst
        ]
    elif worst:
        lines.append("what the weights' codes cost most (decibels left of the layer's results, or of its weights):")
        for layer in worst:
            left = layer.weight_noise if math.isnan(layer.from_weights) else layer.from_weights
            lines.append(f"  {_number(left):>6}  {layer.name}")
    return lines


def _steps(report: QuantizationReport) -> str:
    """What became of each step, folded away; nothing where there were none."""
    rows = "".join(f"<li><b>{escape(name)}</b>: {done}</li>" for name, done in report.steps.items())
    return f"<details><summary>Steps</summary><ul>{rows}</ul></details>" if rows else ""


def _note(note: str) -> str:
    return f"<li{' class=warning' if note.startswith('warning:') else ''}>{escape(note)}</li>"


def _cards(report: QuantizationReport) -> str:
    total = report.judged or report.total
    which = f"{total.count} {'unseen samples' if report.are_unseen else 'samples calibrated with'}"
    inside = sum(layer.in_float and not math.isnan(layer.weight_noise) for layer in report.layers)
    cards = [
        (f"{report.bytes:,}", f"bytes, {report.bytes / max(report.float_bytes, 1):.2f} of the float model's"),
        (str(sum(not layer.in_float for layer in report.layers)), f"of {len(report.layers)} operations in codes"),
        *([(str(inside), "others with weights in few bits")] if inside else []),
    ]
    if total.count:
        classes = [
            (f"{total.agreement:.1%}", f"same best class, of {which}"),
            (f"{total.kl:.4f}", "KL divergence, nats"),
        ]
        cards = [
            *(classes if total.width > 1 else []),
            (_with_unit(total.snr), "signal to noise" if total.width > 1 else f"signal to noise, {which}"),
            (f"{total.cosine:.5f}", "cosine"),
            *cards,
        ]
    return (
        "<div class='cards'>"
        + "".join(f"<div class='card'><b>{escape(value)}</b><span>{escape(text)}</span></div>" for value, text in cards)
        + "</div>"
    )


def _table(layers: Sequence[LayerReport]) -> str:
    head = ["layer", "at the scores", "weights", "operand", "steps", "cut off", "here", "seen", "codes for", "values",
            "action"]  # fmt: skip
    rows = ["<div class='wide'><table><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for layer in layers:
        codes = "" if math.isnan(layer.scale) else f"{layer.chosen_low:.4g} … {layer.chosen_high:.4g}"
        seen = "" if math.isnan(layer.low) else f"{layer.low:.4g} … {layer.high:.4g}"
        noises = (layer.activation_noise, layer.from_weights, layer.from_operand, layer.from_steps)
        cut = math.nan if math.isinf(layer.from_cutting) else layer.from_cutting
        cells = [
            f"<td class='name'>{escape(layer.name)}<small>{escape(layer.operator)}</small></td>",
            *(_decibels(value) for value in (*noises, cut, layer.snr)),
            f"<td>{seen}</td><td>{codes}</td>",
            f"<td>{_bars(layer)}</td><td class='words'>{escape(layer.action)}</td>",
        ]
        rows.append(f"<tr class='{'float' if layer.in_float else 'int8'}'>" + "".join(cells) + "</tr>")
    return "\n".join(rows) + "</table></div>"


def _decibels(value: float) -> str:
    grade = " class='bad'" if value < 20 else " class='fair'" if value < 30 else ""
    return f"<td{grade}>{_number(value)}</td>"


def _bars(layer: LayerReport) -> str:
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
    return f"<svg width='{WIDTH}' height='{HEIGHT}'>{''.join(shapes)}</svg>" if shapes else ""


def _tally(report: QuantizationReport, attribute: str) -> list[int]:
    """How many layers are left at least each of LEVELS by a kind of error; the first also counts what is below."""
    counts = [0] * len(LEVELS)
    for layer in report.layers:
        value = float(getattr(layer, attribute))
        if math.isfinite(value):
            counts[max(sum(value >= level for level in LEVELS) - 1, 0)] += 1
    return counts


def _histogram(report: QuantizationReport, attribute: str, kind: str) -> str:
    """How many layers a kind of error leaves how many decibels."""
    counts = _tally(report, attribute)
    wide, tall, top = 38, 90, max(*counts, 1)
    shapes = []
    for index, (count, level) in enumerate(zip(counts, LEVELS, strict=True)):
        height = (tall - 34) * count / top
        label = f"&lt;{LEVELS[1]}" if not index else f"{level}+"
        x, y = index * wide + 4, tall - 16 - height
        shapes.append(
            f"<rect class='{kind.replace(' ', '_')}' x='{x}' y='{y:.1f}' width='{wide - 8}' height='{height:.1f}'/>"
            f"<text x='{x + (wide - 8) / 2}' y='{tall - 3}' text-anchor='middle'>{label}</text>"
            + (f"<text x='{x + (wide - 8) / 2}' y='{y - 3:.1f}' text-anchor='middle'>{count}</text>" if count else "")
        )
    return (
        f"<figure><figcaption>{kind}</figcaption><svg width='{wide * len(LEVELS)}' height='{tall}'>"
        + f"{''.join(shapes)}</svg></figure>"
    )


def _curve(layers: Sequence[LayerReport]) -> str:
    wide, tall, most, left = 1100, 220, 60.0, 34
    step = (wide - left - 20) / max(len(layers) - 1, 1)

    def height(value: float) -> float:
        return tall - 20 - min(max(value, 0), most) / most * (tall - 40)

    places = [(left + index * step, height(layer.snr), layer) for index, layer in enumerate(layers)]
    grid = "".join(
        f"<line class='axis' stroke-dasharray='2 4' x1='{left}' x2='{wide - 20}' y1='{y:.1f}' y2='{y:.1f}'/>"
        f"<text x='{left - 6}' y='{y + 4:.1f}' text-anchor='end'>{level}</text>"
        for level in (0, 20, 40, 60)
        for y in [height(level)]
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    dots = "".join(
        f"<circle class='dot{' float' if layer.in_float else ''}' cx='{x:.1f}' cy='{y:.1f}' r='3'>"
        f"<title>{escape(layer.name)}: {_with_unit(layer.snr)}</title></circle>"
        for x, y, layer in places
    )
    return (
        f"<div class='wide'><svg class='curve' viewBox='0 0 {wide} {tall}' width='100%' style='max-width:{wide}px'>"
        f"{grid}<polyline class='line' points='{line}'/>{dots}</svg></div>"
    )


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.1f}" if math.isfinite(value) else "exact"


def _with_unit(value: float) -> str:
    return f"{value:.1f} dB" if math.isfinite(value) else _number(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
