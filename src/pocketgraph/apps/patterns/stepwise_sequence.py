"""A sequence model one step at a time: what a run leaves in its state goes into the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.tensor import Array


class Stepper:
    """Runs a graph whose state comes in at placeholders and out at other tensors.

    Args:
        graph: the model of one step.
        outputs: what a step gives.
        state: for each placeholder of the state, the tensor that holds what it is after a step.
        start: values at the beginning; zeros of the placeholder's shape where nothing is said.
        threads: as in Session.

    Raises:
        UsageError: a state's shape is open and no value was given for the start.
    """

    def __init__(
        self,
        graph: Graph,
        outputs: list[str],
        state: Mapping[str, str],
        *,
        start: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        from pocketgraph.runtime import Session

        self._session = Session(graph, threads=threads)
        self._outputs = list(outputs)
        self._state = {canonical(into): canonical(out) for into, out in state.items()}
        given = {canonical(name): np.asarray(value) for name, value in (start or {}).items()}
        self._start: dict[str, Array] = {}
        for name in self._state:
            if name in given:
                self._start[name] = given[name]
                continue
            node = graph.producer(name)
            shape = node.shape()
            if shape is None or shape.dims is None or any(size is None for size in shape.dims):
                raise UsageError(f"the state '{node.name}' has an open shape", hint="give its value at the start")
            self._start[name] = np.zeros([size or 0 for size in shape.dims], node.dtype("dtype").numpy)
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self.state = dict(self._start)

    def __call__(self, feeds: Mapping[str, Any]) -> list[Array]:
        """One step: the outputs; the state moves on.

        Raises:
            RunError: as Session.run.
        """
        found = self._session.run([*self._outputs, *self._state.values()], {**feeds, **self.state})
        after = found[len(self._outputs) :]
        self.state = dict(zip(self._state, after, strict=True))
        return found[: len(self._outputs)]
