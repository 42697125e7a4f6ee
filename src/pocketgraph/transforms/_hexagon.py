"""Why the rules for Hexagon processors do not work here."""

from __future__ import annotations

from pocketgraph.errors import TransformError


def refusal(rule: str) -> TransformError:
    """The error that each of these rules raises."""
    return TransformError(
        f"{rule} needs the Hexagon SDK, with which pocketgraph cannot work",
        hint="leave the rule out, or write quantize_nodes for eight-bit graphs that any processor can run",
    )
