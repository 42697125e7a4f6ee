"""Bytes that are fed arrive whole: a recording may end in silence, and NumPy drops zeros at the end of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(b"ab\0\0", b"ab\0\0"), (b"\0", b"\0"), (b"", b""), ("text", b"text"), ([b"a\0", b""], [b"a\0", b""])],
)
def test_zeros_at_the_end_are_kept(given: Any, wanted: Any) -> None:
    session = Session(parse("x = Placeholder(dtype=string)\ny = Identity(x, T=string)"))
    assert session.run(["y"], {"x": given})[0].tolist() == wanted
