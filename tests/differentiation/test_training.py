"""Constants become variables, a loss and an optimizer make a training graph, and it learns as TensorFlow's does."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import GraphError, RunError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from training_graph import GOLDEN, L1, L2, NET, OPTIMIZERS, SCHEDULES, STEPS, WEIGHTS, frozen, values


@pytest.mark.parametrize("kind", ["reference", "resource"])
@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_are_tensorflows(name: str, engine: str | None, kind: str) -> None:
    _, rate, _, parameters = OPTIMIZERS[name]
    optimizer = "momentum" if name == "nesterov" else name
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen(), kind=kind), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], optimizer, learning_rate=rate, **parameters)
    given = values()
    feeds = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(training, **({"engine": engine} if engine else {})) as session:
        session.run(["init"], {})
        losses = [session.run(list(training.outputs), feeds)[0] for _ in range(STEPS)]
        learned = session.run([f"{weight}/read" for weight in WEIGHTS], {})
    np.testing.assert_allclose(losses, GOLDEN[f"{name}/losses"], rtol=1e-4)
    assert losses[-1] < losses[0]
    for weight, got in zip(WEIGHTS, learned, strict=True):
        want = GOLDEN[f"{name}/{weight}"]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("kind", ["reference", "resource"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_tensorflows(name: str, kind: str) -> None:
    function, parameters = SCHEDULES[name]
    given = {key: value for key, value in parameters.items() if key != "values"}
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen(), kind=kind), "logits")
    (loss,) = graph.outputs
    graph = pocketgraph.add_schedule(graph, function.split("_")[0], parameters.get("values", 0.1), **given)
    training = pocketgraph.minimize(graph, loss, learning_rate="learning_rate")
    losses, rates, learned = trained(training, ["learning_rate"])
    np.testing.assert_allclose(losses, GOLDEN[f"{name}/losses"], rtol=1e-4)
    np.testing.assert_allclose(np.ravel(rates), GOLDEN[f"{name}/rates"], rtol=1e-5)
    assert_learned(learned, name)


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_regularization_is_tensorflows(kind: str) -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen(), kind=kind), "logits")
    graph = pocketgraph.add_regularization(graph, graph.outputs[0], l1=L1, l2=L2)
    losses, _, learned = trained(pocketgraph.minimize(graph, graph.outputs[0], learning_rate=0.1))
    np.testing.assert_allclose(losses, GOLDEN["regularized/losses"], rtol=1e-4)
    assert_learned(learned, "regularized")


def test_weights_that_are_held_where_they_began_move_less() -> None:
    moved = []
    for held in (0.0, 10.0):
        graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
        if held:
            graph = pocketgraph.add_regularization(graph, graph.outputs[0], l2=held, towards="start", variables="*")
        losses, _, learned = trained(pocketgraph.minimize(graph, graph.outputs[0], learning_rate=0.05))
        np.testing.assert_allclose(losses[0], GOLDEN["sgd/losses"][0], rtol=1e-5)  # nothing to pay at the start
        moved.append(sum(np.abs(got - values()[name]).sum() for name, got in zip(WEIGHTS, learned, strict=True)))
    assert moved[1] < moved[0] / 2


def test_the_triplet_loss_is_tensorflows() -> None:
    x = GOLDEN["triplet/embeddings"]
    for size in ("?", len(x)):
        graph = parse(f"x = Placeholder(dtype=float, shape=[{size},4])")
        graph = pocketgraph.add_loss(graph, "x", "triplet", margin=0.5)
        slopes = pocketgraph.gradients(graph, graph.outputs[0], "x")
        with pocketgraph.Session(slopes) as session:
            loss, slope = session.run(
                [graph.outputs[0], slopes.outputs[0]], {"x": x, "labels": GOLDEN["triplet/labels"]}
            )
        np.testing.assert_allclose(loss, GOLDEN["triplet/loss"], rtol=1e-5)
        np.testing.assert_allclose(slope, GOLDEN["triplet/gradient"], atol=1e-5 * np.abs(slope).max())


def trained(training: Graph, also: list[str] | None = None) -> tuple[list[Any], list[Any], list[Any]]:
    """The losses of 20 steps, what else was fetched in each, and the variables at the end."""
    given = values()
    feeds = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(training) as session:
        session.run(["init"], {})
        steps = [session.run([*training.outputs[:1], *(also or []), training.outputs[1]], feeds) for _ in range(STEPS)]
        learned = session.run([f"{weight}/read" for weight in WEIGHTS], {})
    return [step[0] for step in steps], [step[1:-1] for step in steps], learned


def assert_learned(learned: list[Any], name: str) -> None:
    for weight, got in zip(WEIGHTS, learned, strict=True):
        want = GOLDEN[f"{name}/{weight}"]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_signatures_train_infer_save_and_restore(kind: str, tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen(), kind=kind), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], "adam", learning_rate=0.01)
    training = pocketgraph.add_signatures(training, {"scores": "logits"})
    pocketgraph.save(training, tmp_path / "net", form="saved_model")
    given = values()
    batch = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(tmp_path / "net", allow="files", files_dir=tmp_path) as session:
        losses = [session.run_signature(batch, "train")["loss"] for _ in range(STEPS)]
        np.testing.assert_allclose(losses, GOLDEN["adam/losses"], rtol=1e-4)
        scores = session.run_signature({"x": given["x"]}, "infer")["scores"]
        session.run_signature({"checkpoint_path": "kept"}, "save")
        after = [session.run_signature(batch, "train")["loss"] for _ in range(3)]
    with pocketgraph.Session(tmp_path / "net", allow="files", files_dir=tmp_path) as session:
        session.run_signature({"checkpoint_path": "kept"}, "restore")
        np.testing.assert_array_equal(session.run_signature({"x": given["x"]}, "infer")["scores"], scores)
        assert [session.run_signature(batch, "train")["loss"] for _ in range(3)] == after


def test_a_loss_that_is_not_finite_moves_nothing() -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], "momentum")
    given = values()
    with pocketgraph.Session(training) as session:
        session.run(["init"], {})
        with pytest.raises(RunError, match="the loss"):
            session.run(list(training.outputs), {"x": given["x"] * np.nan, "labels": given["labels"]})
        np.testing.assert_array_equal(session.run(["weights/read"])[0], given["weights"])


@pytest.mark.parametrize("engine", ["reference", None])
def test_training_stops_where_the_loss_is_not_finite_and_names_the_layer(engine: str | None) -> None:
    net = NET.replace("relu = Relu(biased", "root = Log(biased, T=float)\n    relu = Relu(root")
    given = values()
    graph = parse(net).replace([*(const(name, given[name]) for name in WEIGHTS), *parse(net)])
    graph = pocketgraph.add_loss(pocketgraph.trainable(graph), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], learning_rate=0.1)
    batch = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(training, **({"engine": engine} if engine else {})) as session:
        session.run(["init"])
        with pytest.raises(RunError, match=r"the loss is nan at step 0; it began in 'root' \(Log\), behind the layer"):
            pocketgraph.train(session, [batch])
        session.run(["init"])
        with pytest.raises(RunError, match="at step 0: the input 'x' is not finite"):
            pocketgraph.train(session, [{**batch, "x": given["x"] * np.inf}])


def test_training_that_diverges_names_the_variable() -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
    graph = pocketgraph.minimize(graph, graph.outputs[0], learning_rate=3e38)
    given = values()
    batch = {"x": given["x"], "labels": given["labels"]}
    with pocketgraph.Session(graph) as session:
        session.run(["init"])
        with pytest.raises(RunError, match=r"the loss is (nan|inf) at step [1-9].*lower the learning rate"):
            pocketgraph.train(session, [batch] * 9)


def test_training_gives_losses_and_ends_when_told() -> None:
    told: list[int] = []
    with pocketgraph.Session(minimized()) as session:
        session.run(["init"])
        batch = {"x": values()["x"], "labels": values()["labels"]}
        losses = pocketgraph.train(session, [batch] * 9, on_step=lambda step, loss: told.append(step) or step == 4)
        assert told == [0, 1, 2, 3, 4]
        assert len(losses) == 5
        assert sorted(session.variables()) == sorted(WEIGHTS)
    with pocketgraph.Session(frozen()) as session, pytest.raises(RunError, match="see minimize"):
        pocketgraph.train(session, [])


def test_features_are_computed_once(tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen(), ["weights", "offset"]), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], learning_rate=0.1)
    training = pocketgraph.add_signatures(training, "logits", features="flat")
    assert training.signatures["load"].inputs == {"x": "x:0"}
    assert training.signatures["train"].inputs == {"flat": "flat:0", "labels": "labels:0"}
    with pocketgraph.Session(training) as session:
        session.run(["init"])
        flat = session.run_signature({"x": values()["x"]}, "load")["flat"]
        batch = {"flat": flat, "labels": values()["labels"]}
        losses = [session.run_signature(batch, "train")["loss"] for _ in range(3)]
        session.run(["init"])
        whole = pocketgraph.train(session, [{"x": values()["x"], "labels": values()["labels"]}] * 3)
        np.testing.assert_allclose(losses, whole, rtol=1e-6)
    with pytest.raises(GraphError, match="'conv:0' depends on variables, such as 'filters'"):
        pocketgraph.add_signatures(minimized(), "logits", features="conv")
    with pytest.raises(GraphError, match="does not depend on 'beside:0'"):
        beside = minimized()
        beside = beside.replace([*beside, *parse("beside = Placeholder(dtype=float)")])
        pocketgraph.add_signatures(beside, "logits", features="beside")


@pytest.mark.parametrize("names", [None, ["*/gamma", "bias"]])
def test_folded_batch_norms_unfold(names: list[str] | None) -> None:
    graph = frozen()
    x = {"x": values()["x"]}
    made = pocketgraph.trainable(graph, names, unfold_batch_norms=True)
    with pocketgraph.Session(graph, engine="reference") as session:
        want = session.run(["logits"], x)[0]
    made = pocketgraph.add_loss(made, "logits")
    training = pocketgraph.minimize(made, made.outputs[0], learning_rate=0.05)
    with pocketgraph.Session(training, engine="reference") as session:
        session.run(["init"])
        np.testing.assert_array_equal(session.run(["logits"], x)[0], want)
        losses = pocketgraph.train(session, [{**x, "labels": values()["labels"]}] * 20)
        held = session.variables()
    assert losses[-1] < losses[0] / 2
    norms = np.linalg.norm(values()["filters"].reshape(-1, 4), axis=0)
    assert ("filters" in held) == (names is None)
    assert held["conv/gamma"].shape == norms.shape
    first = pocketgraph.trainable(graph, unfold_batch_norms=True)["conv/gamma/initial_value"].tensor.numpy()
    assert (np.abs(np.log2(first / norms)) <= 0.5 + 1e-6).all()


def test_a_graph_of_variables_computes_what_the_frozen_one_does() -> None:
    graph = frozen()
    x = {"x": values()["x"]}
    with pocketgraph.Session(graph) as session:
        want = session.run(["logits"], x)[0]
    with pocketgraph.Session(pocketgraph.trainable(graph)) as session:
        session.run(["init"], {})
        np.testing.assert_allclose(session.run(["logits"], x)[0], want, rtol=1e-5, atol=1e-6)


def test_patterns_choose_variables_and_reads_that_are_there_stay() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,2])
        head/w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        head/w/read = Identity(head/w, T=float)
        body/w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        a = MatMul(x, body/w, T=float)
        y = MatMul(a, head/w/read, T=float)
    """)
    made = pocketgraph.trainable(graph, "head/*")
    assert (made["head/w"].op, made["body/w"].op) == ("VariableV2", "Const")
    assert made["y"].inputs == ("a", "head/w/read")
    assert "head/w/read_1" not in made


