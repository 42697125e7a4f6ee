"""Patterns: what fits, what does not, and that matches share no node."""

from __future__ import annotations

from pocketgraph.graph.pattern import Pattern, find_matches
from pocketgraph.graph.text_format import parse

SCALED = Pattern("Mul", [Pattern("Conv2D|MatMul", ["*", Pattern("Const", name="weights")], name="product"), "Const"])

GRAPH = parse("""
    x = Placeholder()
    w = Const(float 1)
    s = Const(float 2)
    conv = Conv2D(x, w, ^x)
    mul = Mul(conv:0, s)
""")


def test_finds_a_pattern_and_names_its_parts() -> None:
    (match,) = find_matches(GRAPH, SCALED)
    assert match.node.name == "mul"
    assert (match["product"].name, match["weights"].name) == ("conv", "w")
    assert [node.name for node in match.nodes] == ["mul", "conv", "s", "x", "w"]


def test_inputs_are_compared_in_order() -> None:
    graph = parse("""
        x = Placeholder()
        w = Const(float 1)
        s = Const(float 2)
        conv = Conv2D(x, w)
        mul = Mul(s, conv)
    """)
    assert find_matches(graph, SCALED) == []


def test_the_number_of_data_inputs_counts() -> None:
    assert find_matches(GRAPH, Pattern("Conv2D", ["*"])) == []
    assert len(find_matches(GRAPH, Pattern("Conv2D", ["*", "*"]))) == 1
    assert len(find_matches(GRAPH, Pattern("Conv2D"))) == 1


def test_matches_share_no_node_not_even_a_constant() -> None:
    graph = parse("""
        x = Placeholder()
        s = Const(float 2)
        a = Mul(x, s)
        y = Relu(x)
        b = Mul(y, s)
    """)
    assert [match.node.name for match in find_matches(graph, Pattern("Mul", ["*", "Const"]))] == ["b"]


def test_a_refused_match_leaves_its_nodes_to_others() -> None:
    graph = parse("""
        x = Placeholder()
        a = Relu(x)
        b = Relu(x)
    """)
    pattern = Pattern("Relu", ["*"])
    first = find_matches(graph, pattern)[0].node.name
    (other,) = find_matches(graph, pattern, lambda match: match.node.name != first)
    assert {first, other.node.name} == {"a", "b"}


def test_one_node_may_stand_for_several_parts() -> None:
    graph = parse("x = Placeholder()\ny = Mul(x, x)")
    (match,) = find_matches(graph, Pattern("Mul", ["*", "*"]))
    assert [node.name for node in match.nodes] == ["y", "x"]


def test_of_places_that_share_a_node_the_first_in_topological_order_is_found() -> None:
    graph = parse("""
        b = Relu(a)
        a = Relu(x)
        x = Placeholder()
    """)
    assert [match.node.name for match in find_matches(graph, Pattern("Relu", ["*"]))] == ["a"]
    assert [match.node.name for match in find_matches(graph, Pattern("*"))] == ["x", "a", "b"]


def test_broken_graphs_have_matches_where_they_are_whole() -> None:
    cycle = parse("""
        x = Placeholder()
        fine = Relu(x)
        a = Relu(b)
        b = Relu(a)
    """)
    assert [match.node.name for match in find_matches(cycle, Pattern("Relu", ["*"]))] == ["fine"]
    dangling = parse("x = Placeholder()\na = Relu(x)\nb = Relu(nothing)")
    assert find_matches(dangling, Pattern("Relu", ["*"])) == []
