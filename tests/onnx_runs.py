"""Exports graphs to ONNX and runs them in ONNX Runtime, for tests, which skip where the extra is not installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph, Node, Shape
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

Arrays = Mapping[str, np.ndarray]


def exported(
    graph: Graph | str, outputs: Sequence[str], shapes: Mapping[str, Sequence[int | None]] | None = None,
    opset: int = 17,
) -> Any:  # fmt: skip
    """The ModelProto of a graph (or its text form), which the ONNX checker has passed."""
    from pocketgraph.exporting.onnx.protobuf_writer import model_proto
    from pocketgraph.exporting.onnx.to_onnx import converted

    graph = parse(graph) if isinstance(graph, str) else graph
    types: dict[str, tuple[DType, Shape]] = {}
    for node in graph:
        if node.op == "Placeholder":
            declared = node.shape() or Shape(None)
            types[f"{node.name}:0"] = node.dtype("dtype"), Shape(shapes[node.name]) if shapes else declared
    made = converted(graph, types, outputs, opset=opset)
    proto = model_proto(made.body, made.opset, "model", "0")
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto: Any, feeds: Arrays) -> list[np.ndarray]:
    """What ONNX Runtime computes; texts as bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    given = {item.name: _text(feeds[item.name]) for item in session.get_inputs()}
    return [_bytes(np.asarray(value)) for value in session.run(None, given)]


def _text(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "O":
        return array
    return np.array([item.decode() for item in array.reshape(-1)], object).reshape(array.shape)


def _bytes(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "OU":
        return array
    texts = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
    return np.array(texts, object).reshape(array.shape)


def reference(graph: Graph | str, feeds: Arrays, outputs: Sequence[str]) -> list[np.ndarray]:
    """What the reference engine computes."""
    with Session(parse(graph) if isinstance(graph, str) else graph, engine="reference") as session:
        return [np.asarray(value) for value in session.run(list(outputs), dict(feeds))]


def assert_same(
    graph: Graph | str, feeds: Arrays, outputs: Sequence[str] = ("y",), opset: int = 17,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> Any:  # fmt: skip
    """ONNX Runtime gives what the reference engine gives; gives back the ModelProto."""
    proto = exported(graph, outputs, shapes, opset)
    for actual, expected in zip(run(proto, feeds), reference(graph, feeds, outputs), strict=True):
        assert_near(actual, expected)
    return proto


def assert_near(actual: np.ndarray, expected: np.ndarray, of_peak: float = 1e-4) -> None:
    """|difference| at most ``of_peak`` times the largest expected magnitude; exact for what are no floats."""
    assert actual.shape == expected.shape
    if expected.dtype.kind not in "fc":
        assert np.array_equal(actual, expected), f"{actual} instead of {expected}"
        return
    wide, wanted = actual.astype("f8"), expected.astype("f8")
    tame = np.isfinite(wanted)
    assert np.array_equal(wide[~tame], wanted[~tame], equal_nan=True)
    peak = np.max(np.abs(wanted[tame]), initial=0.0)
    assert np.max(np.abs(wide[tame] - wanted[tame]), initial=0.0) <= of_peak * max(peak, 1e-30)


def operators(proto: Any) -> Counter[str]:
    """How often each operator is there, in loops and branches too."""
    found: Counter[str] = Counter()
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            found[node.op_type] += 1
            graphs.extend(attribute.g for attribute in node.attribute if attribute.HasField("g"))
    return found


def single(node: Node, inputs: Sequence[np.ndarray], fed: Sequence[bool]) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of one node ``case`` whose inputs are placeholders or constants, and its feeds."""
    from pocketgraph.graph import const, opdefs

    types = opdefs.input_dtypes(node.replace(inputs=[f"in{index}" for index in range(len(inputs))]))
    nodes, feeds = [], {}
    for index, (value, dtype, is_fed) in enumerate(zip(inputs, types, fed, strict=True)):
        name = f"in{index}"
        if is_fed:
            nodes.append(Node(name, "Placeholder", (), {"dtype": dtype, "shape": Shape(value.shape)}))
            feeds[name] = value
        else:
            nodes.append(const(name, value, dtype))
    nodes.append(node.replace(name="case", inputs=[f"in{index}" for index in range(len(inputs))]))
    return Graph(nodes), feeds
