"""Bytes that are fed arrive whole and in order: a recording may end in silence, and NumPy drops zeros at the end of
bytes; an array may have the bytes of its numbers in the other order, as those of some files have."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, Node, Shape, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(b"ab\0\0", b"ab\0\0"), (b"\0", b"\0"), (b"", b""), ("text", b"text"), ([b"a\0", b""], [b"a\0", b""])],
)
def test_zeros_at_the_end_are_kept(given: Any, wanted: Any) -> None:
    session = Session(parse("x = Placeholder(dtype=string)\ny = Identity(x, T=string)"))
    assert session.run(["y"], {"x": given})[0].tolist() == wanted


def test_numbers_in_the_other_byte_order_are_taken_as_they_are_meant(tmp_path: pathlib.Path) -> None:
    """Also by packed weights, which get the bytes of an array, of a file that an earlier session has planned for."""
    x = np.linspace(-1, 1, 1500, dtype=np.float32).reshape(1, -1)
    weights = np.eye(1500, dtype=np.float32)
    graph = Graph([
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, 1500))}),
        const("w", weights, FLOAT),
        Node("y", "MatMul", ["x", "w"], {"T": FLOAT}),
    ])  # fmt: skip
    path = tmp_path / "model.pb"
    pocketgraph.save(graph, path)
    for order in "=<>><":
        with Session(path, cache_dir=tmp_path) as session:
            (found,) = session.run("y", {"x": x.astype(x.dtype.newbyteorder(order))})
            np.testing.assert_array_equal(found, x)


def test_they_are_so_where_the_graph_does_not_tell_a_type(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = SomebodysOwn()
        y = Neg(x, T=float)
    """)
    with Session(graph, cache_dir=tmp_path) as session:
        (found,) = session.run("y", {"x": np.array([1, 2], ">f4")})
        assert found.tolist() == [-1, -2]
        assert found.dtype == np.float32
