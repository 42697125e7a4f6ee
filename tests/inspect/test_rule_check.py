"""The check of each rule by running: which rule changes a result, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pocketgraph.errors import TransformError, UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.rule_check import RuleCheck
from pocketgraph.transforms import tool

GRAPH = """
    x = Placeholder(dtype=float, shape=[1,4])
    first = Const(float [1.0, 2.0, 3.0, 4.0])
    a = Mul(x, first, T=float)
    b = Neg(a, T=float)
    second = Const(float [1.0, 1.0, 1.0, 1.0])
    c = AddV2(b, second, T=float)
    d = Tanh(c, T=float)
    y = AddV2(d, x, T=float)
"""


@pytest.fixture
def rule() -> Iterator[Callable[[Callable[[Graph], Graph]], None]]:
    def add(function: Callable[[Graph], Graph]) -> None:
        def wrong(graph: Graph) -> Graph:
            """Wrong."""
            return function(graph)

        wrong.__module__ = "tests.wrong"
        tool.transform(wrong)

    yield add
    tool.forget("tests.wrong")


def run(check: RuleCheck, transforms: str, text: str = GRAPH, inputs: str = "x") -> Graph:
    return tool.run(parse(text, inputs=[inputs], outputs=["y"]), transforms, observe=check)


def test_rules_that_keep_the_results_pass() -> None:
    check = RuleCheck()
    run(check, "strip_unused_nodes remove_device fold_constants sort_by_execution_order")
    assert [name for name, _ in check.passed] == [
        "strip_unused_nodes", "remove_device", "fold_constants", "sort_by_execution_order",
    ]  # fmt: skip
    assert max(difference for _, difference in check.passed) <= 1e-6


def changed(name: str, op: str) -> Callable[[Graph], Graph]:
    return lambda graph: graph.map_nodes(lambda n: n.replace(op=op) if n.name == name else n)


@pytest.mark.parametrize(("node", "op"), [("b", "Abs"), ("d", "Sigmoid"), ("c", "Sub"), ("y", "Mul")])
def test_the_rule_and_the_node_are_named(rule: Callable[..., None], node: str, op: str) -> None:
    rule(changed(node, op))
    message = rf"^wrong: it changes the output 'y': by .* \(allowed: 0.0001\); the difference starts at node '{node}'$"
    with pytest.raises(TransformError, match=message):
        run(RuleCheck(), "remove_device wrong remove_device")


def test_what_changes_on_purpose_is_not_blamed(rule: Callable[..., None]) -> None:
    """``a`` and ``b`` change and cancel out; the fault is in ``d``."""

    def wrong(graph: Graph) -> Graph:
        graph = changed("d", "Sigmoid")(changed("b", "Identity")(graph))
        return graph.map_nodes(lambda n: const("first", -n.tensor.numpy()) if n.name == "first" else n)

    rule(wrong)
    with pytest.raises(TransformError, match="starts at node 'd'"):
        run(RuleCheck(), "wrong")


def test_rules_that_trade_precision_may_do_so(rule: Callable[..., None]) -> None:
    run(RuleCheck(), "quantize_weights(minimum_size=1, num_bits=5)")
    with pytest.raises(TransformError, match="quantize_weights: it changes the output 'y'"):
        run(RuleCheck(tolerance=1e-5), "quantize_weights(minimum_size=1, num_bits=5)")


def test_a_graph_that_does_not_run_afterwards(rule: Callable[..., None]) -> None:
    rule(changed("b", "NoSuchOp"))
    with pytest.raises(TransformError, match=r"wrong: the graph does not run after it: .*NoSuchOp"):
        run(RuleCheck(), "wrong")


def test_a_graph_that_did_not_run_before() -> None:
    with pytest.raises(UsageError, match="check: the graph cannot be run before remove_device: "):
        run(RuleCheck(), "remove_device", GRAPH.replace("Neg", "NoSuchOp").replace("=float)", '=float) @"/gpu:0"'))


def test_feeds_that_cannot_be_made_up() -> None:
    text = GRAPH.replace(", shape=[1,4]", "").replace("d = Tanh(c, T=float)", 'd = Tanh(c, T=float) @"/gpu:0"')
    with pytest.raises(UsageError, match=r"check: .*'x'.*give feeds with check_inputs"):
        run(RuleCheck(), "remove_device", text)
    run(RuleCheck({"x": np.ones((1, 4), np.float32)}), "remove_device", text)


def test_an_input_that_becomes_a_placeholder() -> None:
    text = GRAPH.replace(
        "x = Placeholder(dtype=float, shape=[1,4])", "raw = Placeholder(dtype=string)\nx = Mystery(raw)"
    )
    check = RuleCheck()
    run(check, 'strip_unused_nodes(type=float, shape="1,4")', text)
    assert check.passed == [("strip_unused_nodes", 0.0)]


def test_inputs_and_outputs_may_be_renamed() -> None:
    check = RuleCheck()
    renames = "rename_node(old_node_name=x, new_node_name=image) rename_node(old_node_name=y, new_node_name=result)"
    graph = run(check, f"{renames} strip_unused_nodes sort_by_execution_order")
    assert (graph.inputs, graph.outputs) == (("image",), ("result",))
    assert [difference for _, difference in check.passed] == [0.0] * 4


def test_given_feeds_find_what_made_up_ones_miss(rule: Callable[..., None]) -> None:
    def wrong(graph: Graph) -> Graph:
        return graph.map_nodes(lambda n: n.replace(op="Relu", inputs=["c"]) if n.name == "d" else n)

    rule(wrong)
    text = GRAPH.replace("d = Tanh", "d = Relu6")
    run(RuleCheck(), "wrong", text)  # no value is beyond 6
    with pytest.raises(TransformError, match=r"wrong: .*starts at node 'd'"):
        run(RuleCheck({"x:0": np.full((1, 4), -50, np.float32)}), "wrong", text)


def test_a_graph_of_random_results_is_not_the_rules_fault() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[3])
        shape = Const(int32 [3])
        noise = RandomUniform(shape, T=int32, dtype=float, seed=0, seed2=0)
        read = Identity(x, T=float)
        y = Add(read, noise, T=float)
    """).replace(inputs=["x"], outputs=["y"])
    with pytest.raises(UsageError, match="gives another 'y' each time it runs"):
        tool.run(graph, "remove_nodes(op=Identity)", observe=RuleCheck())
