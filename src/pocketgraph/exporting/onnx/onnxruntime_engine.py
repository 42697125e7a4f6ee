"""ONNX Runtime as an engine for parts of floats, from the ONNX form of their graph (extra ``onnx``)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from pocketgraph.errors import MissingExtraError, RunError
from pocketgraph.exporting.onnx.fed_numbers import MOST_FED, CheckedRunner, has_finite_squares, is_beyond_float32
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.onnx_runner import OnnxRunner, node_times
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime
from pocketgraph.version import VERSION

SETTINGS = {"session.force_spinning_stop": "1"}
"""Threads sleep between runs: the next part may be another engine's, which computes on the same cores."""

OVERLOOKING = ops_with("resize", "result_gradient") | frozenset((
    "ArgMax", "ArgMin", "Max", "MaxPool", "MaxPool3D", "Min", "Relu6Grad", "ReluGrad", "TopK", "TopKV2",
))  # fmt: skip
"""Not a trait: where NaN or an infinity comes in, ONNX Runtime gives other elements than TensorFlow
(tools/edge_values.py)."""


class _OnnxPartRunner(CheckedRunner):
    """A part in ONNX Runtime.

    Args:
        part: it; its graph was read.
        threads: how many to compute with.

    Raises:
        LackingError: ONNX has no operators for some nodes.
        RunError: ONNX Runtime does not take it, or it is larger than an ONNX model without files beside it may be.
    """

    def __init__(self, part: OfferedPart, threads: int) -> None:
        content, names = onnx_form(part)
        fed = part.entry.about["fed"]
        nothing = part.all_inputs([np.zeros(0)] * len(fed))
        self._fed = [names[place] for place in fed]
        self._unread = {names[place]: array for place, array in enumerate(nothing) if place not in fed}
        self._outputs = part.outputs
        super().__init__(part)
        nodes = part.reference.nodes if part.reference is not None else ()
        self._overlooks = any(node.op in OVERLOOKING for node in nodes)
        self._adds_up = any(map(_adds_up_whole_numbers, nodes))
        self._runner: OnnxRunner | None = OnnxRunner(content, threads, settings=SETTINGS)

    def refused(self, inputs: Sequence[Array]) -> str:
        if self._overlooks and not all(map(has_finite_squares, inputs)):
            return "ONNX Runtime's maxima, pools and resizing pass over NaN, or spread it"
        if self._adds_up and any(map(is_beyond_float32, inputs)):
            return f"ONNX Runtime adds up whole numbers beyond {MOST_FED} in floats"
        return super().refused(inputs)

    def computed(self, inputs: Sequence[Array]) -> list[Array]:
        if self._runner is None:
            raise RunError("the part is closed")
        results = self._runner.numbers({**self._unread, **dict(zip(self._fed, inputs, strict=True))})
        return [
            array if (array.dtype, array.shape) == wanted else np.asarray(array, wanted.dtype).reshape(wanted.shape)
            for array, wanted in zip(results, self._outputs, strict=True)
        ]

    def close(self) -> None:
        self._runner = None


class OnnxRuntimeEngine:
    """ONNX Runtime on processors."""

    name = "onnxruntime"

    def version(self) -> str:
        if find_spec("onnxruntime") is None or find_spec("onnx") is None:
            raise MissingExtraError("the engine 'onnxruntime' is not installed", hint="pip install 'pocketgraph[onnx]'")
        from importlib.metadata import version

        return version("onnxruntime")

    def refuses(self, part: OfferedPart) -> str:
        if part.is_eight_bit:
            return "it has eight-bit tensors, which ONNX Runtime computes with otherwise"
        if part.is_narrow:
            return "it has 16-bit floats, which ONNX Runtime rounds at other places"
        return "" if part.reference is not None else "the graph was not read"

    def load(self, part: OfferedPart, threads: int) -> _OnnxPartRunner:
        return _OnnxPartRunner(part, threads)

    def profile(self, part: OfferedPart, threads: int, inputs: Sequence[Array]) -> list[OperationTime] | None:
        content, names = onnx_form(part)
        found = node_times(
            lambda to: OnnxRunner(content, threads, profile=to, settings=SETTINGS),
            None,
            dict(zip(names, part.all_inputs(inputs), strict=True)),
        )
        graph = part.graph()
        assert graph is not None
        return [OperationTime(_node_of(each.name, graph), each.op, each.microseconds) for each in found]


def _adds_up_whole_numbers(node: Node) -> bool:
    dtype = node.attrs.get("T")
    return node.op in ("Mean", "Prod", "Sum") and isinstance(dtype, DType) and dtype.numpy.kind in "iu"


def _node_of(name: str, graph: Graph) -> str:
    """The node that an ONNX node is named after, ``NODE/OPERATOR``, as far as ONNX Runtime's fusions leave that."""
    node = name
    while node and node not in graph:
        node = node.rpartition("/")[0]
    return node or name


def onnx_form(part: OfferedPart, *, tiled_for: int = 0) -> tuple[bytes, list[str]]:
    """The ONNX model of a part, and the names under which it takes what ``all_inputs`` gives.

    Args:
        part: it.
        tiled_for: compute wide convolutions in tiles as OpenVINO is quicker with so many threads; 0 for no tiles.
    """
    from pocketgraph.exporting.onnx.protobuf_writer import LARGEST, constant_bytes, model_proto
    from pocketgraph.exporting.onnx.tiled_convolutions import convolve_in_tiles
    from pocketgraph.exporting.onnx.to_onnx import converted

    graph = part.graph()
    if graph is None:
        raise RunError("the graph was not read")
    specs = [(DType.named(kind), Shape(shape)) for _, kind, shape in part.entry.about["inputs"]]
    inputs = {f"{name}:0": spec for name, spec in zip(graph.inputs, specs, strict=True)}
    made = converted(graph, inputs, [graph.outputs[place] for place in part.places])
    if tiled_for:
        convolve_in_tiles(made.body, tiled_for)
    if constant_bytes(made.body) > LARGEST:
        raise RunError("its constants have over 2 GB, which ONNX holds in files beside the model only")
    content: bytes = model_proto(made.body, made.opset, "part", VERSION).SerializeToString()
    return content, list(graph.inputs)


ENGINE = OnnxRuntimeEngine()
