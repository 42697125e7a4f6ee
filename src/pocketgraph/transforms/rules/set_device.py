"""Says on which device each node is to run."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def set_device(graph: Graph, *, device: str = "", if_default: bool = False) -> Graph:
    """Sets the device of every node.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, T=float) @"/gpu:0"
             ; set_device(device="/cpu:0", if_default=true)
    Result:  x = Placeholder(dtype=float) @"/cpu:0"
             y = Relu(x, T=float) @"/gpu:0"

    Args:
        device: the device; none by default, which clears it.
        if_default: only where no device is set.
    """

    def change(node: Node) -> Node:
        if node.device == device or (if_default and node.device):
            return node
        return node.replace(device=device)

    return graph.map_nodes(change)
