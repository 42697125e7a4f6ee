"""What is asked of planning, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.record import Record
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.planning.call_key import CallKey, Sized

if TYPE_CHECKING:
    from pocketgraph.kernels.shapes import Inferred
    from pocketgraph.litert.executable import Executable
    from pocketgraph.runtime.description import Description
    from pocketgraph.runtime.engines.needed import Item
    from pocketgraph.runtime.engines.step_program import StepProgram

Execution: TypeAlias = "Callable[[list[Any]], list[Array]]"
"""Computes the fetches from the fed values, in the caller's order."""
NO_GRAPH = Graph(())
"""Stands for the model's, or for a part's, which need not be read to find what an earlier process left."""
TIERS = "tiered_compilation"
"""The pass that ``is_tiered`` asks for."""


Planner: TypeAlias = "Callable[[Request, Callable[[], Graph]], ExecutionPlan]"
"""Finds or makes a plan; the graph is asked for only where it has to be made."""


class Runnable(Protocol):
    """What LiteRT runs as one: an executable of litert/executable.py, or a signature of a LiteRT file."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, owned by the caller, for inputs in the order of compilation; safe for several threads."""

    def direct(self, order: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        """The quickest ``run``, on arrays of the right types and shapes of which ``order`` says where each input is."""
        return lambda arrays: self.run([arrays[place] for place in order])

    def close(self) -> None:
        """Gives the memory back."""


class Request(Record):
    """What is to be run.

    Attributes:
        graph: the whole graph.
        call: what is fed, fetched and run; nothing in the options of a session, whatever the call.
        values: feeds that the decision may rest on, by tensor name (see feeds.is_switch).
        threads: how many threads LiteRT may use.
        cache_dir: where LiteRT's compiled parts are kept; None for the user's cache directory.
        key: names the model across processes; "" when nothing must be kept.
        engine: None for what is best of LiteRT and the reference engine, ``auto`` for the fastest that is installed, or
            the name of one to have that only.
        exact: keep the integer arithmetic of eight-bit ops.
        strict: give TensorFlow's values at the edges of types too.
        check: when compiled parts are compared with the reference engine; as for Session.
        checked: is told of the parts that are compared (see certificates/part_check.py).
        planner: plans the parts whose shapes only the run tells.
        without: passes that are switched off (see runtime/pass_registry.py).
        measure: find out now which engine is the fastest for each part.
        files: what the session keeps of files that hold variables of their own, by form.
    """

    graph: Graph = NO_GRAPH
    call: CallKey = CallKey((), ())
    values: Mapping[str, Array] = {}
    threads: int = 1
    cache_dir: Any = None
    key: str = ""
    engine: str | None = None
    exact: bool = False
    strict: bool = False
    check: str = "first"
    checked: list[Any] | None = None
    planner: Planner | None = None
    without: frozenset[str] = frozenset()
    measure: bool = False
    files: dict[str, Any] | None = None

    @property
    def wants_one_engine(self) -> bool:
        """Whether one engine other than the reference engine is to run everything."""
        return self.engine not in (None, "auto", "reference")

    @property
    def feeds(self) -> dict[Endpoint, Sized]:
        """The fed tensors, with dtype and shape, in the caller's order."""
        return dict(self.call.feeds)

    @property
    def fetches(self) -> tuple[Endpoint, ...]:
        """The wanted tensors."""
        return self.call.fetches

    @property
    def targets(self) -> tuple[str, ...]:
        """Nodes to run besides."""
        return self.call.targets

    @property
    def is_tiered(self) -> bool:
        """Whether large parts are compiled quickly at first, and anew when they have run often."""
        is_plain = self.engine is None and not self.strict and not self.call.is_traced
        return is_plain and self.planner is not None and TIERS not in self.without


class ExecutionPlan:
    """Everything decided for one set of feeds with their shapes, fetches and targets.

    Attributes:
        program: the steps, with LiteRT's parts as calls; None where one executable does it all and no steps are wanted.
        whole: the executable that runs everything between feeds and fetches, when there is one.
        whole_inputs: the feed that goes into each input of it.
        description: for ``Session.plan``; None where a call does not want it.
        executables: what has to be closed.
        ran: is told how long each run took this thread, in seconds of the processor; None: nobody wants to know.
        inferred: what was known of the graph's tensors; None where an earlier process made the plan.
        any_sizes: what runs calls of other sizes in the same way; None where nothing does.
        once_with: threads of NumPy's products in the only run that it serves; None where it serves any number.
    """

    def __init__(
        self,
        program: StepProgram | None,
        whole: Runnable | None = None,
        whole_inputs: tuple[int, ...] = (),
        description: Description | None = None,
        executables: Sequence[Runnable] = (),
        ran: Callable[[float], None] | None = None,
    ) -> None:
        self.program = program
        self.whole = whole
        self.whole_inputs = whole_inputs
        self.description = description
        self.executables = executables
        self.ran = ran
        self.inferred: Inferred | None = None
        self.any_sizes: PlansAnySizes | None = None
        self.once_with: int | None = None

    @property
    def check_time(self) -> float:
        """About how long the reference engine takes to compute the same, in microseconds; infinite where that is only
        known when it runs."""
        if self.program is not None and self.program.dynamic_parts:
            return math.inf
        return sum(getattr(each, "check_time", math.inf) for each in self.executables)

    @property
    def work(self) -> float:
        """The multiplications and steps for an element of its parts; infinite where that is only known when it runs."""
        if self.program is not None and self.program.dynamic_parts:
            return math.inf
        found: float = sum(getattr(each, "about", {}).get("work", math.inf) for each in self.executables)
        return found

    def timed(self, ran: Callable[[float], None]) -> ExecutionPlan:
        """The same plan, whose runs are told of."""
        plan = ExecutionPlan(self.program, self.whole, self.whole_inputs, self.description, self.executables, ran)
        plan.once_with = self.once_with
        return plan

    def directly(self) -> Execution:
        """The quickest way to run ``whole``, on arrays of just its inputs' types and shapes."""
        assert self.whole is not None
        return self.whole.direct(self.whole_inputs)


class PlansAnySizes(Protocol):
    """What runs calls that differ in sizes alone.

    Attributes:
        is_repeated: whether the last call had the sizes of the one before.
    """

    is_repeated: bool

    def plan(self, values: Sequence[Any]) -> ExecutionPlan | None:
        """What runs a call with these values; None where that is not certain without looking up its names."""


class FixedPlan(Record):
    """A plan for fixed sizes.

    Attributes:
        key: of the call.
        executable: what runs it, where that is one alone.
        inferred: what was known of the graph's tensors.
        seconds: what the plan took.
        check_time: about how long the reference engine takes to compute the same, in microseconds; infinite where
            nobody knows.
        work: as ExecutionPlan's.
        graph: the whole graph, without waits that make no difference.
        items: the nodes of it that the call needs.
    """

    key: CallKey
    executable: Executable | None
    inferred: Inferred
    seconds: float
    check_time: float
    work: float
    graph: Graph
    items: Mapping[str, Item]

    @classmethod
    def of(
        cls, key: CallKey, plan: ExecutionPlan, inferred: Inferred, seconds: float, graph: Graph, items: dict[str, Item]
    ) -> FixedPlan:
        """That of a call, of the graph as the session has it."""
        if any(item.control for item in items.values()):  # as a NoOp waits for all weights that TensorFlow 2 froze
            from pocketgraph.runtime.engines.needed import needed
            from pocketgraph.runtime.planning.rewriting.idle_waits import without_waits

            graph = without_waits(graph, items)
            items = needed(graph, frozenset(dict(key.feeds)), key.fetches, key.targets, items)
        executable: Any = plan.whole
        return cls(key, executable, inferred, seconds, plan.check_time, plan.work, graph, items)
