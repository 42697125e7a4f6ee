"""The quick way through a GraphDef's nodes says what the general one says, of odd and of damaged files too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph import formats
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import graphdef
from pocketgraph.graph import DType, Graph, Node, Tensor, const
from pocketgraph.graph.attr import same_attrs
from pocketgraph.protobuf import wire

FLOAT = DType.named("float")


class GeneralReader(graphdef.GraphDefReader):
    """Takes no node for a usual one."""

    def _usual_nodes(self, position: int, stop: int) -> int:
        return position


def outcome(reader: type[graphdef.GraphDefReader], data: bytes) -> Any:
    try:
        graph = reader(data, "f").read(0, len(data))
        return [
            (node.name, node.op, node.inputs, node.device, dict(node.attrs), node.extra) for node in graph
        ], graph.extra
    except (PocketgraphError, wire.WireError) as error:
        return str(error)


def assert_same(data: bytes) -> None:
    quick, general = outcome(graphdef.GraphDefReader, data), outcome(GeneralReader, data)
    if isinstance(quick, str) or isinstance(general, str):
        assert quick == general
        return
    assert quick[1] == general[1]
    for ours, theirs in zip(quick[0], general[0], strict=True):
        assert ours[:4] == theirs[:4]
        assert ours[5] == theirs[5]
        assert same_attrs(ours[4], theirs[4])


TEXTS = st.one_of(
    st.text("ab/_", min_size=1, max_size=6),
    st.integers(1, 3000).map(lambda size: "n" * size),
    st.sampled_from(["é" * 70, "x" * 126, "x" * 127, "x" * 128, "x" * 378, "x" * 8190]),
)
VALUES = st.sampled_from(
    [
        FLOAT, 3, True, b"SAME", (1, 2, 2, 1), b"x" * 200,
        Tensor.from_numpy(np.float32(2)), Tensor.from_numpy(np.arange(90, dtype=np.int32)),
        Tensor.from_numpy(np.zeros((40, 30), np.float32)), Tensor.from_numpy(np.zeros((0, 3), np.float32)),
        Tensor.from_numpy([b"a", b"b"]),
    ]
)  # fmt: skip
FIELDS = st.lists(
    st.one_of(
        st.tuples(st.just(1), TEXTS), st.tuples(st.just(2), TEXTS), st.tuples(st.just(3), TEXTS),
        st.tuples(st.just(4), TEXTS), st.tuples(st.just(9), TEXTS),
    ),
    max_size=5,
)  # fmt: skip


@st.composite
def nodes(draw: st.DrawFn) -> bytes:
    """A NodeDef with its fields in any order, some of them missing, repeated or unknown."""
    attrs = draw(st.dictionaries(st.sampled_from(["T", "value", "dtype", "k", "strides"]), VALUES, max_size=4))
    node = Node(draw(TEXTS), draw(TEXTS), draw(st.lists(TEXTS, max_size=7)), attrs, draw(st.one_of(st.just(""), TEXTS)))
    parts = b"".join(bytes(part) for part in graphdef.encode_node(node))
    odd = b"".join(wire.bytes_field(number, text) for number, text in draw(FIELDS))
    return draw(st.sampled_from([parts, parts, parts, odd + parts, parts + odd, odd]))


@given(st.lists(nodes(), max_size=6), st.data())
@settings(max_examples=150, deadline=None)
def test_any_nodes(encoded: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(wire.bytes_field(1, node) for node in encoded)
    assert_same(whole)
    if whole:
        cut = data.draw(st.integers(0, len(whole) - 1))
        assert_same(whole[:cut])
        changed = bytearray(whole)
        changed[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        assert_same(bytes(changed))


def test_an_op_whose_name_takes_two_bytes_of_length() -> None:
    graph = formats.from_bytes(formats.to_bytes(Graph([Node("a", "O" * 300), Node("b", "P", ["a"], device="d" * 200)])))
    assert [(node.op, node.device) for node in graph] == [("O" * 300, ""), ("P", "d" * 200)]


@pytest.mark.parametrize("count", [1, 200])
def test_attributes_of_equal_nodes_are_shared_and_those_of_constants_are_not(count: int) -> None:
    made = [const(f"c{number}", np.float32(7)) for number in range(count)]
    made += [Node(f"i{number}", "Identity", [f"c{number}"], {"T": FLOAT}) for number in range(count)]
    graph = formats.from_bytes(formats.to_bytes(Graph(made)))
    assert all(graph[f"c{number}"].tensor.numpy() == 7 for number in range(count))
    assert graph["i0"].attrs is graph[f"i{count - 1}"].attrs
    assert count == 1 or graph["c0"].tensor is not graph["c1"].tensor


def test_packed_lists_and_content_of_constants() -> None:
    """As TensorFlow leaves a short list, an unpacked one, one value for all, and content."""
    shape = wire.bytes_field(2, wire.bytes_field(2, wire.number_field(1, 3)))
    tensors = {
        "packed": wire.number_field(1, 3) + shape + wire.bytes_field(7, bytes((1, 2, 3))),
        "single": wire.number_field(1, 3) + shape + wire.number_field(7, 5),
        "repeated": wire.number_field(1, 1) + shape + wire.bytes_field(5, np.float32([4]).tobytes()),
        "content": wire.number_field(1, 1) + shape + wire.bytes_field(4, np.float32([1, 2, 3]).tobytes()),
    }
    data = b""
    for name, tensor in tensors.items():
        value = wire.bytes_field(1, "value") + wire.bytes_field(2, wire.bytes_field(8, tensor))
        padded = value + wire.bytes_field(7, "of an unknown kind" * 3)
        for key, entry in ((name, value), (f"{name}_padded", padded)):
            data += wire.bytes_field(
                1, wire.bytes_field(1, key) + wire.bytes_field(2, "Const") + wire.bytes_field(5, entry)
            )
    graph = formats.from_bytes(data)
    for suffix in ("", "_padded"):
        assert graph[f"packed{suffix}"].tensor.numpy().tolist() == [1, 2, 3]
        assert graph[f"single{suffix}"].tensor.numpy().tolist() == [5, 5, 5]
        assert graph[f"repeated{suffix}"].tensor.numpy().tolist() == [4, 4, 4]
        assert graph[f"content{suffix}"].tensor.numpy().tolist() == [1, 2, 3]
