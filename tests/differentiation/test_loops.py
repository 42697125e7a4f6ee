"""Gradients through loops, with branches, other loops, arrays and lists in them: TensorFlow's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from graph_files import graph_file, graph_names
from pocketgraph.errors import GraphError
from pocketgraph.graph.text_format import parse
from support import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "loop_gradients"
GOLDEN = dict(np.load(FOLDER.with_suffix(".npz")))
NAMES = graph_names(FOLDER)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_tensorflows(name: str) -> None:
    feeds = {key.split("/")[2]: value for key, value in GOLDEN.items() if key.startswith(f"{name}/in/")}
    wanted = {key.split("/")[2]: value for key, value in GOLDEN.items() if key.startswith(f"{name}/grad/")}
    slopes = pocketgraph.gradients(graph_file(FOLDER, f"{name}"), "y", list(wanted))
    for options in ({"engine": "reference"}, {}):
        with pocketgraph.Session(slopes, **options) as session:
            for _ in range(2):  # stacks begin empty in each run
                found = session.run(list(slopes.outputs), feeds)
                for got, want in zip(found, wanted.values(), strict=True):
                    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_what_waits_for_no_round_and_stays_the_same_in_all_is_computed_in_the_way_back_too() -> None:
    graph = graph_file(FOLDER, "invariant").map_nodes(
        lambda node: node.replace(inputs=tuple(node.data_inputs)) if node.op == "Exp" else node
    )
    slopes = pocketgraph.gradients(graph, "y", ["x", "w"])
    with pocketgraph.Session(slopes) as session:
        found = session.run(list(slopes.outputs), {key: GOLDEN[f"invariant/in/{key}"] for key in ("x", "w")})
    for got, key in zip(found, ("x", "w"), strict=True):
        np.testing.assert_allclose(got, GOLDEN[f"invariant/grad/{key}"], rtol=1e-5)


def test_a_loop_of_no_rounds_hands_gradients_on() -> None:
    graph = graph_file(FOLDER, "by_value")
    slopes = pocketgraph.gradients(graph, "y", "x")
    with pocketgraph.Session(slopes) as session:
        (found,) = session.run(list(slopes.outputs), {"x": np.float32([90, 1, 2])})
    np.testing.assert_array_equal(found, [1, 1, 1])


def test_what_does_not_come_through_the_loop_is_not_connected() -> None:
    graph = graph_file(FOLDER, "power")
    with pytest.raises(GraphError, match="y does not depend on unused"):
        pocketgraph.gradients(graph, "y", "unused")


def test_a_net_with_a_loop_learns() -> None:
    """The variables of a recurrent net, read in the rounds of a loop."""
    graph = graph_file(FOLDER, "recurrent")
    given = {key.split("/")[2]: value for key, value in GOLDEN.items() if key.startswith("recurrent/in/")}
    weights = {name: pocketgraph.graph.const(name, given[name]) for name in ("w", "b")}
    graph = pocketgraph.trainable(graph.map_nodes(lambda node: weights.get(node.name, node)), ["w", "b"])
    graph = pocketgraph.add_loss(graph, "y", "mean_squared_error")
    training = pocketgraph.minimize(graph, graph.outputs[0], "adam", learning_rate=0.05)
    with pocketgraph.Session(training) as session:
        session.run(["init"])
        losses = pocketgraph.train(session, [{"x": given["x"], "labels": np.full((2, 4), 0.3, np.float32)}] * 30)
    assert losses[-1] < losses[0] / 10


def test_a_loop_that_tensorflow_does_not_write_is_named() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        e = Enter(x, T=float, frame_name="f")
        m = Merge(e, e2, N=2, T=float)
        e2 = Enter(x, T=float, frame_name="f")
        y = Neg(m, T=float)
    """)
    with pytest.raises(GraphError, match="'m': the loop is not as TensorFlow writes one"):
        pocketgraph.gradients(graph, "y", "x")
