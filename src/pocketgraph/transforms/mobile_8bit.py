"""The right order of rules for eight-bit arithmetic: mobile, then weights and nodes in eight bits."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms import tool
from pocketgraph.transforms.tool import transform


@transform
def mobile_8bit(
    graph: Graph,
    *,
    type: str | None = None,
    shape: str | None = None,
    fallback_min: float | None = None,
    fallback_max: float | None = None,
) -> Graph:
    """Makes a graph that computes in eight bits: ``mobile``, then quantize_weights and quantize_nodes.

    Given:   x = Placeholder(dtype=float, shape=[?,2])
             read = Identity(x, T=float)
             loss = L2Loss(read, T=float)
             y = Softmax(read, T=float)
             ; inputs=x outputs=y
    Result:  x = Placeholder(dtype=float, shape=[?,2])
             y = Softmax(x:0, T=float)

    Without ``fallback_min`` and ``fallback_max`` the ranges of what lies between the layers are searched each time the
    model runs; freeze_requantization_ranges makes constants of them afterwards. Look at the results on data of your
    own before you ship such a graph: eight bits do not suit every model.

    Args:
        type, shape: as for strip_unused_nodes.
        fallback_min, fallback_max: as for quantize_nodes.

    Raises:
        TransformError, GraphError: as these rules do.
    """
    given = [f'{key}="{value}"' for key, value in (("type", type), ("shape", shape)) if value is not None]
    ends = (("fallback_min", fallback_min), ("fallback_max", fallback_max))
    ranges = [f"{key}={value}" for key, value in ends if value is not None]
    return tool.run(
        graph,
        f"mobile({', '.join(given)}) quantize_weights quantize_nodes({', '.join(ranges)}) "
        "strip_unused_nodes sort_by_execution_order",
    )
