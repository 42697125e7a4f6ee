"""Kernels with quick ways: the same results and errors where these are switched off by their names."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from kernels.parsing.test_example_columns import encoded, records
from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.dtype import FLOAT, INT64
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.image import crop_and_resize
from pocketgraph.kernels.parsing import example_pattern, examples
from pocketgraph.kernels.text import regular_expressions
from pocketgraph.runtime.engines import step_program

RECORDS = parse("""
    x = Placeholder(dtype=string, shape=[?])
    names = Const(string[0] [])
    sparse = Const(string[1] ["id"])
    dense = Const(string[1] ["weight"])
    ragged = Const(string[0] [])
    default = Const(float[1] [0.5])
    y = ParseExampleV2(x, names, sparse, dense, ragged, default, Tdense=list[float], num_sparse=1,
        sparse_types=list[int64], dense_shapes=list[[1]], ragged_value_types=list[], ragged_split_types=list[])
""")
CROPS = parse("""
    x = Placeholder(dtype=float, shape=[1,20,30,128])
    boxes = Placeholder(dtype=float, shape=[?,4])
    which = Placeholder(dtype=int32, shape=[?])
    size = Const(int32 [7,6])
    y = CropAndResize(x, boxes, which, size, T=float, extrapolation_value=3.0)
""")


def without(name: str, cache: pathlib.Path, graph: Any) -> list[Session]:
    return [Session(graph, cache_dir=cache, without=off) for off in ([], [name])]


def test_records_are_read_the_same_one_by_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick: list[int] = []
    read = examples.columns_of
    monkeypatch.setattr(examples, "columns_of", lambda *given: quick.append(1) or read(*given))
    sessions = without(examples.TOGETHER, tmp_path, RECORDS)
    fetches = ["y", "y:1", "y:2", "y:3"]
    for count in (0, 5, 60):
        held = records(3, count)
        for each in held:
            each[b"weight"] = (2, [1.5])
        held = held[:-1] + [{}] * (count > 0)
        feeds = {"x:0": np.array([encoded(each) for each in held], object)}
        quick.clear()
        found = [session.run(fetches, feeds) for session in sessions]
        assert len(quick) == (1 if count else len(quick))
        for one, other in zip(*found, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    broken = {"x:0": np.array([encoded({b"weight": (3, [1])})] * 60, object)}
    errors = []
    for session in sessions:
        with pytest.raises(RunError) as caught:
            session.run(fetches, broken)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "Name: <unknown>" in errors[0]


ROWS = parse("""
    x = Placeholder(dtype=string, shape=[?])
    names = Const(string[0] [])
    sparse = Const(string[1] ["id"])
    dense = Const(string[1] ["row"])
    ragged = Const(string[0] [])
    default = Const(float[0] [])
    y = ParseExampleV2(x, names, sparse, dense, ragged, default, Tdense=list[float], num_sparse=1,
        sparse_types=list[int64], dense_shapes=list[[20,50]], ragged_value_types=list[], ragged_split_types=list[])
