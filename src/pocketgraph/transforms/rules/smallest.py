"""The right order of rules for the smallest file: mobile, then weights in a few bits and short names."""

from __future__ import annotations

import logging

from pocketgraph.graph import Graph
from pocketgraph.transforms import tool
from pocketgraph.transforms.parts.weight_rules import depthwise, weight_rules
from pocketgraph.transforms.tool import transform

SAFE_BITS = 8  # with fewer, models with depthwise convolutions give other answers
log = logging.getLogger("pocketgraph.transforms")


@transform
def smallest(
    graph: Graph, *, type: str | None = None, shape: str | None = None, num_bits: int = 8, per_channel: bool = True
) -> Graph:
    """Makes the smallest file: ``mobile``, then quantize_weights and obfuscate_names.

    Given:   x = Placeholder(dtype=float, shape=[?,2])
             read = Identity(x, T=float)
             hidden = Relu(read, T=float)
             y = Softmax(hidden, T=float)
             ; inputs=x outputs=y
    Result:  x = Placeholder(dtype=float, shape=[?,2])
             0 = Relu(x:0, T=float)
             y = Softmax(0, T=float)

    Constants of 256 elements or more are quantized (where it pays); they are floats again when the model runs, so it
    runs as fast as before. The smallest ones, such as the first layer's and depthwise ones, get codes of twice
    ``num_bits``, because most of the error comes from them: as many as make the file longer by a third at most, or by
    32 KiB. Names of inputs and outputs stay. Fewer bits mean other results: with eight, most models keep their best
    guess; with fewer, small ones lose much, and models with depthwise convolutions most of all, which get a warning.
    Compare with ``pocketgraph verify`` on data of your own before you ship such a file.

    Args:
        type, shape: as for strip_unused_nodes.
        num_bits: as for quantize_weights; fewer bits compress better.
        per_channel: as for quantize_weights. Folded batch normalizations leave channels of very different size, which
            one range for all of them would spoil.

    Raises:
        TransformError, GraphError: as these rules do.
    """
    given = [f'{key}="{value}"' for key, value in (("type", type), ("shape", shape)) if value is not None]
    graph = tool.run(graph, f"mobile({', '.join(given)})")
    names = depthwise(graph)
    if names and (num_bits < SAFE_BITS or not per_channel):
        log.warning(
            "smallest: depthwise convolutions ('%s' …) lose much with %s; compare with pocketgraph verify, or leave "
            "num_bits and per_channel as they are",
            names[0],
            "fewer than eight bits" if num_bits < SAFE_BITS else "one range for all channels",
        )
    return tool.run(graph, f"{weight_rules(graph, num_bits, per_channel)} obfuscate_names")
