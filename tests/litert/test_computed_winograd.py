"""Convolutions with computed weights, and gradients by weights, compute in Winograd's tiles what they did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from litert.parts import lowered
from litert.single_ops import run_graph, run_reference
from pocketgraph import Session
from pocketgraph.graph import Graph, Shape, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.cost_model import TILED_AT_ONCE
from pocketgraph.litert.rewriting import winograd
from pocketgraph.litert.rewriting.computed_winograd import computed_tiling_of
from pocketgraph.litert.rewriting.optimize import FOR_THIS_PROCESSOR
from quantize_nets import float_program
from support import assert_close

pytestmark = pytest.mark.usefixtures("wide_kernels")

random = np.random.default_rng(12)
CASES = [
    ((8, 16, 16, 64), (3, 3), 64),
    ((3, 13, 18, 64), (3, 3), 48),  # no whole tiles
    ((32, 32, 32, 32), (3, 3), 32),  # in several groups of images
    ((5, 14, 14, 32), (3, 3), 64),
    ((4, 12, 12, 64), (5, 5), 64),
    ((4, 9, 17, 96), (1, 7), 64),
    ((4, 17, 9, 96), (7, 1), 64),
]


def floats(*shape: int) -> np.ndarray:
    return random.normal(size=shape).astype(np.float32)


def network(
    shape: Sequence[int], window: Sequence[int], count: int, padding: str = "SAME", stride: int = 1
) -> tuple[Graph, dict[str, np.ndarray]]:
    """A convolution with fed weights and both gradients, and what it is fed."""
    batch, height, width, depth = shape
    lost = window if padding == "VALID" else (1, 1)
    result = (
        batch,
        *(-(-(size - taps + 1) // stride) for size, taps in zip((height, width), lost, strict=True)),
        count,
    )
    feeds = {"x:0": floats(*shape), "w:0": floats(*window, depth, count), "g:0": floats(*result)}
    sizes = {name: ",".join(map(str, value.shape)) for name, value in feeds.items()}
    how = f'T=float, strides=list[1,{stride},{stride},1], padding="{padding}"'
    text = f"""
        x = Placeholder(dtype=float, shape=[{sizes["x:0"]}])
        w = Placeholder(dtype=float, shape=[{sizes["w:0"]}])
        g = Placeholder(dtype=float, shape=[{sizes["g:0"]}])
        y = Conv2D(x, w, {how})
        dx = Conv2DBackpropInput(x_sizes, w, g, {how})
        dw = Conv2DBackpropFilter(x, w_sizes, g, {how})
    """
    constants = [
        const("x_sizes", np.array(shape, np.int32)),
        const("w_sizes", np.array(feeds["w:0"].shape, np.int32)),
    ]
    return Graph([*constants, *parse(text)]), feeds


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("shape", "window", "count"), CASES)
def test_tiles_compute_what_the_convolution_and_its_gradients_do(
    shape: tuple[int, ...], window: tuple[int, int], count: int, padding: str
) -> None:
    model, feeds = network(shape, window, count, padding)
    for name in ("y:0", "dx:0", "dw:0"):
        actual, codes = run_graph(model, feeds, [name])
        assert "DEPTHWISE_CONV_2D" in codes, f"{name} is not computed in tiles"
        (expected,) = run_reference(model, feeds, [name])
        assert actual[0].shape == expected.shape
        assert_close(actual[0], expected, 3e-5)


def test_many_images_are_taken_in_groups() -> None:
    model, feeds = network((32, 32, 32, 32), (3, 3), 32)
    _, codes = run_graph(model, feeds, ["y:0"])
    assert 2 * TILED_AT_ONCE < 32 * 8 * 8 * 36 * (32 + 32) * 4
    assert codes.count("PAD") > 2


@pytest.mark.parametrize(
    ("shape", "window", "count", "stride"),
    [
        ((8, 16, 16, 64), (3, 3), 64, 2),
        ((8, 16, 16, 64), (1, 1), 64, 1),
        ((8, 16, 16, 64), (4, 4), 64, 1),
        ((8, 16, 16, 3), (3, 3), 64, 1),
        ((1, 4, 4, 32), (3, 3), 32, 1),
    ],
)
def test_what_would_gain_nothing_stays(
    shape: tuple[int, ...], window: tuple[int, int], count: int, stride: int
) -> None:
    model, feeds = network(shape, window, count, stride=stride)
    names = ["y:0", "dx:0", "dw:0"]
    actual, codes = run_graph(model, feeds, names)
    assert "DEPTHWISE_CONV_2D" not in codes
    for one, other in zip(actual, run_reference(model, feeds, names), strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("pads", [(3, 0, 0, 0), (0, 4, 0, 4), (3, 3, 4, 1), (1, 2, 0, 1)])
def test_borders_of_any_width(pads: tuple[int, int, int, int]) -> None:
    top, bottom, left, right = pads
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    feeds["g:0"] = floats(8, 14 + top + bottom, 14 + left + right, 64)
    around = (0, 0, *pads, 0, 0)
    shapes = {"g": feeds["g:0"].shape}
    model = Graph(
        node.replace(attrs={**node.attrs, "padding": b"EXPLICIT", "explicit_paddings": around})
        if "padding" in node.attrs
        else node.replace(attrs={**node.attrs, "shape": Shape(shapes[node.name])})
        if node.name in shapes
        else node
        for node in model
    )
    for name in ("y:0", "dx:0", "dw:0"):
        actual, codes = run_graph(model, feeds, [name])
        assert ("DEPTHWISE_CONV_2D" in codes) == (name != "dx:0" or max(pads) < 3)
        (expected,) = run_reference(model, feeds, [name])
        assert_close(actual[0], expected, 3e-5)


def test_it_stays_on_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: False)
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    assert "DEPTHWISE_CONV_2D" not in run_graph(model, feeds, ["y:0", "dx:0", "dw:0"])[1]


def test_exported_programs_have_no_tiles() -> None:
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    program = float_program(model, ["y:0", "dx:0", "dw:0"], {name: value.shape for name, value in feeds.items()})
    assert all(operation.code != "DEPTHWISE_CONV_2D" for operation in program.operations)


def test_passes_keep_the_note() -> None:
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    specs = {name: (FLOAT, value.shape) for name, value in feeds.items()}
    without = ["merge_reshapes", *FOR_THIS_PROCESSOR]
    plain = lowered(model, [model["y"]], ["x:0", "w:0"], ["y:0"], specs, without)
    assert computed_tiling_of(plain.operations[-1]) is not None


def test_it_is_switched_off_by_name_and_in_strict_sessions() -> None:
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    infinite = dict(feeds, **{"x:0": feeds["x:0"].copy()})
    infinite["x:0"][0, 5, 5, 0] = np.inf
    names = ["y:0", "dx:0", "dw:0"]
    results = []
    for options in ({}, {"without": ["winograd_training"]}, {"strict": True}):
        with Session(model, without=options.get("without", ()), strict="strict" in options) as session:
            for _ in range(3):
                found = session.run(names, feeds)
            results.append(found)
            if "strict" in options:
                far = session.run("y:0", infinite)[0]
                assert np.isfinite(far[0, :4]).all()
                assert np.isfinite(far[1:]).all()
    for tiled, plain, strict in zip(*results, strict=True):
        assert_close(tiled, plain, 3e-5)
        assert_close(strict, plain, 3e-5)


def test_biases_and_activations_behind_tiles() -> None:
    model, feeds = network((8, 16, 16, 64), (3, 3), 64)
    more = "b = BiasAdd(y, bias, T=float)\nr = Relu(b, T=float)\nd = ReluGrad(dx, x, T=float)\n"
    model = Graph([const("bias", floats(64)), *model, *parse(more)])
    names = ["r:0", "d:0", "y:0"]
    actual, codes = run_graph(model, feeds, names)
    assert "DEPTHWISE_CONV_2D" in codes
    for one, other in zip(actual, run_reference(model, feeds, names), strict=True):
        assert_close(one, other, 3e-5)


def test_times_are_those_of_images_that_are_taken_together() -> None:
    """LiteRT 2.3, 128 images of 14x14, 5x5 from 32 to 64 channels: 18.3 ms in tiles, 26.9 without."""
    share = winograd.share_in_tiles((128, 14, 14, 64), (5, 5), 32)
    assert share is not None
    assert 0.6 < share < 0.9
