"""mobile, mobile_8bit and smallest: on shared models the results stay, and the file gets smaller."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.transforms import tool, transform
from pocketgraph.transforms.parts import weight_rules
from pocketgraph.transforms.rules.mobile import until_fixed_point
from pocketgraph.transforms.rules.mobile_8bit import decibels_kept
from support import assert_close, golden, model_dir, model_info, needs_shared


def model(name: str) -> Graph:
    info = model_info(name)
    graph = formats.load(model_dir(name) / info["file"])
    return graph.replace(inputs=tuple(info["inputs"]), outputs=tuple(info["outputs"]))


@needs_shared
@pytest.mark.parametrize(
    "name",
    ["mobilenet_v1_025_128", "tfl_quantized_graph", "faced_corrector", "mtcnn_blaueck", "music_score_classifier"],
)
def test_mobile_keeps_the_results(name: str) -> None:
    before = model(name)
    after = transform(before, "mobile")
    feeds, _ = golden(model_dir(name))
    expected, found = (Session(graph).run(list(before.outputs), feeds) for graph in (before, after))
    for x, y in zip(expected, found, strict=True):
        assert_close(y, x)
    assert len(after) < len(before)
    again = transform(after, "mobile")
    assert sorted(map(str, again)) == sorted(map(str, after))


@needs_shared
@pytest.mark.parametrize("name", ["poets_retrained_128", "music_score_classifier"])
def test_smallest_is_a_third_and_keeps_the_best_guess(name: str) -> None:
    before = model(name)
    after = transform(before, "smallest")
    assert len(formats.to_bytes(after)) < len(formats.to_bytes(before)) * 0.34
    feeds, _ = golden(model_dir(name))
    expected, found = (Session(graph).run(before.outputs[0], feeds)[0] for graph in (before, after))
    np.testing.assert_array_equal(found.argmax(-1), expected.argmax(-1))


def decibels(expected: np.ndarray, found: np.ndarray) -> float:
    """The signal-to-noise ratio of a result."""
    noise = np.sum((expected.astype(np.float64) - found) ** 2)
    return float(10 * np.log10(np.sum(expected.astype(np.float64) ** 2) / noise)) if noise else float("inf")


@needs_shared
@pytest.mark.parametrize("preset", ["mobile_8bit", "smallest"])
@pytest.mark.parametrize(
    "name",
    ["mobilenet_v1_025_128", "poets_retrained_128", "pose_mobilenet_v2_small", "cifar_frozen", "espcn_x3",
     "customvision_recipe"],
)  # fmt: skip
def test_eight_bits_ruin_no_model(name: str, preset: str, caplog: pytest.LogCaptureFixture) -> None:
    before = model(name)
    with caplog.at_level(logging.WARNING):
        after = transform(before, preset)
    feeds, expected = golden(model_dir(name))
    deep = name == "customvision_recipe"  # whose 25 convolutions in eight bits leave nothing of it
    picture = name == "espcn_x3"  # of which they leave 11 dB
    fragile = deep or picture or any(node.op == "DepthwiseConv2dNative" for node in before)
    assert any(node.op == "QuantizedConv2D" for node in after) == (preset == "mobile_8bit" and not fragile)
    assert ("computes in floats" in caplog.text) == (preset == "mobile_8bit" and fragile)
    found = Session(after).run(list(before.outputs), feeds)
    for ref, result in zip(before.outputs, found, strict=True):
        assert decibels(expected[ref], result) > 20


@needs_shared
def test_fewer_bits_warn_of_depthwise_convolutions(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        transform(model("mobilenet_v1_025_128"), "smallest(num_bits=4)")
    assert "fewer than eight bits" in caplog.text


def test_an_input_keeps_its_type_and_shape() -> None:
    graph = parse("""
        default = Const(bool false)
        training = PlaceholderWithDefault(default, dtype=bool, shape=[])
        raw = Placeholder(dtype=string)
        picture = DecodeJpeg(raw, channels=3)
        wide = Cast(picture, SrcT=uint8, DstT=float)
        y = Softmax(wide, T=float)
        z = LogicalNot(training)
    """)
    after = transform(graph, "mobile", "picture,training", "y,z")
    assert str(after["training"]) == "training = Placeholder(dtype=bool, shape=[])"
    assert after["picture"].op == "Placeholder"
    assert after["picture"].dtype("dtype").name == "uint8"
    given = transform(graph, 'mobile(type=float, shape="1,3")', "wide", "y")
    assert str(given["wide"]) == "wide = Placeholder(dtype=float, shape=[1,3])"


def test_rules_that_never_settle_are_stopped(caplog: pytest.LogCaptureFixture) -> None:
    def swap(graph: Graph) -> Graph:
        """Turns a Relu into a Relu6 and back."""
        other = {"Relu": "Relu6", "Relu6": "Relu"}
        return graph.map_nodes(lambda node: node.replace(op=other[node.op]) if node.op in other else node)

    swap.__module__ = "tests.swap"
    tool.transform(swap)
    try:
        with caplog.at_level(logging.INFO, "pocketgraph.transforms"):
            until_fixed_point(parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)"), "swap")
    finally:
        tool.forget("tests.swap")
    assert "stopped after 5 rounds" in caplog.text


def test_eight_bits_leave_depthwise_convolutions_in_floats(caplog: pytest.LogCaptureFixture) -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        w = Const(float[3,3,2,64] 1.0)
        y = {op}(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    """
    after = transform(parse(text.format(op="Conv2D")), "mobile_8bit", "x", "y")
    assert "ruin" not in caplog.text
    assert any(node.op == "QuantizedConv2D" for node in after)
    after = transform(parse(text.format(op="DepthwiseConv2dNative")), "mobile_8bit", "x", "y")
    assert "mobile_8bit: depthwise convolutions ('y'): eight-bit arithmetic would ruin the model" in caplog.text
    assert after["y"].op == "DepthwiseConv2dNative"
    assert any(node.op == "Dequantize" for node in after)
    assert not any(node.op.startswith("Quantize") for node in after)
    misses = tool.find("mobile_8bit").near_misses(after, {})
    assert [miss.node for miss in misses] == ["y"]
    assert "computes in floats" in misses[0].why


