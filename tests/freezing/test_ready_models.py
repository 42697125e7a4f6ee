"""Commands that run a model take trainings and SavedModels too: these are frozen in memory, and that is said."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.datasets.signature_choice import refuse_several_signatures
from pocketgraph.errors import FormatError, FreezeError, UsageError, option
from pocketgraph.formats import save
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.meta_graph_writer import save_saved_model
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.ready_models import for_session, inner_results, read_model, ready
from pocketgraph.graph import Graph, Signature, Tensor, const
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.inspect.identify import freeze_command
from support import ROOT, assert_text

DIGITS = ROOT / "examples" / "digits"
BATCH_NORMS = pathlib.Path(__file__).parents[1] / "fixtures" / "freeze"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    held = np.load(DIGITS / "data" / "held_out.npz")
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, image=held["images"][:20].astype(np.float32).reshape(-1, 8, 8, 1) / 255)
    return path


@pytest.mark.parametrize("command", ["summarize", "plan", "benchmark_model", "verify", "evaluate", "quantize"])
def test_a_training_directory_is_a_model(
    command: str, digits: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = DIGITS / "training"
    frozen = tmp_path / "frozen.pb"
    save(freeze(training, repair=True), frozen)
    further: dict[str, list[Any]] = {
        "benchmark_model": ["--max_num_runs=2"],
        "verify": [frozen],
        "evaluate": [frozen, f"--data={digits}"],
        "quantize": ["--mode=dynamic", f"--data={digits}", f"--output={tmp_path / 'small.tflite'}"],
    }
    assert call(command, training, *further.get(command, ())) == 0
    assert "frozen in memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["view", "--output=page.html"],
        ["view", "--output=page.html", "--measure"],
        ["view", "--output=graph.svg"],
        ["summarize_graph"],
        ["graph_to_dot", "--dot_output=graph.dot"],
        ["model_explorer", "--output=graph.json"],
        ["print_required_ops"],
        ["transform_graph", "--out_graph=small.pb", "--outputs=probabilities", "--transforms=mobile"],
        ["optimize_for_inference", "--output=small.pb", "--input_names=image", "--output_names=probabilities"],
        ["strip_unused", "--output_graph=small.pb", "--input_node_names=image", "--output_node_names=probabilities"],
        ["import_pb_to_tensorboard", "--log_dir=logs"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_a_training_directory_is_looked_at_and_rewritten_with_its_values(
    command: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *flags = command
    named = {"import_pb_to_tensorboard": "--model_dir=", "optimize_for_inference": "--input=",
             "strip_unused": "--input_graph="}  # fmt: skip
    assert call(name, f"{named.get(name, '')}{DIGITS / 'training'}", *flags) == 0
    assert "frozen in memory" in capsys.readouterr().err
    if (tmp_path / "small.pb").exists():
        assert not any(node.op.startswith("Var") for node in pocketgraph.load(tmp_path / "small.pb"))


def test_a_saved_model_is_rewritten_with_its_values(tmp_path: pathlib.Path) -> None:
    folder = ROOT / "tests" / "fixtures" / "saved_models" / "on_device"
    assert call("transform_graph", folder, f"--out_graph={tmp_path / 'small.pb'}", "--transforms=mobile") == 0
    assert not any(node.op.startswith("Var") for node in pocketgraph.load(tmp_path / "small.pb"))


def test_what_is_frozen_in_memory_is_what_the_command_makes(tmp_path: pathlib.Path) -> None:
    found = ready(DIGITS / "training")
    words = freeze_command(str(DIGITS / "training"), found.freezing, str(tmp_path / "frozen.pb")).split()
    assert call(*words[1:]) == 0
    save(found.graph, tmp_path / "in_memory.pb")
    assert (tmp_path / "in_memory.pb").read_bytes() == (tmp_path / "frozen.pb").read_bytes()


def test_a_graph_whose_variables_lie_beside_it_is_frozen(tmp_path: pathlib.Path) -> None:
    shutil.copytree(DIGITS / "training", tmp_path / "training")
    graph = read_model(tmp_path / "training" / "graph.pbtxt")
    assert not any(node.op.startswith("Var") for node in graph)


def test_a_frozen_file_beside_a_checkpoint_is_read_as_it_is(tmp_path: pathlib.Path) -> None:
    shutil.copytree(DIGITS / "training", tmp_path / "training")
    save(parse("x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)"), tmp_path / "training" / "net.pb")
    path = tmp_path / "training" / "net.pb"
    assert for_session(path) == str(path)
    assert ready(path).freezing is None


def with_records(*keys: str) -> Graph:
    """A model whose main signature takes tf.Example; of the others each takes the numbers."""
    nodes = parse("""
        examples = Placeholder(dtype=string, shape=[?])
        x = Placeholder(dtype=float, shape=[?,3])
        parsed = ParseExampleV2(examples, names, none, dense, none, preset, num_sparse=0, sparse_types=[],
            ragged_value_types=[], ragged_split_types=[], Tdense=[float], dense_shapes=[[3]])
        of_records = MatMul(parsed, w, T=float)
        of_numbers = MatMul(x, w, T=float)
    """)
    w = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    nothing = np.array([], object)
    constants = [const("w", w), const("names", nothing), const("none", nothing),
                 const("dense", np.array([b"x"], object)), const("preset", np.zeros(0, np.float32))]  # fmt: skip
    signatures = {"serving_default": Signature({"examples": "examples:0"}, {"y": "of_records:0"}, "")}
    signatures |= {key: Signature({"x": "x:0"}, {"y": "of_numbers:0"}, "") for key in keys}
    return Graph([*constants, *nodes], signatures=signatures)


def test_a_signature_that_takes_numbers_stands_in_for_one_that_takes_records(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(with_records("predict"), tmp_path / "model", form="saved_model")
    told: list[str] = []
    found = ready(tmp_path / "model")
    read_model(tmp_path / "model", notify=told.append)
    assert found.graph.outputs == ("of_numbers:0",)
    assert "'predict' is taken" in told[0]
    own = read_model(tmp_path / "model", signature="serving_default")
    assert own.outputs == ("of_records:0",)


def test_a_signature_can_be_chosen(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    pocketgraph.save(with_records("predict"), model, form="saved_model")
    for command in ("summarize", "plan", "benchmark_model"):
        assert call(command, model, "--signature=predict") == 0
        assert "of_numbers" in capsys.readouterr().out
    own_file = model / "saved_model.pb"
    assert call("verify", own_file, model, "--signature=predict") == 0
    np.savez(tmp_path / "data.npz", x=np.ones((2, 3), np.float32))
    capsys.readouterr()
    assert call("evaluate", own_file, "--data", tmp_path / "data.npz", "--signature=predict") == 0
    assert "the signature" not in capsys.readouterr().err
    pocketgraph.save(pocketgraph.freeze(model, signature="predict"), tmp_path / "net.pb")
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "--signature=predict") == 2
    assert "no model here has signatures, as a SavedModel has" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no signature 'other'"):
        read_model(model, signature="other")


def with_signatures(**kind: str) -> Graph:
    """A graph that minimize and add_signatures made, whose variable has its value by ``init`` alone."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1.0, 2.0], [3.0, 5.0]])
        y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    """)
    graph = pocketgraph.add_loss(pocketgraph.trainable(graph, ["w"], **kind), "y")
    return pocketgraph.add_signatures(pocketgraph.minimize(graph, graph.outputs[0]), {"scores": "y"})


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_values_that_the_loader_assigns_need_no_checkpoint(
    kind: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(with_signatures(kind=kind), tmp_path / "model", form="saved_model")
    frozen = freeze(tmp_path / "model", signature="infer")
    in_memory = freeze(pocketgraph.load(tmp_path / "model"), "y:0")
    assert_text(in_memory, print_graph(frozen))
    with pocketgraph.Session(frozen) as session:
        [y] = session.run(["y:0"], {"x": np.float32([[1, 10]])})
    assert y.tolist() == [[31.0, 52.0]]
    assert call("summarize", tmp_path / "model") == 0
    said = capsys.readouterr().out
    assert "--signature=infer" in said
    assert "are not here" not in said


def test_what_the_loader_assigns_after_restoring_wins_but_over_a_named_checkpoint(tmp_path: pathlib.Path) -> None:
    """As in TensorFlow, which restores ``variables`` first: exports so fill variables that no saver saves."""
    save(with_signatures(), tmp_path / "model", form="saved_model")
    (tmp_path / "model" / "variables").mkdir(exist_ok=True)
    other = {"w": Tensor.from_numpy(np.zeros([2, 2], np.float32))}
    for prefix in (tmp_path / "model" / "variables" / "variables", tmp_path / "trained"):
        write_checkpoint(prefix, other)
    own = freeze(tmp_path / "model", signature="infer")
    named = freeze(tmp_path / "model", checkpoint=tmp_path / "trained", signature="infer")
    for frozen, expected in ((own, [[31.0, 52.0]]), (named, [[0.0, 0.0]])):
        with pocketgraph.Session(frozen) as session:
            assert session.run(["y:0"], {"x": np.float32([[1, 10]])})[0].tolist() == expected


def test_a_read_that_is_not_followed_is_told_where_a_model_is_frozen_in_memory(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VarHandleOp(dtype=float, shape=[2], shared_name="v")
        start = Const(float [1.0, 2.0])
        set = AssignVariableOp(v, start, dtype=float)
        init = NoOp(^set)
        rate = Const(float 1.0)
        step = ResourceApplyGradientDescent(v, rate, x, T=float)
        now = ReadVariableOp(v, ^step, dtype=float)
        y = Mul(now, x, T=float)
    """)
    signature = Signature({"x": "x:0"}, {"y": "y:0"})
    save_saved_model(graph.replace(signatures={"serving_default": signature}), tmp_path / "model")
    told = "what 'now' read of 'v' after 'step' is not followed; the stored value is taken"
    assert told in ready(tmp_path / "model").notes
    assert told in freeze_with_report(tmp_path / "model").warnings


