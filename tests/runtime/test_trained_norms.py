"""Batch norms that are trained, with and without a rectifier: two steps, with TensorFlow's results and gradients."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.nn import trained_normalization
from pocketgraph.runtime.planning import numpy_gradients
from support import ROOT, assert_close

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from trained_norm_cases import CASES, drawn  # noqa: E402

Feeds = dict[str, np.ndarray[Any, Any]]
PASS = "trained_batch_norms"
BOTH = ["normalized", "normalization_gradients"]


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_gradients, "LEAST_NUMPY_NORM", 0)
    monkeypatch.setattr(trained_normalization, "BLOCK", 100)
    monkeypatch.setattr(trained_normalization, "ROW", 24)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fused steps that were taken, in order."""
    taken: list[str] = []
    for name in BOTH:
        whole = getattr(trained_normalization, name)

        def noted(*args: Any, name: str = name, whole: Any = whole) -> Any:
            taken.append(name)
            return whole(*args)

        monkeypatch.setattr(trained_normalization, name, noted)
    return taken


def norm(name: str, version: str = "V3", more: str = "", training: str = "true") -> tuple[Graph, Feeds, Feeds]:
    """(a case's graph, its feeds, TensorFlow's results by what is fetched)."""
    case, given = CASES[name], drawn(name)
    with np.load(FIXTURES / "trained_norms.npz") as data:
        keys = ("rectified", "mean", "variance", "x", "scale", "offset")
        wanted = {key: data[f"{name} {key}"] for key in keys}
    attributes = f"epsilon={case.epsilon}, is_training={training}" + ("" if version == "" else ", T=float, U=float")
    attributes += ", T=float" if version == "" else ""
    averaged = f"{attributes}, exponential_avg_factor={case.exponential_avg_factor}"
    third = ", n:5" if version == "V3" else ""
    text = "".join(
        f"{key} = Placeholder(dtype=float, shape=[{','.join(map(str, value.shape))}])\n" for key, value in given.items()
    )
    text += f"n = FusedBatchNorm{version}(x, scale, offset, mean, variance, {averaged})\n"
    slopes, result = "slopes", "n:0"
    if case.rectifier:
        text += f"r = {case.rectifier}(n, T=float)\ndr = {case.rectifier}Grad(slopes, r, T=float)\n"
        slopes, result = "dr", "r:0"
    text += f"g = FusedBatchNormGrad{version}({slopes}, x, scale, n:3, n:4{third}, {attributes})\n{more}\n"
    text += "mean_now = Identity(n:1, T=float)\nvariance_now = Identity(n:2, T=float)\n"
    fetched = (result, "mean_now:0", "variance_now:0", "g:0", "g:1", "g:2")
    feeds = {f"{key}:0": value for key, value in given.items()}
    return parse(text), feeds, dict(zip(fetched, wanted.values(), strict=True))


@pytest.mark.parametrize("without", [(), (PASS,)], ids=["fused", "apart"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_tensorflows(name: str, without: tuple[str, ...], steps: list[str]) -> None:
    graph, feeds, wanted = norm(name)
    for _ in range(2):  # the second session finds the first one's plan
        with Session(graph, without=without) as session:
            for _ in range(2):
                for found, each in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
                    assert_close(found, each, 2e-5 if name == "far from zero" else 2e-6)
    assert steps == ([] if without else BOTH * 4)


@pytest.mark.parametrize("version", ["", "V2"])
def test_all_versions_are_found(version: str, steps: list[str]) -> None:
    graph, feeds, wanted = norm("rectified", version)
    with Session(graph) as session:
        for found, each in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
            assert_close(found, each, 2e-6)
    assert steps == BOTH


def test_a_plan_says_so() -> None:
    graph, feeds, wanted = norm("rectified")
    with Session(graph) as session, Session(graph, without=[PASS]) as other:
        assert str(session.plan(list(wanted), feeds)).count(numpy_gradients.NORM_REASON) == 4
        assert numpy_gradients.NORM_REASON not in str(other.plan(list(wanted), feeds))


def test_small_ones_stay(monkeypatch: pytest.MonkeyPatch, steps: list[str]) -> None:
    monkeypatch.setattr(numpy_gradients, "LEAST_NUMPY_NORM", 10**6)
    graph, feeds, wanted = norm("rectified")
    with Session(graph, cache_dir="") as session:
        assert numpy_gradients.NORM_REASON not in str(session.plan(list(wanted), feeds))


@pytest.mark.parametrize("more", ["other = Neg(n, T=float)", "other = Neg(dr, T=float)"])
def test_what_others_take_is_there(more: str, steps: list[str]) -> None:
    graph, feeds, wanted = norm("rectified", more=more)
    with Session(graph) as session, Session(graph, engine="reference") as other:
        found, sought = (each.run([*wanted, "other:0"], feeds) for each in (session, other))
        for one, two in zip(found, sought, strict=True):
            assert_close(one, two, 2e-6)
    assert steps == BOTH


@pytest.mark.parametrize("name", ["n:0", "dr:0", "n:3"])
def test_fetches_between_are_there(name: str) -> None:
    graph, feeds, wanted = norm("rectified")
    with Session(graph) as session, Session(graph, engine="reference") as other:
        for one, two in zip(*(each.run([*wanted, name], feeds) for each in (session, other)), strict=True):
            assert_close(one, two, 2e-6)


def test_known_statistics_stay(steps: list[str]) -> None:
    graph, feeds, wanted = norm("averages", training="false")
    with Session(graph) as session, Session(graph, engine="reference") as other:
        for one, two in zip(*(each.run(list(wanted), feeds) for each in (session, other)), strict=True):
            assert_close(one, two, 2e-6)
    assert steps == []


@pytest.mark.parametrize(
    ("fed", "value"), [("x:0", np.nan), ("x:0", np.inf), ("scale:0", np.nan), ("slopes:0", np.nan)]
)
@pytest.mark.parametrize("name", ["rectified", "up to six", "alone"])
def test_numbers_that_are_not_finite(name: str, fed: str, value: float, steps: list[str]) -> None:
    graph, feeds, wanted = norm(name)
    feeds[fed] = feeds[fed].copy()
    feeds[fed].flat[1] = value
    with Session(graph) as session, Session(graph, engine="reference") as other:
        for one, two in zip(*(each.run(list(wanted), feeds) for each in (session, other)), strict=True):
            np.testing.assert_array_equal(np.isfinite(one), np.isfinite(two))
            assert_close(np.nan_to_num(one), np.nan_to_num(two), 1e-5)
    assert steps == BOTH


def test_fed_images_that_do_not_lie_in_one_piece(steps: list[str]) -> None:
    graph, feeds, wanted = norm("rectified")
    feeds["x:0"] = np.asfortranarray(feeds["x:0"])
    with Session(graph) as session:
        for found, each in zip(session.run(list(wanted), feeds), wanted.values(), strict=True):
            assert_close(found, each, 2e-6)
    assert steps == BOTH
