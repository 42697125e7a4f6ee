"""The cluster that work goes to while a command runs: workers on this machine, or those of a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pocketgraph.budgets import usable_processors
from pocketgraph.errors import MissingExtraError, PocketgraphError, UsageError, option

OBJECT_STORE = 1 << 28
"""Bytes of shared memory that a cluster on this machine takes for shards on their way."""
PATIENCE = 10.0
"""Seconds to wait for a cluster's first answer."""


@dataclass(frozen=True)
class Connection:
    """A connection that is open.

    Attributes:
        ray: Ray's module.
        workers: how many tasks run at a time.
    """

    ray: Any
    workers: int


_connection: ContextVar[Connection | None] = ContextVar("cluster", default=None)


def current() -> Connection | None:
    """The connection that ``connected`` opened around this call."""
    return _connection.get()


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Sends what ``map_in_order`` has to do inside of it to a cluster.

    Args:
        address: ``local`` for a worker a core of this machine, ``local:N`` for N of them, ``ray://HOST:PORT`` for a
            cluster that runs; empty for none.

    Raises:
        MissingExtraError: Ray is not installed.
        UsageError: this is no address.
        PocketgraphError: there is no cluster.
    """
    if not address:
        yield
        return
    local = re.fullmatch(r"local(?::([1-9]\d{0,3}))?", address)
    remote = re.fullmatch(r"ray://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d{1,5})", address)
    if local is None and remote is None:
        raise UsageError(f"'{address}' is no cluster", hint=f"{option('cluster')}=local or ray://HOST:10001")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # and Ray says nothing of it
    try:
        import ray
    except ImportError:
        raise MissingExtraError(
            "a cluster needs Ray, which is not installed", hint="pip install 'pocketgraph[cluster]'"
        ) from None
    if ray.is_initialized():
        raise UsageError("this process is connected to a Ray cluster already")
    if remote is not None:
        _answers(address, remote[1].strip("[]"), int(remote[2]))
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if local is not None:
            here = {"num_cpus": int(local[1] or usable_processors()), "include_dashboard": False}
            ray.init(address="local", object_store_memory=OBJECT_STORE, **here, **quiet)
        else:
            ray.init(address, **quiet)
    except Exception as error:  # Ray answers with whatever its parts happen to raise
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise PocketgraphError(f"the cluster does not take part: {said}", where=address) from None
    token = _connection.set(Connection(ray, max(1, int(ray.cluster_resources().get("CPU", 1)))))
    try:
        yield
    finally:
        _connection.reset(token)
        ray.shutdown()


def _answers(address: str, host: str, port: int) -> None:
    """Raises PocketgraphError when nobody listens there, which Ray takes minutes to say."""
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise PocketgraphError(
            f"there is no cluster: {error}", where=address, hint="ray start --head on the machine that leads it"
        ) from None
