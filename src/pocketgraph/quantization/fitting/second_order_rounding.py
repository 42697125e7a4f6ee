"""Chooses the codes of weights by what they do to a layer's results, not one by one by what is nearest.

With ``H`` the second moments of the operand, codes ``v`` are found for weights ``w`` that make ``(v - w)' H (v - w)``
small: first one after the other, the error of each being made up for by those still to come (as in Frantar et al.,
"GPTQ", 2022), then by changing single codes as long as that helps (coordinate descent).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.graph.tensor import Array

SWEEPS = 4
SWEPT = 512  # inputs up to which single codes are changed afterwards; more take long and gain little
BLOCK = 64  # rows of a triangle that are inverted as they are
ONE_BY_ONE = 8  # inputs whose errors are seen to one after the other; of more, in products of matrices
DAMPING = 1e-3  # of the mean second moment, added to all, so that the matrix can be inverted


class Curvature(NamedTuple):
    """Second moments made ready for rounding: the inputs with the largest first.

    Attributes:
        order: int64 [inputs], where each input was before.
        moments: float64 [1 or outputs, inputs, inputs], damped.
        damping: what was added to their diagonals, [1 or outputs].
        upper: the upper factor ``U`` of their inverse, ``U' U``.
    """

    order: Array
    moments: Array
    damping: Array
    upper: Array


def curvature(moments: Array) -> Curvature:
    """See Curvature; ``moments`` are float64 [inputs, inputs] for all outputs, or [outputs, inputs, inputs]."""
    count = moments.shape[-1]
    blocks = moments[np.newaxis] if moments.ndim == 2 else moments
    trace = np.trace(blocks, axis1=1, axis2=2) / count
    damping = DAMPING * trace + 1e-12
    diagonal = np.einsum("bii->bi", blocks) + damping[:, np.newaxis]
    order = np.argsort(-np.einsum("bi->i", diagonal), kind="stable")
    damped = blocks.take(order, axis=1).take(order, axis=2)
    np.einsum("bii->bi", damped)[:] = diagonal[:, order]
    return Curvature(order, damped, damping, _inverse_factor(damped))


def inverse(matrices: Array) -> Array:
    """Of positive definite matrices, float64 [matrices, size, size]."""
    factor = _inverse_factor(matrices)
    if len(factor) == 1:  # of one matrix with itself: half of the work
        result: Array = (factor[0].T @ factor[0])[np.newaxis]
    else:
        result = factor.transpose(0, 2, 1) @ factor
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


def round_in_order(weights: Array, scales: Array, ready: Curvature, largest: int) -> tuple[Array, Array]:
    """Codes for a matrix of weights, one input after the other, with each of several scales.

    The errors tell the loss as well: with ``H`` the inverse of ``U' U`` it is the sum of their squares.

    Args:
        weights: float64 [outputs, inputs].
        scales: float64 [tries, outputs].
        ready: the operand's moments.
        largest: the largest code.

    Returns:
        The codes, float64 [tries, outputs, inputs], whole numbers from ``-largest`` to ``largest``, and what they lose,
        ``(v - w)' H (v - w)`` with the moments before they were damped, float64 [tries, outputs].
    """
    target = weights.T[ready.order, np.newaxis]  # what is computed for one input lies together in memory
    left = np.repeat(target, len(scales), axis=1)
    codes, errors = np.empty_like(left), np.empty_like(left)
    diagonal, shared = np.einsum("oii->io", ready.upper), len(ready.upper) == 1

    def code(start: int, end: int) -> None:
        if end - start > ONE_BY_ONE:
            middle = (start + end) // 2
            code(start, middle)
            made, between = errors[start:middle], ready.upper[:, start:middle, middle:end]
            if shared:
                beyond = (between[0].T @ made.reshape(len(made), -1)).reshape(-1, *made.shape[1:])
            else:
                beyond = np.einsum("ito,oij->jto", made, between)
            left[middle:end] -= beyond
            code(middle, end)
            return
        for at in range(start, end):
            nearest = np.rint(np.divide(left[at], scales, out=codes[at]), out=codes[at])
            np.minimum(np.maximum(nearest, -largest, out=nearest), largest, out=nearest)  # np.clip takes thrice as long
            error = np.multiply(nearest, scales, out=errors[at])
            np.divide(np.subtract(left[at], error, out=error), diagonal[at], out=error)
            left[at + 1 : end] -= ready.upper[:, at, at + 1 : end].T[:, np.newaxis] * error

    code(0, len(left))
    lost = np.square(errors, out=errors).sum(axis=0)
    apart = np.subtract(np.multiply(codes, scales, out=left), target, out=left)
    lost -= ready.damping * np.square(apart, out=apart).sum(axis=0)
    result = np.empty((*scales.shape, len(left)))
    result[:, :, ready.order] = np.moveaxis(codes, 0, -1)
    return result, lost


def improve_codes(
    codes: Array, weights: Array, scales: Array, ready: Curvature, largest: int, sweeps: int = SWEEPS
) -> Array:
    """Codes of which single ones are changed as long as that makes the loss smaller, each to where it is least.

    Args:
        codes: those to begin with, float64 [outputs, inputs].
        weights, ready, largest: as for ``round_in_order``.
        scales: float64 [outputs].
        sweeps: how often at most to go through the inputs of an output.
    """
    if weights.shape[1] > SWEPT:
        return codes
    found = codes[:, ready.order]
    _descend(found, weights[:, ready.order], scales, ready.moments, largest, sweeps)
    result = np.empty_like(found)
    result[:, ready.order] = found
    return result


def _descend(codes: Array, target: Array, scales: Array, moments: Array, largest: int, sweeps: int) -> None:
    """Changes codes in place, all outputs side by side: in each round the next one of each that is not where it should.

    One code in a hundred is changed, so that the slope of the loss is made up for single ones and not worked out anew.
    An output is done when it has had its sweeps, or one that changed nothing.
    """
    shared, across, inputs = len(moments) == 1, scales[:, np.newaxis], np.arange(codes.shape[1])
    apart = codes * across - target
    slope = apart @ moments[0] if shared else np.einsum("oi,oij->oj", apart, moments)
    curve = np.einsum("oii->oi", moments) * across
    begin, swept, has_moved = np.zeros(len(codes), int), np.zeros(len(codes), int), np.zeros(len(codes), bool)
    half, active = curve / 2, np.arange(len(codes))
    while active.size:
        passed = min(int(begin[active].min()), len(inputs) - 1)
        steep = slope[active, passed:]
        steep = np.abs(steep, out=steep) > half[active, passed:]  # what rounds to no step is cheaper to tell so
        steep &= inputs[passed:] >= begin[active, np.newaxis]
        first = steep.argmax(axis=1)
        is_moving = steep[np.arange(len(active)), first]
        rows, at = active[is_moving], first[is_moving] + passed
        present = codes[rows, at]
        wanted = np.clip(present - np.rint(slope[rows, at] / curve[rows, at]), -largest, largest)
        begin[rows] = at + 1
        differs = wanted != present  # not where the code is the last one
        moved, at, change = rows[differs], at[differs], (wanted - present)[differs] * scales[rows[differs]]
        codes[moved, at] = wanted[differs]
        slope[moved] += change[:, np.newaxis] * (moments[0, at] if shared else moments[moved, at])
        has_moved[moved] = True
        ended = active[~is_moving]
        swept[ended] += 1
        again = ended[has_moved[ended] & (swept[ended] < sweeps)]
        begin[ended], has_moved[ended] = 0, False
        active = np.concatenate([rows, again])
