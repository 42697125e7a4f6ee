"""Ops that files hold as several operators: colours, hyperbolic functions, rows by constant places."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session
from pocketgraph.exporting.programs import LackingError
from pocketgraph.graph.text_format import parse

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[1, 6, 5, 3])
    more = Const(float 1.4)
    turn = Const(float 0.3)
    hsv = RGBToHSV(x, T=float)
    rgb = HSVToRGB(x, T=float)
    vivid = AdjustSaturation(x, more, T=float)
    turned = AdjustHue(x, turn, T=float)
    stark = AdjustContrastv2(x, more, T=float)
    sinh = Sinh(x, T=float)
    cosh = Cosh(x, T=float)
    size = Const(int32 [6, 15])
    rows = Reshape(x, size, T=float, Tshape=int32)
    places = Const(int32 [0, 0, 2, 2, 2, 3])
    total = SegmentSum(rows, places, T=float, Tindices=int32)
    mean = SegmentMean(rows, places, T=float, Tindices=int32)
    even = Const(int32 [5, 0, 1, 3, 2, 4])
    odd = Const(int32 [0, 1, 2, 3, 4, 5])
    last = DynamicStitch(odd, even, rows, mirrored, T=float, N=2)
    mirrored = Tanh(rows, T=float)
""")
OUTPUTS = ["hsv", "rgb", "vivid", "turned", "stark", "sinh", "cosh", "total", "mean", "last"]


@pytest.mark.parametrize("target", ["tflite", "c"])
def test_they_are_exported(target: str, tmp_path: pathlib.Path) -> None:
    """Held to the reference kernels, which TensorFlow's goldens hold."""
    pixels = np.random.default_rng(1).random((4, 6, 5, 3), dtype=np.float32)
    pixels[0, 0, 0] = 0.5  # grey, black, and two equal channels
    pixels[0, 0, 1] = 0
    pixels[0, 0, 2] = [0.7, 0.7, 0.1]
    outputs = [name for name in OUTPUTS if target != "c" or name not in ("total", "mean")]  # C has no kernel for these
    made = pocketgraph.export(
        GRAPH, tmp_path / f"net.{target}", target=target, outputs=outputs, samples=pixels, tolerance=2e-6
    )
    assert len(made.checks[0].outputs) == len(outputs)
    assert made.checks[0].passed


def test_c_points_to_a_file_that_has_the_operator(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(GRAPH, tmp_path / "net", target="c", outputs=["mean"])
    said = "check with target=tflite,onnx tells whether a .tflite or an .onnx file can hold it"
    assert caught.value.hint.endswith(said)
    assert pocketgraph.export(GRAPH, tmp_path / "net.onnx", outputs=["mean"]).checks[0].passed


def test_hyperbolic_functions_are_as_exact_as_the_exponential() -> None:
    """LiteRT's EXP is up to 3.8e-6 off for large operands; a session has NumPy for them."""
    graph = parse("x = Placeholder(dtype=float, shape=[?])\ns = Sinh(x, T=float)\nc = Cosh(x, T=float)")
    points = np.float32([-89, -3.5, -1, -1e-3, -1e-10, 0, 1e-5, 0.3, 1.0001, 20, 80, 89.1, 90, np.inf, np.nan])
    with Session(graph, threads=1, engine="litert") as session:
        sinh, cosh = session.run(["s", "c"], {"x": points})
    with np.errstate(over="ignore"):
        small = np.abs(points) < 10
        for found, exact in ((sinh, np.sinh(points.astype("f8"))), (cosh, np.cosh(points.astype("f8")))):
            np.testing.assert_allclose(found[small], exact[small].astype("f4"), rtol=1e-6)
            np.testing.assert_allclose(found, exact.astype("f4"), rtol=4e-6)


def test_a_session_leaves_to_numpy_what_that_computes_sooner() -> None:
    with Session(GRAPH) as session:
        said = str(session.plan(OUTPUTS, {"x": np.zeros((1, 6, 5, 3), np.float32)}))
    assert "NumPy computes it sooner" in said


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("y = SegmentSum(x, i, T=float, Tindices=int32)\ni = Const(int32 [1, 0])", "not sorted"),
        ("y = SegmentMean(x, i, T=float, Tindices=int32)\ni = Const(int32 [0, 2000000000])", "over 1,048,576"),
        ("y = DynamicStitch(i, x, T=float, N=1)\ni = Const(int32 [0, 2000000000])", "no index names"),
    ],
)
def test_places_that_make_no_result_are_refused(node: str, reason: str, tmp_path: pathlib.Path) -> None:
    graph = parse(f"x = Placeholder(dtype=float, shape=[2, 3])\n{node}")
    with pytest.raises(LackingError, match=reason):
        pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
