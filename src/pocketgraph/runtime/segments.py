"""Cuts a graph into the largest parts that one engine can hold, without a circle between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pocketgraph.runtime.engines.frames import ROOT, split
from pocketgraph.runtime.engines.units import Plan, in_order
from pocketgraph.runtime.names import Endpoint

HEAVY = frozenset((
    "Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3D", "MatMul", "BatchMatMul", "BatchMatMulV2",
    "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "AvgPool", "ResizeBilinear",
    "ResizeNearestNeighbor", "LRN", "Softmax", "LSTMBlockCell", "BlockLSTM",
))  # fmt: skip
FREE = frozenset((
    "Const", "Identity", "StopGradient", "Snapshot", "PreventGradient", "NoOp", "PlaceholderWithDefault", "Reshape",
    "Squeeze", "ExpandDims", "Shape",
))  # fmt: skip
LEAST_WORK = 3  # compute ops; the call into another engine costs about as much as this many small NumPy calls


@dataclass(frozen=True)
class Cut:
    """One part of the graph to be run as a whole.

    Attributes:
        nodes: its nodes, each after those it depends on.
        inputs: the tensors that come from outside and differ from run to run.
        outputs: the tensors that somebody outside takes.
    """

    nodes: tuple[str, ...]
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


def cut(plan: Plan, able: Collection[str], static: Collection[str], fetched: Collection[Endpoint]) -> list[Cut]:
    """The parts, in an order in which they can run.

    A node's level counts how often the kind (able or not) changes on the longest way to it. Able nodes of one level
    that hang together, by values or by waiting, make one part; a way out of a part and back would raise the level, so
    there is none.

    Args:
        plan: the needed nodes; its segments are not looked at.
        able: nodes of the root region that the other engine can run.
        static: nodes whose values are known before the run; they belong to no part and every part may use them.
        fetched: tensors that the caller takes.
    """
    own, inner = split(plan.items, ROOT, plan.items, plan.frames)
    level: dict[object, int] = {}
    kind: dict[object, bool] = {}
    order: list[str] = []
    for unit, sources in in_order(own, inner, plan):
        key = unit if isinstance(unit, str) else id(unit)
        if isinstance(unit, str) and unit in static:
            continue
        kind[key] = isinstance(unit, str) and unit in able
        level[key] = 0
        for source in sources:
            source_key = source if isinstance(source, str) else id(source)
            if source_key in level:
                step = 0 if kind[source_key] == kind[key] else 1
                level[key] = max(level[key], level[source_key] + step)
        if isinstance(unit, str):
            order.append(unit)
    members = [name for name in order if kind[name]]
    group = {name: name for name in members}

    def root(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for name in members:
        item = plan.items[name]
        for source in (*(e.node for e in item.data if e not in plan.fed), *item.control):
            if source in group and level[source] == level[name]:
                group[root(name)] = root(source)
    parts: dict[str, list[str]] = {}
    for name in members:
        parts.setdefault(root(name), []).append(name)
    leaving: dict[str, set[int]] = {}
    for endpoint in fetched:
        leaving.setdefault(endpoint.node, set()).add(endpoint.port)
    for name, item in plan.items.items():
        home = root(name) if name in group else None
        for endpoint in item.data:
            if endpoint.node in group and root(endpoint.node) != home:
                leaving.setdefault(endpoint.node, set()).add(endpoint.port)
    return [_bounded(part, plan, static, leaving) for part in parts.values()]


def _bounded(part: Sequence[str], plan: Plan, static: Collection[str], leaving: Mapping[str, set[int]]) -> Cut:
    inside = set(part)
    inputs: dict[Endpoint, None] = {}
    for name in part:
        for endpoint in plan.items[name].data:
            if endpoint in plan.fed or (endpoint.node not in inside and endpoint.node not in static):
                inputs[endpoint] = None
    outputs = [Endpoint(name, port) for name in part for port in sorted(leaving.get(name, ()))]
    return Cut(tuple(part), tuple(inputs), tuple(e for e in outputs if e not in plan.fed))


def is_worth_it(part: Cut, plan: Plan) -> bool:
    """Whether the part has work enough to pay for the call."""
    work = 0
    for name in part.nodes:
        op = plan.items[name].node.op
        work += LEAST_WORK if op in HEAVY else op not in FREE
    return work >= LEAST_WORK
