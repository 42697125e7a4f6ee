"""Gradients of ops that move elements: shapes, transpositions, reversals, blocks, cuts and padding."""

from __future__ import annotations

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

COUNTERPARTS = {
    "ReverseV2": "ReverseV2", "Reverse": "Reverse", "ReverseSequence": "ReverseSequence",
    "SpaceToDepth": "DepthToSpace", "DepthToSpace": "SpaceToDepth",
    "SpaceToBatchND": "BatchToSpaceND", "BatchToSpaceND": "SpaceToBatchND",
    "SpaceToBatch": "BatchToSpace", "BatchToSpace": "SpaceToBatch",
    "MirrorPad": "MirrorPadGrad", "MirrorPadGrad": "MirrorPad",
    "MatrixDiag": "MatrixDiagPart", "Diag": "DiagPart", "DiagPart": "Diag", "MatrixBandPart": "MatrixBandPart",
}  # fmt: skip
"""Not a trait: ops that move each element to one place, each with the op that moves its gradient back."""


@gradient(*COUNTERPARTS)
def moved_back(op: NodeGradient) -> str:
    layout = op.attrs("seq_dim", "batch_dim", "block_size", "data_format", "mode")
    return op.add(COUNTERPARTS[op.node.op], op.grad, *op.inputs[1:], **layout)


gradient("Reshape", "ExpandDims", "Squeeze")(lambda op: op.add("Reshape", op.grad, op.shape_of_input(0)))


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: NodeGradient) -> str:
    order = op.value(1)
    back = op.add("InvertPermutation", op.inputs[1]) if order is None else op.const(np.argsort(order))
    return op.add(op.node.op, op.grad, back)


gradient("Roll")(lambda op: op.add("Roll", op.grad, op.add("Neg", op.inputs[1]), op.inputs[2]))


@gradient("Slice")
def cut(op: NodeGradient) -> str:
    """Padded with zeros where elements were left out."""
    begin = op.cast(op.inputs[1], INT32)
    begins, before, after = op.value(1), op.static(op.inputs[0]), op.static(op.output())
    if begins is not None and before.is_known and after.is_known:
        behind = np.asarray(before.known) - np.asarray(after.known) - begins
        return op.add("Pad", op.grad, op.const(np.stack([begins, behind], 1)))
    behind_ref = op.add("Sub", op.add("Sub", op.shape_of_input(0), op.shape(op.output())), begin)
    return op.add("Pad", op.grad, op.add("Pack", [begin, behind_ref], axis=1))


@gradient("StridedSlice")
def strided_slice(op: NodeGradient) -> str:
    shape = op.cast(op.shape_of_input(0), op.builder.dtype(op.inputs[1]))
    masks = op.attrs("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return op.add("StridedSliceGrad", shape, *op.inputs[1:], op.grad, **masks)


@gradient("StridedSliceGrad")
def strided_slice_grad(op: NodeGradient) -> list[str | None]:
    masks = op.attrs("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return [None, None, None, None, op.add("StridedSlice", op.grad, *op.inputs[1:4], **masks)]


@gradient("Pad", "PadV2")
def pad(op: NodeGradient) -> list[str | None]:
    """The middle of the gradient; what fills the margin gets the sum of the rest."""
    paddings = op.value(1)
    if paddings is not None:
        begin = op.const(np.asarray(paddings)[:, 0])
    else:
        rank = op.rank(op.inputs[0])
        begin = op.cast(
            op.add("Reshape", op.add("Slice", op.inputs[1], op.const([0, 0]), op.const([rank, 1])), op.const([-1])),
            INT32,
        )
    middle = op.add("Slice", op.grad, begin, op.shape_of_input(0))
    if op.node.op == "Pad":
        return [middle]
    return [middle, None, _rest(op, middle)]


@gradient("MatrixDiagV2", "MatrixDiagV3")
def of_diagonals(op: NodeGradient) -> list[str | None]:
    """The diagonals of the gradient; what fills the rest gets the sum of the rest."""
    diagonals = _diagonals(op, op.grad, op.inputs[1])
    return [diagonals, None, None, None, _rest(op, diagonals)]


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals_of_matrix(op: NodeGradient) -> list[str | None]:
    """Zeros but for the diagonals; what fills up shorter ones gets the sum of that."""
    into = op.add(_alike(op, "MatrixSetDiag"), op.zeros(op.inputs[0]), op.grad, op.inputs[1], **op.attrs("align"))
    return [into, None, _rest(op, into)]


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def with_diagonals(op: NodeGradient) -> list[str | None]:
    _, diagonals, which = op.inputs
    return [
        op.add(op.node.op, op.grad, op.zeros(diagonals), which, **op.attrs("align")),
        _diagonals(op, op.grad, which),
    ]


def _alike(op: NodeGradient, name: str) -> str:
    """Another op on diagonals, of the same version."""
    return name + op.node.op[-2:]


def _diagonals(op: NodeGradient, matrix: str, which: str) -> str:
    return op.add(_alike(op, "MatrixDiagPart"), matrix, which, op.const(0, op.dtype), **op.attrs("align"))


def _rest(op: NodeGradient, part: str) -> str:
    """The sum of what of the gradient is not in a part of it."""
    every = [op.add("Range", op.const(0), op.add("Rank", ref), op.const(1)) for ref in (op.grad, part)]
    return op.add("Sub", op.add("Sum", op.grad, every[0]), op.add("Sum", part, every[1]))


gradient("MatrixDiagPart")(lambda op: op.add("MatrixSetDiag", op.zeros(op.inputs[0]), op.grad))


@gradient("MatrixSetDiag")
def with_diagonal(op: NodeGradient) -> tuple[str, str]:
    diagonal = op.add("MatrixDiagPart", op.grad)
    return op.add("MatrixSetDiag", op.grad, op.zeros(diagonal)), diagonal
