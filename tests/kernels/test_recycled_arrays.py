"""Large results use memory again that nobody has any more, and no other."""

from __future__ import annotations

import pathlib
import weakref

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import recycled_arrays
from pocketgraph.kernels.recycled_arrays import ALIGNMENT, LEAST, MOST, RecycledArrays, aligned

LARGE = (LEAST // 4 + 1,)


def place(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_that_nobody_has_is_used_again() -> None:
    arrays = RecycledArrays()
    first = arrays.take("a", LARGE, np.float32)
    where = place(first)
    del first
    assert place(arrays.take("a", LARGE, np.float32)) == where


def test_aligned_memory_that_nobody_has_is_used_again() -> None:
    arrays = RecycledArrays()
    where = place(arrays.take("a", LARGE, np.float32, is_aligned=True))
    assert where % ALIGNMENT == 0
    assert place(arrays.take("a", LARGE, np.float32, is_aligned=True)) == where
    assert aligned((3, 0), np.float64).shape == (3, 0)


@pytest.mark.parametrize("is_aligned", [False, True])
@pytest.mark.parametrize(
    "keep", [lambda a: a, lambda a: a[1:2], lambda a: a.reshape(1, -1).T, memoryview, lambda a: a.view(np.int32)]
)
def test_what_somebody_still_has_stays_as_it_is(keep: object, is_aligned: bool) -> None:
    arrays = RecycledArrays()
    first = arrays.take("a", LARGE, np.float32, is_aligned=is_aligned)
    first[...] = 1
    held = keep(first)  # type: ignore[operator]
    where, copied = place(first), np.asarray(held).copy()
    del first
    second = arrays.take("a", LARGE, np.float32, is_aligned=is_aligned)
    second[...] = 2
    assert place(second) != where
    np.testing.assert_array_equal(np.asarray(held), copied)


def test_what_its_owner_made_unwritable_is_not_used_again() -> None:
    arrays = RecycledArrays()
    arrays.take("a", LARGE, np.float32).setflags(write=False)
    assert arrays.take("a", LARGE, np.float32).flags.writeable


def test_threads_get_arrays_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread asks for the same name at the worst moment: when the first one has counted who has the array."""
    arrays = RecycledArrays()
    arrays.take("a", LARGE, np.float32)
    taken = []
    fits = recycled_arrays._fits

    def interrupted(*asked: object) -> bool:
        monkeypatch.setattr(recycled_arrays, "_fits", fits)
        taken.append(arrays.take("a", LARGE, np.float32))
        return fits(*asked)

    monkeypatch.setattr(recycled_arrays, "_fits", interrupted)
    taken.append(arrays.take("a", LARGE, np.float32))
    assert len(taken) == 2
    assert not np.shares_memory(*taken)


def test_other_names_shapes_and_types_are_other_arrays() -> None:
    arrays = RecycledArrays()
    first, second = arrays.take("a", LARGE, np.float32), arrays.take("b", LARGE, np.float32)
    assert place(first) != place(second)
    del first
    assert arrays.take("a", (LEAST,), np.float32).shape == (LEAST,)
    assert arrays.take("a", (LEAST,), np.int32).dtype == np.int32


@pytest.mark.parametrize("size", [1, MOST // 4 + 1])
def test_small_and_huge_arrays_are_not_kept(size: int) -> None:
    arrays = RecycledArrays()
    made = arrays.take("a", (size,), np.float32)
    gone = weakref.ref(made)
    del made
    assert gone() is None


def test_a_copy_is_one() -> None:
    arrays = RecycledArrays()
    for source in (np.arange(3.0), np.arange(LEAST, dtype=np.float32).reshape(2, -1)):
        made = arrays.copied("a", source)
        np.testing.assert_array_equal(made, source)
        assert not np.shares_memory(made, source)


def test_results_of_a_session_stay_as_they_are_when_it_runs_again() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4,64,64,32])
        a = Relu(x, T=float)
        b = MaxPool(a, T=float, ksize=[1,3,3,1], strides=[1,1,1,1], padding="SAME")
        c = Tanh(b, T=float)
        d = Mul(c, a, T=float)
    """)
    given = [np.random.default_rng(seed).normal(size=(4, 64, 64, 32)).astype(np.float32) for seed in range(3)]
    with Session(graph) as session:
        for _ in range(10):
            session.run(["d:0", "c:0"], {"x:0": given[0]})
        kept = [session.run(["d:0", "c:0"], {"x:0": x}) for x in given]
        copies = [[each.copy() for each in results] for results in kept]
        for x in reversed(given):
            session.run(["d:0", "c:0"], {"x:0": x})
        for results, expected in zip(kept, copies, strict=True):
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_crops_stay_as_they_are_when_the_session_runs_again() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,20,20,64])
        b = Placeholder(dtype=float, shape=[?,4])
        i = Placeholder(dtype=int32, shape=[?])
        s = Const(int32 [14,14])
        c = CropAndResize(x, b, i, s, T=float)
    """)
    rng = np.random.default_rng(0)
    x, which = rng.normal(size=(1, 20, 20, 64)).astype(np.float32), np.zeros(30, np.int32)
    boxes = [rng.uniform(-0.1, 1.1, (30, 4)).astype(np.float32) for _ in range(3)]
    with Session(graph) as session, Session(graph, engine="reference") as reference:
        kept = [session.run("c:0", {"x:0": x, "b:0": each, "i:0": which})[0] for each in boxes]
        for each, found in zip(boxes, kept, strict=True):
            (expected,) = reference.run("c:0", {"x:0": x, "b:0": each, "i:0": which})
            np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("is_on", [True, False])
def test_it_is_switched_off_by_its_name(
    is_on: bool, cached: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of parts and of crops: none lies where an earlier one did, and all are the same."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,64,64,256])
        b = Placeholder(dtype=float, shape=[?,4])
        i = Placeholder(dtype=int32, shape=[?])
        s = Const(int32 [14,14])
        c = CropAndResize(x, b, i, s, T=float)
        a = Relu(x, T=float)
        m = MaxPool(a, T=float, ksize=[1,3,3,1], strides=[1,1,1,1], padding="SAME")
        t = Tanh(m, T=float)
        d = Mul(t, a, T=float)
    """)
    rng = np.random.default_rng(0)
    feeds = {
        "x:0": rng.normal(size=(1, 64, 64, 256)).astype(np.float32),
        "b:0": rng.uniform(0, 1, (30, 4)).astype(np.float32),
        "i:0": np.zeros(30, np.int32),
    }
    with Session(graph, engine="reference") as session:
        wanted = session.run(["c:0", "d:0"], feeds)
    used_again: list[bool] = []
    fits = recycled_arrays._fits
    monkeypatch.setattr(recycled_arrays, "_fits", lambda *asked: used_again.append(fits(*asked)) or used_again[-1])
    if cached:
        with Session(graph, cache_dir=tmp_path) as session:
            session.run(["c:0", "d:0"], feeds)
        used_again.clear()
    with Session(graph, cache_dir=tmp_path, without=[] if is_on else ["recycled_arrays"]) as session:
        for _ in range(12):
            results = session.run(["c:0", "d:0"], feeds)
            for place in (0, 1):
                np.testing.assert_allclose(results[place], wanted[place], atol=1e-5)
            del results
    assert (used_again.count(True) > 12) == is_on  # those of both kinds
    assert is_on or not used_again


def test_large_results_of_parts_begin_where_others_take_them_without_a_copy() -> None:
    large = aligned((1 << 17,), np.float32)[1:]  # begins 4 bytes later
    arrays = RecycledArrays()
    copies = [arrays.copied(name, large) for name in range(8)]
    assert all(copy.__array_interface__["data"][0] % ALIGNMENT == 0 for copy in copies)
