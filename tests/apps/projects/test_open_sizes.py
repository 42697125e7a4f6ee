"""Sizes that a graph leaves open: told by samples, the caller's size of pictures, or the weights; else asked for."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.apps.projects import make_project
from pocketgraph.errors import UsageError
from pocketgraph.exporting import export
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse

POOLED = """
    x = Placeholder(dtype=float, shape=[?,?,?,3])
    conv = Conv2D(x, w, strides=[1,2,2,1], padding="SAME", T=float)
    axes = Const(int32 [1, 2])
    y = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
"""
FLAT = """
    x = Placeholder(dtype=float, shape=[?,?,?,1])
    conv = Conv2D(x, w, strides=[1,2,2,1], padding="SAME", T=float)
    sizes = Const(int32 [-1, 392])
    flat = Reshape(conv, sizes, T=float, Tshape=int32)
    y = MatMul(flat, v, T=float)
"""
SERIES = """
    x = Placeholder(dtype=float, shape=[?,?,6])
    axes = Const(int32 [1])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    y = MatMul(mean, w, T=float)
"""


def graph(text: str, **shapes: tuple[int, ...]) -> Graph:
    rng = np.random.default_rng(0)
    weights = [const(name, rng.normal(0, 0.1, shape).astype(np.float32)) for name, shape in shapes.items()]
    return Graph([*parse(text), *weights])


def fed(folder: pathlib.Path, model: Graph, **how: Any) -> list[int]:
    """The shape that a project feeds."""
    make_project("pi", model, folder, **how)
    shape: list[int] = json.loads((folder / "model.json").read_text())["inputs"][0]["shape"]
    return shape


def test_samples_tell(tmp_path: pathlib.Path) -> None:
    arrays = {"x": np.zeros((4, 24, 32, 3), np.float32)}
    assert fed(tmp_path / "pictures", graph(POOLED, w=(3, 3, 3, 2)), samples=arrays) == [1, 24, 32, 3]
    series = {"x": np.zeros((4, 50, 6), np.float32)}
    made = make_project("pi", graph(SERIES, w=(6, 2)), tmp_path / "series", samples=series)
    assert "the sizes of 'x' are fixed to [1, 50, 6]" in made.notes
    library = export(graph(SERIES, w=(6, 2)), tmp_path / "c", target="c", samples=series)
    assert library.checks[0].passed


def test_the_size_of_pictures_needs_no_samples(tmp_path: pathlib.Path) -> None:
    model = graph(POOLED, w=(3, 3, 3, 2))
    assert fed(tmp_path / "out", model, input_width=32, input_height=24) == [1, 24, 32, 3]


def test_weights_tell(tmp_path: pathlib.Path) -> None:
    made = make_project("pi", graph(FLAT, w=(3, 3, 1, 2), v=(392, 3)), tmp_path / "out")
    assert "the sizes of 'x' are fixed to [1, 28, 28, 1], which its weights take" in made.notes


@pytest.mark.parametrize(
    ("model", "how"),
    [
        (graph(POOLED, w=(3, 3, 3, 2)), {}),
        (graph(SERIES, w=(6, 2)), {}),
        (graph(SERIES, w=(6, 2)), {"input_width": 40, "input_height": 40}),  # it takes no pictures
    ],
)
def test_what_nothing_tells_is_asked_for(model: Graph, how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="leaves some open: 'x'") as caught:
        make_project("pi", model, tmp_path / "out", **how)
    assert "input_shape" in str(caught.value) or "shapes" in str(caught.value)
    assert not (tmp_path / "out").exists()