def test_a_rate_may_be_a_tensor_and_only_some_variables_move() -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
    graph = graph.replace([*graph, *parse("rate = Placeholder(dtype=float, shape=[])")])
    training = pocketgraph.minimize(graph, graph.outputs[0], learning_rate="rate", variables="offset")
    given = values()
    with pocketgraph.Session(training) as session:
        session.run(["init"], {})
        session.run([training.outputs[1]], {"x": given["x"], "labels": given["labels"], "rate": 0.5})
        offset, bias = session.run(["offset/read", "bias/read"], {})
    assert not np.allclose(offset, given["offset"])
    np.testing.assert_array_equal(bias, given["bias"])


@pytest.mark.parametrize("loss", ["sigmoid_cross_entropy", "mean_squared_error"])
def test_losses_have_their_formulas(loss: str) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?,3])")
    made = pocketgraph.add_loss(graph, "x", loss)
    x, z = np.float32([[-30.0, 0.5, 2.0], [100.0, -1.0, 0.0]]), np.float32([[0, 1, 0.25], [1, 0, 1]])
    with pocketgraph.Session(made) as session:
        got = session.run(list(made.outputs), {"x": x, "labels": z})[0]
    wide = x.astype(np.float64)
    each = (wide - z) ** 2 if loss == "mean_squared_error" else np.logaddexp(0, wide) - wide * z
    np.testing.assert_allclose(got, each.mean(), rtol=1e-6)


