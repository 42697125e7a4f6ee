"""Makes a plain convolution of a dilated one that was spelled with SpaceToBatchND and BatchToSpaceND."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const, node_name
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms._convolutions import copied
from pocketgraph.transforms.tool import transform

ATROUS = Pattern(
    "BatchToSpaceND",
    [
        Pattern(
            "Conv2D|DepthwiseConv2dNative",
            [
                Pattern(
                    "SpaceToBatchND",
                    [Pattern("*", name="data"), Pattern("Const", name="block"), Pattern("*", name="paddings")],
                    name="space",
                ),
                Pattern("Const", name="filter"),
            ],
            name="conv",
        ),
        "*",
        "*",
    ],
)


@transform
def flatten_atrous_conv(graph: Graph) -> Graph:
    """Replaces SpaceToBatchND, convolution, BatchToSpaceND by one convolution with zeros between the filter's rows.

    Given:   x = Placeholder(dtype=float)
             block = Const(int32 [2, 1])
             pads = Const(int32 [[1, 1], [0, 0]])
             space = SpaceToBatchND(x, block, pads, T=float)
             w = Const(float [[[[5.0]]], [[[7.0]]]])
             conv = Conv2D(space, w, T=float, padding="VALID", strides=[1,1,1,1])
             crops = Const(int32 [[0, 0], [0, 0]])
             y = BatchToSpaceND(conv, block, crops, T=float)
    Result:  x = Placeholder(dtype=float)
             w = Const(float [[[[5.0]]], [[[0.0]]], [[[7.0]]]])
             y = Conv2D(x, w, T=float, strides=[1,1,1,1], data_format="NHWC", padding="SAME", use_cudnn_on_gpu=true)

    Run it before fold_batch_norms. The padding is always SAME.

    Differs from the original: the data input keeps its port, and where block sizes or filter are no constants of types
    int32 and float, nothing is replaced (there, the program aborts).
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        conv, space, filter_ = match["conv"], match["space"], match["filter"]
        height, width = match["block"].tensor.numpy().reshape(-1)[:2].tolist()
        flat = const(filter_.name, spread(filter_.tensor.numpy(), height, width))
        attrs: dict[str, AttrValue] = {**copied(conv, "T", "strides", "data_format"), "padding": b"SAME"}
        if conv.op == "Conv2D":
            attrs |= copied(conv, "use_cudnn_on_gpu")
        inputs = (_spelled(space.data_inputs[0]), filter_.name)
        return [match["data"], flat, Node(match.node.name, conv.op, inputs, attrs, conv.device)]

    return replace_matches(graph, ATROUS, rewrite, accept=_fits).graph


def _fits(match: Match) -> bool:
    block, filter_ = match["block"].attr("value"), match["filter"].attr("value")
    return (
        isinstance(block, Tensor) and block.dtype is INT32 and block.size >= 2 and bool((block.numpy() > 0).all())
        and isinstance(filter_, Tensor) and filter_.dtype is FLOAT and len(filter_.shape) == 4
    )  # fmt: skip


def spread(values: np.ndarray[Any, Any], height: int, width: int) -> np.ndarray[Any, Any]:
    """A filter [h, w, in, out] with ``height`` - 1 rows and ``width`` - 1 columns of zeros between its own."""
    rows, columns, *channels = values.shape
    result = np.zeros(((rows - 1) * height + 1, (columns - 1) * width + 1, *channels), values.dtype)
    result[::height, ::width] = values
    return result


def _spelled(ref: str) -> str:
    """The reference, without the port when that is 0."""
    return node_name(ref) if ref.endswith(":0") else ref
