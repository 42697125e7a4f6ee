"""The first call of other sizes, answered by the reference engine: it waits for no program of all sizes.

Making one takes up to as long as the first plan did; where the reference engine computes the call in a fraction of
that, it answers, and once more where that took little; the program is made when the process is idle, or when the next
call of other sizes comes. What was fed and computed at first is what that program is compared with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from pocketgraph.graph import DType, Shape, opdefs
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.op_traits import ops_with, user_ops
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.litert.cost_model import ANSWERED_PRODUCT, ANSWERED_SHARE, MOST_NOTED, PLANNED_STEP
from pocketgraph.runtime.certificates.part_reference import OWN, PartReference
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request, Runnable
from pocketgraph.runtime.planning.numpy_time import FLOW, numpy_time

UNFIT = ops_with("random", "variable", "reads_handle")
"""What draws numbers, or has to do with more than one run."""

PLAIN = OWN | ops_with("constant", "passes")
"""Ops whose kernels take no context, and are imported where nothing else computes them."""


@collector_paused()
def answered_by_reference(
    key: CallKey, compiled: FixedPlan, request: Request
) -> tuple[ExecutionPlan, ReferenceAnswer] | None:
    """A plan for one run of a call; None where the reference engine is no quicker than making a program.

    Args:
        key: of the call.
        compiled: a plan for other sizes.
        request: what is to be run, with the whole graph.
    """
    growth, limit = _growth(key, compiled.key), ANSWERED_SHARE * compiled.seconds * 1e6
    if compiled.work * growth * ANSWERED_PRODUCT > limit:
        return None
    items = compiled.items
    nodes = [item.node for item in items.values()]
    ops = {node.op for node in nodes}
    bodies = FunctionLibrary(request.graph).with_bodies(nodes)
    if not (UNFIT | user_ops()).isdisjoint(node.op for node in bodies) or any(op not in KERNELS for op in ops - FLOW):
        return None
    if not FLOW.isdisjoint(ops) or any(item.control for item in items.values()):
        steps = sum(node.op != "Const" for node in nodes)
        if request.planner is None or compiled.check_time * growth + PLANNED_STEP * steps > limit:
            return None
        plan = request.planner(request.replace(engine="reference", key=""), lambda: request.graph)
        plan.once_with = request.threads
        return plan, ReferenceAnswer(key, None)
    if numpy_time(nodes, compiled.inferred) * growth**2 > limit:  # attention: each element may meet all others
        return None
    if any(opdefs.is_stateful(op) for op in ops):
        return None
    rows = map(KERNELS.row, ops - PLAIN)
    if any(row is not None and row.takes_context for row in rows):
        return None
    types = [dtype for _, (dtype, _) in key.feeds] + [compiled.inferred.dtype(str(each)) for each in key.fetches]
    if not all(dtype is not None and _is_plain(dtype) for dtype in types):
        return None
    reference = PartReference(request.graph, tuple(request.feeds), request.fetches, request.without, items)
    answer = ReferenceAnswer(key, reference)
    plan = ExecutionPlan(None, answer, tuple(range(len(request.feeds))), executables=[answer])
    plan.once_with = request.threads
    return plan, answer


def _growth(key: CallKey, first: CallKey) -> float:
    """How many times as many elements are fed, of the feed that grew most; 1 where none grew."""
    pairs = zip(key.feeds, first.feeds, strict=True)
    sizes = [(math.prod(Shape(now).known), math.prod(Shape(then).known)) for (_, (_, now)), (_, (_, then)) in pairs]
    return max(1.0, *(now / max(1, then) for now, then in sizes))


def _is_plain(dtype: DType) -> bool:
    """Whether NumPy has the type by itself."""
    return not dtype.is_ref and dtype.numpy.kind in "biuf" and dtype.numpy.isbuiltin == 1


class ReferenceAnswer(Runnable):
    """A whole call on the reference engine, node by node (see ``execution_plan.Runnable``).

    Attributes:
        key: the call's.
        feeds: copies of what was fed at the first run, in the call's order.
        results: copies of what it gave; none before, where they are too large to keep, and where others ran the call.
        seconds: what the last run took; infinite before, and where others ran the call.
    """

    def __init__(self, key: CallKey, reference: PartReference | None) -> None:
        self.key = key
        self.feeds: list[Array] = []
        self.results: list[Array] = []
        self.seconds = math.inf
        self._reference = reference

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs.

        Raises:
            PocketgraphError: the reference engine refuses the inputs.
        """
        assert self._reference is not None
        began = time.thread_time()
        results = self._reference.run(inputs)
        self.seconds = time.thread_time() - began
        if not self.results and sum(array.nbytes for array in (*inputs, *results)) <= MOST_NOTED:
            self.feeds, self.results = [each.copy() for each in inputs], [each.copy() for each in results]
        return results

    def is_quick(self, key: CallKey, seconds: float) -> bool:
        """Whether it takes no longer for a call of these sizes, by what it took so far."""
        return self.seconds * _growth(key, self.key) ** 2 <= seconds

    def close(self) -> None:
        """Lets go of what was noted."""
        self.feeds, self.results = [], []
