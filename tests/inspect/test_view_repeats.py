"""What repeats in a picture is one box: blocks, unrolled steps; nothing is lost by it."""

from __future__ import annotations

import pytest

import pocketgraph
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.inspect.view.nodes import shown_nodes
from pocketgraph.inspect.view.scope import NODE, SCOPE, Scope
from pocketgraph.inspect.view.scopes import nested_scopes
from support import model_dir, needs_shared


def scopes_of(graph: Graph) -> list[Scope]:
    shown, edges = shown_nodes(graph)
    scopes, left_out = nested_scopes(shown, edges)
    drawn = [item.number for scope in scopes for item in scope.items if item.kind == NODE]
    assert sorted(drawn) == list(range(len(shown))), "each node stands in one box"
    assert left_out == 0
    for number, scope in enumerate(scopes):
        for item in scope.items:
            assert item.kind != SCOPE or scopes[item.number].parent == number
    return scopes


def chain(names: list[tuple[str, str]]) -> Graph:
    nodes, last = [Node("x", "Placeholder", [], {"dtype": FLOAT})], "x"
    for name, op in names:
        nodes.append(Node(name, op, [last], {"T": FLOAT}))
        last = name
    return Graph(nodes)


def groups(graph: Graph) -> list[tuple[str, int, int]]:
    return [(scope.label, scope.copies, scope.nodes) for scope in scopes_of(graph) if scope.copies > 1]


def test_blocks_in_scopes() -> None:
    names = [(f"net/layer_{k}/{op.lower()}", op) for k in range(24) for op in ("Relu", "Neg")]
    assert groups(chain(names)) == [("layer_#", 24, 48)]


def test_steps_of_several_nodes_without_scopes() -> None:
    """As an unrolled loop is named: two Mul a step, so that numbers of one step differ by op."""
    names, counts = [], {"Mul": 0, "Tanh": 0, "Add": 0}
    for _ in range(20):
        for op in ("Mul", "Tanh", "Mul", "Add"):
            names.append((f"cell/{op}_{counts[op]}", op))
            counts[op] += 1
    (group,) = groups(chain(names))
    assert group[1:] == (20, 80)


@pytest.mark.parametrize(
    "names",
    [
        [(f"conv_{k}", "Relu") for k in range(5)],  # too few nodes
        [(f"a/{op}_{k}", op) for k, op in enumerate(("Relu", "Neg", "Abs", "Exp", "Log", "Sin", "Cos") * 2)],  # twice
        [(f"net/l_{k}/{op}", op) for k in range(9) for op in ("Relu", "Neg", "Abs")[: 1 + k % 3]],  # not alike
    ],
)
def test_what_is_no_repeat(names: list[tuple[str, str]]) -> None:
    assert [group for group in groups(chain(names)) if group[1] > 2 and group[2] < 12] == []
    assert all(copies >= 3 for _, copies, _ in groups(chain(names)))


def test_numbers_that_all_copies_share_stay() -> None:
    names = [(f"conv2d_{k}/{op}", op) for k in range(6) for op in ("Conv2D", "Relu")]
    assert groups(chain(names)) == [("conv2d_#", 6, 12)]


@needs_shared
@pytest.mark.parametrize(
    ("model", "copies"),
    [
        ("mobilenet_v1_025_128/frozen_graph.pb", 13),
        ("tf2onnx_lstm/frozen.pb", 26),
        ("har_curiousily_model/frozen_model.pb", 198),
    ],
)
def test_real_models(model: str, copies: int) -> None:
    found = groups(pocketgraph.load(model_dir(model)))
    assert max(count for _, count, _ in found) >= copies, found
