"""Gradients of ops that make, read and turn complex numbers.

The gradient by a complex number is that by its real part and, as its imaginary part, that by its imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence

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
