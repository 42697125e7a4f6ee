"""Hundreds of tiny graphs of the shared models, and its image models, against what TensorFlow computed for them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from kernels.walk import CONTROL_FLOW, missing, run
from pocketgraph.formats import load
from support import assert_close, golden, model_dir, model_info, needs_shared, shared

UNORDERED = ("topk/rank3_k3",)
"""TopKV2 with sorted=False gives the largest in any order."""
FREE_SIGNS = ("svd/rank3_2,3,3_noFull_uv", "svd/rank4_2,2,3,3_noFull_uv")
"""Sums of singular vectors, which may point either way; test_linear_algebra.py holds Svd to what defines it."""


def op_graphs() -> dict[str, Any]:
    if shared() is None:
        return {}
    index: dict[str, Any] = json.loads((model_dir("op_graphs") / "index.json").read_text())
    return {
        name: info
        for name, info in index.items()
        if name not in FREE_SIGNS and not any(op in CONTROL_FLOW or op.startswith("TensorArray") for op in info["ops"])
    }


OP_GRAPHS = op_graphs()


@needs_shared
@pytest.mark.parametrize("name", OP_GRAPHS)
def test_a_tiny_graph_gives_what_tensorflow_gave(name: str) -> None:
    info = OP_GRAPHS[name]
    folder = model_dir("op_graphs")
    with np.load(folder / name / "golden.npz") as data:
        arrays = {key: data[key] for key in data.files}
    graph = load(folder / info["file"])
    assert not missing(graph)
    feeds = {tensor: arrays["in_" + tensor.replace(":", "_")] for tensor in info["inputs"]}
    results = run(graph, info["outputs"], feeds)
    for tensor, actual in zip(info["outputs"], results, strict=True):
        expected = arrays.get("out_" + tensor.replace(":", "_"))
        assert expected is not None, f"no golden for {tensor}"
        if expected.dtype.kind == "V":  # bfloat16 is kept as bytes
            expected = expected.view(actual.dtype)
            np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))
            continue
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        if info.get("nondeterministic"):
            continue
        if name in UNORDERED:
            actual, expected = np.sort(actual, axis=-1), np.sort(expected, axis=-1)
        if expected.dtype.kind == "f":
            finite = np.isfinite(expected)
            np.testing.assert_array_equal(actual[~finite], expected[~finite])
            actual, expected = actual[finite], expected[finite]
        assert_close(actual, expected, relative_to_peak=2e-6)


MODELS = (
    "mobilenet_v1_025_128", "mobilenet_v1_025_128_quant", "poets_retrained_128", "poets_optimized_128",
    "tfl_quantized_graph", "customvision_recipe", "music_score_classifier", "pose_mobilenet_v2_small", "espcn_x3",
    "fsrcnn_small_x4", "smile_tfdroid", "lenet_kisan", "cifar_frozen", "mnist_panjinquan", "mnist_fishbonelsy",
    "mnist_softmax_frozen", "utensor_cifar10_old", "deblur_graph_image", "unity_gridworld", "har_curiousily_model",
    "kws_dnn_s", "kws_ds_cnn_s", "speech_conv_actions_pardeep",
)  # fmt: skip


@needs_shared
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_tensorflow_gave(name: str) -> None:
    folder = model_dir(name)
    graph = load(folder / model_info(name)["file"])
    assert not missing(graph)
    feeds, wanted = golden(folder)
    for tensor, value in feeds.items():
        dtype = graph.producer(tensor).attrs.get("dtype")
        if getattr(dtype, "name", "") == "string":  # the golden keeps a file's bytes
            feeds[tensor] = np.array(value.tobytes(), dtype=object)
    assert wanted
    for (tensor, expected), actual in zip(wanted.items(), run(graph, wanted, feeds), strict=True):
        assert_close(actual, expected)
        if "Predictions" in tensor or "softmax" in tensor:
            assert int(np.argmax(actual)) == int(np.argmax(expected))
