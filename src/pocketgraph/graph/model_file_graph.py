"""Graphs that stand for a LiteRT or ONNX file: their nodes are its operators, and tell types and shapes themselves."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import FormatError, UsageError
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.tensor import Array

PREFIX = "tfl."
"""Before the name of an operator of a LiteRT file, in a node's op."""
TYPES, SHAPES = "output_types", "output_shapes"
"""The attributes of such a node that have a type and a shape for each output."""
SCALES, ZERO_POINTS = "scales", "zero_points"
"""Where outputs are codes: ``scale * (code - zero_point)`` is what one stands for, scale 0 being for plain numbers."""
ONNX_PREFIX = "onnx."
"""The same of an ONNX file."""
LITERT, ONNX = b"TFL3", b"ONNX"
"""What stands in ``extra`` from byte 4 on: LiteRT files begin so; that of an ONNX file follows behind it."""

FROM_ONNX = (
    "; of another framework's model onnx2tf makes one: pip install onnx2tf; onnx2tf -i MODEL.onnx -o saved_model"
)
"""What helps where there never was a TensorFlow graph."""


def is_model_file(graph: Graph) -> bool:
    """Whether a graph is that of a LiteRT or ONNX file, whose content is in ``extra``."""
    return graph.extra[4:8] in (LITERT, ONNX)


def is_litert_file(graph: Graph) -> bool:
    """Whether a graph is that of a LiteRT file."""
    return graph.extra[4:8] == LITERT


def check_graph_def_form(graph: Graph, where: str = "") -> None:
    """Refuses the graph of a LiteRT or ONNX file, whose operators are none of TensorFlow's.

    Raises:
        FormatError: it is such a graph.
    """
    if is_model_file(graph):
        what = "a LiteRT" if is_litert_file(graph) else "an ONNX"
        raise FormatError(
            f"the operators of {what} file have no GraphDef form", where=where,
            hint="give the graph that it was made from",
        )  # fmt: skip


def refuse_finished(graph: Graph, what: str, hint: str = "") -> None:
    """Refuses the graph of a LiteRT or ONNX file for what starts from the graph that such files are made from.

    Args:
        what: what is to be done, for the message: ``quantize``.
        hint: what else helps.

    Raises:
        UsageError: it is that of a file.
    """
    if is_model_file(graph):
        form, other = ("a .tflite file", "") if is_litert_file(graph) else ("an .onnx file", FROM_ONNX)
        raise UsageError(
            f"{form} is finished already; {what} starts from the graph that it was made from",
            hint="give the frozen graph or the SavedModel" + hint + other,
        )


def has_codes(graph: Graph, tensor: str) -> bool:
    """Whether a LiteRT file takes or gives codes there that stand for other numbers."""
    return is_litert_file(graph) and _quantization(graph, tensor)[0] != 0


def coded(graph: Graph, tensor: str, array: Array) -> Array:
    """What a LiteRT file takes for an array of numbers: codes where ``tensor`` has codes, else the array itself."""
    scale, zero = _quantization(graph, tensor)
    if not scale or array.dtype.kind != "f":
        return array
    dtype = graph.producer(tensor).dtype("dtype").numpy
    info = np.iinfo(dtype)
    codes: Array = np.clip(np.rint(array / scale) + zero, info.min, info.max).astype(dtype)
    return codes


def numbers(graph: Graph, tensor: str, array: Array) -> Array:
    """What an array of a LiteRT file stands for: float32 where ``tensor`` has codes, else the array itself."""
    scale, zero = _quantization(graph, tensor)
    if not scale or array.dtype.kind not in "iu":
        return array
    found: Array = (array.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    return found


def _quantization(graph: Graph, tensor: str) -> tuple[float, int]:
    name, port, _ = parse_ref(tensor)
    attrs = graph[name].attrs
    scales, zeros = attrs.get(SCALES, ()), attrs.get(ZERO_POINTS, ())
    if not isinstance(scales, tuple) or not isinstance(zeros, tuple) or port >= len(scales):
        return 0.0, 0
    return float(scales[port]), int(zeros[port])
