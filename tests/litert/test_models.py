"""Whole real models on the LiteRT engine, against what TensorFlow computed."""

from __future__ import annotations

import pytest

from litert.parts import lowered
from litert.single_ops import run_graph
from pocketgraph import formats
from pocketgraph.graph import DType
from support import assert_close, golden, model_dir, model_info, needs_shared

WHOLE = (
    "bender_dense", "chatbot_tfdroid", "cifar_frozen", "customvision_recipe", "espcn_x3", "fsrcnn_small_x4",
    "mnist_fishbonelsy", "mnist_panjinquan", "mobilenet_v1_025_128", "mobilenet_v1_025_128_quant",
    "music_score_classifier", "poets_optimized_128", "poets_retrained_128", "pose_mobilenet_v2_small", "smile_tfdroid",
    "tf2onnx_ae0", "tfl_quantized_graph", "unity_gridworld", "unity_reacher", "utensor_mnist_demo",
)  # fmt: skip
"""Models that LiteRT can run from end to end."""


@needs_shared
@pytest.mark.parametrize("name", WHOLE)
def test_model(name: str) -> None:
    folder = model_dir(name)
    feeds, wanted = golden(folder)
    graph = formats.load(folder / model_info(name)["file"])
    results, _ = run_graph(graph, feeds, list(wanted))
    for actual, expected in zip(results, wanted.values(), strict=True):
        assert_close(actual, expected)
        if expected.ndim == 2 and expected.shape[1] > 1:
            assert (actual.argmax(1) == expected.argmax(1)).all()


@needs_shared
def test_mobilenet_becomes_what_the_official_converter_makes_of_it() -> None:
    folder = model_dir("mobilenet_v1_025_128")
    feeds, wanted = golden(folder)
    graph = formats.load(folder / model_info("mobilenet_v1_025_128")["file"])
    specs = {name: (DType.of_numpy(array.dtype), array.shape) for name, array in feeds.items()}
    program = lowered(graph, list(graph), list(feeds), list(wanted), specs)
    codes = [operation.code for operation in program.operations]
    assert {code: codes.count(code) for code in codes} == {
        "CONV_2D": 15, "DEPTHWISE_CONV_2D": 13, "AVERAGE_POOL_2D": 1, "RESHAPE": 1, "SOFTMAX": 1,
    }  # fmt: skip
