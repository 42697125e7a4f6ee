"""A model file or graph as what exporters take: frozen, with entry points that have public names and sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.exporting.model import EntryPoint, ExportModel, Port, Source
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.graph import Signature
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.quantize.front import behind, front_of
from pocketgraph.quantize.models import read_graph
from pocketgraph.runtime.names import feed_endpoints, fetch_endpoint
from pocketgraph.runtime.samples import sample_fetches, sample_inputs, sizes_made_up
from pocketgraph.runtime.signatures import DEFAULT

Sizes = Mapping[str, Sequence[int]]


def opened(
    source: Source,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    signatures: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
) -> ExportModel:
    """A model ready for an exporter.

    Args:
        source: a graph, or what ``read_graph`` takes: a model file, or the directory of a SavedModel or training.
        inputs: tensors to feed; by default the signatures' or the placeholders that the outputs need.
        outputs: tensors to compute; by default those of the signatures, else the likely outputs.
        signatures: the keys of the signatures to take; by default all, the main one first.
        shapes: sizes of inputs, by public name or tensor name.
        values: what other placeholders are set to for good, such as ``{"keep_prob": 1.0}``.

    Raises:
        UsageError: there are no such names; the rank of an input is not known.
        FormatError, FreezeError: the file is damaged, or variables have no values.
    """
    graph = source if isinstance(source, Graph) else read_graph(os.fspath(source), list(outputs) if outputs else None)
    fixed = dict(values or {})
    for name in fixed:
        if node_name(name) not in graph.nodes:
            raise UsageError(f"the graph has no node '{name}'", hint=did_you_mean(name, graph.nodes))
    graph = graph.map_nodes(lambda node: with_value(node, fixed))
    chosen = _signatures(graph, signatures) if not inputs and not outputs else {}
    if signatures and not chosen:
        raise UsageError("--signatures and --inputs or --outputs do not go together", hint="give one of the two")
    if not chosen:
        chosen, graph = _sole(graph, inputs, outputs)
    entries = []
    unused = dict(shapes or {})
    for key, signature in chosen.items():
        inside = {name: tensor for name, tensor in signature.inputs.items() if node_name(tensor) not in fixed}
        entries.append(_entry(graph, key, replace_inputs(signature, inside), shapes or {}, unused))
    if unused:
        known = [port.name for entry in entries for port in entry.inputs]
        name = next(iter(unused))
        raise UsageError(f"there is no input '{name}' to give a shape", hint=did_you_mean(name, known))
    return ExportModel(graph, tuple(entries))


def replace_inputs(signature: Signature, inputs: Mapping[str, str]) -> Signature:
    """The signature with other inputs."""
    return Signature(inputs, signature.outputs, signature.method)


def with_value(node: Node, values: Mapping[str, Any]) -> Node:
    """The node, or the constant that takes its place."""
    for name, value in values.items():
        if canonical(name) == canonical(node.name):
            dtype = node.attr("dtype", FLOAT)
            array = np.asarray(value, dtype.numpy if isinstance(dtype, DType) else None)
            return Node(node.name, "Const", (), {"dtype": dtype, "value": Tensor.from_numpy(array)})
    return node


def _signatures(graph: Graph, wanted: Sequence[str] | None) -> dict[str, Signature]:
    """The signatures to export; the default one first, those that share all their tensors with another one once."""
    found = {key: s for key, s in graph.signatures.items() if s.outputs and not key.startswith("__")}
    if wanted:
        for key in wanted:
            if key not in found:
                hint = did_you_mean(key, found) or (f"it has {', '.join(found)}" if found else "it has none")
                raise UsageError(f"the graph has no signature '{key}'", hint=hint)
        return {key: found[key] for key in wanted}
    return dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT))


def _sole(
    graph: Graph, inputs: Sequence[str] | None, outputs: Sequence[str] | None
) -> tuple[dict[str, Signature], Graph]:
    """The one entry point of a graph without signatures, with the graph; what reads recordings is cut off."""
    fetches = list(outputs) if outputs else list(sample_fetches(graph))
    for name in fetches:
        fetch_endpoint(graph, name)
    if inputs:
        fed = [str(endpoint) for endpoint in feed_endpoints(graph, dict.fromkeys(inputs))]
    else:
        front = front_of(graph, fetches)
        if front is not None:
            graph = behind(graph, front.shapes)
        fed = list(front.shapes) if front is not None else sample_inputs(graph, fetches)
    return {DEFAULT: Signature(_named(fed), _named(fetches))}, graph


def _named(tensors: Sequence[str]) -> dict[str, str]:
    return {canonical(name).removesuffix(":0"): canonical(name) for name in tensors}


def _entry(graph: Graph, key: str, signature: Signature, shapes: Sizes, unused: dict[str, Any]) -> EntryPoint:
    declared = infer(graph, outputs=[*signature.inputs.values(), *signature.outputs.values()])
    inputs = []
    for name, tensor in signature.inputs.items():
        given = next((s for s in (name, tensor, canonical(tensor), node_name(tensor)) if s in shapes), None)
        unused.pop(given or "", None)
        inputs.append(_input(graph, declared, name, tensor, shapes[given] if given is not None else None))
    feeds = {port.tensor: (port.dtype, Shape(port.sizes)) for port in inputs}
    known = infer(graph, feeds, outputs=list(signature.outputs.values()))
    outputs = []
    for name, tensor in signature.outputs.items():
        ref = canonical(tensor)
        dtype, dims, sizes = known.dtype(ref) or FLOAT, declared.shape(ref).dims, known.shape(ref).dims
        whole = None if sizes is None or None in sizes else tuple(size for size in sizes if size is not None)
        outputs.append(Port(name, ref, dtype.base, dims, whole))
    return EntryPoint(key, tuple(inputs), tuple(outputs))


def _input(graph: Graph, declared: Inferred, name: str, tensor: str, given: Sequence[int] | None) -> Port:
    ref = canonical(tensor)
    node = graph.producer(ref)
    dims = declared.shape(ref).dims
    stated = node.shape() if dims is None and node.op.startswith("Placeholder") else None
    dims = stated.dims if stated is not None else dims
    dtype = (declared.dtype(ref) or FLOAT).base
    if given is not None:
        sizes = tuple(int(size) for size in given)
        if (dims is not None and not Shape(dims).fits(sizes)) or min(sizes, default=1) < 0:
            raise UsageError(f"the input '{name}' has the shape {_text(dims)}, {list(sizes)} does not fit")
        return Port(name, ref, dtype, dims if dims is not None else sizes, sizes)
    if dims is None:
        raise UsageError(
            f"the graph does not say how many dimensions the input '{name}' has",
            hint=f"say it: --input_shape={name}:1,224,224,3 or the like",
        )
    return Port(name, ref, dtype, dims, sizes_made_up(dims, dtype))


def _text(dims: Sequence[int | None] | None) -> str:
    return "?" if dims is None else "[" + ", ".join("?" if size is None else str(size) for size in dims) + "]"


def with_fixed_shapes(model: ExportModel) -> ExportModel:
    """The model with every open size of its inputs as the number in ``sizes``; for targets that need fixed ones."""
    entries = []
    for entry in model.entries:
        inputs = tuple(replace(port, shape=port.sizes) for port in entry.inputs)
        outputs = tuple(replace(port, shape=port.sizes) for port in entry.outputs)
        entries.append(replace(entry, inputs=inputs, outputs=outputs))
    return replace(model, entries=tuple(entries))
