"""Pictures written as PNG and JPEG files, parts of JPEG files, and boxes drawn into pictures."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array, integer, ints, strings, widened
from pocketgraph.kernels.image.decoding import decode_jpeg, opened
from pocketgraph.kernels.image.png import encoded
from pocketgraph.kernels.registry import kernel


@kernel("EncodePng")
def encode_png(image: Array, *, compression: int = -1) -> Array:
    """A PNG file of each picture (…, rows, columns, 1 to 4 channels); the pixels are TensorFlow's, not the bytes."""
    if image.ndim < 3 or image.shape[-1] not in (1, 2, 3, 4) or not image.size:
        raise RunError(f"image must have a shape of [..., height, width, 1 to 4 channels], not {list(image.shape)}")
    if not -1 <= compression <= 9:
        raise RunError(f"compression should be in [-1,9], got {compression}")
    result = np.empty(image.shape[:-3], object)
    for place in np.ndindex(result.shape):
        result[place] = encoded(image[place], compression)
    return result


def _jpeg(image: Array, form: str, options: dict[str, Any]) -> Array:
    from PIL import Image

    if image.ndim != 3 or not image.size:
        raise RunError(f"image must be 3-dimensional [height, width, channels], not {list(image.shape)}")
    channels = image.shape[2]
    if channels not in (1, 3) or (form and channels != {"grayscale": 1, "rgb": 3}.get(form)):
        raise RunError(f"a picture of {channels} channels cannot be a JPEG file of the format '{form or 'default'}'")
    if not 0 <= options["quality"] <= 100:
        raise RunError(f"quality must be in [0,100], got {options['quality']}")
    if max(image.shape[:2]) > 65535:
        raise RunError(f"a JPEG file has at most 65,535 rows and columns, not {list(image.shape[:2])}")
    written = io.BytesIO()
    Image.fromarray(image[:, :, 0] if channels == 1 else image).save(written, "JPEG", **options)
    return strings([written.getvalue()], ())


@kernel("EncodeJpeg")
def encode_jpeg(
    image: Array, *, format: str = "", quality: int = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: int = 300, y_density: int = 300,
    xmp_metadata: str | bytes = "",
) -> Array:  # fmt: skip
    """A JPEG file; the tables are libjpeg's, the bytes may differ from TensorFlow's."""
    scale = 2.54 if density_unit == "cm" else 1.0  # Pillow counts dots an inch
    options = {"quality": quality, "progressive": progressive, "optimize": optimize_size,
               "dpi": (round(x_density * scale), round(y_density * scale))}  # fmt: skip
    if image.ndim == 3 and image.shape[2] == 3:
        options["subsampling"] = 2 if chroma_downsampling else 0
    return _with_xmp(_jpeg(image, format, options), xmp_metadata)


def _with_xmp(file: Array, metadata: bytes | str) -> Array:
    """The JPEG file with metadata behind its first segment, which is that of JFIF."""
    told = XMP + (metadata.encode() if isinstance(metadata, str) else metadata)
    if told == XMP:
        return file
    if len(told) + 2 > 0xFFFF:
        raise RunError(f"XMP metadata has at most {0xFFFF - 2 - len(XMP):,} bytes, not {len(told) - len(XMP):,}")
    data = file.item()
    end = 4 + struct.unpack_from(">H", data, 4)[0]
    return strings([data[:end] + b"\xff\xe1" + struct.pack(">H", len(told) + 2) + told + data[end:]], ())


XMP = b"http://ns.adobe.com/xap/1.0/\0"


kernel("EncodeJpegVariableQuality")(lambda images, quality: _jpeg(images, "", {"quality": integer(quality)}))


@kernel("DecodeAndCropJpeg")
def decode_and_crop_jpeg(contents: Array, crop_window: Array, *, channels: int = 0, ratio: int = 1) -> Array:
    """The part [top, left, height, width] of what DecodeJpeg gives."""
    whole = decode_jpeg(contents, channels=channels, ratio=ratio)
    window = ints(crop_window)
    if len(window) != 4:
        raise RunError(f"crop_window must have four elements, got {len(window)}")
    top, left, height, width = window
    if (
        top < 0
        or left < 0
        or height <= 0
        or width <= 0
        or top + height > whole.shape[0]
        or left + width > whole.shape[1]
    ):
        raise RunError(f"Invalid JPEG data or crop window: {list(window)} of a picture of {list(whole.shape[:2])}")
    return np.array(whole[top : top + height, left : left + width])


@kernel("ExtractJpegShape")
def extract_jpeg_shape(contents: Array, *, output_type: DType = INT32) -> Array:
    """[rows, columns, channels]; the pixels are not decoded."""
    picture = opened(contents, ("JPEG",))
    return np.array([picture.height, picture.width, len(picture.getbands())], output_type.numpy)


@kernel("DrawBoundingBoxes")
def draw_bounding_boxes(images: Array, boxes: Array) -> Array:
    """Frames in TensorFlow's ten colours."""
    return draw_bounding_boxes_v2(images, boxes, np.zeros((0, 4), np.float32))


COLOURS = np.array([
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1), (0.5, 0.5, 0, 1), (0.5, 0, 0, 1),
    (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
], np.float32)  # fmt: skip

OUTSIDE = 1 << 63


def _pixel(share: np.float32, size: int) -> int:
    """The pixel of a share; what no 64-bit integer holds, and NaN, become the smallest one, as on TensorFlow's x86."""
    place = np.float32(share) * np.float32(size - 1)
    return int(place) if abs(place) < OUTSIDE else -OUTSIDE


@kernel("DrawBoundingBoxesV2")
def draw_bounding_boxes_v2(images: Array, boxes: Array, colors: Array) -> Array:
    """Frames one pixel wide of boxes (pictures, boxes, [top, left, bottom, right]) as shares of the picture."""
    if images.shape[3] not in (1, 3, 4):
        raise RunError(f"The rank of the images should be 4, with 1, 3 or 4 channels, not {list(images.shape)}")
    if boxes.shape[2] != 4 or boxes.shape[0] != images.shape[0]:
        raise RunError(f"boxes of shape {list(boxes.shape)} do not fit pictures of {list(images.shape)}")
    _, height, width, channels = images.shape
    palette = colors if colors.size else np.ones_like(COLOURS) if channels == 1 else COLOURS
    if palette.ndim != 2 or palette.shape[1] < channels:
        raise RunError(
            f"colors must have a row of {channels} values for each colour, not the shape {list(colors.shape)}"
        )
    result, wide = np.array(images), widened(boxes)
    for picture, own in enumerate(wide):
        for number, box in enumerate(own):
            top, bottom = (_pixel(v, height) for v in box[[0, 2]])
            left, right = (_pixel(v, width) for v in box[[1, 3]])
            if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
                continue
            colour = palette[number % len(palette), :channels].astype(images.dtype)
            rows = slice(max(top, 0), min(bottom, height - 1) + 1)
            columns = slice(max(left, 0), min(right, width - 1) + 1)
            if top >= 0:
                result[picture, top, columns] = colour
            if bottom < height:
                result[picture, bottom, columns] = colour
            if left >= 0:
                result[picture, rows, left] = colour
            if right < width:
                result[picture, rows, right] = colour
    return result
