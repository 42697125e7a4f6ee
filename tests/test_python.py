"""The package as a library: what its functions take, what they give back, and how that shows itself."""

from __future__ import annotations

import pathlib
import wave

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from colours import strongest_colour
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import to_bytes
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph.text_format import parse, print_graph
from support import model_dir, needs_shared

TRAINING = parse("""
    x = Placeholder(dtype=float, shape=[?,2])
    w = VariableV2(dtype=float, shape=[2,3])
    seen = Identity(w, T=float)
    y = MatMul(x, seen, T=float)
""")
WEIGHTS = np.float32([[1, 2, 3], [4, 5, 6]])


@pytest.fixture
def colours(tmp_path: pathlib.Path) -> pathlib.Path:
    pocketgraph.save(strongest_colour(), tmp_path / "colours.pb")
    return tmp_path / "colours.pb"


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        Image.new("RGB", (8, 8), colour).save(folder / f"{name}.png")
    (folder / "torn.png").write_bytes((folder / "red.png").read_bytes()[:-30])
    return folder


def test_dir_shows_the_public_names_and_each_is_there() -> None:
    assert dir(pocketgraph) == sorted(pocketgraph.__all__)
    for name in dir(pocketgraph):
        assert getattr(pocketgraph, name) is not None


def training(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    pocketgraph.save(TRAINING, folder / "graph.pbtxt")
    write_checkpoint(folder / "model.ckpt-1", {"w": pocketgraph.Tensor.from_numpy(WEIGHTS)})
    return folder / "graph.pbtxt"


def test_a_graph_remembers_where_its_variables_are(tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(training(tmp_path / "run"))
    frozen = pocketgraph.freeze(graph)
    assert to_bytes(frozen) == to_bytes(pocketgraph.freeze(tmp_path / "run"))
    with pocketgraph.Session(frozen) as session:
        np.testing.assert_array_equal(session.run("y", {"x": [[1, 1]]})[0], [[5, 7, 9]])
    changed = pocketgraph.transform(graph, "remove_nodes(op=Identity)", "x", "y")
    assert "w = Const" in print_graph(pocketgraph.freeze(changed))
    with pytest.raises(pocketgraph.PocketgraphError, match="cannot freeze a graph twice"):
        pocketgraph.freeze(frozen)


def test_a_graph_whose_files_are_gone_asks_for_a_checkpoint(tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(training(tmp_path / "run"))
    for file in (tmp_path / "run").glob("*"):
        file.unlink()
    with pytest.raises(pocketgraph.PocketgraphError, match="no checkpoint was given"):
        pocketgraph.freeze(graph, "y")


@needs_shared
@pytest.mark.parametrize("name", ["sm_mnist_conv", "sm_rust_regression", "sm_dotnet_types"])
def test_a_saved_model_is_frozen_alike_from_its_directory_and_as_a_graph(name: str) -> None:
    folder = next(model_dir(name).rglob("saved_model.pb")).parent
    assert to_bytes(pocketgraph.freeze(pocketgraph.load(folder))) == to_bytes(pocketgraph.freeze(folder))


def test_a_session_says_what_it_takes_and_gives(colours: pathlib.Path) -> None:
    session = pocketgraph.Session(colours, threads=1)
    (taken,) = session.inputs.values()
    (given,) = session.outputs.values()
    assert (taken.name, taken.dtype and taken.dtype.name, taken.shape) == ("picture", "float", (1, 4, 4, 3))
    assert (given.name, given.dtype and given.dtype.numpy, given.shape) == ("y", np.float32, (1, 3))
    assert session.signatures == {}
    assert repr(session) == "<Session of 6 nodes: picture float[1,4,4,3] -> y; LiteRT where it can, 1 thread>"
    session.close()
    assert repr(session) == "<Session, closed>"


@needs_shared
def test_a_session_says_what_its_signatures_take() -> None:
    folder = next(model_dir("sm_half_plus_two_cpu").rglob("saved_model.pb")).parent
    with pocketgraph.Session(folder) as session:
        entry = session.signatures["regress_x_to_y"]
        assert str(session.inputs["x:0"]) == "x:0 float[?,1]"
        assert entry.inputs["inputs"].dtype is not None
        assert entry.inputs["inputs"].dtype.name == "string"
        assert entry.outputs["outputs"].shape == (None, 1)


def test_pictures_are_labelled(colours: pathlib.Path, photos: pathlib.Path) -> None:
    said: list[str] = []
    found = pocketgraph.label_image(colours, photos, ["r", "g", "b", "?"], top=1, input_std=255, notify=said.append)
    assert [(pathlib.Path(one.picture).stem, [p.label for p in one.predictions]) for one in found] == [
        ("blue", ["b"]), ("red", ["r"]), ("torn", []),
    ]  # fmt: skip
    assert isinstance(found[2].problem, FormatError)
    assert said == ["the labels file has 4 lines and the output 3 scores: they may not belong together"]
    assert "<" in repr(found[0])
    with pytest.raises(FormatError):
        pocketgraph.label_image(colours, photos / "torn.png")


def test_models_are_compared_on_files_and_folders(colours: pathlib.Path, photos: pathlib.Path) -> None:
    graph = pocketgraph.load(colours)
    worse = graph.map_nodes(lambda node: node.replace(op="Identity") if node.name == "y" else node)
    assert pocketgraph.verify(colours, graph, {"picture": str(photos / "red.png")})
    assert pocketgraph.verify(colours, graph, photos / "red.png").runs == 1
    assert pocketgraph.verify(colours, graph, [{"picture": np.zeros((1, 4, 4, 3), np.float32)}] * 3).runs == 3
    (photos / "torn.png").unlink()
    report = pocketgraph.verify(colours, worse, data=photos, input_std=255)
    assert not report
    assert report.runs == 2
    assert repr(report).startswith("<Report: 1 of 1 output differs, within 0.0001 of the largest magnitude on 2 sets")
    assert pocketgraph.verify(graph, engines=True)
    for wrong in ({}, {"b": graph, "engines": True}, {"b": graph, "data": photos, "runs": 3}):
        with pytest.raises(UsageError):
            pocketgraph.verify(graph, **wrong)  # type: ignore[arg-type]


def test_a_model_is_timed(colours: pathlib.Path, photos: pathlib.Path) -> None:
    said: list[str] = []
    result = pocketgraph.benchmark(
        colours, photos / "red.png", max_runs=3, threads=1, flops=True, programs=["reference"], progress=said.append
    )
    assert (result.plain.count, result.warmup.count, len(result.latencies)) == (3, 1, 3)
    assert result.flops is not None
    assert result.flops.by_op["MatMul"] == 18
    assert [(peer.name, peer.problem) for peer in result.peers] == [("reference", "")]
    assert any("Running benchmark" in line for line in said)
    assert repr(result).startswith("<Benchmark: median ")
    with pytest.raises(UsageError, match="there is no program 'caffe'"):
        pocketgraph.benchmark(colours, programs=["caffe"])


def test_open_sizes_of_a_timed_model_are_given() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?,?])\ny = Exp(x, T=float)")
    result = pocketgraph.benchmark(graph, shapes={"x": (2, 5)}, max_runs=1)
    assert result.last_trace is not None
    assert result.last_trace.nodes[-1].outputs[0][1] == (2, 5)


def test_a_plan_is_checked(colours: pathlib.Path, photos: pathlib.Path) -> None:
    by_shape = pocketgraph.plan(colours, {"picture": (1, 4, 4, 3)})
    assert by_shape == pocketgraph.plan(colours, {"picture": photos / "red.png"}) == pocketgraph.plan(colours)
    assert repr(by_shape).startswith("y:0 from picture:0 float[1, 4, 4, 3]")
    assert {verdict for _, verdict in pocketgraph.plan(colours, check=True).checked} == {"right"}


def test_files_are_identified(colours: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = pocketgraph.identify(colours)
    assert (found.kind.name, found.bytes, found.graphs[0].nodes) == ("GRAPH_DEF", colours.stat().st_size, 6)
    assert found.is_whole
    assert "6 nodes" in repr(found)
    assert not pocketgraph.identify(tmp_path / "none").is_whole


def test_texts_and_recordings_are_fed(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        text = Placeholder(dtype=string, shape=[])
        sizes = StringLength(text)
    """)
    (tmp_path / "hello.txt").write_bytes(b"hello!")
    assert pocketgraph.verify(graph, graph, {"text": tmp_path / "hello.txt"})
    assert pocketgraph.verify(graph, graph, {"text": "hello.txt is a text here"})
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(3200))
    heard = parse("samples = Placeholder(dtype=float, shape=[1600,1])\nloud = Abs(samples, T=float)")
    assert pocketgraph.verify(heard, heard, {"samples": tmp_path / "tone.wav"})


def test_what_is_exported_and_shipped_shows_itself(colours: pathlib.Path, tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(colours, tmp_path / "colours.tflite")
    assert repr(made).startswith(f"<Exported {tmp_path / 'colours.tflite'}: tflite, ")
    shipped = pocketgraph.ship(colours, tmp_path / "out")
    assert repr(shipped).startswith(f"<Shipment {tmp_path / 'out'}: ")
    assert (tmp_path / "out" / "model.tflite").exists()