def test_the_signature_that_does_not_train_is_taken(tmp_path: pathlib.Path) -> None:
    save(with_signatures(), tmp_path / "model", form="saved_model")
    found = ready(tmp_path / "model")
    assert found.freezing is not None
    assert found.freezing.signature == "infer"
    assert found.graph.outputs == ("y:0",)
    assert found.notes[0].startswith("the signature 'infer' is taken, as the others train, save or restore: restore,")
    of_tensorflow = ready(ROOT / "tests" / "fixtures" / "saved_models" / "on_device")
    assert of_tensorflow.freezing is not None
    assert of_tensorflow.freezing.signature == "infer"


def test_signatures_that_are_alike_are_one(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As those of TensorFlow Hub's first modules, which have "default" beside what they are for."""
    of_hub = Signature({"images": "x:0"}, {"default": "y:0"})
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        y = Relu(x, T=float)
    """)
    both = {"default": of_hub, "image_feature_vector": of_hub}
    save(graph.replace(signatures=both), tmp_path / "hub", form="saved_model")
    assert ready(tmp_path / "hub").graph.outputs == ("y:0",)
    assert call("export", tmp_path / "hub", "-o", tmp_path / "hub.tflite") == 0
    assert "signature" not in capsys.readouterr().err
    other = Signature({"images": "x:0"}, {"default": "x:0"})
    refuse_several_signatures(graph.replace(signatures=both), None)
    with pytest.raises(UsageError, match="the signatures default, image_feature_vector, other"):
        refuse_several_signatures(graph.replace(signatures={**both, "other": other}), None)


def test_nodes_inside_of_a_saved_models_functions_are_outputs() -> None:
    folder = ROOT / "tests" / "fixtures" / "saved_models" / "augmentation"
    stored, whole = pocketgraph.load(folder), ready(folder, signature="serving_default").graph
    inner = next(node.name for node in whole if node.op == "Conv2D")
    assert inner not in stored
    found = ready(folder, [inner], signature="serving_default")
    assert found.graph.outputs == (inner,)
    with pocketgraph.Session(found.graph) as part, pocketgraph.Session(whole) as session:
        fed = {f"{node.name}:0": np.ones((1, 12, 12, 3), np.float32) for node in whole if node.op == "Placeholder"}
        np.testing.assert_array_equal(part.run([f"{inner}:0"], fed)[0], session.run([f"{inner}:0"], fed)[0])
    with pytest.raises(FreezeError, match="nothing_like_it is not in graph"):
        ready(folder, ["nothing_like_it"])


def test_a_vector_in_front_of_the_classes_of_a_training_is_named() -> None:
    graph = parse("""
        image = Placeholder(dtype=float, shape=[?,8,8,3])
        w = Const(float[3,3,3,4] 0.5)
        conv = Conv2D(image, w, T=float, strides=[1,1,1,1], padding="SAME")
        places = Const(int32[2] [1, 2])
        mean = Mean(conv, places, T=float, Tidx=int32)
        squares = L2Loss(mean, T=float)
        embeddings = RealDiv(mean, squares, T=float)
        v = Const(float[4,9] 0.5)
        logits = MatMul(embeddings, v, T=float)
    """)
    [note] = inner_results(graph.replace(outputs=["logits"]))
    assert f"{option('outputs')}=embeddings takes that" in note
    assert inner_results(graph.replace(outputs=["embeddings"])) == ()
    words = parse("""
        ids = Placeholder(dtype=int32, shape=[?,8])
        table = Const(float[9,4] 0.5)
        axis = Const(int32 0)
        embedding = GatherV2(table, ids, axis, Tparams=float, Tindices=int32, Taxis=int32)
        y = Tanh(embedding, T=float)
    """)
    assert inner_results(words.replace(outputs=["y"])) == ()


@pytest.mark.parametrize("repair", [False, True])
def test_a_frozen_graph_beside_a_checkpoint_is_not_taken_for_its_own(tmp_path: pathlib.Path, repair: bool) -> None:
    from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint

    write_checkpoint(tmp_path / "model.ckpt-7", {"w": const("w", np.ones(2, np.float32)).tensor})
    save(parse("x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)"), tmp_path / "other.pb")
    with pytest.raises(FreezeError, match=r"other\.pb: the graph beside this checkpoint has no variables.*; say where"):
        freeze(tmp_path / "model.ckpt-7", repair=repair)
    with pytest.raises(FreezeError, match="another one's"):
        ready(tmp_path / "model.ckpt-7.index")
    assert list(ready(tmp_path).graph.nodes) == ["x", "y"]


@pytest.mark.parametrize("command", ["summarize", "ship", "verify", "quantize"])
def test_a_training_whose_newest_checkpoint_is_away_says_so(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
    (tmp_path / "model.ckpt-7.index").write_bytes(b"")
    place = ["-o", tmp_path / "out.tflite"]
    further = {"verify": [tmp_path], "ship": place, "quantize": [*place, "--mode=dynamic"]}.get(command, [])
    assert call(command, tmp_path, *further) != 0
    assert "says that the latest checkpoint is model.ckpt-9, which is not here" in capsys.readouterr().err


def test_inputs_of_a_signature_that_nothing_needs_are_told_of(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        extra = Placeholder(dtype=float, shape=[?,3])
        rate = Placeholder(dtype=float, shape=[])
        y = Mul(x, rate, T=float)
    """)
    inputs = {"a": "x:0", "b": "extra:0", "rate": "rate:0"}
    graph = graph.replace(signatures={"serving_default": Signature(inputs, {"y": "y:0"})})
    save_saved_model(graph, tmp_path / "net")
    (told,) = freeze_with_report(tmp_path / "net").warnings
    assert told == "the signature's 'b' is no input of what is made: no output needs it"
    frozen = freeze_with_report(tmp_path / "net", bind={"rate": 2.0})  # who binds knows
    assert frozen.warnings == (told,)
    assert list(frozen.graph.signatures["serving_default"].inputs) == ["a"]


