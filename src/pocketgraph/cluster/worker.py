"""What runs on a worker: it opens a job once, and gives a result for each item of a shard."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pocketgraph.errors import PocketgraphError

_opened: dict[str, Callable[[Any], Any]] = {}
"""The job that this process has open, by its token."""


@dataclass(frozen=True)
class Failure:
    """An error of ours, as it goes back; it is raised where its item's turn comes."""

    kind: type[PocketgraphError]
    what: str
    where: str
    hint: str

    def error(self) -> PocketgraphError:
        """The error."""
        return self.kind(self.what, where=self.where, hint=self.hint)


def run_shard(job: Sequence[Any], token: str, items: Sequence[Any]) -> tuple[list[Any], float]:
    """The results of a shard's items, after a failure none; and how many seconds they took.

    Args:
        job: a reference to the job, in a list, so that it is fetched by those only who have not opened it.
        token: of the job.
        items: the shard.
    """
    found: list[Any] = []
    begun = time.perf_counter()
    try:
        if token not in _opened:
            import ray

            _opened.clear()
            _opened[token] = ray.get(job[0])()
            begun = time.perf_counter()
        for item in items:
            found.append(_opened[token](item))  # noqa: PERF401 (rows before a failure count)
    except PocketgraphError as error:
        found.append(Failure(type(error), error.what, error.where, error.hint))
    return found, time.perf_counter() - begun
