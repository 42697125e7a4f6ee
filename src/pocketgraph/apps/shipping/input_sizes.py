"""Sizes of inputs that a model leaves open: what ships has one of each, which somebody has to say."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.formats import load
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime.feeding.made_up_feeds import made_up_lengths, sample_fetches, sample_inputs, sample_shapes

Sizes = Mapping[str, Sequence[int]]


def with_sizes(graph: Graph, outputs: Sequence[str], shapes: Sizes) -> Graph:
    """The graph with inputs of these sizes.

    Args:
        graph: the model.
        outputs: what it computes.
        shapes: sizes by input, "" for the only one.

    Raises:
        UsageError: there is no such input, or it has other sizes.
    """
    inputs = [node_name(name) for name in sample_inputs(graph, list(outputs))]
    given: dict[str, tuple[int, ...]] = {}
    for name, sizes in shapes.items():
        node = node_name(name) if name else inputs[0] if len(inputs) == 1 else ""
        if node not in inputs:
            hint = did_you_mean(name, inputs) or f"it has {', '.join(inputs)}"
            raise UsageError(f"{option('input_shape', 'shapes')}: the model has no input '{name}'", hint=hint)
        declared = graph[node].shape()
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

    def sized(node: Node) -> Node:
        if node.name not in given:
            return node
        return node.replace(attrs={**node.attrs, "shape": Shape(given[node.name])})

    return graph.map_nodes(sized) if given else graph


def unsaid_sizes(graph: Graph, outputs: Sequence[str]) -> str:
    """Why a file with made-up sizes is of no use, in a sentence; empty where the model says its sizes.

    That is where an axis that the model leaves open, such as the length of a series, is made 1.
    """
    made = sample_shapes(graph, list(outputs))
    names = made_up_lengths(graph, made)
    if not names:
        return ""
    name, sizes = node_name(names[0]), Shape(made[names[0]])
    said = f"{name}:{','.join(map(str, made[names[0]]))}"
    declared = infer(graph).shape(canonical(name))
    return (
        f"the model leaves sizes of '{name}' open, {declared}, and the file has {sizes}; give {option('data')}, or "
        f"{option('input_shape', 'shapes')}={said} with the sizes that the app feeds"
    )


SIZED_BENCHMARK = "pocketgraph benchmark_model --graph={model} --input_layer={names} --input_layer_shape={shapes}"


def benchmark_command(path: str) -> str:
    """What times a file in a shell, with sizes of the inputs that it leaves open."""
    graph = load(path)
    fetches = sample_fetches(graph)
    names = sample_inputs(graph, fetches)
    known = infer(graph)
    dims = [known.shape(name).dims for name in names]
    if all(sizes is not None and None not in sizes[1:] for sizes in dims):
        return f"pocketgraph benchmark_model --graph={shlex.quote(path)}"
    shapes = sample_shapes(graph, fetches)
    listed = ":".join(",".join(map(str, shapes[name])) for name in names)
    return SIZED_BENCHMARK.format(model=shlex.quote(path), names=shlex.quote(",".join(names)), shapes=listed)
