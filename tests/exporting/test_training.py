"""Training graphs as LiteRT files: in LiteRT's interpreter alone they learn what TensorFlow's learn."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.cli.main import main
from pocketgraph.errors import GraphError, PocketgraphError, UsageError
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.training.training_models import training_model
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile
from support import ROOT
from training_graph import FIXTURES, GOLDEN, NET, OPTIMIZERS, STEPS, WEIGHTS, frozen, values

DIGITS = ROOT / "examples" / "digits"
FOLD = """
    strip_unused_nodes(type=float, shape="?,8,8,1") remove_nodes(op=Identity, op=CheckNumerics)
    fold_constants(ignore_errors=true) fold_batch_norms fold_old_batch_norms
"""
SIZES = {"train/x": (6, 5, 5, 2), "train/labels": (6,)}


def net(kind: str = "reference") -> Graph:
    return pocketgraph.add_loss(pocketgraph.trainable(frozen(), kind=kind), "logits")


def training(optimizer: str = "sgd", rate: float = 0.1, kind: str = "reference", **parameters: Any) -> Graph:
    graph = net(kind)
    graph = pocketgraph.minimize(graph, graph.outputs[0], optimizer, learning_rate=rate, **parameters)
    return pocketgraph.add_signatures(graph, {"scores": "logits"})


@pytest.mark.parametrize("kind", ["reference", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_are_tensorflows(name: str, kind: str, tmp_path: pathlib.Path) -> None:
    _, rate, _, parameters = OPTIMIZERS[name]
    graph = training("momentum" if name == "nesterov" else name, rate, kind, **parameters)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", shapes=SIZES)
    assert [check.entry for check in made.checks if check.passed] == ["infer", "train", "save", "restore"]
    file, given = ModelFile(tmp_path / "net.tflite"), values()
    batch = {"x": given["x"], "labels": given["labels"]}
    losses = [file.run("train", batch)["loss"] for _ in range(STEPS)]
    np.testing.assert_allclose(losses, GOLDEN[f"{name}/losses"], rtol=1e-4)
    saved = file.run("save", {})
    for weight in WEIGHTS:
        want = GOLDEN[f"{name}/{weight}"]
        np.testing.assert_allclose(saved[weight], want, rtol=0, atol=1e-4 * np.abs(want).max())
    again = ModelFile(tmp_path / "net.tflite")
    again.run("restore", saved)
    for count in (1, 4):  # the batch of infer stays open
        rows = {"x": given["x"][:count]}
        np.testing.assert_array_equal(again.run("infer", rows)["scores"], file.run("infer", rows)["scores"])
    assert again.run("train", batch) == file.run("train", batch)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_twenty_steps_of_the_digits_are_those_of_our_session(optimizer: str, tmp_path: pathlib.Path) -> None:
    frozen = pocketgraph.freeze(DIGITS / "training", outputs=["probabilities"])
    graph = pocketgraph.transform(frozen, FOLD, inputs=["image"], outputs=["probabilities"])
    graph = pocketgraph.trainable(graph)
    graph = pocketgraph.add_loss(graph, "serve/logits/BiasAdd")
    graph = pocketgraph.add_regularization(graph, graph.outputs[0], l2=1e-3)
    (loss,) = graph.outputs
    graph = pocketgraph.add_schedule(graph, "exponential", 0.01, decay_steps=5, decay_rate=0.7)
    graph = pocketgraph.minimize(graph, loss, optimizer, learning_rate="learning_rate")
    graph = pocketgraph.add_signatures(graph, "probabilities")
    pocketgraph.save(graph, tmp_path / "training", form="saved_model")
    sizes = {"train/image": (32, 8, 8, 1), "train/labels": (32,)}
    pocketgraph.export(tmp_path / "training", tmp_path / "digits.tflite", shapes=sizes)
    with np.load(DIGITS / "data" / "held_out.npz") as data:
        images, labels = data["images"][..., None] / np.float32(255), data["labels"]
    file = ModelFile(tmp_path / "digits.tflite")
    with pocketgraph.Session(tmp_path / "training") as session:
        for step in range(20):
            rows = slice(16 * (step % 10), 16 * (step % 10) + 32)
            batch = {"image": images[rows], "labels": labels[rows]}
            want = session.run_signature(batch, "train")["loss"]
            np.testing.assert_allclose(file.run("train", batch)["loss"], want, rtol=1e-4)
        want = session.run_signature({"image": images}, "infer")["probabilities"]
    np.testing.assert_allclose(file.run("infer", {"image": images})["probabilities"], want, atol=1e-4)


def exit_code(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code


def test_a_saved_model_of_tensorflow_2_that_trains(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder, path = FIXTURES / "saved_models" / "conv_training", tmp_path / "net.tflite"
    with np.load(folder.with_suffix(".npz")) as data:
        golden = {key: data[key] for key in data.files}
    command = ["export", str(folder), "-o", str(path), "--signatures=train,infer,save,restore"]
    assert exit_code([*command, "--input_shape=train/x:16,8,8", "--input_shape=train/y:16,5"]) == 0
    file = ModelFile(path)
    losses = [file.run("train", {"x": golden["x"], "y": golden["y"]})["loss"] for _ in golden["losses"]]
    np.testing.assert_allclose(losses, golden["losses"], rtol=1e-4)
    np.testing.assert_allclose(file.run("infer", {"x": golden["x"]})["output"], golden["after"], atol=1e-4)
    names = ["conv/bias:0", "conv/kernel:0", "dense/bias:0", "dense/kernel:0"]
    assert list(file.signatures["save"].outputs) == list(file.signatures["restore"].inputs) == names
    capfd.readouterr()
    assert (
        exit_code(["export", str(folder), "-o", str(tmp_path / "plain.tflite")]) == 0
    )  # unasked, only what does not train
    assert "the signature 'infer' is taken, as the others train, save or restore" in capfd.readouterr().err
    assert list(ModelFile(tmp_path / "plain.tflite").signatures) == ["infer"]


@pytest.mark.parametrize("place", ["", "export/1700000000", "export/1700000000/saved_model.pb"])
def test_a_path_that_means_a_saved_model_trains_as_its_folder_does(place: str, tmp_path: pathlib.Path) -> None:
    folder = FIXTURES / "saved_models" / "conv_training"
    shutil.copytree(folder, tmp_path / "export" / "1700000000")
    expected, found = (training_model(path, ["train"]) for path in (folder, tmp_path / place))
    assert expected is not None
    assert found is not None
    assert found.functions == expected.functions
    assert [*found.variables] == [*expected.variables]
    for name, value in expected.variables.items():
        np.testing.assert_array_equal(found.variables[name], value)


def test_features_and_triplets(tmp_path: pathlib.Path) -> None:
    """The net below the features runs once a sample; the loss is of other operators."""
    given = values()
    weights = [const(name, given[name]) for name in WEIGHTS]
    graph = pocketgraph.trainable(parse(NET).replace([*weights, *parse(NET)]), ["weights", "offset"])
    graph = pocketgraph.add_loss(graph, "logits", "triplet")
    graph = pocketgraph.minimize(graph, graph.outputs[0], "momentum", learning_rate=0.05)
    graph = pocketgraph.add_signatures(graph, "logits", features="flat")
    pocketgraph.export(graph, tmp_path / "net.tflite", shapes={"train/flat": (6, 36), "train/labels": (6,)})
    file = ModelFile(tmp_path / "net.tflite")
    flat = file.run("load", {"x": given["x"]})["flat"]
    with pocketgraph.Session(graph) as session:
        session.run(["init"])
        want = pocketgraph.train(session, [{"x": given["x"], "labels": given["labels"]}] * 9)
    got = [file.run("train", {"flat": flat, "labels": given["labels"]})["loss"] for _ in range(9)]
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_a_session_of_the_file_trains_it(tmp_path: pathlib.Path) -> None:
    pocketgraph.export(training(), tmp_path / "net.tflite", shapes=SIZES)
    given = values()
    batch = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        losses = [session.run_signature(batch, "train")["loss"] for _ in range(STEPS)]
    np.testing.assert_allclose(losses, GOLDEN["sgd/losses"], rtol=1e-4)


def test_float16_keeps_what_does_not_train_small(tmp_path: pathlib.Path) -> None:
    graph = training()
    pocketgraph.export(graph, tmp_path / "half.tflite", shapes=SIZES, mode="float16")
    given = values()
    losses = [
        ModelFile(tmp_path / "half.tflite").run("train", {"x": given["x"], "labels": given["labels"]})["loss"]
    ]  # fmt: skip
    np.testing.assert_allclose(losses[0], GOLDEN["sgd/losses"][0], rtol=1e-2)


def with_lost_value() -> Graph:
    graph = training()
    return graph.map_nodes(lambda node: node.replace(inputs=()) if node.name == "init" else node)


def with_text() -> Graph:
    return with_signature("""
        t = Placeholder(dtype=string, shape=[])
        n = StringToNumber(t, out_type=float)
        s = AssignAdd(offset, n, T=float)
        out = Identity(s, T=float)
    """, {"t": "t:0"})  # fmt: skip


def in_a_branch() -> Graph:
    return with_signature("""
        p = Placeholder(dtype=bool, shape=[])
        one = Const(float [1.0, 1.0, 1.0])
        w = Switch(one, p, T=float)
        s = AssignAdd(offset, w:1, T=float)
        out = Identity(s, T=float)
    """, {"p": "p:0"})  # fmt: skip


def with_signature(text: str, inputs: dict[str, str]) -> Graph:
    from pocketgraph.graph.graph import Signature

    graph = training()
    added = parse(text)
    signatures = {"bump": Signature(inputs, {"out": "out:0"})}
    return graph.replace([*graph, *added], signatures=signatures)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (training, {"mode": "dynamic"}, "a model that trains is written in float32 or float16"),
        (training, {"shapes": {"train/z": (1,)}}, "no input 'train/z' to give a shape"),
        (training, {"shapes": {"train/x": (6, 5, 4, 2)}}, "does not fit"),
        (training, {"signatures": ["trian"]}, "no signature 'trian'; did you mean 'train'"),
        (training, {"target": "onnx"}, "onnx has no variables, and the model changes some"),
        (with_lost_value, {}, r"4 variables have no first value: 'bias', 'filters'"),
        (with_text, {}, r"'t' \(Placeholder\).*more than files need"),
        (in_a_branch, {}, r"'s' \(AssignAdd\).*in a branch or a loop only"),
    ],
)
def test_bad_calls_write_nothing(
    make: Callable[[], Graph], options: dict[str, Any], message: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(UsageError, match=message):
        pocketgraph.export(make(), tmp_path / "net.tflite", **options)
    assert not list(tmp_path.iterdir())


def test_what_litert_lacks_is_named(tmp_path: pathlib.Path) -> None:
    text = NET.replace("relu = Relu(biased", "digamma = Digamma(biased, T=float)\n    relu = Relu(digamma")
    given = values()
    weights = [const(name, given[name]) for name in WEIGHTS]
    graph = pocketgraph.add_loss(pocketgraph.trainable(parse(text).replace([*weights, *parse(text)])), "logits")
    graph = pocketgraph.add_signatures(pocketgraph.minimize(graph, graph.outputs[0]), "logits")
    with pytest.raises(LackingError, match=r"Digamma \('digamma'\)"):
        pocketgraph.export(graph, tmp_path / "net.tflite", shapes=SIZES)
    assert not list(tmp_path.iterdir())


def test_a_loop_that_reads_variables_is_named(tmp_path: pathlib.Path) -> None:
    folder = FIXTURES / "saved_models" / "on_device"
    with pytest.raises(PocketgraphError, match="'train' has no form without variables: a loop reads a variable"):
        pocketgraph.export(folder, tmp_path / "net.tflite", signatures=["train"])


def test_signatures_of_one_name_are_refused() -> None:
    with pytest.raises(GraphError, match="a signature 'train' already"):
        pocketgraph.add_signatures(training(), "logits")


def test_a_table_smaller_than_made_up_places_is_trained(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        i = Placeholder(dtype=int32, shape=[?,2])
        e = Const(float [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0]])
        w = Const(float [[1.0, -0.5], [0.25, 0.75]])
        zero = Const(int32 0)
        one = Const(int32 1)
        rows = GatherV2(e, i, zero, Tparams=float, Tindices=int32, Taxis=int32)
        mean = Mean(rows, one, T=float, Tidx=int32, keep_dims=false)
        z = MatMul(mean, w, T=float)
    """)
    graph = pocketgraph.add_loss(pocketgraph.trainable(graph, ["e", "w"]), "z")
    graph = pocketgraph.minimize(graph, graph.outputs[0], "sgd", learning_rate=0.5)
    graph = pocketgraph.add_signatures(graph, {"scores": "z"})
    pocketgraph.export(graph, tmp_path / "net.tflite", shapes={"train/i": (2, 2), "train/labels": (2,)})
    file, batch = ModelFile(tmp_path / "net.tflite"), {"i": np.int32([[0, 2], [1, 1]]), "labels": np.int64([1, 0])}
    losses = [file.run("train", batch)["loss"] for _ in range(3)]
    np.testing.assert_allclose(losses, [0.3054784, 0.260604, 0.21971084], rtol=1e-6)  # TensorFlow 2.21's
