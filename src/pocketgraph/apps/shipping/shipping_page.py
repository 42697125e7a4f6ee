"""The page about a shipment: the verdict in plain words, what was done, what it costs, what to do next."""

from __future__ import annotations

from pocketgraph.apps.shipping.shipment import MODEL, SHIPPED_FORMS, Shipment
from pocketgraph.pages.document import report
from pocketgraph.pages.parts import Cell, Column, Row, Verdict, commands, notes, section, table, words
from pocketgraph.pages.quantities import bytes_text, duration

COLUMNS = tuple(Column(title, is_words=title != "bytes") for title in ("form", "bytes", "verdict", "what it gives"))


def as_html(shipment: Shipment, boxes: str = "") -> str:
    """The page, complete in itself.

    Args:
        shipment: what ships.
        boxes: what a detector finds in photos, as HTML.
    """
    title = f"{shipment.model}: {_state(shipment)}"
    rows = [
        Row([
            words(SHIPPED_FORMS[each.form]), Cell(bytes_text(each.bytes), each.bytes) if each.bytes else Cell(""),
            words(shipment.outcome(each)), words(each.words),
        ], is_quiet=not each.is_kept)
        for each in shipment.tried
    ]  # fmt: skip
    return report(
        title,
        Verdict(
            "bad" if shipment.doubt else "good" if shipment.is_proved else "fair", shipment.verdict, [cost(shipment)]
        ).html(),
        section("What cannot be known", notes(shipment.unknown)),
        section("What it finds in photos of the data", boxes),
        section("Forms tried", table(COLUMNS, rows, is_stacked=True)),
        section("Where it runs, estimated", notes(shipment.devices)),
        section("What the app does with a text", notes(shipment.app)),
        section("What was done", notes(shipment.steps)),
        section("What to do next", commands(shipment.commands)),
    )


def _state(shipment: Shipment) -> str:
    if shipment.doubt:
        return "its answers are in doubt"
    return "ready to ship" if shipment.is_proved else "not proved on data yet"


def cost(shipment: Shipment) -> str:
    """Bytes and time, before and after, in a sentence."""
    before, after = shipment.sizes
    text = f"{MODEL} has {bytes_text(after)}, {after / max(before, 1):.0%} of the model's {bytes_text(before)}"
    if shipment.milliseconds is not None:
        earlier, later = shipment.milliseconds
        times = duration(later / 1e3), duration(earlier / 1e3)
        text += f"; a run takes {times[0]} on this machine, {shipment.times_of} {times[1]}"
    return f"{text}. {shipment.size_cause}." if shipment.size_cause else f"{text}."
