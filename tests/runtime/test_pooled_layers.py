"""Layers of a convolution and a max pool that are trained: two steps, with TensorFlow's results and gradients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.nn import pooled_convolution, rectified_convolution, wide_pooled_convolution
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.packing import changing_weights
from pocketgraph.runtime.engines import trained_convolutions
from pocketgraph.runtime.engines.layer_nodes import LayerCall
from pocketgraph.runtime.planning import numpy_gradients
from support import ROOT, assert_close, listed, window_text

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from pooled_layer_cases import CASES, drawn  # noqa: E402

NAMES = ["p:0", "dw:0", "db:0"]
KEYS = ("pooled", "w", "b", "x")
Feeds = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_gradients, "LEAST_NUMPY_GRADIENT", 0)
    monkeypatch.setattr(numpy_gradients, "LEAST_TRAINED_LAYER", 0)
    monkeypatch.setattr(numpy_gradients, "LEAST_SHALLOW_LAYER", 0)
    monkeypatch.setattr(numpy_gradients, "share_in_tiles", lambda *_: None)
    monkeypatch.setattr(trained_convolutions, "LEAST_NUMPY_GRADIENT", 0)
    monkeypatch.setattr(pooled_convolution, "TOGETHER", 20)
    monkeypatch.setattr(rectified_convolution, "TOGETHER", 2000)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fused steps that were taken with a result, in order."""
    taken: list[str] = []
    for module in (pooled_convolution, wide_pooled_convolution):
        for name in ("pooled_convolution", "pooled_gradients"):
            is_wide = module is wide_pooled_convolution
            whole = getattr(module, "wide_" * is_wide + name)

            def noted(*args: Any, name: str = name, whole: Any = whole) -> Any:
                found = whole(*args)
                taken.extend([name] if found is not None else [])
                return found

            monkeypatch.setattr(module, "wide_" * is_wide + name, noted)
    return taken


def layer(name: str) -> tuple[Graph, Feeds, dict[str, np.ndarray[Any, Any]]]:
    """(a case's graph, its feeds, TensorFlow's results)."""
    case = CASES[name]
    with np.load(FIXTURES / "pooled_layers.npz") as data:
        wanted = {key: data[f"{name} {key}"] for key in (*KEYS, "slopes")}
    window = window_text(case.window)
    size = listed((1, *case.pool, 1))
    pool = f'T=float, ksize={size}, strides={size}, padding="{case.padding}"'
    text = f"""
        x = Placeholder(dtype=float, shape=[?,{",".join(map(str, case.images[1:]))}])
        w = Placeholder(dtype=float, shape=[{",".join(map(str, case.weights))}])
        b = Placeholder(dtype=float, shape=[{case.weights[-1]}])
        slopes = Placeholder(dtype=float, shape=[?,{",".join(map(str, wanted["slopes"].shape[1:]))}])
        c = Conv2D(x, w, T=float, {window})
        y = BiasAdd(c, b, T=float)
        r = Relu(y, T=float)
        p = MaxPool(r, {pool})
        dp = MaxPoolGrad(r, p, slopes, {pool})
        dr = ReluGrad(dp, r, T=float)
        db = BiasAddGrad(dr, T=float)
        dw = Conv2DBackpropFilter(x, sizes, dr, T=float, {window})
        dx = Conv2DBackpropInput(images, w, dr, T=float, {window})
    """
    sizes = {"sizes": case.weights, "images": case.images}
    constants = [const(key, np.array(value, np.int32)) for key, value in sizes.items()]
    graph = Graph([*constants, *(node for node in parse(text) if node.name != "dx" or case.by_images)])
    return graph, {**{f"{key}:0": value for key, value in drawn(name).items()}, "slopes:0": wanted["slopes"]}, wanted


def names_of(name: str) -> list[str]:
    return [*NAMES, *(["dx:0"] if CASES[name].by_images else [])]


