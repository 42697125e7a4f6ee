"""Networks over pictures of any size: one program serves them, and gives what TensorFlow does at each size.

fixtures/make_open_sizes.py made the graphs and the results.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from graph_files import graph_file, graph_names
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.sizes.open_program import OpenProgram
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates.agreement import Agreement
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.planning.sizes import opened_parts, opened_programs, resizable_calls

GRAPHS = pathlib.Path(__file__).parent / "open_size_graphs"
SERVED = 20
"""Of 32 sizes: the first has a plan of its own, as those of size 1 have; others are too small for some windows."""


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[Agreement | None]:
    """Of the programs that were compared."""
    found: list[Agreement | None] = []
    compared = FirstComparison.__call__

    def noted(self: FirstComparison, *what: Any) -> list[Array]:
        results = compared(self, *what)
        found.append(self._part.verdict)
        return results

    monkeypatch.setattr(FirstComparison, "__call__", noted)
    return found


def golden(name: str) -> tuple[Array, dict[tuple[int, int], Array]]:
    with np.load(GRAPHS / f"{name}.npz") as data:
        results = {tuple(map(int, key.split())): data[key] for key in data.files if key != "x"}
        return data["x"], results  # type: ignore[return-value]


@pytest.mark.parametrize("name", graph_names(GRAPHS))
def test_results_are_tensorflows_at_every_size(name: str, verdicts: list[Agreement | None], resized: list[Any]) -> None:
    whole, expected = golden(name)
    with Session(graph_file(GRAPHS, name), cache_dir="", without=["first_on_reference"]) as session:
        for (rows, columns), result in [*expected.items(), *reversed(expected.items())]:
            feeds = {"x": whole[:, :rows, :columns]}
            if result.ndim == 1:  # TensorFlow refuses that
                with pytest.raises(PocketgraphError):
                    session.run(["y"], feeds)
                continue
            (found,) = session.run(["y"], feeds)
            assert found.shape == result.shape, (rows, columns)
            np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-5, err_msg=f"{rows} x {columns}")
    assert verdicts == [Agreement.RIGHT]
    assert len(set(resized)) >= SERVED


@pytest.mark.parametrize("first", [(24, 24), (25, 23), (14, 15)])
@pytest.mark.parametrize("name", graph_names(GRAPHS))
def test_whatever_size_comes_first(name: str, first: tuple[int, int], resized: list[Any]) -> None:
    """A form that holds for even sizes only, or that a size happens to have, would show."""
    whole, expected = golden(name)
    sizes = [first, (17, 30), (16, 16), (31, 18), (20, 21), (22, 26), (19, 19)]
    with Session(graph_file(GRAPHS, name), cache_dir="", without=["first_on_reference"]) as session:
        for rows, columns in sizes:
            (found,) = session.run(["y"], {"x": whole[:, :rows, :columns]})
            np.testing.assert_allclose(found, expected[rows, columns], rtol=1e-4, atol=1e-5)
    assert len(set(resized)) >= 4


def test_larger_pictures_are_served_where_the_first_were_too_small(
    monkeypatch: pytest.MonkeyPatch, resized: list[Any]
) -> None:
    """Of five rows, the third is the third from either border: which one is mirrored is not certain."""
    monkeypatch.setattr(resizable_calls, "ANEW", 0.0)
    whole, expected = golden("mirrors")
    with Session(graph_file(GRAPHS, "mirrors"), cache_dir="", without=["first_on_reference"]) as session:
        for rows, columns in [(5, 4), (24, 24), (22, 26), (17, 30)]:
            (found,) = session.run(["y"], {"x": whole[:, :rows, :columns]})
            np.testing.assert_allclose(found, expected[rows, columns], rtol=1e-4, atol=1e-5)
    assert [shapes[0][1:3] for shapes in resized] == [(22, 26), (17, 30)]


@pytest.mark.parametrize("batch", [1, 3])
def test_narrow_convolutions_make_several_pixels_at_once(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    programs: list[OpenProgram] = []
    widened = opened_programs.widened_for_all

    def noted(found: OpenProgram, *how: Any, **more: Any) -> OpenProgram:
        programs.append(widened(found, *how, **more))
        return programs[-1]

    monkeypatch.setattr(opened_programs, "widened_for_all", noted)
    monkeypatch.setattr(opened_parts, "widened_for_all", noted)
    whole, expected = golden("narrow")
    graph = graph_file(GRAPHS, "narrow")
    for without in ((), ("widen_narrow_convolutions",)):
        with Session(graph, cache_dir="", without=["first_on_reference", *without]) as session:
            for rows, columns in [(24, 24), (25, 23), (22, 26), (17, 30), (12, 17), (31, 18)]:
                cut = np.concatenate([whole[:, :rows, :columns]] * batch)
                (found,) = session.run(["y"], {"x": cut})
                for image in found:
                    np.testing.assert_allclose(image, expected[rows, columns][0], rtol=1e-4, atol=1e-5)
    wide, narrow = (
        [each.inputs[1].shape[0] for each in program.operations if each.code == "CONV_2D" and each.inputs[1]]
        for program in (each.program for each in programs)
    )
    assert narrow == [3, 6, 5, 3]
    assert sum(more > count for more, count in zip(wide, narrow, strict=True)) >= 2


def test_pixels_in_pairs_of_the_first_size_hold_for_no_other(verdicts: list[Agreement | None]) -> None:
    graph = Graph(
        [
            *parse("""
                x = Placeholder(dtype=float, shape=[?,?,?,32])
                y = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
            """),
            const("w", np.ones((3, 3, 32, 8), np.float32)),
        ]
    )
    random = np.random.default_rng(5)
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for columns in (64, 62, 62, 61, 33, 60):
            x = random.integers(-9, 9, (1, 64, columns, 32)).astype(np.float32)
            wide = np.pad(x.sum(axis=-1), ((0, 0), (1, 1), (1, 1)))
            right = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2)).sum(axis=(-2, -1))
            (found,) = session.run(["y"], {"x": x})
            assert found.shape == (1, 64, columns, 8)
            np.testing.assert_array_equal(found, np.repeat(right[..., None], 8, axis=-1))
    assert verdicts == [Agreement.RIGHT]


def test_what_is_not_finite_reaches_no_more_pixels_where_that_is_asked_for() -> None:
    whole, _ = golden("narrow")
    graph = graph_file(GRAPHS, "narrow")
    x = whole.copy()
    x[0, 9, 11] = np.inf
    with (
        Session(graph, cache_dir="", strict=True, without=["first_on_reference"]) as session,
        Session(graph, engine="reference") as reference,
    ):
        for rows, columns in [(24, 24), (25, 23), (22, 26), (17, 30)]:
            (found,), (expected,) = (each.run(["y"], {"x": x[:, :rows, :columns]}) for each in (session, reference))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
