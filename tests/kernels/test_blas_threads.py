"""How many threads products take: the least number that anybody asks for."""

from __future__ import annotations

import pytest

from pocketgraph.kernels import blas_threads


def test_the_least_number_of_threads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """OpenBLAS with four threads."""

        number = 4

    library = Library()
    monkeypatch.setattr(library, blas_threads.GET, lambda: library.number, raising=False)
    monkeypatch.setattr(library, blas_threads.SET, lambda number: setattr(library, "number", number), raising=False)
    monkeypatch.setattr(blas_threads, "_library", lambda: library)
    with blas_threads.at_most(2):
        assert blas_threads.used() == 2
        with blas_threads.at_most(1):
            assert blas_threads.used() == 1
            with blas_threads.at_most(9):
                assert blas_threads.used() == 1
        assert blas_threads.used() == 2
    assert blas_threads.used() == 4
