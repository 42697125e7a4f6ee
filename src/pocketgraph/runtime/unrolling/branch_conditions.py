"""Which branches a node runs on: the Switches of TensorFlow 1 that it hangs on, as far as a Merge joins them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import finishing
from pocketgraph.graph.op_traits import ENTER, MERGE, NEXT_ITERATION
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.needed import Item, behind


class Guard(NamedTuple):
    """A condition under which something runs.

    Attributes:
        predicate: the tensor that decides.
        side: what it has to be.
    """

    predicate: Endpoint
    side: bool

    @property
    def opposite(self) -> Guard:
        """The guard of the other side."""
        return Guard(self.predicate, not self.side)


class Guards:
    """The guards of every node; conditions of loops are none."""

    def __init__(self, items: Mapping[str, Item]) -> None:
        self._items = items
        self._depths: dict[Guard, int] = {}
        self._found: dict[str, frozenset[Guard]] = {}
        self._only: dict[str, Endpoint] = {}
        if any(item.node.op in MERGE or item.node.op == "Switch" for item in self._items.values()):
            for name in _in_order(self._items):
                self._found[name] = self._visited(self._items[name])

    def of(self, name: str) -> frozenset[Guard]:
        """The guards of a node."""
        return self._found.get(name, frozenset())

    def of_tensor(self, endpoint: Endpoint) -> frozenset[Guard]:
        """The guards of a tensor: those of its node, and of a Switch the side that it is."""
        own = self.of(endpoint.node)
        item = self._items.get(endpoint.node)
        if item is not None and item.node.op == "Switch":
            predicate = behind(self._items, item.data[1])
            if predicate.node not in self._items or self._items[predicate.node].node.op != "LoopCond":
                guard = Guard(predicate, endpoint.port == 1)
                if own.isdisjoint((guard, guard.opposite)):
                    depth = len(self.of(item.data[1].node))
                    self._depths[guard] = max(depth, self._depths.get(guard, 0))
                own |= {guard}
        return own

    def of_loop(self, loop: loops.Loop, frames: Mapping[str, loops.LoopFrame]) -> frozenset[Guard]:
        """The guards of a loop: of all that enters it, as a constant may have lost its own."""
        entered = (name for name in loop.members if frames[name] == loop.frame and self._items[name].node.op in ENTER)
        return frozenset(guard for name in entered for guard in self.of(name))

    def only_input(self, name: str) -> Endpoint | None:
        """What a Merge takes in any case, as its other input hangs on both sides of a predicate: that of a branch in a
        branch of the same predicate. None for any other node."""
        return self._only.get(name)

    def chosen_by(self, item: Item) -> tuple[Endpoint, Endpoint, Endpoint] | None:
        """The predicate that a Merge chooses by, and what it takes where that is true and where it is false."""
        guard = self._parting(item)
        if guard is None:
            return None
        a, b = item.data if guard in self.of_tensor(item.data[0]) else item.data[::-1]
        return (guard.predicate, a, b) if guard.side else (guard.predicate, b, a)

    def _parting(self, item: Item) -> Guard | None:
        """The guard that one side of a Merge has, and the other not; the innermost one, as a constant may have lost
        the guards that it had."""
        if len(item.data) != 2:
            return None
        left, right = (self.of_tensor(endpoint) for endpoint in item.data)
        both = [guard for guard in left if guard.opposite in right]
        return max(both or left ^ right, key=lambda guard: (self._depths.get(guard, 0), guard), default=None)

    def _can_be(self, endpoint: Endpoint) -> bool:
        guards = self.of_tensor(endpoint)
        return all(guard.opposite not in guards for guard in guards)

    def _visited(self, item: Item) -> frozenset[Guard]:
        whole = frozenset[Guard]()
        if loops.is_loop_head(item, self._items):
            return self.of_tensor(loops.first_and_next(item, self._items)[0])
        if item.node.op in MERGE:
            living = [each for each in item.data if self._can_be(each)]
            if len(living) == 1:
                self._only[item.node.name] = living[0]
            parting = self._parting(item) if len(living) > 1 else None
            for endpoint in living or item.data:
                whole |= self.of_tensor(endpoint)
            return frozenset(g for g in whole if parting is None or g.predicate != parting.predicate)
        for endpoint in item.data:
            whole |= self.of_tensor(endpoint)
        for control in item.control:
            whole |= self.of(control)
        return whole


def _in_order(items: Mapping[str, Item]) -> Iterator[str]:
    """The nodes, producers first; the edges that close loops do not count."""

    def before(name: str) -> list[str]:
        item = items[name]
        sources = [source for source in (*(e.node for e in item.data), *item.control) if source in items]
        closes = NEXT_ITERATION if item.node.op in MERGE else ()
        return [source for source in sources if items[source].node.op not in closes]

    return finishing(items, before)
