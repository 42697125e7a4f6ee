"""What LiteRT computes otherwise than TensorFlow at the edges of a type: NaN, infinities, the largest numbers.

One row an operator, or an op whose lowering has such edges of its own; ``tools/edge_values.py`` measures them and
docs/exactness.md lists them with the values. A strict session leaves what has a row to the reference engine. What has
none gives TensorFlow's values, be it in a lowering or fused with another operator: convolutions and products,
rectifiers (RELU, RELU6, LEAKY_RELU, ELU), bounds that are single numbers, TANH, SOFTMAX, sums and means, arithmetic,
comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.litert.operator_traits import BOUNDS
from pocketgraph.litert.program import Value

OPERATORS = {
    "ARG_MAX": "NaN may be passed over",
    "ARG_MIN": "NaN may be passed over",
    "AVERAGE_POOL_2D": "NaN in a window may give -inf, and infinities the largest number",
    "COS": "digits are lost from 1e7 on, and the result leaves [-1, 1] from 2^31 on",
    "EXP": "NaN gives 0; infinite from 88.4 on, where a float32 ends at 88.7",
    "LOCAL_RESPONSE_NORMALIZATION": "the power of what is not finite",
    "LOG": "infinite from 3e38 on; 1e-7 off near 1, where the result is near 0",
    "LOGISTIC": "NaN beyond 1e27 on either side",
    "MAXIMUM": "NaN may be passed over where both operands are tensors, or one is NaN for good",
    "MAX_POOL_2D": "NaN makes a window forget what it saw before, and infinities may give the largest number",
    "MINIMUM": "NaN may be passed over where both operands are tensors, or one is NaN for good",
    "REDUCE_MAX": "NaN may be passed over",
    "REDUCE_MIN": "NaN may be passed over",
    "RESIZE_BILINEAR": "NaN and infinities reach pixels that do not take part in TensorFlow",
    "RSQRT": "NaN of 0, and half too small from 1.7e38 on",
    "SIN": "digits are lost from 1e7 on, and the result leaves [-1, 1] from 2^31 on",
    "SQRT": "half too large from 1.7e38 on",
    "TOPK_V2": "NaN may be passed over",
}
"""By LiteRT operator, of float operands."""

CAST_TO_INTEGERS = "NaN and what is too large give the upper bound in place of the lower one"

WHOLE_TAPS = frozenset((3, 4, 9))
"""Elements of small depthwise windows for which XNNPACK has a kernel; others, up to 25, are filled up with zeros."""

FILLED_TAPS = "NaN and infinities reach pixels whose window does not hold them"

OPS = dict.fromkeys(
    sorted(ops_with("result_gradient") - {"SigmoidGrad", "TanhGrad"}), "NaN in place of 0 for a gradient of 0"
)
"""By op, whose lowering has other edges than the operators in it. It is true of our lowerings, not of the ops."""

SPREADING = frozenset(
    (
        "cut_large_windows",
        "turn_transposed_convolutions",
        "widen_narrow_convolutions",
        "winograd_convolutions",
        "winograd_training",
    )
)
"""Program passes that multiply by zeros of their own, so that what is not finite reaches more pixels than before."""


def edge_of(code: str, inputs: Sequence[Value | None], output: object) -> str:
    """How an operation differs at the edges; "" where it does not.

    Args:
        code: the LiteRT operator.
        inputs: its operands.
        output: the element type of its first result.
    """
    if not any(value is not None and value.dtype is FLOAT for value in inputs):
        return ""
    if code == "CAST":
        is_integer = getattr(output, "name", "").startswith(("int", "uint"))
        return CAST_TO_INTEGERS if is_integer else ""
    if code == "DEPTHWISE_CONV_2D":
        return FILLED_TAPS if _is_filled_up(inputs[1]) else ""
    if code in BOUNDS and _is_bounded_by_a_number(inputs):
        return ""
    return OPERATORS.get(code, "")


def _is_filled_up(weights: Value | None) -> bool:
    """Whether XNNPACK computes a depthwise window with a kernel for more elements; 25 and more are right."""
    taps = 0 if weights is None else weights.shape[1] * weights.shape[2]
    return taps < 25 and taps not in WHOLE_TAPS


def _is_bounded_by_a_number(inputs: Sequence[Value | None]) -> bool:
    """Whether one of two operands is a number other than NaN; XNNPACK's kernels for that keep a NaN of the other, but
    may pass over one of the bound."""
    left, right = (value for value in inputs if value is not None)
    return any(
        bound.constant is not None
        and bound.size == 1
        and len(bound.shape) <= len(value.shape)
        and not np.isnan(bound.content.numpy()).any()
        for bound, value in ((left, right), (right, left))
    )
