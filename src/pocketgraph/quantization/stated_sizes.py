"""Sizes of inputs that a graph leaves open, as the caller states them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.quantization.text_inputs import with_shapes
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders

Sizes = Mapping[str, Sequence[int]]


def by_tensor(graph: Graph, shapes: Sizes) -> Sizes:
    """The sizes by tensor, also of inputs that are called as a signature of the graph calls them."""
    tensors: dict[str, set[str]] = {}
    for signature in graph.public_signatures.values():
        for key, tensor in signature.inputs.items():
            tensors.setdefault(key, set()).add(canonical(tensor))
    return {
        min(tensors[name]) if name not in graph and len(tensors.get(name, ())) == 1 else name: sizes
        for name, sizes in shapes.items()
    }


def with_sizes(graph: Graph, outputs: Sequence[str], shapes: Sizes, fed: Collection[str] = ()) -> Graph:
    """The graph with inputs of these sizes.

    Args:
        graph: the model.
        outputs: what it computes.
        shapes: sizes by an input's tensor (``by_tensor``), "" for the only one.
        fed: placeholders that are set to something else.

    Raises:
        UsageError: there is no such input, or it has other sizes.
    """
    if not shapes:
        return graph
    others = {node_name(name) for name in fed}
    inputs = [name for name in map(node_name, needed_placeholders(graph, list(outputs))) if name not in others]
    given: dict[str, tuple[int, ...]] = {}
    for name, sizes in shapes.items():
        node = node_name(name) if name else inputs[0] if len(inputs) == 1 else ""
        if node not in inputs:
            hint = (did_you_mean(name, inputs) if name else "") or f"it has {', '.join(inputs)}"
            what = f"no input '{name}'" if name else f"{len(inputs)} inputs, and a name tells which"
            raise UsageError(f"{option('input_shape', 'shapes')}: the model has {what}", hint=hint)
        declared = graph.declared_shape(node)
        if declared is not None and declared.dims is not None:
            fits = len(declared.dims) == len(sizes) and all(
                own in (None, size) for own, size in zip(declared.dims, sizes, strict=True)
            )
            if not fits:
                raise UsageError(
                    f"{option('input_shape', 'shapes')}: '{node}' is {declared}, not {Shape(sizes)}",
                    hint="give a number for each question mark",
                )
        given[node] = tuple(sizes)
    return with_shapes(graph, given)
