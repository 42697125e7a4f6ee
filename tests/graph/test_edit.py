"""Edits: replaced matches, redirected references, dropped attributes."""

from __future__ import annotations

import pytest

from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.edit import claim_name, remove_attributes, rename_inputs, replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.graph.text_format import parse, print_graph

RELU_OF_ADD = Pattern("Relu", [Pattern("Add", ["*", "*"])])


def fused(match: Match, used: frozenset[str]) -> list[Node]:
    add = match.inputs[0]
    return [add.inputs[0].node, add.inputs[1].node, Node(match.node.name, "AddRelu", add.node.inputs)]


def same(graph: Graph, text: str) -> None:
    assert print_graph(graph) == print_graph(parse(text))


def test_new_nodes_stand_where_the_head_stood() -> None:
    graph = parse("""
        a = Placeholder()
        b = Placeholder()
        add = Add(a, b)
        other = Neg(c)
        c = Placeholder()
        relu = Relu(add)
        y = Abs(relu)
    """)
    result = replace_matches(graph, RELU_OF_ADD, fused)
    assert result.times == 1
    same(
        result.graph,
        """
        other = Neg(c)
        c = Placeholder()
        a = Placeholder()
        b = Placeholder()
        relu = AddRelu(a, b)
        y = Abs(relu)
        """,
    )
    assert len(graph) == 7


def test_a_match_stays_when_a_name_that_is_used_would_vanish() -> None:
    graph = parse("""
        a = Placeholder()
        b = Placeholder()
        add = Add(a, b)
        relu = Relu(add)
        y = Abs(relu, ^add)
    """)
    result = replace_matches(graph, RELU_OF_ADD, fused)
    assert result.times == 0
    same(
        result.graph,
        """
        relu = Relu(add)
        add = Add(a, b)
        a = Placeholder()
        b = Placeholder()
        y = Abs(relu, ^add)
        """,
    )
    assert replace_matches(graph, RELU_OF_ADD, fused, may_lose_names=True).graph.dangling() == [("y", "add")]


def test_the_rewrite_learns_what_is_used_outside() -> None:
    graph = parse("""
        a = Placeholder()
        add = Add(a, a)
        relu = Relu(add)
        y = Abs(a, ^add)
    """)
    seen: list[frozenset[str]] = []

    def look(match: Match, used: frozenset[str]) -> list[Node]:
        seen.append(used)
        return list(match.nodes)

    replace_matches(graph, RELU_OF_ADD, look)
    assert seen == [{"a", "add"}]


def test_nothing_to_replace_gives_the_same_graph() -> None:
    graph = parse("a = Placeholder()")
    assert replace_matches(graph, RELU_OF_ADD, fused).graph is graph


def test_a_new_node_may_not_take_a_name() -> None:
    graph = parse("a = Placeholder()\nrelu = Relu(a)")
    with pytest.raises(GraphError, match="node 'a': two nodes have this name"):
        replace_matches(graph, Pattern("Relu"), lambda match, used: [match.node, Node("a", "NoOp")])


@pytest.mark.parametrize(
    ("renames", "before", "after"),
    [
        ({"a": "b"}, "a, a:0, a:1, ^a", "b, b, a:1, ^a"),
        ({"a:1": "b"}, "a, a:1", "a, b"),
        ({"^a": "^b"}, "a, ^a", "a, ^b"),
        ({"a:*": "b"}, "a, a:0, a:3, ^a", "b, b:0, b:3, ^b"),
        ({"a": "b:2", "b:2": "c"}, "a, b, b:2", "c, b, c"),
        ({"a:*": "b", "b:*": "c", "c": "d:1"}, "a, a:1, ^a", "d:1, c:1, ^c"),
    ],
)
def test_rename_inputs(renames: dict[str, str], before: str, after: str) -> None:
    graph = parse(f"y = Op({before})\nb = Op()")
    same(rename_inputs(graph, renames), f"y = Op({after})\nb = Op()")
    assert rename_inputs(graph, renames, untouched={"y"}) is graph


@pytest.mark.parametrize("renames", [{"a": "a"}, {"a": "b", "b": "a"}, {"a:*": "b", "b:*": "c", "c:*": "a"}])
def test_renaming_in_a_circle_is_an_error(renames: dict[str, str]) -> None:
    with pytest.raises(GraphError, match="goes in a circle"):
        rename_inputs(parse("y = Op(a)"), renames)
    rename_inputs(parse("y = Op(z)"), renames)


def test_a_long_chain_of_renames() -> None:
    renames = {f"n{i}:*": f"n{i + 1}" for i in range(20000)}
    graph = Graph(Node(f"y{i}", "Op", [f"n{i}"]) for i in range(20000))
    assert {node.inputs for node in rename_inputs(graph, renames)} == {("n20000",)}


def test_remove_attributes() -> None:
    graph = parse("a = Op(T=float, _output_shapes=[[1]])\nb = Op(T=float)")
    changed = remove_attributes(graph, {"_output_shapes"})
    same(changed, "a = Op(T=float)\nb = Op(T=float)")
    assert changed["b"] is graph["b"]


def test_a_free_name_is_found_in_few_looks() -> None:
    looks: list[object] = []

    class Taken(set[str]):
        def __contains__(self, name: object) -> bool:
            looks.append(name)
            return super().__contains__(name)

    taken = Taken()
    assert [claim_name("x", taken) for _ in range(1000)] == ["x", *(f"x_{count}" for count in range(1, 1000))]
    assert len(looks) < 1000 * 25
