"""Turns dilation by batching, and padding by an operation of its own, into what convolutions do themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph.dtype import INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import CONVOLUTIONS
from pocketgraph.litert.program import Operation, Program, Value, reshaped
from pocketgraph.litert.rewriting.value_uses import ValueUses


def dilate(program: Program) -> None:
    """Space to batch, a convolution, and batch to space are one dilated convolution; several may read the batches."""
    view = ValueUses(program)
    replaced: list[Operation] = []
    padded: dict[tuple[Value, str], Value] = {}
    for last in program.operations:
        if last.code != "BATCH_TO_SPACE_ND":
            continue
        middle = view.only_source(last.inputs[0])
        batches = middle.inputs[0] if middle is not None and middle.inputs else None
        first = view.producers.get(batches) if batches is not None else None
        if middle is None or batches is None or first is None or first.code != "SPACE_TO_BATCH_ND":
            continue
        if middle.code not in CONVOLUTIONS or not _is_plain(middle):
            continue
        if _dilated(program, first, middle, last, padded):
            view.absorb(middle, last)
            middle.nodes = first.nodes + middle.nodes
            replaced.append(last)
            view.uses[batches] -= 1
            if not view.uses[batches] and batches not in view.outputs:
                replaced.append(first)
    program.drop(replaced)


def batches_as_pictures(program: Program) -> None:
    """Lets space go to batch and back as pictures of one row, where a convolution along one axis stands between."""
    view = ValueUses(program)
    readers = {value: operation for operation in program.operations for value in operation.inputs if value is not None}
    done: list[Operation] = []
    gone: list[Operation] = []
    for operation in program.operations:
        done.append(operation)
        source = operation.inputs[0] if operation.inputs else None
        is_known = all(value is not None and value.constant is not None for value in operation.inputs[1:3])
        if source is None or len(source.shape) != 3 or not is_known:
            continue
        result = operation.outputs[0]
        if operation.code == "SPACE_TO_BATCH_ND" and view.uses[result] == 1 and result not in view.outputs:
            after = readers[result]
            axis = _single_axis(result.shape, after.outputs[0].shape) if after.code == "RESHAPE" else None
            if axis is None:
                continue
            picture = Value(f"{source.name}/picture", source.dtype, _with_axis(source.shape, axis))
            done[-1:] = [reshaped(source, picture, operation.nodes), operation]
            operation.inputs = [picture, *_blocks(operation, axis)]
            operation.outputs = after.outputs
            gone.append(after)
        elif operation.code == "BATCH_TO_SPACE_ND":
            before = view.only_source(source)
            if before is None or before.code != "RESHAPE" or before.inputs[0] is None:
                continue
            axis = _single_axis(source.shape, before.inputs[0].shape)
            if axis is None:
                continue
            picture = Value(f"{result.name}/picture", result.dtype, _with_axis(result.shape, axis))
            operation.inputs = [before.inputs[0], *_blocks(operation, axis)]
            operation.outputs = [picture]
            done.append(reshaped(picture, result, operation.nodes))
            gone.append(before)
    program.operations = done
    program.drop(gone)


def _single_axis(three: tuple[int, ...], four: tuple[int, ...]) -> int | None:
    """Where a picture's shape has a row or column more than that of [batch, steps, channels]; None for any other."""
    return next((axis for axis in (1, 2) if four == _with_axis(three, axis)), None)


def _with_axis(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis:])


def _blocks(operation: Operation, axis: int) -> list[Value | None]:
    """The block sizes and the borders of pictures whose ``axis`` is the one of size 1."""
    made: list[Value | None] = []
    for value, idle in zip(operation.operands[1:3], (1, (0, 0)), strict=True):
        numbers = [*value.content.numpy().tolist()]
        numbers.insert(axis - 1, idle)
        constant = Constant.of(np.array(numbers, np.int32))
        made.append(Value(f"{value.name}/picture", INT32, constant.shape, constant))
    return made


def _is_plain(convolution: Operation) -> bool:
    options = convolution.options
    steps = [options[key] for key in ("stride_h", "stride_w", "dilation_h", "dilation_w")]
    return options["padding"] == "VALID" and steps == [1, 1, 1, 1]


