"""Savers' files, TensorFlow 2's object graph, and functions' definitions: made by hand from their field numbers."""

import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph import formats
from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.function_def import arguments, results, retyped
from pocketgraph.formats.object_graph import KEY, keys_by_variable
from pocketgraph.formats.saver_def import restore_op
from pocketgraph.freezing import freeze
from pocketgraph.graph import DType, Function, Tensor
from pocketgraph.protobuf.wire import bytes_field

FUNCTIONS = pathlib.Path(__file__).parent.parent / "fixtures" / "freeze" / "functions" / "model.ckpt.meta"
SAVER = bytes_field(1, "save/Const:0") + bytes_field(2, "save/control:0") + bytes_field(3, "save/restore_all")


@pytest.mark.parametrize(
    "content",
    [
        SAVER,
        b'filename_tensor_name: "save/Const:0"\nrestore_op_name: "save/restore_all"\n',
        bytes_field(2, b"") + bytes_field(3, SAVER),  # a MetaGraphDef
        b'meta_info_def {}\nsaver_def { restore_op_name: "save/restore_all" }\n',
    ],
)
def test_the_restore_op_of_a_saver(tmp_path: pathlib.Path, content: bytes) -> None:
    (tmp_path / "saver").write_bytes(content)
    assert restore_op(tmp_path / "saver") == "save/restore_all"


@pytest.mark.parametrize("content", [b"", b"hello there", b"\x0a\xff", SAVER[:20], bytes_field(3, b"\xff\xfe")])
def test_no_saver(tmp_path: pathlib.Path, content: bytes) -> None:
    (tmp_path / "saver").write_bytes(content)
    with pytest.raises(FormatError, match="neither a SaverDef nor a MetaGraphDef"):
        restore_op(tmp_path / "saver")


def saved_object(name: str, key: str) -> bytes:
    attribute = bytes_field(1, "VARIABLE_VALUE") + bytes_field(2, name) + bytes_field(3, key)
    return bytes_field(1, bytes_field(2, attribute))


def checkpoint(graph: bytes) -> dict[str, Tensor]:
    return {KEY: Tensor.from_numpy(np.array(graph, object))}


def test_variables_are_found_by_their_own_name() -> None:
    value = "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    graph = saved_object("dense/kernel", value) + saved_object("twice", "a") + saved_object("twice", "b")
    assert keys_by_variable(checkpoint(graph + bytes_field(1, b""))) == {"dense/kernel": value}
    assert keys_by_variable({}) == {}


def test_a_damaged_object_graph() -> None:
    with pytest.raises(FormatError, match="is not an object graph"):
        keys_by_variable(checkpoint(saved_object("v", "k")[:-1]))
    with pytest.raises(FormatError, match="is not one string"):
        keys_by_variable({KEY: Tensor.from_numpy(np.zeros(2, np.float32))})


def test_a_checkpoint_of_tensorflow_2_freezes_a_graph_by_names() -> None:
    from pocketgraph.graph.text_format import parse

    graph = parse("dense/kernel = VarHandleOp(dtype=float, shape=[2])\ny = ReadVariableOp(dense/kernel, dtype=float)")
    key = "model/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    values = {**checkpoint(saved_object("dense/kernel", key)), key: Tensor.from_numpy(np.ones(2, np.float32))}
    assert freeze(graph, "y", values)["dense/kernel"].tensor is values[key]


def loop_body() -> Function:
    graph = formats.load(FUNCTIONS)
    return next(function for name, function in graph.functions.items() if name.startswith("loop_body"))


def test_a_function_with_other_types() -> None:
    body = loop_body()
    names = arguments(body)
    assert len(names) == len(results(body)) == len(set(names)) >= 5
    position = names.index(next(name for name in names if name in results(body)))
    made = retyped(body, "new", body.nodes, argument_types={position: DType.named("half")}, result_types={}, renamed={})
    assert made.name == "new"
    assert arguments(made) == names
    assert results(made) == results(body)
    assert made.encoded != body.encoded


@settings(max_examples=60, deadline=None)
@given(position=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_damaged_function_never_crashes(position: int, value: int) -> None:
    body = loop_body()
    raw = bytearray(body.encoded)
    raw[position % len(raw)] = value
    damaged = Function(body.name, body.nodes, bytes(raw))
    try:
        arguments(damaged)
        results(damaged)
        retyped(damaged, "new", (), argument_types={0: DType.named("float")}, result_types={}, renamed={})
    except PocketgraphError as error:
        assert "function 'loop_body" in str(error)  # noqa: PT017
