"""What a step is: a name to switch it off by, what it is for, when it applies, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pocketgraph.quantization.core.quantization_state import QuantizationState


@dataclass(frozen=True)
class QuantizationStep:
    """A step over the state of a quantization.

    Attributes:
        name: what it is called in reports and in ``without``.
        purpose: what it is for, a sentence.
        run: does it; whether it changed anything.
        applies: whether there is anything for it to do.
        is_optional: whether it can be left out.
    """

    name: str
    purpose: str
    run: Callable[[QuantizationState], bool]
    applies: Callable[[QuantizationState], bool] = lambda state: True
    is_optional: bool = True
