"""GraphDefs read and written by hand, with the protobuf library as the judge of what they say."""

from __future__ import annotations

import math
import pathlib
import tracemalloc
from typing import Any

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats.protos import message
from pocketgraph.graph import DType, Func, Function, Graph, Node, Opaque, Parameter, Shape, Tensor, Versions, const
from pocketgraph.graph.attr import AttrValue, same_value
from pocketgraph.protobuf import wire

FLOAT = DType.named("float")
UNKNOWN_FIELD = b"\xfa\x3e\x02hi"  # field 1007, which no message has


def library(graph: Graph) -> Any:
    """The graph as the protobuf library reads what we write."""
    return message("tensorflow.GraphDef").FromString(formats.to_bytes(graph))


VALUES: list[AttrValue] = [
    0, -1, 2**62, 0.0, 1.5, math.inf, True, False, b"", b"\xff\0", FLOAT, FLOAT.ref, DType.of(0), Shape(None),
    Shape(()), Shape((0, None, 3)), Tensor.from_numpy(np.float32([[1, 2]])), Tensor.from_numpy([b"a", b""]),
    Parameter("T"), Func("f", {"a": 1, "g": Func("h")}), (), (0, -1, 300), (0.5, -1.0), (True, False), (b"", b"x"),
    (FLOAT, FLOAT.ref), (Shape(None), Shape((1,))), (Tensor.from_numpy(np.int32(3)),),
    (Func("f"), Func("g", {"x": (1, 2)})),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_kind_of_attribute_survives(value: AttrValue) -> None:
    before = Graph([Node("n", "Op", attrs={"a": value})])
    after = formats.from_bytes(formats.to_bytes(before))
    assert same_value(after["n"].attrs["a"], value)
    changed = library(Graph([after["n"].replace(device="d")]))
    assert changed.node[0].attr["a"] == library(before).node[0].attr["a"]


def test_attributes_are_those_that_the_library_writes() -> None:
    made = message("tensorflow.GraphDef")()
    node = made.node.add(name="n", op="Op", input=["a:1", "^b"], device="/cpu:0")
    node.attr["i"].i = -3
    node.attr["f"].f = 0.1
    node.attr["s"].s = b"text"
    node.attr["b"].b = False
    node.attr["t"].type = 9
    node.attr["shape"].shape.dim.add(size=-1)
    node.attr["ints"].list.i.extend([1, -1])
    node.attr["empty"].list.SetInParent()
    node.attr["p"].placeholder = "T"
    node.attr["func"].func.name = "f"
    node.attr["func"].func.attr["x"].b = True
    graph = formats.from_bytes(made.SerializeToString())
    read = graph["n"]
    assert (read.op, read.inputs, read.device) == ("Op", ("a:1", "^b"), "/cpu:0")
    assert dict(read.attrs) == {
        "i": -3, "f": float(np.float32(0.1)), "s": b"text", "b": False, "t": DType.named("int64"),
        "shape": Shape((-1,)), "ints": (1, -1), "empty": (), "p": Parameter("T"), "func": Func("f", {"x": True}),
    }  # fmt: skip
    assert library(Graph([read.replace(device="/cpu:0")])) == made


@pytest.mark.parametrize(
    "encoded",
    [
        b"",  # no value at all
        b"\x18\x01" + UNKNOWN_FIELD,  # an int and something newer
        UNKNOWN_FIELD,
        b"\x30\xe7\x07",  # a type of number 999
        b"\x0a\x04\x18\x01\x28\x01",  # a list of an int and a bool
        b"\x0a\x05" + UNKNOWN_FIELD,
        b"\x42\x03\x08\xe7\x07",  # a tensor of type 999
    ],
)
def test_values_that_say_more_than_we_know_are_kept(encoded: bytes) -> None:
    entry = wire.bytes_field(1, "a") + wire.bytes_field(2, encoded)
    node = wire.bytes_field(1, "n") + wire.bytes_field(2, "Op") + wire.bytes_field(5, entry)
    graph = formats.from_bytes(wire.bytes_field(1, node))
    assert graph["n"].attrs["a"] == Opaque(encoded)
    changed = formats.from_bytes(formats.to_bytes(Graph([graph["n"].replace(device="/cpu:0")])))
    assert changed["n"].attrs["a"] == Opaque(encoded)


def test_map_entries_in_any_order_and_with_parts_missing() -> None:
    value_first = wire.bytes_field(2, wire.number_field(3, 5)) + wire.bytes_field(1, "a")
    no_value = wire.bytes_field(1, "b")
    no_key = wire.bytes_field(2, wire.number_field(3, 7))
    node = b"".join(wire.bytes_field(5, entry) for entry in (value_first, no_value, no_key))
    node += wire.bytes_field(2, "Op") + wire.bytes_field(1, "n")
    graph = formats.from_bytes(wire.bytes_field(1, node))
    assert dict(graph["n"].attrs) == {"a": 5, "b": Opaque(b""), "": 7}


def whole_graph() -> bytes:
    """A GraphDef that uses everything, with unknown fields at each level."""
    made = message("tensorflow.GraphDef")(version=19)
    made.versions.producer = 27
    made.versions.bad_consumers.extend([3, 4])
    node = made.node.add(name="n", op="Op")
    node.attr["a"].i = 1
    node.experimental_debug_info.original_node_names.append("was")
    made.library.function.add().signature.name = "f"
    made.library.function[0].node_def.add(name="inside", op="Op").attr["a"].i = 2
    made.library.function[0].ret["y"] = "inside:y:0"
    made.library.gradient.add(function_name="f", gradient_func="g")
    made.debug_info.files.append("train.py")
    encoded: bytes = made.SerializeToString()
    unknown_inside = wire.bytes_field(1, wire.bytes_field(1, "m") + wire.bytes_field(2, "Op") + UNKNOWN_FIELD)
    return (
        encoded
        + unknown_inside
        + wire.bytes_field(4, UNKNOWN_FIELD)
        + wire.bytes_field(2, UNKNOWN_FIELD)
        + UNKNOWN_FIELD
    )


def test_nothing_is_lost() -> None:
    encoded = whole_graph()
    graph = formats.from_bytes(encoded)
    assert graph.versions == Versions(27, 0, (3, 4))
    assert graph.functions["f"].nodes[0].attrs == {"a": 2}
    wanted = message("tensorflow.GraphDef").FromString(encoded)
    assert library(graph) == wanted
    changed = graph.replace([node.replace(device="") for node in graph])
    assert library(changed) == wanted


@pytest.mark.parametrize("encoded", [b"", b"\x22\x00", b"\x12\x00", b"\x12\x00\x22\x00", b"\x18\x05"])
def test_empty_parts_stay_present(encoded: bytes) -> None:
    assert formats.to_bytes(formats.from_bytes(encoded)) == encoded


def test_parts_that_come_twice_are_merged() -> None:
    twice = b"\x22\x02\x08\x05" + b"\x22\x02\x10\x03"
    assert formats.from_bytes(twice).versions == Versions(5, 3)
    assert library(formats.from_bytes(twice)) == message("tensorflow.GraphDef").FromString(twice)


def test_a_changed_function_body_is_written() -> None:
    graph = formats.from_bytes(whole_graph())
    old = graph.functions["f"]
    body = (old.nodes[0].with_attrs(a=5), Node("more", "Op", ["inside:y:0"]))
    made = library(graph.replace(functions={"f": Function("f", body, old.encoded)}))
    assert [node.name for node in made.library.function[0].node_def] == ["inside", "more"]
    assert made.library.function[0].node_def[0].attr["a"].i == 5
    assert made.library.function[0].ret["y"] == "inside:y:0"


def test_writing_does_not_depend_on_the_order_of_attributes() -> None:
    one = Graph([Node("n", "Op", attrs={"b": 1, "a": Func("f", {"y": 1, "x": 2})})])
    two = Graph([Node("n", "Op", attrs={"a": Func("f", {"x": 2, "y": 1}), "b": 1})])
    assert formats.to_bytes(one) == formats.to_bytes(two)


@pytest.mark.parametrize("value", [(1, b"x"), (True, 1), 2**70, object(), "text", ((1,),)])
def test_values_that_no_file_can_hold(value: Any) -> None:
    with pytest.raises(GraphError, match="node 'n'"):
        formats.to_bytes(Graph([Node("n", "Op", attrs={"a": value})]))


def test_a_function_without_definition_cannot_be_written() -> None:
    with pytest.raises(GraphError, match="function 'f'"):
        formats.to_bytes(Graph([], functions={"f": Function("f")}))


def test_nested_values_do_not_exhaust_the_stack() -> None:
    value = wire.number_field(3, 1)
    for _ in range(3000):
        value = wire.bytes_field(10, wire.bytes_field(2, wire.bytes_field(1, "a") + wire.bytes_field(2, value)))
    node = (
        wire.bytes_field(1, "n")
        + wire.bytes_field(2, "Op")
        + wire.bytes_field(5, wire.bytes_field(1, "a") + wire.bytes_field(2, value))
    )
    graph = formats.from_bytes(wire.bytes_field(1, node))
    with pytest.raises(FormatError, match="nested"):
        graph["n"].attrs  # noqa: B018


def test_weights_are_not_read_at_load(tmp_path: pathlib.Path) -> None:
    weights = np.ones(4 << 20, np.float32)
    formats.save(Graph([const("w", weights)]), tmp_path / "m.pb")
    tracemalloc.start()
    graph = formats.load(tmp_path / "m.pb")
    tensor = graph["w"].tensor
    assert tensor.nbytes == weights.nbytes
    assert float(tensor.numpy()[-1]) == 1.0
    formats.save(graph, tmp_path / "copy.pb")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert (tmp_path / "copy.pb").read_bytes() == (tmp_path / "m.pb").read_bytes()


def test_a_graph_can_be_saved_over_the_file_it_came_from(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.pb"
    formats.save(Graph([const("w", np.arange(10000.0))]), path)
    graph = formats.load(path)
    formats.save(graph.replace([graph["w"], Node("y", "Identity", ["w"])]), path)
    assert list(formats.load(path).nodes) == ["w", "y"]
    assert graph["w"].tensor.numpy()[-1] == 9999.0  # the old file lives on while somebody holds it


def test_many_nodes_take_little_memory() -> None:
    count = 20_000
    nodes = [Node(f"scope/node_{i}", "Add", (f"scope/node_{i - 1}",) * 2 if i else ()) for i in range(count)]
    encoded = formats.to_bytes(Graph(nodes))
    tracemalloc.start()
    graph = formats.from_bytes(encoded)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(graph) == count
    assert used / count < 1024  # bytes a node
