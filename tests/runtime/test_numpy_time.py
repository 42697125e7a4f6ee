"""What NumPy is said to take for a call follows from the shapes of all tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pocketgraph.graph import Shape
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert.executable import Executable
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.planning import numpy_time
from pocketgraph.runtime.planning.sizes import opened_programs

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, ?, 4])
    w = Const(float[3, 3, 4, 8] 0.25)
    y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    d = Const(float[3, 3, 8, 1] 0.25)
    z = DepthwiseConv2dNative(y, d, T=float, strides=[1, 1, 1, 1], padding="SAME")
    same = Identity(z, T=float)
    flat = Const(int32[2] [-1, 8])
    rows = Reshape(same, flat, T=float, Tshape=int32)
    m = Const(float[8, 5] 0.5)
    out = MatMul(rows, m, T=float, transpose_a=false, transpose_b=false)
""")


def figures(sizes: tuple[int | None, ...], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nodes, multiplications in products of matrices, and numbers that are moved."""
    inferred = infer(GRAPH, {"x:0": (FLOAT, Shape(sizes))}, {}, ["out:0"])
    found = []
    for name in ("STEP", "PRODUCT", "ELEMENT"):
        for each in ("MODULE", "STEP", "PRODUCT", "ELEMENT"):
            monkeypatch.setattr(numpy_time, f"ANSWERED_{each}", float(each == name))
        found.append(numpy_time.numpy_time(list(GRAPH), inferred))
    return found


def test_of_products_windows_and_results(monkeypatch: pytest.MonkeyPatch) -> None:
    places = 10 * 18
    steps, products, elements = figures((1, 12, 20, 4), monkeypatch)
    assert steps == 6
    assert products == places * 8 * 36 + places * 5 * 8
    results, under_windows, depthwise = places * (8 + 8 + 5), places * 36 // 2, places * 8 * 9
    assert elements == 12 * 20 * 4 + results + under_windows + depthwise


def test_unknown_sizes_take_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures((1, None, 20, 4), monkeypatch) == [math.inf] * 3


@pytest.mark.parametrize(("microseconds", "count"), [(0.0, 1), (math.inf, 0)])
def test_a_program_for_all_sizes_is_made_once_plans_took_as_long(
    microseconds: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long comparing parts is said to take, of which noise is a part."""
    made = []
    opening = opened_programs.opened_program
    monkeypatch.setattr(opened_programs, "opened_program", lambda *what: made.append(opening(*what)) or made[-1])
    monkeypatch.setattr(numpy_time, "numpy_time", lambda *_: microseconds)
    monkeypatch.setattr(Executable, "check_time", math.inf)
    monkeypatch.setattr(check_schedule, "LOOK", 3600.0)
    session = Session(GRAPH, threads=1, cache_dir="", without=["first_on_reference"])
    with session, Session(GRAPH, engine="reference") as reference:
        for size in (12, 14, 13, 17):
            x = {"x": np.random.default_rng(size).standard_normal((1, size, size, 4), np.float32)}
            (found,), (right,) = session.run(["out"], x), reference.run(["out"], x)
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
    assert len([served for served in made if served is not None]) == count
