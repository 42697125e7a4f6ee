"""What a benchmark feeds: an input each, as the graph declares it or as it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError, UsageError, option
from pocketgraph.graph import DType, Graph, Node, Shape, node_name
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.training_switches import training_switches
from pocketgraph.runtime.feeding.encoded_samples import decoder_of, encoded_sample
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.open_shapes import STATES_BATCH, stated_batches
from pocketgraph.runtime.feeding.record_samples import parser_of, record_sample, records_shape
from pocketgraph.runtime.feeding.sample_texts import sample_text
from pocketgraph.runtime.feeding.sparse_inputs import sparse_part
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes
from pocketgraph.runtime.tensor_names import feed_endpoint

FED_TYPES = ("float", "int32", "int64", "quint8", "uint8", "int8", "bool", "half", "double", "string")
MOST_FEED_BYTES = 1 << 32  # bytes of one input


@dataclass(frozen=True)
class BenchmarkLayer:
    """One input of a benchmark: where it goes in, its element type, its full shape, its first values, or a text; or all
    of its values."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    values: tuple[float, ...] = ()
    text: bytes = b""
    data: np.ndarray[Any, Any] | None = None

    def array(self) -> np.ndarray[Any, Any]:
        """Zeros of this type and shape with ``values`` in front; ``text`` for string layers.

        Raises:
            UsageError: values for strings, more values than elements, a type that cannot be fed, or too large.
        """
        if self.data is not None:
            return self.data
        where = f"input layer '{self.name}'"
        if self.dtype.name not in FED_TYPES:
            raise UsageError(f"Unsupported input type: {self.dtype.name}", where=where)
        elements = 1
        for size in self.shape:
            elements *= size
        if elements * max(1, self.dtype.size) > MOST_FEED_BYTES:
            raise UsageError(f"a feed of shape {list(self.shape)} is too large", where=where)
        if self.dtype.name == "string":
            if self.values:
                raise UsageError("Initialization values are not supported for strings", where=where)
            return np.full(self.shape, np.array(self.text, object), object)  # bytes alone would lose zeros at their end
        if len(self.values) > elements:
            raise UsageError(f"{counted(len(self.values), 'value')} for {elements} elements", where=where)
        flat = np.zeros(elements, self.dtype.numpy)
        flat[: len(self.values)] = np.asarray(self.values).astype(self.dtype.numpy)
        return flat.reshape(self.shape)


def layers_from_graph(
    graph: Graph, names: Sequence[str], notify: Callable[[str], None] | None = None
) -> list[BenchmarkLayer]:
    """Layers for these placeholders as the graph declares them; an unknown first dimension becomes 1 or a batch
    that the graph states, others what fits the weights, as in exports, which ``notify`` is told.

    What decodes recordings, pictures or records is fed one of noise; what chooses between training and use, its value
    in use.

    Raises:
        UsageError: a placeholder's shape is not known, and no sizes fit the weights; the message says what to pass.
    """
    specs = {name: FeedSpec.of(graph, feed_endpoint(graph, name), name) for name in names}
    decoders = {name: decoder_of(graph, spec.endpoint.node) for name, spec in specs.items()}
    is_single = {name: decoders[name] is not None and spec.shape.rank != 1 for name, spec in specs.items()}
    switches = training_switches(graph)
    shapes = {
        name: Shape(()) if is_single[name] or spec.endpoint.node in switches else spec.shape
        for name, spec in specs.items()
    }
    for name, shape in shapes.items():
        if shape.dims is None and (parser := parser_of(graph, name)) is not None:
            shapes[name] = Shape(records_shape(parser))
    open_ones = [name for name, shape in shapes.items() if shape.dims is None or None in shape.dims[1:]]
    rows = [name for name, shape in shapes.items() if shape.dims == (None,)] if len(names) > 1 else []
    found = _fitting(graph) if open_ones or rows else {}
    open_ones += [name for name in rows if found.get(name, (1,)) != (1,)]
    for name in [name for name in open_ones if found.get(name) == () == _written(graph, specs[name])]:
        shapes[name] = Shape(())  # written as such, which may stand for any shape, and nothing speaks against it
        open_ones.remove(name)
    if open_ones:
        named = [name for name in names if specs[name].endpoint.node not in switches]
        known = ":".join(_sizes(shapes[name].dims, found.get(name)) for name in named)
        flags = f"{option('input_layer')}={','.join(named)} {option('input_layer_shape')}={known}"
        if "?" in known:
            raise UsageError(
                f"the graph does not fix the size of input '{open_ones[0]}' ({shapes[open_ones[0]]})",
                hint=f"pass {flags} with sizes in place of the question marks",
            )
        if notify is not None:
            listed = ", ".join(f"'{name}' {shapes[name]}" for name in open_ones)
            notify(f"the graph leaves sizes open ({listed}), so these are taken, which the time depends on: {flags}")
        shapes |= {name: Shape(found[name]) for name in open_ones}
    batched = [name for name, shape in shapes.items() if shape.dims and shape.dims[0] is None]
    if batched and (any(node.op in STATES_BATCH for node in graph) or stated_batches(graph)):
        found = found or _fitting(graph)
        shapes |= {name: Shape(found[name]) for name in batched if name in found}
    return [
        BenchmarkLayer(
            name,
            specs[name].dtype or graph.producer(name).dtype("dtype"),
            tuple(1 if size is None else size for size in shape.dims or ()),
            _values(graph, name, shape, switches),
            text=_text(graph, name, decoders[name]),
        )
        for name, shape in shapes.items()
    ]


def _values(graph: Graph, name: str, shape: Shape, switches: Mapping[str, float]) -> tuple[float, ...]:
    """The first values of an input that is not fed zeros: of one that tells training from use, or of sparse sizes."""
    if node_name(name) in switches:
        return (float(switches[node_name(name)]),)
    sizes = sparse_part(graph, node_name(name)) if shape.dims == (2,) else None
    return tuple(map(float, sizes)) if sizes is not None and len(sizes) == 2 else ()


def _written(graph: Graph, spec: FeedSpec) -> tuple[int | None, ...] | None:
    name = spec.endpoint.node
    shape = graph.declared_shape(name) if name in graph else None
    return None if shape is None else shape.dims


def synthetic_text(graph: Graph, name: str) -> bytes:
    """What an input of strings is fed: a file or a record where it is read as one, words where these are looked up."""
    return _text(graph, name, decoder_of(graph, name)) if node_name(name) in graph else b""


def _text(graph: Graph, name: str, decoder: Node | None) -> bytes:
    """``synthetic_text`` where the decoder is known."""
    rng = np.random.default_rng(0)
    if decoder is not None:
        return encoded_sample(graph, decoder, rng)
    parser = parser_of(graph, name)
    return sample_text(graph, name, rng) if parser is None else record_sample(graph, parser, rng)


def _fitting(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs with which the likely outputs can be computed; none where the weights do not tell."""
    try:
        return synthetic_shapes(graph, [name for name, _ in likely_outputs(graph)])
    except PocketgraphError:
        return {}


def _sizes(dims: tuple[int | None, ...] | None, fitting: tuple[int, ...] | None) -> str:
    """A shape as the flag has it: one that fits the weights; else 1 for an open first size, and question marks."""
    if fitting is not None:
        return ",".join(map(str, fitting))
    if dims is None:
        return "?"
    return ",".join(str(size) if size is not None else "?" if axis else "1" for axis, size in enumerate(dims))
