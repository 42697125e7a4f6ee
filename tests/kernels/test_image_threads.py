"""Threads that share a batch's images: all are computed, in their order, and products take one thread meanwhile."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any

import numpy as np
import pytest

from pocketgraph.kernels import blas_threads, image_threads
from pocketgraph.kernels.image_threads import over_images, threads_for


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("images", [0, 1, 2, 5, 9])
def test_each_image_is_one_threads(threads: int, images: int) -> None:
    shares = over_images(threads, images, lambda share: list(range(images))[share])
    assert [image for share in shares for image in share] == list(range(images))
    assert len(shares) <= threads


def test_threads_that_do_not_start_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no more, the calling thread takes their images."""
    submit = concurrent.futures.ThreadPoolExecutor.submit
    asked: list[Any] = []

    def refused(self: Any, *args: Any) -> Any:
        asked.append(args)
        if len(asked) > 1:
            raise RuntimeError("can't start new thread")
        return submit(self, *args)

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", refused)
    here = threading.get_ident()
    shares = over_images(4, 8, lambda share: (share.start, threading.get_ident() == here))
    assert shares == [(0, True), (2, False), (4, True), (6, True)]


def test_an_error_of_a_thread_is_the_callers() -> None:
    def work(share: slice) -> None:
        if share.start:
            raise MemoryError("none is left")

    with pytest.raises(MemoryError, match="none is left"):
        over_images(2, 4, work)
    assert over_images(2, 4, lambda share: share.stop) == [2, 4]


def test_few_images_and_small_layers_stay_in_one_thread() -> None:
    much = 100 * image_threads.LEAST_SHARE
    assert threads_for(2, 128, much) == 2
    assert threads_for(64, 128, much) == image_threads.MOST_THREADS
    assert threads_for(4, 3, much) == 3
    assert threads_for(4, 128, image_threads.LEAST_SHARE) == 1
    assert threads_for(4, 128, 0) == 1


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


def test_products_beside_each_other_are_right() -> None:
    random = np.random.default_rng(3)
    x, w = random.normal(size=(64, 200, 90)).astype(np.float32), random.normal(size=(90, 70)).astype(np.float32)
    result = np.empty((64, 200, 70), np.float32)

    def work(share: slice) -> None:
        for image in range(share.start, share.stop):
            np.matmul(x[image], w, out=result[image])

    over_images(4, 64, work)
    np.testing.assert_allclose(result, np.einsum("nij,jk->nik", x, w), rtol=1e-4, atol=1e-4)
