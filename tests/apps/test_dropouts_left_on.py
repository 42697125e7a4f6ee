"""Dropout and other random numbers at every door: one rule for what decides them, and answers that are random are said
to be."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.model_comparison import verify
from pocketgraph.apps.projects import make_project
from pocketgraph.apps.quantizing import quantize
from pocketgraph.apps.shipping.preparation import numbers_and_texts
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.freezing import freeze
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization import evaluate
from pocketgraph.quantization.evaluation.runnable_models import open_model
from pocketgraph.runtime import Session

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 4)).astype(np.float32)
WEIGHTS = RNG.normal(size=(4, 3)).astype(np.float32)
KEPT = "keep = Placeholder(dtype=float, shape=[])"
FIXED = "keep = Const(float 0.5)"
DROPOUT = """
    x = Placeholder(dtype=float, shape=[?,4])
    {keep}
    scaled = RealDiv(x, keep, T=float)
    size = Shape(x, T=float)
    noise = RandomUniform(size, dtype=float)
    sum = Add(keep, noise, T=float)
    mask = Floor(sum, T=float)
    dropped = Mul(scaled, mask, T=float)
    scores = MatMul(dropped, w, T=float)
    shares = Softmax(scores, T=float)
"""
SCALED = """
    x = Placeholder(dtype=float, shape=[?,4])
    keep = Placeholder(dtype=float, shape=[])
    scaled = Mul(x, keep, T=float)
    scores = MatMul(scaled, w, T=float)
    shares = Softmax(scores, T=float)
"""
BRANCHED = """
    x = Placeholder(dtype=float, shape=[?,4])
    {training}
    there = Switch(x, training, T=float)
    size = Shape(there:1, T=float)
    noise = RandomUniform(size, dtype=float)
    keep = Const(float 0.5)
    sum = Add(keep, noise, T=float)
    mask = Floor(sum, T=float)
    scaled = RealDiv(there:1, keep, T=float)
    dropped = Mul(scaled, mask, T=float)
    merged = Merge(there, dropped, T=float, N=2)
    scores = MatMul(merged, w, T=float)
    shares = Softmax(scores, T=float)
"""
SWITCH = "training = Placeholder(dtype=bool, shape=[])"
NOISY = """
    x = Placeholder(dtype=float, shape=[?,4])
    size = Shape(x, T=float)
    noise = RandomStandardNormal(size, dtype=float)
    sum = Add(x, noise, T=float)
    scores = MatMul(sum, w, T=float)
    shares = Softmax(scores, T=float)
"""
EXPLORING = """
    x = Placeholder(dtype=float, shape=[?,4])
    scores = MatMul(x, w, T=float)
    size = Shape(scores, T=float)
    noise = RandomStandardNormal(size, dtype=float)
    sum = Add(scores, noise, T=float)
    shares = Softmax(sum, T=float)
