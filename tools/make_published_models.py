"""Writes the networks of which latencies are published, with random weights, for time_published_models.py.

Run with a Python that has TensorFlow 2.16 or newer: ``python tools/make_published_models.py OUT_DIR``. Writes NAME.pb,
a frozen GraphDef, for each name in src/pocketgraph/exporting/devices/published_models.toml.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

keras = tf.keras
layers, networks = keras.layers, keras.applications


def convolution(x: Any, channels: int, kernel: Any, stride: int = 1, *, relu: bool = True) -> Any:
    """A convolution with batch norm, and mostly a Relu."""
    x = layers.Conv2D(channels, kernel, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x) if relu else x


def resnet_50_v15() -> Any:
    """ResNet-50 v1.5, as MLPerf Inference has it: the stride is in the 3 x 3 convolution."""
    given = keras.Input((224, 224, 3))
    x = layers.MaxPool2D(3, 2, padding="same")(convolution(given, 64, 7, 2))
    for channels, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(blocks):
            step = stride if number == 0 else 1
            y = convolution(convolution(x, channels, 1), channels, 3, step)
            y = convolution(y, 4 * channels, 1, relu=False)
            if number == 0:
                x = convolution(x, 4 * channels, 1, step, relu=False)
            x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(given, layers.Dense(1001, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def ds_cnn() -> Any:
    """MLPerf Tiny's keyword spotting network."""
    given = keras.Input((49, 10, 1))
    x = convolution(given, 64, (10, 4), 2)
    for _ in range(4):
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x)))
        x = convolution(x, 64, 1)
    x = layers.Flatten()(layers.AveragePooling2D((25, 5))(x))
    return keras.Model(given, layers.Dense(12, activation="softmax")(x))


def resnet_8() -> Any:
    """MLPerf Tiny's image classification network."""
    given = keras.Input((32, 32, 3))
    x = convolution(given, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = convolution(convolution(x, channels, 3, stride), channels, 3, relu=False)
        if stride > 1:
            x = layers.Conv2D(channels, 1, strides=stride, padding="same")(x)
        x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.Flatten()(layers.AveragePooling2D(8)(x))
    return keras.Model(given, layers.Dense(10, activation="softmax")(x))


def autoencoder() -> Any:
    """MLPerf Tiny's anomaly detection network."""
    given = x = keras.Input((640,))
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(units)(x)))
    return keras.Model(given, layers.Dense(640)(x))


def mobilenet_v1(width: float, side: int, classes: int = 1000) -> Callable[[], Any]:
    """MobileNet v1 of a width for pictures of a size."""
    return lambda: networks.MobileNet((side, side, 3), alpha=width, weights=None, classes=classes)


NETWORKS: dict[str, Callable[[], Any]] = {
    **{f"mobilenet_v1_{w}_{s}": mobilenet_v1(w, s) for w in (0.25, 0.5, 0.75, 1.0) for s in (128, 160, 192, 224)},
    "mobilenet_v1_0.25_96": mobilenet_v1(0.25, 96, 2),
    "mobilenet_v2_1.0_224": lambda: networks.MobileNetV2(weights=None),
    "mobilenet_v3_large_224": lambda: networks.MobileNetV3Large(
        (224, 224, 3), weights=None, include_preprocessing=False
    ),
    "mobilenet_v3_small_224": lambda: networks.MobileNetV3Small(
        (224, 224, 3), weights=None, include_preprocessing=False
    ),
    "nasnet_mobile_224": lambda: networks.NASNetMobile(weights=None),
    "nasnet_large_331": lambda: networks.NASNetLarge(weights=None),
    "inception_v3_299": lambda: networks.InceptionV3(weights=None),
    "resnet_v2_101_299": lambda: networks.ResNet101V2(input_shape=(299, 299, 3), weights=None),
    "resnet_50_v1.5_224": resnet_50_v15,
    "ds_cnn_kws": ds_cnn,
    "resnet_8": resnet_8,
    "autoencoder_ad": autoencoder,
}


def write(name: str, out: pathlib.Path) -> None:
    """Writes one network."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    model = NETWORKS[name]()
    spec = tf.TensorSpec([1, *model.input_shape[1:]], tf.float32, name="input")
    call = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
    graph = convert_variables_to_constants_v2(call).graph.as_graph_def()
    (out / f"{name}.pb").write_bytes(graph.SerializeToString())
    print(name, model.count_params(), flush=True)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for network in sys.argv[2:] or NETWORKS:
        write(network, folder)
