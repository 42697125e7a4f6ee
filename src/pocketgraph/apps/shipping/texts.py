"""A shipped model of texts: the vocabulary and the steps in front of it, written beside it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.apps.shipping.text_steps import embeds, facts, text_steps, vocabulary_files
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.datasets.text_samples import other_sample
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import load
from pocketgraph.formats.files import write_atomically
from pocketgraph.graph import DType, Graph, canonical, node_name
from pocketgraph.graph.order import topological
from pocketgraph.kernels.shapes import infer
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel
from pocketgraph.quantization.text_cut import text_preprocessing_at
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.text_preprocessing import TextPreprocessing, dependent_nodes
from pocketgraph.quantization.vocabulary import synthetic_texts

FACTS = "text.json"
COMPLEX = (DType.named("complex64"), DType.named("complex128"))
EXAMPLES = 5  # texts with what becomes of them, to test the app's steps with


def write_text_files(
    frozen: str, model: str, folder: str, outputs: Sequence[str], data: SampleSource | None, reading: SampleReading
) -> list[str]:  # fmt: skip
    """Writes vocabularies, the steps, and examples of them beside a model.

    Args:
        frozen: the file of the whole graph.
        model: the file of the part behind the texts.
        folder: where they go.
        outputs: what is computed.
        data: texts for the examples; None for made-up ones.
        reading: how they are read.

    Returns:
        What the app has to do, a sentence each; none where the graph takes no texts.
    """
    graph = load(frozen)
    taken = text_inputs(graph, outputs)
    if not taken:
        return []
    front = text_preprocessing_at(graph, outputs, LiteRTModel(model).declared)
    if front is None:
        return []
    if not front.takes_texts:
        return [spectrum_step(front)]
    files: dict[str, str] = {}
    for name, vocabulary, content in vocabulary_files(front):
        write_atomically(os.path.join(folder, name), content)
        files[vocabulary.table] = name
    if data is None:
        samples = [[other_sample(item, text) for item in taken] for text in synthetic_texts(graph, EXAMPLES)]
    else:
        samples = list(itertools.islice(reading.open(data, taken, PictureScaling()).samples(), EXAMPLES))
    plain = tuple(replace(item, features=()) for item in taken if item.takes_text)
    shown = samples
    if data is not None and any(item.features for item in taken):
        shown = list(itertools.islice(reading.open(data, plain, PictureScaling()).samples(), EXAMPLES))
    examples = [(_shown(text), front(sample)) for text, sample in zip(shown, samples, strict=True)]
    write_atomically(
        os.path.join(folder, FACTS), json.dumps(facts(front, files, examples), indent=1, ensure_ascii=False).encode()
    )
    steps = text_steps(front, files)
    left = embeds(front)
    if left:
        steps.append(
            f"the embedding '{left[0]}' stays with the app as well: LiteRT has no operators for how it is used"
        )
    steps.append(
        f"{FACTS} has these steps, and {counted(len(examples), 'text')} with the numbers that they become, to test with"
    )
    return steps


def spectrum_step(front: TextPreprocessing) -> str:
    """What the app does in front of a model that takes spectra, in a sentence."""
    inferred = infer(front.graph)
    fed = dependent_nodes(front.graph, [node_name(item.name) for item in front.inputs])
    ops: dict[str, None] = {}
    for node in topological(front.graph, partial=True):
        dtype = inferred.dtype(canonical(node.name))
        is_number = dtype is not None and (dtype.is_floating or dtype.base in COMPLEX)
        if node.name in front.front and node.name in fed and is_number and not node.op.startswith("Placeholder"):
            ops[node.op] = None
    made = ", ".join(f"'{cut.name}' ({cut.dtype.name} {list(cut.shape)})" for cut in front.cuts)
    given = ", ".join(f"'{node_name(item.name)}' ({item.dtype} {list(item.shape)})" for item in front.inputs)
    return (
        f"the app makes {made} of {given}, as the graph does: {', '.join(ops)}; a Session of the frozen graph gives "
        "numbers to test that with"
    )


def behind_texts(graph: Graph, outputs: Sequence[str], model: str) -> Graph:
    """The part of a graph that a file was made of, with the file's sizes; the graph itself where it takes no texts."""
    try:
        taken = [ModelInput(item.name, item.shape, item.dtype) for item in LiteRTModel(model).inputs]
        front = text_preprocessing_at(graph, outputs, taken)
    except PocketgraphError:
        return graph
    return graph if front is None else front.behind()


def _shown(sample: Sequence[np.ndarray[Any, Any]]) -> str:
    """The texts of a sample."""
    cells = [cell for array in sample if array.dtype.kind == "O" for cell in array.reshape(-1)]
    return " ".join(cell.decode("utf-8", "replace") for cell in cells if isinstance(cell, bytes))
