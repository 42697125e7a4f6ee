"""Feeds for a graph that takes texts and a file that takes what is behind them: the same numbers for both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.datasets.text_samples import other_sample
from pocketgraph.errors import PocketgraphError, UsageError, option
from pocketgraph.formats import load
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import STRING, DType
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.text_cut import text_preprocessing_at
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.vocabulary import synthetic_texts
from pocketgraph.runtime.comparison.compared_models import ComparedModel, Model
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import random_values
from pocketgraph.runtime.tensor_names import feed_endpoints

OPEN = -1


def may_read_texts(model: Model) -> bool:
    """Whether a model is a graph with inputs of strings, so that it is worth while to look closer."""
    if is_model_file(model) if isinstance(model, Graph) else os.path.splitext(model)[1] in (".tflite", ".onnx"):
        return False
    try:
        graph = model if isinstance(model, Graph) else load(model)
    except PocketgraphError:
        return False  # what is wrong with it is said where it is run
    return any(node.op in NO_DEFAULT_PLACEHOLDERS and node.attr("dtype", None) is STRING for node in graph)


def feeds_behind_texts(
    graph: Graph,
    file: Model,
    source: SampleSource | None,
    reading: SampleReading,
    *,
    outputs: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    limit: int = 100,
    seed: int = 0,
) -> tuple[Graph, list[dict[str, Array]]] | None:
    """The part behind texts or spectra, and what its inputs are fed, a set a text or recording; None where the graph
    takes neither, or the file does so, too.

    Args:
        graph: the whole model.
        file: what was made of the part behind its texts.
        source: texts or recordings, see ``open_dataset``; None for made-up ones.
        reading: how they are read.
        outputs: what is to be computed.
        values: what other placeholders are fed with.
        limit: how many texts to take.
        seed: for made-up ones.

    Raises:
        UsageError: the file takes something else.
    """
    wanted = list(outputs) if outputs else list(default_fetches(graph))
    taken = text_inputs(graph, wanted, tuple(values or {}))
    if not taken:
        return None
    ends = _ends(file)
    if not ends or any(item.takes_text for item in ends):
        return None
    front = text_preprocessing_at(graph, wanted, ends, tuple(values or {}))
    if front is None:
        listed = ", ".join(item.name for item in ends)
        raise UsageError(
            f"the second model takes {listed}, which the first does not make of texts",
            hint="compare it with the graph that it was made from",
        )
    if source is None:
        texts = _made_up(graph, taken, limit, seed)
        what = "texts" if any(item.takes_text for item in taken) else "recordings"
        reading.notify(f"fed with {len(texts)} made-up {what}; {option('data')} gives others")
    else:
        data = reading.open(source, taken, PictureScaling()).take(limit)
        texts = list(data.samples())
    names = list(front.shapes)
    ends_named = {cut.name: canonical(cut.name) for cut in front.cuts}
    own = {
        key: Signature(ends_named, signature.outputs, signature.method)
        for key, signature in graph.signatures.items()
        if not set(wanted).isdisjoint(signature.outputs.values())
    }
    part = front.behind(is_open=True).replace(outputs=list(graph.outputs) or wanted, signatures=own)
    return part, [{**dict(zip(names, front(text), strict=True)), **(values or {})} for text in texts]


def _made_up(graph: Graph, taken: Sequence[ModelInput], count: int, seed: int) -> list[list[Array]]:
    """Texts of words that the graph knows; of a graph that takes none, noise, as silence has no spectrum."""
    if any(item.takes_text for item in taken):
        return [[other_sample(item, text) for item in taken] for text in synthetic_texts(graph, count, seed)]
    rng = np.random.default_rng(seed)
    return [
        [random_values(DType.of_numpy(item.dtype), item.shape, rng, item.name) for item in taken] for _ in range(count)
    ]


def _ends(file: Model) -> list[ModelInput]:
    """What a file takes, sizes that it leaves open being -1."""
    with closing(ComparedModel(file, None, None)) as model:
        graph = model.graph
        found = []
        for endpoint, label in feed_endpoints(
            graph, dict.fromkeys(needed_placeholders(graph, default_fetches(graph)))
        ).items():
            node = graph[endpoint.node]
            shape = graph.declared_shape(node.name)
            dims = () if shape is None or shape.dims is None else shape.dims
            sizes = tuple(OPEN if size is None else size for size in dims)
            found.append(ModelInput(label, sizes, node.dtype("dtype").numpy))
        return found
