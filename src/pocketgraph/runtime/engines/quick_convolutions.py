"""Has XNNPACK compute convolutions of a training, where they are large (litert/packing/changing_weights.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from pocketgraph.kernels.arrays import Array
from pocketgraph.litert.cost_model import LEAST_NUMPY_GRADIENT
from pocketgraph.runtime.engines.compilation_units import Plan

if TYPE_CHECKING:
    from pocketgraph.kernels.nn.rectified_convolution import Convolve
    from pocketgraph.kernels.windows import Window
    from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

PASS = "changing_weights"
_STATE = "convolutions with changing weights"


class QuickConvolutions(NamedTuple):
    """Those of a plan.

    Attributes:
        threads: with how many threads; 0: NumPy is to compute them.
    """

    threads: int

    def given(
        self,
        run: Any,
        op: str,
        weights: Array,
        bias: Array | None,
        spans: Sequence[Window],
        images: tuple[int, ...],
        rectifier: str = "",
    ) -> AbstractContextManager[Convolve | None]:
        """What computes convolutions with these weights while the context lasts; None where NumPy is to do it.

        Args:
            run: the Run.
            op, weights, bias, spans, images, rectifier: as ``ChangingConvolutions.given`` has them.
        """
        elements = math.prod(weights.shape[: 2 if op == "DepthwiseConv2dNative" else 3])
        outputs = weights.shape[2] if op == "DepthwiseConv2dNative" else weights.shape[3]
        if (
            not self.threads
            or images[0] * elements * outputs * math.prod(w.output for w in spans) < LEAST_NUMPY_GRADIENT
        ):
            return nullcontext()
        found: ChangingConvolutions | None = run.state.get(_STATE)
        if found is None:
            from pocketgraph.litert.packing.changing_weights import ChangingConvolutions

            found = run.state.setdefault(_STATE, ChangingConvolutions(self.threads))
        return found.given(op, weights, bias, spans, images, rectifier)


def quick_convolutions(plan: Plan) -> QuickConvolutions:
    """Those of a plan."""
    return QuickConvolutions(plan.threads if plan.uses(PASS) else 0)