def minimized() -> Graph:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
    return pocketgraph.minimize(graph, graph.outputs[0])


def with_lost_variable(graph: Graph) -> Graph:
    return graph.replace([*graph, *parse("lost = VariableV2(dtype=float, shape=[2])")])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph: pocketgraph.trainable(graph, "filtres"), "no constant .* 'filtres'; did you mean 'filters'"),
        (lambda graph: pocketgraph.trainable(parse("x = Placeholder(dtype=float)"), unfold_batch_norms=True),
         "no batch norm can have been folded"),
        (lambda graph: pocketgraph.trainable(graph, kind="ref"), "'reference' or 'resource'"),
        (lambda graph: pocketgraph.trainable(parse("x = Placeholder(dtype=float)")), "no constants that look like"),
        (lambda graph: pocketgraph.minimize(graph, "logits", "adagard"), "no optimizer 'adagard'.*adagrad"),
        (lambda graph: pocketgraph.minimize(graph, "logits", "sgd", beta1=0.5), "sgd has no parameter 'beta1'"),
        (lambda graph: pocketgraph.minimize(graph, "logits"), "does not depend on any variable"),
        (lambda graph: pocketgraph.minimize(graph, "sizes"), "'sizes' is not a tensor of floating"),
        (lambda graph: pocketgraph.minimize(graph, "logits", variables="bias"), "no variable 'bias'"),
        (lambda graph: pocketgraph.add_loss(graph, "logits", "hinge"), "no loss 'hinge'"),
        (lambda graph: pocketgraph.add_loss(graph, "conv"), r"\[batch,classes\]"),
        (lambda graph: pocketgraph.add_loss(graph, "logits", labels="x"), "a node 'x' already"),
        (lambda graph: pocketgraph.add_loss(graph, "sizes"), "'sizes' is int32"),
        (lambda graph: pocketgraph.add_loss(graph, "conv", "triplet"), r"embeddings \[batch,sizes\]"),
        (lambda graph: pocketgraph.add_schedule(graph, "linear", 0.1), "no schedule 'linear'"),
        (lambda graph: pocketgraph.add_schedule(graph, "cosine", 0.1), "decay_steps of 1 or more"),
        (lambda graph: pocketgraph.add_schedule(graph, "exponential", 0.1, decay_steps=2), "decay_rate above 0"),
        (lambda graph: pocketgraph.add_schedule(graph, "piecewise", [1.0], boundaries=[3]), "2 learning rates"),
        (lambda graph: pocketgraph.add_schedule(graph, "piecewise", [1, 2, 3], boundaries=[3, 3]), "increase"),
        (lambda graph: pocketgraph.add_schedule(graph, "constant", 0.1, name="bias"), "a node 'bias' already"),
        (lambda graph: pocketgraph.add_regularization(graph, "logits"), "not both 0"),
        (lambda graph: pocketgraph.add_regularization(graph, "logits", l2=-1), "0 or more"),
        (lambda graph: pocketgraph.add_regularization(graph, "logits", l2=1), "no variables with two axes"),
        (lambda graph: pocketgraph.add_regularization(graph, "logits", l2=1, variables="b*"), r"no variable 'b\*'"),
        (lambda graph: pocketgraph.add_signatures(graph, "logits"), "see minimize"),
        (lambda graph: pocketgraph.add_signatures(minimized(), "logit"), "no tensor 'logit'"),
        (lambda graph: pocketgraph.add_signatures(minimized(), ["logits", "logits:0"]), "two outputs are called"),
        (lambda graph: pocketgraph.add_signatures(pocketgraph.add_signatures(minimized(), "logits"), "logits"),
         "a signature 'train' already"),
        (lambda graph: pocketgraph.add_signatures(with_lost_variable(minimized()), "logits"), "no value to 'lost'"),
    ],
)  # fmt: skip
def test_bad_calls_say_what_is_wrong(call: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        call(frozen())  # type: ignore[operator]


@pytest.mark.parametrize("given", [1, np.True_])
def test_a_flag_may_be_a_number(given: object) -> None:
    graph = pocketgraph.add_loss(pocketgraph.trainable(frozen()), "logits")
    training = pocketgraph.minimize(graph, graph.outputs[0], "momentum", use_nesterov=given)  # type: ignore[arg-type]
    flags = {node.attrs["use_nesterov"] for node in training if node.op == "ApplyMomentum"}
    assert flags == {True}