def _dilated(
    program: Program, first: Operation, middle: Operation, last: Operation, padded: dict[tuple[Value, str], Value]
) -> bool:
    source = first.inputs[0]
    blocks, pads, last_blocks, crops = (
        operation.inputs[index].constant.numpy()  # type: ignore[union-attr]
        for operation, index in ((first, 1), (first, 2), (last, 1), (last, 2))
    )
    weights = middle.inputs[1]
    if source is None or weights is None or not np.array_equal(blocks, last_blocks):
        return False
    pairs = []
    for axis in (0, 1):
        reach = (weights.shape[1 + axis] - 1) * int(blocks[axis])
        before = int(pads[axis][0]) - int(crops[axis][0])
        after = last.outputs[0].shape[1 + axis] + reach - source.shape[1 + axis] - before
        if before < 0 or after < 0 or after > int(pads[axis][1]):
            return False
        pairs.append((before, after))
    same = all(
        pair == (sum(pair) // 2, sum(pair) - sum(pair) // 2)
        and last.outputs[0].shape[1 + axis] == source.shape[1 + axis]
        for axis, pair in enumerate(pairs)
    )
    middle.options.update(dilation_h=int(blocks[0]), dilation_w=int(blocks[1]), padding="SAME" if same else "VALID")
    if same or not any(map(any, pairs)):
        middle.inputs[0] = source
        return True
    key = source, str(pairs)
    if key not in padded:
        padding = zeros_around(source, pairs, source.name, first.nodes)
        program.operations.insert(program.operations.index(first), padding)
        padded[key] = padding.outputs[0]
    middle.inputs[0] = padded[key]
    return True


def zeros_around(source: Value, pairs: Sequence[tuple[int, int]], name: str, nodes: tuple[str, ...]) -> Operation:
    """What puts zeros around images.

    Args:
        source: the images, NHWC.
        pairs: how many rows, and how many columns, before and after.
        name: what the result is named after.
        nodes: the nodes of the graph that it is of.
    """
    rows = Constant.of(np.array([(0, 0), *pairs, (0, 0)], np.int32))
    shape = tuple(size + sum(row) for size, row in zip(source.shape, rows.numpy().tolist(), strict=True))
    padded = Value(f"{name}/padded", source.dtype, shape)
    return Operation("PAD", [source, Value(f"{padded.name}/rows", INT32, rows.shape, rows)], [padded], {}, nodes)


def absorb_padding(program: Program, *, any_size: bool = False) -> None:
    """Zeros around an image are the convolution's own when they are just those of ``SAME`` padding; with ``any_size``,
    where they are for images of all sizes, which is without strides."""
    view = ValueUses(program)
    gone = []
    for operation in program.operations:
        if operation.code not in CONVOLUTIONS or operation.options["padding"] != "VALID":
            continue
        padding = view.only_source(operation.inputs[0])
        if padding is None or padding.code != "PAD" or operation.inputs[1] is None:
            continue
        source, rows = padding.operands
        if rows.constant is None:
            continue
        if any_size and (operation.options["stride_h"], operation.options["stride_w"]) != (1, 1):
            continue
        pairs = [(0, 0), *same_borders(source, operation.inputs[1], operation), (0, 0)]
        if rows.constant.numpy().tolist() == [list(pair) for pair in pairs]:
            operation.inputs[0] = source
            operation.options["padding"] = "SAME"
            operation.nodes = padding.nodes + operation.nodes
            gone.append(padding)
    program.drop(gone)


def same_borders(source: Value, weights: Value, operation: Operation) -> list[tuple[int, int]]:
    """The rows and columns (before, after) that ``SAME`` padding adds."""
    borders = []
    for axis, side in ((1, "h"), (2, "w")):
        size, stride = source.shape[axis], operation.options[f"stride_{side}"]
        reach = (weights.shape[axis] - 1) * operation.options[f"dilation_{side}"] + 1
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        borders.append((total // 2, total - total // 2))
    return borders
