"""Matrices: diagonals, bands, determinants."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise, mul, where
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT32
from pocketgraph.litert.operands import KNOWN

SIZES = "the sizes of its matrices"


def _eye(emit: OnnxEmit, rows: int, columns: int) -> OnnxValue:
    return emit.const(np.eye(rows, columns, dtype=bool))


def _sizes(emit: OnnxEmit, value: OnnxValue) -> tuple[int, int]:
    """Rows and columns."""
    emit.rank(value)
    return emit.known_size(value, -2, SIZES), emit.known_size(value, -1, SIZES)


def _plain(emit: OnnxEmit, value: OnnxValue) -> OnnxValue:
    return emit.cast(value, INT32) if value.dtype is BOOL else value


def _require_main_diagonal(emit: OnnxEmit, node: Node) -> None:
    """Refuses what the later versions of ops say of other diagonals, other sizes, and what stands beside them."""
    usual = {"MatrixDiagV3": (0, -1, -1, 0), "MatrixDiagPartV3": (0,), "MatrixSetDiagV3": (0,)}.get(node.op, ())
    first = 2 if node.op == "MatrixSetDiagV3" else 1
    for at, wanted in enumerate(usual, first):
        if (emit.static(at, "which diagonals") != wanted).any():
            raise emit.unsupported("ONNX has the main diagonal alone, of a square matrix beside it zeros")


@converts("MatrixDiag", "MatrixDiagV3", "Diag")
def diagonal(emit: OnnxEmit, node: Node) -> OnnxValue:
    _require_main_diagonal(emit, node)
    value = emit.input(0)
    rank = emit.rank(value)
    if node.op == "Diag" and rank != 1:
        raise emit.unsupported("ONNX makes diagonals of vectors only")
    rows, size = emit.unsqueeze(_plain(emit, value), [rank]), emit.known_size(value, -1, SIZES)
    made = where(emit, _eye(emit, size, size), rows, emit.like(0, rows))
    return emit.cast(made, value.dtype)


@converts("MatrixDiagPart", "MatrixDiagPartV3", "DiagPart")
def diagonal_part(emit: OnnxEmit, node: Node) -> OnnxValue:
    _require_main_diagonal(emit, node)
    value = emit.input(0)
    rank = emit.rank(value)
    if node.op == "DiagPart" and rank != 2:
        raise emit.unsupported(f"{SIZES} must be {KNOWN}")
    count = min(_sizes(emit, value))
    block = emit.slice(emit.slice(_plain(emit, value), rank - 2, 0, count), rank - 1, 0, count)
    kept = where(emit, _eye(emit, count, count), block, emit.like(0, block))
    return emit.cast(reduce(emit, "ReduceSum", kept, [rank - 1], False), value.dtype)


@converts("MatrixSetDiag", "MatrixSetDiagV3")
def set_diagonal(emit: OnnxEmit, node: Node) -> OnnxValue:
    _require_main_diagonal(emit, node)
    value, diagonal_values = emit.inputs()[:2]
    rank = emit.rank(value)
    height, width = _sizes(emit, value)
    own = _plain(emit, diagonal_values)
    missing = height - width
    pads = [0] * (2 * rank)
    if missing <= 0:  # beside the diagonal, up to the longer side
        pads[-1] = -missing
        rows = emit.unsqueeze(own, [rank - 2])
        shape = [*list(rows.shape)[:-1], width]
    else:
        pads[-2] = missing
        rows = emit.unsqueeze(own, [rank - 1])
        shape = [*list(rows.shape)[:-2], height, 1]
    rows = emit.op("Pad", [rows, emit.ints(pads)], shape) if missing else rows
    made = where(emit, _eye(emit, height, width), rows, _plain(emit, value))
    return emit.cast(made, value.dtype)


@converts("MatrixBandPart")
def band(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    height, width = _sizes(emit, value)
    lower, upper = (int(emit.static(index, "the band").reshape(-1)[0]) for index in (1, 2))
    row, column = np.indices((height, width))
    inside = ((lower < 0) | (row - column <= lower)) & ((upper < 0) | (column - row <= upper))
    plain = _plain(emit, value)
    return emit.cast(where(emit, emit.const(inside), plain, emit.like(0, plain)), value.dtype)


@converts("MatrixDeterminant", "LogMatrixDeterminant")
def determinant(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue | tuple[OnnxValue, ...]:
    shape = value.shape.dims[:-2] if value.shape.dims is not None else None
    made = emit.op("Det", [value], shape)
    if node.op == "MatrixDeterminant":
        return made
    return elementwise(emit, "Sign", [made]), elementwise(emit, "Log", [elementwise(emit, "Abs", [made])])


@converts("MatrixInverse")
def inverse(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """Gauss and Jordan's way, row by row, with the best row exchanged to the top by a permutation matrix."""
    rank = emit.rank(value)
    size = value.shape[-2]
    if size is None or size > 8:
        raise emit.unsupported("ONNX inverts no matrices, and these are too large to write the steps out")
    if node.attr("adjoint", False):
        value = emit.transpose(value, [*range(rank - 2), rank - 1, rank - 2])
    dtype = value.dtype.numpy
    zeros = mul(emit, value, emit.like(0, value))
    identity = elementwise(emit, "Add", [zeros, emit.const(np.eye(size, dtype=dtype))])
    work = emit.concat([value, identity], rank - 1)
    for step in range(size):
        column = emit.slice(work, rank - 1, step, step + 1)
        mask = emit.const((np.arange(size) >= step).astype(dtype).reshape(size, 1))
        done = emit.const((np.arange(size) < step).astype(dtype).reshape(size, 1))
        scores = elementwise(emit, "Sub", [mul(emit, elementwise(emit, "Abs", [column]), mask), done])
        best = emit.op("ArgMax", [scores], [*list(scores.shape)[:-2], 1, 1], emit.ints([0]).dtype, axis=rank - 2)
        places = emit.const(np.arange(size, dtype=np.int64).reshape(size, 1))
        is_best = emit.cast(elementwise(emit, "Equal", [best, places], BOOL), value.dtype)
        here = emit.const((np.arange(size) == step).astype(dtype).reshape(size, 1))
        pivot = reduce(emit, "ReduceSum", mul(emit, work, is_best), [rank - 2], True)
        own = emit.slice(work, rank - 2, step, step + 1)
        exchanged = elementwise(emit, "Add", [work, mul(emit, is_best, elementwise(emit, "Sub", [own, pivot]))])
        row = elementwise(emit, "Div", [pivot, emit.slice(pivot, rank - 1, step, step + 1)])
        factors = emit.slice(exchanged, rank - 1, step, step + 1)
        others = emit.const((np.arange(size) != step).astype(dtype).reshape(size, 1))
        cleared = elementwise(emit, "Sub", [exchanged, mul(emit, factors, row)])
        work = elementwise(emit, "Add", [mul(emit, cleared, others), mul(emit, row, here)])
    return emit.slice(work, rank - 1, size, 2 * size)
