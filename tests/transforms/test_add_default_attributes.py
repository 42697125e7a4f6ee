"""add_default_attributes: old ops get what TensorFlow 1.15 knows, new ops all, unknown ops an error."""

from __future__ import annotations

import pytest

from pocketgraph.errors import TransformError
from pocketgraph.graph import Function, Graph, Node
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform


def attrs_after(text: str) -> set[str]:
    return set(transform(parse(f"y = {text}"), "add_default_attributes")["y"].attrs)


def test_attributes_that_came_after_1_15_are_not_written() -> None:
    # exponential_avg_factor came with TensorFlow 2.3, MatMul's grad_a with 2.18
    assert attrs_after("FusedBatchNormV3(T=float)") == {"T", "data_format", "epsilon", "is_training"}
    assert attrs_after("MatMul(T=float)") == {"T", "transpose_a", "transpose_b"}


def test_ops_that_came_after_1_15_get_all_their_defaults() -> None:
    assert attrs_after("DenseBincount()") == {"binary_output"}


def test_what_is_stated_stays() -> None:
    graph = parse('y = Conv2D(data_format="NCHW")')
    assert transform(graph, "add_default_attributes")["y"].attr("data_format") == b"NCHW"


def test_a_graph_that_lacks_nothing_stays_the_same() -> None:
    graph = parse("y = NoOp()\nx = Placeholder(dtype=float, shape=[1])")
    assert transform(graph, "add_default_attributes") is graph


def test_functions_are_no_unknown_ops() -> None:
    graph = Graph([Node("y", "my_function")], functions={"my_function": Function("my_function")})
    assert transform(graph, "add_default_attributes") is graph
    with pytest.raises(TransformError, match="node 'y': Op type not registered 'Rleu'; did you mean"):
        transform(parse("y = Rleu()"), "add_default_attributes")
