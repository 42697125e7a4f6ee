"""Models that draw random numbers, as of a dropout or noise that training left on, so that answers differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pocketgraph.errors import FreezeError
from pocketgraph.freezing.decided_branches import without_known_branches
from pocketgraph.graph import DType, Graph, Node, const, node_name
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.op_traits import PLACEHOLDERS, RANDOM, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.passes.dropout_removal import is_noise_of_dropout, without_dropout
from pocketgraph.passes.training_switches import values_in_use
from pocketgraph.runtime.unsupported_help import without_dropout_help

NOISE = ops_with("normal_noise")
DRAWS = ops_with("random", "uniform_noise", "normal_noise")


def random_nodes(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """The nodes that draw other numbers in each run which outputs are computed from."""
    return [name for name in drawing_nodes(graph, outputs) if graph[name].op in RANDOM]


def drawing_nodes(graph: Graph, outputs: Sequence[str], fed: Mapping[str, Any] | None = None) -> list[str]:
    """The nodes that draw random numbers which outputs are computed from, on the ways that are taken; those of a fixed
    seed, such as that of a Keras 3 dropout once it is frozen, draw the same in each run.

    Args:
        graph: the model.
        outputs: names of tensors.
        fed: the values of inputs by name; what else tells training from use is as outside of training.
    """
    if graph.dangling() or not any(node.op in DRAWS for node in graph):
        return []
    told = values_in_use(graph) | {node_name(name): value for name, value in (fed or {}).items()}

    def in_use(node: Node) -> Node:
        dtype = node.attr("dtype", None)
        is_switch = isinstance(dtype, DType) and (dtype is BOOL or dtype.is_floating)
        if node.op in PLACEHOLDERS and is_switch and np.size(told.get(node.name, ())) == 1:
            return const(node.name, np.asarray(told[node.name], dtype.numpy))
        if node.op == "PlaceholderWithDefault" and graph.constant(node.inputs[0]) is not None:
            return Node(node.name, "Identity", node.inputs, {"T": dtype})
        return node

    served, _ = without_dropout(graph.map_nodes(in_use), only_noop=True)
    with suppress(FreezeError):  # of other outputs, on a way not taken
        served = without_known_branches(served)
    needed = reachable(served, outputs, missing_ok=True)
    return sorted(name for name in needed if served[name].op in DRAWS)


def random_note(graph: Graph, outputs: Sequence[str], fed: Mapping[str, Any] | None = None) -> str:
    """That outputs are others in each run, or than they should be, why, and what helps; "" where they are not. The
    arguments are those of ``drawing_nodes``."""
    drawn = drawing_nodes(graph, outputs, fed)
    others = [name for name in drawn if graph[name].op in RANDOM]
    said = "the answers are random: " if others else ""
    if dropped := [name for name in drawn if is_noise_of_dropout(graph, name)]:
        return f"{said}training left {_kind(graph, dropped)} on ('{dropped[0]}'); {without_dropout_help()}"
    return f"{said}'{others[0]}' draws other numbers in each run" if others else ""


def without_dropout_left_on(graph: Graph, outputs: Sequence[str], notify: Callable[[str], None]) -> Graph:
    """The graph without the dropout and noise that training left on, which is told; as it is where there is none."""
    dropped = [name for name in drawing_nodes(graph, outputs) if is_noise_of_dropout(graph, name)]
    if not dropped:
        return graph
    kind = _kind(graph, dropped)
    notify(f"training left {kind} on, which does not ship: {', '.join(map(repr, dropped))}")
    return without_dropout(graph)[0]


def _kind(graph: Graph, dropped: Sequence[str]) -> str:
    """How a message calls what draws numbers: by the first of them."""
    return "noise" if graph[dropped[0]].op in NOISE else "a dropout"
