"""Refuses batch norms that would go on training: that normalize by the batch they see, or by statistics never kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgraph.errors import FreezeError, command_on_model, option
from pocketgraph.freezing.graph_variables import is_variable
from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.op_traits import BINARY_SWITCHES, FUSED_BATCH_NORMS, SAME_ELEMENTS, SUMS
from pocketgraph.graph.order import MERGES, descendants

_MOST_LISTED = 3  # nodes in a message


class TrainingBatchNormError(FreezeError):
    """A batch norm of the frozen graph would go on training."""


def refuse_training_batch_norms(graph: Graph, whole: Graph | None = None, *, is_repaired: bool = False) -> None:
    """Raises when a frozen graph has a batch norm that uses the statistics of the batch it is given.

    That is a fused batch norm with is_training=true or with empty moving statistics, or one made of ops that takes
    the mean and variance over the batch. Those on a branch that only a run decides are left alone.

    Args:
        graph: the frozen graph.
        whole: what it was frozen from.
        is_repaired: whether averages that training kept were looked for.

    Raises:
        TrainingBatchNormError: there is one.
    """
    undecided: set[str] | None = None
    found: list[tuple[str, str]] = []
    for node in graph:
        if node.op in FUSED_BATCH_NORMS:
            why = _fused(graph, node)
        else:
            why = _composed(graph, node) if node.op == "Rsqrt" else ""
        if not why:
            continue
        undecided = _on_branches(graph) if undecided is None else undecided
        if node.name not in undecided:
            found.append((node.name, why))
    if not found:
        return
    name, why = found[0]
    more = f" (and {len(found) - 1} more batch norms)" if len(found) > 1 else ""
    raise TrainingBatchNormError(
        f"the batch norm '{name}'{more} {why}, so each answer depends on the other examples in the batch and a batch "
        "of one gives nonsense",
        hint=f"{_remedy(whole or graph, is_repaired=is_repaired)}freeze the evaluation graph, or if it is meant so "
        f"(style transfer), freeze_graph and ship take "
        f"{option('allow_training_batch_norm')}",
    )


def _remedy(graph: Graph, *, is_repaired: bool) -> str:
    """What may help before the graph itself has to be another one."""
    again = command_on_model("pocketgraph freeze_graph {} -o frozen.pb --repair")
    flags = [node.name for node in graph if node.op.startswith("Placeholder") and node.attr("dtype") is BOOL]
    if not any(map(is_variable, graph)):  # whose averages were left out when it was frozen
        averages = "freeze its training again with repair, which takes averages kept there, "
    elif is_repaired:
        averages = ""
    else:
        averages = f"take the averages that training kept ({again}), "
    if not flags:
        return averages
    return f"bind the placeholder that chooses training ({option('bind')} {flags[0]}=false), {averages}"


def untrained_batch_norms(graph: Graph) -> Iterator[str]:
    """A warning when all fused batch norms still have the moving statistics they began with, mean 0 and variance 1."""
    seen, untouched = 0, []
    for node in graph:
        if node.op not in FUSED_BATCH_NORMS or len(node.data_inputs) < 5:
            continue
        mean, variance = (graph.constant(ref) for ref in node.data_inputs[3:5])
        if mean is None or variance is None or mean.size == 0 or mean.size != variance.size:
            continue
        seen += 1
        if not np.any(mean.numpy()) and np.all(variance.numpy() == 1):
            untouched.append(node.name)
    if untouched and len(untouched) == seen:
        names = ", ".join(f"'{name}'" for name in untouched[:_MOST_LISTED])
        yield (
            f"the moving statistics of {names}{' …' if len(untouched) > _MOST_LISTED else ''} were never updated (mean "
            "0, variance 1); was the training run with the graph's UPDATE_OPS?"
        )


def _fused(graph: Graph, node: Node) -> str:
    if opdefs.attr_or_default(node, "is_training") is True:
        return "" if _is_layer_norm(graph, node) else "was frozen with is_training=true"
    for ref in node.data_inputs[3:5]:
        value = graph.constant(ref)
        if value is not None and value.size == 0:
            return "has empty moving statistics"
    return ""


def _is_layer_norm(graph: Graph, node: Node) -> bool:
    """Whether a fused batch norm is how Keras computes a layer norm: examples become channels of a batch of one, with
    scales of 1 and offsets of 0, so that each is normalized by itself."""
    inputs = node.data_inputs
    reshape = graph.find_producer(inputs[0]) if len(inputs) == 5 else None
    if reshape is None or reshape.op != "Reshape" or len(reshape.data_inputs) != 2:
        return False
    sizes = graph.find_producer(reshape.data_inputs[1])
    if sizes is not None and sizes.op == "Pack" and sizes.data_inputs:
        first = graph.constant(sizes.data_inputs[0])
    else:
        first = graph.constant(reshape.data_inputs[1])
    if first is None or first.size == 0 or first.numpy().reshape(-1)[0] != 1:
        return False
    return _is_all(graph, inputs[1], 1) and _is_all(graph, inputs[2], 0)


def _is_all(graph: Graph, ref: str, wanted: float) -> bool:
    node = graph.find_producer(ref)
    is_fill = node is not None and node.op == "Fill" and len(node.data_inputs) == 2
    value = graph.constant(node.data_inputs[1] if node is not None and is_fill else ref)
    return value is not None and value.size > 0 and bool(np.all(value.numpy() == wanted))


def _composed(graph: Graph, node: Node) -> str:
    """Whether 1 / sqrt(variance + epsilon) takes its variance over the batch."""
    total = _producer(graph, node.data_inputs[0]) if node.data_inputs else None
    if total is None or total.op not in SUMS:
        return ""
    for ref in total.data_inputs:
        mean = _producer(graph, ref)
        if mean is None or mean.op != "Mean" or len(mean.data_inputs) != 2:
            continue
        square = _producer(graph, mean.data_inputs[0])
        axes = graph.constant(mean.data_inputs[1])
        if square is None or square.op not in ("SquaredDifference", "Square") or axes is None:
            continue
        if 0 in axes.numpy().reshape(-1).tolist():
            return "takes its mean and variance from the batch"
    return ""


def _producer(graph: Graph, ref: str) -> Node | None:
    return graph.find_producer(ref, SAME_ELEMENTS)


def _on_branches(graph: Graph) -> set[str]:
    """The nodes behind a Switch and in front of its Merge; loops are no branches."""
    switches = []
    for node in graph:
        if node.op in BINARY_SWITCHES and len(node.data_inputs) == 2:
            decides = graph.find_producer(node.data_inputs[1])
            if decides is None or decides.op != "LoopCond":
                switches.append(node.name)
    return descendants(graph, switches, lambda node: node.op not in MERGES)
