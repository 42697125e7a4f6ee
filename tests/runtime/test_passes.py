"""Passes are rows: each can be switched off by its name, gives the same results then, and leaves sound graphs."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest
from click.testing import CliRunner

from checked_passes import check_graph, check_program
from pocketgraph import Session
from pocketgraph.cli.look.plan import command
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.rewriting import optimize
from pocketgraph.runtime.pass_registry import ENVIRONMENT, all_passes, switched_off
from pocketgraph.runtime.planning import graph_passes
from recorded_runs import assert_repeats

HERE = pathlib.Path(__file__).parent
NAMES = [row.name for row in all_passes()]
RECORDED = [
    ("recurrent", "basic_lstm"),
    ("loops", "branches_in_turn"),
    ("lookups", "mean"),
    ("lookups", "cells_on_branches"),
    ("recurrent", "any_length"),
]
NET = parse("""
    x = Placeholder(dtype=float, shape=[1,9,9,3])
    keep = PlaceholderWithDefault(rate, dtype=float, shape=[])
    rate = Const(float 1.0)
    t = Transpose(x, back, T=float, Tperm=int32)
    back = Const(int32 [0,3,1,2])
    forth = Const(int32 [0,2,3,1])
    u = Transpose(t, forth, T=float, Tperm=int32)
    p = Pad(u, sides, T=float, Tpaddings=int32)
    sides = Const(int32[4,2] [[0,0],[1,1],[1,1],[0,0]])
    c = Conv2D(p, w, T=float, strides=[1,1,1,1], padding="VALID")
    b = BiasAdd(c, bias, T=float)
    bias = Const(float [0.1,0.2,0.3,0.4])
    m = Mul(b, keep, T=float)
    r = Relu(m, T=float)
    d = DepthwiseConv2dNative(r, k, T=float, strides=[1,1,1,1], padding="SAME")
    two = Conv2D(d, v, T=float, strides=[1,2,2,1], padding="SAME")
    s = Shape(two, T=float, out_type=int32)
    n = Reshape(two, s, T=float, Tshape=int32)
    y = Sigmoid(n, T=float)
""")


def net() -> Graph:
    random = np.random.default_rng(3)
    shapes = {"w": (3, 3, 3, 4), "k": (7, 7, 4, 1), "v": (1, 1, 4, 5)}
    weights = [const(name, random.normal(0, 0.2, shape).astype(np.float32)) for name, shape in shapes.items()]
    return Graph([*weights, *NET])


X = np.random.default_rng(4).random((1, 9, 9, 3), np.float32)


@pytest.fixture
def _checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    seen: list[str] = []

    def graph_too(name: str, state: graph_passes.GraphState) -> None:
        seen.append(name)
        check_graph(name, state)

    def program_too(name: str, program: optimize.Program) -> None:
        seen.append(name)
        check_program(name, program)

    monkeypatch.setattr(graph_passes, "after_each", graph_too)
    monkeypatch.setattr(optimize, "after_each", program_too)
    yield
    assert seen


def test_names_are_told_once_and_say_what_they_do() -> None:
    assert len(set(NAMES)) == len(NAMES) > 30
    assert all(row.does and row.over in ("graph", "program", "steps") for row in all_passes())


@pytest.mark.usefixtures("_checked")
@pytest.mark.parametrize(("folder", "name"), RECORDED)
def test_graphs_and_programs_are_sound_after_each_pass(folder: str, name: str, tmp_path: pathlib.Path) -> None:
    assert_repeats(HERE / folder, name, engine=None, cache_dir=tmp_path)


@pytest.mark.usefixtures("_checked")
@pytest.mark.parametrize("without", [None, *NAMES])
def test_results_are_the_same_without_a_pass(without: str | None, tmp_path: pathlib.Path) -> None:
    expected = Session(net(), engine="reference").run("y", {"x": X})[0]
    with Session(net(), cache_dir=tmp_path, without=[without] if without else []) as session:
        for _ in range(3):
            np.testing.assert_allclose(session.run("y", {"x": X})[0], expected, atol=1e-5)


@pytest.mark.parametrize("without", [row.name for row in all_passes() if row.over != "program"])
@pytest.mark.parametrize(("folder", "name"), RECORDED)
def test_recorded_runs_are_the_same_without_a_pass(
    folder: str, name: str, without: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, without)
    assert_repeats(HERE / folder, name, engine=None, cache_dir=tmp_path)


def test_what_was_planned_without_a_pass_is_not_taken_for_the_rest(tmp_path: pathlib.Path) -> None:
    model = tmp_path / "net.pb"
    save(net(), model)
    for without in ((), ("fold_affine",), ("fold_affine", "sink_transposes"), ()):
        with Session(model, cache_dir=tmp_path, without=without) as session:
            session.run("y", {"x": X})
    assert len(list(tmp_path.glob("*.tflite"))) == 3


def test_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no pass 'fold_afine'.*fold_affine"):
        Session(net(), without=["fold_afine"])
    monkeypatch.setenv(ENVIRONMENT, "unroll_loops, nothing_like_it")
    with pytest.raises(UsageError, match="no pass 'nothing_like_it'"):
        Session(net())
    monkeypatch.setenv(ENVIRONMENT, " unroll_loops, ")
    assert switched_off("share_constants") == {"unroll_loops", "share_constants"}


def test_plan_tells_passes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "net.pb"
    save(net(), model)
    monkeypatch.setenv(ENVIRONMENT, "fold_affine")
    told = json.loads(CliRunner().invoke(command, [str(model), "--json"]).output)["passes"]
    assert "take_defaults" in told["changed_the_graph"]
    assert told["switched_off"] == ["fold_affine"]
    listed = CliRunner().invoke(command, [str(model), "--passes"]).output
    assert all(name[:20] in listed for name in ("unroll_loops", "fold_affine", "step_codegen"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = Placeholder(dtype=float)\n y = Relu(x, T=int32)", "takes"),
        ("x = Placeholder(dtype=float)\n a = Add(x, b, T=float)\n b = Neg(a, T=float)\n y = Neg(b, T=float)", "circle"),
        ("x = Placeholder(dtype=float)\n y = Relu(x:1, T=float)", "not made"),
    ],
)
def test_the_check_finds_faults(text: str, fault: str) -> None:
    from pocketgraph.graph.endpoint import Endpoint

    state = graph_passes.GraphState(parse(text), {}, {}, [Endpoint("y", 0)], ())
    with pytest.raises(AssertionError, match=fault):
        check_graph("a pass", state)
