"""Gradients of products, Einsum, inverses, determinants and solutions of matrices, and of cross products."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient

gradient("MatMul")(lambda op: _factors(op, "MatMul", ("transpose_a", "transpose_b")))
gradient("BatchMatMul")(lambda op: _factors(op, "BatchMatMul", ("adj_x", "adj_y")))
gradient("BatchMatMulV2", "BatchMatMulV3")(
    lambda op: _summed_over_batches(op, _factors(op, "BatchMatMulV2", ("adj_x", "adj_y")))
)


def _summed_over_batches(op: NodeGradient, by_each: tuple[str, str]) -> Sequence[str]:
    """The gradients by two inputs whose dimensions before the last two were broadcast, each in its input's shape."""
    x, y = (op.static(ref) for ref in op.inputs)
    if x.rank is not None and y.rank is not None:
        batches = [tuple(shape)[:-2] for shape in (x, y)]
        if batches[0] == batches[1] and None not in batches[0]:
            return by_each
    shapes = [op.shape_of_input(0), op.shape_of_input(1)]
    outer = [
        op.add("StridedSlice", shape, op.const([0]), op.const([-2]), op.const([1]), begin_mask=1) for shape in shapes
    ]
    axes = op.add("BroadcastGradientArgs", *outer)
    return [
        op.add("Reshape", op.add("Sum", by_each[0], axes), shapes[0]),
        op.add("Reshape", op.add("Sum", by_each[1], f"{axes}:1"), shapes[1]),
    ]


def _factors(op: NodeGradient, product: str, names: tuple[str, str]) -> tuple[str, str]:
    """The gradients by the two factors; ``names`` are the attributes that say which is transposed."""
    a, b, grad = op.inputs[0], op.inputs[1], op.grad
    if product == "MatMul":  # which only transposes; the others have the adjoint
        a, b = op.conj(a), op.conj(b)
    flipped = bool(op.attr(names[0])), bool(op.attr(names[1]))

    def times(x: str, y: str, of_x: bool, of_y: bool) -> str:
        return op.add(product, x, y, **{names[0]: of_x, names[1]: of_y})

    if flipped == (False, False):
        return times(grad, b, False, True), times(a, grad, True, False)
    if flipped == (False, True):
        return times(grad, b, False, False), times(grad, a, True, False)
    if flipped == (True, False):
        return times(b, grad, False, True), times(a, grad, False, False)
    return times(b, grad, True, True), times(grad, a, True, True)


@gradient("MatrixInverse")
def inverse(op: NodeGradient) -> str:
    """Of A⁻¹ with the gradient G: -A⁻ᵀ G A⁻ᵀ; of the inverse of Aᵀ, with Gᵀ."""
    is_turned = bool(op.attr("adjoint"))
    inner = op.add("BatchMatMul", op.grad, op.output(), adj_x=is_turned, adj_y=not is_turned)
    return op.add("Neg", op.add("BatchMatMul", op.output(), inner, adj_x=not is_turned))


@gradient("MatrixDeterminant")
def determinant(op: NodeGradient) -> str:
    """Of |A|: |A| A⁻ᵀ."""
    return _times_inverse(op, op.mul(op.grad, op.output()))


@gradient("LogMatrixDeterminant")
def log_determinant(op: NodeGradient) -> str:
    """Of log |A|, the second output: A⁻ᵀ. The sign does not change."""
    return _times_inverse(op, op.grad_of(1))


def _times_inverse(op: NodeGradient, scale: str) -> str:
    """A⁻ᵀ times a number for each matrix."""
    for _ in range(2):
        scale = op.add("ExpandDims", scale, op.const(-1))
    return op.mul(scale, op.add("MatrixInverse", op.inputs[0], adjoint=True))


@gradient("MatrixSolve")
def solution(op: NodeGradient) -> tuple[str, str]:
    """Of X with A X = B: by B, the solution Z of Aᵀ Z = G; by A, -Z Xᵀ, its transpose where A is transposed."""
    transposed = bool(op.attr("adjoint"))
    by_right = op.add("MatrixSolve", op.inputs[0], op.grad, adjoint=not transposed)
    pair = (op.output(), by_right) if transposed else (by_right, op.output())
    return op.add("Neg", op.add("BatchMatMul", *pair, adj_y=True)), by_right


@gradient("MatrixTriangularSolve")
def triangular_solution(op: NodeGradient) -> Sequence[str]:
    """As of MatrixSolve, of the triangle that is read."""
    transposed, is_lower = bool(op.attr("adjoint")), bool(op.attr("lower"))
    by_right = op.add("MatrixTriangularSolve", op.inputs[0], op.grad, lower=is_lower, adjoint=not transposed)
    pair = (op.output(), by_right) if transposed else (by_right, op.output())
    by_whole = op.add("Neg", op.add("BatchMatMul", *pair, adj_y=True))
    return _summed_over_batches(op, (_triangle(op, by_whole, is_lower=is_lower), by_right))


