"""Makes a plain convolution of a dilated one that was spelled with SpaceToBatchND and BatchToSpaceND."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const, node_name
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.passes.fusible_convolutions import is_plain
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.convolution_facts import copied
from pocketgraph.transforms.tool import transform

ATROUS = Pattern(
    "BatchToSpaceND",
    [
        Pattern(
            "Conv2D|DepthwiseConv2dNative",
            [
                Pattern(
                    "SpaceToBatchND",
                    [Pattern("*", name="data"), Pattern("*", name="block"), Pattern("*", name="paddings")],
                    name="space",
                ),
                Pattern("*", name="filter"),
            ],
            name="conv",
        ),
        "*",
        Pattern("*", name="crops"),
    ],
)


@transform
def flatten_atrous_conv(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
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

    Run it before fold_batch_norms. Where paddings or crops are no constants, they are taken for those of SAME padding.

    Differs from the original: where paddings and crops are constants, they decide on SAME or VALID padding, and the
    convolution is left alone when it is neither (there, it gets SAME); so it is with NCHW, strides, dilations and
    explicit paddings, and where its filter or what stands before it is used elsewhere or is an output of the graph. The
    data input keeps its port, and where block sizes or filter are no constants of types int32 and float, nothing is
    replaced (there, the program aborts; with ``Compat.ORIGINAL``, an error).

    Raises:
        TransformError: block sizes or filter are no such constants, with ``Compat.ORIGINAL``.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        conv, space, filter_ = match["conv"], match["space"], match["filter"]
        if filter_.name in used and not compat.original:
            return list(match.nodes)
        height, width = match["block"].tensor.numpy().reshape(-1)[:2].tolist()
        flat = const(filter_.name, spread(filter_.tensor.numpy(), height, width))
        attrs: dict[str, AttrValue] = {**copied(conv, "T", "strides", "data_format"), "padding": padding(match)}
        if conv.op == "Conv2D":
            attrs |= copied(conv, "use_cudnn_on_gpu")
        data = match["data"].name if compat.original else _spelled(space.data_inputs[0])
        inputs = (data, filter_.name)
        return [match["data"], flat, Node(match.node.name, conv.op, inputs, attrs, conv.device)]

    def padding(match: Match) -> bytes:
        return b"SAME" if compat.original else _padding(match) or b"SAME"

    def accept(match: Match) -> bool:
        if compat.original and not _fits(match):
            what = "block sizes or filter are no constants of types int32 and float"
            raise TransformError(what, where=f"node '{match.node.name}'", hint="run fold_constants first")
        return _fits(match) and (compat.original or _padding(match) is not None)

    return replace_matches(graph, ATROUS, rewrite, accept=accept, keep_ends=not compat.original).graph


def _fits(match: Match) -> bool:
    block, filter_ = (node.attr("value") if node.op == "Const" else None for node in (match["block"], match["filter"]))
    return (
        isinstance(block, Tensor) and block.dtype is INT32 and block.size >= 2 and bool((block.numpy() > 0).all())
        and isinstance(filter_, Tensor) and filter_.dtype is FLOAT and len(filter_.shape) == 4
    )  # fmt: skip


def _padding(match: Match) -> bytes | None:
    """The padding of the one convolution that does the same as the three operations; None when there is none."""
    conv = match["conv"]
    if not is_plain(conv) or set(conv.attr("strides", ())) > {1}:
        return None
    block = match["block"].tensor.numpy().reshape(-1)
    given = match["paddings"].attr("value"), match["crops"].attr("value")
    if not all(isinstance(value, Tensor) and value.shape == (block.size, 2) for value in given):
        return b"SAME"
    added = given[0].numpy().astype(np.int64) - given[1].numpy()
    taken = np.array([[size - 1] for size in match["filter"].tensor.shape[:2]])
    inner = taken // 2 if conv.attr("padding") == b"SAME" else 0 * taken
    same = np.concatenate([taken * block[:2, np.newaxis] // 2, (taken * block[:2, np.newaxis] + 1) // 2], axis=1)
    added[:2] += (
        np.concatenate([inner, (taken - inner) * (conv.attr("padding") == b"SAME")], axis=1) * block[:2, np.newaxis]
    )
    if block.size != 2:
        return None
    return b"SAME" if (added == same).all() else b"VALID" if not added.any() else None


def spread(values: np.ndarray[Any, Any], height: int, width: int) -> np.ndarray[Any, Any]:
    """A filter [h, w, in, out] with ``height`` - 1 rows and ``width`` - 1 columns of zeros between its own."""
    rows, columns, *channels = values.shape
    result = np.zeros(((rows - 1) * height + 1, (columns - 1) * width + 1, *channels), values.dtype)
    result[::height, ::width] = values
    return result


def _spelled(ref: str) -> str:
    """The reference, without the port when that is 0."""
    return node_name(ref) if ref.endswith(":0") else ref
