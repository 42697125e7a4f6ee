"""Tensors without dimensions on LiteRT, run often enough that a session goes its quickest way."""

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

SUMS = """
    x = Placeholder(dtype=float, shape=[])
    y = Placeholder(dtype=float, shape=[3])
    two = Const(float 2)
    scaled = Mul(x, two, T=float)
    turned = Tanh(scaled, T=float)
    shifted = AddV2(turned, two, T=float)
    spread = Mul(y, shifted, T=float)
    warm = Exp(spread, T=float)
"""


@pytest.mark.parametrize("fetches", [["shifted"], ["warm"], ["shifted", "warm"]])
def test_scalars_in_and_out_are_of_this_run(fetches: list[str]) -> None:
    with Session(parse(SUMS), threads=1) as session:
        for number in range(6):
            x, y = np.float32(number / 4), np.array([0.1, 0.2, number / 10], np.float32)
            feeds = {"x": x, "y": y} if "warm" in fetches else {"x": x}
            shifted = np.tanh(x * 2) + 2
            expected = {"shifted": shifted, "warm": np.exp(y * shifted)}
            for name, found in zip(fetches, session.run(fetches, feeds), strict=True):
                np.testing.assert_allclose(found, expected[name], rtol=1e-5)
