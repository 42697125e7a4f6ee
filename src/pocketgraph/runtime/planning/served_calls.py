"""The calls that one LiteRT program serves, which is told the sizes of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.sizes.resizable import Resizable
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer


class ServedCalls:
    """Calls of several sizes that one program serves.

    Args:
        plan: what runs calls of these sizes; RunError where LiteRT does not take them.
        comparison: compares the program at its first run; None where an earlier process did.
        takes: whether it can run a call of these sizes; all by default.
        noted: where the program is a part of the call, what goes into that and comes out, as far as an answer tells it;
            None where it does not.
    """

    def __init__(
        self,
        plan: Callable[[CallKey], ExecutionPlan],
        comparison: FirstComparison | None = None,
        takes: Callable[[CallKey], bool] = lambda _: True,
        noted: Callable[[ReferenceAnswer], tuple[list[Array], list[Array]] | None] = lambda _: None,
    ) -> None:
        self.plan = plan
        self.takes = takes
        self._comparison = comparison
        self._noted = noted

    @property
    def is_trusted(self) -> bool:
        """Whether the program was compared and right; the first sizes are those for which it is."""
        return self._comparison is None or self._comparison.is_trusted

    @property
    def is_undecided(self) -> bool:
        """Whether the program is at its first run, which it is compared at."""
        return self._comparison is not None and self._comparison.is_undecided

    def compare(self, answer: ReferenceAnswer) -> None:
        """Compares the program with an answer that was noted, where that tells what the program takes and gives."""
        comparison = self._comparison
        if comparison is None:
            return
        with contextlib.suppress(PocketgraphError):  # it stays without a verdict, and serves nobody
            plan = self.plan(answer.key)
            if plan.whole is not None:
                comparison.known = answer.results
                plan.whole.run([answer.feeds[place] for place in plan.whole_inputs])
                plan.whole.close()
                return
            found = self._noted(answer)
            if found is not None:
                inputs, comparison.known = found
                plan.executables[0].run(inputs)
                if comparison.is_new:  # the program does not take these sizes
                    comparison.known = None


def served_by(
    resizable: Resizable, inputs: Sequence[Endpoint], comparison: FirstComparison | None = None
) -> ServedCalls:
    """The calls that a program computes as a whole.

    Args:
        resizable: the program.
        inputs: what goes into it, in order.
        comparison: as for ServedCalls.
    """

    def shapes(key: CallKey) -> list[tuple[int, ...]]:
        feeds = dict(key.feeds)
        return [Shape(feeds[endpoint][1]).known for endpoint in inputs]

    def plan(key: CallKey) -> ExecutionPlan:
        executable: Executable = resizable.sized(shapes(key))
        if comparison is not None:
            comparison.watch(executable)
        places = {endpoint: place for place, (endpoint, _) in enumerate(key.feeds)}
        order = tuple(places[endpoint] for endpoint in inputs)
        return ExecutionPlan(None, executable, order, executables=[executable])

    return ServedCalls(plan, comparison, lambda key: resizable.takes(shapes(key)))
