"""Asinh, Acosh and Atanh, which LiteRT has no operators for, against what TensorFlow computes."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph.text_format import parse

NAN, INF = float("nan"), float("inf")
POINTS = [-1e30, -1e10, -3.5, -1, -0.3, -1e-3, -1e-10, 0, 1e-20, 1e-5, 0.2, 0.9999, 1, 1.0001, 2, 100, 1e19, 3e37]
EXPECTED = {
    "Asinh": [
        -69.7706985, -23.718998, -1.96572053, -0.881373584, -0.295673072, -0.000999999931, -1e-10, 0, 1e-20, 1e-5,
        0.198690102, 0.881302834, 0.881373584, 0.881444335, 1.44363546, 5.29834223, 44.4422607, 86.9874039,
    ],
    "Acosh": [*[NAN] * 12, 0, 0.0141431913, 1.31695795, 5.29829216, 44.4422607, 86.9874039],
    "Atanh": [
        *[NAN] * 3, -INF, -0.309519619, -0.0010000004, -1e-10, 0, 1e-20, 1e-5, 0.202732563, 4.95163584, INF,
        *[NAN] * 5,
    ],
}  # fmt: skip


@pytest.mark.parametrize("op", EXPECTED)
def test_values_are_tensorflows(op: str) -> None:
    graph = parse(f"x = Placeholder(dtype=float, shape=[?])\ny = {op}(x, T=float)")
    with Session(graph, threads=1, engine="litert") as session:
        (found,) = session.run(["y"], {"x": np.array(POINTS, np.float32)})
    np.testing.assert_allclose(found, EXPECTED[op], rtol=1e-6)
