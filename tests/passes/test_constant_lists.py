"""Constants that are lists of tensors, as TensorFlow 1.15's fold_constants wrote them: type_name, metadata."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import FormatError
from pocketgraph.formats import from_bytes, to_bytes
from pocketgraph.formats.protos import message
from pocketgraph.formats.stored_list import list_tensor, stored_list
from pocketgraph.formats.tensor_proto import StoredTensor
from pocketgraph.formats.typed_list import typed_list_message
from pocketgraph.graph import Graph, Tensor, const
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.passes.constant_lists import with_lists_made
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

ANY = b"\xff" * 9 + b"\x01"  # -1, as a varint
OF_THREE = b"\x12\x02\x08\x03"  # the shape [3]
EMPTY = b"\x04\x00\x01\x02\x03\x01" + ANY + OF_THREE
ONE_SET = b"\x03\x00\x02\x03\x01" + ANY + b"\x12\x0b\x08" + ANY
FULL = b"\x00\x01" + ANY + OF_THREE
GROWING = b"\x00\x01\x05\x12\x0b\x08" + ANY

READ = """
    x = Placeholder(dtype=float, shape=[3])
    i = Placeholder(dtype=int32, shape=[])
    shape = Const(int32 [3])
    item = TensorListGetItem(list, i, shape, element_dtype=float)
    y = AddV2(item, x, T=float)
