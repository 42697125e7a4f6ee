"""Placeholders such as ``is_training`` that choose between training and use become false."""

from __future__ import annotations

import re

from pocketgraph.freezing.binding import bound
from pocketgraph.graph import DType, Graph

FLAG = re.compile(r"(?i)(^|[/_])(is_?)?(train|training|train_?(phase|mode|flag)|phase_?train|learning_?phase)(_\d+)?$")
BOOL = DType.named("bool")


def repaired(graph: Graph) -> tuple[Graph, list[str]]:
    """Binds bool placeholders whose name says training.

    Given:   yes = Const(bool true)
             is_training = PlaceholderWithDefault(yes, dtype=bool, shape=[])
             y = LogicalNot(is_training)
    Result:  is_training = Const(bool false)
             y = LogicalNot(is_training)
    """
    flags = [
        node.name
        for node in graph
        if node.op in ("Placeholder", "PlaceholderWithDefault", "PlaceholderV2")
        and node.attrs.get("dtype") is BOOL
        and FLAG.search(node.name)
    ]
    if not flags:
        return graph, []
    return bound(graph, dict.fromkeys(flags, False)), [f"'{name}' is false from now on" for name in flags]