def deep(shape: str, spread: float) -> Graph:
    """Sixteen convolutions, each of which takes away from a channel what the one before added, ``spread`` times."""
    lines = [f"x = Placeholder(dtype=float, shape={shape})"]
    for i in range(16):
        lines.append(f"w{i} = Const(float [[[[1.0, {(-1) ** i * spread}], [0.0, 1.0]]]])")
        source = f"y{i - 1}" if i else "x"
        lines.append(f'y{i} = Conv2D({source}, w{i}, T=float, strides=[1,1,1,1], padding="SAME")')
    return parse("\n".join(lines))


@pytest.mark.parametrize(
    ("shape", "spread", "why"),
    [
        ("[?,8,8,2]", 0.0, ""),
        ("[?,8,8,2]", 37.0, "made-up inputs leave"),
        ("[?,?,8,2]", 0.0, "it cannot be tried out"),
    ],
)
def test_deep_networks_compute_in_eight_bits_where_they_bear_it(
    shape: str, spread: float, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    after = transform(deep(shape, spread), "mobile_8bit", "x", "y15")
    assert any(node.op == "QuantizedConv2D" for node in after) == (not why)
    assert ("16 convolutions: the errors of eight-bit arithmetic add up" in caplog.text) == bool(why)
    assert why in caplog.text
    misses = tool.find("mobile_8bit").near_misses(after, {})
    assert [miss.node for miss in misses] == [f"y{i}" for i in range(16 if why else 0)]


@pytest.mark.parametrize(("end", "why"), [("Tanh", "a convolution makes the result"), ("Softmax", "")])
def test_a_picture_of_few_convolutions_is_tried_and_a_choice_is_not(
    end: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    weights = np.random.default_rng(3).normal(size=(3, 3, 1, 4)).astype(np.float32)
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT}),
        const("w", weights),
        Node("c", "Conv2D", ("x", "w"), {"T": FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME"}),
        Node("y", end, ("c",), {"T": FLOAT}),
    ]
    before = Graph(nodes, inputs=["x"], outputs=["y"])
    after = transform(before, "mobile_8bit")
    assert any(node.op == "QuantizedConv2D" for node in after) == (not why)
    assert why in caplog.text


def test_a_ratio_of_noise_is_as_defined() -> None:
    before = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        two = Const(float 2.0)
        y = Mul(x, two, T=float)
    """).replace(inputs=["x"], outputs=["y"])
    after = before.replace([node if node.name != "two" else const("two", np.float32(1.8)) for node in before])
    kept = decibels_kept(before, after, 100)
    assert kept == pytest.approx(20, abs=1e-3)  # a tenth of the signal is 20 dB below it
    assert decibels_kept(before, before, 100) == float("inf")
    lost = before.replace([node if node.name != "two" else const("two", np.float32(np.nan)) for node in before])
    assert decibels_kept(before, lost, 100) == float("-inf")
    whole = before.map_nodes(lambda node: node.with_attrs(dtype=INT32) if node.op == "Placeholder" else node)
    assert decibels_kept(whole, whole, 100) is None
    assert decibels_kept(before.replace(outputs=["gone"]), before, 100) is None


def test_the_smallest_weights_get_twice_the_bits_within_a_budget() -> None:
    sizes = [255, 1000, 30_000, 40_000, 90_000]
    graph = Graph([const(f"w{size}", np.ones((size, 1), np.float32)) for size in sizes])
    assert weight_rules.largest_fine(graph, per_channel=True) == 30_000  # a third of all is more than 32 KiB
    small = Graph([const(f"w{size}", np.ones((size, 1), np.float32)) for size in sizes[:3]])
    assert weight_rules.largest_fine(small, per_channel=True) == 30_000  # all of it is less than 32 KiB
    large = Graph([const(f"w{i}", np.ones((1000, 1000), np.float32)) for i in range(2)])
    assert weight_rules.largest_fine(large, per_channel=True) == 0
    assert weight_rules.weight_rules(large, 4, False) == (
        "quantize_weights(minimum_size=256, num_bits=4, per_channel=false)"
    )


def test_biases_keep_their_values_when_channels_have_ranges() -> None:
    bias = const("b", np.linspace(-1, 1, 2000, dtype=np.float32))
    kept = transform(Graph([bias]), "quantize_weights(per_channel=true)")
    assert [node.op for node in kept] == ["Const"]
    assert [node.op for node in transform(Graph([bias]), "quantize_weights")][-1] == "Dequantize"
