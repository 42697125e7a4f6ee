"""Kernels that go a quick way, against plain definitions: argmax pooling, scattering, crops, spectrograms."""

from collections.abc import Callable

import numpy as np
import pytest

from pocketgraph.kernels.array.gather_scatter import scatter_nd, tensor_scatter_update
from pocketgraph.kernels.audio.spectrograms import audio_spectrogram, mel_weights, mfcc
from pocketgraph.kernels.image import crop_and_resize as cropping
from pocketgraph.kernels.image.crop_and_resize import crop_and_resize
from pocketgraph.kernels.image.resizing import resize_bilinear
from pocketgraph.kernels.nn.pooling import max_pool_with_argmax


def largest(x: np.ndarray, size: int, stride: int, padding: str) -> tuple[np.ndarray, np.ndarray]:
    """(largest, its place), window by window: of equals the first, and a NaN only where it is the first."""
    batch, rows, columns, depth = x.shape
    counts = [-(-n // stride) if padding == "SAME" else (n - size) // stride + 1 for n in (rows, columns)]
    before = [
        max((count - 1) * stride + size - n, 0) // 2 if padding == "SAME" else 0
        for count, n in zip(counts, (rows, columns), strict=True)
    ]
    best, places = np.zeros((batch, *counts, depth), x.dtype), np.zeros((batch, *counts, depth), np.int64)
    for n, r, c, d in np.ndindex(best.shape):
        place = None
        for i, j in np.ndindex(size, size):
            row, column = r * stride - before[0] + i, c * stride - before[1] + j
            if not (0 <= row < rows and 0 <= column < columns):
                continue
            if place is None or x[n, row, column, d] > x[n, place[0], place[1], d]:
                place = row, column
        assert place is not None
        best[n, r, c, d], places[n, r, c, d] = x[n, place[0], place[1], d], (place[0] * columns + place[1]) * depth + d
    return best, places


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("kind", ["plain", "ties", "not numbers", "whole"])
def test_argmax_pooling(kind: str, size: int, stride: int, padding: str) -> None:
    rng = np.random.default_rng(size)
    x = rng.normal(size=(2, 6, 8, 3)).astype(np.float32)
    if kind in ("ties", "whole"):
        x = np.round(x)
    if kind == "not numbers":
        x[rng.random(x.shape) < 0.2] = np.nan
        x[0, 2:4] = -np.inf
    if kind == "whole":
        x = x.astype(np.int32)
    best, places = max_pool_with_argmax(x, ksize=(1, size, size, 1), strides=(1, stride, stride, 1), padding=padding)
    expected = largest(x, size, stride, padding)
    np.testing.assert_array_equal(best, expected[0])
    np.testing.assert_array_equal(places, expected[1])


def test_scattered_updates_of_one_place_add_up_in_their_order() -> None:
    indices = np.array([[0, 1], [2, 0], [0, 1], [0, 1]], np.int32)
    updates = np.array([1e8, 5, 1, -1e8], np.float32)
    expected = np.zeros((3, 2), np.float32)
    for (row, column), update in zip(indices, updates, strict=True):
        expected[row, column] += update
    np.testing.assert_array_equal(scatter_nd(indices, updates, np.array([3, 2], np.int32)), expected)


def test_of_several_updates_of_one_row_the_last_wins() -> None:
    tensor = np.zeros((4, 2), np.float32)
    indices = np.array([[1], [3], [1], [0], [1]], np.int32)
    updates = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = tensor_scatter_update(tensor, indices, updates)
    np.testing.assert_array_equal(found, [[6, 7], [8, 9], [0, 0], [2, 3]])
    assert not tensor.any()


def test_scattering_nothing_and_outside() -> None:
    assert not scatter_nd(np.zeros((0, 1), np.int32), np.zeros(0, np.float32), np.array([3], np.int32)).any()
    with pytest.raises(ValueError, match="is not in"):
        scatter_nd(np.array([[3]], np.int32), np.ones(1, np.float32), np.array([3], np.int32))


@pytest.mark.parametrize("size", [(4, 5), (40, 5), (13, 17), (3, 60)])
def test_resizing_takes_the_same_way_with_few_rows_as_with_many(size: tuple[int, int]) -> None:
    image = np.random.default_rng(1).normal(size=(2, 13, 17, 3)).astype(np.float32)
    expected = np.zeros((2, *size, 3), np.float32)
    scales = [np.float32(n) / np.float32(m) for n, m in zip((13, 17), size, strict=True)]
    for r, c in np.ndindex(size):
        y, x = np.float32(r) * scales[0], np.float32(c) * scales[1]
        top, left = int(y), int(x)
        bottom, right = min(top + 1, 12) if y > top else top, min(left + 1, 16) if x > left else left
        down, along = np.float32(y - top), np.float32(x - left)
        upper = image[:, top, left] + (image[:, top, right] - image[:, top, left]) * along
        lower = image[:, bottom, left] + (image[:, bottom, right] - image[:, bottom, left]) * along
        expected[:, r, c] = upper + (lower - upper) * down
    np.testing.assert_array_equal(resize_bilinear(image, np.array(size, np.int32)), expected)


def test_a_crop_is_what_resizing_makes_of_the_whole_image() -> None:
    image = np.random.default_rng(2).uniform(0, 9, (2, 9, 7, 3)).astype(np.float32)
    whole = np.array([[0, 0, 1, 1]], np.float32)
    found = crop_and_resize(image, whole, np.array([1], np.int32), np.array([5, 4], np.int32))
    np.testing.assert_allclose(found, resize_bilinear(image[1:], np.array([5, 4]), align_corners=True), rtol=1e-6)
    flipped = crop_and_resize(image, whole[:, [2, 1, 0, 3]], np.array([1], np.int32), np.array([5, 4], np.int32))
    np.testing.assert_allclose(flipped, found[:, ::-1], rtol=1e-5)


def cropped(image: np.ndarray, boxes: np.ndarray, which: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bilinear crops pixel by pixel, in double precision: the op's definition."""
    height, width, depth = image.shape[1:]
    result = np.zeros((len(boxes), *size, depth))
    for n, r, c in np.ndindex(len(boxes), *size):
        places = []
        for low, high, index, count, length in zip(
            boxes[n, :2], boxes[n, 2:], (r, c), size, (height, width), strict=True
        ):
            along = low + (high - low) * index / (count - 1) if count > 1 else (low + high) / 2
            places.append(float(along) * (length - 1))
        (y, x), limits = places, (height - 1, width - 1)
        if not all(0 <= place <= limit for place, limit in zip(places, limits, strict=True)):
            result[n, r, c] = 7
            continue
        top, left = int(y), int(x)
        for row, column in np.ndindex(2, 2):
            share = (1 - abs(y - top - row)) * (1 - abs(x - left - column))
            if share:
                result[n, r, c] += share * image[which[n], top + row, left + column].astype(np.float64)
    return result


@pytest.mark.parametrize(
    ("image", "boxes", "size"),
    [
        ((1, 16, 16, 48), 16, (14, 14)),  # one product for all boxes
        ((3, 8, 9, 16), 7, (12, 10)),  # one for each image
        ((2, 30, 40, 160), 5, (11, 12)),  # one for each box
        ((1, 38, 50, 128), 9, (14, 14)),
        ((2, 60, 50, 3), 6, (4, 5)),  # pixel by pixel
        ((1, 9, 5, 4), 3, (1, 1)),
        ((2, 60, 50, 128), 6, (4, 5)),  # neighbours in pairs
        ((1, 2, 3, 100), 4, (3, 1)),
    ],
)
def test_crops_by_products_and_by_pixels(image: tuple[int, ...], boxes: int, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(11)
    pixels = rng.normal(size=image).astype(np.float32)
    corners = rng.uniform(0, 1, (boxes, 4)).astype(np.float32)
    corners[0] = (-0.2, 0.1, 0.7, 1.3)  # partly outside
    corners[1] = (0, 0, 1, 1)
    which = rng.integers(0, image[0], boxes).astype(np.int32)
    found = crop_and_resize(pixels, corners, which, np.array(size, np.int32), extrapolation_value=7)
    expected = cropped(pixels, corners.astype(np.float64), which, size)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    pixels[0, 1, 2] = np.nan  # reaches its neighbours only
    broken = crop_and_resize(pixels, corners, which, np.array(size, np.int32), extrapolation_value=7)
    reached = np.isnan(cropped(pixels, corners.astype(np.float64), which, size))
    assert np.isnan(broken).sum() <= reached.sum() + 4 * boxes * image[3] * sum(size)
    np.testing.assert_allclose(broken[~np.isnan(broken)], found[~np.isnan(broken)], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", ["_by_products", "_by_windows", "_by_pairs"])
@pytest.mark.parametrize(("image", "size"), [((2, 9, 7, 3), (5, 4)), ((3, 1, 2, 5), (3, 3)), ((1, 20, 2, 1), (1, 9))])
def test_each_way_to_crop(
    way: str, image: tuple[int, ...], size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MULTIPLIED": 1e9, "WINDOW_MULTIPLIED": 1e9, "LEAST_WINDOW": 0, "FEWER_CALLS": 0}.items():
        monkeypatch.setattr(cropping, name, value)
    for name, value in {"LEAST_DEPTH": 0, "PAIR_BLOCK": 64, "MOST_PLACES": 40, "ALONE": 100}.items():
        monkeypatch.setattr(cropping, name, value)
    taken = []
    for other in ("_by_products", "_by_windows", "_by_pairs"):
        quick = getattr(cropping, other) if other == way else lambda *_: False

        def noted(*call: np.ndarray, quick: Callable[..., bool] = quick) -> bool:
            taken.append(quick(*call))
            return taken[-1]

        monkeypatch.setattr(cropping, other, noted)
    rng = np.random.default_rng(3)
    pixels = rng.normal(size=image).astype(np.float32)
    corners = rng.uniform(-0.1, 1.1, (9, 4)).astype(np.float32)
    corners[:3] = (0, 0, 1, 1), (1, 1, 0, 0), (0.5, 0.25, 0.5, 0.25)
    which = rng.integers(0, image[0], 9).astype(np.int32)
    found = crop_and_resize(pixels, corners, which, np.array(size, np.int32), extrapolation_value=7)
    assert sum(taken) == 1
    expected = cropped(pixels, corners.astype(np.float64), which, size)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    none = crop_and_resize(pixels, corners[:0], which[:0], np.array(size, np.int32))
    assert none.shape == (0, *size, image[3])


def test_a_spectrogram_in_blocks_is_the_transform_of_each_window() -> None:
    wave = np.random.default_rng(3).normal(size=(70_000, 2)).astype(np.float32)
    found = audio_spectrogram(wave, window_size=600, stride=300, magnitude_squared=True)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(600) / 600)
    assert found.shape == (2, 232, 513)
    for channel, frame in ((0, 0), (1, 31), (0, 32), (1, 231)):
        part = wave[300 * frame : 300 * frame + 600, channel].astype(np.float64) * window
        spectrum = np.fft.rfft(part, 1024)
        np.testing.assert_allclose(found[channel, frame], np.abs(spectrum) ** 2, rtol=1e-6, atol=1e-9)
    roots = audio_spectrogram(wave, window_size=600, stride=300)
    np.testing.assert_allclose(roots, np.sqrt(found), rtol=1e-6)


def test_frequencies_that_do_not_count_may_be_anything() -> None:
    spectrum = np.random.default_rng(4).uniform(0, 5, (1, 3, 257)).astype(np.float32)
    used = np.flatnonzero(mel_weights(257, 16000.0, 40, 20.0, 4000.0).any(axis=1))
    loud = spectrum.copy()
    loud[..., used[-1] + 1 :] = np.inf
    rate = np.array(16000, np.int32)
    np.testing.assert_array_equal(mfcc(spectrum, rate), mfcc(loud, rate))
