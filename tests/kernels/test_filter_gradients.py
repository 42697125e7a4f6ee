"""Gradients by the filter of a convolution, laid out by rows of windows, by windows or by planes."""

import numpy as np
import pytest

from pocketgraph.kernels.nn import convolution_gradients
from pocketgraph.kernels.nn.convolution_gradients import backprop_filter
from pocketgraph.kernels.windows import padded, window

# Images, filter, dilation, padding; elements of TensorFlow 2.21's Conv2DBackpropFilter (of the last, with dilations, of
# its gradient of Conv2D): [0, 0, 0, 0], [-1, -1, -1, -1], [1, 1, 2, 3], [-1, 0, 1, 2]. The images are sin(0.7 n), the
# slopes cos(0.3 n), in the order of their elements.
RECORDED = [
    ((2, 13, 11, 5), (3, 3, 5, 6), 1, "SAME", [0.65709, -5.55974, 0.77122, -5.18071]),
    ((1, 75, 40, 8), (3, 3, 8, 7), 1, "VALID", [0.593604, 0.929176, 1.8415, -1.9822]),
    ((2, 20, 15, 6), (5, 2, 6, 8), 2, "SAME", [1.55384, -2.07853, -5.76583, -2.13881]),
    ((2, 20, 17, 3), (5, 5, 3, 6), 1, "SAME", [1.64313, 4.7859, 5.38534, 5.60912]),
]
# a block of rows is: a few of an image with a remainder, all of it, or as few as a window covers
BLOCKS = [1, 1 << 13, 1 << 20]


def waves(shape: tuple[int, ...], step: float) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float64) * step


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("images", "filters", "dilation", "padding", "recorded"), RECORDED)
def test_rows_of_windows_give_what_tensorflow_gives(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    dilation: int,
    padding: str,
    recorded: list[float],
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(convolution_gradients, "ROW_ELEMENTS", block)
    x = np.sin(waves(images, 0.7)).astype(np.float32).reshape(images)
    spans = [window(size, taps, 1, padding, dilation) for size, taps in zip(images[1:3], filters[:2], strict=True)]
    shape = (images[0], *(span.output for span in spans), filters[3])
    slopes = np.cos(waves(shape, 0.3)).astype(np.float32).reshape(shape)
    assert convolution_gradients._layout(filters, spans) is convolution_gradients._by_rows
    found = backprop_filter(x, filters, slopes, spans)
    picked = [found[0, 0, 0, 0], found[-1, -1, -1, -1], found[1, 1, 2, 3], found[-1, 0, 1, 2]]
    np.testing.assert_allclose(picked, recorded, rtol=2e-4, atol=2e-4)
    by_windows = convolution_gradients._by_windows(padded(x, spans), filters, slopes, spans)
    np.testing.assert_allclose(found, by_windows.reshape(filters), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_reaches_the_weights_that_saw_it(bad: float) -> None:
    x, slopes = np.ones((1, 16, 16, 8), np.float32), np.ones((1, 16, 16, 4), np.float32)
    x[0, 0, 0, 2] = bad
    found = backprop_filter(x, (3, 3, 8, 4), slopes, [window(16, 3, 1, "SAME")] * 2)
    expected = np.zeros((3, 3, 8), bool)
    expected[:2, :2, 2] = True
    np.testing.assert_array_equal(~np.isfinite(found), np.repeat(expected[..., np.newaxis], 4, axis=3))


# As RECORDED, with a stride of 2 in the first.
RECORDED_OTHERS = [
    ((3, 8, 9, 5), (3, 3, 5, 6), 2, convolution_gradients._by_windows, [-0.42783, 0.809964, -0.0140497, -0.117178]),
    ((2, 16, 15, 3), (3, 3, 3, 4), 1, convolution_gradients._by_planes, [-0.941461, 1.1536, 0.657029, -0.0180355]),
]


@pytest.mark.parametrize("least", [1, 1 << 20])
@pytest.mark.parametrize("product", [1, 1 << 12, 1 << 30])
@pytest.mark.parametrize(("images", "filters", "stride", "layout", "recorded"), RECORDED_OTHERS)
def test_blocks_of_any_size_give_what_tensorflow_gives(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    stride: int,
    layout: convolution_gradients.ByFilter,
    recorded: list[float],
    product: int,
    least: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(convolution_gradients, "SMALL_PRODUCT", product)
    monkeypatch.setattr(convolution_gradients, "LEAST_SUMMED", least)
    x = np.sin(waves(images, 0.7)).astype(np.float32).reshape(images)
    spans = [window(size, taps, stride, "SAME") for size, taps in zip(images[1:3], filters[:2], strict=True)]
    shape = (images[0], *(span.output for span in spans), filters[3])
    slopes = np.cos(waves(shape, 0.3)).astype(np.float32).reshape(shape)
    assert convolution_gradients._layout(filters, spans) is layout
    found = backprop_filter(x, filters, slopes, spans)
    picked = [found[0, 0, 0, 0], found[-1, -1, -1, -1], found[1, 1, 2, 3], found[-1, 0, 1, 2]]
    np.testing.assert_allclose(picked, recorded, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("images", "filters", "stride"),
    [
        ((4, 64, 64, 3), (3, 3, 3, 32), 1),
        ((4, 64, 64, 3), (5, 5, 3, 32), 1),
        ((4, 64, 64, 16), (3, 3, 16, 16), 1),
        ((4, 64, 64, 16), (3, 3, 16, 32), 2),
        ((4, 64, 64, 16), (1, 1, 16, 16), 1),
    ],
)
def test_products_are_small_enough_to_read_matrices_where_they_lie(
    images: tuple[int, ...], filters: tuple[int, ...], stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [window(size, taps, stride, "SAME") for size, taps in zip(images[1:3], filters[:2], strict=True)]
    slopes = np.ones((images[0], *(span.output for span in spans), filters[3]), np.float32)
    sizes = []

    class Watched(np.ndarray):
        """Keeps how many multiplications its products with what is laid out take."""

        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: np.ndarray, **named: object) -> np.ndarray:
            if ufunc is np.matmul:
                sizes.append(given[0].shape[-2] * given[0].shape[-1] * given[1].shape[-1])
            plain = [np.asarray(each) for each in given]
            return getattr(ufunc, method)(*plain, **named)

    monkeypatch.setattr(convolution_gradients, "widened", lambda array: array)
    found = backprop_filter(np.ones(images, np.float32), filters, slopes.view(Watched), spans, in_tiles=False)
    assert sizes
    assert max(sizes) <= 10**6
    assert found[filters[0] // 2, filters[1] // 2, 0, 0] == slopes[..., 0].size
