"""Programs for all sizes of several inputs: which sizes they take, and what else the graph asks of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.sizes.resizable import Shapes
from pocketgraph.runtime import Session

Array = np.ndarray[Any, Any]
WINDOW = np.random.default_rng(5).standard_normal((3, 3, 4, 4)).round(2).tolist()
CONVOLUTION = 'T=float, strides=[1, 1, 1, 1], dilations=[1, 1, 1, 1], padding="VALID", data_format="NHWC"'


def of_two(meet: str, body: str) -> Graph:
    return parse(f"""
        a = Placeholder(dtype=float, shape=[?, ?, ?, 4])
        b = Placeholder(dtype=float, shape=[?, ?, ?, 4])
        axis = Const(int32 1)
        met = {meet}
        w = Const(float[3, 3, 4, 4] {WINDOW})
        c = Conv2D(met, w, {CONVOLUTION})
        {body}
    """)


ADDED = of_two(
    "AddV2(a, b, T=float)",
    """
        paddings = Const(int32[4, 2] [[0, 0], [0, 2], [0, 0], [0, 0]])
        y = MirrorPad(c, paddings, T=float, Tpaddings=int32, mode="SYMMETRIC")
    """,
)
JOINED = of_two("ConcatV2(a, b, axis, N=2, T=float, Tidx=int32)", "y = Relu(c, T=float)")
CENTRES = of_two(
    "AddV2(a, b, T=float)",
    """
        inner = Shape(c, T=float, out_type=int32)
        whole = Shape(met, T=float, out_type=int32)
        left = Sub(whole, inner, T=int32)
        two = Const(int32 2)
        start = FloorDiv(left, two, T=int32)
        y = Slice(met, start, inner, T=float, Index=int32)
    """,
)


def pictures(rows: int, columns: int) -> dict[str, Array]:
    random = np.random.default_rng([rows, columns])
    return {name: random.standard_normal((1, rows, columns, 4)).astype(np.float32) for name in "ab"}


@pytest.mark.parametrize(("graph", "fetches"), [(ADDED, "y"), (JOINED, "y"), (CENTRES, "y left")])
def test_inputs_of_one_size_share_a_program(graph: Graph, fetches: str, resized: list[Shapes]) -> None:
    wanted = fetches.split()
    sizes = [(12, 11), (14, 9), (8, 20), (4, 4), (9, 3), (17, 6)]
    with (
        Session(graph, cache_dir="", without=["first_on_reference"]) as session,
        Session(graph, engine="reference") as reference,
    ):
        for rows, columns in sizes:
            feeds = pictures(rows, columns)
            for found, expected in zip(session.run(wanted, feeds), reference.run(wanted, feeds), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert len(set(resized)) >= 3


def test_inputs_that_are_both_too_small_are_refused() -> None:
    """One that is, does not show where the other is large: of a single row there are as many as wanted then."""
    with Session(ADDED, cache_dir="", without=["first_on_reference"]) as session:
        for rows, columns in [(12, 11), (14, 9), (8, 20)]:
            session.run(["y"], pictures(rows, columns))
        with pytest.raises(PocketgraphError, match="too large to mirror a dimension of 1"):
            session.run(["y"], pictures(3, 9))
