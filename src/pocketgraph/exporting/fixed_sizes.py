"""Sizes that a model leaves open, for targets whose shapes are fixed."""

from __future__ import annotations

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import EntryPoint, Port


def check_sizes(entry: EntryPoint, target: str) -> list[str]:
    """Refuses open sizes that nobody gave a number for, but that of the batch, which becomes 1; notes of those.

    Args:
        entry: the entry point.
        target: what needs fixed sizes, for the message: ``a C library``.

    Raises:
        UsageError: there are some.
    """
    notes, refused = [], []
    for port in entry.inputs:
        if port.is_fixed:
            continue
        if port.shape is not None and len(port.shape) > 1 and None not in port.shape[1:]:
            notes.append(f"the batch of '{port.name}' is fixed to {port.sizes[0] if port.sizes else 1}")
        else:
            refused.append(port)
    if refused:
        names = ", ".join(f"'{port.name}' {_shape(port)}" for port in refused)
        example = ",".join(map(str, refused[0].sizes or (1,)))
        raise UsageError(
            f"{target} needs fixed sizes, and the graph leaves some open: {names}",
            hint=f"say them: {option('input_shape', 'shapes')}={refused[0].name}:{example}",
        )
    return notes


def _shape(port: Port) -> str:
    if port.shape is None:
        return "of unknown rank"
    return "[" + ", ".join("?" if size is None else str(size) for size in port.shape) + "]"
