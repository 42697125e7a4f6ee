"""The text form of GraphDefs."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.formats import graphdef, graphdef_text
from pocketgraph.formats.protos import message
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.text_format import parse as parse_short
from pocketgraph.graph.text_format import print_graph
from pocketgraph.protobuf import wire

TEXT = """
# exported by hand
node {
  name: "x"  op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } }
}
node { name: "w" op: "Const"
  attr { key: "value" value { tensor {
    dtype: DT_INT32  tensor_shape { dim { size: 2 } }  tensor_content: "\\001\\000\\000\\000\\002\\000\\000\\000"
  } } }
}
node { name: "y" op: "Foo" input: "x" input: "^w" }
versions { producer: 21 }
"""


def test_text_is_read_whatever_the_file_is_called(tmp_path: pathlib.Path) -> None:
    for name in ("g.pbtxt", "g.pb", "g"):
        (tmp_path / name).write_text(TEXT)
        graph = formats.load(tmp_path / name)
        assert list(graph.nodes) == ["x", "w", "y"]
        assert graph["x"].attrs == {"dtype": DType.named("float"), "shape": Shape((None, 3))}
        assert graph["w"].tensor.numpy().tolist() == [1, 2]
        assert graph["y"].inputs == ("x", "^w")
        assert graph.versions.producer == 21


def test_binary_is_read_whatever_the_file_is_called(tmp_path: pathlib.Path) -> None:
    formats.save(Graph([Node("x", "NoOp")]), tmp_path / "g.pbtxt")
    assert list(formats.load(tmp_path / "g.pbtxt").nodes) == ["x"]


def test_writing_and_reading_text_loses_nothing(tmp_path: pathlib.Path) -> None:
    values = np.float32([0.1, -0.0, np.inf, 1e-45])
    graph = Graph([const("w", values), const("s", [b"\xff\0'\"\\"]), Node("n", "Op", ["w"], {"f": 0.1, "i": -5})])
    formats.save(graph, tmp_path / "g.pbtxt", text=True)
    again = formats.load(tmp_path / "g.pbtxt")
    # a float attribute has four bytes in a file
    exact = graph.replace([graph["w"], graph["s"], graph["n"].with_attrs(f=float(np.float32(0.1)))])
    assert formats.to_bytes(again) == formats.to_bytes(exact)
    assert "tensor_content" in (tmp_path / "g.pbtxt").read_text()


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('node {\n  name: "x"\n  nope: 1\n}\n', 3, "nope"),
        ('node {\n  name: "x"\n', 2, "Expected"),
        ('node {\n  name: "x" attr { key: "T" value { type: DT_FLOOT } }\n}\n', 2, "DT_FLOOT"),
        ('node { name: "x" op: 7 }\n', 1, "7"),
        ('node { name: "x" }\nversions { producer: 99999999999 }', 2, "99999999999"),
    ],
)
def test_errors_name_the_line(tmp_path: pathlib.Path, text: str, line: int, what: str) -> None:
    path = tmp_path / "g.pbtxt"
    path.write_text(text)
    with pytest.raises(FormatError, match=what) as caught:
        formats.load(path)
    assert str(caught.value).startswith(f"{path}: line {line}: ")
    assert "\n" not in str(caught.value)


def test_text_that_begins_with_a_typing_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "g.pbtxt"
    path.write_text('nodes {\n  name: "x"\n}\n')
    with pytest.raises(FormatError, match=r"line 1: .*nodes"):
        formats.load(path)


def test_deeply_nested_text_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "g.pbtxt"
    path.write_text('node { attr { key: "f" value ' + '{ func { attr { key: "f" value ' * 5000)
    with pytest.raises(FormatError):
        formats.load(path)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "g.pbtxt"
    path.write_bytes(b'node { name: "\xff\xfe" }')
    with pytest.raises(FormatError, match="UTF-8"):
        formats.load(path)


def test_what_is_larger_than_the_protobuf_library_reads_is_told_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse_short("x = Placeholder(dtype=float, shape=[?,2])")
    size = sum(map(len, graphdef.chunks(graph)))
    monkeypatch.setattr(graphdef_text, "LARGEST", size)
    assert graphdef_text.print_graph_def(graph).startswith("node {")
    monkeypatch.setattr(graphdef_text, "LARGEST", size - 1)
    with pytest.raises(FormatError, match=f"takes 2 GB, and this has {size:,} bytes"):
        graphdef_text.print_graph_def(graph)


def test_what_text_cannot_carry_is_not_dropped_in_silence(tmp_path: pathlib.Path) -> None:
    node = wire.bytes_field(1, "n") + wire.bytes_field(2, "Op") + b"\xfa\x3e\x02hi"
    graph = formats.from_bytes(wire.bytes_field(1, node))
    with pytest.raises(FormatError, match="newer TensorFlow"):
        formats.save(graph, tmp_path / "g.pbtxt", text=True)
    assert not list(tmp_path.iterdir())


def test_our_descriptors_stay_out_of_the_common_pool() -> None:
    from google.protobuf import descriptor_pool

    assert message("tensorflow.GraphDef").DESCRIPTOR.full_name == "tensorflow.GraphDef"
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("tensorflow.SavedTensorSlices")


def test_every_message_of_the_table_can_be_made() -> None:
    from pocketgraph.formats import protos

    messages, enums = protos.read_table(pathlib.Path(protos.__file__).with_name("protos.txt").read_text())
    assert len(messages) > 90
    assert len(enums["DataType"]) == 67
    for name in messages:
        full = name if name.startswith("google.") else f"tensorflow.{name}"
        assert len(message(full).DESCRIPTOR.fields) == len(messages[name])


def test_the_name_decides_between_text_and_binary(tmp_path: pathlib.Path) -> None:
    graph = parse_short("x = Placeholder(dtype=float, shape=[?,2])")
    for name, text, is_text in (
        ("a.pbtxt", None, True),
        ("a.pb", None, False),
        ("b.pbtxt", False, False),
        ("b", True, True),
    ):
        formats.save(graph, tmp_path / name, text)
        assert (tmp_path / name).read_bytes().startswith(b"node {") == is_text
        assert print_graph(formats.load(tmp_path / name)) == print_graph(graph)
