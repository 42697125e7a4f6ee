"""A strict session has TensorFlow's values for NaN, infinities and the largest numbers; TensorFlow 2.21's are recorded
in fixtures/edge_values.npz (tools/edge_values.py --golden)."""

from __future__ import annotations

import pathlib
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from loop_text import counted_loop
from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.nan_and_overflow import OPERATORS, OPS, edge_of
from pocketgraph.runtime import InferenceInterface, Session
from support import model_dir, model_info, needs_shared

RECORDED = pathlib.Path(__file__).parent.parent / "fixtures" / "edge_values.npz"
SMALLEST = float(np.finfo(np.float32).tiny)


@lru_cache(maxsize=1)
def cases() -> dict[str, tuple[str, dict[str, Array], Array]]:
    """Graph, feeds and TensorFlow's result by the case's name and number."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(RECORDED) as arrays:
        for key in arrays.files:
            index, _, what = key.partition("/")
            found.setdefault(index, {})[what] = arrays[key]
    return {
        f"{case['op']}-{index}": (
            str(case["text"]),
            {what.removeprefix("feeds/"): array for what, array in case.items() if what.startswith("feeds/")},
            case["result"],
        )
        for index, case in found.items()
    }


SUMS = ("AvgPool", "Conv2D", "DepthwiseConv2dNative", "Mean", "MatMul", "ResizeBilinear", "Sum", "Sin")


def is_same(given: Array, right: Array, name: str) -> Array:
    """Which elements are the same number: NaN for NaN, the others within 1e-5, or 5e-6 where sums and sines cancel."""
    if right.dtype.kind != "f":
        return given == right
    with np.errstate(all="ignore"):
        a, b = given.astype(np.float64), right.astype(np.float64)
        near = np.abs(a - b) <= 1e-5 * np.abs(b) + (5e-6 if name.startswith(SUMS) else SMALLEST)
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (near & np.isfinite(a))


@pytest.mark.parametrize("name", cases())
def test_a_strict_session_has_tensorflow_s_values(name: str) -> None:
    text, feeds, right = cases()[name]
    with Session(parse(text), strict=True, threads=1, cache_dir="") as session:
        (given,) = session.run(["y"], feeds)
    assert given.dtype == right.dtype
    wrong = ~is_same(given, right, name)
    if np.ndim(wrong) and wrong.any():
        assert not wrong.any(), (given[wrong][:5], right[wrong][:5])
    assert not np.any(wrong)


def test_the_recorded_values_tell_a_strict_session_from_another() -> None:
    """Without ``strict`` LiteRT's values come out, so that the recorded cases prove something."""
    other = set()
    for name, (text, feeds, right) in cases().items():
        with Session(parse(text), engine="litert", threads=1, cache_dir="", check="never") as session:
            if not np.all(is_same(session.run("y", feeds)[0], right, name)):
                other.add(name.split("-")[0])
    assert {"Sigmoid", "Exp", "Log", "Sqrt", "Sin", "Maximum", "Max", "Min", "MaxPool", "AvgPool"} <= other
    assert other.isdisjoint({"Relu", "Relu6", "Tanh", "Softmax", "MatMul", "LeakyRelu", "Mean"})


def test_a_session_of_either_kind_keeps_parts_of_its_own(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[64, 64])
        w = Const(float[64, 64] 0.5)
        m = MatMul(x, w, T=float)
        y = Exp(m, T=float)
    """)
    x = np.full((64, 64), np.nan, "f4")
    for _ in range(2):  # the second time from the cache
        with Session(graph, cache_dir=tmp_path) as loose, Session(graph, strict=True, cache_dir=tmp_path) as strict:
            assert not np.isnan(loose.run("y", {"x": x})[0]).any()
            assert np.isnan(strict.run("y", {"x": x})[0]).all()
    with InferenceInterface(graph, strict=True, cache_dir=str(tmp_path)) as android:
        android.feed("x", x, 64, 64)
        android.run(["y"])
        assert np.isnan(android.fetch("y")).all()


def test_parts_in_loops_are_strict_too() -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[4, 256])
        limit = Placeholder(dtype=int32, shape=[])
        w = Const(float[256, 256] 0.0125)
        """
        + counted_loop("limit", "m = MatMul(v, w_in, T=float)\nnext = Exp(m, T=float)", given={"w": "float"})
    )
    feeds = {"x": np.full((4, 256), np.nan, "f4"), "limit": np.int32(3)}
    with Session(graph, cache_dir="") as loose, Session(graph, strict=True, cache_dir="") as strict:
        assert not np.isnan(loose.run("y", feeds)[0]).any()
        assert np.isnan(strict.run("y", feeds)[0]).all()


