"""The page about a shipment: the verdict in plain words, what was done, what it costs, what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from pocketgraph.apps.shipping.shipment import FORMS, MODEL, Shipment
from pocketgraph.inspect.numbers import bytes_text
from pocketgraph.quantization.report.html_report import STYLE
from pocketgraph.quantization.report.size_and_latency import duration


def as_html(shipment: Shipment) -> str:
    """The page, complete in itself."""
    title = f"{shipment.model}: {'ready to ship' if shipment.is_proved else 'not proved on data yet'}"
    rows = "".join(
        f"<tr><td>{escape(FORMS[each.form])}</td><td>{bytes_text(each.bytes) if each.bytes else ''}</td>"
        f"<td>{'ships' if each.is_kept else 'left'}</td><td>{escape(each.words)}</td></tr>"
        for each in shipment.tried
    )
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><p><strong>{escape(shipment.verdict)}</strong></p>"
        f"<p>{escape(cost(shipment))}</p>"
        f"<h2>What cannot be known</h2>{_listed(shipment.unknown)}"
        "<h2>Forms tried</h2><table><tr><th>form</th><th>bytes</th><th></th><th>what it gives</th></tr>"
        f"{rows}</table>"
        f"<h2>Where it runs, estimated</h2>{_listed(shipment.devices)}"
        f"<h2>What was done</h2>{_listed(shipment.steps)}"
        f"<h2>What to do next</h2>{_listed(shipment.commands, 'code')}"
    )


def cost(shipment: Shipment) -> str:
    """Bytes and time, before and after, in a sentence."""
    before, after = shipment.sizes
    text = f"{MODEL} has {bytes_text(after)}, {after / max(before, 1):.0%} of the model's {bytes_text(before)}"
    if shipment.milliseconds is not None:
        earlier, later = shipment.milliseconds
        times = duration(later / 1e3), duration(earlier / 1e3)
        text += f"; a run takes {times[0]} on this machine, the graph's took {times[1]}"
    return f"{text}."


def _listed(items: Iterable[str], tag: str = "span") -> str:
    found = "".join(f"<li><{tag}>{escape(item)}</{tag}></li>" for item in items)
    return f"<ul>{found}</ul>" if found else "<p>Nothing.</p>"