"""


def model(text: str) -> Graph:
    return Graph([*parse(text), const("w", WEIGHTS)])


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    np.savez(tmp_path / "data.npz", x=ROWS, labels=(ROWS @ WEIGHTS).argmax(1))
    return tmp_path / "data.npz"


def test_an_open_share_is_as_outside_of_training_whatever_feeds_the_rest(data: pathlib.Path) -> None:
    given = model(DROPOUT.format(keep=KEPT))
    without = freeze(given, ["shares"], repair=True)
    said: list[str] = []
    assert verify(given, without, {"x": ROWS}, notify=said.append)
    assert verify(given, without, data=data, notify=said.append)
    assert said == ["'keep' is 1, as outside of training (feeds keep=0.5 would be as in training)"] * 2
    said.clear()
    assert not verify(given, without, {"x": ROWS}, feeds={"keep": 0.5}, notify=said.append)
    assert verify(given, given, {"x": ROWS, "keep": np.float32(1)}, notify=said.append)
    assert not said


@pytest.mark.parametrize("command", ["verify", "evaluate", "ship"])
def test_a_number_that_no_dropout_reads_is_asked_for_with_the_option(
    command: str, data: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    path = tmp_path / "net.pb"
    save(model(SCALED), path)
    rest = {"verify": [path], "ship": ["-o", tmp_path / "out"]}.get(command, [])
    assert call(command, path, *rest, "--data", data) == 2
    error = capsys.readouterr().err
    assert "no array for the input 'keep:0'; there is x; --feed keep=1 sets it to one number" in error
    assert call(command, path, *rest, "--data", data, "--feed", "keep=1") == 0


def test_evaluate_and_verify_say_that_answers_are_random(data: pathlib.Path) -> None:
    dropping = model(DROPOUT.format(keep=FIXED))
    (note,) = (note for note in evaluate(dropping, data).notes if "random" in note)
    assert note == (
        "the answers are random: training left a dropout on ('noise'); freeze_graph with repair=dropout takes it out"
    )
    (noisy,) = (note for note in evaluate(model(EXPLORING), data).notes if "random" in note)
    assert noisy == "the answers are random: 'noise' draws other numbers in each run"
    assert noisy in verify(model(EXPLORING), model(EXPLORING), {"x": ROWS}).notes
    for one in (model(DROPOUT.format(keep=KEPT)), freeze(dropping, ["shares"], repair=True)):
        assert not any("random" in note for note in evaluate(one, data).notes)


@pytest.mark.parametrize(
    "switch", [SWITCH, "no = Const(bool false)\n    training = PlaceholderWithDefault(no, dtype=bool, shape=[])"]
)
def test_a_dropout_on_a_way_that_use_does_not_take_is_not_said_to_be_on(
    switch: str, data: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path, graph, said = tmp_path / "net.pb", model(BRANCHED.format(training=switch)), list[str]()
    save(graph, path)
    ship(path, tmp_path / "shipped", data, notify=said.append)
    said += [*make_project("web", path, tmp_path / "page").notes, *evaluate(graph, data).notes]
    said += verify(graph, graph, data=data).notes
    assert not any("random" in note or "dropout" in note for note in said)


def test_what_is_fed_decides_whether_answers_are_random(data: pathlib.Path) -> None:
    for text, fed in (
        (DROPOUT.format(keep=KEPT), {"keep": 0.5}),
        (BRANCHED.format(training=SWITCH), {"training": True}),
    ):
        graph = model(text)
        assert "left a dropout on ('noise')" in "".join(evaluate(graph, data, feeds=fed).notes)
        assert "left a dropout on ('noise')" in "".join(verify(graph, graph, {"x": ROWS}, feeds=fed).notes)


def test_a_dropout_of_a_fixed_seed_is_said_to_be_on(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As of Keras 3, whose seeds are variables: frozen, it drops the same in each run."""
    seeds = "alg = Const(int32 1)\n    key = Const(uint64 [1])\n    counter = Const(uint64 [2, 3])"
    drawn = "StatelessRandomUniformV2(size, key, counter, alg, dtype=float)"
    graph = model(DROPOUT.format(keep=f"{FIXED}\n    {seeds}").replace("RandomUniform(size, dtype=float)", drawn))
    path, said = tmp_path / "net.pb", list[str]()
    save(graph, path)
    on = "training left a dropout on ('noise'); freeze_graph with repair=dropout takes it out"
    assert on in evaluate(graph, data).notes
    assert on in verify(graph, graph, data=data).notes
    ship(path, tmp_path / "shipped", data, notify=said.append)
    assert "training left a dropout on, which does not ship: 'noise'" in said
    assert "training left a dropout on, which does not ship: 'noise'" in make_project("web", path, tmp_path / "a").notes


def test_noise_of_layers_that_training_left_on_does_not_ship(
    data: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    path, said = tmp_path / "net.pb", list[str]()
    save(model(NOISY), path)
    call("verify", path, path, "--data", data)
    hint = "freeze_graph with --repair=dropout takes it out"
    assert f"the answers are random: training left noise on ('noise'); {hint}" in " ".join(
        capsys.readouterr().out.split()
    )
    shipped = ship(path, tmp_path / "shipped", data, notify=said.append)
    assert "training left noise on, which does not ship: 'noise'" in said
    with Session(pathlib.Path(shipped.folder) / "frozen.pb") as session:
        (shares,) = session.run(["shares"], {"x": ROWS})
    right = np.exp(ROWS @ WEIGHTS)
    assert np.allclose(shares, right / right.sum(1, keepdims=True), atol=1e-5)


def test_what_ships_is_without_the_dropout_that_training_left_on(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path, said = tmp_path / "net.pb", list[str]()
    save(model(DROPOUT.format(keep=FIXED)), path)
    taken_out = "training left a dropout on, which does not ship: 'noise'"
    shipped = ship(path, tmp_path / "shipped", data, notify=said.append)
    assert taken_out in said
    assert taken_out in make_project("web", path, tmp_path / "page").notes
    for target in ("tflite", "c", "onnx"):
        assert taken_out in export(path, tmp_path / f"net.{target}", target=target).notes
    kept = export(path, tmp_path / "net.onnx", keep_dropout=True).notes  # which draws numbers
    assert taken_out not in kept
    assert any("a dropout or noise was left on" in note for note in kept)
    said.clear()
    quantize(path, str(data), notify=said.append).save(tmp_path / "small.tflite")
    assert said == [taken_out]
    right = np.exp(ROWS @ WEIGHTS)
    for file in ("net.tflite", "small.tflite"):
        found = open_model(tmp_path / file).run([ROWS[:1]])[0]
        assert np.allclose(found, (right / right.sum(1, keepdims=True))[:1], atol=0.02), file
    with Session(pathlib.Path(shipped.folder) / "frozen.pb") as session:
        assert np.allclose(session.run("shares", {"x": ROWS}), right / right.sum(1, keepdims=True), atol=1e-5)


def test_outputs_behind_a_circle_of_nodes_that_hand_on_are_put_in_order_without_end() -> None:
    graph = parse("""
        a = Identity(b, T=float)
        b = Identity(a, T=float)
        x = Placeholder(dtype=float, shape=[2])
        y = Softmax(x, T=float)
    """)
    assert numbers_and_texts(graph, ["a", "y"], in_order=False)[0] == ["y", "a"]
