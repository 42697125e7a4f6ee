"""What is done alike to every part of a split tensor is done to the tensor before it is split.

Detection graphs clip each side of their boxes by itself, class by class: four Minimum and four Maximum where one each
does. Every element meets the same operations in the same order, so the results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ELEMENTWISE
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.needed import Item


def hoist_over_splits(graph: Graph, plan: Plan, held: Collection[str]) -> Graph:
    """The graph with equal work on all parts of a Split moved before it, and without joining what was just split.

    Args:
        plan: its needed nodes.
        held: nodes that are fed or fetched; they stay as they are.
    """
    changed: dict[str, Node] = {}
    added: list[Node] = []
    for name, item in plan.items.items():
        has_parts = item.node.op == "Split" and int(item.node.attr("num_split", 0) or 0) > 0
        if has_parts and name not in held and len(item.data) == 2:
            _join(name, item, plan, held, changed, added)
    return graph.replace([*(changed.get(node.name, node) for node in graph), *added]) if changed else graph


def _join(
    name: str, split: Item, plan: Plan, held: Collection[str], changed: dict[str, Node], added: list[Node]
) -> None:
    count = int(split.node.attr("num_split", 0) or 0)
    parts = [Endpoint(name, port) for port in range(count)]
    whole = split.data[1]
    made: list[Node] = []
    while True:
        alike = _alike(parts, plan, held)
        if alike is None:
            break
        first = plan.items[alike[0]]
        own = f"{name}/joined_{len(made)}"
        if own in plan.items:
            break
        inputs = [str(whole) if endpoint == parts[0] else str(endpoint) for endpoint in first.data]
        made.append(Node(own, first.node.op, inputs, first.node.attrs))
        for port, member in enumerate(alike):
            dtype = {"T": first.node.attrs["T"]} if "T" in first.node.attrs else {}
            changed[member] = Node(member, "Identity", [str(Endpoint(name, port))], dtype)
        whole = Endpoint(own, 0)
        parts = [Endpoint(member, 0) for member in alike]
    if made:
        waits = [f"^{waited}" for waited in split.control]
        changed[name] = split.node.replace(inputs=[str(split.data[0]), str(whole), *waits])
        added.extend(made)
    axis = _constant(split.data[0], plan)
    if any(part in plan.fed for part in parts):
        return
    for consumer in plan.takers(parts[0]):
        item = plan.items[consumer]
        if item.node.op == "ConcatV2" and list(item.data[:-1]) == parts and consumer not in held and not item.control:
            along = _constant(item.data[-1], plan)
            if axis is not None and along is not None and along.item() == axis.item():
                dtype = {"T": item.node.attrs["T"]} if "T" in item.node.attrs else {}
                changed[consumer] = Node(consumer, "Identity", [str(whole)], dtype)


def _alike(parts: list[Endpoint], plan: Plan, held: Collection[str]) -> list[str] | None:
    """The only takers of the parts, when they all do the same and nothing but that."""
    found = []
    for part in parts:
        takers = plan.takers(part)
        if len(takers) != 1 or takers[0] in held or part in plan.fed:
            return None
        found.append(takers[0])
    items = [plan.items[taker] for taker in found]
    first = items[0]
    if first.node.op not in ELEMENTWISE or len(set(found)) != len(found) or len(first.data) not in (1, 2):
        return None
    for part, item in zip(parts, items, strict=True):
        alike = item.node.op == first.node.op and len(item.data) == len(first.data)
        if not alike or item.control or _attrs(item.node) != _attrs(first.node):
            return None
        for own, others in zip(item.data, first.data, strict=True):
            if (own == part) != (others == parts[0]) or (own != part and not _same_scalar(own, others, plan)):
                return None
    return found


def _attrs(node: Node) -> Mapping[str, object]:
    return {name: value for name, value in node.attrs.items() if not name.startswith("_")}


def _constant(endpoint: Endpoint, plan: Plan) -> np.ndarray[Any, Any] | None:
    item = plan.items.get(endpoint.node)
    if item is None or item.node.op != "Const" or endpoint in plan.fed or item.control or item.node.tensor.nbytes > 8:
        return None
    value = item.node.tensor.numpy()
    return value if value.size == 1 else None


def _same_scalar(one: Endpoint, other: Endpoint, plan: Plan) -> bool:
    first, second = _constant(one, plan), _constant(other, plan)
    if first is None or second is None or first.ndim or second.ndim:
        return False
    return first.dtype == second.dtype and first.tobytes() == second.tobytes()
