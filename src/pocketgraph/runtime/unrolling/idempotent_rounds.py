"""Finds loops whose rounds past their end would change nothing, so that they may run on to an end that is known.

A ``dynamic_rnn`` with sequence lengths ends at ``min(steps, max(1, max(lengths)))``, which only the run knows. From
``max(lengths)`` on, each of its rounds keeps every state and puts zeros into every output:

    state = Select(time >= lengths, state, new)        output[time] = Select(time >= lengths, zeros, new)

Rows that are never written are zeros as well, so that the same comes out after all ``steps``, whose number is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pocketgraph.graph import Tensor
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, NEXT_ITERATION, PASSES, SELECTS, SUMS
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.needed import Item, behind

HANDED_ON = PASSES | ENTER | NEXT_ITERATION


def later_ends(condition: Item, back: Mapping[str, Endpoint], exits: Iterable[Item], plan: Plan) -> dict[str, Endpoint]:
    """Ends that a loop may run on to.

    Args:
        condition: the loop's LoopCond.
        back: for each loop variable (its Merge), what it is in the next round.
        exits: where values leave the loop.
        plan: the needed nodes, of the loop and around it.

    Returns:
        For the Enter of the end, the tensor that may enter instead; nothing when a round past the end has effects.
    """
    items = plan.items
    look = _CandidateLoop(back, items)
    leaving = {look.variable(item.data[0]) for item in exits}
    if any(look.counts(name) for name in leaving if name is not None):
        return {}  # a counter would leave with what it is at the later end
    compared = items[condition.data[0].node]
    for item in [items[e.node] for e in compared.data] if compared.node.op == "LogicalAnd" else [compared]:
        if item.node.op != "Less":
            continue
        counter, end = look.variable(item.data[0]), items[item.data[1].node]
        if counter is None or end.node.op not in ENTER or not look.counts(counter):
            continue
        if sum(map(len, plan.taken_from(end.node.name).values())) > 1:
            continue  # what else takes it wants the end as it is
        steps, lengths = _end(look.origin(end.data[0]), look)
        if steps is not None and lengths is not None and look.only_keeps(counter, lengths):
            return {end.node.name: steps}
    return {}


def _end(least: Endpoint, look: _CandidateLoop) -> tuple[Endpoint | None, Endpoint | None]:
    """The steps and the lengths of an end ``min(steps, max(1, max(lengths)))``."""
    found = look.items.get(least.node)
    if found is None or found.node.op != "Minimum":
        return None, None
    for steps, longest in (found.data, found.data[::-1]):
        item = look.items.get(look.origin(longest).node)
        if item is not None and item.node.op == "Maximum":
            others = [e for e in item.data if not look.is_number(e, 1)]
            item = look.items.get(look.origin(others[0]).node) if len(others) == 1 else None
        if item is not None and item.node.op == "Max":
            return steps, look.origin(item.data[0])
    return None, None


class _CandidateLoop:
    """A loop's variables and what becomes of them."""

    def __init__(self, back: Mapping[str, Endpoint], items: Mapping[str, Item]) -> None:
        self.back = back
        self.items = items

    def origin(self, endpoint: Endpoint) -> Endpoint:
        """Where a tensor comes from, past what hands it on."""
        return behind(self.items, endpoint, HANDED_ON)

    def variable(self, endpoint: Endpoint) -> str | None:
        """The loop variable that this is in the present round, if it is one."""
        for _ in range(len(self.items)):
            if endpoint.node in self.back:
                return endpoint.node
            item = self.items.get(endpoint.node)
            if item is None or not (item.node.op in PASSES or item.node.op == "Switch"):
                return None
            endpoint = item.data[0]
        return None

    def is_number(self, endpoint: Endpoint, number: int) -> bool:
        """Whether a tensor is a constant, all of this number."""
        item = self.items.get(self.origin(endpoint).node)
        if item is None:
            return False
        if item.node.op == "Fill":
            return self.is_number(item.data[1], number)
        value = item.node.attrs.get("value")
        if item.node.op != "Const" or not isinstance(value, Tensor) or value.dtype.name == "string":
            return False
        return bool(np.all(np.asarray(value.numpy() == number)))

    def counts(self, variable: str) -> bool:
        """Whether a loop variable grows by one in every round."""
        item = self.items[self.origin(self.back[variable]).node]
        if item.node.op not in SUMS:
            return False
        return any(
            self.variable(one) == variable and self.is_number(other, 1) for one, other in (item.data, item.data[::-1])
        )

    def only_keeps(self, counter: str, lengths: Endpoint) -> bool:
        """Whether every loop variable stays what it is when the counter has reached all lengths."""
        return all(self.counts(name) or self._stays(name, counter, lengths) for name in self.back)

    def _stays(self, name: str, counter: str, lengths: Endpoint) -> bool:
        item = self.items[self.origin(self.back[name]).node]
        if item.node.op in SELECTS:
            return self._is_over(item.data[0], counter, lengths) and self.variable(item.data[1]) == name
        if item.node.op != "TensorArrayWriteV3" or self.variable(item.data[3]) != name:
            return False
        written = self.items[self.origin(item.data[2]).node]
        return (
            self.variable(item.data[1]) == counter
            and written.node.op in SELECTS
            and self._is_over(written.data[0], counter, lengths)
            and self.is_number(written.data[1], 0)
        )

    def _is_over(self, endpoint: Endpoint, counter: str, lengths: Endpoint) -> bool:
        """Whether a tensor says which sequences are over: ``counter >= lengths``."""
        item = self.items[self.origin(endpoint).node]
        return (
            item.node.op == "GreaterEqual"
            and self.variable(item.data[0]) == counter
            and self.origin(item.data[1]) == lengths
        )
