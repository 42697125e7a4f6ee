"""Batch norms that were built for training take the moving averages that training kept, not the batch's statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pocketgraph.freezing.graph_variables import ASSIGNS
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import FUSED_BATCH_NORMS, SAME_VALUES, SUMS, VARIABLES, ops_with

CHANGES = ("AssignSub", "AssignSubVariableOp", "AssignAdd", "AssignAddVariableOp")
"""Not a trait: what a moving average is brought nearer to the batch's statistic with."""


class _Average(NamedTuple):
    """A moving average, as a tensor that reads it, and the node that compares it with the batch's statistic."""

    read: str
    statistic: str
    difference: str


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Finds each moving average by the node that updates it: ``average -= (average - statistic) * (1 - decay)``,
    or in Keras 3 ``average = average * decay + statistic * (1 - decay)``.

    Given:   x = Placeholder(dtype=float)
             scale = Const(float [1.0, 2.0])
             offset = Const(float [0.0, 1.0])
             empty = Const(float [])
             mean = VariableV2(dtype=float, shape=[2])
             variance = VariableV2(dtype=float, shape=[2])
             y = FusedBatchNorm(x, scale, offset, empty, empty, T=float, is_training=true)
             rate = Const(float 0.01)
             d = Sub(mean, y:1, T=float)
             change = Mul(d, rate, T=float)
             update = AssignSub(mean, change, T=float)
             d_1 = Sub(variance, y:2, T=float)
             change_1 = Mul(d_1, rate, T=float)
             update_1 = AssignSub(variance, change_1, T=float)
    Result:  x = Placeholder(dtype=float)
             scale = Const(float [1.0, 2.0])
             offset = Const(float [0.0, 1.0])
             mean = VariableV2(dtype=float, shape=[2])
             variance = VariableV2(dtype=float, shape=[2])
             y = FusedBatchNorm(x, scale, offset, mean, variance, T=float, is_training=false)

    Likewise where the statistics are spelled out: what took the batch's mean and variance takes the averages. Batch
    norms on branches that a run decides are left alone.
    """
    averages: dict[str, _Average] = {}
    for found in _averages(graph):
        averages.setdefault(canonical(found.statistic), found)
    lines: dict[str, str] = {}
    nodes: list[Node] = []
    spelled_out = {ref: found for ref, found in averages.items() if graph[node_name(ref)].op not in FUSED_BATCH_NORMS}
    differences = {found.difference for found in averages.values()}
    for node in graph:
        mean, variance = (averages.get(canonical(f"{node.name}:{port}")) for port in (1, 2))
        if node.op in FUSED_BATCH_NORMS and node.attr("is_training", True) is True and mean and variance:
            inputs = [*node.data_inputs[:3], mean.read, variance.read, *node.control_inputs]
            node = node.replace(inputs=inputs, attrs={**node.attrs, "is_training": False})
            lines[node.name] = f"'{node.name}' takes its moving averages '{mean.read}' and '{variance.read}'"
        elif node.name not in differences and _normalizes(graph, node):
            inputs = [
                ref if ref.startswith("^") or canonical(ref) not in spelled_out else spelled_out[canonical(ref)].read
                for ref in node.inputs
            ]
            changed = [(old, new) for old, new in zip(node.inputs, inputs, strict=True) if old != new]
            if changed:
                taken = ", ".join(f"'{new}' in place of '{old}'" for old, new in changed)
                lines[node.name] = f"'{node.name}' takes the moving average {taken}"
            node = node.replace(inputs=inputs)
        nodes.append(node)
    return graph.replace(nodes), lines


def _averages(graph: Graph) -> Iterator[_Average]:
    for update in graph:
        if len(update.data_inputs) != 2:
            continue
        if update.op in ASSIGNS:
            yield from _weighted(graph, update)
        if update.op not in CHANGES:
            continue
        scaled = _maker(graph, update.data_inputs[1])
        if scaled is None or scaled.op != "Mul":
            continue
        for ref in scaled.data_inputs:
            difference = _maker(graph, ref)
            if difference is None or difference.op != "Sub":
                continue
            read, statistic = difference.data_inputs
            if "Add" in update.op:
                read, statistic = statistic, read
            if (
                _variable(graph, read) == _variable(graph, update.data_inputs[0]) != ""
                and node_name(statistic) in graph
            ):
                yield _Average(read, statistic, difference.name)


def _weighted(graph: Graph, update: Node) -> Iterator[_Average]:
    """The average of an update as Keras 3 writes it: ``average = average * decay + statistic * (1 - decay)``."""
    total = _maker(graph, update.data_inputs[1])
    if total is None or total.op not in SUMS or len(total.data_inputs) != 2:
        return
    terms = [_maker(graph, ref) for ref in total.data_inputs]
    for old, new in (terms, terms[::-1]):
        if old is None or new is None or old.op != "Mul" or new.op != "Mul":
            continue
        reads = [
            ref for ref in old.data_inputs if _variable(graph, ref) == _variable(graph, update.data_inputs[0]) != ""
        ]
        statistics = [ref for ref in new.data_inputs if graph.constant(ref) is None and node_name(ref) in graph]
        if reads and len(statistics) == 1:
            yield _Average(reads[0], statistics[0], new.name)


def _maker(graph: Graph, ref: str) -> Node | None:
    """The node that makes a tensor, past those that hand it on."""
    return graph.find_producer(ref, SAME_VALUES)


def _variable(graph: Graph, ref: str) -> str:
    """The variable that a tensor reads, refers to or is the handle of; "" where it is none."""
    node = graph.find_producer(ref, SAME_VALUES | {"ReadVariableOp"})
    return node.name if node is not None and node.op in VARIABLES else ""


def _normalizes(graph: Graph, node: Node) -> bool:
    """Whether a node is arithmetic of a batch norm: a root of its variance is near."""
    if node.op not in ops_with("sum", "difference", "product"):
        return False
    near = [node, *(user for user in graph.consumers.get(node.name, ()))]
    near += [made for one in list(near) for ref in one.data_inputs if (made := _maker(graph, ref)) is not None]
    return any(
        one.op in ("Rsqrt", "Sqrt") or any(user.op in ("Rsqrt", "Sqrt") for user in graph.consumers.get(one.name, ()))
        or any((made := _maker(graph, ref)) is not None and made.op in ("Rsqrt", "Sqrt") for ref in one.data_inputs)
        for one in near
    )  # fmt: skip
