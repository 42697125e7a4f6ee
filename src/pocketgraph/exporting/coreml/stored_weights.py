"""Weights that stay codes in a Core ML package and become numbers when it is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgraph.graph.tensor import Array


@dataclass(frozen=True, eq=False)
class StoredWeights:
    """Numbers ``(code - zero) * step + rest``.

    Attributes:
        codes: int8 or uint8.
        steps: float32, one for all or one an entry of the axis.
        zeros: of the codes' type, as many as steps.
        axis: which one; None where there is one step for all.
        rest: what is added to all of them: Core ML's own form has none, a table of 256 numbers says it.
    """

    codes: Array
    steps: Array
    zeros: Array
    axis: int | None
    rest: float = 0.0

    def plus(self, rest: float) -> StoredWeights:
        """The same with a number added to each."""
        return replace(self, rest=self.rest + rest)

    def permuted(self, order: tuple[int, ...]) -> StoredWeights:
        """The same with its axes in another order."""
        axis = None if self.axis is None else order.index(self.axis)
        return replace(self, codes=np.ascontiguousarray(self.codes.transpose(order)), axis=axis)

    def expanded(self, translation: Any) -> Any:
        """The value in the program: codes, and what makes numbers of them."""
        if not self.rest:
            scalars = self.axis is None
            return translation.op(
                "constexpr_affine_dequantize",
                quantized_data=self.codes,
                scale=np.float32(self.steps.reshape(-1)[0]) if scalars else self.steps.astype(np.float32),
                zero_point=self.zeros.reshape(-1)[0] if scalars else self.zeros,
                axis=np.int32(self.axis or 0),
            )
        if self.axis is not None:
            raise translation.unsupported("codes with a step for each channel and zeros that are no codes")
        places = self.codes.view(np.uint8)
        numbers = np.arange(256, dtype=np.uint8).view(self.codes.dtype).astype(np.float32)
        table = (numbers - np.float32(self.zeros.reshape(-1)[0])) * np.float32(self.steps.reshape(-1)[0])
        return translation.op(
            "constexpr_lut_to_dense",
            indices=places.reshape(-1),
            lut=(table + np.float32(self.rest)).astype(np.float32),
            shape=np.asarray(self.codes.shape, np.uint32),
        )
