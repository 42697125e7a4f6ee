"""ImageSummary: pictures as PNG files in a Summary message.

Source: tensorflow/core/framework/summary.proto for the fields; the op's definition for how numbers become pixels. The
pixels are TensorFlow's, the bytes of the PNG file are not: compressors choose them.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Tensor
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.image.png import encoded
from pocketgraph.kernels.logging.summaries import string, tag_of
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import bytes_field, number_field

COLOR_TYPE = {1: 0, 3: 2, 4: 6}
"""PNG's number for grey, RGB and RGBA, by channels."""
SMALLEST = 1e-6  # pictures whose values all lie below this are black
RED = (255, 0, 0, 255)  # what marks pixels that are not finite, unless the op says otherwise


def pixels_of(picture: Array, bad: Array) -> Array:
    """Numbers as pixels: 0…the largest as 0…255, or, when some are negative, 128 in the middle.

    Args:
        picture: half, float or double (height, width, channels).
        bad: uint8 (channels): what takes the place of a pixel with a channel that is not finite.
    """
    kind = picture.dtype.type  # what TensorFlow multiplies and adds in
    finite = np.isfinite(picture).all(axis=-1)
    good = picture[finite]
    low, high = (good.min(), good.max()) if good.size else (kind(0), kind(0))
    largest, reach, offset = (max(abs(low), abs(high)), 127, 128) if low < 0 else (high, 255, 0)
    scale = (
        kind(0) if largest < SMALLEST else kind(np.float32(reach) / np.float32(largest))
    )  # a float32 for doubles too
    result: Array = np.empty(picture.shape, np.uint8)
    result[finite] = (good * scale + kind(offset)).astype(np.uint8)
    result[~finite] = bad
    return result


@kernel("ImageSummary")
def image_summary(tag: Array, tensor: Array, *, max_images: int = 3, bad_color: Tensor | None = None) -> Array:
    """One Value with a PNG file for each of the first pictures of ``tensor`` (pictures, height, width, channels)."""
    name = tag_of(tag)
    if tensor.ndim != 4 or tensor.shape[3] not in COLOR_TYPE:
        raise RunError(
            f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(tensor.shape)}", where="op 'ImageSummary'"
        )
    channels = tensor.shape[3]
    color = np.array(RED, np.uint8) if bad_color is None else bad_color.numpy().ravel()
    if color.size < channels or color.dtype != np.uint8:
        raise RunError(f"bad_color must have {channels} channels of uint8, not {color.size} of {color.dtype}")
    out = b""
    for number, picture in enumerate(tensor[: max(max_images, 1)]):
        pixels = picture if picture.dtype == np.uint8 else pixels_of(picture, color[:channels])
        said = b"".join(number_field(i, n) for i, n in enumerate(pixels.shape, 1) if n) + bytes_field(
            4, encoded(pixels)
        )
        ending = b"/image/%d" % number if max_images > 1 else b"/image"
        out += bytes_field(1, bytes_field(1, name + ending) + bytes_field(4, said))
    return string(out)
