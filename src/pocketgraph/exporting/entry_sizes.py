"""Sizes of what goes into an entry point, as said, or as they fit the graph, and of what then comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pocketgraph.errors import UsageError, did_you_mean, option, shapes_option
from pocketgraph.exporting.model import EntryPoint, ExportModel, Port
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.graph_resizing import graph_resizing
from pocketgraph.passes.training_switches import dropout_share
from pocketgraph.quantization.stated_sizes import Sizes, check_computable, check_declared
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes, synthetic_sizes
from pocketgraph.runtime.tensor_names import feed_endpoint


def check_sizes_used(unused: Mapping[str, Any], entries: Sequence[EntryPoint]) -> None:
    """Refuses sizes of inputs that are not there.

    Raises:
        UsageError: there are some.
    """
    if unused:
        known = list(dict.fromkeys(port.name for entry in entries for port in entry.inputs))
        name = next(iter(unused))
        there = f"the model takes {', '.join(known)}: {shapes_option(dict.fromkeys(known, ('SIZES',)))}"
        hint = did_you_mean(name, known) or (there if known else "")
        raise UsageError(f"there is no input '{name}' to give a shape", hint=hint)


def named_sizes(shapes: Sizes, chosen: Mapping[str, Signature]) -> dict[str, Sequence[int]]:
    """Shapes by name; "" stands for the only input.

    Raises:
        UsageError: there are several inputs.
    """
    found = dict(shapes)
    if "" in found:
        inputs = list(dict.fromkeys(name for signature in chosen.values() for name in signature.inputs))
        if len(inputs) != 1:
            raise UsageError(
                f"there are {counted(len(inputs), 'input')} ({', '.join(inputs)})",
                hint=shapes_option({"NAME": ["SIZES"]}),
            )
        found[inputs[0]] = found.pop("")
    return found


def sized_entry(graph: Graph, key: str, signature: Signature, shapes: Sizes, unused: dict[str, Any]) -> EntryPoint:
    """An entry point with the sizes of inputs said in ``shapes``, which are then no longer ``unused``, or that fit."""
    declared = infer(graph, outputs=[*signature.inputs.values(), *signature.outputs.values()])
    said = {
        tensor: next((s for s in (name, tensor, canonical(tensor), node_name(tensor)) if s in shapes), None)
        for name, tensor in signature.inputs.items()
    }
    fitting = _fitting_sizes(graph, signature, [tensor for tensor, given in said.items() if given is not None])
    inputs = []
    for name, tensor in signature.inputs.items():
        given = said[tensor]
        unused.pop(given or "", None)
        sizes = shapes[given] if given is not None else None
        inputs.append(_input(graph, declared, name, tensor, sizes, fitting.get(canonical(tensor))))
    outputs = [
        Port(name, canonical(tensor), FLOAT, declared.shape(canonical(tensor)).dims, None)
        for name, tensor in signature.outputs.items()
    ]
    told = {port.tensor: port.sizes or () for port in inputs if said[signature.inputs[port.name]] is not None}
    check_computable(graph, list(signature.outputs.values()), told)
    return _with_outputs(graph, EntryPoint(key, tuple(inputs), tuple(outputs)))


def _fitting_sizes(graph: Graph, signature: Signature, known: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Sizes of placeholders that fit the weights behind them, by tensor; none where they cannot be found."""
    try:
        found = synthetic_shapes(graph, list(signature.outputs.values()), known)
    except UsageError:
        return {}
    return {canonical(name): sizes for name, sizes in found.items()}


def _with_outputs(graph: Graph, entry: EntryPoint) -> EntryPoint:
    """The entry point with what follows for its outputs from the types and sizes of its inputs."""
    feeds = {port.tensor: (port.dtype, Shape(port.sizes)) for port in entry.inputs}
    known = infer(graph, feeds, outputs=[port.tensor for port in entry.outputs])
    outputs, batches = [], {p.sizes[0] for p in entry.inputs if p.sizes and p.shape and p.shape[0] is None}
    for port in entry.outputs:
        dtype, sizes = known.dtype(port.tensor) or FLOAT, known.shape(port.tensor).dims
        if sizes and sizes[0] is None and len(batches) == 1 and is_model_file(graph):  # whose operators infer nothing
            sizes = (*batches, *sizes[1:])
        whole = None if sizes is None or None in sizes else tuple(size for size in sizes if size is not None)
        outputs.append(replace(port, dtype=dtype.base, sizes=whole))
    return replace(entry, outputs=tuple(outputs))


