"""The rules that store the weights of image models in few bits, and leave what they compute recognizable."""

from __future__ import annotations

from collections import Counter

from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.dtype import FLOAT

WORTH_IT = 256  # elements: below this, the three nodes that a quantized constant needs outweigh the bytes that it saves
SHARE = 1 / 3
"""How much longer than with ``num_bits`` for all weights the file may get, for twice the bits for the smallest ones."""
NEGLIGIBLE = 32_768
"""Elements, 32 KiB in eight bits: so many get twice the bits in any case; who ships a file does not miss them."""
MOST_BITS = 16  # bits of a weight


def weight_rules(graph: Graph, num_bits: int, per_channel: bool) -> str:
    """Two runs of quantize_weights: finer codes for the small weights, and then codes of ``num_bits`` for the others.

    The small weights are those of the first, the narrow and the depthwise layers, on which most depends: with eight
    bits for all, small MobileNets keep 12 to 14 dB, like this 33 and more. The first run's own constants
    (the steps of the channels) are too small for the second one.
    """
    channels = f"per_channel={str(per_channel).lower()}"
    fine = min(MOST_BITS, 2 * num_bits)
    least = WORTH_IT
    rules = []
    largest = largest_fine(graph, per_channel)
    if largest >= WORTH_IT:
        rules.append(f"quantize_weights(minimum_size={WORTH_IT}, maximum_size={largest}, num_bits={fine}, {channels})")
        least = largest + 1
    return " ".join([*rules, f"quantize_weights(minimum_size={least}, num_bits={num_bits}, {channels})"])


def largest_fine(graph: Graph, per_channel: bool) -> int:
    """How many elements the largest constants have that still get finer codes; 0 when none do."""
    counts: Counter[int] = Counter()
    for node in graph:
        value = node.attrs.get("value") if node.op == "Const" else None
        if isinstance(value, Tensor) and value.dtype is FLOAT and value.size >= WORTH_IT:
            counts[value.size] += len(value.shape) >= 2 or not per_channel
    left = max(SHARE * sum(size * count for size, count in counts.items()), NEGLIGIBLE)
    largest = 0
    for size, count in sorted(counts.items()):
        left -= size * count
        if left < 0:
            break
        largest = size
    return largest


def depthwise(graph: Graph) -> list[str]:
    """The names of the depthwise convolutions, in graph order."""
    return [node.name for node in graph if node.op == "DepthwiseConv2dNative"]
