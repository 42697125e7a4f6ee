"""The rules for Hexagon processors: they are known, so that ignore_errors works, and refuse to run."""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph
from pocketgraph.transforms.tool import transform

PAGE = """{summary}

    Given:   x = Placeholder(dtype=float)
             ; {name}(ignore_errors=true)
    Result:  x = Placeholder(dtype=float)

    Differs from the original: this needs Qualcomm's Hexagon SDK, which only TensorFlow's own builds could use; the rule
    is known with any parameters, so that ignore_errors works, and always fails. quantize_nodes makes eight-bit graphs
    for other processors.

    Raises:
        TransformError: always.
    """


def refusing(name: str, summary: str) -> Callable[..., Graph]:
    """The rule of this name, which would do what the summary says."""

    def rule(graph: Graph, **parameters: str) -> Graph:
        raise TransformError(
            f"{name} needs the Hexagon SDK, with which pocketgraph cannot work",
            hint="leave the rule out, or write quantize_nodes for eight-bit graphs that any processor can run",
        )

    rule.__name__ = rule.__qualname__ = name
    rule.__module__ = f"pocketgraph.transforms.rules.{name}"
    rule.__doc__ = PAGE.format(name=name, summary=summary)
    return transform(rule)
