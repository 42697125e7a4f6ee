"""Chooses the codes of weights by what they do to a layer's results, not one by one by what is nearest.

With ``H`` the second moments of the operand, codes ``v`` are found for weights ``w`` that make ``(v - w)' H (v - w)``
small: first one after the other, the error of each being made up for by those still to come (as in Frantar et al.,
"GPTQ", 2022), then by changing single codes as long as that helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import LARGEST_CODE

SWEEPS = 4
SWEPT = 512  # inputs up to which single codes are changed afterwards; more take long and gain little
BLOCK = 64
DAMPING = 1e-3  # of the mean second moment, added to all, so that the matrix can be inverted


class Curvature(NamedTuple):
    """Second moments made ready for rounding: the inputs with the largest first.

    Attributes:
        order: int64 [inputs], where each input was before.
        moments: float64 [1 or outputs, inputs, inputs], damped.
        upper: the upper factor ``U`` of their inverse, ``U' U``.
    """

    order: Array
    moments: Array
    upper: Array


def curvature(moments: Array) -> Curvature:
    """See Curvature; ``moments`` as for ``round_rows``."""
    count = moments.shape[-1]
    blocks = moments[np.newaxis] if moments.ndim == 2 else moments
    trace = np.trace(blocks, axis1=1, axis2=2) / count
    damped = blocks + (DAMPING * trace + 1e-12)[:, np.newaxis, np.newaxis] * np.eye(count)
    order = np.argsort(-np.einsum("bii->i", damped), kind="stable")
    damped = damped[:, order][:, :, order]
    return Curvature(order, damped, _inverse_factor(damped))


def inverse(matrices: Array) -> Array:
    """Of positive definite matrices, float64 [matrices, size, size]."""
    factor = _inverse_factor(matrices)
    result: Array = factor.transpose(0, 2, 1) @ factor
    return result


def _inverse_factor(matrices: Array) -> Array:
    """The upper factor ``U`` of the inverse of positive definite matrices, ``U' U``, float64 [matrices, size, size].

    The Cholesky factor from the last row up is ``R`` of ``R R'``, and ``U`` is its inverse: a third of the work of
    inverting first.
    """
    last_first = np.linalg.cholesky(matrices[:, ::-1, ::-1])
    return _inverse_of_upper(last_first[:, ::-1, ::-1])


def _inverse_of_upper(factor: Array) -> Array:
    """Of upper triangles, [triangles, size, size]: of their halves, and what is between them from these."""
    size = factor.shape[1]
    if size <= BLOCK:
        small: Array = np.linalg.inv(factor)
        return small
    half = size // 2
    first, last = _inverse_of_upper(factor[:, :half, :half]), _inverse_of_upper(factor[:, half:, half:])
    result = np.zeros_like(factor)
    result[:, :half, :half], result[:, half:, half:] = first, last
    result[:, :half, half:] = -(first @ factor[:, :half, half:]) @ last
    return result


def round_rows(
    weights: Array,
    scales: Array,
    moments: Array | Curvature,
    largest: int = LARGEST_CODE,
    start: Array | None = None,
    sweeps: int = SWEEPS,
) -> Array:
    """Codes for a matrix of weights.

    Args:
        weights: float64 [outputs, inputs].
        scales: float64 [outputs].
        moments: float64 [inputs, inputs] for all outputs, or [outputs, inputs, inputs]; or what ``curvature`` made of
            them, when they serve for several scales.
        largest: the largest code.
        start: codes to improve; by default those found one after the other.
        sweeps: how often at most single codes are changed afterwards.

    Returns:
        float64 [outputs, inputs], whole numbers from ``-largest`` to ``largest``.
    """
    count = weights.shape[1]
    order, damped, upper = moments if isinstance(moments, Curvature) else curvature(moments)
    target = weights[:, order]
    codes = _in_order(target, scales, upper, largest) if start is None else start[:, order]
    moving = np.arange(len(codes))  # outputs of which the last sweep changed a code; the others would stay as they are
    for _ in range(sweeps if count <= SWEPT else 0):
        part = codes[moving]
        moved = _improve(part, target[moving], scales[moving], damped if len(damped) == 1 else damped[moving], largest)
        codes[moving] = part
        moving = moving[moved]
        if not moving.size:
            break
    result = np.empty_like(codes)
    result[:, order] = codes
    return result


def loss(weights: Array, codes: Array, scales: Array, moments: Array) -> Array:
    """``(v - w)' H (v - w)`` for each output, float64 [outputs]; arguments as for ``round_rows``."""
    apart = codes * scales[:, np.newaxis] - weights
    if moments.ndim == 2:
        result: Array = np.einsum("oi,oi->o", apart @ moments, apart)
    else:
        result = np.einsum("oi,oij,oj->o", apart, moments, apart)
    return result


def _in_order(target: Array, scales: Array, upper: Array, largest: int) -> Array:
    """One code after the other; what an error changes beyond the block at hand is seen to in one product."""
    left = target.copy()
    codes = np.zeros_like(target)
    count = target.shape[1]
    shared = len(upper) == 1
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        columns, factors = _columns(left[:, start:end]), _columns(upper[:, start:end, start:end])
        errors, chosen = np.zeros_like(columns), np.zeros_like(columns)
        for index in range(end - start):
            nearest = np.rint(columns[index] / scales)
            np.minimum(np.maximum(nearest, -largest), largest, out=chosen[index])  # np.clip takes three times as long
            apart = np.divide(columns[index] - chosen[index] * scales, factors[index, index], out=errors[index])
            columns[index + 1 :] -= factors[index + 1 :, index] * apart
        codes[:, start:end] = chosen.T
        if end < count:
            errors, rest = np.ascontiguousarray(errors.T), upper[:, start:end, end:]
            left[:, end:] -= errors @ rest[0] if shared else np.einsum("oi,oij->oj", errors, rest)
    return codes


def _columns(block: Array) -> Array:
    """A block with its last axis first, so that what is computed for one input lies together in memory."""
    return np.ascontiguousarray(np.moveaxis(block, -1, 0) if block.ndim == 2 else block.transpose(2, 1, 0))


def _improve(codes: Array, target: Array, scales: Array, moments: Array, largest: int) -> Array:
    """One sweep over all codes, each moved to where the loss is least; for each output whether any was.

    The slope of the loss is kept for a block of inputs only and worked out anew, in one product, for the next.
    """
    count = target.shape[1]
    shared = len(moments) == 1
    apart = codes * scales[:, np.newaxis] - target
    moved = np.zeros(len(codes), bool)
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        block = moments[:, :, start:end]
        slope = _columns(apart @ block[0] if shared else np.einsum("oi,oij->oj", apart, block))
        near, present = _columns(block[:, start:end]), _columns(codes[:, start:end])
        for index in range(end - start):
            step = np.rint(-slope[index] / (near[index, index] * scales))
            wanted = np.minimum(np.maximum(present[index] + step, -largest), largest)
            at = (wanted != present[index]).nonzero()[0]
            if at.size:
                moved[at] = True
                change = (wanted[at] - present[index, at]) * scales[at]
                codes[at, start + index] = wanted[at]
                apart[at, start + index] += change
                ahead = near[index + 1 :, index]
                slope[index + 1 :, at] += (ahead if shared else ahead[:, at]) * change
    return moved
