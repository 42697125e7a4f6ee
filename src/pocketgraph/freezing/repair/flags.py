"""Placeholders such as ``is_training`` that choose between training and use choose use from now on."""

from __future__ import annotations

from pocketgraph.freezing.binding import bound
from pocketgraph.graph import Graph
from pocketgraph.passes.training_switches import flag_in_use


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Binds bool placeholders whose name says training, or whose one branch only training takes.

    Given:   yes = Const(bool true)
             is_training = PlaceholderWithDefault(yes, dtype=bool, shape=[])
             y = LogicalNot(is_training)
    Result:  is_training = Const(bool false)
             y = LogicalNot(is_training)
    """
    flags = {node.name: value for node in graph if (value := flag_in_use(graph, node)) is not None}
    if not flags:
        return graph, {}
    return bound(graph, flags), {name: f"'{name}' is {str(value).lower()} from now on" for name, value in flags.items()}
