"""Shape rules of blocks moved between space, batch and depth."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, at_least, exact_quotient, of_rank, product, total, window
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def space_and_batch(call: ShapeCall) -> Shape:
    """Blocks that go into the batch after borders were put around, or come out of it before they are cut off."""
    op = call.node.op
    to_batch, has_blocks = op.startswith("Space"), op.endswith("ND")
    block = call.integers(1) if has_blocks else [call.attr("block_size")] * 2
    borders = call.integers(2 if has_blocks else 1)
    shape = call.shape(0)
    if shape.dims is None or block is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else UNKNOWN
    dims = list(at_least(shape, 1 + len(block)).dims or ())
    dims[0] = product(dims[0], *block) if to_batch else exact_quotient(dims[0], product(*block))
    for i, size in enumerate(block, 1):
        around = None if borders is None else borders[2 * i - 2] + borders[2 * i - 1]
        if to_batch:
            dims[i] = exact_quotient(total(dims[i], around), size)
        else:
            dims[i] = total(product(dims[i], size), None if around is None else -around)
    return Shape(dims)


@shape_rule("SpaceToDepth", "DepthToSpace")
def depth_and_space(call: ShapeCall) -> Shape:
    block, layout = call.attr("block_size"), call.attr("data_format", "NHWC")
    if layout not in ("NHWC", "NCHW"):
        return UNKNOWN
    dims: list[Dim] = list(of_rank(call.shape(0), 4))
    channel, space = (3, (1, 2)) if layout == "NHWC" else (1, (2, 3))
    for axis in space:
        dims[axis] = product(dims[axis], block) if call.node.op == "DepthToSpace" else exact_quotient(dims[axis], block)
    squared = block * block
    to_space = call.node.op == "DepthToSpace"
    dims[channel] = exact_quotient(dims[channel], squared) if to_space else product(dims[channel], squared)
    return Shape(dims)


@shape_rule("ExtractImagePatches")
def extract_patches(call: ShapeCall) -> Shape:
    batch, *space, channels = of_rank(call.shape(0), 4)
    sizes, strides, rates = call.attr("ksizes"), call.attr("strides"), call.attr("rates")
    padding = call.attr("padding")
    out = [window(space[i - 1], sizes[i], strides[i], padding, dilation=rates[i]) for i in (1, 2)]
    return Shape((batch, *out, product(channels, sizes[1], sizes[2])))
