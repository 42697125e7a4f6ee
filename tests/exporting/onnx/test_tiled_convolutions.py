"""Wide convolutions in Winograd's tiles, as OpenVINO is given them, compute what they did."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from litert.test_optimize_for_latency import convolution, floats, graph
from pocketgraph.exporting.onnx import tiled_convolutions
from pocketgraph.exporting.onnx.onnx_program import Body
from pocketgraph.exporting.onnx.protobuf_writer import model_proto
from pocketgraph.exporting.onnx.tiled_convolutions import convolve_in_tiles
from pocketgraph.exporting.onnx.to_onnx import converted
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.nn.tile_transforms import Tiling
from pocketgraph.litert.rewriting import winograd
from pocketgraph.runtime import Session
from pocketgraph.runtime.onnx_runner import OnnxRunner

pytestmark = pytest.mark.usefixtures("wide_kernels")

BATCH_NORM = "n = FusedBatchNormV3(c, s, o, m, v, T=float, U=float, is_training=false, epsilon=0.001)\n"


def tiled(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    """Every convolution that may be is computed in tiles of this size."""

    def tiling_of(convolution: tiled_convolutions.Convolution) -> Tiling:
        down, across = (-(-size // tile) for size, tile in zip(convolution.made, (rows, columns), strict=True))
        return Tiling(rows, columns, down, across)

    monkeypatch.setattr(tiled_convolutions, "tiling_of", tiling_of)


def form(model: Graph, shape: tuple[int, ...], *outputs: str) -> Body:
    made = converted(model, {"x:0": (FLOAT, Shape(shape))}, [f"{name}:0" for name in outputs])
    convolve_in_tiles(made.body)
    return made.body


def check(model: Graph, shape: tuple[int, ...], *outputs: str) -> Counter[str]:
    """The graph in tiles computes what the reference kernels compute; how many operators of each kind it became."""
    body = form(model, shape, *outputs)
    image = floats(*shape)
    with Session(model, engine="reference") as session:
        wanted = session.run(list(outputs), {"x": image})
    given = OnnxRunner(model_proto(body, 17, "tiles", "0").SerializeToString(), 1).run(None, {"x": image})
    for one, other in zip(given, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=3e-5 * np.abs(other).max())
    return Counter(operation.code for operation in body.operations)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("shape", "window", "count", "tile"),
    [
        ((1, 14, 14, 40), (3, 3), 48, (2, 2)),
        ((2, 13, 11, 40), (3, 3), 33, (2, 2)),  # two images, no whole tiles
        ((1, 12, 16, 32), (3, 3), 40, (4, 4)),
        ((3, 14, 15, 40), (3, 3), 40, (4, 4)),
        ((1, 14, 14, 32), (5, 5), 40, (2, 2)),
        ((2, 13, 15, 32), (5, 5), 32, (4, 4)),
        ((1, 15, 14, 32), (7, 7), 32, (2, 2)),
        ((2, 17, 17, 40), (1, 7), 48, (1, 2)),
        ((2, 17, 16, 40), (7, 1), 48, (2, 1)),
        ((1, 8, 9, 40), (1, 3), 48, (1, 4)),
        ((1, 9, 8, 40), (3, 1), 48, (4, 1)),
    ],
)
def test_tiles_compute_what_the_convolution_does(
    shape: tuple[int, ...],
    window: tuple[int, int],
    count: int,
    tile: tuple[int, int],
    padding: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiled(monkeypatch, *tile)
    model = graph(
        convolution("c", "x", "w", 1, padding) + "b = BiasAdd(c, bias, T=float)\ny = Relu6(b, T=float)\n",
        shape,
        w=floats(*window, shape[3], count) / np.float32(np.sqrt(shape[3] * window[0] * window[1])),
        bias=floats(count),
    )
    codes = check(model, shape, "y")
    assert codes["MatMul"] == 2
    assert codes["Conv"] == sum(size + taps - 1 for size, taps in zip(tile, window, strict=True) if taps > 1)


def network(text: str, count: int = 40) -> Graph:
    return graph(
        convolution("c", "x", "w", 1) + text,
        (1, 9, 10, 36),
        w=floats(3, 3, 36, count) / 18,
        s=floats(count) + 2,
        o=floats(count),
        m=floats(count),
        v=floats(count) + 1.5,
        one=floats(1),
        rows=floats(9, 1, 1),
        plane=floats(1, 9, 10, count),
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("y = Identity(c, T=float)\n", {"Add": 0}),
        (BATCH_NORM + "y = Relu(n, T=float)\n", {"BatchNormalization": 0, "Relu": 1, "Add": 1}),
        ("b = BiasAdd(c, o, T=float)\n" + BATCH_NORM.replace("(c", "(b") + "y = Relu(n, T=float)\n",
         {"BatchNormalization": 0, "Add": 1}),
        ("p = Mul(c, s, T=float)\nq = Add(p, o, T=float)\nr = Mul(q, one, T=float)\ny = Relu6(r, T=float)\n",
         {"Mul": 0, "Add": 1, "Clip": 1}),
        ("p = Mul(s, c, T=float)\ny = Elu(p, T=float)\n", {"Mul": 0, "Elu": 1}),
        ("y = Mul(c, rows, T=float)\n", {"Mul": 1}),  # a factor for each row, not each channel
        ("y = Add(c, plane, T=float)\n", {"Add": 1}),
        ("y = Mul(c, c, T=float)\n", {"Mul": 1}),
        ("p = Sub(o, c, T=float)\ny = Relu(p, T=float)\n", {"Sub": 1}),
    ],
)  # fmt: skip
def test_what_comes_behind_goes_into_the_weights(
    text: str, left: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiled(monkeypatch, 2, 2)
    codes = check(network(text), (1, 9, 10, 36), "y")
    assert codes["MatMul"] == 2
    assert {code: codes[code] for code in left} == left


def test_what_others_read_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, 4, 4)
    model = network(BATCH_NORM + "y = Relu(n, T=float)\nz = Abs(n, T=float)\nu = Sqrt(y, T=float)\n")
    assert check(model, (1, 9, 10, 36), "y", "z", "u")["MatMul"] == 2
    model = network(BATCH_NORM + "y = Relu(n, T=float)\n")
    assert check(model, (1, 9, 10, 36), "c", "n", "y")["BatchNormalization"] == 1


@pytest.mark.parametrize(
    "text",
    [
        convolution("y", "x", "w", 2),
        'y = Conv2D(x, w, T=float, strides=[1,1,1,1], dilations=[1,2,2,1], padding="SAME")\n',
        convolution("y", "x", "narrow", 1),
        convolution("y", "x", "point", 1),
        "a = Abs(w, T=float)\nr = Identity(x, T=float)\n" + convolution("y", "r", "grouped", 1),
        'y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding="SAME")\n',
    ],
)
def test_others_stay_as_they_are(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, 2, 2)
    shape = (1, 12, 12, 64)
    weights = {
        "w": floats(3, 3, 64, 64 if "Depthwise" not in text else 1),
        "narrow": floats(3, 3, 64, 8),
        "point": floats(1, 1, 64, 64),
        "grouped": floats(3, 3, 32, 64),
    }
    model = graph(text, shape, **weights)
    assert "MatMul" not in check(model, shape, "y")


@pytest.mark.parametrize(
    ("shape", "window", "count", "tile"),
    [
        ((1, 28, 28, 128), 3, 128, 4),
        ((1, 14, 14, 256), 3, 256, 2),
        ((1, 56, 56, 64), 3, 64, 4),
        ((1, 35, 35, 48), 5, 64, 4),
        ((1, 149, 149, 32), 3, 32, None),  # moving tiles takes longer than what it saves
        ((1, 7, 7, 512), 3, 512, None),  # so does reading weights
        ((32, 7, 7, 512), 3, 512, 4),  # which many images share
    ],
)
def test_the_size_of_tiles(shape: tuple[int, ...], window: int, count: int, tile: int | None) -> None:
    model = graph(convolution("y", "x", "w", 1), shape, w=floats(window, window, shape[3], count))
    body = form(model, shape, "y")
    found = [each for each in body.operations if each.attrs.get("group", 1) == shape[3]]
    assert {each.attrs["strides"][0] for each in found if each.attrs["kernel_shape"][1] == 1} == ({tile} - {None})


def test_on_processors_with_narrow_vectors_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: False)
    tiled(monkeypatch, 2, 2)
    assert "MatMul" not in check(network("y = Relu(c, T=float)\n"), (1, 9, 10, 36), "y")
