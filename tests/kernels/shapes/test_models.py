"""Static shapes of whole models, against TensorFlow's own (fixtures/make_shapes.py) and against what models gave."""

from __future__ import annotations

import json
import lzma
import pathlib
from functools import cache
from typing import Any

import numpy as np
import pytest

from pocketgraph.formats import load
from pocketgraph.graph import DType, Graph, Shape, Versions
from pocketgraph.kernels.shapes import infer
from support import golden, model_dir, model_info, needs_shared, shared

RECORDS = pathlib.Path(__file__).parents[2] / "fixtures" / "shapes" / "tensorflow.json.xz"
RECENT = 24  # GraphDef version; the records were made with at least this one


@cache
def records() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(RECORDS.read_bytes()))
    return found


@cache
def small_models() -> dict[str, dict[str, Any]]:
    base = shared()
    assert base is not None
    found: dict[str, dict[str, Any]] = json.loads((base / "models/op_graphs/index.json").read_text())
    return found


def graph_of(name: str) -> Graph:
    if name.startswith("op_graphs/"):
        path = model_dir("op_graphs") / small_models()[name.removeprefix("op_graphs/")]["file"]
    else:
        path = model_dir(name) / model_info(name)["file"]
    graph = load(path)
    return graph.replace(versions=Versions(producer=max(RECENT, graph.versions.producer)))


def check(name: str) -> tuple[int, int]:
    """Compares one model; returns how many tensors there are and how many of them we know less of than TensorFlow."""
    record = records()[name]
    feeds = {tensor: (DType.named(dtype), Shape(shape)) for tensor, (dtype, shape) in record["feeds"].items()}
    graph = graph_of(name)
    found = infer(graph, feeds)
    assert not found.problems
    tensors = sorted(f"{node.name}:{port}" for node in graph for port in range(len(found.shapes(node.name))))
    assert len(tensors) == len(record["shapes"])
    less = 0
    for tensor, dims in zip(tensors, record["shapes"], strict=True):
        ours, theirs = found.shape(tensor), Shape(dims)
        assert ours.fits(theirs), f"{name}: {tensor} is {ours}, not {theirs}"
        less += known(ours) < known(theirs)
    return len(tensors), less


def known(shape: Shape) -> int:
    return -1 if shape.dims is None else sum(size is not None for size in shape.dims)


TRAINING = {"federated_graph": 3, "rust_regression": 7}
"""Tensors of gradients of which TensorFlow knows more, because it sees that nothing is an empty list."""


@needs_shared
@pytest.mark.parametrize("name", [name for name in records() if not name.startswith("op_graphs/")])
def test_models_have_the_shapes_that_tensorflow_infers(name: str) -> None:
    _, less = check(name)
    assert less <= TRAINING.get(name, 0)


@needs_shared
def test_small_graphs_have_the_shapes_that_tensorflow_infers() -> None:
    results = {name: check(name) for name in records() if name.startswith("op_graphs/")}
    assert len(results) > 600
    assert not [name for name, (_, less) in results.items() if less]


@needs_shared
@pytest.mark.parametrize("name", [name for name in records() if not name.startswith("op_graphs/")])
def test_outputs_have_the_shapes_that_the_model_gave(name: str) -> None:
    folder = model_dir(name)
    if not (folder / "golden.npz").exists():
        pytest.skip("this model has no golden outputs")
    feeds, expected = golden(folder)
    graph = graph_of(name)
    shapes = {tensor: (DType.of_numpy(value.dtype), Shape(value.shape)) for tensor, value in feeds.items()}
    found = infer(graph, shapes)
    strided = "golden_stride_hw" in model_info(name)
    for tensor, value in expected.items():
        shape = found.shape(tensor)
        assert shape.rank in (value.ndim, None)
        assert strided or shape.fits(value.shape), f"{tensor} is {shape}, not {list(value.shape)}"
        assert found.dtype(tensor) is None or value.dtype == np.dtype("V2") or found.dtype(tensor).numpy == value.dtype  # type: ignore[union-attr]


IMAGE_MODELS = (
    "mobilenet_v1_025_128", "poets_retrained_128", "poets_optimized_128", "mnist_panjinquan", "cifar_frozen",
    "lenet_kisan", "pose_mobilenet_v2_small", "espcn_x3", "fsrcnn_small_x4", "music_score_classifier",
    "customvision_recipe", "smile_tfdroid", "utensor_cifar10_old", "tfl_quantized_graph", "enet_segmentation",
)  # fmt: skip


@needs_shared
@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_every_tensor_of_an_image_model_is_fully_known(name: str) -> None:
    feeds, _ = golden(model_dir(name))
    shapes = {tensor: (DType.of_numpy(value.dtype), Shape(value.shape)) for tensor, value in feeds.items()}
    graph = graph_of(name)
    found = infer(graph, shapes)
    assert [n.name for n in graph for shape in found.shapes(n.name) if not shape.is_known] == []
