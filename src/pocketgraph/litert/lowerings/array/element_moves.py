"""Lowerings of ops that only put elements elsewhere, to places that are known beforehand.

Where each element comes from is found by the op's own kernel, run on the numbers of the elements in place of them.
"""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.array.diagonals import matrix_band_part
from pocketgraph.kernels.registry import evaluate
from pocketgraph.kernels.windows import windows_of_op
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.math.elementwise import choice
from pocketgraph.litert.lowerings.pieces import cut, pad
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import Value

MOST_MOVED = 1 << 20  # elements, whose places are a constant of four bytes each
MOST_PATCH_SLICES = 64  # elements of a patch that are slices each
FEWEST_SLICED_CHANNELS = 4  # of fewer, slices take longer than a table of places

_ELEMENTS = {
    **dict.fromkeys(("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), (0, 1)),
    "TensorScatterUpdate": (0, 2),
}
"""Which inputs are elements to be moved, where it is not the first alone; the others say where to."""
_FILLED = {"MatrixDiagV2": 4, "MatrixDiagV3": 4, "MatrixDiagPartV2": 2, "MatrixDiagPartV3": 2}
"""Which input stands where no element goes; of other ops it is 0."""


@lowers(
    "MatrixDiag", "BatchMatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "MatrixDiagPart", "BatchMatrixDiagPart",
    "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2",
    "MatrixSetDiagV3", "Diag", "DiagPart", "TensorScatterUpdate",
)  # fmt: skip
def moved(emit: Emit, node: Node) -> Value:
    """
    Given:   x = Placeholder(dtype=float, shape=[2])
             d = MatrixDiag(x, T=float)
    Result:  flat = CONCATENATION([0], x)
             d = RESHAPE(GATHER(flat, [1, 0, 0, 2]), [2, 2])
    """
    dtype, shape = emit.output()
    taken = _ELEMENTS.get(node.op, (0,))
    values = {at: emit.require(emit.input(at), *MOVED) for at in taken}
    emit.require(values[0], dtype.name)
    if int(np.prod(shape)) > MOST_MOVED:
        raise emit.unsupported(f"moving more than {MOST_MOVED:,} elements")
    begun, arrays = 1, []
    for at in range(len(node.data_inputs)):
        if at in values:
            count = values[at].size
            arrays.append(np.arange(begun, begun + count).reshape(values[at].shape))
            begun += count
        else:
            arrays.append(np.asarray(emit.static(at, "where the elements go")))
    fill = np.zeros((), dtype.numpy)
    if node.op in _FILLED:
        fill = arrays[_FILLED[node.op]].astype(dtype.numpy)
        arrays[_FILLED[node.op]] = np.zeros((), np.int64)
    try:
        (places,) = evaluate(node.replace(attrs={**node.attrs, "T": INT64}), arrays)
    except (RunError, ValueError) as error:
        raise emit.unsupported(str(error)) from error
    flat = [emit.const(fill.reshape(1)), *(emit.reshape(value, (value.size,)) for value in values.values())]
    joined = emit.add("CONCATENATION", flat, (begun,), dtype, axis=0, activation="")
    where = emit.const(np.asarray(places).reshape(-1), np.int32)
    return emit.reshape(emit.add("GATHER", [joined, where], where.shape, axis=0), shape)


@lowers("ExtractImagePatches", takes=MOVED)
def patches(emit: Emit, node: Node, source: Value) -> Value:
    """Patches side by side; of one at each pixel a slice for each of its elements; others by places.

    Given:   x = Placeholder(dtype=float, shape=[1,4,4,3])
             p = ExtractImagePatches(x, ksizes=[1,2,2,1], strides=[1,2,2,1], rates=[1,1,1,1], padding="VALID", T=float)
    Result:  rows = RESHAPE(x, [2, 2, 2, 6])
             p = RESHAPE(TRANSPOSE(rows, [0, 2, 1, 3]), [1, 2, 2, 12])
    """
    batch, down, across, _ = shape = emit.output()[1]
    sizes, strides, rates = (attr_list(node, name) for name in ("ksizes", "strides", "rates"))
    height, width, depth = sizes[1] * down, sizes[2] * across, source.shape[3]
    if sizes == strides and set(rates) == {1} and height <= source.shape[1] and width <= source.shape[2]:
        inner = cut(emit, source, [0] * 4, [batch, height, width, depth])
        rows = emit.reshape(inner, (batch * down, sizes[1], across, sizes[2] * depth))
        return emit.reshape(emit.transpose(rows, (0, 2, 1, 3)), shape)
    if math.prod(sizes) > MOST_PATCH_SLICES or set(strides) != {1} or depth < FEWEST_SLICED_CHANNELS:
        return moved(emit, node)
    padding = attr_text(node, "padding")
    spans = windows_of_op(source.shape[1:3], sizes[1:3], strides, padding, "NHWC", rates, dilations_are="rates")
    wide = pad(emit, source, np.array([(0, 0), *((w.before, w.after) for w in spans), (0, 0)], np.int32))
    begins = ([0, *np.multiply(at, rates[1:3]).tolist(), 0] for at in np.ndindex(sizes[1:3]))
    return emit.concatenated([cut(emit, wide, begin, [batch, down, across, depth]) for begin in begins], 3)


@lowers("MatrixBandPart", "BatchMatrixBandPart", takes=MOVED)
def band(emit: Emit, node: Node, source: Value) -> Value:
    """
    Given:   x = Placeholder(dtype=float, shape=[2,2])
             y = MatrixBandPart(x, -1, 0, T=float)
    Result:  y = SELECT_V2([[True, False], [True, True]], x, 0)
    """
    limits = [np.asarray(emit.static(at, "the band")) for at in (1, 2)]
    try:
        if source.constant is not None:  # as of ones, whose shape alone is asked
            return emit.const(matrix_band_part(source.constant.numpy(), *limits), source.dtype.numpy)
        kept = matrix_band_part(np.ones(source.shape[-2:], np.bool_), *limits)
    except ValueError as error:
        raise emit.unsupported(str(error)) from error
    return choice(emit, emit.const(kept), source, emit.const(0, source.dtype.numpy))
