"""Constants become variables, a loss and an optimizer make a training graph, and it learns as TensorFlow's does."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text import parse
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from training_net import OPTIMIZERS, STEPS, values  # noqa: E402

GOLDEN = dict(np.load(FIXTURES / "training_steps.npz"))
WEIGHTS = ("filters", "bias", "weights", "offset")
NET = """
    x = Placeholder(dtype=float, shape=[?,5,5,2])
    conv = Conv2D(x, filters, T=float, strides=[1,1,1,1], padding="VALID")
    biased = BiasAdd(conv, bias, T=float)
    relu = Relu(biased, T=float)
    sizes = Const(int32 [-1, 36])
    flat = Reshape(relu, sizes, T=float, Tshape=int32)
    product = MatMul(flat, weights, T=float)
    logits = Add(product, offset, T=float)
"""


def frozen() -> Graph:
    given = values()
    return parse(NET).replace([*(const(name, given[name]) for name in WEIGHTS), *parse(NET)])


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph: pocketgraph.trainable(graph, "filtres"), "no constant .* 'filtres'; did you mean 'filters'"),
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
    ],
)
def test_bad_calls_say_what_is_wrong(call: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        call(frozen())  # type: ignore[operator]
