"""Convolutions with bias and rectifier that are trained: two steps, with TensorFlow's results and gradients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.nn import rectified_convolution
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.packing import changing_weights
from pocketgraph.runtime.engines import trained_convolutions
from pocketgraph.runtime.planning import numpy_gradients
from support import ROOT, assert_close, window_text

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from rectified_layer_cases import CASES, drawn  # noqa: E402

Feeds = dict[str, np.ndarray[Any, Any]]
PASS = "fused_rectified_layers"
QUICK = "changing_weights"
NOT_QUICK = ("depthwise, two for each",)
"""What XNNPACK packs in an order that is not known."""
NOT_ALONE = (*NOT_QUICK, "border", "depthwise, strides")
"""Whose convolution and gradient by images are not XNNPACK's when the layer is apart."""
STRIDED = ("wide, strides",)
"""What is no fused layer: its gradient by images is no convolution. The convolution alone is XNNPACK's."""


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_gradients, "LEAST_NUMPY_GRADIENT", 0)
    monkeypatch.setattr(numpy_gradients, "LEAST_TRAINED_LAYER", 0)
    monkeypatch.setattr(numpy_gradients, "LEAST_SHALLOW_LAYER", 0)
    monkeypatch.setattr(numpy_gradients, "share_in_tiles", lambda *_: None)
    monkeypatch.setattr(trained_convolutions, "LEAST_NUMPY_GRADIENT", 0)
    monkeypatch.setattr(rectified_convolution, "TOGETHER", 300)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fused steps that were taken, in order."""
    taken: list[str] = []
    for name in ("rectified_convolution", "rectified_gradients"):
        whole = getattr(rectified_convolution, name)

        def noted(*args: Any, name: str = name, whole: Any = whole) -> Any:
            taken.append(name)
            return whole(*args)

        monkeypatch.setattr(rectified_convolution, name, noted)
    return taken


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What XNNPACK computed, after it was tried."""
    taken: list[Any] = []
    run_into, is_right = InPlaceModel.run_into, changing_weights._is_right

    def noted(self: InPlaceModel, inputs: Any, results: Any) -> None:
        run_into(self, inputs, results)
        taken.append(results)

    def tried(*asked: Any) -> bool:
        found = is_right(*asked)
        taken.clear()
        assert found
        return found

    monkeypatch.setattr(InPlaceModel, "run_into", noted)
    monkeypatch.setattr(changing_weights, "_is_right", tried)
    return taken


def layer(name: str, more: str = "") -> tuple[Graph, Feeds, dict[str, np.ndarray[Any, Any]]]:
    """(a case's graph, its feeds, TensorFlow's results by what is fetched)."""
    case, given = CASES[name], drawn(name)
    with np.load(FIXTURES / "rectified_layers.npz") as data:
        wanted = {key: data[f"{name} {key}"] for key in ("rectified", "slopes", "x", "w", "b")}
    window = window_text(case.window)
    text = "".join(
        f"{key} = Placeholder(dtype=float, shape=[{','.join(map(str, value.shape))}])\n"
        for key, value in {**given, "slopes": wanted["slopes"]}.items()
    )
    text += f"""
        c = {case.op}(x, w, T=float, {window})
        y = BiasAdd(c, b, T=float)
        r = {case.rectifier}(y, T=float)
        dr = {case.rectifier}Grad(slopes, r, T=float)
        db = BiasAddGrad(dr, T=float)
        dw = {case.op}BackpropFilter(x, w_sizes, dr, T=float, {window})
        {more}
    """
    if case.by_images:
        text += f"dx = {case.op}BackpropInput(x_sizes, w, dr, T=float, {window})"
    sizes = [const(f"{key}_sizes", np.array(given[key].shape, np.int32)) for key in ("x", "w")]
    results = {"r:0": wanted["rectified"], "dw:0": wanted["w"], "db:0": wanted["b"]}
    results |= {"dx:0": wanted["x"]} if case.by_images else {}
    return (
        Graph([*sizes, *parse(text)]),
        {f"{k}:0": v for k, v in given.items()} | {"slopes:0": wanted["slopes"]},
        results,
    )


BOTH = ["rectified_convolution", "rectified_gradients"]