"""


def listed(metadata: bytes, *rows: list[float], name: str = "tensorflow::TensorList") -> Tensor:
    proto = message("tensorflow.TensorProto")
    tensors = [proto(dtype=1, tensor_shape={"dim": [{"size": len(row)}]}, float_val=row) for row in rows]
    return holding(metadata, *tensors, name=name)


def holding(metadata: bytes, *tensors: Any, name: str = "tensorflow::TensorList") -> Tensor:
    made = message("tensorflow.TensorProto")(dtype=21, tensor_shape={})
    made.variant_val.add(type_name=name, metadata=metadata, tensors=tensors)
    encoded = made.SerializeToString()
    return StoredTensor(encoded, 0, len(encoded), "the test").tensor()


def nested(depth: int) -> Tensor:
    """A list in a list, and so on."""
    found = listed(EMPTY)
    for _ in range(depth):
        made = message("tensorflow.TensorProto")()
        made.ParseFromString(typed_list_message(found))
        found = holding(b"\x00\x15" + ANY + b"\x12\x00", made)
    return found


def huge(count: int) -> Tensor:
    """A list of rows that are each one number, filled up to 8 GB."""
    row = message("tensorflow.TensorProto")(dtype=1, tensor_shape={"dim": [{"size": 2 * 10**9}]}, float_val=[1])
    return holding(b"\x00\x01" + ANY + b"\x18\x01", *[row] * count)


def reading(tensor: Tensor) -> Graph:
    return Graph([const("list", tensor), *parse(READ)])


def test_a_list_becomes_what_makes_it() -> None:
    assert print_graph(with_lists_made(reading(listed(EMPTY)))).startswith(
        "list/element_shape = Const(int32 [3])\n"
        "list/num_elements = Const(int32 4)\n"
        "list = TensorListReserve(list/element_shape, list/num_elements, element_dtype=float, shape_type=int32)\n"
    )


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (listed(EMPTY), [0.0, 0.0, 0.0]),
        (listed(ONE_SET, [1, 2, 5]), [1.0, 2.0, 5.0]),
        (listed(FULL, [1, 2, 3], [4, 5, 6]), [4.0, 5.0, 6.0]),
        (listed(GROWING, [1, 2, 3], [4, 5, 6]), [4.0, 5.0, 6.0]),
    ],
)
def test_a_list_runs(tensor: Tensor, expected: list[float], engine: str | None) -> None:
    with Session(reading(tensor), engine=engine) as session:
        (y,) = session.run(["y"], {"x": np.zeros(3, np.float32), "i": 1})
    np.testing.assert_array_equal(y, np.float32(expected))


def reading_in_a_function(tensor: Tensor) -> bytes:
    """The GraphDef of READ, whose list and what takes an element of it are in a function."""
    made = message("tensorflow.GraphDef")()
    made.ParseFromString(bytes(to_bytes(parse(READ.replace("item, x", "call, x").replace("item = ", "#")))))
    inside = made.library.function.add(ret={"out": "item:item:0"})
    inside.signature.name = "f"
    inside.signature.input_arg.add(name="i", type=3)
    inside.signature.output_arg.add(name="out", type=1)
    inside.node_def.add(name="list", op="Const").attr["dtype"].type = 21
    inside.node_def[0].attr["value"].tensor.ParseFromString(typed_list_message(tensor))
    inside.node_def.extend(node for node in made.node if node.name == "shape")
    inside.node_def.add(name="item", op="TensorListGetItem", input=["list:output:0", "i", "shape:output:0"])
    inside.node_def[2].attr["element_dtype"].type = 1
    call = made.node.add(name="call", op="PartitionedCall", input=["i"])
    call.attr["f"].func.name = "f"
    call.attr["Tin"].list.type.append(3)
    call.attr["Tout"].list.type.append(1)
    return made.SerializeToString()


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("rule", ["", "fold_constants"])
def test_a_list_in_a_function_runs(rule: str, engine: str | None) -> None:
    graph = from_bytes(reading_in_a_function(listed(FULL, [1, 2, 3], [4, 5, 6])))
    assert from_bytes(to_bytes(graph)).functions["f"].nodes[0].tensor.same_values(graph.functions["f"].nodes[0].tensor)
    with Session(transform(graph, rule, "x,i", "y") if rule else graph, engine=engine) as session:
        (y,) = session.run(["y"], {"x": np.ones(3, np.float32), "i": 1})
    np.testing.assert_array_equal(y, [5, 6, 7])


@pytest.mark.parametrize(
    "tensor", [listed(EMPTY), listed(ONE_SET, [1, 2, 5]), listed(FULL, [1, 2, 3]), listed(GROWING)]
)
def test_a_list_is_written_as_it_was_read(tensor: Tensor) -> None:
    assert list_tensor(stored_list(tensor, "")).numpy().item() == tensor.numpy().item()
    graph = Graph([const("list", tensor)])
    assert to_bytes(from_bytes(to_bytes(graph))) == to_bytes(graph)
    assert pickle.loads(pickle.dumps(tensor)).same_values(tensor)
    assert not tensor.same_values(listed(FULL, [1, 2, 4]))


@pytest.mark.parametrize(
    "rule", ["merge_duplicate_nodes", "quantize_weights(minimum_size=0)", "round_weights", "strip_unused_nodes"]
)
def test_rules_leave_a_list_alone(rule: str) -> None:
    graph = reading(listed(ONE_SET, [1, 2, 5]))
    assert transform(graph, rule, "x,i", "y")["list"].tensor.same_values(graph["list"].tensor)


def test_the_original_makes_a_list_a_constant() -> None:
    text = f"""
        size = Const(int32 4)
        of = Const(int32 [3])
        list = TensorListReserve(of, size, element_dtype=float, shape_type=int32)
        {READ}
    """
    folded = transform(parse(text), "fold_constants", "x,i", "y", compat="original")
    (made,) = (node.tensor for node in folded if node.name.startswith("list"))
    assert made.same_values(listed(EMPTY))
    assert transform(parse(text), "fold_constants", "x,i", "y")["list"].op == "TensorListReserve"


def test_a_list_that_is_a_constant_is_folded_away() -> None:
    graph = reading(listed(FULL, [1, 2, 3], [4, 5, 6]))
    graph = graph.map_nodes(lambda node: const("i", np.int32(1)) if node.name == "i" else node)
    folded = transform(graph, "fold_constants", "x", "y")
    np.testing.assert_array_equal(folded["item/_0__cf__0"].tensor.numpy(), [4, 5, 6])


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (listed(b"", name="RaggedTensorVariant"), "holds a RaggedTensorVariant"),
        (listed(EMPTY[:3]), "list is damaged"),
        (listed(b"\x01\x07\x01" + ANY + OF_THREE), "0 elements"),
        (listed(b"\x04" + EMPTY[1:5] + b"\x01" + ANY + b"\x12\x06\x08\xff\xff\xff\xff\x7f"), "elements of shape"),
        (listed(b"\x00\x03" + ANY + OF_THREE, [1, 2, 3]), "an element of type float in a list of int32"),
        (nested(40), "more than 32 lists lie in each other"),
        (huge(100), "would take 800,000,000,000 bytes that are not in the file"),
    ],
)
def test_what_is_no_list_is_said(tensor: Tensor, says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        Session(reading(tensor)).run(["y"], {"x": np.zeros(3, np.float32), "i": 1})
    assert "node 'list'" in str(caught.value)
