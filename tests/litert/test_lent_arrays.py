"""Parts that take large arrays where they lie, once they have run often."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.recycled_arrays import aligned
from pocketgraph.litert import cached_executable, host
from pocketgraph.litert.cost_model import UPGRADED_AFTER
from pocketgraph.litert.native import c_library
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.running.in_place_runner import InPlaceRunner
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.runtime import Session

ROWS, COLUMNS = 512, 256
NET = parse(f"""
    x = Placeholder(dtype=float, shape=[{ROWS},{COLUMNS}])
    s = Placeholder(dtype=float, shape=[{COLUMNS}])
    scaled = Mul(x, s, T=float)
    y = Relu(scaled, T=float)
    axes = Const(int32 [0])
    total = Sum(y, axes, T=float, Tidx=int32, keep_dims=false)
""")
SCALES = np.linspace(-1, 1, COLUMNS, dtype=np.float32)
known = pytest.mark.skipif(not host.engine_version().startswith(c_library.KNOWN), reason="another version of LiteRT")


def drawn(turn: int, rows: int = ROWS, columns: int = COLUMNS) -> Array:
    made: Array = np.random.default_rng(turn).standard_normal((rows, columns)).astype(np.float32)
    return made


def run(session: Session, x: Array) -> list[Array]:
    made: list[Array] = session.run(["y", "total"], {"x": x, "s": SCALES})
    expected = np.maximum(x * SCALES, 0)
    np.testing.assert_array_equal(made[0], expected)
    np.testing.assert_allclose(made[1], expected.sum(axis=0), rtol=1e-4, atol=1e-4)
    return made


def runner_of(session: Session) -> Any:
    (prepared,) = session._calls.plans.values()
    (executable,) = prepared.executables  # type: ignore[attr-defined]
    return getattr(executable._runner, "_runner", executable._runner)


@known
def test_large_arrays_are_lent_and_small_ones_copied(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lent, lend = [], InPlaceModel._lent

    def noted(self: InPlaceModel, stack: Any, kind: Any, array: Array) -> Any:
        lent.append(array.shape)
        return lend(self, stack, kind, array)

    monkeypatch.setattr(InPlaceModel, "_lent", noted)
    x = aligned((ROWS, COLUMNS), np.float32)
    with Session(NET, cache_dir=tmp_path, threads=1) as session:
        x[...] = drawn(0)
        run(session, x)
        assert isinstance(runner_of(session), PlainRunner)
        for _ in range(UPGRADED_AFTER):
            run(session, x)
        kept = []
        for turn in range(4):
            x[...] = drawn(turn)
            before = x.copy()
            kept.append((before, run(session, x)))
            np.testing.assert_array_equal(x, before)
        assert isinstance(runner_of(session), InPlaceRunner)
        assert set(lent) == {(ROWS, COLUMNS)}
        for before, (y, _) in kept:  # a later run leaves earlier results alone
            np.testing.assert_array_equal(y, np.maximum(before * SCALES, 0))


@known
@pytest.mark.parametrize("layout", ["unaligned", "columns", "apart"])
def test_arrays_of_any_layout_are_taken(tmp_path: pathlib.Path, layout: str) -> None:
    with Session(NET, cache_dir=tmp_path, threads=1) as session:
        for turn in range(UPGRADED_AFTER + 2):
            source = drawn(turn, ROWS, COLUMNS)
            if layout == "unaligned":
                room = aligned((ROWS * COLUMNS + 1,), np.float32)[1:].reshape(ROWS, COLUMNS)
                room[...] = source
            elif layout == "columns":
                room = np.asfortranarray(source)
            else:
                room = np.repeat(source, 2, axis=1)[:, ::2]
            run(session, room)
        assert isinstance(runner_of(session), InPlaceRunner)


@known
def test_what_fails_is_told_as_before_and_the_next_run_is_right(tmp_path: pathlib.Path) -> None:
    net = parse(f"""
        x = Placeholder(dtype=float, shape=[{ROWS},{COLUMNS}])
        at = Placeholder(dtype=int32, shape=[{ROWS}])
        a = Placeholder(dtype=int32, shape=[{ROWS},{COLUMNS}])
        by = Placeholder(dtype=int32, shape=[{COLUMNS}])
        axis = Const(int32 0)
        grown = Exp(x, T=float)
        y = GatherV2(grown, at, axis, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
        parts = FloorDiv(a, by, T=int32)
    """)
    feeds = {"x": drawn(0), "a": np.arange(ROWS * COLUMNS, dtype=np.int32).reshape(ROWS, COLUMNS)}
    feeds |= {"at": np.arange(ROWS, dtype=np.int32), "by": np.ones(COLUMNS, np.int32)}
    with Session(net, cache_dir=tmp_path, threads=1) as session:
        for _ in range(UPGRADED_AFTER + 2):
            session.run(["y", "parts"], feeds)
        assert isinstance(runner_of(session), InPlaceRunner)
        with pytest.raises(RunError, match="Integer division by zero"):
            session.run(["y", "parts"], {**feeds, "by": feeds["by"] * 0})
        np.testing.assert_array_equal(session.run(["y", "parts"], feeds)[1], feeds["a"])


@pytest.mark.parametrize("without", ["lent_arrays", "recycled_arrays"])
def test_switched_off_all_are_copied(tmp_path: pathlib.Path, without: str) -> None:
    with Session(NET, cache_dir=tmp_path, threads=1, without=[without]) as session:
        for turn in range(UPGRADED_AFTER + 2):
            run(session, drawn(turn))
        assert isinstance(runner_of(session), PlainRunner)


def test_another_library_is_left_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_library, "KNOWN", ("0.0.",))
    with Session(NET, cache_dir=tmp_path, threads=1) as session:
        for turn in range(UPGRADED_AFTER + 2):
            run(session, drawn(turn))
        assert isinstance(runner_of(session), PlainRunner)


@pytest.mark.parametrize(
    ("sizes", "work", "is_much"),
    [((64, 64), 10, False), ((1024, 256), 1_000_000, True), ((1024, 256), 1_000_000_000, False)],
)
def test_parts_that_compute_long_or_move_little_stay_as_they_are(
    sizes: Sequence[int], work: int, is_much: bool
) -> None:
    about = {"fed": [0], "inputs": [("x", "float32", list(sizes))], "computed": [([2], "float32")], "work": work}
    assert cached_executable._moves_much(about) is is_much


def test_many_small_arrays_are_left_to_the_interpreter() -> None:
    about = {"fed": [], "inputs": [], "computed": [([128, 128], "float32")] * 40, "work": 0}
    assert not cached_executable._moves_much(about)
