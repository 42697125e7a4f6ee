"""Sizes of inputs that a model leaves open: what ships has one of each, which somebody has to say."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import option, quoted, shapes_option
from pocketgraph.formats import load
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.graph_resizing import graph_resizing
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import SIDE, synthetic_lengths, synthetic_shapes


def unsaid_sizes(graph: Graph, outputs: Sequence[str]) -> str:
    """Why a file with made-up sizes is of no use, in a sentence; empty where the model says its sizes.

    That is where an axis that the model leaves open, such as the length of a series, is made 1.
    """
    made = synthetic_shapes(graph, list(outputs))
    names = synthetic_lengths(graph, made, outputs)
    if not names:
        return ""
    name, sizes = node_name(names[0]), Shape(made[names[0]])
    declared = infer(graph).shape(canonical(name))
    return (
        f"the model leaves sizes of '{name}' open, {declared}, and the file has {sizes}; give {option('data')}, or "
        f"{shapes_option({name: made[names[0]]})} with the sizes that the app feeds"
    )


def unsaid_picture_sizes(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """Which size pictures were made up with where neither the model nor the caller says one, a sentence for each input
    of pictures."""
    known, said = infer(graph), []
    for name, sizes in synthetic_shapes(graph, list(outputs)).items():
        dims = known.shape(canonical(name)).dims or ()
        is_made_up = len(dims) == 4 and dims[1] is dims[2] is None and sizes[1] == sizes[2] == SIDE
        if is_made_up and graph_resizing(graph, name) is None:
            stated = shapes_option({node_name(name): sizes})
            said.append(
                f"the size of the pictures for '{node_name(name)}', which the model leaves open: it was judged and "
                f"timed at {SIDE} x {SIDE}; {stated} says the app's own"
            )
    return said


SIZED_BENCHMARK = "pocketgraph benchmark_model --graph={model} --input_layer={names} --input_layer_shape={shapes}"


def benchmark_command(path: str) -> str:
    """What times a file in a shell, with sizes of the inputs that it leaves open."""
    graph = load(path)
    fetches = default_fetches(graph)
    names = needed_placeholders(graph, fetches)
    known = infer(graph)
    dims = [known.shape(name).dims for name in names]
    if all(sizes is not None and None not in sizes[1:] for sizes in dims):
        return f"pocketgraph benchmark_model --graph={quoted(path)}"
    shapes = synthetic_shapes(graph, fetches)
    listed = ":".join(",".join(map(str, shapes[name])) for name in names)
    return SIZED_BENCHMARK.format(model=quoted(path), names=quoted(",".join(names)), shapes=listed)
