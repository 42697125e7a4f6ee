"""The calls that one LiteRT program serves, which is told the sizes of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array
    from pocketgraph.litert.sizes.resizable import Resizable
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer


class ServedCalls:
    """Calls of several sizes that one program serves.

    Args:
        for_all: what runs all of them.
        comparison: compares the program at its first run; None where an earlier process did.
        takes: whether it can run a call that is fed these shapes; all by default.
        noted: where the program is a part of the call, what goes into that and comes out, as far as an answer tells it;
            None where it does not.
    """

    def __init__(
        self,
        for_all: ExecutionPlan,
        comparison: FirstComparison | None = None,
        takes: Callable[[Sequence[tuple[int, ...]]], bool] = lambda _: True,
        noted: Callable[[ReferenceAnswer], tuple[list[Array], list[Array]] | None] = lambda _: None,
    ) -> None:
        self.for_all = for_all
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
            plan = self.for_all
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
    resizable: Resizable, opened: CallKey, inputs: Sequence[Endpoint], comparison: FirstComparison | None = None
) -> ServedCalls:
    """The calls that a program computes as a whole.

    Args:
        resizable: the program.
        opened: the calls' key, with None for the sizes that change.
        inputs: what goes into it, in order.
        comparison: as for ServedCalls.
    """
    from pocketgraph.runtime.planning.sized_executables import SizedExecutables  # which first calls do without

    places = {endpoint: place for place, (endpoint, _) in enumerate(opened.feeds)}
    order = tuple(places[endpoint] for endpoint in inputs)
    whole = SizedExecutables(resizable, [opened.feeds[place][1][1] for place in order], comparison)

    def takes(shapes: Sequence[tuple[int, ...]]) -> bool:
        return whole.takes(tuple([shapes[place] for place in order]))

    return ServedCalls(ExecutionPlan(None, whole, order, executables=[whole]), comparison, takes)
