"""Runs a batch part by part, each thread parts of its own (see litert/sizes/microbatches.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.budgets import started
from pocketgraph.errors import RunError
from pocketgraph.litert.running.runner import Runner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array

MICROBATCHES = "microbatches"
"""The pass, and the member of what is kept of a part that says how many parts its batch has."""


def of_whole_batch(about: Mapping[str, Any], count: int) -> dict[str, Any]:
    """What is known of a part whose model computes one of ``count`` parts of a batch."""

    return {**_resized(about, lambda size: size * count), "work": about["work"] * count, MICROBATCHES: count}


def of_one(about: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the model itself."""
    return {**_resized(about, lambda size: size // about[MICROBATCHES]), MICROBATCHES: 1}


def _resized(about: Mapping[str, Any], change: Callable[[int], int]) -> dict[str, Any]:
    """The same with other sizes of first axes."""
    return {
        **about,
        "inputs": [(name, dtype, (change(shape[0]), *shape[1:])) for name, dtype, shape in about["inputs"]],
        "computed": [((change(shape[0]), *shape[1:]), dtype) for shape, dtype in about["computed"]],
    }


class MicrobatchRunner(Runner):
    """A model for one part of a batch, opened once for each thread.

    Args:
        opened: opens it for one thread.
        threads: how many compute.
        count: how many parts a batch has.

    Raises:
        RunError: LiteRT does not take it.
    """

    def __init__(self, opened: Callable[[], Runner], threads: int, count: int) -> None:
        self._count = count
        self._runners: list[Runner] = []
        try:
            for _ in range(min(threads, count)):
                self._runners.append(opened())
        except BaseException:
            self.close()
            raise

    @property
    def is_delegated(self) -> bool:
        """Whether XNNPACK is known to run all of it."""
        return all(getattr(runner, "is_delegated", False) for runner in self._runners)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        if not self._runners:
            raise RunError("the part is closed")
        parts = [np.split(array, self._count) for array in inputs]
        given = iter(range(self._count))  # of which each thread takes the next; asking for it is one step of Python's
        results: list[list[Array]] = [[]] * self._count
        failed: list[BaseException] = []

        def compute(runner: Runner) -> None:
            try:
                for place in given:
                    results[place] = runner.run([each[place] for each in parts])
                    if failed:
                        return
            except BaseException as error:
                failed.append(error)

        others = [started(partial(compute, runner), "microbatches") for runner in self._runners[1:]]
        compute(self._runners[0])
        for thread in filter(None, others):
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:  # an interruption: a part that runs on would be beside the next batch
                    failed.append(error)
        if failed:
            raise failed[0]
        return [np.concatenate(each) for each in zip(*results, strict=True)]

    def close(self) -> None:
        while self._runners:
            self._runners.pop().close()
