"""Which branches a node runs on: the Switches of TensorFlow 1 that it hangs on, as far as a Merge joins them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.names import Endpoint


class Guard(NamedTuple):
    """A condition under which something runs.

    Attributes:
        predicate: the tensor that decides.
        side: what it has to be.
    """

    predicate: Endpoint
    side: bool


def guards_of(prepared: Prepared) -> dict[str, frozenset[Guard]]:
    """The guards of each node that has some; conditions of loops are none."""
    items = prepared.items
    if not any(item.node.op in loops.MERGE or item.node.op == "Switch" for item in items.values()):
        return {}
    found: dict[str, frozenset[Guard]] = {}

    def of(endpoint: Endpoint) -> frozenset[Guard]:
        own = found.get(endpoint.node, frozenset())
        item = items.get(endpoint.node)
        if item is not None and item.node.op == "Switch":
            predicate = predicate_of(item.data[1], items)
            if items[predicate.node].node.op != "LoopCond":
                own |= {Guard(predicate, endpoint.port == 1)}
        return own

    for name in _in_order(items):
        item = items[name]
        sources = [of(endpoint) for endpoint in item.data if endpoint.node in items]
        if item.node.op in loops.MERGE:
            if loops.is_loop_head(item, items):
                first = next(e for e in item.data if items[e.node].node.op not in loops.NEXT)
                found[name] = of(first)
                continue
            whole = frozenset[Guard]().union(*sources)
            open_ = frozenset(g for g in whole if Guard(g.predicate, not g.side) not in whole)
            common = frozenset.intersection(*sources) if sources else frozenset()
            found[name] = open_ | common
            continue
        whole = frozenset[Guard]().union(*sources)
        for control in item.control:
            whole |= found.get(control, frozenset())
        if whole:
            found[name] = whole
    return {name: guards for name, guards in found.items() if guards}


def predicate_of(endpoint: Endpoint, items: Mapping[str, Item]) -> Endpoint:
    """The tensor that a predicate is, behind what only passes it on."""
    for _ in range(len(items)):
        item = items.get(endpoint.node)
        if item is None or item.node.op not in ("Identity", "Switch") or not item.data:
            break
        endpoint = item.data[0]
    return endpoint


def _in_order(items: Mapping[str, Item]) -> list[str]:
    """The nodes, producers first; the edges that close loops do not count."""
    order: list[str] = []
    state: dict[str, int] = {}
    for start in items:
        stack = [start]
        while stack:
            name = stack[-1]
            item = items[name]
            if state.get(name) == 2:
                stack.pop()
                continue
            if state.get(name) == 1:
                state[name] = 2
                order.append(name)
                stack.pop()
                continue
            state[name] = 1
            before = [*(e.node for e in item.data), *item.control]
            if item.node.op in loops.MERGE:
                before = [n for n in before if n not in items or items[n].node.op not in loops.NEXT]
            stack.extend(n for n in before if n in items and n not in state)
    return order
