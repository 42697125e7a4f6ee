"""The per-layer report on one HTML page without outside parts, as JSON, and in a few lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pocketgraph.pages.document import fragment, text
from pocketgraph.pages.document import report as page
from pocketgraph.pages.json_text import json_text
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import (
    LABELLED,
    Cell,
    Column,
    Row,
    Verdict,
    cards,
    curve,
    figures,
    folded,
    glossary,
    histogram,
    notes,
    number,
    paragraph,
    section,
    table,
    words,
)
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.report.layer_report import LayerReport, QuantizationReport
from pocketgraph.quantization.report.size_and_latency import SizeAndLatency
from pocketgraph.runtime.comparison.answer_metrics import EXACT_DECIBELS, FEWEST, Comparison, interval

KINDS = (("from_weights", "weights"), ("from_operand", "operand"), ("from_steps", "steps"), ("from_cutting", "cut off"))
"""The kinds of error: an attribute of Layer, and its name on the page, which is also its class."""
LEVELS = (10, 20, 30, 40, 50, 60)  # decibels at which the bars of the histograms of errors begin
IN_NOTEBOOK = 10  # layers
FEW = 30  # samples; of fewer a verdict says how few they are
BAD, FAIR = 20.0, 30.0  # decibels below which a figure of a layer stands out
COLUMNS = (
    Column("layer", "The tensor, and LiteRT's operator that makes it."),
    Column("at the scores, dB", GLOSSARY["at the scores"]),
    Column("weights, dB", "Decibels left in this layer's results when only its weights are codes."),
    Column("operand, dB", "Decibels left in this layer's results when only its operand is codes."),
    Column("steps, dB", "Decibels that the width of this tensor's steps leaves of it."),
    Column("cut off, dB", "Decibels that cutting off what lies outside of its range leaves; empty where nothing is."),
    Column("here, dB", GLOSSARY["here"]),
    Column("seen", "The smallest and the largest value that occurred."),
    Column("codes for", "The range of values that have codes."),
    Column("scale", GLOSSARY["scale"]),
    Column("values", "How often each value occurred; red ones are cut off."),
    Column("action", "What was done, or what to try.", is_words=True),
)
USED = ("same best class", "KL divergence", "signal to noise", "cosine", "code", "scale", "operand", "cut off",
        "at the scores", "here", "ms")  # fmt: skip
"""The words that a page explains."""


def to_json(report: QuantizationReport, about: dict[str, Any] | None = None) -> str:
    """The report as JSON; numbers that are not finite are null."""
    total = report.total
    judged = total.count > 0
    content = {
        **(about or {}),
        "samples": report.samples,
        "agreement": total.agreement if judged and total.width > 1 else None,
        "kl": total.kl if judged and total.width > 1 and total.has_scores else None,
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
        "by_sensitivity": [layer.name for layer in report.ranked()],
    }
    return json_text(content, indent=1) + "\n"


def _figures(compared: Comparison | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    metrics = {"agreement": compared.agreement} if compared.width > 1 else {}
    if metrics and compared.has_scores:
        metrics["kl"] = compared.kl
    return {"samples": compared.count, **metrics, "snr_db": compared.snr, "cosine": compared.cosine}


def to_html(report: QuantizationReport, title: str, speed: SizeAndLatency | None = None) -> str:
    """The report as a page.

    Args:
        report: what is known of each layer.
        title: of the page.
        speed: bytes and times of both models, where they were measured.
    """
    return page(
        title,
        verdict(report, speed).html(),
        _cards(report, speed),
        notes(report.notes),
        section(
            "Signal to noise along the model",
            paragraph(
                "Decibels of each layer's result in the quantized model, with all errors before it; where it falls, "
                "something is lost. Named: the layers that hurt most at the scores. Grey: computed in float."
            ),
            _curve(report),
        )
        if report.total.count and report.layers
        else "",
        section(
            "Errors by kind",
            paragraph(
                "How many layers are left how many decibels by each kind of error alone. What stands on the left hurts."
            ),
            figures(
                (kind, _histogram(report, attribute)) for attribute, kind in KINDS if sum(_tally(report, attribute))
            ),
        ),
        section(
            "Layers by sensitivity",
            paragraph(
                "Decibels: the higher, the less is lost. Titles of columns say what they mean when the pointer rests "
                "on them, and sort when they are clicked. Layers whose names differ in numbers only share a row that "
                "shows the worst of them."
            ),
            _table(report.ranked()),
        ),
        folded(f"All {counted(len(report.layers), 'layer')} in running order", _table(report.layers)),
        folded("Steps", notes(f"{name}: {done}" for name, done in report.steps.items())),
        glossary(USED),
    )


def to_fragment(report: QuantizationReport, speed: SizeAndLatency | None = None) -> str:
    """Verdict, figures and the layers that hurt most, for a notebook."""
    worst = [_row(layer) for layer in report.ranked()[:IN_NOTEBOOK]]
    return fragment(verdict(report, speed).html(), _cards(report, speed), table(COLUMNS, worst))


def verdict(report: QuantizationReport, speed: SizeAndLatency | None = None) -> Verdict:
    """Whether to ship the model, in plain words, and why."""
    judged = report.judged or report.total
    if not judged.count:
        how = "Judge it on your data before it ships"
        reasons = ["No samples were given, so nobody knows what it does to the answers: evaluate tells.", _size(report)]
        return Verdict("", how, [*reasons, *(speed.drawbacks() if speed else [])])
    kind = judged.quality
    which = "that it was not calibrated with" if report.are_unseen else "that it was calibrated with"
    reasons = [f"On {counted(judged.count, 'sample')} {which}: {judged.words()}."]
    if not report.are_unseen:
        reasons.append("Unseen data do worse: judge it on some that it was not calibrated with.")
    if judged.count < FEW:
        low, high = interval(judged.agreed, judged.count)
        told = (
            f"the same best class may be that of {low:.0%} to {high:.0%}"
            if judged.width > 1 and judged.count >= FEWEST  # of fewer the words tell it
            else "others may lose more"
        )
        reasons.append(f"{counted(judged.count, 'sample is', 'samples are')} few: {told}.")
    worst = report.ranked()[:3] if kind != "good" else []
    if worst:
        reasons.append(f"What hurts most: {', '.join(layer.name for layer in worst)}.")
    reasons.append(_size(report))
    if speed is not None:
        reasons.append(
            f"A sample takes {1e3 * speed.seconds:,.3g} ms, {1e3 * speed.float_seconds:,.3g} ms in float "
            f"({speed.seconds / speed.float_seconds:.2f} x)."
        )
        drawbacks = speed.drawbacks()
        reasons += drawbacks
        kind = "fair" if drawbacks and kind == "good" else kind
        kind = "bad" if speed.is_worse else kind
    if kind == "good" and (judged.count < FEWEST or any(note.startswith("warning:") for note in report.notes)):
        kind = "fair"
    return Verdict(kind, SAID[kind], reasons)


SAID = {"good": "Ship it", "fair": "Ship it after a look at what it lost", "bad": "Do not ship it"}
"""The verdicts in words."""


def _size(report: QuantizationReport) -> str:
    share = report.bytes / max(report.float_bytes, 1)
    return f"It has {report.bytes:,} bytes, {share:.2f} of the float model's {report.float_bytes:,}."


def summary(report: QuantizationReport, most: int = 5) -> list[str]:
    """The lines to print after quantizing."""
    total = report.total
    lines = []
    if total.count and report.judged is None:
        divergence = f"KL {total.kl:.4f}, " if total.has_scores else ""
        classes = f"same best class {total.agreement:.1%}, {divergence}" if total.width > 1 else ""
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


def _cards(report: QuantizationReport, speed: SizeAndLatency | None) -> str:
    total = report.judged or report.total
    inside = sum(layer.in_float and not math.isnan(layer.weight_noise) for layer in report.layers)
    shown = []
    if total.count:
        if total.width > 1:
            shown.append((f"{total.agreement:.1%}", "same best class"))
            shown += [(f"{total.kl:.4f} nats", "KL divergence")] if total.has_scores else []
        shown += [(_with_unit(total.snr), "signal to noise"), (f"{total.cosine:.5f}", "cosine")]
    shown.append((f"{report.bytes / 1e3:,.1f} kB", f"{report.float_bytes / 1e3:,.1f} kB in float"))
    if speed is not None:
        shown.append((f"{1e3 * speed.seconds:,.3g} ms", f"a sample; {1e3 * speed.float_seconds:,.3g} ms in float"))
    coded = sum(not layer.in_float for layer in report.layers)
    shown.append((str(coded), f"of {counted(len(report.layers), 'operation')} in codes"))
    if inside:
        shown.append((str(inside), "others with weights in few bits"))
    return cards(shown)


def _table(layers: Sequence[LayerReport]) -> str:
    return table(COLUMNS, [_row(layer) for layer in layers], is_grouped=True)


def _row(layer: LayerReport) -> Row:
    cut = math.nan if math.isinf(layer.from_cutting) else layer.from_cutting
    noises = (layer.activation_noise, layer.from_weights, layer.from_operand, layer.from_steps, cut, layer.snr)
    codes = "" if math.isnan(layer.scale) else f"{layer.chosen_low:.4g} … {layer.chosen_high:.4g}"
    seen = "" if math.isnan(layer.low) else f"{layer.low:.4g} … {layer.high:.4g}"
    cells = [
        words(layer.name, f"<small>{text(layer.operator)}</small>"),
        *(_decibels(value) for value in noises),
        Cell(seen, layer.high if seen else None),
        Cell(codes, layer.chosen_high if codes else None),
        number(layer.scale, ".3g"),
        Cell("", None, more=_bars(layer)),
        words(layer.action),
    ]
    return Row(cells, is_quiet=layer.in_float)


def _decibels(value: float) -> Cell:
    kind = "" if math.isnan(value) or value >= FAIR else "bad" if value < BAD else "fair"
    return Cell(_number(value), None if math.isnan(value) else value, kind)


def _bars(layer: LayerReport) -> str:
    """The histogram of the layer's values; those outside of the range in red."""
    if not layer.histogram:
        return ""
    width = (layer.high - layer.low) / len(layer.histogram)
    centres = [layer.low + (at + 0.5) * width for at in range(len(layer.histogram))]
    has_codes = not math.isnan(layer.scale)
    cut = [has_codes and not layer.chosen_low - width <= centre <= layer.chosen_high + width for centre in centres]
    return histogram([math.sqrt(bar) for bar in layer.histogram], cut=cut, title=f"{layer.low:.4g} … {layer.high:.4g}")


