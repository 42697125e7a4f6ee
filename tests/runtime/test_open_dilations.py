"""Dilations that are written as batches, with borders that depend on the length: one program serves all lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert import program_building
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.planning.sizes import opened_parts
from pocketgraph.runtime.planning.sizes.size_terms import SizeTerms

FRONT, RATE = 4, 3
WEIGHTS = np.random.default_rng(3).standard_normal((3, 2, 5)).astype(np.float32).round(3)
BORDERS = """
    s = Shape(front, T=float, out_type=int32)
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    steps = StridedSlice(s, one, two, one, T=int32, Index=int32)
    rate = Const(int32[1] [3])
    over = FloorMod(steps, rate, T=int32)
    lacking = Sub(rate, over, T=int32)
    more = FloorMod(lacking, rate, T=int32)
    nothing = Const(int32[1] [0])
    behind = AddV2(nothing, more, T=int32)
    row = Pack(nothing, behind, T=int32, N=2, axis=1)
"""
LAYER = """
    x = Placeholder(dtype=float, shape=[1, ?, 2])
    zeros = Const(int32[3, 2] [[0, 0], [4, 0], [0, 0]])
    front = Pad(x, zeros, T=float, Tpaddings=int32)
    {borders}
    batches = SpaceToBatchND(front, rate, row, T=float, Tblock_shape=int32, Tpaddings=int32)
    axis = Const(int32 1)
    pictures = ExpandDims(batches, axis, T=float, Tdim=int32)
    w = Const(float[1, 3, 2, 5] {weights})
    c = Conv2D(pictures, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    lines = Squeeze(c, T=float, squeeze_dims=[1])
    crops = {crops}
    together = BatchToSpaceND(lines, rate, crops, T=float, Tblock_shape=int32, Tcrops=int32)
    y = Tanh(together, T=float)
"""
SAME_BORDERS = "Pack(nothing, more, T=int32, N=2, axis=1)"


def graph(crops: str = SAME_BORDERS, borders: str = BORDERS) -> Graph:
    return parse(LAYER.format(borders=borders, weights=WEIGHTS.reshape(1, 3, 2, 5).tolist(), crops=crops))


def computed(x: Array) -> Array:
    """Tap by tap, in doubles."""
    padded = np.concatenate([np.zeros((1, FRONT, 2)), x], axis=1)
    count = padded.shape[1] - 2 * RATE
    return np.tanh(sum(padded[:, tap * RATE :][:, :count] @ WEIGHTS[tap] for tap in range(3)))


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedule.finish()
    monkeypatch.setattr(check_schedule, "LOOK", 3600.0)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs for all sizes."""
    found: list[Any] = []
    opening = opened_parts.with_open_sizes

    def noted(*args: Any) -> Any:
        found.append(opening(*args))
        return found[-1]

    monkeypatch.setattr(opened_parts, "with_open_sizes", noted)
    return found


def numbers(length: int) -> Array:
    return np.random.default_rng(length).standard_normal((1, length, 2)).astype(np.float32)


@pytest.mark.parametrize("lengths", [(9, 10, 11, 12, 13, 30, 9), (8, 30, 9, 7, 21, 5)])
def test_one_program_serves_all_lengths(
    lengths: tuple[int, ...], opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[set[str]] = []
    build = program_building.build

    def noted(program: Any, *rest: Any, **more: Any) -> Any:
        built.append({operation.code for operation in program.operations})
        return build(program, *rest, **more)

    monkeypatch.setattr(program_building, "build", noted)
    with Session(graph(), cache_dir="") as session:
        for length in lengths:
            (found,) = session.run(["y"], {"x": numbers(length)})
            np.testing.assert_allclose(found, computed(numbers(length)), rtol=1e-4, atol=1e-5)
    (fixed,) = built
    assert not any("BATCH" in code for code in fixed)
    (program,) = opened
    (dilated,) = (each for each in program.program.operations if each.code == "CONV_2D")
    assert dilated.options["dilation_w"] == RATE
    assert not any("BATCH" in each.code for each in program.program.operations)


@pytest.mark.parametrize(
    "crops",
    [
        "Pack(nothing, over, T=int32, N=2, axis=1)",  # as many for lengths that the rate divides
        "Pack(more, nothing, T=int32, N=2, axis=1)",
        "Const(int32[1, 2] [[0, 0]])",
    ],
)
def test_what_is_cut_off_otherwise_is_not_folded(crops: str, opened: list[Any]) -> None:
    with Session(graph(crops), cache_dir="") as session, Session(graph(crops), engine="reference") as reference:
        for length in (8, 11, 14, 9, 10, 8):
            (found,), (expected,) = (each.run(["y"], {"x": numbers(length)}) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert not any(opened)


def test_it_is_switched_off_with_the_dilations(opened: list[Any]) -> None:
    with Session(graph(), cache_dir="", without=["fold_dilations"]) as session:
        for length in (9, 10, 11, 12):
            (found,) = session.run(["y"], {"x": numbers(length)})
            np.testing.assert_allclose(found, computed(numbers(length)), rtol=1e-4, atol=1e-5)
    assert not any(opened)


def test_elements_are_followed_to_where_they_are_computed() -> None:
    followed = parse("""
        x = Placeholder(dtype=float, shape=[?, ?])
        s = Shape(x, T=float, out_type=int32)
        at = Const(int32[1] [1])
        end = Const(int32[1] [2])
        columns = StridedSlice(s, at, end, at, T=int32, Index=int32)
        three = Const(int32[1] [3])
        more = AddV2(columns, three, T=int32)
        two = Const(int32[1] [2])
        axis = Const(int32 0)
        all = ConcatV2(two, more, s, axis, T=int32, Tidx=int32, N=3)
        left = Pack(all, all, T=int32, N=2, axis=0)
        same = Identity(left, T=int32)
        many = Mul(s, s, T=int32)
    """)
    terms = SizeTerms(followed, infer(followed))
    assert terms.of("same:0", 1) == ("s:0", 1, 3)
    assert terms.of("same:0", 7) == ("s:0", 1, 0)
    assert terms.of("same:0", 4) == ("", 0, 2)
    assert terms.of("many:0", 1) == ("many:0", 1, 0)
