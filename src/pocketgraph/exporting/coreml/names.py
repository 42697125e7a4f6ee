"""What a package calls inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.exporting.c_identifiers import identifiers
from pocketgraph.exporting.model import Port

TAKEN = frozenset(
    """any bool program func tensor list dict tuple true false string bf16 fp16 fp32 fp64 int8 int16 int32 int64 uint8
    uint16 uint32 uint64 state classLabel classLabel_probs""".split()  # noqa: SIM905
)
"""Words of Core ML's language, and the outputs of classifiers."""


def feature_names(ports: Iterable[Port]) -> list[str]:
    """A name for each input and output: the port's own as far as Core ML takes it."""
    return [f"{name}_" if name in TAKEN else name for name in identifiers(port.name for port in ports)]