@gradient("Cholesky")
def cholesky(op: NodeGradient) -> str:
    """Of L with A = L Lᵀ and the gradient G: the symmetric part of L⁻ᵀ P L⁻¹, with P the lower triangle of Lᵀ G, its
    diagonal halved."""
    rank = op.rank(op.output())
    flip = op.const([*range(rank - 2), rank - 1, rank - 2])
    product = op.add("BatchMatMul", op.output(), op.grad, adj_x=True)
    strict = op.add("Sub", product, _triangle(op, product, is_lower=False))
    middle = op.mul(op.add("Add", _triangle(op, product, is_lower=True), strict), op.number(0.5))
    left = op.add("MatrixTriangularSolve", op.output(), middle, lower=True, adjoint=True)
    both = op.add("MatrixTriangularSolve", op.output(), op.add("Transpose", left, flip), lower=True, adjoint=True)
    return op.mul(op.add("Add", both, op.add("Transpose", both, flip)), op.number(0.5))


def _triangle(op: NodeGradient, ref: str, *, is_lower: bool) -> str:
    """One triangle of matrices, with the diagonal; zeros elsewhere."""
    below, above = (-1, 0) if is_lower else (0, -1)
    return op.add("MatrixBandPart", ref, op.const(below), op.const(above))


@gradient("Cross")
def cross_product(op: NodeGradient) -> tuple[str, str]:
    x, y = op.inputs
    return op.add("Cross", y, op.grad), op.add("Cross", op.grad, x)


@gradient("Einsum")
def einsum(op: NodeGradient) -> Sequence[str]:
    """Of "ab,bc->ac" with the gradient G: G·Yᵀ as "ac,bc->ab", and Xᵀ·G as "ab,ac->bc".

    What was broadcast is summed, what is summed over and only one operand has is repeated, and a diagonal goes back to
    a diagonal.
    """
    left, _, result = str(op.attr("equation")).replace(" ", "").replace("...", ".").partition("->")
    operands = left.split(",")
    may_broadcast = _may_broadcast(op, operands)
    found = []
    for place, own in enumerate(operands):
        pairs = list(zip(operands, map(op.conj, op.inputs), strict=True))
        others = pairs[:place] + pairs[place + 1 :]
        known = set(result).union(*(set(labels) for labels, _ in others))
        once = "".join(dict.fromkeys(own))
        kept = "".join(label for label in once if label in known)
        outer = "." + kept.replace(".", "") if may_broadcast and "." in kept else kept
        value = _contraction(op, outer, (result, op.grad), *others)
        if outer.startswith(".") and may_broadcast:
            shape = op.add("Shape", _contraction(op, outer, (own, op.inputs[place])))
            axes = op.add("BroadcastGradientArgs", shape, op.add("Shape", value))
            value = op.add("Reshape", op.add("Sum", value, axes), shape)
        if kept != outer:
            value = _contraction(op, kept, (outer, value))
        if kept != once:
            before, _, behind = once.partition(".") if "." in kept else (once, "", "")
            for axis in [*(axis for axis, label in enumerate(before) if label not in known),
                         *(-1 - axis for axis, label in enumerate(behind[::-1]) if label not in known)]:  # fmt: skip
                value = op.add("ExpandDims", value, op.const(axis))
            whole = op.inputs[place] if own == once else _contraction(op, once, (own, op.inputs[place]))
            value = op.add("BroadcastTo", value, op.shape(whole) if own == once else op.add("Shape", whole))
        found.append(value if own == once else _contraction(op, own, (once, value)))
    return found


def _may_broadcast(op: NodeGradient, operands: Sequence[str]) -> bool:
    """Whether dimensions that an ellipsis stands for, written as a dot, may differ among the operands."""
    seen = set()
    for labels, ref in zip(operands, op.inputs, strict=True):
        if "." in labels:
            begin, shape = labels.index("."), op.static(ref)
            seen.add(None if shape.rank is None else tuple(shape)[begin : shape.rank - len(labels) + begin + 1])
    return len(seen) > 1 or (
        sum("." in labels for labels in operands) > 1 and any(None in (dims or (None,)) for dims in seen)
    )


def _contraction(op: NodeGradient, result: str, *operands: tuple[str, str]) -> str:
    """An Einsum of labels and tensors."""
    equation = ",".join(labels for labels, _ in operands) + "->" + result
    return op.add("Einsum", [ref for _, ref in operands], equation=equation.replace(".", "...").encode())