@needs_shared
def test_a_strict_mobilenet_keeps_its_convolutions_on_litert() -> None:
    name = "mobilenet_v1_025_128"
    with Session(model_dir(name) / model_info(name)["file"], strict=True, cache_dir="") as session:
        plan = session.plan()
    on_litert = {plan.ops[node] for part in plan.parts if part.runs_on == "litert" for node in part.nodes}
    assert {"Conv2D", "DepthwiseConv2dNative", "Relu6", "Softmax"} <= on_litert
    left = {plan.ops[node] for part in plan.parts if part.runs_on != "litert" for node in part.nodes}
    assert left - {"Const"} == {"AvgPool"}


@pytest.mark.parametrize(
    ("height", "width", "right"),
    [
        (1, 1, [[1] * 8, [1, 1, 1, 1, np.inf, 1, 1, 1], [1] * 8, [1] * 8]),
        (1, 5, [[3, 4, 5, 5, 5, 5, 4, 3], [3, 4, *[np.inf] * 5, 3], *[[3, 4, 5, 5, 5, 5, 4, 3]] * 2]),
        (2, 3, [*[[4, 6, 6, *[np.inf] * 3, 6, 4]] * 2, [4, 6, 6, 6, 6, 6, 6, 4], [2, 3, 3, 3, 3, 3, 3, 2]]),
    ],
)
def test_an_infinity_stays_in_depthwise_windows_that_hold_it(height: int, width: int, right: list[list[float]]) -> None:
    """XNNPACK fills such windows up with zeros; the results are TensorFlow 2.21's."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,4,8,2])
        w = Const(float[{height},{width},2,1] 1.0)
        y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    """)
    x = np.ones((1, 4, 8, 2), "f4")
    x[0, 1, 4] = np.inf
    with Session(graph, strict=True, threads=1, cache_dir="") as session:
        given = session.run("y", {"x": x})[0]
    np.testing.assert_array_equal(given[0, :, :, 0], np.array(right, "f4"))


def test_integers_have_no_such_edges() -> None:
    text = (
        "x = Placeholder(dtype=int32, shape=[64])\nz = Placeholder(dtype=int32, shape=[64])\ny = Maximum(x, z, T=int32)"
    )
    with Session(parse(text), strict=True, engine="litert", cache_dir="") as session:
        low = np.iinfo(np.int32).min
        x = np.full(64, low, np.int32)
        np.testing.assert_array_equal(session.run("y", {"x": x, "z": x + 1})[0], x + 1)


def test_bounds_that_are_single_numbers_stay_on_litert() -> None:
    for bound, stays in (("float 0.25", True), ("float[1] [0.25]", True), ("float[1,1] [[0.25]]", False)):
        text = f"x = Placeholder(dtype=float, shape=[67])\nc = Const({bound})\ny = Maximum(x, c, T=float)"
        x = np.full(67, np.nan, "f4")
        with Session(parse(text), strict=True, cache_dir="") as session:
            assert np.isnan(session.run("y", {"x": x})[0]).all()
        with Session(parse(text), strict=True, engine="litert", cache_dir="") as session:
            if stays:
                assert np.isnan(session.run("y", {"x": x})[0]).all()
            else:
                with pytest.raises(RunError, match="NaN may be passed over"):
                    session.run("y", {"x": x})


@pytest.mark.parametrize("bound", ["float nan", "float [nan]", "float [nan, nan]"])
@pytest.mark.parametrize("line", ["Maximum(x, b", "Maximum(b, x", "Minimum(x, b", "Minimum(b, x"])
def test_a_bound_that_is_nan_gives_nan(line: str, bound: str) -> None:
    """As TensorFlow 2.21 does."""
    graph = parse(f"x = Placeholder(dtype=float, shape=[64, 2])\nb = Const({bound})\ny = {line}, T=float)")
    with Session(graph, strict=True, threads=1, cache_dir="") as session:
        assert np.isnan(session.run(["y"], {"x": np.ones((64, 2), np.float32)})[0]).all()


def test_each_row_says_how() -> None:
    assert all(OPERATORS.values())
    assert all(OPS.values())
    assert edge_of("ADD", [], "") == ""


def test_a_nan_that_is_first_in_its_window_takes_no_gradient_of_a_rectifier() -> None:
    """The pool's gradient goes there, as in TensorFlow, and the rectifier's is not moved in front of it."""
    pool = 'T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding="VALID"'
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,4,4,1])
        r = Relu(x, T=float)
        p = MaxPool(r, {pool})
        dp = Placeholder(dtype=float, shape=[1,2,2,1])
        dx = MaxPoolGrad(r, p, dp, {pool})
        dr = ReluGrad(dx, r, T=float)
        db = BiasAddGrad(dr, T=float, data_format="NHWC")
    """)
    x = np.ones((1, 4, 4, 1), np.float32)
    x[0, 0, 0, 0] = np.nan
    with Session(graph, strict=True) as session:
        by_images, by_bias = session.run(["dr:0", "db:0"], {"x:0": x, "dp:0": np.ones((1, 2, 2, 1), np.float32)})
    assert by_images[0, 0, 0, 0] == 0
    assert by_images.sum() == by_bias[0] == 3
