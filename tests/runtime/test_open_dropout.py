"""Graphs that may still train share a program for all sizes: with dropout that keeps everything, and idle branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import program_building
from pocketgraph.runtime import Session

WEIGHTS = np.random.default_rng(3).standard_normal((8, 8)).round(3).astype(np.float32)
HEAD = f"""
    x = Placeholder(dtype=float, shape=[?, 8])
    w = Const(float[8, 8] {WEIGHTS.tolist()})
    h = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
"""
KEPT = parse(f"""
    {HEAD}
    keep = Placeholder(dtype=float, shape=[])
    shape = Shape(h, T=float, out_type=int32)
    low = Const(float 0.0)
    high = Const(float 1.0)
    u = RandomUniform(shape, T=int32, dtype=float, seed=3, seed2=5)
    range = Sub(high, low, T=float)
    scaled = Mul(u, range, T=float)
    uniform = Add(scaled, low, T=float)
    sum = Add(keep, uniform, T=float)
    mask = Floor(sum, T=float)
    div = RealDiv(h, keep, T=float)
    drop = Mul(div, mask, T=float)
    v = MatMul(drop, w, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(v, T=float)
""")
SWITCHED = parse(f"""
    {HEAD}
    no = Const(bool false)
    training = PlaceholderWithDefault(no, dtype=bool, shape=[])
    to = Switch(h, training, T=float)
    shape = Shape("to:1", T=float, out_type=int32)
    u = RandomUniform(shape, T=int32, dtype=float, seed=3, seed2=5)
    noisy = Mul("to:1", u, T=float)
    plain = Identity(to, T=float)
    merged = Merge(plain, noisy, T=float, N=2)
    v = MatMul(merged, w, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(v, T=float)
""")
COUNTS = (5, 7, 9, 12, 30, 31, 6, 11)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled for fixed sizes."""
    found: list[str] = []
    built = program_building.build

    def noted(program: Any, *rest: Any, **more: Any) -> Any:
        found.append(str([value.shape for value in program.inputs]))
        return built(program, *rest, **more)

    monkeypatch.setattr(program_building, "build", noted)
    return found


def rows(count: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, 8)).astype(np.float32) / 4


def expected(x: Array) -> Array:
    found: Array = np.tanh(x.astype(np.float64) @ WEIGHTS @ WEIGHTS)
    return found


@pytest.mark.parametrize("kind", ["kept", "switched"])
def test_what_does_not_train_shares_a_program(kind: str, compiled: list[str]) -> None:
    graph, more = {"kept": (KEPT, {"keep": np.float32(1.0).reshape(())}), "switched": (SWITCHED, {})}[kind]
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for count in COUNTS:
            x = rows(count)
            (found,) = session.run(["y"], {"x": x, **more})
            np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 1


@pytest.mark.parametrize("kind", ["kept", "switched"])
def test_what_trains_draws_numbers_at_every_size(kind: str) -> None:
    graph, off, on = {
        "kept": (KEPT, {"keep": np.float32(1.0).reshape(())}, {"keep": np.float32(0.5).reshape(())}),
        "switched": (SWITCHED, {"training": np.array(False)}, {"training": np.array(True)}),
    }[kind]
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for count in COUNTS:
            x = rows(count)
            (plain,) = session.run(["y"], {"x": x, **off})
            np.testing.assert_allclose(plain, expected(x), rtol=1e-4, atol=1e-5)
            one, two = (session.run(["y"], {"x": x, **on})[0] for _ in range(2))
            assert np.abs(one - two).max() > 1e-3
            assert np.abs(one - plain).max() > 1e-3


@pytest.mark.parametrize("name", ["remove_dropout", "drop_untaken_branches"])
def test_passes_that_are_switched_off_stay_off(name: str, compiled: list[str]) -> None:
    with Session(SWITCHED, cache_dir="", without=["first_on_reference", name, "take_defaults"]) as session:
        for count in COUNTS[:3]:
            x = rows(count)
            (found,) = session.run(["y"], {"x": x})
            np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-5)
