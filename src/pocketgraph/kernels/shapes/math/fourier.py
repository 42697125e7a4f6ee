"""Shape rules of Fourier transforms."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import Dim, of_rank
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")(unchanged)


AXES = {"RFFT": 1, "RFFT2D": 2, "RFFT3D": 3, "IRFFT": 1, "IRFFT2D": 2, "IRFFT3D": 3}
"""Over how many of the last axes each transforms."""


@shape_rule(*AXES)
def real_transform(call: ShapeCall) -> Shape:
    """The last axes have the lengths of input 1; from real numbers, half of the last one's and one more come out."""
    axes = AXES[call.node.op]
    of_rank(call.shape(1), 1)
    dims = call.dims(0, axes)
    given = call.integers(1)
    lengths: list[Dim] = [None] * axes if given is None or len(given) != axes else [int(length) for length in given]
    if call.node.op.startswith("R") and lengths[-1] is not None:
        lengths[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
    return Shape((*dims[: len(dims) - axes], *lengths))
