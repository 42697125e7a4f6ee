"""A model to be compared, whichever its file: what it takes and gives, what depends on what, and a run."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import HALF, INT8, UINT8, DType
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.model_file_graph import ONNX_PREFIX, SCALES, coded, is_model_file, numbers
from pocketgraph.graph.node import find_source
from pocketgraph.graph.op_traits import VARIABLES
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.rounding_sensitivity import last_bits_changed, with_last_bits_changed
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.session import Session
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint

Model = Graph | str | os.PathLike[str]
FEWEST_CODED = 16  # elements of a constant of eight bits, from which it is taken for weights
LITERT_QUANTIZE = "tfl.quantize"
"""Not a trait: what makes codes of floats in a LiteRT file, and is in no file of floats."""
EIGHT_BIT = re.compile(r"Quantize(d|V2|AndDequantize)|FakeQuant|Dequantize|(Dynamic)?QuantizeLinear|QLinear")
"""Ops of a network that stores its weights in eight bits, computes with them, or was trained to."""


class ComparedModel:
    """One side of a comparison: a graph, a LiteRT file or an ONNX file in a session.

    Args:
        model: a graph, or the path of a file: .pb and its like, .tflite, .onnx.
        threads, engine: as for Session.

    Attributes:
        graph: the model; for an ONNX file its inputs, its outputs, and which of them depend on which.
        is_file: whether it has inputs and outputs of its own, and no tensors in between to feed or fetch.
        is_eight_bit: whether it stores weights in eight bits, or computes with them.
        is_half: whether it is a file that holds weights rounded to half precision.

    Raises:
        FormatError: the file is damaged.
        RunError: there is no such file.
    """

    def __init__(self, model: Model, threads: int | None, engine: str | None) -> None:
        self._model, self._threads = model, threads
        self._session = Session(model, threads, engine=engine)
        self.graph = self._session.graph
        self.is_file = is_model_file(self.graph)
        ops = [node.op.removeprefix(ONNX_PREFIX) for node in self.graph]
        self.is_eight_bit = (
            any(map(EIGHT_BIT.match, ops))
            or LITERT_QUANTIZE in ops
            or any(map(_has_scales, self.graph))
            or (self.is_file and any(_holds(node, INT8, UINT8) for node in self.graph))
        )
        self.is_half = self.is_file and any(_holds(node, HALF) for node in self.graph)

    def run(self, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """What the fetches are, as numbers, for feeds that are numbers."""
        given = {name: coded(self.graph, name, np.asarray(value)) for name, value in feeds.items()}
        results = self._session.run(list(fetches), given if self.is_file else feeds)
        return [numbers(self.graph, name, value) for name, value in zip(fetches, results, strict=True)]

    def with_last_bits_changed(self) -> ComparedModel:
        """The model on the reference engine, each weight changed by its last bit: a SavedModel's are variables."""
        stored = self._session.variables()
        moved = ComparedModel(self._model if stored else with_last_bits_changed(self.graph), self._threads, "reference")
        rng = np.random.default_rng(0)
        weights = {name: value for name, value in stored.items() if value.dtype == np.float32 and value.size > 1}
        moved._session.assign({name: last_bits_changed(value, rng) for name, value in weights.items()})
        return moved

    def close(self) -> None:
        """Lets go of the model."""
        self._session.close()


def _holds(node: Node, *dtypes: DType) -> bool:
    """Whether a node of a file holds weights of one of these types, which an operator reads as they are."""
    value = node.attrs.get("value") if node.op == "Const" else None
    return isinstance(value, Tensor) and value.size >= FEWEST_CODED and value.dtype in dtypes


def _has_scales(node: Node) -> bool:
    scales = node.attrs.get(SCALES, ())
    return isinstance(scales, tuple) and any(scales)


def reached(graph: Graph, fetch: str, feeds: Iterable[str]) -> set[str]:
    """Which of the ``feeds`` a fetch depends on when all of them are fed."""
    labels = feed_endpoints(graph, dict.fromkeys(feeds))
    endpoint = fetch_endpoint(graph, fetch)  # of several that leave a SavedModel through one node, each its own
    endpoint = Endpoint.of(find_source(graph.nodes, str(endpoint), ("Identity",), [*map(str, labels)]) or fetch)
    read = {read for item in needed(graph, labels, [endpoint], ()).values() for read in item.data} | {endpoint}
    return {label for given, label in labels.items() if given in read}


def weights_cut_off(graph: Graph, fetches: Iterable[str], feeds: Collection[str]) -> tuple[int, int]:
    """How many nodes with weights the feeds cut off from the fetches, and how many there are without the feeds.

    Weights are variables and constants of floats with two dimensions or more.
    """
    wanted = [fetch_endpoint(graph, name) for name in fetches]
    whole = needed(graph, (), wanted, ())
    left = needed(graph, list(feed_endpoints(graph, dict.fromkeys(feeds))), wanted, ())
    trained = [name for name, item in whole.items() if _is_weight(item.node)]
    return sum(name not in left for name in trained), len(trained)


def _is_weight(node: Node) -> bool:
    if node.op in VARIABLES:
        return True
    value = node.attrs.get("value") if node.op == "Const" else None
    shape = getattr(value, "shape", None)
    dims = getattr(shape, "dims", shape)
    return dims is not None and len(dims) >= 2 and node.dtype("dtype").numpy.kind in "fV"
