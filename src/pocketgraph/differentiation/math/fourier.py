"""Gradients of ops that make, read and turn complex numbers, and of Fourier transforms.

The gradient by a complex number is that by its real part and, as its imaginary part, that by its imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient


@gradient("Complex")
def of_parts(op: NodeGradient) -> Sequence[str | None]:
    real = op.dtype_of_input(0)
    return op.unbroadcast(op.add("Real", op.grad, Tout=real), op.add("Imag", op.grad, Tout=real))


gradient("Real")(lambda op: _complex(op, op.grad, op.zeros(op.grad)))
gradient("Imag")(lambda op: _complex(op, op.zeros(op.grad), op.grad))
gradient("Conj")(lambda op: op.conj(op.grad))


@gradient("ComplexAbs")
def magnitude(op: NodeGradient) -> str:
    """The direction of the number; 0 at 0."""
    direction = (
        op.add("DivNoNan", op.add(part, op.inputs[0], Tout=op.dtype), op.output()) for part in ("Real", "Imag")
    )
    return _complex(op, *(op.mul(op.grad, part) for part in direction))


@gradient("Angle")
def angle(op: NodeGradient) -> str:
    """Across the number, one divided by its magnitude."""
    real, imaginary = (op.add(part, op.inputs[0], Tout=op.dtype) for part in ("Real", "Imag"))
    square = op.add("Add", op.add("Square", real), op.add("Square", imaginary))
    across = op.add("Neg", imaginary), real
    return _complex(op, *(op.add("RealDiv", op.mul(op.grad, part), square) for part in across))


def _complex(op: NodeGradient, real: str, imaginary: str) -> str:
    return op.add("Complex", real, imaginary, Tout=op.dtype_of_input(0))


@gradient("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def transform(op: NodeGradient) -> str:
    """The other direction, times (or for an inverse, divided by) the number of elements."""
    name, rank = op.node.op, _rank(op.node.op)
    is_inverse = name.startswith("I")
    back = op.add(name.removeprefix("I") if is_inverse else f"I{name}", op.grad)
    sizes = tuple(op.static(op.inputs[0]))[-rank:] if op.static(op.inputs[0]).rank is not None else (None,)
    if None not in sizes:
        count = op.const(np.asarray(prod(int(size or 0) for size in sizes), op.dtype.numpy), op.dtype)
    else:
        shape = op.add(
            "StridedSlice", op.shape_of_input(0), op.const([-rank]), op.const([0]), op.const([1]), end_mask=1
        )
        count = op.cast(op.add("Prod", shape, op.const([0])), op.dtype)
    return op.add("RealDiv" if is_inverse else "Mul", back, count)


@gradient("RFFT", "RFFT2D")
def transform_of_reals(op: NodeGradient) -> Sequence[str | None]:
    """The real part of the inverse transform of the gradient, with zeros for the frequencies that are left out."""
    rank, lengths = _rank(op.node.op), _lengths(op)
    behind = [*[[0, 0]] * (op.rank(op.inputs[0]) - 1), [0, lengths[-1] - lengths[-1] // 2 - 1]]
    whole = op.add("Pad", op.grad, op.const(behind))
    back = op.add("IFFT" if rank == 1 else "IFFT2D", whole)
    real = op.dtype_of_input(0)
    scaled = op.mul(op.add("Real", back, Tout=real), op.const(np.asarray(prod(lengths), real.numpy), real))
    return _padded_to_input(op, scaled, lengths), None


@gradient("IRFFT", "IRFFT2D")
def transform_to_reals(op: NodeGradient) -> Sequence[str | None]:
    """The transform of the gradient; all frequencies but those at the two ends count twice, as they stand for two."""
    rank, lengths, dtype = _rank(op.node.op), _lengths(op), op.dtype_of_input(0)
    kept = lengths[-1] // 2 + 1
    weights = np.full(kept, 2.0)
    weights[0] = 1
    if lengths[-1] % 2 == 0:
        weights[-1] = 1
    spectrum = op.add("RFFT" if rank == 1 else "RFFT2D", op.grad, op.const(list(lengths)), Tcomplex=dtype)
    scaled = op.mul(spectrum, op.const((weights / prod(lengths)).astype(dtype.numpy), dtype))
    return _padded_to_input(op, scaled, (*lengths[:-1], kept)), None


def _rank(name: str) -> int:
    return int(name[-2]) if name.endswith("D") else 1


def _lengths(op: NodeGradient) -> tuple[int, ...]:
    """How many elements each axis is transformed as."""
    return tuple(int(size) for size in op.needs_value(1, "fft_length"))


def _padded_to_input(op: NodeGradient, ref: str, lengths: Sequence[int]) -> str:
    """A tensor with these last sizes, with zeros behind up to the input's, which a transform passed over."""
    static = op.static(op.inputs[0])
    if static.rank is not None and tuple(static)[-len(lengths) :] == tuple(lengths):
        return ref
    missing = op.add("Sub", op.shape_of_input(0), op.add("Shape", ref))
    return op.add("Pad", ref, op.add("Pack", [op.zeros(missing), missing], axis=1))
