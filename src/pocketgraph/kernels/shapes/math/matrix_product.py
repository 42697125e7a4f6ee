"""Shape rules of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, at_least, broadcast, dims_of, merge, merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import merged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule
from pocketgraph.kernels.xla_dimensions import dot_equation

shape_rule("Cross")(merged)


@shape_rule("MatMul", "SparseMatMul")
def matmul(call: ShapeCall) -> Shape:
    left, right = of_rank(call.shape(0), 2), of_rank(call.shape(1), 2)
    return Shape(multiplied(left, right, bool(call.attr("transpose_a")), bool(call.attr("transpose_b"))))


def multiplied(left: Sequence[Dim], right: Sequence[Dim], flip_left: bool, flip_right: bool) -> tuple[Dim, Dim]:
    """Rows and columns of a matrix product; GraphError when the inner sizes differ."""
    rows, inner = (left[1], left[0]) if flip_left else (left[0], left[1])
    other, columns = (right[1], right[0]) if flip_right else (right[0], right[1])
    merge_dim(inner, other)
    return rows, columns


@shape_rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(call: ShapeCall) -> Shape:
    both = [at_least(call.shape(index), 2) for index in (0, 1)]  # before one of unknown rank ends the rule
    left, right = map(dims_of, both)
    before = Shape(left[:-2]), Shape(right[:-2])
    batch = merge(*before) if call.node.op == "BatchMatMul" else broadcast(*before)
    flips = bool(call.attr("adj_x")), bool(call.attr("adj_y"))
    return Shape((*(batch.dims or ()), *multiplied(left[-2:], right[-2:], *flips)))


@shape_rule("Einsum", "XlaEinsum")
def einsum(call: ShapeCall) -> Shape:
    """An ellipsis stands for the axes that have no letter; over all operands, these are broadcast."""
    return _of_equation(str(call.attr("equation", "")).replace(" ", ""), call.inputs)


@shape_rule("XlaDot")
def xla_dot(call: ShapeCall) -> Shape:
    left, right = (len(dims_of(shape)) for shape in call.inputs)
    try:
        return _of_equation(
            dot_equation(call.attr("dimension_numbers", "").encode("latin-1"), left, right), call.inputs
        )
    except ValueError as error:
        raise GraphError(str(error)) from None


def _of_equation(equation: str, shapes: Sequence[Shape]) -> Shape:
    terms, arrow, wanted = equation.partition("->")
    if not arrow:
        return UNKNOWN
    sizes: dict[str, Dim] = {}
    unnamed = Shape(())
    for term, shape in zip(terms.split(","), shapes, strict=True):
        before, dots, after = term.partition("...")
        if not dots:
            dims = of_rank(shape, len(term))
        elif shape.dims is None:
            return UNKNOWN
        else:
            known = at_least(shape, len(before) + len(after)).dims or ()
            end = len(known) - len(after)
            unnamed = broadcast(unnamed, Shape(known[len(before) : end]))
            dims = (*known[: len(before)], *known[end:])
        for letter, size in zip(before + after, dims, strict=True):
            sizes[letter] = merge_dim(sizes.get(letter), size)
    before, dots, after = wanted.partition("...")
    middle = (unnamed.dims or ()) if dots else ()
    return Shape((*(sizes[letter] for letter in before), *middle, *(sizes[letter] for letter in after)))
