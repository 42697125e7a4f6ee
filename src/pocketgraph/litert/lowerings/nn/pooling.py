"""Lowerings of pooling."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import TO_NHWC, data_format, image, spatial, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn.convolution import window_shape
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import Value

LOWEST = float(np.finfo(np.float32).min)


@lowers("MaxPool", "AvgPool")
def pool(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source = image(emit, 0, layout)
    window = spatial(emit, attr_list(node, "ksize"), layout, "ksize")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    padding = attr_text(node, "padding")
    if padding == "EXPLICIT" and node.op == "MaxPool":
        from pocketgraph.litert.lowerings.pieces import pad

        pairs = np.array(attr_list(node, "explicit_paddings"), np.int32).reshape(4, 2)
        source = pad(emit, source, pairs if layout == "NHWC" else pairs[list(TO_NHWC)], LOWEST)
        padding = "VALID"
    if padding not in ("SAME", "VALID"):
        raise emit.unsupported(f"{node.op} with {padding} padding")
    code = "MAX_POOL_2D" if node.op == "MaxPool" else "AVERAGE_POOL_2D"
    yield_image(emit, pooled(emit, code, source, window, strides, padding), layout)


def pooled(
    emit: Emit, code: str, source: Value, window: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> Value:
    """A pool of pictures: float [n, height, width, channels]; ``padding`` is SAME or VALID."""
    size = window_shape(source.shape[1:3], window, strides, (1, 1), padding)
    return emit.add(
        code,
        [source],
        (source.shape[0], *size, source.shape[3]),
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        filter_h=window[0],
        filter_w=window[1],
        activation="",
    )