@pytest.mark.parametrize("without", [(), ("fused_pooled_layers",)], ids=["fused", "apart"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_tensorflows(name: str, without: Sequence[str], steps: list[str]) -> None:
    graph, feeds, wanted = layer(name)
    for _ in range(2):  # the second session finds the first one's plan
        with Session(graph, without=without) as session:
            for _ in range(3):  # the third time XNNPACK computes the convolutions of wide layers
                for key, found in zip(KEYS, session.run(names_of(name), feeds), strict=False):
                    assert_close(found, wanted[key], 2e-6)
    assert steps == ([] if without else ["pooled_convolution", "pooled_gradients"] * 6)


def test_a_plan_says_so_and_small_layers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, feeds, _ = layer("3x3")
    off = ["fused_pooled_layers", "fused_rectified_layers", "changing_weights"]
    with Session(graph) as session, Session(graph, without=off) as other:
        assert numpy_gradients.LAYER_REASON in str(session.plan(NAMES, feeds))
        assert numpy_gradients.LAYER_REASON not in str(other.plan(NAMES, feeds))
    monkeypatch.setattr(numpy_gradients, "LEAST_NUMPY_GRADIENT", 10_000_000)
    monkeypatch.setattr(numpy_gradients, "LEAST_TRAINED_LAYER", 10_000_000)
    monkeypatch.setattr(numpy_gradients, "LEAST_SHALLOW_LAYER", 10_000_000)
    with Session(graph, without=["fold_constants"]) as session:
        assert numpy_gradients.LAYER_REASON not in str(session.plan(NAMES, feeds))


def test_wide_layers_are_xnnpacks_where_weights_may_change(monkeypatch: pytest.MonkeyPatch, steps: list[str]) -> None:
    """From the second run on, where fewer images are left the third: forward, and the gradient by the images."""
    shapes: list[tuple[int, ...]] = []
    whole = InPlaceModel.run_into

    def noted(self: InPlaceModel, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        whole(self, inputs, results)
        shapes.append(results[0].shape)

    monkeypatch.setattr(InPlaceModel, "run_into", noted)
    monkeypatch.setattr(changing_weights, "_is_right", lambda *_: True)
    graph, feeds, wanted = layer("wide")
    for without, expected in (("", [(2, 8, 6, 20)] * 2 + [(1, 8, 6, 20)] + [(2, 8, 6, 12)] * 2 + [(1, 8, 6, 12)]),
                              ("changing_weights", [])):  # fmt: skip
        steps.clear()
        with Session(graph, without=[*filter(None, [without])]) as session:
            for _ in range(2):
                session.run(names_of("wide"), feeds)
            shapes.clear()
            for key, found in zip(KEYS, session.run(names_of("wide"), feeds), strict=True):
                assert_close(found, wanted[key], 2e-6)
        assert [shape for shape in shapes if len(shape) == 4] == expected
        assert bool(steps) == (not without)


@pytest.mark.parametrize(
    ("share", "is_fused", "other_call"),
    [(0.9, False, "step_codegen"), (1.0, True, "direct_calls"), (None, True, "share_constants")],
)
def test_wide_layers_that_come_sooner_in_tiles_stay(
    share: float | None, is_fused: bool, other_call: str, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    monkeypatch.setattr(numpy_gradients, "share_in_tiles", lambda *_: share)
    graph, feeds, _ = layer("wide")
    with Session(graph, without=[other_call]) as session:  # than that whose plan is kept
        session.run(names_of("wide"), feeds)
    assert bool(steps) == is_fused


@pytest.mark.parametrize("fed", ["x:0", "b:0", "w:0", "slopes:0"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("name", ["3x3", "valid, odd sizes", "wide", "wide, valid, odd sizes"])
def test_numbers_that_are_not_finite(name: str, place: int, value: float, fed: str) -> None:
    graph, feeds, _ = layer(name)
    feeds[fed] = feeds[fed].copy()
    feeds[fed].flat[place] = value
    names = names_of(name)
    with Session(graph) as session, Session(graph, engine="reference") as other:
        theirs = other.run(names, feeds)
        for _ in range(3):
            for one, two in zip(session.run(names, feeds), theirs, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def test_a_nan_that_is_first_in_its_window_takes_no_gradient(steps: list[str]) -> None:
    """The pool's gradient goes there, and the rectifier's ends it, though the window's result is a number."""
    graph, feeds, _ = layer("one pixel")
    for name, value in (("x:0", 1.0), ("w:0", 1.0), ("b:0", 0.0), ("slopes:0", 5.0)):
        feeds[name] = np.full_like(feeds[name], value)
    feeds["x:0"][0, 0, 0, 0] = np.nan
    with Session(graph) as session:
        pooled, by_weights, by_bias = session.run(NAMES, feeds)
    np.testing.assert_array_equal(pooled, np.full((1, 1, 1, 2), 3, np.float32))
    np.testing.assert_array_equal(by_bias, [0, 0])
    np.testing.assert_array_equal(np.isnan(by_weights[0, 0]), [[True, True], [False, False], [False, False]])
    assert not steps


def test_an_image_that_no_pool_sees_counts(steps: list[str]) -> None:
    """An infinity under a window that is in no pool's makes NaN of the gradient: it is multiplied by 0."""
    graph, feeds, _ = layer("valid, odd sizes")
    feeds["x:0"] = feeds["x:0"].copy()
    feeds["x:0"][0, -1, -1, 0] = np.inf
    with Session(graph) as session:
        pooled, by_weights, _ = session.run(NAMES, feeds)
    assert np.isfinite(pooled).all()
    assert np.isnan(by_weights).any()
    assert not steps


def test_the_bias_may_stay_as_it_is(steps: list[str]) -> None:
    graph, feeds, wanted = layer("3x3")
    with Session(graph) as session:
        assert_close(session.run(["dw:0"], feeds)[0], wanted["w"], 2e-6)
    assert steps == ["pooled_convolution", "pooled_gradients"]


def test_numbers_that_the_bias_makes_equal_are_equal(steps: list[str]) -> None:
    """The convolution's results are smaller than what a bias of 1 can tell apart: the first of a window counts."""
    graph, feeds, _ = layer("3x3")
    feeds["w:0"], feeds["b:0"] = feeds["w:0"] * np.float32(1e-10), np.ones_like(feeds["b:0"])
    with Session(graph) as session, Session(graph, engine="reference") as other:
        mine, theirs = session.run(NAMES, feeds), other.run(NAMES, feeds)
    for one, two in zip(mine, theirs, strict=True):
        assert_close(one, two, 2e-6)
    assert steps == ["pooled_convolution", "pooled_gradients"]


def test_no_images(steps: list[str]) -> None:
    graph, feeds, _ = layer("3x3")
    feeds["x:0"], feeds["slopes:0"] = feeds["x:0"][:0], feeds["slopes:0"][:0]
    with Session(graph) as session:
        pooled, by_weights, by_bias = session.run(NAMES, feeds)
    assert (pooled.shape, by_weights.shape) == ((0, 4, 4, 5), (3, 3, 1, 5))
    assert not by_weights.any()
    assert not by_bias.any()
    assert steps == []


def test_who_wants_what_is_inside_has_it(steps: list[str]) -> None:
    graph, feeds, wanted = layer("3x3")
    with Session(graph) as session:
        rectified, by_weights = session.run(["r:0", "dw:0"], feeds)
        assert rectified.shape == (2, 8, 8, 5)
        assert steps == []
        assert_close(by_weights, wanted["w"], 2e-6)


@pytest.mark.parametrize("without", [(), ("fused_pooled_layers",)], ids=["fused", "apart"])
@pytest.mark.parametrize("fed", ["p:0", "r:0", "dp:0", "dr:0", "y:0"])
def test_what_is_inside_may_be_fed(fed: str, without: Sequence[str], steps: list[str]) -> None:
    """A fed result of the pool is not the largest of the rectifier's, which decides what the gradient passes."""
    graph, feeds, _ = layer("3x3")
    with Session(graph) as session:
        (inside,) = session.run([fed], feeds)
    feeds[fed] = np.roll(inside, 1, axis=1) - np.float32(0.5)
    with Session(graph, without=without) as session, Session(graph, engine="reference") as other:
        for one, two in zip(session.run(["dw:0", "db:0"], feeds), other.run(["dw:0", "db:0"], feeds), strict=True):
            assert_close(one, two, 2e-6)
    assert "pooled_gradients" not in steps


def test_traced_and_limited_runs_take_the_nodes_one_by_one(steps: list[str]) -> None:
    graph, feeds, wanted = layer("3x3")
    with Session(graph) as session:
        found = session.profile(NAMES, feeds)
        assert {"c", "r", "dp"} & {node.name for node in found.nodes}
    with Session(graph, memory_limit=1 << 24) as session:
        assert_close(session.run(["dw:0"], feeds)[0], wanted["w"], 2e-6)
    assert steps == []


def test_products_of_a_trained_layer_take_one_thread() -> None:
    """OpenBLAS's own wait for each other in each of many small ones, long where other programs run."""

    class Layer(LayerCall):
        def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
            return (blas_threads.used(),)

    run = SimpleNamespace(trace=None, ledger=None, deadline=None)
    assert Layer(lambda *arrays: (), Node("dw", "NoOp"))(run) == (1,)
