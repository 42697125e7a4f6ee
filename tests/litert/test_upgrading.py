"""Models whose weights are packed once, when they have run often."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.formats import save
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.tensor import Array
from pocketgraph.litert import cached_executable
from pocketgraph.litert.cost_model import UPGRADED_AFTER
from pocketgraph.litert.running.packed_runner import PackedRunner
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.upgrading import UpgradingRunner
from pocketgraph.runtime import Session

FLOAT = DType.named("float")


class Noted:
    """A runner that says who ran."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_closed = False

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        assert not self.is_closed
        return [inputs[0] + self.number]

    def direct(self, places: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        return lambda arrays: self.run([arrays[place] for place in places])

    def close(self) -> None:
        self.is_closed = True


def test_the_better_one_is_made_once_and_late() -> None:
    first, second, made = Noted(0), Noted(100), []

    def better() -> Noted:
        made.append(1)
        return second

    runner = UpgradingRunner(first, UPGRADED_AFTER, better)
    direct = runner.direct([1])
    for turn in range(3 * UPGRADED_AFTER):
        step: Callable[[], list[Array]] = (lambda: runner.run([np.ones(1)])) if turn % 2 else (
            lambda: direct([np.zeros(2), np.ones(1)])
        )  # fmt: skip
        assert step()[0].item() == (1 if turn < UPGRADED_AFTER else 101)
        assert first.is_closed is (turn >= UPGRADED_AFTER)
    assert made == [1]
    runner.close()
    assert second.is_closed


@pytest.mark.parametrize("error", [RunError("refused"), OSError("full")])
def test_the_first_one_goes_on_where_there_is_no_better(error: Exception) -> None:
    def refused() -> Noted:
        raise error

    runner = UpgradingRunner(Noted(0), UPGRADED_AFTER, refused)
    for _ in range(2 * UPGRADED_AFTER):
        assert runner.run([np.ones(1)])[0].item() == 1


def test_closed_before() -> None:
    first = Noted(0)
    UpgradingRunner(first, 1, lambda: Noted(1)).close()
    assert first.is_closed


def test_a_session_packs_what_it_runs_often(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_executable, "REPEATED_FROM", 0)
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((2, 64))}),
        const("w", weights),
        Node("y", "MatMul", ["x", "w"], {"T": FLOAT}),
    ]
    save(Graph(nodes), tmp_path / "model.pb")
    x = np.ones((2, 64), np.float32)
    cache = tmp_path / "cache"
    for process in range(2):
        with Session(tmp_path / "model.pb", cache_dir=cache) as session:
            (first,) = session.run(["y"], {"x": x})
            (prepared,) = session._calls.plans.values()
            runner: Any = prepared.executables[0]._runner  # type: ignore[attr-defined]
            assert isinstance(runner._runner, PlainRunner)
            assert bool(list(cache.glob("*.xnn"))) is bool(process)
            for _ in range(UPGRADED_AFTER + 1):
                np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], first)
            assert isinstance(runner._runner, PackedRunner)
            assert list(cache.glob("*.xnn"))
            assert not list(cache.glob("*.part"))
    np.testing.assert_allclose(first, x @ weights, rtol=1e-5, atol=1e-5)
