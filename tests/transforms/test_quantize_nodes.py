"""quantize_nodes where it does the right thing and the original does not, and that the numbers stay; test_oracle.py
compares it with the original."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import GraphError, TransformError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

CONV = """
    x = Placeholder(dtype=float, shape=[1,6,6,2])
    w = Const(float [[[[1.0, -0.5, 0.25], [0.5, 0.125, -1.0]]]])
    conv = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME", data_format="{layout}", dilations=[1,1,1,1])
    bias = Const(float [0.5, -0.25, 0.0])
    sum = BiasAdd(conv, bias, T=float, data_format="{layout}")
    pool = MaxPool(sum, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME", data_format="{layout}")
    y = Relu(pool, T=float)
"""
IMAGE = np.random.default_rng(0).uniform(-1, 1, (1, 6, 6, 2)).astype(np.float32)


def run(graph: Graph, **feeds: np.ndarray) -> np.ndarray:
    return np.asarray(Session(graph).run([f"{graph.outputs[0]}:0"], {f"{k}:0": v for k, v in feeds.items()})[0])


@pytest.mark.parametrize("parameters", ["", "(fallback_min=-3, fallback_max=3)", "(ignore_op=MaxPool, ignore_op=Relu)"])
def test_the_results_stay_near(parameters: str) -> None:
    before = parse(CONV.format(layout="NHWC")).replace(inputs=["x"], outputs=["y"])
    after = transform(before, f"quantize_nodes{parameters} strip_unused_nodes")
    ops = {node.op for node in after}
    assert {"QuantizedConv2D", "QuantizedBiasAdd", "Requantize"} <= ops
    assert ("RequantizationRange" in ops) == ("fallback" not in parameters)
    assert ("QuantizedRelu" in ops) == ("ignore" not in parameters)
    np.testing.assert_allclose(run(after, x=IMAGE), run(before, x=IMAGE), atol=0.06)


def test_a_graph_fed_with_eight_bits() -> None:
    before = parse(CONV.format(layout="NHWC")).replace(inputs=["x"], outputs=["y"])
    after = transform(before, "quantize_nodes(input_min=-1, input_max=1) strip_unused_nodes")
    codes = np.rint((IMAGE + 1) * 127.5).astype(np.uint8)
    np.testing.assert_allclose(run(after, x=codes), run(before, x=IMAGE), atol=0.06)


def test_what_the_eight_bit_form_would_do_otherwise_stays_float() -> None:
    nchw = parse(CONV.format(layout="NCHW"))
    after = transform(nchw, "quantize_nodes")
    assert {node.op for node in after} & {"Conv2D", "BiasAdd", "MaxPool"} == {"Conv2D", "BiasAdd", "MaxPool"}
    assert "Conv2D" not in {node.op for node in transform(nchw, "quantize_nodes", compat="original")}


SQUARE = """
    x = Placeholder(dtype=float, shape=[3])
    first = Identity(x, T=float)
    y = Mul(first, first, ^x, T=float)
"""


def test_an_input_may_come_twice_and_control_inputs_stay() -> None:
    before = parse(SQUARE).replace(inputs=["x"], outputs=["y"])
    after = transform(before, "quantize_nodes strip_unused_nodes")
    assert after["y/eightbit"].inputs[-1] == "^x"
    assert len([node for node in after if node.op == "QuantizeV2"]) == 1
    x = np.array([-1.0, 0.5, 2.0], np.float32)
    np.testing.assert_allclose(run(after, x=x), x * x, atol=0.06)
    with pytest.raises(TransformError, match="same twice"):
        transform(before, "quantize_nodes", compat="original")


FAKE = """
    x = Placeholder(dtype=float, shape=[1,2])
    w = Const(float [[1.0, -2.0], [0.5, 1.0]])
    m = MatMul(x, w, T=float)
    s = {op}(m, T=float)
    low = Const(float 0.0)
    high = Const(float 6.0)
    f = FakeQuantWithMinMaxVars(s, low, high{bits})
    y = Relu6(f, T=float)
"""


def fake(op: str = "Relu", bits: str = "") -> Graph:
    return parse(FAKE.format(op=op, bits=bits)).replace(inputs=["x"], outputs=["y"])


def test_a_trained_range_takes_the_place_of_a_searched_one() -> None:
    after = transform(fake(), "quantize_nodes strip_unused_nodes")
    assert "RequantizationRange" not in {node.op for node in after}
    x = np.array([[2.0, 1.5]], np.float32)
    np.testing.assert_allclose(run(after, x=x), run(fake(), x=x), atol=0.06)


def test_a_trained_range_does_not_move_over_what_changes_the_range() -> None:
    x = np.array([[2.0, 1.5]], np.float32)
    after = transform(fake("Neg"), "quantize_nodes strip_unused_nodes")
    np.testing.assert_allclose(run(after, x=x), run(fake("Neg"), x=x), atol=0.06)
    assert any(
        node.name == "f" and node.op == "Neg" for node in transform(fake("Neg"), "quantize_nodes", compat="original")
    )


def test_a_trained_range_does_not_take_an_outputs_name() -> None:
    graph = fake().replace(outputs=["y", "s"])
    assert "s" in transform(graph, "quantize_nodes")
    assert "s" not in transform(graph, "quantize_nodes", compat="original")


def test_fake_quantization_of_other_widths_stays() -> None:
    after = transform(fake(bits=", num_bits=4"), "quantize_nodes")
    assert "FakeQuantWithMinMaxVars" in {node.op for node in after}


def test_only_float_placeholders_take_eight_bits() -> None:
    graph = parse(
        "x = Placeholder(dtype=float)\nn = Placeholder(dtype=int32)\ny = Neg(n, T=int32)\nz = Relu(x, T=float)"
    )
    after = transform(graph, "quantize_nodes(input_min=0, input_max=1)")
    assert (after["x"].dtype("dtype").name, after["n"].dtype("dtype").name) == ("quint8", "int32")
    assert after["y"].inputs == ("n",)


@pytest.mark.parametrize("name", ["input", "fallback"])
@pytest.mark.parametrize(
    ("low", "high"), [("nan", "1"), ("0", "nan"), ("-inf", "1"), ("0", "inf"), ("2", "2"), ("3", "1")]
)
def test_ranges_that_are_none_are_refused(name: str, low: str, high: str) -> None:
    with pytest.raises(
        TransformError, match=f"{name}_min must be less than {name}_max, and both finite numbers; {low} "
    ):
        transform(parse("x = Placeholder(dtype=float)"), f"quantize_nodes({name}_min={low}, {name}_max={high})")


@pytest.mark.parametrize("given", ["input_min=0", "input_max=1", "fallback_min=0", "fallback_max=1"])
def test_half_a_range_is_an_error(given: str) -> None:
    name = given.split("_")[0]
    with pytest.raises(TransformError, match=f"You must pass both {name}_min and {name}_max into quantize_nodes"):
        transform(parse(SQUARE), f"quantize_nodes({given})")


def test_an_attribute_with_a_default_may_be_missing() -> None:
    graph = parse("x = Placeholder(dtype=float)\ns = Const(int32 [1])\ny = Reshape(x, s, T=float)")
    assert "y/eightbit" in transform(graph, "quantize_nodes")
    with pytest.raises(TransformError, match="No attr named 'Tshape'"):
        transform(graph, "quantize_nodes", compat="original")


def test_an_attribute_without_a_default_must_be_there() -> None:
    with pytest.raises((TransformError, GraphError), match="'padding'"):
        graph = parse("x = Placeholder(dtype=float)\ny = Conv2D(x, x, T=float, strides=[1,1,1,1])")
        transform(graph, "quantize_nodes")
