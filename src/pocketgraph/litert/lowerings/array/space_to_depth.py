"""Lowerings of blocks moved between space, batch and depth."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import data_format, image, yield_image
from pocketgraph.litert.lowering import lowers

PIXELS = ("float", "int32", "int64", "uint8", "int8")
"""Element types that LiteRT moves between space, depth and batch."""


@lowers("DepthToSpace", "SpaceToDepth")
def depth_and_space(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source = image(emit, 0, layout, PIXELS)
    block = int(node.attr("block_size", 0))
    batch, height, width, depth = source.shape
    if block < 2:
        raise emit.unsupported(f"a block size of {block}")
    if node.op == "DepthToSpace":
        result = emit.add(
            "DEPTH_TO_SPACE", [source], (batch, height * block, width * block, depth // block**2), block_size=block
        )
    else:
        result = emit.add(
            "SPACE_TO_DEPTH", [source], (batch, height // block, width // block, depth * block**2), block_size=block
        )
    yield_image(emit, result, layout)


@lowers("SpaceToBatchND", "BatchToSpaceND")
def batch_and_space(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *PIXELS)
    block = np.asarray(emit.static(1, "the block shape"), np.int32).reshape(-1)
    borders = np.asarray(emit.static(2, "the paddings or crops"), np.int32).reshape(-1, 2)
    to_batch = node.op == "SpaceToBatchND"
    if (len(block), len(source.shape)) not in ((2, 4), (1, 3)):
        raise emit.unsupported(f"{node.op} of rank {len(source.shape)} with {len(block)} block sizes")
    code = "SPACE_TO_BATCH_ND" if to_batch else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    emit.result(emit.add(code, [source, emit.const(block), emit.const(borders)], shape))


@lowers("SpaceToBatch", "BatchToSpace")
def old_batch_and_space(emit: Emit, node: Node) -> None:
    source = image(emit, 0, "NHWC", PIXELS)
    borders = np.asarray(emit.static(1, "the paddings or crops"), np.int32).reshape(2, 2)
    block = np.full(2, int(node.attr("block_size", 0)), np.int32)
    code = "SPACE_TO_BATCH_ND" if node.op == "SpaceToBatch" else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    emit.result(emit.add(code, [source, emit.const(block), emit.const(borders)], shape))
