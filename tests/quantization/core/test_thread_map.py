"""Threads compute side by side and ahead of whoever asks; results come in order, and errors as they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pocketgraph.quantization.core.thread_map import mapped_ahead


def test_so_many_calls_run_at_once_and_results_keep_the_order() -> None:
    together = threading.Barrier(2, timeout=30)

    def doubled(number: int) -> int:
        together.wait()  # two calls go on when both are here
        return 2 * number

    assert list(mapped_ahead(doubled, range(8), 2)) == [2 * number for number in range(8)]


def test_items_are_taken_as_results_are_asked_for() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(9):
            taken.append(number)
            yield number

    results = mapped_ahead(str, items(), 2)
    assert next(results) == "0"
    assert taken == [0, 1, 2]
    assert next(results) == "1"
    assert taken == [0, 1, 2, 3]
    assert list(results) == list("2345678")


def test_without_threads_calls_run_where_they_are_asked_for() -> None:
    here = threading.get_ident()
    assert set(mapped_ahead(lambda _: threading.get_ident(), range(3), 0)) == {here}
    assert here not in set(mapped_ahead(lambda _: threading.get_ident(), range(3), 1))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_an_error_reaches_whoever_asks_in_its_turn(threads: int) -> None:
    def inverse(number: int) -> float:
        return 1 / number

    results = mapped_ahead(inverse, [2, 1, 0, 4], threads)
    assert [next(results), next(results)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)