""")


def test_records_are_read_the_same_by_a_pattern(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_pattern, "FIRST_LEARNED", 1)
    example_pattern._learned.cache_clear()
    learned, plain = without(examples.BY_PATTERN, tmp_path, ROWS)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(100, 20, 50)).astype(np.float32)
    lines = [encoded({b"id": (3, [n]), b"row": (2, row.reshape(-1).tolist())}) for n, row in enumerate(rows)]
    feeds = {"x:0": np.array(lines, object)}
    fetches = ["y", "y:1", "y:2", "y:3"]
    expected = plain.run(fetches, feeds)
    assert example_pattern._learned.cache_info().currsize == 0
    np.testing.assert_array_equal(expected[3], rows)
    first = learned.run(fetches, feeds)
    kept = learned.run(fetches, feeds)
    back = learned.run(fetches, {"x:0": feeds["x:0"][::-1]})
    wanted = tuple({b"id": INT64, b"row": FLOAT}.items())
    assert example_pattern._learned(wanted).pattern is not None
    place = kept[3].__array_interface__["data"]
    for found in (first, kept):
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(back[3], rows[::-1])
    del found, one, kept
    assert learned.run(fetches, feeds)[3].__array_interface__["data"] == place, "memory that nobody has any more"
    broken = {"x:0": np.array([*lines[:50], encoded({b"row": (2, [1.0])})], object)}
    errors = []
    for session in (learned, plain):
        with pytest.raises(RunError, match="Key: row") as caught:
            session.run(fetches, broken)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_crops_are_the_same_pixel_by_pixel(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixel_by_pixel: list[int] = []
    resampled = crop_and_resize._resampled
    monkeypatch.setattr(crop_and_resize, "_resampled", lambda *given: pixel_by_pixel.append(1) or resampled(*given))
    rng = np.random.default_rng(1)
    corners = rng.uniform(-0.1, 1.1, (9, 4)).astype(np.float32)
    image = rng.normal(size=(1, 20, 30, 128)).astype(np.float32)
    feeds = {"x:0": image, "boxes:0": corners, "which:0": np.zeros(9, np.int32)}
    found, ways = [], []
    for session in without(crop_and_resize.BY_PRODUCTS, tmp_path, CROPS):
        pixel_by_pixel.clear()
        found.append(session.run("y:0", feeds))
        ways.append(len(pixel_by_pixel) > 0)
    assert ways == [False, True]
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=3e-6)


WORDS = parse("""
    x = Placeholder(dtype=string, shape=[?])
    signs = Const(string "[^a-z]+")
    gap = Const(string " ")
    plain = RegexReplace(x, signs, gap)
    y = StaticRegexReplace(plain, pattern="(o)w", rewrite="\\\\1")
    whole = RegexFullMatch(x, signs)
    short = StaticRegexFullMatch(y, pattern="[a-z ]*")
""")


def test_texts_are_matched_the_same_by_the_automaton(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    compiled = regular_expressions.pattern_of
    told = lambda pattern, **how: asked.append(how.get("may_be_plain", True)) or compiled(pattern, **how)  # noqa: E731
    monkeypatch.setattr(regular_expressions, "pattern_of", told)
    feeds = {"x:0": np.array([b"How, now: 12 brown cows!", b"", b"!?", b"w\xc3\xb6w ow"], object)}
    found, ways = [], []
    for session in without(regular_expressions.PLAIN, tmp_path, WORDS):
        asked.clear()
        found.append(session.run(["y:0", "whole:0", "short:0"], feeds))
        ways.append(set(asked))
    assert ways == [{True}, {False}]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0][0].tolist() == [b" o no bron cos ", b"", b" ", b"w w o"]
    assert found[0][1].tolist() == [False, False, True, False]
    assert found[0][2].tolist() == [True, True, True, True]


def test_only_a_view_that_nobody_else_has_is_handed_out() -> None:
    base = np.arange(6.0)
    view = base.reshape(2, 3)
    assert not step_program._is_sole_view(view), "the base is known by a name"
    del base
    assert step_program._is_sole_view(view)
    other = view.T
    assert not step_program._is_sole_view(view)
    assert not step_program._is_sole_view(other)
    del other
    part = np.arange(6.0)[:3]
    assert not step_program._is_sole_view(part), "it would keep twice its memory alive"


def test_results_that_are_views_of_each_other_are_copies() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[6])
        n = Neg(x, T=float)
        size = Const(int32 [2,3])
        y = Reshape(n, size, T=float, Tshape=int32)
        other = Const(int32 [3,2])
        z = Reshape(n, other, T=float, Tshape=int32)
        same = Reshape(x, size, T=float, Tshape=int32)
    """)
    given = np.arange(6, dtype=np.float32)
    with Session(graph, engine="reference") as session:
        for fetches in (["y", "z"], ["y", "n"], ["y", "same"], ["y"], ["same"]):
            results = session.run(fetches, {"x:0": given})
            for result in results:
                result += 100
            again = session.run(fetches, {"x:0": given})
            for result, plain in zip(results, again, strict=True):
                np.testing.assert_array_equal(result, plain + 100)
    np.testing.assert_array_equal(given, np.arange(6))
