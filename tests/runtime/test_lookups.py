"""Lookups of embeddings by sparse ids, as one step each, and late parts that know sizes, orders and constants of
branches (tools/make_lookup_graphs.py): TensorFlow 1.15's results, the same refusals, and what ran how."""

import pathlib
from typing import Any

import numpy as np
import pytest

from graph_files import graph_file, graph_names
from pocketgraph.errors import RunError
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines import fused_lookups
from pocketgraph.runtime.engines.fused_lookups import FusedCall
from pocketgraph.runtime.planning.dynamic_part import DynamicPart
from pocketgraph.runtime.profiling.profile import StepTrace
from pocketgraph.runtime.run_options import RunOptions
from recorded_runs import Arrays, assert_repeats, recorded_runs

FOLDER = pathlib.Path(__file__).parent / "lookups"
NAMES = graph_names(FOLDER)
SAFE = ("total", "mean", "over_root")
FUSED = (*SAFE, "three_axes", "default_row", "unsafe", "columns")


def runs_of(name: str) -> list[tuple[Arrays, Arrays]]:
    return recorded_runs(FOLDER, name)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", NAMES)
def test_equals_tensorflow(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    for _ in range(2):  # the second time from the cache
        assert_repeats(FOLDER, name, engine=engine, cache_dir=tmp_path)


@pytest.mark.parametrize("name", FUSED)
def test_is_one_step(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is plain is not run node by node."""
    calls: list[bool] = []
    whole = FusedCall.__call__

    def counted(self: FusedCall, run: Any, *arrays: Any) -> Any:
        calls.append(self.plain(*arrays) is not None)
        return whole(self, run, *arrays)

    monkeypatch.setattr(FusedCall, "__call__", counted)
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path) as session:
        for feeds, expected in runs_of(name):
            session.run(list(expected), feeds)
    assert calls
    assert all(calls)


def test_what_others_take_stays(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filled rows that are fetched are made once, by their own node; the lookup itself is one step."""
    found: list[Any] = []
    whole = fused_lookups.fused_lookups

    def noted(*arguments: Any) -> Any:
        made = whole(*arguments)
        found.extend(made)
        return made

    monkeypatch.setattr(fused_lookups, "fused_lookups", noted)
    with Session(graph_file(FOLDER, "shared_pieces"), cache_dir=tmp_path) as session:
        feeds, expected = runs_of("shared_pieces")[0]
        session.run(list(expected), feeds)
    assert found
    assert not any("SparseFillEmptyRows" in name.rsplit("/", 1)[-1] for segment in found for name in segment.members)


@pytest.mark.parametrize("name", SAFE)
def test_looked_at_node_by_node(name: str, tmp_path: pathlib.Path) -> None:
    """A trace has the nodes' own names; a memory limit and a time limit give the same numbers."""
    feeds, expected = runs_of(name)[1]
    fetches = list(expected)
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path) as session:
        trace = StepTrace()
        results = session.run(fetches, feeds, trace=trace)
        late = session.run(fetches, feeds, options=RunOptions(timeout_in_ms=60_000))
    assert {node.op for node in trace.nodes} >= {"SparseFillEmptyRows", "Unique"}
    for found in (results, late):
        np.testing.assert_allclose(found[0], expected[fetches[0]], rtol=2e-5, atol=2e-6)
    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path, memory_limit=1 << 20) as session:
        np.testing.assert_allclose(session.run(fetches, feeds)[0], expected[fetches[0]], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    ("places", "ids", "shape", "said"),
    [
        ([[0, 0]], [7], [1, 1], "not in"),
        ([[3, 0]], [1], [2, 1], "outside"),
    ],
)
def test_wrong_tensors(
    engine: str | None, places: Any, ids: Any, shape: Any, said: str, tmp_path: pathlib.Path
) -> None:
    """The same refusals, naming the node, whether the lookup is one step or not."""
    feeds = {"places:0": np.array(places, "i8"), "ids:0": np.array(ids, "i8"), "shape:0": np.array(shape, "i8")}
    fetches = list(runs_of("mean")[0][1])
    with Session(graph_file(FOLDER, "mean"), engine=engine, cache_dir=tmp_path) as session:
        with pytest.raises(RunError, match=said) as raised:
            session.run(fetches, feeds)
        assert "node '" in str(raised.value)


def test_what_stays_the_same_is_computed_once(tmp_path: pathlib.Path) -> None:
    """In a loop, whether the condition or the round needs it; and not at all where the loop has no round."""
    with Session(graph_file(FOLDER, "settled_products"), cache_dir=tmp_path) as session:
        for feeds, expected in runs_of("settled_products"):
            rounds = int(feeds["most:0"])
            trace = StepTrace()
            (result,) = session.run(list(expected), feeds, trace=trace)
            np.testing.assert_allclose(result, next(iter(expected.values())), rtol=2e-5, atol=2e-6)
            names = [node.name for node in trace.nodes]
            counts = {name: names.count(name) for name in ("while/MatMul", "while/MatMul_1", "while/MatMul_2")}
            assert counts == {"while/MatMul": 1, "while/MatMul_1": min(rounds, 1), "while/MatMul_2": rounds}


@pytest.mark.parametrize("name", ["cells_on_branches", "growing_products"])
def test_dynamic_parts_are_whole(name: str, tmp_path: pathlib.Path) -> None:
    """No part has parts of its own that are planned later still: its constants, sizes and orders are known to it."""
    import gc

    with Session(graph_file(FOLDER, f"{name}"), cache_dir=tmp_path) as session:
        for feeds, expected in runs_of(name):
            session.run(list(expected), feeds)
        plans = [plan for part in gc.get_objects() if isinstance(part, DynamicPart) for plan in part.plans.values()]
        assert any(plan.whole is not None for plan in plans)
        programs = [plan.program for plan in plans if plan.program is not None]
        assert not any(program.dynamic_parts for program in programs)
