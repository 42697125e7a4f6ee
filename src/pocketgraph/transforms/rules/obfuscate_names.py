"""Gives nodes the shortest names that there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, node_name
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@transform
def obfuscate_names(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Names the nodes ``0``, ``1``, …, ``a``, …, ``Z``, ``10``, … in order, all but inputs and outputs of the graph.

    Given:   image = Placeholder(dtype=float)
             features = Relu(image, T=float)
             result = Relu(features, T=float)
             ; inputs=image outputs=result obfuscate_names
    Result:  image = Placeholder(dtype=float)
             0 = Relu(image, T=float)
             result = Relu(0, T=float)

    Names inside attributes and functions are not changed.

    Differs from the original: names of inputs and outputs may have a port (there, that is no protection).

    Raises:
        TransformError: an input names a node that is not there.
    """
    for name, missing in graph.dangling():
        raise TransformError(f"No node named {missing} for input to {name}")
    fetched = (*graph.inputs, *graph.outputs)
    protected = set(fetched) if compat.original else {node_name(ref) for ref in fetched}
    fresh = (name for name in _numerals() if name not in protected)
    names = {name: name if name in protected else next(fresh) for name in graph.nodes}

    def renamed(ref: str) -> str:
        name = node_name(ref)
        return ref.replace(name, names[name], 1)

    return graph.replace(
        node.replace(name=names[node.name], inputs=[renamed(ref) for ref in node.inputs]) for node in graph
    )


def _numerals() -> Iterator[str]:
    """The numbers from 0 to base 62."""
    for number in count():
        text = ""
        while number or not text:
            number, digit = divmod(number, len(DIGITS))
            text = DIGITS[digit] + text
        yield text
