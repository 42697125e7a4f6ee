"""Numbers of things with their nouns, and quantities with their units."""

from __future__ import annotations

import pytest

from pocketgraph.pages.quantities import bytes_text, counted, duration, listed


@pytest.mark.parametrize(
    ("count", "one", "many", "text"),
    [
        (1, "photo", "", "1 photo"),
        (0, "photo", "", "0 photos"),
        (1020, "photo", "", "1,020 photos"),
        (3, "class", "", "3 classes"),
        (2, "box", "", "2 boxes"),
        (1, "class", "", "1 class"),
        (1, "node has", "nodes have", "1 node has"),
        (2, "node has", "nodes have", "2 nodes have"),
    ],
)
def test_counted(count: int, one: str, many: str, text: str) -> None:
    assert counted(count, one, many) == text


def test_units() -> None:
    assert (duration(0.0168), duration(1.25), bytes_text(512), bytes_text(1_950_000)) == (
        "16.8 ms", "1.25 s", "512 B", "1.95 MB",
    )  # fmt: skip


def test_the_first_things_are_named_and_the_rest_counted() -> None:
    names = [f"node_{i}" for i in range(1025)]
    assert listed(names[:2], 2) == "node_0, node_1"
    assert listed(names, 2) == "node_0, node_1 and 1,023 more"
    assert listed(names[:6], quoted=True) == "'node_0', 'node_1', 'node_2', 'node_3', 'node_4' and 1 more"
    assert listed([], 2) == ""
