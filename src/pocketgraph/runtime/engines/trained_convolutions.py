"""How large convolutions of a training are computed: by XNNPACK (litert/packing/changing_weights.py), and gradients by
their weights in tiles (kernels/nn/tiled_gradients.py)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from pocketgraph.kernels.arrays import Array
from pocketgraph.litert.cost_model import LEAST_NUMPY_GRADIENT
from pocketgraph.runtime.engines.compilation_units import Plan

if TYPE_CHECKING:
    from pocketgraph.kernels.nn.convolution_gradients import ByFilter
    from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
    from pocketgraph.kernels.nn.rectified_convolution import Convolve
    from pocketgraph.kernels.windows import Window
    from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

PASS = "changing_weights"
_STATE = "convolutions with changing weights"


class TrainedConvolutions(NamedTuple):
    """Those of a plan.

    Attributes:
        threads: with how many threads; 0: NumPy is to compute them.
        in_tiles: whether gradients by the weights may be computed in tiles.
    """

    threads: int
    in_tiles: bool

    def by_filter(self, op: str) -> ByFilter | None:
        """What computes the gradient by the weights; None: the op's own function."""
        if self.in_tiles or op != "Conv2D":
            return None
        from pocketgraph.kernels.nn.convolution_gradients import plain_backprop_filter

        return plain_backprop_filter

    def given(
        self, run: Any, kind: ConvolutionKind, weights: Array, bias: Array | None = None
    ) -> AbstractContextManager[Convolve | None]:
        """What computes convolutions with these weights while the context lasts; None where NumPy is to do it.

        Args:
            kind, weights, bias: as ``ChangingConvolutions.given`` has them.
        """
        if not self.threads or kind.products < LEAST_NUMPY_GRADIENT:
            return nullcontext()
        found: ChangingConvolutions | None = run.state.get(_STATE)
        if found is None:
            from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

            found = run.state.setdefault(_STATE, ChangingConvolutions(self.threads))
        return found.given(kind, weights, bias)

    def turned(
        self, run: Any, op: str, back: tuple[Array, Sequence[Window]] | None, images: tuple[int, ...]
    ) -> AbstractContextManager[Convolve | None]:
        """As ``given``, of the convolution that is the gradient by the images.

        Args:
            op: Conv2D or DepthwiseConv2dNative.
            back: its weights and windows, or None (kernels/nn/rectified_convolution.py, ``turned``).
            images: the shape of the gradients that are taken together.
        """
        if back is None:
            return nullcontext()
        from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind

        weights, spans = back
        return self.given(run, ConvolutionKind(op, images, weights.shape, tuple(spans), ""), weights)


def trained_convolutions(plan: Plan) -> TrainedConvolutions:
    """Those of a plan."""
    return TrainedConvolutions(plan.threads if plan.uses(PASS) else 0, plan.uses("tiled_gradients"))
