"""LiteRT takes the ops that both engines run, over attributes and element types, and gives TensorFlow's results."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, from_list
from litert.single_ops import STATIC, run_graph, run_node
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.runtime import Session
from support import assert_close

NO_OPERATOR = {
    ("MatMul", "int32"): "does not take int32",
    ("MatMul", "float64"): "does not compute with double",
    ("BatchMatMulV2", "int32"): "does not take int32",
    ("ArgMax", "int64"): "does not take int64",
    ("ArgMin", "int64"): "does not take int64",
}
"""What LiteRT cannot express, and the reason that must be given for it."""

RELATIVE = 1e-6
ALL = {case.node.name: case for case in from_list("attributes")}

IMAGES = {
    "Conv2D": (0,), "DepthwiseConv2dNative": (0,), "Conv2DBackpropInput": (2,), "MaxPool": (0,), "AvgPool": (0,),
    "DepthToSpace": (0,), "SpaceToDepth": (0,),
}  # fmt: skip
"""Ops with a data format, and which of their inputs are images."""

WINDOWS = ("strides", "dilations", "ksize")


def by_channels(node: Node) -> Node:
    """The node with channels before height and width."""
    attrs: dict[str, Any] = {**node.attrs, "data_format": b"NCHW"}
    for name in WINDOWS:
        if attrs.get(name):
            batch, height, width, channels = attrs[name]
            attrs[name] = (batch, channels, height, width)
    pairs = attrs.get("explicit_paddings")
    if pairs:
        attrs["explicit_paddings"] = (*pairs[:2], *pairs[6:], *pairs[2:6])
    return node.replace(attrs=attrs)


def turned(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(image.transpose(0, 3, 1, 2))


def check(case: Case, outputs: list[np.ndarray[Any, Any]], expected: tuple[np.ndarray[Any, Any], ...]) -> None:
    assert len(outputs) == len(expected)
    for mine, theirs in zip(outputs, expected, strict=True):
        assert_close(mine, theirs, RELATIVE)


@pytest.mark.parametrize("name", ALL)
def test_litert_takes_it_and_gives_what_tensorflow_gives(name: str) -> None:
    case = ALL[name]
    outcome = run_node(case.node, case.inputs, len(case.expected))
    reason = NO_OPERATOR.get((case.node.op, case.inputs[0].dtype.name))
    if reason is not None:
        assert reason in outcome.reason
        return
    assert outcome.reason == ""
    check(case, outcome.outputs, case.expected)


@pytest.mark.parametrize("name", [name for name, case in ALL.items() if case.node.op in IMAGES])
def test_channels_first_is_the_same_turned(name: str) -> None:
    case = ALL[name]
    inputs = [turned(x) if i in IMAGES[case.node.op] else x for i, x in enumerate(case.inputs)]
    if case.node.op == "Conv2DBackpropInput":
        batch, height, width, channels = case.inputs[0].tolist()
        inputs[0] = np.array([batch, channels, height, width], np.int32)
    outcome = run_node(by_channels(case.node), tuple(inputs), 1)
    assert outcome.reason == ""
    check(case, outcome.outputs, tuple(turned(x) for x in case.expected))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.node.name)
        for case in from_list("casts")
        if case.inputs[0].dtype == np.float32 and case.expected[0].dtype.name in ("uint8", "int8", "int16")
        if np.abs(case.inputs[0]).max() < 2**31  # beyond, the engines differ (see lowerings/math/elementwise.py)
    ],
)
def test_floats_that_do_not_fit(case: Case) -> None:
    outcome = run_node(case.node, case.inputs, 1)
    assert outcome.reason == ""
    check(case, outcome.outputs, case.expected)


def firsts() -> Iterator[Case]:
    """One case of each op and element type that LiteRT computes."""
    seen: set[tuple[str, ...]] = set()
    for case in ALL.values():
        key = (case.node.op, *(array.dtype.name for array in case.inputs))
        if key == ("Fill", "int32", "bool"):  # a session plans for each value of a single truth, so nothing is left
            continue
        if key not in seen and (case.node.op, case.inputs[0].dtype.name) not in NO_OPERATOR:
            seen.add(key)
            yield case


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in firsts()])
def test_the_plan_has_it_on_litert(case: Case, tmp_path: pathlib.Path) -> None:
    fixed = {position % len(case.inputs) for position in STATIC.get(case.node.op, ())}
    sources, feeds = [], {}
    for i, array in enumerate(case.inputs):
        if i in fixed:
            sources.append(const(f"x{i}", array))
            continue
        attrs = {"dtype": DType.of_numpy(array.dtype), "shape": Shape(array.shape)}
        sources.append(Node(f"x{i}", "Placeholder", (), attrs))
        feeds[f"x{i}:0"] = array
    node = case.node.replace(name="tested", inputs=[f"x{i}" for i in range(len(case.inputs))])
    outputs = [f"tested:{port}" for port in range(len(case.expected))]
    with Session(Graph([*sources, node]), engine="litert", cache_dir=tmp_path) as session:
        plan = session.plan(outputs, feeds)
        assert [part.runs_on for part in plan.parts if "tested" in part.nodes] == ["litert"]
        check(case, session.run(outputs, feeds), case.expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize("dilation", [(1, 2), (3, 2)])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_a_dilated_depthwise_convolution_is_one_of_many_groups(
    padding: str, dilation: tuple[int, int], multiplier: int
) -> None:
    """TensorFlow's CPU refuses these; they are convolutions of as many groups as channels, which are checked above."""
    channels = 3
    random = np.random.default_rng(5)
    x = random.integers(-8, 8, (2, 9, 8, channels)).astype(np.float32)
    w = random.integers(-8, 8, (3, 2, channels, multiplier)).astype(np.float32)
    attrs: dict[str, Any] = {
        "T": DType.named("float"), "strides": (1, 1, 1, 1), "dilations": (1, *dilation, 1), "padding": padding.encode(),
    }  # fmt: skip
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = (0, 0, 2, 1, 0, 3, 0, 0)
    dense = Node("tested", "Conv2D", ("x", "w"), attrs)
    single = Node("tested", "DepthwiseConv2dNative", ("x", "w"), attrs)
    expected = run_node(dense, (x, w.reshape(3, 2, 1, -1)), 1)
    for node, inputs in ((single, (x, w)), (by_channels(single), (turned(x), w))):
        outcome = run_node(node, inputs, 1)
        assert outcome.reason == expected.reason == ""
        result = outcome.outputs[0]
        assert_close(result if node is single else result.transpose(0, 2, 3, 1), expected.outputs[0], RELATIVE)


def test_no_transposes_stay_between_channels_first_layers() -> None:
    """Two at the ends of a chain, none inside."""
    convolution = by_channels(ALL["Conv2D_0"].node)
    pool = by_channels(ALL["MaxPool_0"].node)
    x = turned(ALL["Conv2D_0"].inputs[0])
    graph = Graph([
        Node("x", "Placeholder", (), {"dtype": DType.named("float"), "shape": Shape(x.shape)}),
        const("w", ALL["Conv2D_0"].inputs[1]),
        convolution.replace(name="c", inputs=["x", "w"]),
        const("b", np.ones(3, np.float32)),
        Node("a", "BiasAdd", ("c", "b"), {"T": DType.named("float"), "data_format": b"NCHW"}),
        Node("r", "Relu", ("a",), {"T": DType.named("float")}),
        pool.replace(name="y", inputs=["r"]),
    ])  # fmt: skip
    _, codes = run_graph(graph, {"x:0": x}, ["y:0"])
    assert codes.count("TRANSPOSE") == 2
