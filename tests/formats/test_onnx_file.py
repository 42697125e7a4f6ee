"""ONNX files as graphs, and what a session makes of them where ONNX Runtime is installed."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from command_line import call
from graph_files import graph_file
from pocketgraph.errors import FormatError, PocketgraphError, RunError
from pocketgraph.exporting.onnx import onnx_exporter
from pocketgraph.formats import onnx_file
from pocketgraph.graph import Graph, Node, Shape, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.runtime import Session
from support import ROOT

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
FIXTURES = ROOT / "tests" / "fixtures" / "tflite"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An ONNX file of ours, of a net that TensorFlow has run."""
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    pocketgraph.export(graph_file(FIXTURES, "numbers"), path, outputs=["y"])
    return path


def test_the_graph_of_a_file(model: pathlib.Path) -> None:
    graph = pocketgraph.load(model)
    assert list(graph.signatures) == ["serving_default"]
    assert graph["x"].shape().dims == (4, 6)
    assert graph.outputs == ("y:0",)
    assert any(node.op.startswith("onnx.") for node in graph)


def test_what_a_file_calls_otherwise_is_said_by_its_name_here(tmp_path: pathlib.Path) -> None:
    """As tf2onnx names outputs by TensorFlow's tensors, ports and all."""
    of_floats = onnx.TensorProto.FLOAT
    ends = [onnx.helper.make_tensor_value_info(name, of_floats, [2]) for name in ("x:0", "Call:0", "Call:2")]
    nodes = [onnx.helper.make_node("Relu", ["x:0"], ["Call:0"]), onnx.helper.make_node("Neg", ["x:0"], ["Call:2"])]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])), tmp_path / "net.onnx")
    with (
        Session(tmp_path / "net.onnx") as session,
        pytest.raises(RunError, match="the model's own 'Call:2' is 'Call_2:0' here"),
    ):
        session.run("Call:2", {"x": np.ones(2, np.float32)})


def test_operators_that_only_another_program_registers_are_told(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of ONNX Runtime's own domains, and functions that the file defines, run; no run of others is proposed."""
    make = onnx.helper
    ends = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "z")]
    opsets = [make.make_opsetid(domain, 1) for domain in ("com.microsoft", "com.acme", "own")] + [
        make.make_opsetid("", 17)
    ]
    twice = make.make_function("own", "Twice", ["a"], ["b"], [make.make_node("Add", ["a", "a"], ["b"])], opsets[-1:])
    for domain, op, runs in (("com.microsoft", "Gelu", True), ("own", "Twice", True), ("com.acme", "Warp", False)):
        nodes = [make.make_node(op, ["x"], ["y"], domain=domain), make.make_node("Neg", ["y"], ["z"])]
        graph = make.make_graph(nodes, "g", ends[:1], ends[1:])
        onnx.save(make.make_model(graph, opset_imports=opsets, functions=[twice]), tmp_path / "net.onnx")
        assert call("summarize", tmp_path / "net.onnx") == 0
        said = capsys.readouterr().out
        assert ("benchmark_model" in said) == runs
        assert ("it runs only where a program registers its custom operators: com.acme.Warp" in said) == (not runs)
        assert (f"onnx.{op}" in said) == runs


