"""Codes chosen by what they do to the results are never worse than the nearest ones."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.quantization.fitting.second_order_rounding import (
    SWEEPS,
    curvature,
    improve_codes,
    inverse,
    round_in_order,
)


def loss(weights: np.ndarray, codes: np.ndarray, scales: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """``(v - w)' H (v - w)`` for each output."""
    apart = codes * scales[:, np.newaxis] - weights
    return np.einsum("oi,oij,oj->o", apart, np.broadcast_to(moments, (len(weights), *moments.shape[-2:])), apart)


def round_rows(weights: np.ndarray, scales: np.ndarray, moments: np.ndarray, sweeps: int = SWEEPS) -> np.ndarray:
    ready = curvature(moments)
    codes, _ = round_in_order(weights, scales[np.newaxis], ready, 127)
    return improve_codes(codes[0], weights, scales, ready, 127, sweeps)


@pytest.mark.parametrize("shared", [True, False])
def test_codes_beat_the_nearest_ones_on_correlated_operands(shared: bool) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 24))
    mixing = rng.normal(size=(3, 24))
    rows = rng.normal(size=(500, 3)) @ mixing + 0.05 * rng.normal(size=(500, 24))
    moments = rows.T @ rows / len(rows)
    every = moments if shared else np.repeat(moments[np.newaxis], 6, axis=0)
    scales = np.abs(weights).max(axis=1) / 15
    nearest = np.rint(weights / scales[:, np.newaxis])
    chosen = round_rows(weights, scales, every)
    assert np.abs(chosen).max() <= 127
    assert np.array_equal(chosen, np.rint(chosen))
    assert loss(weights, chosen, scales, every).sum() < 0.2 * loss(weights, nearest, scales, every).sum()
    results = rows @ (chosen * scales[:, np.newaxis] - weights).T
    worse = rows @ (nearest * scales[:, np.newaxis] - weights).T
    assert np.square(results).mean() < 0.2 * np.square(worse).mean()


def test_operands_that_are_always_zero_do_no_harm() -> None:
    weights = np.array([[1.0, -0.5, 0.25]])
    chosen = round_rows(weights, np.array([1 / 127]), np.zeros((3, 3)))
    assert np.isfinite(chosen).all()
    np.testing.assert_allclose(chosen[0], [127, -64, 32], atol=1)


def correlated(rows: int, inputs: int) -> np.ndarray:
    seen = np.random.default_rng(2).normal(size=(rows, inputs)) @ np.random.default_rng(3).normal(size=(inputs, inputs))
    return seen.T @ seen / rows


@pytest.mark.parametrize("size", [1, 7, 64, 65, 150])
def test_the_factor_is_that_of_the_inverse(size: int) -> None:
    moments = np.stack([correlated(3 * size, size), np.eye(size)]) + 0.1 * np.eye(size)
    np.testing.assert_allclose(inverse(moments) @ moments, np.broadcast_to(np.eye(size), moments.shape), atol=1e-8)
    found = curvature(moments)
    np.testing.assert_array_equal(found.upper, np.triu(found.upper))
    product = found.upper.transpose(0, 2, 1) @ found.upper @ found.moments
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(size), moments.shape), atol=1e-8)


def problem(outputs: int, inputs: int, *, shared: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, scales so coarse that many codes are worth a change, and moments."""
    weights = np.random.default_rng(1).normal(size=(outputs, inputs))
    moments = correlated(300, inputs) + 5 * np.eye(inputs)
    factors = np.linspace(0.5, 2, outputs)
    return weights, np.abs(weights).max(axis=1) / 31, moments if shared else factors[:, None, None] * moments


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("inputs", [1, 8, 9, 70])
def test_codes_are_those_of_one_input_after_the_other_and_their_loss_is_known(inputs: int, shared: bool) -> None:
    weights, scales, moments = problem(5, inputs, shared=shared)
    tried = np.stack([scales, 0.7 * scales])
    ready = curvature(moments)
    codes, lost = round_in_order(weights, tried, ready, 31)
    for found, told, steps in zip(codes, lost, tried, strict=True):
        for at, row in enumerate(weights):
            upper, left = ready.upper[0 if shared else at], row[ready.order].copy()
            for place in range(inputs):
                code = np.clip(np.rint(left[place] / steps[at]), -31, 31)
                left[place:] -= (left[place] - code * steps[at]) / upper[place, place] * upper[place, place:]
                assert found[at, ready.order[place]] == code
        np.testing.assert_allclose(told, loss(weights, found, steps, moments), rtol=1e-9)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("sweeps", "largest"), [(1, 31), (2, 31), (30, 31), (30, 12)])
def test_single_codes_are_changed_in_order_until_none_gains(sweeps: int, largest: int, shared: bool) -> None:
    weights, scales, moments = problem(40, 70, shared=shared)
    ready = curvature(moments)
    start = np.clip(np.rint(weights / scales[:, np.newaxis]), -largest, largest)
    found = improve_codes(start, weights, scales, ready, largest, sweeps)
    expected, changes = start.copy(), 0
    for at, steps in enumerate(scales):
        every = np.empty_like(ready.moments[0])
        every[np.ix_(ready.order, ready.order)] = ready.moments[0 if shared else at]
        for _ in range(sweeps):
            for place in ready.order:
                slope = (expected[at] * steps - weights[at]) @ every[place]
                code = np.clip(expected[at, place] - np.rint(slope / (every[place, place] * steps)), -largest, largest)
                changes += code != expected[at, place]
                expected[at, place] = code
    np.testing.assert_array_equal(found, expected)
    assert changes > 40
    assert (loss(weights, found, scales, moments) <= loss(weights, start, scales, moments) * (1 + 1e-3)).all()
