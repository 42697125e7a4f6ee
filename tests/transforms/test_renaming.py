"""The rules that rename nodes, ops and attributes, and those that drop parts of nodes: their edges."""

from __future__ import annotations

import gc

import pytest

from pocketgraph.errors import TransformError, UsageError
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import transform

GRAPH = "x = Placeholder(dtype=float)\ny = Relu(x, ^x, T=float, U=half)"


def changed(transforms: str, text: str = GRAPH, outputs: str = "y") -> str:
    return print_graph(transform(parse(text), transforms, "x:0", outputs))


def test_rename_node_refuses_a_name_that_is_taken() -> None:
    with pytest.raises(TransformError, match="rename_node: a node is already using y as name"):
        changed("rename_node(old_node_name=x, new_node_name=y)")
    assert changed("rename_node(old_node_name=nothing, new_node_name=z)") == changed("")


def test_rename_attribute_keeps_the_value_that_has_the_new_name() -> None:
    assert "U=half" in changed("rename_attribute(old_attribute_name=T, new_attribute_name=U)")
    assert "T=" not in changed("rename_attribute(old_attribute_name=T, new_attribute_name=U)")
    assert changed("rename_attribute(old_attribute_name=T, new_attribute_name=U, op_name=Add)") == changed("")


def test_remove_attribute_can_be_limited_to_an_op() -> None:
    assert "dtype" not in changed("remove_attribute(attribute_name=dtype)")
    assert changed("remove_attribute(attribute_name=dtype, op_name=Relu)") == changed("")


@pytest.mark.parametrize(
    "call",
    ["remove_attribute", "rename_op(old_op_name=A)", "rename_node", "rename_attribute(new_attribute_name=a)"],
)
def test_parameters_that_are_needed(call: str) -> None:
    with pytest.raises(UsageError, match="expects at least one"):
        changed(call)


@pytest.mark.parametrize("name", ["obfuscate_names", "obsfucate_names"])
def test_short_names_do_not_collide_with_names_that_stay(name: str) -> None:
    text = "x = Placeholder()\n1 = Relu(x)\n0 = Relu(1, ^1)\nz = Split(0:1)\nw = Relu(z:1)"
    assert changed(name, text, "0,w") == print_graph(
        parse("x = Placeholder()\n1 = Relu(x)\n0 = Relu(1, ^1)\n2 = Split(0:1)\nw = Relu(2:1)")
    )


def test_short_names_count_in_62_digits() -> None:
    text = "image = Placeholder()\n" + "\n".join(f"node{i} = Relu(image)" for i in range(65))
    names = list(transform(parse(text), "obfuscate_names", inputs="image", outputs="").nodes)
    assert [names[i] for i in (1, 10, 11, 36, 37, 62, 63, 65)] == ["0", "9", "a", "z", "A", "Z", "10", "12"]


def test_set_device_without_a_device_clears_it() -> None:
    placed = GRAPH + ' @"/gpu:0"'
    assert changed("set_device", placed) == changed("remove_device", placed) == changed("")


def test_the_collector_runs_again_afterwards() -> None:
    assert gc.isenabled()
    changed("remove_device")
    assert gc.isenabled()
    with pytest.raises(TransformError):
        changed("rename_node(old_node_name=x, new_node_name=y)")
    assert gc.isenabled()
