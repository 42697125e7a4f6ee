"""Constants in turn, made by another thread."""

import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest

from pocketgraph.litert import constants_ahead
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.constants_ahead import computed

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def few_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants_ahead, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(constants_ahead, "TOGETHER", 0)


def constants() -> list[Constant]:
    found = []
    for shape in ((3, 3, 5, 7), (1, 1, 300, 1), (1, 1, 1, 300), (2, 1, 700, 40), (1, 1, 3, 2100)):
        values = RANDOM.standard_normal(shape).astype(np.float32)
        found.append(Constant.of(values).permuted((3, 0, 1, 2)))
        found.append(found[-1].scaled(RANDOM.standard_normal((shape[3], 1, 1, 1)).astype(np.float32)))
        found.append(found[-2].scaled(RANDOM.standard_normal((1, 1, 1, shape[2])).astype(np.float32)))
        found.append(Constant.of(values).permuted((1, 3, 0, 2)))
        found.append(Constant.of(values))
    found.append(Constant.of(np.arange(7, dtype=np.int8).reshape(1, 1, 1, 7)).permuted((3, 0, 1, 2)))
    found.append(Constant.of(np.zeros((0, 4), np.float32)).permuted((1, 0)))
    return found


def plainly(constant: Constant) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    values = constant.read()
    moved = values if constant.permutation is None else values.transpose(constant.permutation)
    return moved if constant.scale is None else moved * constant.scale


@pytest.mark.parametrize("together", [0, 100_000, 1 << 30])
@pytest.mark.parametrize("passing", [False, True])
def test_they_are_what_transposing_and_scaling_gives(
    passing: bool, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants_ahead, "TOGETHER", together)
    many = constants()
    for values, constant in zip(computed(many, passing=passing), many, strict=True):
        assert values.flags.c_contiguous
        np.testing.assert_array_equal(values, plainly(constant), strict=True)


def test_the_parts_of_one_are_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    many = constants()
    assert all(len(constant.in_parts()) == 1 for constant in many)
    monkeypatch.setattr("pocketgraph.litert.constant.PART", 1000)
    for constant in many:
        parts = constant.in_parts()
        assert [part.shape[1:] for part in parts] == [constant.shape[1:]] * len(parts)
        is_cut = constant.permutation == (3, 0, 1, 2) and constant.nbytes > 1000 and constant.shape[0] > 1
        assert (len(parts) > 1) == is_cut
        together = np.concatenate(list(computed(parts)))
        np.testing.assert_array_equal(together, plainly(constant), strict=True)


def test_what_has_to_be_made_is_made_once_for_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketgraph.litert.constant.PART", 1000)
    values = RANDOM.standard_normal((1, 1, 300, 40)).astype(np.float32)
    alive: list[weakref.ref[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]] = []

    def made() -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        alive.append(weakref.ref(copy := values.copy()))
        return copy

    parts = Constant(made, (40, 1, 1, 300), values.dtype, (3, 0, 1, 2)).in_parts()
    together = np.concatenate([part.numpy() for part in parts])
    np.testing.assert_array_equal(together, values.transpose(3, 0, 1, 2))
    assert len(parts) > len(alive) == 1
    assert alive[0]() is None, "it is kept behind the last part"


def test_whoever_keeps_them_may_unless_told_otherwise() -> None:
    many = constants()
    for values, constant in zip(list(computed(many)), many, strict=True):
        np.testing.assert_array_equal(values, plainly(constant))
    used = list(computed([many[0], many[0], many[0]], passing=True))
    assert np.shares_memory(used[0], used[2])
    assert not any(np.shares_memory(one, other) for one, other in pairwise(used))


def test_an_error_reaches_whoever_asks() -> None:
    def refuse() -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        raise MemoryError("too much")

    many = [Constant.of(np.ones(3)), Constant(refuse, (3,), np.dtype(np.float32)), Constant.of(np.ones(3))]
    asked = computed(many)
    np.testing.assert_array_equal(next(asked), 1)
    with pytest.raises(MemoryError, match="too much"):
        next(asked)


def test_nobody_works_on_when_no_more_are_wanted() -> None:
    before = set(threading.enumerate())
    asked = computed(constants())
    next(asked)
    (other,) = set(threading.enumerate()) - before
    asked.close()  # type: ignore[attr-defined]
    assert not other.is_alive()


def test_small_ones_are_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants_ahead, "TOGETHER", 48)
    made: list[int] = []

    def counted(place: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        made.append(place)
        return np.full(6, place, np.float32)

    many = [Constant(lambda place=place: counted(place), (6,), np.dtype(np.float32)) for place in range(7)]  # type: ignore[misc]
    asked = computed(many)
    assert next(asked)[0] == 0
    assert made[:2] == [0, 1], "the first two came together"
    assert [values[0] for values in asked] == [1, 2, 3, 4, 5, 6]
    assert made == list(range(7))


def test_they_are_the_same_without_another_thread() -> None:
    many, before = constants(), set(threading.enumerate())
    for values, constant in zip(computed(many, ahead=False), many, strict=True):
        assert before >= set(threading.enumerate())
        np.testing.assert_array_equal(values, plainly(constant), strict=True)