@pytest.mark.parametrize("without", [(), (QUICK,), (PASS,), (PASS, QUICK)], ids=["fused", "in NumPy", "apart", "both"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_tensorflows(name: str, without: Sequence[str], steps: list[str], quick: list[Any]) -> None:
    graph, feeds, wanted = layer(name)
    for _ in range(2):  # the second session finds the first one's plan
        with Session(graph, without=without) as session:
            for _ in range(2):
                for found, each in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
                    assert_close(found, each, 2e-6)
    is_apart = PASS in without or (QUICK in without and name.startswith("wide")) or name in STRIDED
    assert steps == ([] if is_apart else BOTH * 4)
    quick_ones = {(): set(CASES) - set(NOT_QUICK), (PASS,): set(CASES) - set(NOT_ALONE)}
    assert bool(quick) == (name in quick_ones.get(tuple(without), ()))


def written_as_sums(graph: Graph) -> Graph:
    """The graph with its bias as Python's ``+`` adds it, and the gradient by it as TensorFlow then makes it."""
    forms = {
        "y": parse("y = AddV2(b, c, T=float)").nodes["y"],
        "db": parse("db = Sum(dr, axes, T=float, Tidx=int32)").nodes["db"],
    }
    changed = graph.map_nodes(lambda node: forms.get(node.name, node))
    return Graph([const("axes", np.array([0, -2, 1], np.int32)), *changed])


@pytest.mark.parametrize("name", [name for name in CASES if name not in STRIDED])
def test_biases_that_python_adds_are_found(name: str, steps: list[str]) -> None:
    graph, feeds, wanted = layer(name)
    with Session(written_as_sums(graph)) as session:
        for found, each in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
            assert_close(found, each, 2e-6)
    assert steps == BOTH
    with Session(written_as_sums(graph), without=["canonical_biases"]) as session:
        session.run(list(wanted), feeds)
    assert steps == BOTH


@pytest.mark.parametrize("axes", [[0, 1, 3], [1, 2], [0, 1, 2, 3]])
def test_other_sums_stay(axes: Sequence[int], steps: list[str]) -> None:
    graph, feeds, _ = layer("narrow")
    graph = Graph([const("axes", np.array(axes, np.int32)), *[n for n in written_as_sums(graph) if n.name != "axes"]])
    with Session(graph) as session, Session(graph, engine="reference") as other:
        assert_close(session.run("db:0", feeds)[0], other.run("db:0", feeds)[0], 1e-5)
    assert steps == []


@pytest.mark.parametrize(
    ("axes", "told"),
    [("int32 [0, 1, 6]", "Invalid reduction dimension 6"), ("int32 [0, 1, 2], ^check", "not for this net")],
)
def test_sums_that_end_a_run_stay(axes: str, told: str) -> None:
    graph, feeds, _ = layer("narrow")
    checked = f"""
        wrong = Const(bool false)
        what = Const(string "not for this net")
        check = Assert(wrong, what, T=[string])
        axes = Const({axes})
    """
    graph = Graph([*parse(checked), *(node for node in written_as_sums(graph) if node.name != "axes")])
    with Session(graph) as session, pytest.raises(RunError, match=told):
        session.run("db:0", feeds)


def test_a_plan_says_so() -> None:
    graph, feeds, wanted = layer("depthwise")
    with Session(graph) as session, Session(graph, without=[PASS]) as other:
        assert numpy_gradients.LAYER_REASON in str(session.plan(list(wanted), feeds))
        assert numpy_gradients.LAYER_REASON not in str(other.plan(list(wanted), feeds))


def test_wide_windows_stay(monkeypatch: pytest.MonkeyPatch, steps: list[str]) -> None:
    monkeypatch.setattr(numpy_gradients, "FEW_LAID_OUT", 17)
    monkeypatch.setattr(numpy_gradients, "LEAST_TRAINED_LAYER", 10_000_000)
    monkeypatch.setattr(numpy_gradients, "LEAST_SHALLOW_LAYER", 10_000_000)
    graph, feeds, _ = layer("narrow")
    with Session(graph) as session:
        session.run(["db:0", "dw:0"], feeds)  # another call than that whose plan is kept
    assert steps == []


@pytest.mark.parametrize(("share", "is_fused"), [(1.0, False), (1.5, True)])
def test_wide_layers_that_come_sooner_in_tiles_stay(
    share: float, is_fused: bool, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    """By turns, one thread: four 3x3 layers of 8 to 64 channels, shares of 0.95, take 24.9 ms in tiles and 29.7 so."""
    monkeypatch.setattr(numpy_gradients, "share_in_tiles", lambda *_: share)
    graph, feeds, wanted = layer("wide")
    with Session(graph, cache_dir="") as session:
        session.run(list(wanted), feeds)
    assert (steps == BOTH) is is_fused


@pytest.mark.parametrize(("fed", "value"), [("x:0", np.nan), ("b:0", np.inf), ("w:0", -np.inf), ("slopes:0", np.nan)])
@pytest.mark.parametrize("name", ["1x1", "depthwise", "1x1, up to six", "depthwise, up to six"])
def test_numbers_that_are_not_finite(name: str, fed: str, value: float, steps: list[str]) -> None:
    graph, feeds, wanted = layer(name)
    feeds[fed] = feeds[fed].copy()
    feeds[fed].flat[1] = value
    with Session(graph) as session, Session(graph, engine="reference") as other:
        for one, two in zip(session.run(list(wanted), feeds), other.run(list(wanted), feeds), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
    assert steps == BOTH


@pytest.mark.parametrize("more", ["more = Neg(y, T=float)", "more = Neg(dr, T=float)"])
def test_who_wants_what_is_inside_has_it(more: str, steps: list[str]) -> None:
    graph, feeds, wanted = layer("1x1", more)
    with Session(graph) as session:
        found = session.run([*wanted, "more:0"], feeds)
    for one, two in zip(found[:-1], wanted.values(), strict=True):
        assert_close(one, two, 2e-6)
    assert np.isfinite(found[-1]).all()
    assert steps == []


def test_sizes_that_are_no_constants_are_looked_at(steps: list[str]) -> None:
    graph, feeds, wanted = layer("1x1")
    graph = graph.map_nodes(
        lambda node: node if node.name != "w_sizes" else parse("w_sizes = Shape(w, T=float)")["w_sizes"]
    )
    with Session(graph) as session:
        for one, two in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
            assert_close(one, two, 2e-6)
    assert steps == BOTH


def test_traced_and_limited_runs_take_the_nodes_one_by_one(steps: list[str]) -> None:
    graph, feeds, wanted = layer("depthwise")
    with Session(graph) as session:
        assert {"c", "dr", "db"} <= {node.name for node in session.profile(list(wanted), feeds).nodes}
    with Session(graph, memory_limit=1 << 24) as session:
        assert_close(session.run(["dw:0"], feeds)[0], wanted["dw:0"], 2e-6)
    assert steps == []
