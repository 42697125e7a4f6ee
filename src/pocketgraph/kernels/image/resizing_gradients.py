"""What cropping boxes and bicubic resizing give back: their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.image.crop_and_resize import samples
from pocketgraph.kernels.image.resizing import cubic_weights
from pocketgraph.kernels.registry import kernel

FLOAT = np.float32


def _steps(low: Array, high: Array, size: int, wanted: int) -> tuple[Array, Array, Array]:
    """(positions (boxes, wanted) in float32, and how much each moves with ``low`` and with ``high``).

    TensorFlow rounds these positions otherwise than those of the image's gradient, which are CropAndResize's own.
    """
    if wanted > 1:
        ratio = FLOAT(size - 1) / FLOAT(wanted - 1)
        along = np.arange(wanted, dtype=FLOAT) * ratio
        places = (low * FLOAT(size - 1))[:, None] + np.arange(wanted, dtype=FLOAT) * ((high - low) * ratio)[:, None]
        return places, FLOAT(size - 1) - along, along
    half = np.full(1, 0.5 * (size - 1), dtype=FLOAT)
    return np.asarray(FLOAT(0.5) * (low + high) * FLOAT(size - 1))[:, None], half, half


def _checked(grads: Array, boxes: Array, box_ind: Array, image: tuple[int, ...], method: str) -> None:
    count = boxes.shape[0] if boxes.ndim else 0
    if len(image) != 4 or grads.ndim != 4 or 0 in image[1:3] or image[3] != grads.shape[3]:
        raise ValueError(f"shapes that do not fit: grads {list(grads.shape)} and image {list(image)}")
    if boxes.shape != (count, 4) or box_ind.shape != (count,) or grads.shape[0] != count:
        raise ValueError(f"shapes that do not fit: boxes {list(boxes.shape)}, box_ind {list(box_ind.shape)}")
    if bool(np.any((box_ind < 0) | (box_ind >= image[0]))):
        raise ValueError(f"box_index has values outside [0, {image[0]})")
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"method must be bilinear or nearest, not '{method}'")


def _inside(places: Array, size: int) -> tuple[Array, Array]:
    """(which places lie in the image, the places drawn into it)."""
    good = (places >= 0) & (places <= size - 1)
    return good, np.clip(np.nan_to_num(places), 0, size - 1)


@kernel("CropAndResizeGradImage")
def crop_and_resize_grad_image(
    grads: Array, boxes: Array, box_ind: Array, image_size: Array, *, T: DType, method: str = "bilinear"
) -> Array:
    """The gradient of CropAndResize by its image, of shape ``image_size`` and type ``T``."""
    shape = ints(image_size)
    _checked(grads, boxes, box_ind, shape, method)
    reserve(shape, np.float64)
    down_good, down = _inside(samples(boxes[:, 0], boxes[:, 2], shape[1], grads.shape[1]), shape[1])
    along_good, along = _inside(samples(boxes[:, 1], boxes[:, 3], shape[2], grads.shape[2]), shape[2])
    total = np.zeros(shape, dtype=np.float64)
    seen = down_good[:, :, None, None] & along_good[:, None, :, None]
    wide = np.where(seen, grads, FLOAT(0))

    def give(row: Array, column: Array, share: Array) -> None:
        np.add.at(total, (box_ind[:, None, None], row[:, :, None], column[:, None, :]), share)

    if method == "nearest":
        give(np.floor(down + 0.5).astype(np.int64), np.floor(along + 0.5).astype(np.int64), wide)
    else:
        top, left = np.floor(down), np.floor(along)
        by_row, by_column = (down - top)[:, :, None, None], (along - left)[:, None, :, None]
        one = FLOAT(1)
        for row, part in ((top, wide * (one - by_row)), (np.ceil(down), wide * by_row)):
            give(row.astype(np.int64), left.astype(np.int64), part * (one - by_column))
            give(row.astype(np.int64), np.ceil(along).astype(np.int64), part * by_column)
    return total.astype(T.numpy)


@kernel("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(
    grads: Array, image: Array, boxes: Array, box_ind: Array, *, method: str = "bilinear"
) -> Array:
    """float32 (boxes, 4): the gradient of bilinear CropAndResize by its boxes."""
    _checked(grads, boxes, box_ind, image.shape, method)
    if method != "bilinear":
        raise ValueError("the gradient by boxes exists for bilinear sampling only")
    height, width = image.shape[1:3]
    y, by_top, by_bottom = _steps(boxes[:, 0], boxes[:, 2], height, grads.shape[1])
    x, by_left, by_right = _steps(boxes[:, 1], boxes[:, 3], width, grads.shape[2])
    (down_good, down), (along_good, along) = _inside(y, height), _inside(x, width)
    top, left = np.floor(down), np.floor(along)
    row_part, column_part = (down - top)[:, :, None, None], (along - left)[:, None, :, None]

    def taken(row: Array, column: Array) -> Array:
        rows, columns = row.astype(np.int64)[:, :, None], column.astype(np.int64)[:, None, :]
        return widened(image[box_ind[:, None, None], rows, columns]).astype(np.float64)

    corners = [taken(row, column) for row in (top, np.ceil(down)) for column in (left, np.ceil(along))]
    by_y = (1 - column_part) * (corners[2] - corners[0]) + column_part * (corners[3] - corners[1])
    by_x = (1 - row_part) * (corners[1] - corners[0]) + row_part * (corners[3] - corners[2])
    seen = down_good[:, :, None, None] & along_good[:, None, :, None]
    rows = np.where(seen, by_y * grads, 0).sum(axis=(2, 3))
    columns = np.where(seen, by_x * grads, 0).sum(axis=(1, 3))
    result = [(rows * by_top).sum(axis=1), (columns * by_left).sum(axis=1)]
    result += [(rows * by_bottom).sum(axis=1), (columns * by_right).sum(axis=1)]
    return np.stack(result, axis=1).astype(FLOAT)


@kernel("ResizeBicubicGrad")
def resize_bicubic_grad(
    grads: Array, original_image: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    """The gradient of ResizeBicubic by its image, of that image's shape and type."""
    if 0 in (*grads.shape[1:3], *original_image.shape[1:3]):
        raise ValueError(f"shapes that do not fit: {list(grads.shape)} and {list(original_image.shape)}")
    if align_corners and half_pixel_centers:
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")
    if grads.shape[0] != original_image.shape[0] or grads.shape[3] != original_image.shape[3]:
        raise ValueError(f"shapes that do not fit: {list(grads.shape)} and {list(original_image.shape)}")
    _, rows, columns, _ = reserve(original_image.shape, np.float64)
    down, by_row = cubic_weights(rows, grads.shape[1], align_corners, half_pixel_centers)
    along, by_column = cubic_weights(columns, grads.shape[2], align_corners, half_pixel_centers)
    total = np.zeros(original_image.shape, dtype=np.float64)
    # each of the 16 products is a float32, as TensorFlow has it also for double images
    for k in range(4):
        for j in range(4):
            share = grads * by_row[:, k].reshape(1, -1, 1, 1) * by_column[:, j].reshape(1, 1, -1, 1)
            where: Any = (slice(None), down[:, k, None], along[None, :, j])
            np.add.at(total, where, share)
    return total.astype(original_image.dtype)
