"""Gradients of systems of equations, of roots of matrices, and of matrices of three diagonals.

Source: TensorFlow's linalg_grad.py.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError


@gradient("MatrixSquareRoot")
def square_root(op: NodeGradient) -> str:
    """``A = R R``, so ``dA = R dR + dR R``: equations for the elements of dR, as many as R has."""
    root = op.output()
    size, _ = sides(op)
    eye = np.eye(size)
    outer, inner = [-1, size, 1, size, 1], [-1, 1, size, 1, size]
    turned = transposed(op, root)
    factors = (
        (op.const(eye.reshape(outer), op.dtype), op.add("Reshape", turned, op.const(inner))),
        (op.add("Reshape", root, op.const(outer)), op.const(eye.reshape(inner), op.dtype)),
    )
    both = op.add("Add", *(op.mul(*pair) for pair in factors))
    equations = op.add("Reshape", both, op.const([-1, size * size, size * size]))
    given = op.add("Reshape", transposed(op, op.grad), op.const([-1, size * size, 1]))
    found = op.add("MatrixSolve", equations, given)
    return transposed(op, op.add("Reshape", found, op.shape(root)))


@gradient("MatrixSolveLs")
def least_squares(op: NodeGradient) -> tuple[str, str]:
    """By the normal equations: ``X = (AᵀA + λI)⁻¹ AᵀB``, or ``Aᵀ(AAᵀ + λI)⁻¹ B`` of a matrix with more columns."""
    if not op.attr("fast"):
        raise GraphError("with fast=False it has no gradient, as in TensorFlow")
    (a, b, _), x = op.inputs, op.output()
    rows, columns = sides(op)
    is_deep = rows >= columns
    square = op.add("BatchMatMul", a, a, adj_x=is_deep, adj_y=not is_deep)
    regularizer = op.mul(op.const(np.eye(min(rows, columns)), op.dtype), op.cast(op.inputs[2], op.dtype))
    gramian = op.add("Add", square, regularizer)
    if is_deep:
        z = op.add("MatrixSolve", gramian, op.grad)
        product = op.add("BatchMatMul", x, z, adj_y=True)
        both = op.add("BatchMatMul", a, op.add("Add", product, transposed(op, product)))
        return op.add("Sub", op.add("BatchMatMul", b, z, adj_y=True), both), op.add("BatchMatMul", a, z)
    by_b = op.add("MatrixSolve", gramian, op.add("BatchMatMul", a, op.grad))
    solved = op.add("MatrixSolve", gramian, b)
    rest = op.add("Sub", op.grad, op.add("BatchMatMul", a, by_b, adj_x=True))
    less = op.add("BatchMatMul", by_b, op.add("BatchMatMul", solved, a, adj_x=True))
    return op.add("Sub", op.add("BatchMatMul", solved, rest, adj_y=True), less), by_b


@gradient("TridiagonalSolve")
def tridiagonal_solve(op: NodeGradient) -> tuple[str, str]:
    x = op.output()
    above = op.add("Split", op.const(-2), op.inputs[0], num_split=3)
    turned = [_shifted(op, f"{above}:2", -1, axis=-1), f"{above}:1", _shifted(op, above, 1, axis=-1)]
    diagonals = op.add("ConcatV2", turned, op.const(-2))
    by_right = op.add("TridiagonalSolve", diagonals, op.grad, **op.attrs("partial_pivoting", "perturb_singular"))
    parts = [_row_products(op, by_right, moved) for moved in (_shifted(op, x, -1), x, _shifted(op, x, 1))]
    return op.add("Neg", op.add("ConcatV2", parts, op.const(-2))), by_right


@gradient("TridiagonalMatMul")
def tridiagonal_product(op: NodeGradient) -> tuple[str, ...]:
    above, middle, below = (op.conj(transposed(op, ref)) for ref in op.inputs[:3])
    right = op.conj(op.inputs[3])
    by_right = op.add(
        "AddN",
        [_shifted(op, op.mul(above, op.grad), 1), op.mul(middle, op.grad), _shifted(op, op.mul(below, op.grad), -1)],
    )
    moved = (_shifted(op, right, -1), right, _shifted(op, right, 1))
    return *(_row_products(op, op.grad, ref) for ref in moved), by_right


def _row_products(op: NodeGradient, first: str, second: str) -> str:
    """The sum of the products of each row, as one row: ``[…, M, K]`` becomes ``[…, 1, M]``."""
    return op.add("ExpandDims", op.add("Sum", op.mul(first, second), op.const(-1)), op.const(-2))


def _shifted(op: NodeGradient, ref: str, step: int, *, axis: int = -2) -> str:
    """The tensor moved by one place along an axis, with 0 where nothing comes from."""
    places, rest = -axis, 1 << -axis
    begin, end = [0, *[0] * places], [0, *[0] * places]
    others = rest if places == 2 else 0  # the last axis is whole, where the other is moved
    if step < 0:
        begin[1] = 1
        masks = {"begin_mask": others, "end_mask": others | 2}
    else:
        end[1] = -1
        masks = {"begin_mask": others | 2, "end_mask": others}
    strides = op.const([1] * len(begin))
    kept = op.add("StridedSlice", ref, op.const(begin), op.const(end), strides, ellipsis_mask=1, **masks)
    paddings = np.zeros((op.rank(op.inputs[0]), 2), np.int32)
    paddings[axis, int(step < 0)] = 1
    return op.add("Pad", kept, op.const(paddings))


def sides(op: NodeGradient) -> tuple[int, int]:
    """The numbers of rows and columns of the matrix; GraphError where they are not known."""
    shape = op.static(op.inputs[0])
    rows, columns = tuple(shape)[-2:] if shape.rank is not None else (None, None)
    if rows is None or columns is None:
        raise GraphError(f"the gradient of {op.node.op} needs the numbers of rows and columns, which are not known")
    return rows, columns


def transposed(op: NodeGradient, ref: str) -> str:
    rank = op.rank(op.inputs[0])
    return op.add("Transpose", ref, op.const([*range(rank - 2), rank - 1, rank - 2]))
