"""A model to be compared, whichever its file: what it takes and gives, what depends on what, and a run."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from pocketgraph.errors import FormatError, MissingExtraError, RunError
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, canonical, node_name
from pocketgraph.graph.dtype import INT8, STRING, UINT8
from pocketgraph.graph.model_file import SCALES, coded, is_model_file, numbers
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.session import Session
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint

Array = np.ndarray[Any, Any]
Model = Graph | str | os.PathLike[str]
ONNX = ".onnx"
FEWEST_CODED = 64  # elements of a constant of eight bits, from which it is taken for weights
EIGHT_BIT = re.compile(r"Quantize(d|V2|AndDequantize)|FakeQuant|Dequantize|(Dynamic)?QuantizeLinear|QLinear")
"""Ops of a network that stores its weights in eight bits, computes with them, or was trained to."""


class ComparedModel(Protocol):
    """One side of a comparison.

    Attributes:
        graph: the model; for an ONNX file its inputs, its outputs, and which of them depend on which.
        is_file: whether it has inputs and outputs of its own, and no tensors in between to feed or fetch.
        is_eight_bit: whether it stores weights in eight bits, or computes with them.
    """

    graph: Graph
    is_file: bool
    is_eight_bit: bool

    def run(self, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """What the fetches are, as numbers, for feeds that are numbers."""
        ...

    def close(self) -> None:
        """Lets go of the model."""
        ...


def opened(model: Model, threads: int | None, engine: str | None) -> ComparedModel:
    """A graph, or the model of a file: .pb and its like, .tflite, .onnx.

    Raises:
        FormatError: the file is damaged.
        MissingExtraError: it is an ONNX file, and what runs those is not installed.
        RunError: there is no such file.
    """
    if not isinstance(model, Graph) and os.fspath(model).endswith(ONNX):
        return OnnxModel(os.fspath(model), threads)
    return SessionModel(model, threads, engine)


class SessionModel:
    """A graph or a LiteRT file in a session."""

    def __init__(self, model: Model, threads: int | None, engine: str | None) -> None:
        self._session = Session(model, threads, engine=engine)
        self.graph = self._session.graph
        self.is_file = is_model_file(self.graph)
        self.is_eight_bit = any(EIGHT_BIT.match(node.op) or _has_scales(node) for node in self.graph) or (
            self.is_file and any(_is_coded(node) for node in self.graph)
        )

    def run(self, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        given = {name: coded(self.graph, name, np.asarray(value)) for name, value in feeds.items()}
        results = self._session.run(list(fetches), given if self.is_file else feeds)
        return [numbers(self.graph, name, value) for name, value in zip(fetches, results, strict=True)]

    def close(self) -> None:
        self._session.close()


class OnnxModel:
    """An ONNX file in ONNX Runtime. Nodes of ``graph`` are named like the tensors, without ``:0``."""

    is_file = True

    def __init__(self, path: str, threads: int | None) -> None:
        try:
            import onnx  # type: ignore[import-not-found,import-untyped,unused-ignore]
            import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            hint = "pip install 'pocketgraph[onnx]'"
            raise MissingExtraError(
                "ONNX files need the packages onnx and onnxruntime", where=path, hint=hint
            ) from None
        if not os.path.exists(path):
            raise RunError("there is no such file", where=path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 4
        try:
            proto = onnx.load(path)
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            self._names = {node_name(item.name): item.name for item in (*proto.graph.input, *proto.graph.output)}
            self.graph = _outline(proto, onnx)
        except Exception as error:  # protobuf's and ONNX Runtime's, of many kinds
            raise FormatError(f"not a readable ONNX file: {' '.join(str(error).split())}", where=path) from None
        self._path = path
        self.is_eight_bit = any(EIGHT_BIT.match(node.op_type) for node in proto.graph.node)

    def run(self, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        given = {self._names[node_name(name)]: _as_text(np.asarray(value)) for name, value in feeds.items()}
        try:
            results = self._session.run([self._names[node_name(name)] for name in fetches], given)
        except Exception as error:
            raise RunError(" ".join(str(error).split()), where=self._path) from None
        return [_as_bytes(np.asarray(value)) for value in results]

    def close(self) -> None:
        del self._session


def _is_coded(node: Node) -> bool:
    """Whether a node of a file holds weights of eight bits or fewer, which an operator reads as they are."""
    value = node.attrs.get("value") if node.op == "Const" else None
    return isinstance(value, Tensor) and value.size >= FEWEST_CODED and value.dtype in (INT8, UINT8)


def _has_scales(node: Node) -> bool:
    scales = node.attrs.get(SCALES, ())
    return isinstance(scales, tuple) and any(scales)


def _outline(proto: Any, onnx: Any) -> Graph:
    """An ONNX model as placeholders, and outputs whose inputs are those that they depend on."""
    stored = {item.name for item in proto.graph.initializer}
    made = {name: node for node in proto.graph.node for name in node.output}
    inputs = {item.name: item for item in proto.graph.input if item.name not in stored}
    nodes = []
    for name, item in inputs.items():
        kind = item.type.tensor_type
        dims = [size.dim_value if size.HasField("dim_value") else None for size in kind.shape.dim]
        array = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        dtype = STRING if array.kind == "O" else DType.of_numpy(array)
        shape = Shape(dims) if kind.HasField("shape") else Shape(None)
        nodes.append(Node(node_name(name), "Placeholder", (), {"dtype": dtype, "shape": shape}))
    for item in proto.graph.output:
        waiting, seen = [item.name], set()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += _read_by(made[name]) if name in made else []
        nodes.append(
            Node(node_name(item.name), "OnnxOutput", tuple(node_name(name) for name in inputs if name in seen))
        )
    return Graph(nodes, outputs=tuple(canonical(node_name(item.name)) for item in proto.graph.output))


def _read_by(node: Any) -> list[str]:
    """The tensors that an ONNX node reads, those that its branches and bodies read included."""
    inside = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return [*node.input, *(name for body in inside for inner in body.node for name in _read_by(inner)),
            *(item.name for body in inside for item in body.output)]  # fmt: skip


def _as_text(array: Array) -> Array:
    if array.dtype.kind not in "OS":
        return array
    texts: Array = np.array([bytes(item).decode() for item in array.reshape(-1)], object).reshape(array.shape)
    return texts


def _as_bytes(array: Array) -> Array:
    if array.dtype.kind not in "OU":
        return array
    contents: Array = np.array([str(item).encode() for item in array.reshape(-1)], object).reshape(array.shape)
    return contents


def reached(graph: Graph, fetch: str, feeds: Iterable[str]) -> set[str]:
    """Which of the ``feeds`` a fetch depends on when all of them are fed."""
    labels = feed_endpoints(graph, dict.fromkeys(feeds))
    endpoint = fetch_endpoint(graph, fetch)
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
    if node.op in ops_with("variable"):
        return True
    value = node.attrs.get("value") if node.op == "Const" else None
    shape = getattr(value, "shape", None)
    dims = getattr(shape, "dims", shape)
    return dims is not None and len(dims) >= 2 and node.dtype("dtype").numpy.kind in "fV"
