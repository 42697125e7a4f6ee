"""Makes networks over pictures, or recordings, of any size: ``PYTHON picture_models.py FOLDER``, TensorFlow 1 or 2.

Random weights, one NAME.pb each: a U-Net that crops what it joins, a segmentation that resizes to the sizes of earlier
layers, a style transfer with mirrored borders, a super-resolution, a detector with boxes of three layers, and letters
of a recording's spectrum by convolutions with strides.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from length_models import save_all  # type: ignore[import-not-found]  # beside this script

Tensor = Any
CLASSES = 21


def picture(channels: int = 3) -> Tensor:
    return tf.placeholder(tf.float32, [None, None, None, channels], "picture")


def weights(name: str, *shape: int) -> Tensor:
    size = 1
    for each in shape[:-1]:
        size *= each
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=size**-0.5, seed=1))


def convolved(
    x: Tensor, name: str, outputs: int, window: int = 3, stride: int = 1, padding: str = "SAME", curve: Any = tf.nn.relu
) -> Tensor:
    kernel = weights(f"{name}/kernel", window, window, int(x.shape[-1]), outputs)
    x = tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, stride, stride, 1], padding), weights(f"{name}/bias", outputs))
    return curve(x) if curve else x


def doubled(x: Tensor, name: str, outputs: int) -> Tensor:
    """A transposed convolution of stride 2, whose result's size is computed."""
    shape = tf.shape(x)
    target = tf.stack([shape[0], shape[1] * 2, shape[2] * 2, outputs])
    kernel = weights(f"{name}/kernel", 2, 2, outputs, int(x.shape[-1]))
    x = tf.nn.conv2d_transpose(x, kernel, target, [1, 2, 2, 1], "SAME")
    x.set_shape([None, None, None, outputs])
    return tf.nn.relu(tf.nn.bias_add(x, weights(f"{name}/bias", outputs)))


def cropped(x: Tensor, other: Tensor) -> Tensor:
    """The middle of a tensor, as large as another one, which may be smaller."""
    start = (tf.shape(x) - tf.shape(other)) // 2
    found = tf.slice(x, [0, start[1], start[2], 0], [-1, tf.shape(other)[1], tf.shape(other)[2], -1])
    found.set_shape([None, None, None, int(x.shape[-1])])
    return found


def unet() -> Tensor:
    x, levels = picture(1), []
    for level, outputs in enumerate((16, 32, 64)):
        x = convolved(x, f"down_{level}", outputs, padding="VALID")
        x = convolved(x, f"down_{level}_more", outputs, padding="VALID")
        levels.append(x)
        x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    x = convolved(x, "bottom", 128, padding="SAME")
    for level, outputs in reversed([*enumerate((16, 32, 64))]):
        x = doubled(x, f"up_{level}", outputs)
        x = tf.concat([cropped(levels[level], x), x], -1)
        x = convolved(x, f"up_{level}_convolution", outputs, padding="SAME")
    return convolved(x, "classes", 2, 1, curve=None)


def resized(x: Tensor, other: Tensor) -> Tensor:
    return tf.image.resize_bilinear(x, tf.shape(other)[1:3], align_corners=True)


def segmentation() -> Tensor:
    x = whole = picture()
    levels = []
    for level, outputs in enumerate((32, 64, 96, 128)):
        x = convolved(x, f"down_{level}", outputs)
        x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
        levels.append(convolved(x, f"classes_{level}", CLASSES, 1, curve=None))
    pooled = convolved(tf.reduce_mean(x, [1, 2], keepdims=True), "whole", CLASSES, 1)
    x = levels[-1] + tf.image.resize_nearest_neighbor(pooled, tf.shape(levels[-1])[1:3])
    for level in reversed(levels[:-1]):
        x = resized(x, level) + level
    return tf.nn.softmax(resized(x, whole))