def _tally(report: QuantizationReport, attribute: str) -> list[int]:
    """How many layers are left at least each of LEVELS by a kind of error; the first also counts what is below."""
    counts = [0] * len(LEVELS)
    for layer in report.layers:
        value = float(getattr(layer, attribute))
        if math.isfinite(value):
            counts[max(sum(value >= level for level in LEVELS) - 1, 0)] += 1
    return counts


def _histogram(report: QuantizationReport, attribute: str) -> str:
    """How many layers a kind of error leaves how many decibels."""
    labels = [f"<{LEVELS[1]}" if level == LEVELS[0] else f"{level}+" for level in LEVELS]
    return histogram(_tally(report, attribute), labels, cut=[True])


def _curve(report: QuantizationReport) -> str:
    places = {id(layer): at for at, layer in enumerate(report.layers)}
    worst = [places[id(layer)] for layer in report.ranked()[:LABELLED] if not layer.in_float]
    return curve([(layer.name, layer.snr, layer.in_float) for layer in report.layers], 60.0, "dB", worst)


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return "exact" if value > EXACT_DECIBELS else f"{value:.1f}"


def _with_unit(value: float) -> str:
    return f"{value:.1f} dB" if math.isfinite(value) and value <= EXACT_DECIBELS else _number(value)