def test_a_session_and_verify_run_it(model: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    with np.load(FIXTURES / "numbers.npz") as data:
        x, y = data["x"], data["y"]
    with Session(model, threads=1) as session:
        (found,) = session.run("y", {"x": x})
        np.testing.assert_allclose(found, y, rtol=1e-5)
        assert session.plan().parts[0].runs_on == "onnxruntime"
        inside = next(node.name for node in session.graph if node.op.startswith("onnx."))
        with pytest.raises(RunError, match="is no output of it"):
            session.run(inside, {"x": x})
    assert pocketgraph.verify(graph_file(FIXTURES, "numbers"), model).passed


def test_damage_is_an_error_and_nothing_else(model: pathlib.Path) -> None:
    whole = model.read_bytes()
    rng = np.random.default_rng(6)
    for place in rng.integers(0, len(whole), 600):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        try:
            onnx_file.parse(bytes(changed))
        except PocketgraphError:
            continue
    with pytest.raises(FormatError):
        onnx_file.parse(whole[: len(whole) // 2])


def test_it_is_saved_as_it_was(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(model)
    pocketgraph.save(graph, tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == model.read_bytes()
    with pytest.raises(FormatError, match="the operators of an ONNX file have no GraphDef form"):
        pocketgraph.save(graph, tmp_path / "copy.pb")


WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
PRODUCT = Graph([
    Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, 64))}),
    Node("w", "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(WEIGHTS)}),
    Node("y", "MatMul", ("x", "w"), {"T": FLOAT}),
])  # fmt: skip


class TestWeightsInAnotherFile:
    @pytest.fixture
    def beside(self, tmp_path: pathlib.Path) -> pathlib.Path:
        pocketgraph.save(PRODUCT, tmp_path / "net.pb")
        pocketgraph.export(tmp_path / "net.pb", tmp_path / "net.onnx", outputs=["y"], external_data=True)
        assert (tmp_path / "net.onnx.data").stat().st_size == WEIGHTS.nbytes
        return tmp_path / "net.onnx"

    def test_every_command_reads_them(
        self, beside: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
        x = np.linspace(-1, 1, 64, dtype=np.float32)[None]
        with Session(beside, threads=1) as session:
            (found,) = session.run("y", {"x": x})
        np.testing.assert_allclose(found, x @ WEIGHTS, rtol=1e-4, atol=1e-5)
        monkeypatch.chdir(beside.parent)  # a path without a folder
        assert call("verify", "net.pb", "net.onnx") == 0
        assert call("benchmark_model", "--graph=net.onnx", "--max_num_runs=3", "--show_run_order") == 0
        assert call("summarize", "net.onnx") == 0
        assert "Const" in capsys.readouterr().out

    def test_what_is_missing_or_elsewhere_is_refused(self, beside: pathlib.Path) -> None:
        data = beside.with_name("net.onnx.data")
        content = beside.read_bytes()
        with pytest.raises(FormatError, match="no file beside it"):
            onnx_file.parse(content)
        for name in (b"../et.onnx.d..", b"/et.onnx.data/", b"net.onnx\0data", b"\0" * 13):
            beside.write_bytes(content.replace(b"net.onnx.data", name[:13]))
            with pytest.raises(FormatError, match=r"no file beside it|cannot be read"):
                pocketgraph.load(beside)
        beside.write_bytes(content)
        data.write_bytes(data.read_bytes()[:-4])
        with pytest.raises(FormatError, match="too short"):
            pocketgraph.load(beside)
        data.unlink()
        with pytest.raises(FormatError, match="put it beside the file"):
            pocketgraph.load(beside)

    def test_what_is_too_large_for_one_file_goes_there(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(onnx_exporter, "LARGEST", 4000)
        made = pocketgraph.export(PRODUCT, tmp_path / "net.onnx", outputs=["y"])
        assert [pathlib.Path(name).name for name in made.files] == ["net.onnx", "net.onnx.data"]
        np.testing.assert_array_equal(pocketgraph.load(tmp_path / "net.onnx")["w"].tensor.numpy(), WEIGHTS)
        assert pocketgraph.verify(PRODUCT, tmp_path / "net.onnx").passed
        monkeypatch.setattr(onnx_exporter, "LARGEST", 10)
        with pytest.raises(PocketgraphError, match="without its constants"):
            pocketgraph.export(PRODUCT, tmp_path / "more.onnx", outputs=["y"])
        assert not (tmp_path / "more.onnx").exists()


def test_small_constants_need_no_other_file(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(graph_file(FIXTURES, "numbers"), tmp_path / "net.onnx", outputs=["y"], external_data=True)
    assert [pathlib.Path(name).name for name in made.files] == ["net.onnx"]


def test_graphs_in_graphs_without_end_are_refused() -> None:
    inner = b""
    for _ in range(3000):  # a node that holds a graph that holds a node …
        node = b"\x0a" + length(inner) + inner if inner else b""
        attribute = b"\x32" + length(node) + node
        inner = b"\x2a" + length(attribute) + attribute
    graph = b"\x0a" + length(inner) + inner
    with pytest.raises(FormatError, match="deep"):
        onnx_file.parse(b"\x08\x08\x3a" + length(graph) + graph)


def length(content: bytes) -> bytes:
    """The size of a message, as protobuf writes it before one."""
    size, found = len(content), b""
    while size > 127:
        size, found = size >> 7, found + bytes([size & 127 | 128])
    return found + bytes([size])


def test_identify_names_what_goes_in_and_comes_out(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = pocketgraph.identify(model)
    assert found.is_whole
    told = found.as_dict()["onnx"]["signatures"][""]
    assert told["inputs"]["x"]["dtype"] == "float"
    assert tuple(told["inputs"]["x"]["shape"]) == (4, 6)
    assert list(told["outputs"]) == ["y"]
    assert call("identify", str(model)) == 0
    assert "opset 17" in (printed := capsys.readouterr().out)
    assert "x float[4,6] -> y float[" in printed
    model.with_name("half.onnx").write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    assert pocketgraph.identify(model.with_name("half.onnx")).damage


def test_identify_tells_damage_behind_the_graph(model: pathlib.Path) -> None:
    damaged = model.with_name("behind.onnx")
    damaged.write_bytes(model.read_bytes() + b"\x42\x68\x0a\x02ai")  # an opset of 104 bytes, of which 4 are there
    assert "a field of 104 bytes begins where 4 are left" in (pocketgraph.identify(damaged).damage or "")


def test_times_of_nodes_whose_names_are_no_text(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    proto = onnx.load(model)
    proto.graph.node[0].name = "@@@@"
    model.with_name("bytes.onnx").write_bytes(proto.SerializeToString().replace(b"@@@@", b"\x80\xff@@"))
    assert call("benchmark_model", str(model.with_name("bytes.onnx")), "--max_num_runs=1") == 0
    assert "nodes observed" in capsys.readouterr().out
