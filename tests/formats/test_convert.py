"""Forms into one another: what goes round comes back equal, and what would lose a model is refused."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.cli.change import convert as convert_command
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.exporting import export
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.conversion import TARGET_FORMS, convert
from pocketgraph.formats.protos import message
from pocketgraph.graph import DType, Graph, Node, Shape, Signature, Tensor, Versions, const
from support import golden, model_dir, needs_shared, shared

FLOAT = DType.named("float")
PRODUCT = {"T": FLOAT, "transpose_a": False, "transpose_b": False}
GRAPH = Graph(
    [
        Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": Shape((None, 64))}),
        const("w", np.arange(64 * 64, dtype=np.float32).reshape(64, 64)),
        Node("y", "MatMul", ["x", "w"], PRODUCT),
    ],
    versions=Versions(134, 12),
)
CHECKPOINTS = pathlib.Path(__file__).parent.parent / "fixtures" / "checkpoints"
SAVED_MODELS = CHECKPOINTS.parent / "saved_models"


def test_the_command_offers_every_form() -> None:
    assert convert_command.TARGET_FORMS == TARGET_FORMS


def graph_def(graph: Graph) -> object:
    return message("tensorflow.GraphDef").FromString(formats.to_bytes(graph))


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".mmap", ".meta", ""])
@pytest.mark.parametrize("back", [".pb", ".pbtxt", ".mmap", ".meta", ""])
def test_there_and_back_loses_nothing(tmp_path: pathlib.Path, suffix: str, back: str) -> None:
    formats.save(GRAPH, tmp_path / "in.pb")
    convert(tmp_path / "in.pb", tmp_path / f"there{suffix}")
    convert(tmp_path / f"there{suffix}", tmp_path / f"back{back}")
    assert graph_def(formats.load(tmp_path / f"back{back}")) == graph_def(GRAPH)


def test_a_saved_model_has_the_signatures(tmp_path: pathlib.Path) -> None:
    signatures = {
        "serving_default": Signature({"in": "x:0"}, {"out": "y:0"}, "tensorflow/serving/predict"),
        "weights": Signature({}, {"w": "w:0"}, "tensorflow/serving/predict"),
    }
    formats.save(GRAPH.replace(signatures=signatures), tmp_path / "sm", form="saved_model")
    again = formats.load(tmp_path / "sm")
    assert again.signatures == signatures
    assert (again.inputs, again.outputs) == (("x:0",), ("y:0",))
    made = message("tensorflow.SavedModel").FromString((tmp_path / "sm" / "saved_model.pb").read_bytes())
    info = made.meta_graphs[0].signature_def["serving_default"].inputs["in"]
    assert (info.name, info.dtype, [d.size for d in info.tensor_shape.dim]) == ("x:0", 1, [-1, 64])
    assert list(made.meta_graphs[0].meta_info_def.tags) == ["serve"]


def test_a_signature_is_made_of_inputs_and_outputs(tmp_path: pathlib.Path) -> None:
    formats.save(GRAPH.replace(inputs=["x"], outputs=["y"]), tmp_path / "sm", form="saved_model")
    assert formats.load(tmp_path / "sm").signatures["serving_default"] == Signature(
        {"x": "x:0"}, {"y": "y:0"}, "tensorflow/serving/predict"
    )


def test_what_is_left_out_is_said(tmp_path: pathlib.Path) -> None:
    formats.save(GRAPH, tmp_path / "sm", form="saved_model")
    assert convert(tmp_path / "sm", tmp_path / "out.pb").left_out == ("the signatures serving_default",)
    assert convert(tmp_path / "out.pb", tmp_path / "out.pbtxt").left_out == ()


def test_v1_becomes_v2(tmp_path: pathlib.Path) -> None:
    done = convert(CHECKPOINTS / "v1" / "types.ckpt", tmp_path / "new.ckpt-5")
    assert done.form == "checkpoint"
    before, after = formats.open_checkpoint(CHECKPOINTS / "v1" / "types.ckpt"), formats.open_checkpoint(tmp_path)
    assert set(after) == set(before)
    assert all(after[name].same_values(tensor) for name, tensor in before.items())


def test_values_that_would_be_lost_are_not(tmp_path: pathlib.Path) -> None:
    variable = Node("v", "VariableV2", attrs={"dtype": FLOAT, "shape": Shape((2,))})
    graph = Graph([variable, Node("out", "Identity", ["v"], {"T": FLOAT})], outputs=["out"])
    formats.save(graph, tmp_path / "g.pb")
    with pytest.raises(FormatError, match="the graph has 1 variables, such as 'v', whose values would be lost; freeze"):
        convert(tmp_path / "g.pb", tmp_path / "sm")
    assert not (tmp_path / "sm").exists()
    meta = message("tensorflow.MetaGraphDef")()
    meta.graph_def.ParseFromString(formats.to_bytes(graph))
    (tmp_path / "with_variables").mkdir()
    saved = message("tensorflow.SavedModel")(saved_model_schema_version=1)
    saved.meta_graphs.append(meta)
    (tmp_path / "with_variables" / "saved_model.pb").write_bytes(saved.SerializeToString())
    with pytest.raises(FormatError, match="values of the SavedModel's 1 variables would be lost; freeze it first"):
        convert(tmp_path / "with_variables", tmp_path / "out.pb")
    assert not (tmp_path / "out.pb").exists()


@pytest.mark.parametrize("below", ["1700000000", "export/best/1700000000"])
def test_a_folder_around_a_model_is_told_and_refused_as_the_model(below: str, tmp_path: pathlib.Path) -> None:
    around, target = tmp_path / "around", tmp_path / "out.pb"
    shutil.copytree(SAVED_MODELS / "tables", around / below)
    with pytest.raises(FormatError, match=r"the SavedModel.s \d+ variables would be lost; freeze it first") as caught:
        convert(around, target)
    assert str(caught.value).startswith(str(around / below))
    assert not target.exists()
    shutil.rmtree(around)
    formats.save(GRAPH, around / below, form="saved_model")
    assert convert(around, target) == convert(around / below, tmp_path / "of_model.pb")
    assert target.read_bytes() == (tmp_path / "of_model.pb").read_bytes()


def test_graphs_and_checkpoints_are_not_each_other(tmp_path: pathlib.Path) -> None:
    write_checkpoint(tmp_path / "c", {"v": Tensor.from_numpy(np.float32(1))})
    with pytest.raises(
        FormatError,
        match=r"variables only, no graph.*cannot become a graph; freeze_graph takes it as input_checkpoint=",
    ):
        convert(tmp_path / "c", tmp_path / "out.pb")
    formats.save(GRAPH, tmp_path / "g.pb")
    with pytest.raises(FormatError, match="cannot become a checkpoint: constants are not variables"):
        convert(tmp_path / "g.pb", tmp_path / "out", "checkpoint")


@pytest.mark.parametrize(("target", "to", "what"), [("a.xyz", "", "says no form"), ("a", "jpeg", "no form 'jpeg'")])
def test_wrong_calls(tmp_path: pathlib.Path, target: str, to: str, what: str) -> None:
    formats.save(GRAPH, tmp_path / "g.pb")
    with pytest.raises(UsageError, match=what):
        convert(tmp_path / "g.pb", tmp_path / target, to)
    with pytest.raises(UsageError, match="no form"):
        formats.save(GRAPH, tmp_path / "x", form="jpeg")


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(UsageError, match="there is something here already"):
        formats.save(GRAPH, tmp_path, form="saved_model")
    with pytest.raises(FormatError, match="there is no such file"):
        convert(tmp_path / "gone.pb", tmp_path / "out.pb")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@needs_shared
@pytest.mark.parametrize("name", ["vibcat", "dotnet_matmul", "mtcnn_blaueck"])
def test_real_models_run_alike_in_every_form(name: str, tmp_path: pathlib.Path) -> None:
    from pocketgraph import Session

    path = next(model_dir(name).glob("*.pb"))
    feeds, wanted = golden(model_dir(name)) if (model_dir(name) / "golden.npz").exists() else ({}, {})
    assert shared()
    results = []
    for form in ("graphdef", "memmapped"):
        convert(path, tmp_path / form, form, min_size=1)
        with Session(formats.load(tmp_path / form), engine="reference") as session:
            results.append(session.run(list(wanted), feeds) if wanted else [])
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("form", ["saved_model", "meta", "memmapped", "graphdef", "text"])
def test_a_finished_file_has_no_other_form(form: str, tmp_path: pathlib.Path) -> None:
    export(GRAPH, tmp_path / "net.tflite", shapes={"x": (1, 64)})
    with pytest.raises(FormatError, match="the operators of a LiteRT file have no GraphDef form; give the graph"):
        convert(tmp_path / "net.tflite", tmp_path / "other", form)
    assert [path.name for path in tmp_path.iterdir()] == ["net.tflite"]
