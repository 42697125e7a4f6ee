"""Choices of whole rows, and parts of several operators that are given arrays in LiteRT's own memory."""

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.running.runner import has_fixed_sizes
from pocketgraph.runtime import Session

RNG = np.random.default_rng(3)
STEP = """
    t = Placeholder(dtype=int32, shape=[])
    lengths = Placeholder(dtype=int32, shape=[8])
    x = Placeholder(dtype=float, shape=[8,16])
    h = Placeholder(dtype=float, shape=[8,32])
    axis = Const(int32 1)
    joined = ConcatV2(x, h, axis, T=float, N=2, Tidx=int32)
    product = MatMul(joined, w, T=float)
    state = Tanh(product, T=float)
    goes_on = Less(t, lengths, T=int32)
    {spread}
    kept = Select({condition}, state, h, T=float)
"""
TILED = """
    column = Const(int32 [8, 1])
    times = Const(int32 [1, 32])
    as_column = Reshape(goes_on, column, T=bool, Tshape=int32)
    tiled = Tile(as_column, times, T=bool, Tmultiples=int32)
"""
SPREAD = {"tiled": (TILED, "tiled"), "vector": ("", "goes_on")}


def feeds_at(time: int) -> dict[str, Any]:
    x, h = (RNG.normal(size=(8, width)).astype(np.float32) for width in (16, 32))
    h[2, 3], h[5, 1] = np.nan, np.inf
    return {"t": np.array(time, np.int32), "lengths": np.arange(8, dtype=np.int32), "x": x, "h": h}


@pytest.mark.parametrize("spread", SPREAD)
@pytest.mark.parametrize("without", [[], ["choose_whole_rows"], ["direct_calls"]])
def test_rows_of_texts_that_have_ended(spread: str, without: list[str], tmp_path: pathlib.Path) -> None:
    """Rows that stay are the old ones to the bit, NaN and infinities too; the others are what NumPy computes."""
    weights = RNG.normal(size=(48, 32)).astype(np.float32)
    nodes, condition = SPREAD[spread]
    graph = parse(STEP.format(spread=nodes, condition=condition))
    graph = type(graph)([const("w", weights), *graph])
    with Session(graph, cache_dir=tmp_path, engine="litert", without=without) as session:
        earlier: list[tuple[Any, Any]] = []
        for time in [*range(9), *range(9)]:
            feeds = feeds_at(time)
            (kept,) = session.run("kept", feeds)
            with np.errstate(all="ignore"):
                state = np.tanh(np.concatenate([feeds["x"], feeds["h"]], 1) @ weights)
            expected = np.where((time < feeds["lengths"])[:, None], state, feeds["h"])
            np.testing.assert_allclose(kept, expected, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(kept[: time + 1], feeds["h"][: time + 1])
            earlier.append((kept, kept.copy()))
        for kept, copy in earlier:  # no result lies in memory that a later run wrote to
            np.testing.assert_array_equal(kept, copy)


class Core:
    """An interpreter's nodes: (operator, inputs, outputs) of each."""

    def __init__(self, *nodes: tuple[str, list[int], list[int]]) -> None:
        self.nodes = nodes

    def NumNodes(self) -> int:  # noqa: N802 - LiteRT's names
        return len(self.nodes)

    def NodeName(self, index: int) -> str:  # noqa: N802
        return self.nodes[index][0]

    def NodeInputs(self, index: int) -> list[int]:  # noqa: N802
        return self.nodes[index][1]

    def NodeOutputs(self, index: int) -> list[int]:  # noqa: N802
        return self.nodes[index][2]


CHOICE = [("LESS", [0, 1], [3]), ("SELECT", [3, 2, 2], [4]), ("DELEGATE", [4], [5])]


@pytest.mark.parametrize(
    ("nodes", "given", "is_fixed"),
    [
        ([("CONV_2D", [0, 7], [1]), ("DELEGATE", [0, 7], [1])], [0], True),
        (CHOICE, [0, 1, 2], True),
        ([*CHOICE, ("RESHAPE", [5, 9], [6])], [0, 1, 2], True),
        ([*CHOICE, ("RESHAPE", [5, 0], [6])], [0, 1, 2], False),  # to a shape that is given
        ([*CHOICE, ("RESHAPE", [9, 0], [6])], [0, 1, 2], False),
        ([*CHOICE, ("TILE", [9, 4], [6])], [0, 1, 2], False),
        ([*CHOICE, ("SPLIT", [9, 5], [6])], [0, 1, 2], True),
        ([*CHOICE, ("SPLIT", [4, 9], [6])], [0, 1, 2], False),
        ([*CHOICE, ("WHERE", [3], [6])], [0, 1, 2], False),
        ([*CHOICE, ("SomethingOfAnybody", [3], [6])], [0, 1, 2], False),
    ],
)
def test_where_sizes_are_fixed(nodes: Any, given: list[int], is_fixed: bool) -> None:
    assert has_fixed_sizes(Core(*nodes), given) is is_fixed


def test_large_results_and_single_numbers_in_litert_memory(tmp_path: pathlib.Path) -> None:
    """A number is given beside arrays; results of 4 MB lie in memory of earlier ones only when nobody has these."""
    graph = parse("""
        n = Placeholder(dtype=int32, shape=[])
        numbers = Placeholder(dtype=int32, shape=[1024])
        x = Placeholder(dtype=float, shape=[1024,1024])
        some = Less(numbers, n, T=int32)
        other = Exp(x, T=float)
        y = Select(some, x, other, T=float)
    """)
    with Session(graph, cache_dir=tmp_path, engine="litert") as session:
        numbers = np.arange(1024, dtype=np.int32)
        held = []
        for count in (0, 3, 1024, 500, 1, 2, 9, 8, 7, 6, 5, 4):
            x = RNG.normal(size=(1024, 1024)).astype(np.float32)
            (y,) = session.run("y", {"n": np.array(count, np.int32), "numbers": numbers, "x": x})
            np.testing.assert_array_equal(y[:count], x[:count])
            np.testing.assert_allclose(y[count:], np.exp(x[count:]), rtol=1e-5)
            held.append((y, float(y[0, 0]), float(y[-1, -1])))
        assert all((y[0, 0], y[-1, -1]) == (first, last) for y, first, last in held)
