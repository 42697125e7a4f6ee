"""The table of op signatures, against what TensorFlow documents and what real graphs hold."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from pocketgraph import formats
from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Node, Shape, opdefs
from pocketgraph.graph.attr import kind_of
from support import model_dir, needs_shared

FLOAT, INT32, INT64, BOOL = (DType.named(name) for name in ("float", "int32", "int64", "bool"))


def test_a_whole_signature() -> None:
    conv = opdefs.definition("Conv2D")
    assert [(arg.name, arg.type_attr) for arg in conv.inputs] == [("input", "T"), ("filter", "T")]
    assert [arg.name for arg in conv.outputs] == ["output"]
    assert list(conv.attrs) == [
        "T", "strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations",
    ]  # fmt: skip
    assert conv.attrs["T"].default is None
    assert FLOAT in conv.attrs["T"].allowed
    assert conv.attrs["data_format"].default == b"NHWC"
    assert conv.attrs["data_format"].allowed == (b"NHWC", b"NCHW")
    assert conv.attrs["dilations"].default == (1, 1, 1, 1)
    assert conv.attrs["use_cudnn_on_gpu"].default is True
    assert not conv.stateful


def test_properties_of_ops() -> None:
    assert opdefs.definition("RandomUniform").stateful
    assert opdefs.definition("ConcatV2").attrs["N"].minimum == 2


def test_defaults_of_every_kind() -> None:
    assert opdefs.definition("FusedBatchNorm").attrs["epsilon"].default == pytest.approx(1e-4, rel=1e-6)
    assert opdefs.definition("ArgMax").attrs["Tidx"].default is INT32
    assert opdefs.definition("Placeholder").attrs["shape"].default == Shape(None)
    assert opdefs.definition("VarHandleOp").attrs["shared_name"].default == b""
    colour = opdefs.definition("ImageSummary").attrs["bad_color"].default
    assert colour.numpy().tolist() == [255, 0, 0, 255]  # type: ignore[union-attr]
    assert opdefs.definition("Conv2D").attrs["explicit_paddings"].default == ()


def test_every_line_decodes_to_what_it_says() -> None:
    names = opdefs.names()
    assert list(names) == sorted(set(names))
    assert len(names) > 1900
    for name in names:
        op = opdefs.definition(name)
        assert op.name == name
        for attr in op.attrs.values():
            if attr.default is not None and attr.default != ():
                assert kind_of(attr.default) == attr.kind, (name, attr)
        for arg in (*op.inputs, *op.outputs):
            assert bool(arg.dtype) + bool(arg.type_attr) + bool(arg.type_list_attr) == 1, (name, arg)
            for attr_name in (arg.type_attr, arg.number_attr, arg.type_list_attr):
                assert not attr_name or attr_name in op.attrs, (name, arg)


def test_unknown_ops() -> None:
    assert opdefs.find("NoSuchOp") is None
    assert opdefs.find("") is None
    assert opdefs.find('Conv2D",[') is None
    assert opdefs.find("Conv2") is None  # the beginning of a name is not the name
    with pytest.raises(GraphError, match="no op called 'Conv2d'; did you mean 'Conv2D'"):
        opdefs.definition("Conv2d")


def test_versions() -> None:
    newer = opdefs.definition("FusedBatchNormV3").attrs
    assert (newer["epsilon"].since, newer["exponential_avg_factor"].since) == ("1.15", "2.x")
    assert opdefs.definition("Conv2D").only == ""
    assert [dtype.name for dtype in opdefs.definition("AddV2").attrs["T"].newer] == ["uint16", "uint32", "uint64"]
    assert opdefs.definition("MaxPool").attrs["padding"].newer == (b"EXPLICIT",)
    assert opdefs.definition("Conv").only == "2.x"  # a newer op
    assert opdefs.definition("Conv").attrs["T"].since == "2.x"
    assert opdefs.definition("CompareAndBitpack").only == "1.15"  # an op that newer versions keep elsewhere


def test_defaults_that_older_versions_do_not_know_are_not_written() -> None:
    written = opdefs.definition("FusedBatchNormV3").written_defaults
    assert "exponential_avg_factor" not in written
    assert written["epsilon"] == pytest.approx(1e-4)
    assert "T" not in written  # it has no default
    assert (
        opdefs.definition("Conv").written_defaults["data_format"] == b"CHANNELS_LAST"
    )  # nobody older knows the op at all


def test_types_of_inputs_and_outputs() -> None:
    concat = Node("c", "ConcatV2", ["a", "b", "axis"], {"T": FLOAT, "N": 2})
    assert opdefs.input_dtypes(concat) == (FLOAT, FLOAT, INT32)  # Tidx has a default
    assert opdefs.output_dtypes(concat) == (FLOAT,)
    assert opdefs.output_dtypes(Node("v", "VariableV2", attrs={"dtype": FLOAT})) == (FLOAT.ref,)
    assert opdefs.output_dtypes(Node("i", "IdentityN", ["a", "b"], {"T": (FLOAT, BOOL)})) == (FLOAT, BOOL)
    assert opdefs.output_dtypes(Node("n", "NoOp")) == ()
    assert opdefs.output_dtypes(Node("u", "Unpack", ["a"], {"num": 3, "T": INT64})) == (INT64,) * 3
    assert opdefs.output_dtypes(Node("s", "Shape", ["a"], {"T": FLOAT})) == (INT32,)


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (Node("a", "Relu", ["x"]), "has no attribute 'T'"),
        (Node("a", "Relu", ["x"], {"T": 1}), "'T' of the Relu is not a type"),
        (Node("a", "Unpack", ["x"], {"T": FLOAT, "num": 2**60}), "'num' of the Unpack is not a number"),
        (Node("a", "Unpack", ["x"], {"T": FLOAT, "num": -1}), "'num' of the Unpack is not a number"),
        (Node("a", "IdentityN", ["x"], {"T": FLOAT}), "not a list of types"),
    ],
)
def test_nodes_that_do_not_say_their_types(node: Node, what: str) -> None:
    with pytest.raises(GraphError, match=f"node 'a': .*{what}"):
        opdefs.output_dtypes(node)


def test_attributes_or_their_defaults() -> None:
    node = Node("c", "Conv2D", ["x", "w"], {"data_format": b"NCHW"})
    assert opdefs.attr_or_default(node, "data_format") == b"NCHW"
    assert opdefs.attr_or_default(node, "dilations") == (1, 1, 1, 1)
    assert opdefs.attr_or_default(Node("b", "FusedBatchNorm", attrs={"is_training": False}), "is_training") is False
    for name in ("strides", "nothing"):
        with pytest.raises(GraphError, match=f"node 'c': the Conv2D has no attribute '{name}'"):
            opdefs.attr_or_default(node, name)


@needs_shared
@pytest.mark.parametrize("name", ["mtcnn_blaueck", "stylize_quantized", "aiy_visionkit_detect", "federated_graph"])
def test_the_signatures_fit_real_graphs(name: str) -> None:
    graph = formats.load(next(path for path in sorted(model_dir(name).iterdir()) if path.suffix in (".pb", ".pbtxt")))
    for node in graph:
        inputs = opdefs.input_dtypes(node)
        assert len(inputs) == len(node.data_inputs), node
        for ref, wanted in zip(node.data_inputs, inputs, strict=True):
            producer, _, port = ref.partition(":")
            given = opdefs.output_dtypes(graph[producer])[int(port or 0)]
            assert given.base is wanted.base, (node, ref)


def test_the_first_lookup_reads_one_op_of_many() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); from support import lines_taken;"
        "from pocketgraph.graph import opdefs;"
        "print([lines_taken(lambda: opdefs.definition('Conv2D')) for _ in range(2)])"
    )
    tests = pathlib.Path(__file__).parent.parent
    first, second = json.loads(subprocess.check_output([sys.executable, "-c", code, str(tests)]))
    assert second < 10
    assert first < len(opdefs.names()) / 2


def test_each_op_is_once_in_one_of_the_two_parts_of_the_table() -> None:
    names = opdefs.names()
    assert list(names) == sorted(set(names))
    assert opdefs.find("Conv2D") is not None
    assert opdefs.find("AudioSummaryV2") is not None
    assert opdefs.find("Conv2") is None


def test_what_an_unknown_op_gives_is_asked_without_looking_for_similar_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object) -> str:
        raise AssertionError("names were compared")

    monkeypatch.setattr(opdefs, "did_you_mean", looked)
    assert opdefs.known_output_dtypes(Node("conv", "onnx.Conv", ["x"])) is None
    typed = Node("conv", "onnx.Conv", ["x"], {opdefs.TYPES: (DType.named("float"),)})
    assert opdefs.known_output_dtypes(typed) == (DType.named("float"),)