def with_sizes(model: ExportModel, sizes: Sizes) -> ExportModel:
    """The model with other ``sizes`` of inputs of the main entry point, by tensor name; open sizes stay open."""
    main = model.main
    inputs = tuple(
        replace(port, sizes=tuple(sizes[port.tensor]), is_told=True) if port.tensor in sizes else port
        for port in main.inputs
    )
    return replace(model, entries=(_with_outputs(model.graph, replace(main, inputs=inputs)), *model.entries[1:]))


def _input(
    graph: Graph,
    declared: Inferred,
    name: str,
    tensor: str,
    given: Sequence[int] | None,
    fitting: tuple[int, ...] | None,
) -> Port:
    """An input; its sizes are those ``given``, else those ``fitting`` the weights where the graph leaves them open."""
    ref = canonical(tensor)
    node = graph.producer(ref)
    dims = declared.shape(ref).dims
    dtype = (declared.dtype(ref) or FLOAT).base
    if node.op in PLACEHOLDERS or dims is None:  # which may declare more, or, in old files, mean less by []
        spec = FeedSpec.of(graph, feed_endpoint(graph, ref), name)
        stated = graph.declared_shape(node.name)
        dims, dtype = spec.shape.dims, spec.dtype or dtype
        if given is None and dims is None and stated is not None:
            dims = stated.dims
        if given is None and not dims and fitting:
            return Port(name, ref, dtype, fitting, fitting)
    if given is not None:
        sizes = tuple(int(size) for size in given)
        check_declared(name, dims, sizes)
        return Port(name, ref, dtype, sizes, sizes)
    if dims is None:
        raise UsageError(
            f"the graph does not say how many dimensions the input '{name}' has",
            hint=f"set it for good: {option('feed', 'values')}={name}=1"
            if dropout_share(graph, node.name) is not None
            else f"say it with its sizes, as in {shapes_option({name: (1, 224, 224, 3)})}",
        )
    return Port(
        name, ref, dtype, dims, fitting if fitting and Shape(dims).fits(fitting) else synthetic_sizes(dims, dtype)
    )


def as_large_as_resized(model: ExportModel, made_of: Graph) -> tuple[ExportModel, list[str]]:
    """The model whose main entry point takes pictures in the size to which its graph, or that which its finished file
    was ``made_of``, resizes them, where it leaves theirs open; and a note of each."""
    notes, inputs = [], []
    for port in model.main.inputs:
        shape = port.shape or ()
        is_open = len(shape) == 4 and shape[1] is shape[2] is None
        own = graph_resizing(made_of, port.tensor) if is_open else None
        if own is not None:
            how = (
                f"; it resizes with {own.special} and the app without, so pixels differ a little" if own.special else ""
            )
            notes.append(
                f"pictures are {own.width} x {own.height}, as the graph resizes those of '{port.name}' to that{how}"
            )
            picture = *own.size, shape[3] or 3
            port = replace(port, shape=(shape[0], *picture), sizes=(shape[0] or 1, *picture))
        inputs.append(port)
    entry = _with_outputs(model.graph, replace(model.main, inputs=tuple(inputs))) if notes else model.main
    return replace(model, entries=(entry, *model.entries[1:])), notes


def with_fixed_shapes(model: ExportModel) -> ExportModel:
    """The model with every open size of its inputs as the number in ``sizes``; for targets that need fixed ones."""
    entries = []
    for entry in model.entries:
        inputs = tuple(replace(port, shape=port.sizes) for port in entry.inputs)
        outputs = tuple(replace(port, shape=port.sizes) for port in entry.outputs)
        entries.append(replace(entry, inputs=inputs, outputs=outputs))
    return replace(model, entries=tuple(entries))
