"""What a graph's inputs are, texts, their words and records of them among it; and which go through a spectrum first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.datasets.model_input import ModelInput, signature_keys
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import CONTRACTIONS, NO_DEFAULT_PLACEHOLDERS, PICTURE_FILES, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.runtime.feeding.encoded_samples import file_form
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.record_samples import features_of, parser_of
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes
from pocketgraph.runtime.tensor_names import feed_endpoints
from pocketgraph.runtime.unsupported_help import SPECTRA

DECODERS = PICTURE_FILES | ops_with("recording")
MOST_STEPS = 8  # from an input to what decodes it


def model_input(graph: Graph, label: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ModelInput:
    """An input of a graph, as samples for it are read.

    Args:
        label: the tensor that is fed.
        shape: its shape, 1 where it is open.
        dtype: what is fed; of objects where it takes strings.
    """
    name = canonical(label)
    declared = graph.declared_shape(node_name(name))
    dims = None if declared is None else declared.dims
    keys = signature_keys(graph, name)
    if dtype.kind != "O":
        has_open_size = dims is not None and len(dims) == 4 and None in dims[1:3]
        return ModelInput(name, shape, dtype, rate=model_sample_rate(graph), has_open_size=has_open_size, keys=keys)
    if form := file_form(graph, name):
        return ModelInput(name, shape, dtype, file_form=form, keys=keys)
    parser = parser_of(graph, name)
    features = tuple(features_of(graph, parser)) if parser is not None else ()
    has_words = not features and dims is not None and len(dims) > 1 and dims[-1] != 1
    return ModelInput(name, shape, dtype, features, has_words, keys=keys)


def text_inputs(graph: Graph, outputs: Sequence[str], fed: Collection[str] = ()) -> tuple[ModelInput, ...]:
    """All inputs of a model that takes texts, or makes spectra before its first layer; none where it does neither.

    Both are done in front of what ships, as LiteRT has no operators for them.

    Args:
        graph: the model.
        outputs: what is to be computed.
        fed: placeholders that are set to something else.

    Raises:
        UsageError: the shape of an input is not known.
    """
    if reads_spectrum(graph, outputs):
        return _inputs(graph, outputs, fed)
    strings = {node.name for node in graph if node.op in NO_DEFAULT_PLACEHOLDERS and node.attr("dtype", None) is STRING}
    if not strings or strings.isdisjoint(reachable(graph, [node_name(name) for name in outputs])):
        return ()
    if strings <= {node_name(name) for name in fed}:
        return ()
    found = _inputs(graph, outputs, fed)
    takes_text = any(item.takes_text and not is_decoded(graph, item.name) for item in found)
    return found if takes_text else ()


def _inputs(graph: Graph, outputs: Sequence[str], fed: Collection[str]) -> tuple[ModelInput, ...]:
    shapes = synthetic_shapes(graph, outputs, tuple(fed))
    found = []
    for endpoint, label in feed_endpoints(graph, shapes).items():
        dtype = FeedSpec.of(graph, endpoint, label).numpy or np.dtype(np.float32)
        found.append(model_input(graph, label, shapes[label], dtype))
    return tuple(found)


def reads_spectrum(graph: Graph, outputs: Sequence[str]) -> bool:
    """Whether there are complex numbers on the way to the outputs, and no layer in front of them."""
    needed = reachable(graph, [node_name(name) for name in outputs], missing_ok=True)
    spectra = [name for name in needed if graph[name].op in SPECTRA]
    if not spectra:
        return False
    return not any(graph[name].op in CONTRACTIONS for name in reachable(graph, spectra, missing_ok=True))


def of_heard_length(
    graph: Graph, outputs: Sequence[str], fed: Collection[str], source: SampleSource | None, reading: SampleReading
) -> Graph:
    """The graph, an input in front of a spectrum being as long as the samples where the graph leaves that open.

    Args:
        graph: the model.
        outputs: what is to be computed.
        fed: placeholders that are set to something else.
        source: the samples.
        reading: how they are read.
    """
    if source is None or not reads_spectrum(graph, outputs):
        return graph
    made = synthetic_shapes(graph, outputs, tuple(fed))
    chosen = reading.sized(graph, made, source)
    return with_shapes(graph, chosen) if chosen != made else graph


def with_shapes(graph: Graph, shapes: Mapping[str, tuple[int | None, ...]]) -> Graph:
    """The graph whose placeholders of these names have these shapes."""
    chosen = {node_name(name): Shape(shape) for name, shape in shapes.items()}

    def sized(node: Node) -> Node:
        is_sized = node.name in chosen and node.op in NO_DEFAULT_PLACEHOLDERS
        return node.replace(attrs={**node.attrs, "shape": chosen[node.name]}) if is_sized else node

    return graph.map_nodes(sized)


def is_decoded(graph: Graph, name: str) -> bool:
    """Whether what goes into a string input is a picture or a recording."""
    waiting, seen = [node_name(name)], {node_name(name)}
    for _ in range(MOST_STEPS):
        users = [user for place in waiting for user in graph.consumers.get(place, ())]
        if any(user.op in DECODERS or user.op == "DecodeRaw" for user in users):
            return True
        waiting = [user.name for user in users if user.name not in seen]
        seen.update(waiting)
    return False
