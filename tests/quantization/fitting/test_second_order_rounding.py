"""Codes chosen by what they do to the results are never worse than the nearest ones."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.quantization.fitting.second_order_rounding import loss, round_rows


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
