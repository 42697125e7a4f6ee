"""Numbers of things with their nouns, and quantities with their units."""

from __future__ import annotations

import pytest

from pocketgraph.pages.quantities import bytes_text, counted, duration


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
