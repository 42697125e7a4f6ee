"""remove_nodes: where it goes further than the original, and that large graphs take linear time."""

from __future__ import annotations

import sys

import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import tool, transform


def fan(count: int) -> Graph:
    readers = "".join(f"i{n} = Identity(x:1, T=float)\nr{n} = Relu(i{n}, ^i{n}, T=float)\n" for n in range(count))
    return parse("x = Split(a, b)\na = Const(int32 0)\nb = Placeholder()\n" + readers, outputs=["r0"])


def test_ports_and_control_inputs_are_redirected() -> None:
    graph = transform(fan(2), "remove_nodes(op=Identity)")
    assert graph["r1"].inputs == ("x:1", "^x")


def test_a_producer_that_something_else_reads_stays() -> None:
    graph = parse("""
        x = Placeholder()
        low = Const(float 0)
        high = Const(float 1)
        fake = FakeQuantWithMinMaxVars(x, low, high)
        y = Add(fake, high)
    """)
    assert print_graph(transform(graph, "remove_nodes(op=FakeQuantWithMinMaxVars, max_inputs=3)")) == print_graph(
        parse("""
            x = Placeholder()
            high = Const(float 1)
            y = Add(x, high)
        """)
    )


def test_inputs_and_outputs_stay() -> None:
    graph = parse("x = Placeholder()\na = Identity(x)\nr = Relu(a)\nb = Identity(r)\ns = Relu(b)\nc = Identity(s)")
    result = transform(graph, "remove_nodes(op=Identity)", inputs="a:0", outputs="c:0")
    assert {node.name: node.inputs for node in result} == {
        "x": (),
        "a": ("x",),
        "r": ("a",),
        "s": ("r",),
        "c": ("s",),
    }


@pytest.mark.parametrize("count", [1, 2, 30])
def test_removing_the_rest_at_once_gives_the_same_graph(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_passes = transform(fan(count), "remove_nodes(op=Identity)")
    tool.find("remove_nodes")
    monkeypatch.setattr(sys.modules["pocketgraph.transforms.rules.remove_nodes"], "PATIENCE", -1)
    assert print_graph(transform(fan(count), "remove_nodes(op=Identity)")) == print_graph(in_passes)


def test_a_long_chain_and_a_wide_fan_take_no_time() -> None:
    chain = parse(
        "n0 = Placeholder()\n" + "".join(f"n{i} = Identity(n{i - 1})\n" for i in range(1, 3000)) + "y = Relu(n2999)"
    )
    assert len(transform(chain, "remove_nodes(op=Identity)")) == 2
    assert len(transform(fan(400), "remove_nodes(op=Identity)")) == 403


def test_what_the_first_producer_reads_stays() -> None:
    graph = parse("""
        low = Const(float -1.0)
        x = Placeholder(dtype=float)
        sum = Add(x, low, T=float)
        fake = FakeQuantWithMinMaxVars(sum, low, low)
        y = Relu(fake, T=float)
    """)
    changed = transform(graph, "remove_nodes(op=FakeQuantWithMinMaxVars, max_inputs=3)", "x", "y")
    assert sorted(changed.nodes) == ["low", "sum", "x", "y"]
