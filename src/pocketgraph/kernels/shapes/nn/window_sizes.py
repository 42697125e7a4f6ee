"""Where the axes of a picture lie, and what a window that slides along them leaves."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import Dim, window
from pocketgraph.kernels.shapes.rules import ShapeCall


def spatial_axes(layout: str) -> tuple[int, tuple[int, ...]]:
    """The channel axis and the spatial axes of ``NHWC``, ``NCHW``, ``NDHWC`` or ``NCDHW``.

    Raises:
        GraphError: another layout.
    """
    if layout not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise GraphError(f"the data_format {layout} is not supported")
    return layout.index("C"), tuple(i for i, letter in enumerate(layout) if letter in "DHW")


def layout_of(call: ShapeCall, rank: int) -> str:
    return str(call.attr("data_format", "NHWC" if rank == 4 else "NDHWC"))


def per_axis(call: ShapeCall, name: str, rank: int) -> tuple[int, ...]:
    values = tuple(int(v) for v in call.attr(name, ()) or (1,) * rank)
    if len(values) != rank:
        raise GraphError(f"{name} should have {rank} numbers, not {len(values)}")
    return values


def convolved(
    image: Sequence[Dim], sizes: Sequence[Dim], channels: Dim, layout: str, strides: Sequence[int], padding: str,
    dilations: Sequence[int], pads: Sequence[int] = (),
) -> Shape:  # fmt: skip
    """The shape of a sliding window's result.

    Args:
        image: the input's sizes in ``layout``.
        sizes: of the window, one a spatial axis.
        channels: of the result.
        strides, dilations: one a dimension of the input.
        pads: before and after each dimension of the input, for ``EXPLICIT``.
    """
    channel, axes = spatial_axes(layout)
    out = list(image)
    out[channel] = channels
    for axis, size in zip(axes, sizes, strict=True):
        edges = (int(pads[2 * axis]), int(pads[2 * axis + 1])) if padding == "EXPLICIT" else (0, 0)
        out[axis] = window(image[axis], size, strides[axis], padding, dilation=dilations[axis], pads=edges)
    return Shape(out)
