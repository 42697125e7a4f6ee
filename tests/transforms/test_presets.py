"""mobile, mobile_8bit and smallest: on shared models the results stay, and the file gets smaller."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.graph import Graph
from pocketgraph.graph.text import parse
from pocketgraph.runtime import Session
from pocketgraph.transforms import _fixed_point, tool, transform
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
def test_smallest_is_a_quarter_and_keeps_the_best_guess(name: str) -> None:
    before = model(name)
    after = transform(before, "smallest")
    assert len(formats.to_bytes(after)) < len(formats.to_bytes(before)) * 0.3
    feeds, _ = golden(model_dir(name))
    expected, found = (Session(graph).run(before.outputs[0], feeds)[0] for graph in (before, after))
    np.testing.assert_array_equal(found.argmax(-1), expected.argmax(-1))


@needs_shared
def test_mobile_8bit_computes_in_eight_bits() -> None:
    before = model("mobilenet_v1_025_128")
    after = transform(before, "mobile_8bit")
    assert any(node.op == "QuantizedConv2D" for node in after)
    feeds, _ = golden(model_dir("mobilenet_v1_025_128"))
    found = Session(after).run(before.outputs[0], feeds)[0]
    assert np.isfinite(found).all()


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
            _fixed_point.until_settled(parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)"), "swap")
    finally:
        tool.forget("tests.swap")
    assert "stopped after 5 rounds" in caplog.text
