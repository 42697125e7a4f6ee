"""Sizes of inputs that a graph leaves open, as the caller states them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pocketgraph.errors import UsageError, did_you_mean, option, shapes_option
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.order import inside_loops, on_branches
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.text_inputs import with_shapes
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import check_mapping, synthetic_shapes

Sizes = Mapping[str, Sequence[int]]


def by_tensor(graph: Graph, shapes: Sizes | None) -> Sizes:
    """The sizes by tensor, also of inputs that are called as a signature of the graph calls them."""
    check_mapping(shapes)
    tensors: dict[str, set[str]] = {}
    for signature in graph.public_signatures.values():
        for key, tensor in signature.inputs.items():
            tensors.setdefault(key, set()).add(canonical(tensor))
    return {
        min(tensors[name]) if name not in graph and len(tensors.get(name, ())) == 1 else name: sizes
        for name, sizes in (shapes or {}).items()
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
        check_declared(node, None if declared is None else declared.dims, sizes)
        given[node] = tuple(sizes)
    check_computable(graph, outputs, given)
    return with_shapes(graph, given)


def check_declared(name: str, dims: Sequence[int | None] | None, sizes: Sequence[int]) -> None:
    """Refuses sizes of an input that declares ``dims``, where these are others.

    Raises:
        UsageError: they are, or a size is negative.
    """
    if min(sizes, default=0) < 0:
        raise UsageError(
            f"{shapes_option({name: sizes})}: a size is 0 or more", hint="give what it is when the model runs"
        )
    if dims is None or Shape(dims).fits(tuple(sizes)):
        return
    raise UsageError(
        f"{shapes_option({name: sizes})} does not fit: '{name}' is {Shape(dims)}",
        hint="numbers can be given only where it has a question mark",
    )


def check_computable(graph: Graph, outputs: Sequence[str], given: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses sizes with which outputs are certain to fail, or to be empty.

    Args:
        graph: the model.
        outputs: what it computes.
        given: sizes by input.

    Raises:
        UsageError: what fails, and sizes that fit where some are found.
    """
    problem = _problem(graph, outputs, given) if given else ""
    if not problem:
        return
    try:
        found = synthetic_shapes(graph, outputs)
    except UsageError:
        found = {}
    fitting = {name: found[node_name(name)] for name in given if node_name(name) in found}
    fits = len(fitting) == len(given) and not _problem(graph, outputs, fitting)
    raise UsageError(
        f"{shapes_option(given)} does not fit the model: {problem}",
        hint=f"{shapes_option(fitting)} fits" if fits else "",
    )


def _problem(graph: Graph, outputs: Sequence[str], given: Mapping[str, tuple[int, ...]]) -> str:
    """What fails with these sizes; nothing where nothing is certain to, as of what a branch or a loop may not
    come to, and of what is the same with any sizes."""
    feeds = {
        canonical(name): (graph.producer(name).dtype("dtype", FLOAT), Shape(sizes)) for name, sizes in given.items()
    }
    known = infer(graph, feeds, outputs=outputs, complete=False)
    results = {name: known.shape(name) for name in map(canonical, outputs)}
    is_empty = all(0 in (shape.dims or ()) for shape in results.values())
    if not known.problems and not is_empty:
        return ""
    of_any = infer(graph, outputs=outputs, complete=False)
    ways, loops = on_branches(graph), inside_loops(graph)
    for name, problem in known.problems.items():
        if name not in of_any.problems and not ways.get(name) and name not in loops:
            return f"node '{name}': {problem}"
    emptied = [name for name in results if is_empty and 0 not in (of_any.shape(name).dims or ())]
    return f"'{emptied[0]}' would be empty, {results[emptied[0]]}" if emptied else ""
