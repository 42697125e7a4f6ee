"""Per-node times of one run, in a form that knows neither an engine nor a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class NodeTiming(NamedTuple):
    """One execution of one node; a node in a loop has one for each iteration.

    Attributes:
        name: the node.
        op: its op type.
        start_us: microseconds from the start of the run.
        duration_us: microseconds.
        output_bytes: bytes of its outputs.
        runs_on: the engine, ``reference`` or ``litert``.
        outputs: (NumPy dtype name, shape) of each output, where known.
    """

    name: str
    op: str
    start_us: float
    duration_us: float
    output_bytes: int
    runs_on: str
    outputs: tuple[tuple[str, tuple[int, ...]], ...] = ()


class OperationShare(NamedTuple):
    """What part of a run one operation took, and the bytes, NumPy types and shapes of its results where known."""

    name: str
    op: str
    part: float
    output_bytes: int = 0
    outputs: tuple[tuple[str, tuple[int, ...]], ...] = ()


class StepTrace:
    """What one run did, in execution order.

    Attributes:
        nodes: the timings.
        total_us: microseconds of the whole run.
        notes: how the times were taken where that is not plain measuring, a sentence each.
    """

    def __init__(self, nodes: list[NodeTiming] | None = None, total_us: float = 0.0) -> None:
        self.nodes: list[NodeTiming] = [] if nodes is None else nodes
        self.total_us = total_us
        self.notes: list[str] = []
        self._origin = time.perf_counter_ns()

    def begin(self) -> None:
        """Drops earlier timings; times count from now."""
        self.nodes.clear()
        self.total_us = 0.0
        self._origin = time.perf_counter_ns()

    def finish(self) -> None:
        """Notes how long the run took."""
        self.total_us = (time.perf_counter_ns() - self._origin) / 1000

    def leave_out(self, nanoseconds: int) -> None:
        """Moves the start by ``nanoseconds``, so that time just spent on measuring itself does not count."""
        self._origin += nanoseconds

    def since_start(self, moment_ns: int) -> float:
        """Microseconds from the start of the run to ``moment_ns``, a ``time.perf_counter_ns``."""
        return (moment_ns - self._origin) / 1000

    def add(self, name: str, op: str, began_ns: int, ended_ns: int, outputs: Sequence[Any], runs_on: str) -> None:
        """Notes one execution of a node.

        Args:
            name, op: of the node.
            began_ns, ended_ns: when, by ``time.perf_counter_ns``.
            outputs: the values that came out; those that are arrays are counted.
            runs_on: the engine, ``reference`` or ``litert``.
        """
        arrays = [value for value in outputs if isinstance(value, np.ndarray)]
        self.nodes.append(
            NodeTiming(
                name,
                op,
                self.since_start(began_ns),
                (ended_ns - began_ns) / 1000,
                sum(array.nbytes for array in arrays),
                runs_on,
                tuple((array.dtype.name, array.shape) for array in arrays),
            )
        )

    def add_shares(self, shares: Sequence[OperationShare], start_us: float, took_us: float, runs_on: str) -> None:
        """Notes operations that ran one after the other and share a time.

        Args:
            shares: they, in order.
            start_us, took_us: when the first one began, from the start of the run, and how long all took.
            runs_on: the engine.
        """
        for share in shares:
            took = share.part * took_us
            self.nodes.append(
                NodeTiming(share.name, share.op, start_us, took, share.output_bytes, runs_on, share.outputs)
            )
            start_us += took

    def rename(self, names: Callable[[str], str]) -> None:
        """Gives every node the name that ``names`` makes of its own."""
        self.nodes[:] = [timing._replace(name=names(timing.name)) for timing in self.nodes]

    def note(self, sentence: str) -> None:
        """Adds a ``sentence`` to the notes, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)
