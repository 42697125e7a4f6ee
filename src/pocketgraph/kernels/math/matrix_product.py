"""Products of matrices: MatMul, the batched ones, Einsum, CrossProduct."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.budgets import allowance
from pocketgraph.graph import DType
from pocketgraph.kernels.array.reshaping import broadcast_shapes
from pocketgraph.kernels.arrays import Array, reserve, widened
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.xla_dimensions import dot_equation


def product(a: Array, b: Array) -> Array:
    """a @ b in the type of ``a``, 16-bit floats summed in float32.

    Raises:
        ValueError: the inner sizes differ.
    """
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}")
    return np.asarray(np.matmul(widened(a), widened(b))).astype(a.dtype, copy=False)


@kernel("MatMul")
def mat_mul(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    for name, value in (("In[0]", a), ("In[1]", b)):
        if value.ndim != 2:
            raise ValueError(f"{name} is not a matrix, its shape is {list(value.shape)}")
    reserve((a.shape[1 if transpose_a else 0], b.shape[0 if transpose_b else 1]), a.dtype)
    return product(a.T if transpose_a else a, b.T if transpose_b else b)


@kernel("SparseMatMul")
def sparse_mat_mul(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """MatMul of matrices that hold many zeros; the result is float32."""
    return mat_mul(a.astype(np.float32), b.astype(np.float32), transpose_a=transpose_a, transpose_b=transpose_b)


def adjoint_of(x: Array) -> Array:
    """Each matrix transposed, of conjugate numbers."""
    return np.asarray(np.conjugate(np.swapaxes(x, -1, -2)) if x.dtype.kind == "c" else np.swapaxes(x, -1, -2))


@kernel("BatchMatMulV3")
def batch_mat_mul_v3(
    x: Array, y: Array, *, Tout: DType | None = None, adj_x: bool = False, adj_y: bool = False
) -> Array:
    """BatchMatMulV2 of operands that may have two types, in a type of its own."""
    kind = Tout.numpy if Tout else x.dtype
    wide = np.promote_types(kind, np.int32) if kind.kind in "iu" else kind
    return batch_mat_mul_v2(x.astype(wide), y.astype(wide), adj_x=adj_x, adj_y=adj_y).astype(kind, copy=False)


@kernel("BatchMatMulV2")
def batch_mat_mul_v2(x: Array, y: Array, *, adj_x: bool = False, adj_y: bool = False) -> Array:
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"operands of rank 2 or more are wanted, not {list(x.shape)} and {list(y.shape)}")
    a, b = adjoint_of(x) if adj_x else x, adjoint_of(y) if adj_y else y
    reserve((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    return product(a, b)


@kernel("BatchMatMul")
def batch_mat_mul(x: Array, y: Array, *, adj_x: bool = False, adj_y: bool = False) -> Array:
    if x.shape[:-2] != y.shape[:-2]:
        raise ValueError(f"In[0] and In[1] must have the same batch shape: {list(x.shape)} and {list(y.shape)}")
    return batch_mat_mul_v2(x, y, adj_x=adj_x, adj_y=adj_y)


def _check_sizes(equation: str, inputs: Sequence[Array]) -> None:
    """Refuses an axis of 1 where the same label names a longer one (NumPy would repeat it, TensorFlow does not), and a
    result that is too large."""
    sizes: dict[str, int] = {}
    repeated = 1  # the elements of what "..." stands for
    for term, value in zip(equation.partition("->")[0].split(","), inputs, strict=False):
        before, dots, after = term.partition("...")
        named = [*zip(before, value.shape, strict=False)]
        between = value.ndim - len(before) - len(after)
        repeated = max(repeated, math.prod(value.shape[len(before) : len(before) + between])) if dots else repeated
        if dots and after:
            named += zip(after[::-1], value.shape[::-1], strict=False)
        for label, size in named:
            if sizes.setdefault(label, size) != size:
                raise ValueError(f"the label '{label}' of '{equation}' is {sizes[label]} here and {size} there")
    reserve([repeated, *(sizes.get(label, 1) for label in equation.partition("->")[2])], inputs[0].dtype)


@kernel("Einsum", "XlaEinsum")
def einsum(*inputs: Array, equation: str) -> Array:
    equation = equation.replace(" ", "")
    _check_sizes(equation, inputs)
    left, _, labels = equation.partition("->")
    once = "".join(dict.fromkeys(labels.replace("...", "."))).replace(".", "...")
    if once != labels:
        return _on_diagonals(einsum(*inputs, equation=f"{left}->{once}"), once, labels)
    result = np.einsum(
        equation, *(widened(i) for i in inputs), optimize=("greedy", allowance() // 8) if len(inputs) > 1 else False
    )
    return np.array(result).astype(inputs[0].dtype, copy=False)


def _on_diagonals(values: Array, once: str, labels: str) -> Array:
    """Zeros but where all axes of a label that stands twice in the result have one index."""
    begin, _, end = once.partition("...")
    sizes = dict(zip(begin, values.shape, strict=False)) | dict(zip(end[::-1], values.shape[::-1], strict=False))
    before, dots, after = labels.partition("...")
    between = values.shape[len(begin) : values.ndim - len(end)] if dots else ()
    result = np.zeros((*(sizes[a] for a in before), *between, *(sizes[a] for a in after)), values.dtype)
    np.einsum(f"{labels}->{once}", result)[...] = values
    return result


@kernel("XlaDot")
def xla_dot(lhs: Array, rhs: Array, *, dimension_numbers: str | bytes) -> Array:
    """The product along the axes that a message of XLA names."""
    return einsum(lhs, rhs, equation=dot_equation(dimension_numbers, lhs.ndim, rhs.ndim))


@kernel("Cross")
def cross(a: Array, b: Array) -> Array:
    """The vector product along a last axis of 3."""
    if a.shape != b.shape or a.shape[-1:] != (3,):
        raise ValueError(f"two tensors whose last size is 3 are wanted, not {list(a.shape)} and {list(b.shape)}")
    return np.asarray(np.cross(a, b)).astype(a.dtype, copy=False)
