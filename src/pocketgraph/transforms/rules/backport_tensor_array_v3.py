"""Replaces the third version of the TensorArray ops, for runtimes that know only the second."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.matchable import matchable
from pocketgraph.transforms.tool import transform

MAKERS = ("TensorArrayV3", "TensorArrayGradV3")
USERS = tuple(
    f"TensorArray{use}V3" for use in ("Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close")
)


@transform
def backport_tensor_array_v3(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Makes TensorArrayV2 ops of TensorArrayV3 ops; a constant takes the place of the flow that V2 does not give.

    Given:   size = Const(int32 3)
             array = TensorArrayV3(size, dtype=float)
             length = TensorArraySizeV3(array, array:1)
    Result:  size = Const(int32 3)
             array = TensorArrayV2(size, dtype=float)
             array/replacement_flow_node = Const(float 1.0)
             length = TensorArraySizeV2(array, array/replacement_flow_node)
    """
    nodes: list[Node] = []
    flows = {}
    may_match = matchable(graph, compat)
    for node in graph:
        if (node.op not in MAKERS and node.op not in USERS) or not may_match(node):
            nodes.append(node)
            continue
        nodes.append(node.replace(op=node.op[:-1] + "2"))
        if node.op in MAKERS:
            flow = const(f"{node.name}/replacement_flow_node", np.float32(1))
            nodes.append(flow)
            flows[f"{node.name}:1"] = flow.name
    return rename_inputs(graph.replace(nodes), flows)