def test_an_input_that_was_repaired_is_not_told_of_twice(tmp_path: pathlib.Path) -> None:
    """Nor is one that only the line of another repair names."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        is_training = Placeholder(dtype=bool, shape=[])
        noise = Placeholder(dtype=float, shape=[])
        scores = SelectV2(is_training, noise, x, T=float)
    """)
    inputs = {"x": "x:0", "training": "is_training:0", "n": "noise:0"}
    graph = graph.replace(signatures={"serving_default": Signature(inputs, {"y": "scores:0"})})
    save_saved_model(graph, tmp_path / "net")
    frozen = freeze_with_report(tmp_path / "net", repair=True)
    assert "'is_training' is false from now on" in frozen.repaired
    assert not any("training" in warning for warning in frozen.warnings)


def test_a_checkpoint_without_a_name_is_called_that(tmp_path: pathlib.Path) -> None:
    for file in (DIGITS / "training").iterdir():
        if "model.ckpt" in file.name:
            shutil.copy(file, tmp_path / file.name[file.name.index(".", len("model.ckpt")) :])
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: ""\n')
    (note, *_) = ready(tmp_path).notes
    assert note.endswith("variables of the checkpoint became constants")


def test_the_version_in_an_export_is_taken(tmp_path: pathlib.Path) -> None:
    """Estimators export into folders that are named by the time, and what follows is typed for the one around them."""
    of_tests = ROOT / "tests" / "fixtures" / "saved_models" / "on_device"
    shutil.copytree(of_tests, tmp_path / "export" / "1700000000")
    assert print_graph(read_model(tmp_path / "export")) == print_graph(read_model(of_tests))
    assert pocketgraph.load(tmp_path / "export").signatures == pocketgraph.load(of_tests).signatures
    assert pocketgraph.identify(tmp_path).path == str(tmp_path / "export" / "1700000000")
    assert print_graph(read_model(tmp_path)) == print_graph(read_model(of_tests))
    assert pocketgraph.load(tmp_path).signatures == pocketgraph.load(of_tests).signatures
    shutil.copytree(of_tests, tmp_path / "export" / "1700000001")
    with pytest.raises(FormatError, match=r"1700000001 \(the newest\)"):
        read_model(tmp_path / "export")
