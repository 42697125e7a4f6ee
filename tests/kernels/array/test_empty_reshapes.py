"""Reshape of tensors without elements: what TensorFlow 1.15 and 2.21 give."""

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

GRAPH = parse("""
    x = Placeholder(dtype=float)
    sizes = Placeholder(dtype=int32)
    y = Reshape(x, sizes, T=float)
""")


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    ("shape", "sizes", "expected"),
    [
        ((0, 2, 2, 64), [0, -1], (0, 256)),
        ((0, 2, 2, 64), [-1, 256], (0, 256)),
        ((0, 3), [-1, 0], (3, 0)),
        ((2, 0), [-1, 0], (2, 0)),
        ((0,), [-1], (0,)),
        ((2, 0, 3), [2, -1, 3], (2, 0, 3)),
    ],
)
def test_the_missing_size(
    shape: tuple[int, ...], sizes: list[int], expected: tuple[int, ...], engine: str | None
) -> None:
    with Session(GRAPH, engine=engine) as session:
        (y,) = session.run("y", {"x": np.zeros(shape, np.float32), "sizes": np.array(sizes, np.int32)})
    assert y.shape == expected


@pytest.mark.parametrize(("shape", "sizes"), [((2, 3), [0, -1]), ((2, 3), [4, -1]), ((2, 3), [0]), ((0, 3), [2])])
def test_other_numbers_of_elements(shape: tuple[int, ...], sizes: list[int]) -> None:
    with Session(GRAPH) as session, pytest.raises(RunError, match=r"node 'y': Reshape"):
        session.run("y", {"x": np.zeros(shape, np.float32), "sizes": np.array(sizes, np.int32)})
