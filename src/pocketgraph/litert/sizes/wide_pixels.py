"""Narrow convolutions of a program for all sizes make several pixels of a row at once, as those of one size do.

A row may have any number of pixels: it is padded until the last ones are whole, and what is more than asked for is cut
off. How much that is, LiteRT reads off shapes before it runs.

    x [1,?,?,6] ─PAD─ CONV_2D 5x6, stride 1x2 [1,?,?,12]─ RESHAPE [1,?,?,6]─ SLICE ─ [1,?,?,6]
"""

from __future__ import annotations

from collections.abc import Collection

from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.litert.nan_and_overflow import SPREADING
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.narrow_convolutions import pixels_at_once, widen_weights
from pocketgraph.litert.sizes.open_program import OpenProgram
from pocketgraph.litert.sizes.size_operands import constant
from pocketgraph.litert.sizes.unit_axes import part_of_shape

PASS = "widen_narrow_convolutions"
"""By this name it can be left out, as for one size."""


def widened_for_all(found: OpenProgram, without: Collection[str] = (), *, strict: bool = False) -> OpenProgram:
    """The program with wide convolutions where narrow ones take long; it takes the same sizes.

    Args:
        found: it.
        without: passes to leave out.
        strict: whether what is not finite must reach no more pixels than in the graph.
    """
    if PASS in without or (strict and PASS in SPREADING):
        return found
    program, resized = found.program, dict(found.resized)
    operations: list[Operation] = []
    for operation in program.operations:
        pixels = pixels_at_once(operation, any_columns=True)
        if pixels > 1 and operation.options["stride_w"] == 1 and _is_told_nothing(operation):
            operations += _widened(operation, pixels)
            resized[operation.outputs[0]] = (-1,) * 4
        else:
            operations.append(operation)
    if len(operations) == len(program.operations):
        return found
    whole = Program(list(program.inputs), list(program.outputs), operations, dict(program.rounded))
    return found.replace(program=whole, resized=resized)


def _is_told_nothing(convolution: Operation) -> bool:
    """Whether the borders that it pads have one size for all sizes of what it takes."""
    return bool(convolution.options["padding"] == "VALID" or convolution.options["stride_h"] == 1)


def _widened(convolution: Operation, pixels: int) -> list[Operation]:
    source, weights, _ = convolution.operands
    (result,), nodes, name = convolution.outputs, convolution.nodes, convolution.outputs[0].name
    is_same = convolution.options["padding"] == "SAME"
    _, height, width, _ = weights.shape
    reach = ((height - 1) * convolution.options.get("dilation_h", 1), width - 1)
    top, left = (size // 2 if is_same else 0 for size in reach)
    bottom, right = (size - size // 2 if is_same else 0 for size in reach)
    borders = [(0, 0), (top, bottom), (left, right + pixels - 1), (0, 0)]
    batch, rows, columns, count = result.shape
    together = -(-columns // pixels)

    padded = Value(
        f"{name}/padded", source.dtype, tuple(n + a + b for n, (a, b) in zip(source.shape, borders, strict=True))
    )
    made = Value(f"{name}/wide", result.dtype, (batch, rows, together, pixels * count))
    parted = Value(f"{name}/parted", result.dtype, (batch, rows, together * pixels, count))
    wide = convolution.replace(
        inputs=[padded, *convolution.inputs[1:]], outputs=[made], options={**convolution.options, "padding": "VALID"}
    )
    widen_weights(wide, pixels)
    operations = [Operation("PAD", [source, _rows(borders)], [padded], {}, nodes), wide]
    like, cutting = source, list[Operation]()
    if not is_same and width > 1:  # as many columns as the result has
        like = Value(f"{name}/columns", source.dtype, (1, 1, columns, 1))
        ends = [constant([0] * 4), constant([1, 1, 1 - width, 1]), constant([1] * 4)]
        cutting = [Operation("STRIDED_SLICE", [source, *ends], [like], dict.fromkeys(SLICE_MASKS, 0), nodes)]
    outer, of_made = part_of_shape(made, (0, 2), nodes)
    along, of_like = part_of_shape(like, (2, 3), nodes)
    target, counts = Value(f"{name}/target", INT32, (4,)), Value(f"{name}/counts", INT32, (4,))
    joining = {"axis": 0, "activation": ""}
    return [
        *operations,
        *of_made,
        Operation("CONCATENATION", [outer, constant([-1, count])], [target], dict(joining), nodes),
        Operation("RESHAPE", [made, target], [parted], {}, nodes),
        *cutting,
        *of_like,
        Operation("CONCATENATION", [outer, along, constant([count])], [counts], dict(joining), nodes),
        Operation("SLICE", [parted, constant([0] * 4), counts], [result], {}, nodes),
    ]


def _rows(borders: list[tuple[int, int]]) -> Value:
    content = constant([size for border in borders for size in border]).content
    return Value("", INT32, (len(borders), 2), type(content).of(content.numpy().reshape(-1, 2)))
