"""A model that takes texts, cut behind what reads them, for targets that hold numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.text_cut import NoCutError, text_preprocessing_of
from pocketgraph.quantization.text_inputs import reads_spectrum, text_inputs
from pocketgraph.quantization.text_preprocessing import Sample, TextPreprocessing
from pocketgraph.runtime.feeding.default_tensors import default_fetches

Texts = Callable[[tuple[ModelInput, ...]], Iterable[Sample]]
"""Gives samples for what a model takes, by which the lengths of texts are chosen."""


def text_front(
    graph: Graph,
    chosen: Mapping[str, Signature],
    outputs: Sequence[str] | None,
    fixed: Mapping[str, Any],
    texts: Texts | None,
) -> TextPreprocessing | None:
    """What reads texts in front of the model; None where nothing does, or nothing else is left: exporters then say what
    stands in the way.

    Args:
        graph: the model.
        chosen: the signatures to be exported; only the first one counts, and only where it takes texts.
        outputs: what is to be computed where there are no signatures.
        fixed: what other placeholders are set to.
        texts: samples; None for none.
    """
    if chosen:
        signature = next(iter(chosen.values()))
        fetches = list(signature.outputs.values())
        strings = (graph.producer(tensor).attr("dtype", None) is STRING for tensor in signature.inputs.values())
        if not any(strings) and not reads_spectrum(graph, fetches):
            return None
    else:
        fetches = list(outputs) if outputs else list(default_fetches(graph))
    numeric = _numbers(graph, fetches)
    fed: Collection[str] = tuple(fixed)
    taken = text_inputs(graph, numeric, fed)
    if not taken:
        return None
    try:
        return text_preprocessing_of(graph, numeric, fed, texts(taken) if texts is not None else ())
    except NoCutError:
        return None


def with_sizes_said(
    graph: Graph, chosen: Mapping[str, Signature], shapes: Mapping[str, Sequence[int]]
) -> tuple[Graph, set[str]]:
    """The graph whose placeholders of numbers have the sizes that are said, and under which names those were said."""
    signature = next(iter(chosen.values()), None)
    tensors = signature.inputs if signature is not None else {}
    said = {name: node_name(tensors.get(name, name)) for name in shapes}
    takes = {node.name for node in graph if node.op in PLACEHOLDERS and node.attr("dtype", None) is not STRING}
    said = {name: node for name, node in said.items() if node in takes}
    sizes = {node: Shape(tuple(shapes[name])) for name, node in said.items()}
    return graph.map_nodes(
        lambda node: node.replace(attrs={**node.attrs, "shape": sizes[node.name]}) if node.name in sizes else node
    ), set(said)


def outputs_behind(graph: Graph, chosen: Mapping[str, Signature], outputs: Sequence[str] | None) -> dict[str, str]:
    """The tensors that are computed behind texts, by public names; those of texts are left out."""
    if chosen:
        named = dict(next(iter(chosen.values())).outputs)
    else:
        fetches = list(outputs) if outputs else list(default_fetches(graph))
        named = {canonical(name).removesuffix(":0"): canonical(name) for name in fetches}
    kept = _numbers(graph, list(named.values()))
    return {name: canonical(tensor) for name, tensor in named.items() if tensor in kept}


def _numbers(graph: Graph, fetches: Sequence[str]) -> list[str]:
    inferred = infer(graph)
    kept = [name for name in fetches if inferred.dtype(canonical(name)) is not STRING]
    return kept or list(fetches)
