"""Has XNNPACK compute convolutions of a training, where they are large (litert/packing/changing_weights.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.image_threads import threads_for
from pocketgraph.litert.cost_model import LEAST_NUMPY_GRADIENT
from pocketgraph.runtime.engines.compilation_units import Plan

if TYPE_CHECKING:
    from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
    from pocketgraph.kernels.nn.rectified_convolution import Convolve
    from pocketgraph.kernels.windows import Window
    from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

PASS = "changing_weights"
SHARED = "images_over_threads"
_STATE = "convolutions with changing weights"


class TrainedConvolutions(NamedTuple):
    """Those of a plan.

    Attributes:
        threads: with how many threads.
        is_on: whether XNNPACK is to compute them; else NumPy does.
        beside: how many threads may share a batch's images.
    """

    threads: int
    is_on: bool
    beside: int

    def given(
        self, run: Any, kind: ConvolutionKind, weights: Array, bias: Array | None = None
    ) -> AbstractContextManager[Convolve | None]:
        """What computes convolutions with these weights while the context lasts; None where NumPy is to do it.

        Args:
            run: the Run.
            kind, weights, bias: as ``ChangingConvolutions.given`` has them.
        """
        if not self.is_on or kind.products < LEAST_NUMPY_GRADIENT:
            return nullcontext()
        found: ChangingConvolutions | None = run.state.get(_STATE)
        if found is None:
            from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

            found = run.state.setdefault(_STATE, ChangingConvolutions(self.threads))
        return found.given(kind, weights, bias)

    def shared_by(self, images: int, weights: Sequence[int], places: Sequence[int]) -> int:
        """How many threads are to share a batch.

        Args:
            images: how many there are.
            weights: the sizes of the convolution's.
            places: of its windows, along rows and columns.
        """
        return threads_for(self.beside, images, images * math.prod((*weights, *places)))

    def turned(
        self,
        run: Any,
        op: str,
        back: tuple[Array, Sequence[Window]] | None,
        images: tuple[int, ...],
        threads: int,
    ) -> AbstractContextManager[Convolve | None]:
        """As ``given``, of the convolution that is the gradient by the images.

        Args:
            run: the Run.
            op: Conv2D or DepthwiseConv2dNative.
            back: its weights and windows, or None (kernels/nn/rectified_convolution.py, ``turned``).
            images: the shape of the gradients that are taken together.
            threads: how many share the batch.
        """
        if back is None:
            return nullcontext()
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind

        weights, spans = back
        return self.given(run, ConvolutionKind(op, images, weights.shape, tuple(spans), "", threads), weights)


def trained_convolutions(plan: Plan) -> TrainedConvolutions:
    """Those of a plan."""
    return TrainedConvolutions(plan.threads, plan.uses(PASS), plan.threads if plan.uses(SHARED) else 1)
