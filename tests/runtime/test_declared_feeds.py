"""Values that are converted: a later process knows what the model declares, and need not read it."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.runtime import Session

GRAPH = """
    x = Placeholder(dtype=float, shape=[?, 2])
    text = Placeholder(dtype=string, shape=[?])
    w = Const(float [[1, 2], [3, 4]])
    axis = Const(int32 1)
    product = MatMul(x, w, T=float)
    y = Cumprod(product, axis, T=float, Tidx=int32)
    z = StringJoin(text, text, N=2)
"""
ROW = [[1.0, 2.0]]
Y = [[7.0, 70.0]]


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    save(parse(GRAPH), tmp_path / "model.pb")
    return tmp_path / "model.pb"


def session(model: pathlib.Path, **options: Any) -> Session:
    return Session(model, cache_dir=model.parent / "cache", **options)


def read(of: Session) -> bool:
    return of._plans._source.is_read


CONVERTED: list[Any] = [ROW, np.array(ROW), np.array(ROW, np.int64), np.array(ROW, np.float16)]


@pytest.mark.parametrize("value", CONVERTED)
@pytest.mark.parametrize("fetch", ["y", "product"])
def test_numbers_of_other_types(model: pathlib.Path, value: Any, fetch: str) -> None:
    with session(model) as first:
        expected = first.run(fetch, {"x": value})[0]
        assert read(first)
    with session(model) as warm:
        np.testing.assert_array_equal(warm.run(fetch, {"x:0": value})[0], expected)
        np.testing.assert_array_equal(warm.run(fetch, {"x": value})[0], expected)
        assert not read(warm)


@pytest.mark.parametrize("value", [["ab", b"c"], np.array([b"ab", b"c"]), np.array(["ab", "c"])])
def test_text(model: pathlib.Path, value: Any) -> None:
    for is_warm in (False, True):
        with session(model) as at_hand:
            assert at_hand.run("z", {"text": value})[0].tolist() == [b"abab", b"cc"]
            assert read(at_hand) is not is_warm


def test_one_conversion_tells_of_all_others(model: pathlib.Path) -> None:
    with session(model) as first:
        first.run("y", {"x": ROW})
    for value in CONVERTED:
        with session(model) as warm:
            np.testing.assert_array_equal(warm.run("y", {"x": value})[0], Y)
            assert not read(warm)


def test_values_differ_from_run_to_run(model: pathlib.Path) -> None:
    """What was converted is not taken for the next call's value."""
    with session(model) as first:
        first.run("y", {"x": ROW})
    with session(model) as warm:
        np.testing.assert_array_equal(warm.run("y", {"x": ROW})[0], Y)
        np.testing.assert_array_equal(warm.run("y", {"x": [[0.0, 1.0]]})[0], [[3.0, 12.0]])
        np.testing.assert_array_equal(warm.run("y", {"x": np.array([[0.0, 1.0]], np.float32)})[0], [[3.0, 12.0]])


def test_other_shapes_are_planned(model: pathlib.Path) -> None:
    with session(model) as first:
        first.run("y", {"x": ROW})
    with session(model) as other:
        np.testing.assert_array_equal(other.run("y", {"x": [*ROW, *ROW]})[0], [*Y, *Y])
        assert read(other)


@pytest.mark.parametrize("value", [["a", "b"], [[1, 2, 3]], None, [[1j, 2]], [[1, 2], [3]]])
def test_wrong_values_are_told_of_as_without_notes(model: pathlib.Path, value: Any) -> None:
    with session(model) as first, pytest.raises(RunError) as expected:
        first.run("y", {"x": value})
    with session(model) as other:
        other.run("y", {"x": ROW})
    with session(model) as warm:
        with pytest.raises(RunError) as told:
            warm.run("y", {"x": value})
        assert str(told.value) == str(expected.value)


def test_doubled_and_unknown_feeds(model: pathlib.Path) -> None:
    with session(model) as first:
        first.run("y", {"x": ROW})
    for feeds in ({"x": ROW, "x:0": ROW}, {"x": ROW, "nobody": 1}, {3: ROW}):
        with session(model) as warm, pytest.raises(RunError):
            warm.run("y", feeds)


@pytest.mark.parametrize("damage", ['{"x:0": ["no type", [1]]}', '{"x:0": ["float", -7]}', '{"x:0": 3}', "[1]", "null"])
def test_damaged_notes_are_as_none(model: pathlib.Path, damage: str) -> None:
    with session(model) as first:
        first.run("y", {"x": ROW})
    changed = 0
    for file in (model.parent / "cache").glob("*.json"):
        text = file.read_text()
        start = text.find('{"feeds": ')
        if start == 0:
            end = text.index(', "name"')
            file.write_text(f'{{"feeds": {damage}{text[end:]}')
            changed += 1
    assert changed == 1
    with session(model) as warm:
        np.testing.assert_array_equal(warm.run("y", {"x": ROW})[0], Y)


def test_without_a_cache(model: pathlib.Path) -> None:
    for _ in range(2):
        with Session(model, cache_dir="") as plain:
            np.testing.assert_array_equal(plain.run("y", {"x": ROW})[0], Y)


def test_trimming_leaves_nothing_open(tmp_path: pathlib.Path, recwarn: pytest.WarningsRecorder) -> None:
    cache.trim(str(tmp_path))
    cache.trim(str(tmp_path / "missing"))
    assert not [warning for warning in recwarn if warning.category is ResourceWarning]
