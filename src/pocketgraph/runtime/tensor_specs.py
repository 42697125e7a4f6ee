"""What a session takes and gives: names, element types and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime.feeding.synthetic_feeds import default_fetches, needed_placeholders
from pocketgraph.runtime.signatures import INITIALIZER

LARGE = 20_000  # nodes; of more, shapes that are not declared are not worked out


class TensorSpec(NamedTuple):
    """A tensor that a session takes or gives.

    Attributes:
        name: what ``run`` calls it.
        dtype: its element type; None where the graph does not tell.
        shape: its sizes, None where one is open; None altogether where their number is open.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        """As in ``x float[?,224,224,3]``."""
        return f"{self.name} {self.dtype.name if self.dtype is not None else '?'}{Shape(self.shape)}"


class SignatureSpec(NamedTuple):
    """A named entry point: what it takes and gives, by the keys that ``run_signature`` knows."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


def specs(graph: Graph, names: Iterable[str], *, inferring: bool = True) -> dict[str, TensorSpec]:
    """Of these tensors, by their names as given; without ``inferring`` what their nodes declare."""
    inferred = infer(graph) if inferring and len(graph) <= LARGE else None

    def spec(name: str) -> TensorSpec:
        ref = name if ":" in name else f"{name}:0"
        node = graph.producer(name)
        declared = node.attr("dtype", None)
        dtype = declared if isinstance(declared, DType) else inferred.dtype(ref) if inferred is not None else None
        shape = inferred.shape(ref) if inferred is not None else node.shape()
        return TensorSpec(name, dtype, None if shape is None else shape.dims)

    return {name: spec(name) for name in names}


def input_names(graph: Graph) -> list[str]:
    """What the graph's outputs are fed: as declared, by the signature of these outputs, or the placeholders they need.

    Raises:
        UsageError: no likely output was found.
    """
    fetches = default_fetches(graph)
    named = sorted(graph.signatures.items(), key=lambda item: item[0] != DEFAULT_SIGNATURE)
    entry = next((item.inputs for _, item in named if tuple(item.outputs.values()) == fetches), {})
    return list(graph.inputs or entry.values() or needed_placeholders(graph, fetches))


def input_specs(graph: Graph, *, inferring: bool = True) -> dict[str, TensorSpec]:
    """What the graph's outputs are fed; errors as for ``input_names``."""
    return specs(graph, input_names(graph), inferring=inferring)


def output_specs(graph: Graph) -> dict[str, TensorSpec]:
    """The graph's outputs, declared or likely; errors as for ``input_names``."""
    return specs(graph, default_fetches(graph))


def signature_specs(graph: Graph) -> dict[str, SignatureSpec]:
    """The named entry points that compute something."""
    found = {key: item for key, item in graph.signatures.items() if item.outputs and key != INITIALIZER}
    tensors = [ref for item in found.values() for ref in (*item.inputs.values(), *item.outputs.values())]
    known = specs(graph, dict.fromkeys(tensors))
    return {
        key: SignatureSpec(
            {name: known[ref] for name, ref in item.inputs.items()},
            {name: known[ref] for name, ref in item.outputs.items()},
        )
        for key, item in found.items()
    }
