"""A function over many items, in order: here one after the other, or shard by shard on the workers of a cluster."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from pocketgraph.cluster.connection import Connection, current
from pocketgraph.cluster.journal import Journal
from pocketgraph.cluster.worker import Failure, run_shard
from pocketgraph.errors import RunError

Item = TypeVar("Item")
Row = TypeVar("Row")
Job: TypeAlias = Callable[[], Callable[[Item], Row]]
"""Opens what computes a row of an item. On a cluster it is pickled, and opened once by each worker."""
AHEAD = 3
"""Shards a worker that are on their way or wait for their turn: what bounds the memory."""
FIRST, SECONDS = 8, 1.0
"""Items of the first shards; seconds that later ones are made to take, so that sending them costs little beside."""
RETRIES = 3
"""Times that Ray gives a shard to another worker when one dies of it."""


def map_in_order(job: Job[Item, Row], items: Iterable[Item], *, key: str = "", most: int = 256) -> Iterator[Row]:
    """The rows of all items, in their order.

    Without a cluster (see ``connected``) this calls the job's function item by item. With one, shards go to whoever is
    free, and one whose worker dies goes to another; ``AHEAD`` bounds how much waits. With a key the rows are kept in a
    journal as well, from which an interrupted call with the same key goes on.

    Args:
        job: see Job; it, items and rows can be pickled.
        items: paths, numbers, arrays; taken as they are needed.
        key: of a call that goes on; tells the model, the options and the items. Rows are arrays by name then. Empty
            keeps nothing.
        most: items that go to a worker at a time; fewer, where they take longer than ``SECONDS``.

    Raises:
        PocketgraphError: what the function raised first, at that item's turn.
        RunError: workers die of a shard again and again.
    """
    connection = current()
    if connection is None:
        run = job()
        for item in items:
            yield run(item)
        return
    yield from _on_cluster(connection, job, iter(items), Journal(key), most)


def source_key(*parts: object, paths: Sequence[str] = ()) -> str:
    """A key for ``map_in_order``: a digest of what ``repr`` says of the parts, and of files' names, sizes and times."""
    digest = hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace"))
    for path in paths:
        try:
            stat = os.stat(path)
            identity: object = (os.path.abspath(path), stat.st_size, stat.st_mtime_ns)
        except OSError:
            identity = path
        digest.update(repr(identity).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:40]


def _on_cluster(
    connection: Connection, job: Job[Any, Any], items: Iterator[Any], journal: Journal, most: int
) -> Iterator[Any]:
    ray = connection.ray
    for row in journal.rows():
        next(items, None)
        yield row
    token, opened = secrets.token_hex(8), [ray.put(job)]
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_shard)
    waiting: deque[tuple[Any, Any]] = deque()
    size = min(FIRST, most)
    try:
        while True:
            while len(waiting) < AHEAD * connection.workers and (some := list(islice(items, size))):
                waiting.append((task.remote(opened, token, some), some[0]))
            if not waiting:
                break
            rows, seconds = _result(ray, *waiting[0])
            waiting.popleft()
            size = min(max(int(SECONDS * len(rows) / max(seconds, 1e-6)), 1), 2 * size, most)
            sound = rows[:-1] if rows and isinstance(rows[-1], Failure) else rows
            journal.append(sound)
            yield from sound
            if len(sound) < len(rows):
                raise rows[-1].error()
    finally:
        for reference, _ in waiting:
            ray.cancel(reference)
        journal.close()
    journal.remove()


def _result(ray: Any, reference: Any, first: Any) -> tuple[list[Any], float]:
    """A shard's rows, and the seconds that they took."""
    try:
        found: tuple[list[Any], float] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else error from None
    except ray.exceptions.RayError as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        shown = first if isinstance(first, (str, int)) else type(first).__name__
        raise RunError(
            f"workers died {RETRIES + 1} times of the shard that begins with {shown}: {said}",
            hint="look at the workers' memory, and at the samples of this shard",
        ) from None
    return found
