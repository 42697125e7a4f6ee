"""Weights that a training has rounded keep its steps."""

import tracemalloc

import numpy as np
import pytest

from pocketgraph.quantization.core.quantized_weights import grid_levels, rounded_values


@pytest.mark.parametrize("bits", [8, 4])
def test_weights_on_a_grid_lose_nothing(bits: int) -> None:
    """As FakeQuant leaves them: multiples of one step, of which most channels do not reach the last code."""
    rng = np.random.default_rng(0)
    steps = rng.integers(-100, 101, (8, 3, 3, 5)) if bits == 8 else rng.integers(-5, 6, (8, 3, 3, 5))
    weights = (steps.astype(np.float32) * np.float32(0.0137) + np.float32(1e-9)).astype(np.float64)
    made = rounded_values(weights, np.zeros(8), 0, 0.02, bits)
    np.testing.assert_allclose(made.numpy(), weights, atol=2e-6)


def test_a_channel_of_other_numbers_reaches_the_last_code() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 50))
    weights[1] = rng.integers(-90, 91, 50) * 0.01
    weights[2] = 0
    made = rounded_values(weights, np.zeros(3), 0, 0.02)
    assert np.abs(made.codes[0]).max() == 127
    assert np.abs(made.numpy() - weights)[0].max() > 1e-3
    np.testing.assert_allclose(made.numpy()[1:], weights[1:], atol=1e-8)


def test_many_channels_take_little_memory() -> None:
    weights = np.random.default_rng(0).normal(size=(20_000, 8))
    largest = np.abs(weights).max(axis=1)
    tracemalloc.start()
    try:
        levels = grid_levels(weights, 0, largest, 127)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(levels) == {127}
    assert peak < 5 * weights.nbytes
