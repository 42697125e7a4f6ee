"""What is asked of planning, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.description import Description
from pocketgraph.runtime.planning.call_key import CallKey, Sized

if TYPE_CHECKING:
    from pocketgraph.kernels.shapes import Inferred
    from pocketgraph.litert.cache import Specs
    from pocketgraph.litert.executable import Check, Executable, Opener
    from pocketgraph.runtime.certificates.part_reference import PartReference
    from pocketgraph.runtime.engines.step_program import StepProgram

Array = np.ndarray[Any, Any]
Execution: TypeAlias = "Callable[[list[Any]], list[Array]]"
"""Computes the fetches from the fed values, in the caller's order."""
NO_GRAPH = Graph(())
"""Stands for the model's, or for a part's, which need not be read to find what an earlier process left."""
TIERS = "tiered_compilation"
"""The pass that ``is_tiered`` asks for."""
NOTHING = Description({}, (), (), {}, {})
"""What is known of a plan that an earlier process made."""


Planner: TypeAlias = "Callable[[Request, Callable[[], Graph]], ExecutionPlan]"
"""Finds or makes a plan; the graph is asked for only where it has to be made."""


class Runnable(Protocol):
    """What LiteRT runs as one: an executable of litert/executable.py, or a signature of a LiteRT file."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, owned by the caller, for inputs in the order of compilation; safe for several threads."""

    def direct(self, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
        """The quickest ``run``, on arrays of the right types and shapes of which ``order`` says where each input is."""

    def close(self) -> None:
        """Gives the memory back."""

    def describe(self) -> str:
        """One line for people."""


class Request(NamedTuple):
    """What is to be run.

    Attributes:
        graph: the whole graph.
        call: what is fed, fetched and run.
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
    """

    graph: Graph
    call: CallKey
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

    def trusts(self, executable: Executable) -> bool:
        """Whether a compiled part need not be compared with the reference engine."""
        return self.check == "never" or (self.check == "first" and executable.is_certified)

    def part_of_earlier(
        self, key: str, inputs: Sequence[str], outputs: Sequence[str], specs: Specs, graph: Callable[[], Graph]
    ) -> Executable | None:
        """A part that an earlier process compiled, on the engine that is to run it; None where it has to be compiled.

        Args:
            key, inputs, outputs, specs: as for litert/executable.lookup.
            graph: gives the graph, when the part is to be compared that was not yet.
        """
        from pocketgraph.litert.cached_executable import lookup

        found = lookup(
            key,
            inputs,
            outputs,
            specs,
            threads=self.threads,
            cache_dir=self.cache_dir,
            opener=self.opener(),
            in_tiers=self.is_tiered,
        )
        if found is None:
            return None
        if not self._may_answer(found, graph):
            found.close()
            return None  # planned anew, the nodes are known with which it is compared
        self.choose_engine(found, graph)
        self.compile_again_later(found, graph)
        return found

    def _may_answer(self, executable: Executable, graph: Callable[[], Graph]) -> bool:
        """Whether a part that an earlier process compiled may answer: it is trusted, or comparing it takes so long that
        it is left to a time at which the process is idle; ``graph`` is read then."""
        if self.trusts(executable):
            return True
        if self.check == "always" or self.planner is None:
            return False
        if not executable.is_put_off:
            from pocketgraph.runtime.certificates import check_schedule

            if check_schedule.allows(executable.check_time):
                return False
        if executable.check is None:
            self._check_later(executable, graph)
        return True

    def _check_later(self, executable: Executable, graph: Callable[[], Graph]) -> None:
        from pocketgraph.runtime.certificates.warm_check import WarmCheck

        assert self.planner is not None
        wanted, planner = self._replace(check="always"), self.planner
        executable.check = WarmCheck(lambda: planner(wanted, graph).executables)

    def opener(self, nodes: Callable[[], PartReference] | None = None) -> Opener | None:
        """What opens parts; None for LiteRT.

        Args:
            nodes: makes what computes a part's nodes on the reference engine, where the graph was read.
        """
        if not self.wants_one_engine or self.engine in (None, "litert"):
            return None
        from pocketgraph.runtime.part_engines.registry import opener

        return opener(self.engine, nodes)

    def choose_engine(
        self,
        executable: Executable,
        graph: Callable[[], Graph],
        nodes: Callable[[], PartReference] | None = None,
        check: Callable[[], Check] | None = None,
    ) -> None:
        """Lets a part run on the fastest engine where the session leaves that open (see part_engines/engine_choice.py).

        Args:
            executable: the part.
            graph: gives the graph, to compare the part after another engine has taken over.
            nodes: as for ``opener``.
            check: makes what compares it, where the graph was read.
        """
        if self.engine != "auto" or self.strict:
            return
        from pocketgraph.runtime.part_engines.engine_choice import consider

        def certify() -> None:
            if self.trusts(executable):
                return
            if check is not None:
                executable.check = check()
            elif self.planner is not None:
                self._check_later(executable, graph)

        if nodes is None and self.planner is not None:

            def nodes() -> PartReference:
                return self._nodes_of(executable, graph)

        consider(executable, nodes, certify, measure=self.measure, at_once=self.call.is_traced)

    def compile_again_later(self, executable: Executable, graph: Callable[[], Graph]) -> None:
        """Lets a part that was compiled for its first runs be compiled anew when it has run often.

        Args:
            executable: the part.
            graph: gives the whole graph.
        """
        if executable.next_tier is not None and self.planner is not None:
            from pocketgraph.runtime.planning.tiered_compilation import prepare

            wanted, planner = self._replace(without=self.without | {TIERS}), self.planner
            prepare(executable, lambda: planner(wanted, graph).executables, self.checked)

    def _nodes_of(self, executable: Executable, graph: Callable[[], Graph]) -> PartReference:
        """What computes a part's nodes on the reference engine, where an earlier process compiled it: all is planned
        anew, since the cache does not say which nodes a part is of.

        Raises:
            LookupError: the plan has another part by now.
        """
        assert self.planner is not None
        made: Sequence[Any] = self.planner(self._replace(check="always", engine=None), graph).executables
        found = {getattr(each, "kept_as", None): getattr(each, "check", None) for each in made}
        for each in made:
            each.close()
        check: Any = found[executable.kept_as]
        reference: PartReference = check.reference
        return reference


class ExecutionPlan:
    """Everything decided for one set of feeds with their shapes, fetches and targets.

    Attributes:
        program: the steps, with LiteRT's parts as calls; None where one executable does it all and no steps are wanted.
        whole: the executable that runs everything between feeds and fetches, when there is one.
        whole_inputs: the feed that goes into each input of it.
        description: for ``Session.plan``.
        executables: what has to be closed.
        ran: is told how long each run took this thread, in seconds of the processor; None: nobody wants to know.
        inferred: what was known of the graph's tensors; None where an earlier process made the plan.
    """

    def __init__(
        self,
        program: StepProgram | None,
        whole: Runnable | None = None,
        whole_inputs: tuple[int, ...] = (),
        description: Description = NOTHING,
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

    def timed(self, ran: Callable[[float], None]) -> ExecutionPlan:
        """The same plan, whose runs are told of."""
        return ExecutionPlan(self.program, self.whole, self.whole_inputs, self.description, self.executables, ran)

    def directly(self) -> Execution:
        """The quickest way to run ``whole``, on arrays of just its inputs' types and shapes."""
        assert self.whole is not None
        return self.whole.direct(self.whole_inputs)


class Compiled(NamedTuple):
    """A plan for fixed sizes.

    Attributes:
        key: of the call.
        executable: what runs it, where that is one alone.
        inferred: what was known of the graph's tensors.
        seconds: what the plan took.
    """

    key: CallKey
    executable: Executable | None
    inferred: Inferred
    seconds: float
