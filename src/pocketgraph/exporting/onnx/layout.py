"""Channels first where ONNX wants them: a tensor is made in that form and stays in it as long as converters can use it.

TensorFlow keeps an image's channels last (NHWC), ONNX's convolutions want them second (NCHW). A convolution's result is
an OnnxValue whose ``first`` is what the operator makes; the OnnxValue itself is made by a Transpose when somebody asks
for it, which elementwise operators, pooling, padding, joining and the like do not, as they compute in either form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.channel_order import shape_first, to_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation, OnnxValue


def channels_first(emit: OnnxEmit, value: OnnxValue) -> OnnxValue:
    """A value's channels-first form; a Transpose makes it where there is none yet."""
    if value.first is None:
        rank = emit.rank(value)
        order = to_first(rank)
        sizes = value.shape.dims or ()
        if value.constant is not None:
            value.first = emit.transpose(value, order)
        elif value.shape.dims is not None and (sizes[-1] == 1 or set(sizes[1:-1]) == {1}) and _one_open(sizes):
            target = [-1 if size is None else size for size in shape_first(value.shape)]
            value.first = _made_at_home(emit, value, "Reshape", [value, emit.ints(target)], {})
        else:
            value.first = _made_at_home(emit, value, "Transpose", [value], {"perm": order})
    return value.first


def _one_open(sizes: Sequence[int | None]) -> bool:
    return list(sizes).count(None) <= 1 and 0 not in sizes


def _made_at_home(
    emit: OnnxEmit, value: OnnxValue, code: str, inputs: Sequence[OnnxValue], attrs: dict[str, Any]
) -> OnnxValue:
    """An operator where the value itself is made, so that everybody who sees the value sees its other form too."""
    home = value.home or emit.body
    first = OnnxValue(emit.name(f"{value.name}_first"), value.dtype, shape_first(value.shape), home)
    home.operations.append(OnnxOperation(code, list(inputs), [first], attrs, {}, "layout"))
    return first


def is_first(value: OnnxValue) -> bool:
    """Whether a value is made channels first."""
    return value.first is not None and (not value.is_made)


def prefers_first(values: Sequence[OnnxValue]) -> int:
    """The rank in which values of broadcasting operands are to be computed channels first; 0 where they are not."""
    ranks = [value.rank for value in values]
    if not any(is_first(value) for value in values) or None in ranks:
        return 0
    rank = max(rank for rank in ranks if rank is not None)
    leading = [value for value in values if is_first(value)]
    return rank if rank >= 3 and all(value.rank == rank for value in leading) else 0


def broadcast_first(emit: OnnxEmit, value: OnnxValue, rank: int) -> OnnxValue:
    """An operand that broadcasts with channels-first values of this rank as it did with channels-last ones."""
    if value.rank == rank:
        return channels_first(emit, value)
    own = emit.rank(value)
    if own == 0 or (value.shape.is_known and value.shape.elements == 1):
        return value if own == 0 else emit.reshape(value, [1] * rank)
    if value.constant is not None:
        array = value.constant.numpy()
        array = array.reshape((1,) * (rank - own) + array.shape).transpose(to_first(rank))
        while array.ndim > 1 and array.shape[0] == 1:
            array = array[0]
        return emit.const(np.ascontiguousarray(array))
    whole = emit.unsqueeze(value, list(range(rank - own)))
    if own == 1:
        return emit.unsqueeze(value, list(range(1, rank - 1)))
    return channels_first(emit, whole)
