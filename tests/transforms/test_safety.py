"""What the tool checks after each rule, and the log's hints that another rule should have run before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import tool, transform

CHAIN = "x = Placeholder(dtype=float)\na = Relu(x, T=float)\nb = Relu(a, T=float)\ny = Relu(b, T=float)"


@pytest.fixture
def rule() -> Iterator[Callable[[Callable[[Graph], Graph]], None]]:
    """Makes a function the rule ``broken``, for one test."""

    def add(function: Callable[[Graph], Graph]) -> None:
        def broken(graph: Graph) -> Graph:
            """Breaks."""
            return function(graph)

        broken.__module__ = "tests.broken"
        tool.transform(broken)

    yield add
    tool.forget("tests.broken")


def run(text: str = CHAIN, compat: str = "fixed") -> Graph:
    return transform(parse(text), "broken", "x", "y", compat=compat)


def without(name: str) -> Callable[[Graph], Graph]:
    def drop(graph: Graph) -> Graph:
        kept = [node.replace(inputs=[ref for ref in node.inputs if ref != name]) for node in graph if node.name != name]
        return graph.replace(kept)

    return drop


@pytest.mark.parametrize(("name", "what"), [("y", "output"), ("x", "input")])
def test_an_endpoint_that_is_gone(rule: Callable[..., None], name: str, what: str) -> None:
    rule(without(name))
    with pytest.raises(TransformError, match=f"^broken: the graph's {what} '{name}' is gone$"):
        run()
    run(compat="original")


def test_an_endpoint_of_the_graph_that_was_never_there_is_no_matter() -> None:
    assert "y" in transform(parse(CHAIN).replace(inputs=["x", "other"]), "remove_device", outputs="y")


def test_a_reference_that_leads_nowhere(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.replace(node for node in graph if node.name != "a"))
    with pytest.raises(TransformError, match=r"broken: .*nonexistent nodes: 'a' \(read by 'b'\)"):
        run()


def test_two_nodes_of_one_name(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.replace([*graph, graph["a"]]))
    with pytest.raises(TransformError, match="broken: node 'a': two nodes have this name"):
        run()


def test_a_cycle(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.map_nodes(lambda n: n.replace(inputs=["y"]) if n.name == "a" else n))
    with pytest.raises(TransformError, match=r"^broken: node '.': the nodes .* form a cycle") as caught:
        run()
    assert all(f"'{name}'" in str(caught.value) for name in "aby")
    assert "'x'" not in str(caught.value)


def test_a_cycle_that_was_there_before_is_not_the_rules(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.map_nodes(lambda n: n.replace(device="/cpu:0")))
    assert run(CHAIN + "\np = Relu(q, T=float)\nq = Relu(p, T=float)")["p"].device == "/cpu:0"


def test_a_loop_is_no_cycle(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.map_nodes(lambda n: n.replace(device="/cpu:0")))
    loop = "m = Merge(a, n, T=float, N=2)\nn = NextIteration(m, T=float)"
    assert run(f"{CHAIN}\n{loop}")["m"].device == "/cpu:0"


def test_a_data_input_behind_a_control_input(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.map_nodes(lambda n: n.replace(inputs=["^x", "b"]) if n.name == "y" else n))
    with pytest.raises(TransformError, match="broken: node 'y': the data input 'b' comes behind a control input"):
        run()


def test_the_observer_sees_each_rule() -> None:
    seen: list[tool.Applied] = []
    graph = parse(CHAIN, inputs=["x"], outputs=["y"])
    result = tool.run(graph, "remove_device set_device(device=cpu)", observe=seen.append)
    assert [applied.rule.name for applied in seen] == ["remove_device", "set_device"]
    assert seen[0].before is graph
    assert seen[0].after is seen[1].before
    assert seen[1].after is result
    assert all(applied.seconds >= 0 for applied in seen)


def hints(caplog: pytest.LogCaptureFixture, graph: Graph, transforms: str) -> list[str]:
    with caplog.at_level(logging.WARNING, "pocketgraph.transforms"):
        transform(graph, transforms, "x", "y")
    return [record.getMessage() for record in caplog.records]


COMPUTED = """
    x = Placeholder(dtype=float, shape=[1,2])
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    one = Const(float [[1.0, 1.0], [1.0, 1.0]])
    sum = Add(w, one, T=float)
    product = MatMul(x, sum, T=float)
    scale = Const(float [2.0, 3.0])
    y = Mul(product, scale, T=float)
"""


def test_a_rule_says_which_rule_it_needs_first(caplog: pytest.LogCaptureFixture) -> None:
    said = hints(caplog, parse(COMPUTED), "fold_batch_norms")
    assert said == [
        "fold_batch_norms: left 'y' alone, weights are not a Const but computed by Add 'sum'; run fold_constants first"
    ]


def test_it_says_nothing_when_that_rule_ran(caplog: pytest.LogCaptureFixture) -> None:
    assert hints(caplog, parse(COMPUTED), "fold_constants fold_batch_norms") == []


def test_variables_need_freezing(caplog: pytest.LogCaptureFixture) -> None:
    graph = parse(COMPUTED.replace("Add(w, one, T=float)", "VariableV2(dtype=float, shape=[2,2])"))
    [said] = hints(caplog, graph, "fold_batch_norms")
    assert said.endswith("weights are a variable (VariableV2 'sum'); run freeze_graph first")


def test_the_original_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pocketgraph.transforms"):
        transform(parse(COMPUTED), "fold_batch_norms", "x", "y", compat="original")
    assert not caplog.records


def test_nodes_made_by_hand_may_be_checked_too(rule: Callable[..., None]) -> None:
    rule(lambda graph: graph.replace([*graph, Node("more", "Relu", ["x"])]))
    assert "more" in run()
