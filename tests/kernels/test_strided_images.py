"""Convolutions read images however they lie in memory: channels first, every second column, a channel of several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate

random = np.random.default_rng(5)
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "channels first": lambda x: np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
    "every second column": lambda x: np.repeat(x, 2, axis=2)[:, :, ::2],
    "from right to left": lambda x: np.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1],
    "some of the channels": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "Fortran's order": np.asfortranarray,
    "one channel by a new axis": lambda x: np.ascontiguousarray(x[..., 0])[..., None],
}


def floats(*shape: int) -> np.ndarray:
    return random.normal(size=shape).astype(np.float32)


def by_elements(x: np.ndarray, weights: np.ndarray, padding: bytes, stride: int) -> np.ndarray:
    """A depthwise convolution with a window of 3 x 3 as its definition says, float64."""
    size = x.shape[1:3]
    borders = [max((-(-n // stride) - 1) * stride + 3 - n, 0) if padding == b"SAME" else 0 for n in size]
    wide = np.pad(x.astype(np.float64), [(0, 0), *((b // 2, b - b // 2) for b in borders), (0, 0)])
    rows, columns = ((n - 3) // stride + 1 for n in wide.shape[1:3])
    result = np.zeros((len(x), rows, columns, *weights.shape[2:]))
    for place in np.ndindex(rows, columns):
        top, left = (each * stride for each in place)
        window = wide[:, top : top + 3, left : left + 3]
        result[:, place[0], place[1]] = np.einsum("nijc,ijcm->ncm", window, weights)
    return result.reshape(len(x), rows, columns, -1)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [b"SAME", b"VALID"])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_depthwise_convolutions_and_their_gradients(layout: str, multiplier: int, padding: bytes, stride: int) -> None:
    channels = 1 if layout.startswith("one") else 3
    x, weights = floats(2, 8, 9, channels), floats(3, 3, channels, multiplier)
    attrs = {"strides": (1, stride, stride, 1), "padding": padding}
    laid = LAYOUTS[layout](x)
    expected = by_elements(x, weights, padding, stride)
    (result,) = evaluate(Node("n", "DepthwiseConv2dNative", (), attrs), (laid, weights))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)

    slopes = floats(*expected.shape)
    apart = slopes if layout.startswith("one") else LAYOUTS[layout](slopes)
    filter_node = Node("n", "DepthwiseConv2dNativeBackpropFilter", (), attrs)
    (by_filter,) = evaluate(filter_node, (laid, np.array(weights.shape), apart))
    image_node = Node("n", "DepthwiseConv2dNativeBackpropInput", (), attrs)
    (by_image,) = evaluate(image_node, (np.array(x.shape), weights, apart))
    # the operation is linear in both, so that each element of a gradient is what a single one there gives
    for found, given in ((by_filter, weights), (by_image, x)):
        for _ in range(5):
            place = tuple(int(random.integers(size)) for size in given.shape)
            one = np.zeros_like(given)
            one[place] = 1
            alone = (
                by_elements(x, one, padding, stride) if given is weights else by_elements(one, weights, padding, stride)
            )
            np.testing.assert_allclose(found[place], (alone * slopes).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"])
@pytest.mark.parametrize(("images", "slopes"), [(1, 2), (2, 1), (2, 3)])
def test_gradients_of_other_images_are_refused(op: str, images: int, slopes: int) -> None:
    """Images of 512 KB, which are taken one by one."""
    node = Node("n", op, (), {"strides": (1, 1, 1, 1), "padding": b"SAME"})
    sizes = np.array((3, 3, 16, 16 if op.startswith("Conv") else 1))
    with pytest.raises(RunError, match="batch"):
        evaluate(node, (floats(images, 96, 96, 16), sizes, floats(slopes, 96, 96, 16)))
