"""Headers and lists for reduced builds; the header is held to what TensorFlow 1.15's own tool printed."""

from __future__ import annotations

import json
import pathlib

import pytest
from click.testing import CliRunner

import pocketgraph
from graph_files import graph_file
from pocketgraph.cli.export.print_required_ops import command as required_command
from pocketgraph.cli.export.print_selective_registration_header import command as header_command
from pocketgraph.cli.export.print_selective_registration_header import needed
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.exporting.required_ops import header, kernel_class, litert_operators, ops_list, required
from pocketgraph.graph.text_format import parse
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "tflite"
GOLDEN = FIXTURES / "pictures_ops_to_register.h"
"""TensorFlow 1.15: python -m tensorflow.python.tools.print_selective_registration_header --graphs=pictures.pb"""


@pytest.fixture
def pictures(tmp_path: pathlib.Path) -> str:
    """The file of a net that TensorFlow made."""
    path = tmp_path / "pictures.pb"
    pocketgraph.save(graph_file(FIXTURES, "pictures"), path)
    return str(path)


def test_the_header_is_tensorflows(pictures: str) -> None:
    result = CliRunner().invoke(header_command, [f"--graphs={pictures}"])
    assert result.output == GOLDEN.read_text()


def test_the_header_of_everything_and_of_nothing(pictures: str) -> None:
    everything = CliRunner().invoke(header_command, [pictures, "--default_ops=all"]).output.splitlines()
    assert everything[3:] == [
        "#define SHOULD_REGISTER_OP(op) true", "#define SHOULD_REGISTER_OP_KERNEL(clz) true",
        "#define SHOULD_REGISTER_OP_GRADIENT true", "#endif",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no graph is given"):
        CliRunner().invoke(header_command, [], catch_exceptions=False)


def test_lists_of_ops(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ops.json").write_text('[["Add", "BinaryOp<X>"], ["SymbolicGradient", ""]]')
    found = (
        CliRunner()
        .invoke(header_command, [str(tmp_path / "ops.json"), "--proto_fileformat=ops_list", "--default_ops="])
        .output
    )
    assert '"BinaryOp<X>",\n};' in found
    assert '|| isequal(op, "Add")\n     || isequal(op, "SymbolicGradient")' in found
    assert "#define SHOULD_REGISTER_OP_GRADIENT true" in found
    with pytest.raises(FormatError, match="Input file should not be empty"):
        ops_list("")
    with pytest.raises(FormatError, match="no list of"):
        ops_list('{"a": 1}')


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "1", '{"a": 1}', '["a"]', "\0"])
def test_other_files_are_no_list_of_ops(text: str) -> None:
    with pytest.raises(FormatError, match="this is no list of"):
        ops_list(text)


def test_kernels_depend_on_types_and_their_absence_is_told() -> None:
    graph = parse("""
        x = Placeholder(dtype=half, shape=[2])
        y = Relu(x, T=half)
        z = NoSuchOp(y)
    """)
    assert kernel_class(graph["y"]) == "ReluOp<CPUDevice, Eigen::half>"
    found = required([graph], "")
    assert found.missing == ("NoSuchOp",)
    with pytest.raises(UsageError, match="is not OP:KERNEL"):
        required([], "NoOp")


def test_an_op_that_is_rewritten_before_it_runs_needs_no_kernel() -> None:
    """As of TensorFlow 1.15's own header of this graph, which names two ops and one class."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        y = AccumulateNV2(x, x, N=2, T=float, shape=[2])
    """)
    found = required([graph], "")
    assert not found.missing
    printed = header(found)
    assert '[] = {\n"PlaceholderOp",\n};' in printed
    assert 'return false\n     || isequal(op, "AccumulateNV2")\n     || isequal(op, "Placeholder")\n  ;' in printed


def test_lists_of_runtimes(tmp_path: pathlib.Path, pictures: str) -> None:
    path = tmp_path / "net.tflite"
    pocketgraph.export(pictures, path, outputs=["y"])
    operators = litert_operators({"net": path.read_bytes()})
    assert operators["RESIZE_BILINEAR"] == (3, 3)
    printed = CliRunner().invoke(required_command, [str(path), "--form=litert"]).output
    assert (
        "  resolver->AddBuiltin(::tflite::BuiltinOperator_RESIZE_BILINEAR, "
        "::tflite::ops::builtin::Register_RESIZE_BILINEAR(), 3, 3);" in printed
    )
    pairs = CliRunner().invoke(required_command, [pictures, "--form=ops_list"]).output
    assert ["Conv2D", "Conv2DOp<CPUDevice, float>"] in json.loads(pairs)
    with pytest.raises(UsageError, match=r"this is no \.tflite file"):
        CliRunner().invoke(required_command, [pictures, "--form=litert"], catch_exceptions=False)


def field(number: int, content: bytes | int) -> bytes:
    """A protobuf field of bytes or of a small number."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def test_onnx_operators(tmp_path: pathlib.Path) -> None:
    inner = field(1, field(4, b"Add"))
    branch = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, inner)))
    graph = branch + field(1, field(4, b"Conv")) + field(1, field(4, b"Gelu") + field(7, b"com.microsoft"))
    model = field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 17))
    model += field(8, field(1, b"com.microsoft") + field(2, 1))
    (tmp_path / "net.onnx").write_bytes(model)
    printed = CliRunner().invoke(required_command, [str(tmp_path / "net.onnx"), "--form=onnxruntime"]).output
    assert printed == "ai.onnx;17;Add,Conv,If\ncom.microsoft;1;Gelu\n"


def test_a_list_that_is_no_text_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ops.json").write_bytes(b"\xff\xfe\x00[")
    with pytest.raises(FormatError, match=r"ops\.json: this is no list of \[op, kernel\] pairs"):
        needed([str(tmp_path / "ops.json")], True, "")
