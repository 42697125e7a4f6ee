"""Distorted photos: what stays, what changes, and that the same draw gives the same."""

import numpy as np
import pytest

from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.datasets.image_loading import resize_bilinear


def photo() -> np.ndarray:
    y, x = np.mgrid[:48, :64]
    return np.stack([3 * x, 4 * y, 100 + x + y], axis=2).astype(np.uint8)


def of(distortions: Distortions, seed: int = 0, side: int = 32) -> np.ndarray:
    return distortions.of(photo(), side, side, np.random.default_rng(seed)).astype(int)


def test_nothing_asked_for_is_the_whole_photo() -> None:
    plain = of(Distortions())
    middle = (resize_bilinear(photo(), 32, 32)[:-1, :-1] + resize_bilinear(photo(), 32, 32)[1:, 1:]) / 2
    assert plain.shape == (32, 32, 3)
    assert np.abs(plain[:-1, :-1] - middle).max() <= 4  # pixels' middles instead of their corners
    assert not Distortions(flip=True)


def test_half_are_mirrored() -> None:
    plain = of(Distortions())
    kinds = [of(Distortions(flip=True), seed) for seed in range(40)]
    mirrored = [np.array_equal(made, plain[:, ::-1]) for made in kinds]
    assert all(is_mirrored or np.array_equal(made, plain) for is_mirrored, made in zip(mirrored, kinds, strict=True))
    assert 10 <= sum(mirrored) <= 30


@pytest.mark.parametrize("crop", [0, 50])
def test_a_crop_shows_its_share(crop: float) -> None:
    spans = [np.ptp(of(Distortions(crop=crop, brightness=0.001), seed)[..., 0]) for seed in range(8)]
    assert np.mean(spans) == pytest.approx(3 * 62 / (1 + crop / 100), rel=0.05)


def test_scale_and_brightness_stay_within_their_bounds() -> None:
    spans = [np.ptp(of(Distortions(scale=100), seed)[..., 0]) for seed in range(40)]
    assert 3 * 62 / 2 * 0.95 <= min(spans) < 3 * 62 * 0.7
    plain = of(Distortions())[..., 2].mean()
    shares = [of(Distortions(brightness=20), seed)[..., 2].mean() / plain for seed in range(40)]
    assert 0.79 <= min(shares) < 0.9
    assert 1.1 < max(shares) <= 1.21


def test_as_phones_take_them() -> None:
    made = [of(Distortions(flip=True, phone=True), seed) for seed in range(12)]
    assert np.array_equal(made[3], of(Distortions(flip=True, phone=True), 3))
    assert len({each.tobytes() for each in made}) == 12
    assert np.std([each.mean() for each in made]) > 10
    gray = Distortions(phone=True).of(photo()[..., :1], 16, 24, np.random.default_rng(2))
    assert gray.shape == (16, 24, 1)
    assert gray.dtype == np.uint8
