"""The right order of rules for the smallest file: mobile, then weights in a few bits and short names."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms import tool
from pocketgraph.transforms.tool import transform

WORTH_IT = 256  # elements: below this, the three nodes that a quantized constant needs outweigh the bytes that it saves


@transform
def smallest(
    graph: Graph,
    *,
    type: str | None = None,
    shape: str | None = None,
    num_bits: int = 8,
    per_channel: bool = True,
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
    runs as fast as before. Names of inputs and outputs stay.

    Args:
        type, shape: as for strip_unused_nodes.
        num_bits: as for quantize_weights; fewer bits compress better.
        per_channel: as for quantize_weights. Folded batch normalizations leave channels of very different size, which
            one range for all of them would spoil.

    Raises:
        TransformError, GraphError: as these rules do.
    """
    given = [f'{key}="{value}"' for key, value in (("type", type), ("shape", shape)) if value is not None]
    weights = f"minimum_size={WORTH_IT}, num_bits={num_bits}, per_channel={str(per_channel).lower()}"
    return tool.run(graph, f"mobile({', '.join(given)}) quantize_weights({weights}) obfuscate_names")
