"""The calls that one LiteRT program serves, which is told the sizes of each.

Calls of ever new sizes are run without looking up names or making a plan for each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.cost_model import WAITED
from pocketgraph.runtime.planning.call_key import SMALLEST_OPEN, CallKey, may_switch, switch_of
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Resizable, Shapes
    from pocketgraph.runtime.certificates.first_comparison import FirstComparison
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer
    from pocketgraph.runtime.planning.rewriting.sizes_of_feeds import Place

Pays: TypeAlias = "Callable[[Shapes, float], bool]"
"""Notes how many seconds a call of these shapes has run; says whether all such have run as long as a plan takes."""
PlanItsOwn: TypeAlias = "Callable[[CallKey], None]"
"""Is told the key of a call whose runs have taken as long as a plan of its own."""


class ServedCalls:
    """Calls of several sizes that one program serves.

    Args:
        for_all: what runs all of them.
        comparison: compares the program at its first run; None where an earlier process did.
        takes: whether it can run a call that is fed these shapes; all by default.
        noted: where the program is a part of the call, what goes into that and comes out, as far as an answer tells it;
            None where it does not.

    Attributes:
        for_all: as given.
        alike: sizes that have to be equal, each a feed's place and an axis, with the one that each has to equal.
    """

    def __init__(
        self,
        for_all: ExecutionPlan,
        comparison: FirstComparison | None = None,
        takes: Callable[[Sequence[tuple[int, ...]]], bool] = lambda _: True,
        noted: Callable[[ReferenceAnswer], tuple[list[Array], list[Array]] | None] = lambda _: None,
    ) -> None:
        self.for_all = for_all
        self.alike: Mapping[Place, Place] = {}
        self._takes = takes
        self._comparison = comparison
        self._noted = noted

    def takes(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the program can run a call that is fed these shapes."""
        pairs = self.alike.items()
        return all(shapes[at][axis] == shapes[other][its] for (at, axis), (other, its) in pairs) and self._takes(shapes)

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
    from pocketgraph.runtime.planning.sizes.sized_executables import SizedExecutables  # which first calls do without

    places = {endpoint: place for place, (endpoint, _) in enumerate(opened.feeds)}
    order = tuple(places[endpoint] for endpoint in inputs)
    whole = SizedExecutables(resizable, [opened.feeds[place][1][1] for place in order], comparison)

    def takes(shapes: Sequence[tuple[int, ...]]) -> bool:
        return whole.takes(tuple([shapes[place] for place in order]))

    return ServedCalls(ExecutionPlan(None, whole, order, executables=[whole]), comparison, takes)


class AnySizes:
    """The calls of a session that one program serves, whatever their sizes. Is asked without the session's lock.

    Args:
        opened: the calls' key, with None for the sizes that change.
        served: what serves them.
        own: the shapes of calls that have plans of their own.
        pays: as the type says; None where a plan would run no quicker.
        plan_its_own: as the type says.

    Attributes:
        is_repeated: whether the last call had the sizes of the one before.
    """

    def __init__(
        self, opened: CallKey, served: ServedCalls, own: Container[Shapes], pays: Pays | None, plan_its_own: PlanItsOwn
    ) -> None:
        self.is_repeated = False
        self.served = served
        self._opened = opened
        self._own = own
        self._pays = pays
        self._plan_its_own = plan_its_own
        self._specs = [(dtype.numpy if dtype else None, sizes) for _, (dtype, sizes) in opened.feeds]
        self._is_plain = not any(dtype is None or dtype.hasobject for dtype, _ in self._specs)
        switches = dict(opened.switches)
        self._switches = [  # of other sizes no value is one
            (place, switches.get(str(end)))
            for place, ((end, _), (dtype, sizes)) in enumerate(zip(opened.feeds, self._specs, strict=True))
            if None not in sizes and may_switch(np.empty(sizes, dtype))
        ]
        self._last: Shapes = ()

    def plan(self, values: Sequence[Any]) -> ExecutionPlan | None:
        """What runs a call with these values; None where that is not certain without looking up its names."""
        if not self._is_plain:
            return None
        for value, (dtype, sizes) in zip(values, self._specs, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.ndim != len(sizes):
                return None
            for own, size in zip(value.shape, sizes, strict=True):
                if own != size if size is not None else own < SMALLEST_OPEN:
                    return None
        shapes: Shapes = tuple([value.shape for value in values])
        if shapes in self._own or not self._is_taken(shapes):
            return None
        for place, on in self._switches:
            if switch_of(values[place]) is not on:
                return None
        self.is_repeated, self._last = shapes == self._last, shapes
        return self.served.for_all.timed(partial(self.ran, shapes))

    def ran(self, shapes: Shapes, seconds: float) -> None:
        """Lets calls have a plan of their own that have often waited for the program to take their sizes; where that is
        quicker (the program is a part of this plan, or lacks tiles), ones that have run as long as making one takes."""
        waited: Any = getattr(self.served.for_all.whole, "waited", None)
        if (waited is not None and waited(shapes) > WAITED) | (self._pays is not None and self._pays(shapes, seconds)):
            self._plan_its_own(self._opened.with_shapes(shapes))

    def _is_taken(self, shapes: Shapes) -> bool:
        served = self.served
        return served.is_trusted and not served.is_undecided and served.takes(shapes)
