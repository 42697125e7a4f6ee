"""Depthwise networks of the original eight-bit road: codes from 0 to 6 between clipped layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation
from pocketgraph.runtime.eight_bit import arithmetic_choice as eight_bit_choice
from pocketgraph.transforms.tool import run


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes every network for one in which speed counts."""
    monkeypatch.setattr(eight_bit_choice, "MOST_SEARCHED", 0)
    monkeypatch.setattr(eight_bit_choice, "FEW_SEARCHED_LAYERS", 0)


def network(clip: str) -> Graph:
    """A convolution, a depthwise one, two that mix, with another depthwise one between them, and an average."""
    random = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 12, 12, 8])
        c1 = Conv2D(x, w1, T=float, strides=[1, 1, 1, 1], padding="SAME")
        a1 = {clip}(c1, T=float)
        d1 = DepthwiseConv2dNative(a1, w2, T=float, strides=[1, 1, 1, 1], padding="SAME")
        a2 = {clip}(d1, T=float)
        c2 = Conv2D(a2, w3, T=float, strides=[1, 1, 1, 1], padding="SAME")
        a3 = {clip}(c2, T=float)
        d2 = DepthwiseConv2dNative(a3, w4, T=float, strides=[1, 2, 2, 1], padding="SAME")
        a4 = {clip}(d2, T=float)
        c3 = Conv2D(a4, w5, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = AvgPool(c3, T=float, ksize=[1, 6, 6, 1], strides=[1, 1, 1, 1], padding="VALID")
    """)
    shapes = {"w1": (3, 3, 8, 32), "w2": (3, 3, 32, 1), "w3": (1, 1, 32, 32), "w4": (3, 3, 32, 1), "w5": (1, 1, 32, 10)}
    weights = [
        const(name, random.normal(0, (8 / max(9, shape[2] if shape[0] == 1 else 9)) ** 0.5, shape).astype("f4"), FLOAT)
        for name, shape in shapes.items()
    ]
    return graph.replace([*weights, *graph], inputs=["x"], outputs=["y"])


def quantized(graph: Graph) -> Graph:
    return run(graph, "quantize_weights(minimum_size=16) quantize_nodes strip_unused_nodes")


def operations(graph: Graph, folder: Path, data: Any) -> list[Operation]:
    with Session(graph, 1, engine="litert", cache_dir=folder) as session:
        session.run("y", {"x": data})
        (prepared,) = session._calls.plans.values()
        (executable,) = prepared.executables
        program: Any = executable
        return list(program.program.operations)


def test_clipped_values_beside_depthwise_layers_are_codes_and_near_the_original(tmp_path: Path) -> None:
    graph = network("Relu6")
    coded = quantized(graph)
    random = np.random.default_rng(1)
    images = [random.uniform(-1, 1, (1, 12, 12, 8)).astype(np.float32) for _ in range(20)]
    depthwise = [o for o in operations(coded, tmp_path, images[0]) if o.code == "DEPTHWISE_CONV_2D"]
    assert [o.outputs[0].dtype.name for o in depthwise] == ["int8", "int8"]
    with (
        Session(graph, 1, cache_dir=tmp_path) as plain,
        Session(coded, 1, cache_dir=tmp_path) as fast,
        Session(coded, 1, exact=True, cache_dir=tmp_path) as exact,
    ):
        true, quick, slow = (
            np.array([session.run("y", {"x": image})[0] for image in images]) for session in (plain, fast, exact)
        )
    assert np.square(quick - true).mean() <= 1.5 * np.square(slow - true).mean()


@pytest.mark.parametrize("clip", ["Relu", "Relu6"])
def test_only_bounds_that_are_known_make_codes(tmp_path: Path, clip: str) -> None:
    found = operations(quantized(network(clip)), tmp_path, np.zeros((1, 12, 12, 8), np.float32))
    grids = {o.inputs[0].quantization for o in found if o.inputs[0] is not None and o.inputs[0].quantization}
    assert bool(grids) == (clip == "Relu6")
    assert all(grid.scales[0] == pytest.approx(6 / 255) and grid.zero_points == (-128,) for grid in grids)
