"""Placeholders that tell training from use: what a dropout keeps or drops, and flags such as ``is_training``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph import DType, Graph, Node, const, node_name, parse_ref
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    FUSED_BATCH_NORMS,
    MERGE,
    NO_DEFAULT_PLACEHOLDERS,
    PASSES,
    PLACEHOLDERS,
    QUOTIENTS,
    RANDOM,
)
from pocketgraph.graph.order import descendants, reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.passes.dropout_removal import DEPTH, MASKS, OF_RATE, with_invariants_passed_on, without_dropout

FLAG = re.compile(r"(?i)(^|[/_])(is_?)?(train|training|train_?(phase|mode|flag)|phase_?train|learning_?phase)(_\d+)?$")
"""Not a trait: placeholders without a value of their own."""


def training_switches(graph: Graph, without: Collection[str] = ()) -> dict[str, float]:
    """The values in use of placeholders that choose between training and use, by the nodes' names.

    False for bools whose names say training, else what leads past dropouts and statistics of the batch; 1 for the share
    that dropouts keep, 0 for the share that they drop.

    Args:
        graph: the model.
        without: names of tensors that the caller feeds.
    """
    fed = {node_name(name) for name in without}
    draws = any(node.op in RANDOM for node in graph)
    found: dict[str, float] = {}
    for node in graph:
        if node.op not in NO_DEFAULT_PLACEHOLDERS or node.name in fed:
            continue
        flag = flag_in_use(graph, node)
        if flag is not None:
            found[node.name] = flag
            continue
        share = dropout_share(graph, node.name) if draws else None
        if share is not None:
            found[node.name] = share
    return found


def values_in_use(graph: Graph, without: Collection[str] = (), outputs: Sequence[str] = ()) -> dict[str, Array]:
    """The values of ``training_switches`` as arrays to feed, of those that the outputs need, or of all without any."""
    read = reachable(graph, outputs, missing_ok=True) if outputs else graph.nodes
    return {
        name: np.asarray(value, graph[name].dtype("dtype").numpy)
        for name, value in training_switches(graph, without).items()
        if name in read
    }


def flag_in_use(graph: Graph, node: Node) -> bool | None:
    """What a bool placeholder is outside of training; None where it is no flag of training.

    That is False where its name says training; else, of a placeholder without a default, what leads past the branches
    that draw random numbers, take statistics of the batch or assign to variables.
    """
    if node.op not in PLACEHOLDERS or node.attr("dtype") is not BOOL:
        return None
    if FLAG.search(node.name):
        return False
    if node.op not in NO_DEFAULT_PLACEHOLDERS:
        return None
    trains = [_has_training(graph, branch) for branch in _branches(graph, node.name)]
    return trains[0] if trains[0] != trains[1] else None


def _branches(graph: Graph, name: str) -> tuple[set[str], set[str]]:
    """The nodes that run where a bool is false, and where it is true: behind its switches, before they merge."""
    found: tuple[set[str], set[str]] = (set(), set())
    deciding = {name} | descendants(graph, [name], lambda node: node.op in PASSES)
    for switch in graph:
        if switch.op not in BINARY_SWITCHES or node_name(switch.data_inputs[1]) not in deciding:
            continue
        for reader in graph.consumers.get(switch.name, ()):
            ports = {parse_ref(ref).port for ref in reader.data_inputs if node_name(ref) == switch.name}
            if len(ports) == 1 and reader.op not in MERGE:
                inside = descendants(graph, [reader.name], lambda node: node.op not in MERGE)
                found[ports.pop()].update(inside, [reader.name])
    return found


def _has_training(graph: Graph, names: Collection[str]) -> bool:
    return any(
        node.op in RANDOM
        or node.op.startswith("Assign")
        or (node.op in FUSED_BATCH_NORMS and node.attr("is_training") is not False)
        for node in (graph[name] for name in names)
    )


def dropout_share(graph: Graph, name: str) -> float | None:
    """The value of a placeholder with which dropouts let everything through; None where it is no dropout's share.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     rate = Placeholder(dtype=float)
    ...     size = Shape(x, T=float)
    ...     noise = RandomUniform(size, dtype=float)
    ...     mask = GreaterEqual(noise, rate, T=float)
    ...     ones = Cast(mask, SrcT=bool, DstT=float)
    ...     y = Mul(x, ones, T=float)
    ... ''')
    >>> dropout_share(graph, "rate")
    0.0
    """
    node = graph.find_producer(name)
    if node is None or node.op not in NO_DEFAULT_PLACEHOLDERS or not _may_be_a_number(node):
        return None
    entering = {reader.name for reader in graph.consumers.get(node.name, ()) if reader.op == "Enter"}
    graph = with_invariants_passed_on(graph) if entering else graph
    if any(_divides(reader, one) for one in (node.name, *entering) for reader in graph.consumers.get(one, ())):
        return 1.0
    if not _reaches_a_mask(graph, node) or not any(other.op in RANDOM for other in graph):
        return None
    before = len(without_dropout(graph, only_noop=True)[1])
    for share in (1.0, 0.0):
        constant = const(node.name, np.float32(share))
        bound = graph.map_nodes(lambda other, constant=constant: constant if other.name == constant.name else other)  # type: ignore[misc]
        if len(without_dropout(bound, only_noop=True)[1]) > before:
            return share
    return None


def _reaches_a_mask(graph: Graph, node: Node) -> bool:
    """Whether a dropout's mask may be made with a number: trying it out takes a walk over the graph."""
    reached, seen = [node], {node.name}
    for _ in range(DEPTH):
        readers = [reader for one in reached for reader in graph.consumers.get(one.name, ())]
        if any(reader.op in MASKS for reader in readers):
            return True
        reached = [reader for reader in readers if reader.op in OF_RATE and reader.name not in seen]
        seen.update(reader.name for reader in reached)
    return False


def switches_note(switches: Mapping[str, Any]) -> str:
    """What a caller is told who has set none of these."""
    said = " and ".join(f"'{name}' is {_text(value)}" for name, value in switches.items())
    name, value = next(iter(switches.items()))
    other = "true" if _text(value) == "false" else "0.5"
    return f"{said}, as outside of training ({option('feed', 'feeds')} {name}={other} would be as in training)"


def _text(value: Any) -> str:
    return str(bool(value)).lower() if np.asarray(value).dtype == bool else f"{float(value):g}"


def _may_be_a_number(node: Node) -> bool:
    dtype, shape = node.attr("dtype"), node.shape()
    is_float = dtype is None or (isinstance(dtype, DType) and dtype.is_floating)
    return is_float and (shape is None or shape.rank in (None, 0))


def _divides(reader: Node, name: str) -> bool:
    data = reader.data_inputs
    return reader.op in QUOTIENTS and len(data) == 2 and node_name(data[1]) == name