def mirrored(x: Tensor, name: str, outputs: int, window: int, stride: int = 1, curve: Any = tf.nn.relu) -> Tensor:
    far = window // 2
    x = tf.pad(x, [[0, 0], [far, far], [far, far], [0, 0]], "REFLECT")
    kernel = weights(f"{name}/kernel", window, window, int(x.shape[-1]), outputs)
    x = tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "VALID")
    mean, variance = tf.nn.moments(x, [1, 2], keep_dims=True)
    x = (x - mean) * tf.rsqrt(variance + 1e-3) * weights(f"{name}/gamma", outputs) + weights(f"{name}/beta", outputs)
    return curve(x) if curve else x


def twice(x: Tensor) -> Tensor:
    return tf.image.resize_nearest_neighbor(x, tf.shape(x)[1:3] * 2)


def style_transfer() -> Tensor:
    x = mirrored(picture() / 255.0, "first", 16, 9)
    x = mirrored(mirrored(x, "second", 32, 3, 2), "third", 64, 3, 2)
    for layer in range(3):
        x += mirrored(mirrored(x, f"residual_{layer}", 64, 3), f"residual_{layer}_more", 64, 3, curve=None)
    x = mirrored(mirrored(twice(x), "fourth", 32, 3), "fifth_before", 32, 3)
    return mirrored(mirrored(twice(x), "fifth", 16, 3), "sixth", 3, 9, curve=tf.sigmoid) * 255.0


def rectified(x: Tensor, name: str) -> Tensor:
    return tf.nn.relu(x) - weights(f"{name}/alpha", int(x.shape[-1])) * tf.nn.relu(-x)


def super_resolution() -> Tensor:
    x = picture(1)
    for layer, (window, outputs) in enumerate(((5, 32), (1, 8), (3, 8), (3, 8), (1, 32))):
        x = rectified(convolved(x, f"layer_{layer}", outputs, window, curve=None), f"layer_{layer}")
    return tf.depth_to_space(convolved(x, "last", 9, curve=None), 3)


def separable(x: Tensor, name: str, outputs: int, stride: int = 1) -> Tensor:
    kernel = weights(f"{name}/depthwise", 3, 3, int(x.shape[-1]), 1)
    x = tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME")
    return convolved(tf.nn.relu6(x), name, outputs, 1, curve=tf.nn.relu6)


def detector() -> Tensor:
    """Boxes and scores of three layers, each layer's behind the last one's."""
    x, boxes, scores = convolved(picture() / 127.5 - 1.0, "first", 16, 3, 2), [], []
    for layer, (outputs, stride) in enumerate(((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 2))):
        x = separable(x, f"layer_{layer}", outputs, stride)
        if layer in (3, 4, 5):
            batch = tf.shape(x)[0]
            boxes.append(tf.reshape(convolved(x, f"boxes_{layer}", 12, curve=None), [batch, -1, 4]))
            scores.append(tf.reshape(convolved(x, f"scores_{layer}", 3 * CLASSES, curve=None), [batch, -1, CLASSES]))
    return tf.concat([tf.concat(boxes, 1), tf.nn.softmax(tf.concat(scores, 1))], -1)


def letters() -> Tensor:
    """Windows of 11 frames, every second one, then blocks of two layers each that are added."""
    x = tf.placeholder(tf.float32, [None, None, 40], "frames")
    for layer, (window, stride, outputs) in enumerate(((11, 2, 64), (11, 1, 64), (13, 2, 96), (13, 1, 96))):
        kernel = weights(f"layer_{layer}", window, int(x.shape[-1]), outputs)
        made = tf.nn.relu(tf.nn.conv1d(x, kernel, stride, "SAME") + weights(f"bias_{layer}", outputs))
        x = made + x if stride == 1 else made
    return tf.nn.log_softmax(tf.nn.conv1d(x, weights("letters", 1, 96, 29), 1, "VALID"))


MODELS = (unet, segmentation, style_transfer, super_resolution, detector, letters)


if __name__ == "__main__":
    save_all(MODELS)
