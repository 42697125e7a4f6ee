"""Warped pictures where a number is not finite: what TensorFlow multiplies, and what it passes over."""

import numpy as np

from pocketgraph.kernels.image.resizing import resize_bicubic
from pocketgraph.kernels.image.warping import scale_and_translate_grad

NAN, INF = np.nan, np.inf


def test_a_gradient_that_is_not_finite_goes_where_tensorflow_multiplies_it() -> None:
    gradient = np.float32([[INF, -1.0568568706512451], [-1.3943369388580322, 0.7054539322853088], [-INF, -1.51412570]])
    with np.errstate(all="ignore"):
        found = scale_and_translate_grad(
            gradient[None, :, :, None],
            np.zeros((1, 1, 6, 1), np.float32),
            np.float32([1.7941312789916992, 2.459670066833496]),
            np.float32([-1.2146787643432617, 0.12285321950912476]),
            kernel_type="keyscubic",
            antialias=True,
        )
    wanted = [INF, -INF, 0.0017362629296258092, NAN, NAN, NAN]  # TensorFlow 2.21's
    np.testing.assert_allclose(found.reshape(-1), wanted, rtol=1e-5)


def test_a_cubic_picture_of_its_own_size_is_computed_where_it_is_not_finite() -> None:
    picture = np.float32([[0.125, -1, 2, -1], [-0.5, 0.25, -0.125, 0.5], [-INF, 0.5, 0.25, 1.5]])
    with np.errstate(all="ignore"):
        found = resize_bicubic(picture[None, :, :, None], np.int32([3, 4]))
    wanted = [[NAN, NAN, 2, -1], [NAN, NAN, -0.125, 0.5], [NAN, NAN, 0.25, 1.5]]  # TensorFlow's, 1.15 and 2.21
    np.testing.assert_array_equal(found[0, :, :, 0], np.float32(wanted))
