"""Random transform strings: what the original refuses to read, fails to do, or makes of a small graph."""

from __future__ import annotations

import json
import lzma
import pathlib
from typing import Any

import pytest

from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import Compat, transform
from pocketgraph.transforms.tool import parse_transforms

RECORDS = pathlib.Path(__file__).parent / "original" / "strings.jsonl.xz"
GRAPH = parse("""
    x = Placeholder(dtype=float)
    y = Relu(x, T=float)
    z = Neg(y, T=float)
""")


def records(kind: str) -> list[tuple[str, list[list[Any]]]]:
    """The strings of one kind (refused, failed, made), with the nodes that came of them: name, op, inputs, device, and
    the attribute ``message``."""
    with lzma.open(RECORDS, "rt") as file:
        return [(text, nodes) for text, found, nodes in map(json.loads, file) if found == kind]


def test_what_the_original_cannot_read_is_refused() -> None:
    found = records("refused")
    assert len(found) >= 150
    for text, _ in found:
        with pytest.raises(UsageError, match="Looking for"):
            parse_transforms(text, compat=Compat.ORIGINAL)


def test_what_the_original_reads_and_cannot_do_is_an_error() -> None:
    found = records("failed")
    assert len(found) >= 150
    for text, _ in found:
        parse_transforms(text, compat=Compat.ORIGINAL)
        with pytest.raises(PocketgraphError):
            transform(GRAPH, text, "x", "z", compat="original")


def test_what_the_original_does_is_done() -> None:
    found = records("made")
    assert len(found) >= 150
    for text, expected in found:
        made = transform(GRAPH, text, "x", "z", compat="original")
        nodes = []
        for node in made:
            message = node.attr("message", None)
            said = None if message is None else message.decode("utf-8", "replace")
            nodes.append([node.name, node.op, list(node.inputs), node.device, said])
        assert nodes == expected, text
