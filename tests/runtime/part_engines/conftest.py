"""What the tests of engines share: an installed package, measured times, and when parts are compared."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pocketgraph.exporting.onnx import onnxruntime_engine
from pocketgraph.exporting.onnx import openvino_engine as openvino
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.part_engines import available_engines, engine_choice
from pocketgraph.runtime.part_engines.paired_timing import PairedTimes
from runtime.part_engines.package_engine import MODULE


@pytest.fixture
def mine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of an installed package that offers two engines, one of which is none."""
    place = tmp_path / "site"
    (place / "mine-1.5.dist-info").mkdir(parents=True)
    (place / "mine-1.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.5\n")
    (place / "mine-1.5.dist-info" / "entry_points.txt").write_text(
        "[pocketgraph.engines]\nmine = mine_engine:ENGINE\nhalf = mine_engine:HALF\nbroken = mine_engine:NOTHING\n"
    )
    (place / "mine_engine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "mine_engine", raising=False)
    available_engines.offered.cache_clear()
    import mine_engine  # type: ignore[import-not-found]

    yield mine_engine
    available_engines.offered.cache_clear()
    sys.modules.pop("mine_engine", None)


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    check_schedule.finish()
    yield
    check_schedule.finish()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Every part counts as large, the extras as not installed; what is measured is the ratio under "mine"."""
    times = {"mine": 0.5}
    monkeypatch.setattr(engine_choice, "LARGE_PART", 0)
    for module in (openvino, onnxruntime_engine):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(
        engine_choice, "times_in_turns", lambda ours, other, threads: PairedTimes(0.01, times["mine"], True)
    )
    return times


@pytest.fixture
def checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are compared at first use, however much of that earlier tests of this process have done."""
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: True)
