"""Codes chosen by what they do to the results are never worse than the nearest ones."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.quantization.fitting import second_order_rounding
from pocketgraph.quantization.fitting.second_order_rounding import curvature, inverse, loss, round_rows


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


@pytest.mark.parametrize("shared", [True, False])
def test_what_a_sweep_left_alone_is_not_swept_again(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    swept, sweep = list[int](), second_order_rounding._improve

    def counted(codes: np.ndarray, *rest: object) -> np.ndarray:
        swept.append(len(codes))
        return sweep(codes, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(second_order_rounding, "_improve", counted)
    weights = np.random.default_rng(1).normal(size=(40, 70))
    moments = correlated(300, 70) + 5 * np.eye(70)
    every = moments if shared else np.repeat(moments[np.newaxis], 40, axis=0)
    scales = np.abs(weights).max(axis=1) / 31
    chosen = round_rows(weights, scales, every, sweeps=30)
    assert swept[0] == 40
    assert swept == sorted(swept, reverse=True)
    assert sum(swept) < 40 * len(swept)
    ready = curvature(every).moments[0][np.argsort(curvature(every).order)][:, np.argsort(curvature(every).order)]
    slope = (chosen * scales[:, np.newaxis] - weights) @ ready
    better = np.abs(slope) > 0.5 * np.diag(ready) * scales[:, np.newaxis] * (1 + 1e-9)
    assert not (better & (np.abs(chosen) < 127)).any()  # no code alone can be moved to a smaller loss
