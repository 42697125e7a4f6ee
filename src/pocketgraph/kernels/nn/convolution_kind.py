"""What tells convolutions apart for which programs are kept: all but the numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

from pocketgraph.kernels.windows import Window, window


class ConvolutionKind(NamedTuple):
    """A convolution but for its weights and biases.

    Attributes:
        op: Conv2D or DepthwiseConv2dNative.
        images: the shape of those that are taken together, [batch, rows, columns, channels]; the last may be fewer.
        weights: their shape, [rows, columns, channels, outputs or 1].
        spans: the windows along rows and columns.
        rectifier: Relu or Relu6; "" for none.
    """

    op: str
    images: tuple[int, ...]
    weights: tuple[int, ...]
    spans: tuple[Window, ...]
    rectifier: str

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of what comes out."""
        return (self.images[0], *(span.output for span in self.spans), self.columns)

    @property
    def columns(self) -> int:
        """Channels of what comes out."""
        return self.weights[2] if self.is_depthwise else self.weights[3]

    @property
    def is_depthwise(self) -> bool:
        return self.op == "DepthwiseConv2dNative"

    @property
    def products(self) -> int:
        """How many multiplications it takes."""
        elements = math.prod(self.weights[: 2 if self.is_depthwise else 3])
        return elements * math.prod(self.result)

    def with_border(self) -> ConvolutionKind:
        """The same of images that have their border already."""
        pairs = zip(self.images[1:3], self.spans, strict=True)
        sizes = [size + span.before + span.after for size, span in pairs]
        spans = tuple(Window(span.taps, span.stride, span.dilation, 0, 0, span.output) for span in self.spans)
        return self._replace(images=(self.images[0], *sizes, self.images[3]), spans=spans)

    def padding(self) -> str | None:
        """What the operator calls the border; None where it has no name for it."""
        for padding in ("SAME", "VALID") if self._fits() else ("SAME",):
            pairs = zip(self.images[1:3], self.spans, strict=True)
            if all(window(size, w.taps, w.stride, padding, w.dilation) == w for size, w in pairs):
                return padding
        return None

    def _fits(self) -> bool:
        """Whether windows lie in the images, which of a gradient may be smaller."""
        return all(w.reach <= size for size, w in zip(self.images[1:3], self.spans, strict=True))
