"""What a planner is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from pocketgraph.graph import DType, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.description import Description
from pocketgraph.runtime.warm_start import Executable

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.reference import Program

Array = np.ndarray[Any, Any]
NOTHING = Description({}, (), (), {}, {})
"""What is known of a plan that an earlier process made."""


Planner: TypeAlias = "Callable[[Request, Callable[[], Graph]], Prepared]"
"""Finds or makes a plan; the graph is asked for only where it has to be made."""


class Request(NamedTuple):
    """What is to be run.

    Attributes:
        graph: the whole graph.
        feeds: the fed tensors, with dtype and shape, in the caller's order.
        fetches: the wanted tensors.
        targets: nodes to run besides.
        values: feeds that the decision may rest on, by tensor name (see feeds.is_switch).
        threads: how many threads LiteRT may use.
        cache_dir: where LiteRT's compiled parts are kept; None for the user's cache directory.
        key: names the request across processes; "" when it must not be kept.
        engine: None for what is best, ``reference`` or ``litert`` to have that only.
        by_steps: make the program even where one executable does it all; for node times.
        exact: keep the integer arithmetic of eight-bit ops.
        described: the description is wanted, so that what an earlier process decided does not do.
        planner: plans the parts whose shapes only the run tells.
    """

    graph: Graph
    feeds: Mapping[Endpoint, tuple[DType | None, tuple[int, ...]]]
    fetches: tuple[Endpoint, ...]
    targets: tuple[str, ...]
    values: Mapping[str, Array] = {}
    threads: int = 1
    cache_dir: Any = None
    key: str = ""
    engine: str | None = None
    by_steps: bool = False
    exact: bool = False
    described: bool = False
    planner: Planner | None = None


class Prepared:
    """Everything decided for one set of feeds with their shapes, fetches and targets.

    Attributes:
        program: the steps, with LiteRT's parts as calls; made when first needed if one executable does it all.
        whole: the executable that runs everything between feeds and fetches, when there is one.
        whole_inputs: the feed that goes into each input of it.
        description: for ``Session.plan``.
        executables: what has to be closed.
    """

    def __init__(
        self,
        program: Program | None,
        whole: Executable | None,
        whole_inputs: tuple[int, ...],
        description: Description = NOTHING,
        executables: Sequence[Executable] = (),
    ) -> None:
        self.program = program
        self.whole = whole
        self.whole_inputs = whole_inputs
        self.description = description
        self.executables = executables
