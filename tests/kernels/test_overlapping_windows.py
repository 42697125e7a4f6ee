"""Gradients of max pools over windows that overlap are TensorFlow's, and those of the way that takes any windows."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.nn import overlapping_windows, pooling
from pocketgraph.kernels.nn.pooling import max_pool, max_pool_grad
from pocketgraph.runtime.planning.numpy_gradients import REASON

# Images, window, strides, padding; of TensorFlow 2.21's MaxPoolGrad the largest, the sum, the sum of each element times
# its number from 1 on, and how many are not 0. Image n is 7 n² modulo 5, less 2, so many are equal; slope n is n modulo
# 7, and 1.
RECORDED = [
    ((3, 9, 8, 5), (3, 3), (2, 2), "SAME", (7, 1197, 608246, 300)),
    ((2, 9, 11, 4), (3, 3), (2, 2), "VALID", (11, 637, 232073, 134)),
    ((2, 7, 6, 3), (2, 3), (1, 2), "SAME", (11, 504, 65451, 102)),
    ((2, 8, 8, 3), (5, 4), (3, 1), "SAME", (18, 570, 94111, 62)),
    ((2, 7, 9, 2), (2, 2), (2, 2), "SAME", (7, 314, 41162, 80)),
    ((1, 6, 5, 2), (3, 1), (1, 1), "VALID", (7, 155, 3240, 40)),
]


@pytest.mark.parametrize("together", [1, 1 << 17])
@pytest.mark.parametrize(("shape", "size", "steps", "padding", "recorded"), RECORDED)
def test_pixels_get_what_tensorflow_gives_them(
    shape: tuple[int, ...],
    size: tuple[int, int],
    steps: tuple[int, int],
    padding: str,
    recorded: tuple[float, ...],
    together: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overlapping_windows, "TOGETHER", together)
    monkeypatch.setattr(pooling, "largest_places", lambda *_: pytest.fail("they were not taken"))
    x = (np.arange(np.prod(shape)) ** 2 * 7 % 5 - 2).astype(np.float32).reshape(shape)
    window = {"ksize": (1, *size, 1), "strides": (1, *steps, 1), "padding": padding}
    p = max_pool(x, **window)
    slopes = (np.arange(p.size) % 7 + 1).astype(np.float32).reshape(p.shape)
    found = max_pool_grad(x, p, slopes, **window).astype(np.float64)
    numbers = np.arange(1, found.size + 1)
    assert (found.max(), found.sum(), (found.ravel() * numbers).sum(), np.count_nonzero(found)) == recorded


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["x", "dy", "border"])
def test_numbers_that_are_not_finite(number: float, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    x, dy = random.normal(size=(2, 5, 6, 3)).astype(np.float32), random.normal(size=(2, 3, 3, 3)).astype(np.float32)
    if where == "border":
        x[0, 4:, 4:] = number  # all that the last window has of the image
    else:
        (x if where == "x" else dy)[0, 1, 1, 2] = number
    window = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}
    p = max_pool(x, **window)
    quick = max_pool_grad(x, p, dy, **window)
    monkeypatch.setattr(pooling, "are_overlapping", lambda *_: False)
    np.testing.assert_allclose(quick, max_pool_grad(x, p, dy, **window), rtol=1e-6)


@pytest.mark.parametrize(("size", "step", "taken"), [(3, 2, True), (2, 2, True), (3, 1, True), (2, 3, False)])
def test_a_session_takes_them_out_of_litert_unless_the_pass_is_off(size: int, step: int, taken: bool) -> None:
    pool = f'T=float, ksize=list[1,{size},{size},1], strides=list[1,{step},{step},1], padding="SAME"'
    places = -(-31 // step)
    model = Graph(
        parse(f"""
        x = Placeholder(dtype=float, shape=[32,31,31,32])
        g = Placeholder(dtype=float, shape=[32,{places},{places},32])
        y = Relu(x, T=float)
        p = MaxPool(y, {pool})
        d = MaxPoolGrad(y, p, g, {pool})
    """)
    )
    random = np.random.default_rng(5)
    feeds = {"x:0": random.normal(size=(32, 31, 31, 32)), "g:0": random.normal(size=(32, places, places, 32))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    with Session(model) as session, Session(model, without=["gradients_in_numpy"]) as other:
        assert (REASON in str(session.plan(["d:0"], feeds))) is taken
        assert REASON not in str(other.plan(["d:0"], feeds))
        one, two = session.run("d:0", feeds)[0], other.run("d:0", feeds)[0]
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
