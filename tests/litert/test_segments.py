"""Sums, products and extremes of segments, and rows put at 64-bit places, against what TensorFlow computes."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse

ROWS = np.array([[1, 2], [3, -4], [5, 6], [7.5, 8]], np.float32)
PLACES = [2, -1, 0, 2]  # a negative one is dropped
LARGEST = float(np.finfo(np.float32).max)
EXPECTED = {
    "Sum": [[5, 6], [0, 0], [8.5, 10], [0, 0]],
    "Prod": [[5, 6], [1, 1], [7.5, 16], [1, 1]],
    "Max": [[5, 6], [-LARGEST] * 2, [7.5, 8], [-LARGEST] * 2],
    "Min": [[5, 6], [LARGEST] * 2, [1, 2], [LARGEST] * 2],
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("places", ["Const(int64 [2, -1, 0, 2])", "Placeholder(dtype=int64, shape=[4])"])
def test_segments_are_tensorflows(kind: str, places: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[4,2])
        i = {places}
        n = Const(int32 4)
        y = UnsortedSegment{kind}(x, i, n, T=float, Tindices=int64)
    """)
    feeds = {"x": ROWS, **({"i": np.array(PLACES)} if "Placeholder" in places else {})}
    with Session(graph, threads=1, engine="litert") as session:
        for _ in range(2):
            (found,) = session.run(["y"], feeds)
            np.testing.assert_array_equal(found, np.array(EXPECTED[kind], np.float32))


def test_segments_of_sums_in_int32() -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[4,2])
        i = Const(int32 [2, -1, 0, 2])
        n = Const(int32 4)
        y = UnsortedSegmentSum(x, i, n, T=int32)
    """)
    with Session(graph, threads=1, engine="litert") as session:
        (found,) = session.run(["y"], {"x": ROWS.astype(np.int32)})
    np.testing.assert_array_equal(found, [[5, 6], [0, 0], [8, 10], [0, 0]])


@pytest.mark.parametrize("places", ["Const(int64 [[1], [3], [0], [1]])", "Placeholder(dtype=int64, shape=[4,1])"])
def test_rows_are_put_at_64_bit_places(places: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[4,2])
        i = {places}
        n = Const(int64 [5, 2])
        y = ScatterNd(i, x, n, T=float, Tindices=int64)
    """)
    feeds = {"x": ROWS, **({"i": np.array([[1], [3], [0], [1]])} if "Placeholder" in places else {})}
    with Session(graph, threads=1, engine="litert") as session:
        (found,) = session.run(["y"], feeds)
        np.testing.assert_array_equal(found, [[5, 6], [8.5, 10], [0, 0], [3, -4], [0, 0]])
        for outside in (2**32 + 1, -(2**32) + 1, 5) if "Placeholder" in places else ():
            with pytest.raises(RunError):
                session.run(["y"], {"x": ROWS, "i": np.array([[1], [3], [0], [outside]])})
