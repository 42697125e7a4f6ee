"""Passes of large weights (``packed_weights``, ``constants_ahead``): results are the same without them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import constants_ahead, two_threads
from pocketgraph.litert.cost_model import PACKED_FROM
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.runtime import Session

ROWS, COLUMNS = 1536, 1400  # 8.6 MB


@pytest.fixture(scope="module")
def graph() -> Graph:
    weights = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    assert weights.nbytes >= PACKED_FROM
    found = parse(f"""
        x = Placeholder(dtype=float, shape=[1, {ROWS}])
        w = Const(float[{ROWS},{COLUMNS}] 0)
        y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    """)
    return found.map_nodes(
        lambda node: (
            node.replace(attrs={**node.attrs, "value": Tensor.from_numpy(weights)}) if node.name == "w" else node
        )
    )


def results(graph: Graph, folder: pathlib.Path, without: tuple[str, ...]) -> tuple[Any, set[type]]:
    """What a session gives, and how its parts run."""
    x = np.random.default_rng(2).standard_normal((1, ROWS)).astype(np.float32)
    with Session(graph, cache_dir=folder, without=without) as session:
        (found,) = session.run(["y"], {"x": x})
        kinds = {type(each._runner) for plan in session._plans.calls.plans.values() for each in plan.executables}
    return found, kinds


def test_results_are_the_same_without_it(graph: Graph, tmp_path: pathlib.Path) -> None:
    packed, packed_runners = results(graph, tmp_path / "one", ())
    plain, plain_runners = results(graph, tmp_path / "two", ("packed_weights",))
    np.testing.assert_array_equal(plain, packed)
    assert plain_runners == {PlainRunner}
    assert PlainRunner not in packed_runners


@pytest.mark.parametrize("also", [(), ("direct_packing",), ("packed_weights",)])
def test_results_are_the_same_without_a_thread_that_makes_constants(
    graph: Graph, also: tuple[str, ...], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    for module, name in ((constants_ahead, "_Ahead"), (two_threads, "both")):

        def noted(*args: Any, before: Any = getattr(module, name)) -> Any:
            started.append(args)
            return before(*args)

        monkeypatch.setattr(module, name, noted)
    plain, _ = results(graph, tmp_path / "one", ("constants_ahead", *also))
    assert not started
    usual, _ = results(graph, tmp_path / "two", also)
    assert started
    np.testing.assert_array_equal(plain, usual)


def test_without_it_nothing_packed_is_kept(graph: Graph, tmp_path: pathlib.Path) -> None:
    results(graph, tmp_path / "one", ())
    results(graph, tmp_path / "two", ("packed_weights",))
    kept = [
        sum(path.stat().st_size for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("one", "two")
    ]
    assert kept[1] < kept[0]
