"""Makes graphs that take long beside TensorFlow: ``PYTHON slow_models.py FOLDER [NAME ...]``, with TensorFlow 2.

Random weights, sizes as published ones; a folder each with model.json, graph.pb and golden.npz, as catalogue.py takes
them: crops of boxes from feature maps, Example records of several kinds and numbers, detectors in two stages (Faster
and Mask R-CNN on a thin ResNet), a U-Net of depthwise 7x7 layers, ELMo's two layers of LSTMs both ways, OpenPose, and
LSTMs both ways over texts of several lengths.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

Tensor = Any
RNG = np.random.default_rng(5)
PROPOSALS, CLASSES, SIDES = 50, 20, (600, 800)
CROPS = {  # height, width and channels of a map; boxes; side of a crop
    "crops_38x50x1024": (38, 50, 1024, 100, 14),
    "crops_25x34x256": (25, 34, 256, 100, 14),
    "crops_64x64x256": (64, 64, 256, 100, 14),
    "crops_50x68x256": (50, 68, 256, 300, 7),
    "crops_100x136x256": (100, 136, 256, 300, 7),
    "crops_128x128x256": (128, 128, 256, 100, 14),
    "crops_600x800x64": (600, 800, 64, 100, 14),
}


def weights(*shape: int) -> Tensor:
    return tf.constant(RNG.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape).astype("f4"))


def conv(x: Tensor, size: int, outputs: int, stride: int = 1, relu: bool = True) -> Tensor:
    kernel = weights(size, size, int(x.shape[-1]), outputs)
    y = tf.nn.bias_add(tf.nn.conv2d(x, kernel, strides=stride, padding="SAME"), weights(outputs))
    return tf.nn.relu(y) if relu else y


def block(x: Tensor, inner: int, stride: int) -> Tensor:
    """A bottleneck of ResNet's, with a shortcut by a 1x1 layer."""
    y = conv(conv(conv(x, 1, inner), 3, inner, stride), 1, 4 * inner, relu=False)
    return tf.nn.relu(y + conv(x, 1, 4 * inner, stride, relu=False))


def boxes(count: int) -> Any:
    """(count, 4) boxes as proposals are: y0, x0, y1, x1 in fractions of the image."""
    sides = np.exp(RNG.uniform(np.log(0.05), np.log(0.7), (count, 2)))
    first = RNG.uniform(0, 1, (count, 2)) * (1 - sides)
    return np.concatenate([first, first + sides], 1).astype("f4")


def crops(height: int, width: int, channels: int, count: int, side: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    image = tf.placeholder(tf.float32, [1, height, width, channels], "image")
    wanted = tf.placeholder(tf.float32, [None, 4], "boxes")
    made = tf.image.crop_and_resize(image, wanted, tf.zeros_like(wanted[:, 0], tf.int32), [side, side])
    feeds = {"image:0": RNG.normal(size=(1, height, width, channels)).astype("f4"), "boxes:0": boxes(count)}
    return {"crops": made}, feeds


def suppressed(found: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The boxes of all classes that are left, and their scores."""
    kept_boxes, kept_scores = [], []
    for index in range(CLASSES):
        likely = tf.reshape(tf.where(scores[:, index] > 0.02), [-1])
        some, marks = tf.gather(found[:, index], likely), tf.gather(scores[:, index], likely)
        chosen = tf.image.non_max_suppression(some, marks, 20, iou_threshold=0.6)
        kept_boxes.append(tf.gather(some, chosen))
        kept_scores.append(tf.gather(marks, chosen))
    everything = tf.concat(kept_scores, 0)
    best, order = tf.nn.top_k(everything, tf.minimum(PROPOSALS, tf.shape(everything)[0]))
    return tf.gather(tf.concat(kept_boxes, 0), order), best


def decoded(codes: Tensor, centers: Tensor) -> Tensor:
    """Boxes (…, 4) of codes ty, tx, th, tw around centers and sizes."""
    y, x = (codes[..., i] / 10 * centers[..., 2 + i] + centers[..., i] for i in (0, 1))
    h, w = (tf.exp(codes[..., 2 + i] / 5) * centers[..., 2 + i] for i in (0, 1))
    return tf.clip_by_value(tf.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1), 0.0, 1.0)


def detector(with_masks: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    image = tf.placeholder(tf.float32, [1, *SIDES, 3], "image")
    x = tf.nn.max_pool2d(conv(image, 7, 64, 2), 3, 2, "SAME")
    for inner, stride in ((64, 1), (128, 2), (256, 2)):
        x = block(x, inner, stride)
    seen = conv(x, 3, 512)
    rows, columns, per_place = int(x.shape[1]), int(x.shape[2]), 12
    y, across = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    sizes = [(s * r, s / r) for s in (0.1, 0.2, 0.4, 0.6) for r in (0.7, 1.0, 1.4)]
    anchors = np.stack([np.stack([y, across, 0 * y + h, 0 * y + w], -1) for h, w in sizes], 2).reshape(-1, 4)
    proposed = decoded(tf.reshape(conv(seen, 1, 4 * per_place, relu=False), [-1, 4]), tf.constant(anchors, tf.float32))
    likely = tf.nn.softmax(tf.reshape(conv(seen, 1, 2 * per_place, relu=False), [-1, 2]))[:, 1]
    best, order = tf.nn.top_k(likely, 300)
    some = tf.gather(proposed, order)
    regions = tf.gather(some, tf.image.non_max_suppression(some, best, PROPOSALS, iou_threshold=0.7))

    def cropped(where: Tensor) -> Tensor:
        return tf.image.crop_and_resize(x, where, tf.zeros_like(where[:, 0], tf.int32), [14, 14])

    top = block(tf.nn.max_pool2d(cropped(regions), 2, 2, "SAME"), 512, 1)
    flat = tf.reduce_mean(top, [1, 2])
    scores = tf.nn.softmax(tf.matmul(flat, 0.3 * weights(2048, CLASSES)))
    codes = tf.reshape(tf.matmul(flat, weights(2048, 4 * CLASSES)), [-1, CLASSES, 4])
    centers = tf.concat([(regions[:, :2] + regions[:, 2:]) / 2, regions[:, 2:] - regions[:, :2]], 1)
    found, marks = suppressed(decoded(codes, centers[:, None]), scores)
    outputs = {"boxes": found, "scores": marks}
    if with_masks:
        inner = block(tf.nn.max_pool2d(cropped(found), 2, 2, "SAME"), 512, 1)
        size = tf.stack([tf.shape(inner)[0], 14, 14, 256])
        large = tf.nn.relu(tf.nn.conv2d_transpose(inner, weights(2, 2, 256, 2048), size, 2, "SAME"))
        outputs["masks"] = tf.sigmoid(conv(tf.ensure_shape(large, [None, 14, 14, 256]), 1, CLASSES, relu=False))
    return outputs, {"image:0": RNG.uniform(-1, 1, (1, *SIDES, 3)).astype("f4")}


def unet() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Levels of 32 to 256 channels, each with two depthwise 7x7 layers that 1x1 layers follow."""
    image = tf.placeholder(tf.float32, [1, 128, 128, 3], "image")

    def layers(x: Tensor) -> Tensor:
        channels = int(x.shape[-1])
        for _ in range(2):
            y = tf.nn.depthwise_conv2d(x, weights(7, 7, channels, 1), [1, 1, 1, 1], "SAME")
            x = conv(tf.nn.bias_add(y, weights(channels)), 1, channels)
        return x

    x = conv(image, 3, 32)
    levels = []
    for channels in (32, 64, 128):
        levels.append(layers(x))
        x = conv(tf.nn.max_pool2d(levels[-1], 2, 2, "SAME"), 1, 2 * channels)
    x = layers(x)
    for level in reversed(levels):
        large = tf.image.resize_nearest_neighbor(x, tf.constant(level.shape.as_list()[1:3]))
        x = layers(conv(tf.concat([large, level], 3), 1, int(level.shape[-1])))
    return {"mask": tf.sigmoid(conv(x, 1, 1, relu=False))}, {"image:0": RNG.uniform(size=(1, 128, 128, 3)).astype("f4")}


def elmo() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Two layers both ways, 1,024 cells projected to 128 each (the small model), over 24 words."""
    words = tf.placeholder(tf.float32, [1, 24, 128], "words")
    outputs = []
    for direction in ("forward", "backward"):
        x = words if direction == "forward" else tf.reverse(words, [1])
        for _ in range(2):
            x = x + projected_lstm(x)
        outputs.append(x if direction == "forward" else tf.reverse(x, [1]))
    return {"states": tf.concat(outputs, 2)}, {"words:0": RNG.normal(size=(1, 24, 128)).astype("f4")}


def openpose() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """VGG-19's first ten layers, then fields and heat maps in six stages, those from the second on of 7x7 layers."""
    image = tf.placeholder(tf.float32, [1, 184, 216, 3], "image")
    x = image
    for outputs, count in ((64, 2), (128, 2), (256, 4), (512, 2)):
        for _ in range(count):
            x = conv(x, 3, outputs)
        x = tf.nn.max_pool2d(x, 2, 2, "SAME") if outputs < 512 else x
    seen = conv(conv(x, 3, 256), 3, 128)
    x = seen
    for stage in range(6):
        branches = []
        for outputs in (38, 19):
            y = x
            for _ in range(5 if stage else 3):
                y = conv(y, 7 if stage else 3, 128)
            branches.append(conv(conv(y, 1, 128 if stage else 512), 1, outputs, relu=False))
        x = tf.concat([*branches, seen], 3)
    return {"fields": branches[0], "heat": branches[1]}, {"image:0": RNG.uniform(size=(1, 184, 216, 3)).astype("f4")}


def ragged_bilstm() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """256 cells both ways over eight texts of up to 70 words of 128 features, each until its own end."""
    words = tf.placeholder(tf.float32, [None, None, 128], "words")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    found = []
    for direction in ("forward", "backward"):
        given = words if direction == "forward" else tf.reverse_sequence(words, lengths, seq_axis=1)
        states = masked_lstm(given, lengths, 256)
        found.append(states if direction == "forward" else tf.reverse_sequence(states, lengths, seq_axis=1))
    feeds = {"words:0": RNG.normal(size=(8, 70, 128)).astype("f4"), "lengths:0": RNG.integers(20, 71, 8).astype("i4")}
    feeds["lengths:0"][0] = 70
    return {"states": tf.concat(found, 2)}, feeds


def masked_lstm(x: Tensor, lengths: Tensor, cells: int) -> Tensor:
    """(texts, words, cells); zeros from each text's end on, where its state stays as it is."""
    kernel, bias = weights(int(x.shape[2]) + cells, 4 * cells), weights(4 * cells)
    texts, steps = tf.shape(x)[0], tf.reduce_max(lengths)
    given = tf.transpose(x, [1, 0, 2])

    def step(t: Tensor, state: Tensor, h: Tensor, found: Any) -> Any:
        i, j, f, o = tf.split(tf.matmul(tf.concat([given[t], h], 1), kernel) + bias, 4, 1)
        new_state = tf.sigmoid(f + 1.0) * state + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.sigmoid(o) * tf.tanh(new_state)
        goes_on = tf.tile((t < lengths)[:, None], [1, cells])
        output = tf.where(goes_on, new_h, tf.zeros_like(new_h))
        return t + 1, tf.where(goes_on, new_state, state), tf.where(goes_on, new_h, h), found.write(t, output)

    nothing = tf.zeros([texts, cells])
    begin = 0, nothing, nothing, tf.TensorArray(tf.float32, steps)
    shapes = tf.TensorShape([]), tf.TensorShape([None, cells]), tf.TensorShape([None, cells]), tf.TensorShape(None)
    states = tf.while_loop(lambda t, *_: t < steps, step, begin, shape_invariants=shapes)[3].stack()
    return tf.transpose(states, [1, 0, 2])


def projected_lstm(x: Tensor) -> Tensor:
    kernel, bias, projection = weights(256, 4096), weights(4096), weights(1024, 128)
    steps = tf.shape(x)[1]

    def step(t: Tensor, state: Tensor, h: Tensor, found: Any) -> Any:
        gates = tf.matmul(tf.concat([x[:, t], h], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, 1)
        state = tf.clip_by_value(tf.sigmoid(f + 1.0) * state + tf.sigmoid(i) * tf.tanh(j), -3.0, 3.0)
        h = tf.clip_by_value(tf.matmul(tf.sigmoid(o) * tf.tanh(state), projection), -3.0, 3.0)
        return t + 1, state, h, found.write(t, h)

    begin = 0, tf.zeros([1, 1024]), tf.zeros([1, 128]), tf.TensorArray(tf.float32, steps, element_shape=[1, 128])
    found = tf.while_loop(lambda t, *_: t < steps, step, begin)[3]
    return tf.transpose(found.stack(), [1, 0, 2])


def records(count: int, form: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Examples of 8 features; ``texts``: with a list of texts, which is sparse; ``any``: keys in any order;
    ``pictures``: of a picture, 784 floats and 64 integers."""
    features: dict[str, Any] = {f"number_{i}": tf.io.FixedLenFeature([], tf.float32) for i in range(3)}
    features |= {f"count_{i}": tf.io.FixedLenFeature([], tf.int64) for i in range(2)}
    features |= {"name": tf.io.FixedLenFeature([], tf.string), "vector": tf.io.FixedLenFeature([10], tf.float32)}
    features["ids"] = tf.io.VarLenFeature(tf.int64)
    if form == "texts":
        features["words"] = tf.io.VarLenFeature(tf.string)
    if form == "pictures":
        features = {"picture": tf.io.FixedLenFeature([], tf.string), "pixels": tf.io.FixedLenFeature([784], tf.float32)}
        features["ids"] = tf.io.FixedLenFeature([64], tf.int64)
    serialized = tf.placeholder(tf.string, [None], "serialized")
    parsed = tf.io.parse_example(serialized, features)
    outputs = {}
    for key, value in parsed.items():
        parts = {key: value}
        if isinstance(value, tf.SparseTensor):
            parts = {f"{key}_indices": value.indices, f"{key}_values": value.values, f"{key}_shape": value.dense_shape}
        outputs |= parts
    return outputs, {"serialized:0": [example(form, features) for _ in range(count)]}


def example(form: str, features: dict[str, Any]) -> bytes:
    """One record; its keys in the order in which they were given, or in any."""
    parts = []
    for key, about in features.items():
        feature = tf.train.Feature()
        length = (about.shape or [1])[0] if hasattr(about, "shape") else int(RNG.integers(0, 6))
        if about.dtype == tf.float32:
            feature.float_list.value.extend(RNG.normal(size=length).tolist())
        elif about.dtype == tf.int64:
            feature.int64_list.value.extend(RNG.integers(0, 1000, length).tolist())
        else:
            size = 28 * 28 if key == "picture" else int(RNG.integers(3, 12))
            feature.bytes_list.value.extend([RNG.bytes(size) for _ in range(length)])
        parts.append(tf.train.Example(features=tf.train.Features(feature={key: feature})))
    parts = [parts[i] for i in RNG.permutation(len(parts))] if form == "any" else parts
    inner = b"".join(part.features.SerializeToString() for part in parts)
    return tf.train.Example(features=tf.train.Features.FromString(b"")).SerializeToString()[:1] + varint(inner)


def varint(content: bytes) -> bytes:
    """A field's content behind its length."""
    size, head = len(content), bytearray()
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + content


def models() -> dict[str, Callable[[], tuple[dict[str, Tensor], dict[str, Any]]]]:
    """How each graph is made, with its outputs by name and its inputs' values."""
    found: dict[str, Any] = {name: lambda size=size: crops(*size) for name, size in CROPS.items()}
    found |= {
        "faster_rcnn": lambda: detector(False),
        "mask_rcnn": lambda: detector(True),
        "unet_7x7": unet,
        "elmo": elmo,
        "openpose": openpose,
        "ragged_bilstm": ragged_bilstm,
    }
    for form, counts in {"plain": (8, 32, 64, 512), "texts": (8, 32, 64, 512), "any": (8, 32, 64, 512)}.items():
        found |= {f"records_{form}_{n}": lambda n=n, form=form: records(n, form) for n in counts}
    return found | {f"records_pictures_{n}": lambda n=n: records(n, "pictures") for n in (64, 512)}


def write(folder: pathlib.Path, make: Callable[[], tuple[dict[str, Tensor], dict[str, Any]]]) -> None:
    """Makes one graph, and a folder with it, its inputs and TensorFlow's results."""
    with tf.Graph().as_default() as graph:
        outputs, feeds = make()
        names = [tf.identity(value, name=f"out_{key}").name for key, value in outputs.items()]
        with tf.Session() as session:
            results = session.run(names, feeds)
        definition = graph.as_graph_def()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(definition.SerializeToString())
    kept: dict[str, Any] = {}
    inputs = {}
    for name, value in feeds.items():
        own = "in_" + name.replace(":", "_")
        is_text = isinstance(value, list)
        inputs[name] = {"dtype": "strings"} if is_text else {}
        kept[own] = np.frombuffer(b"".join(value), np.uint8) if is_text else value
        if is_text:
            kept[f"{own}_sizes"] = np.array([len(each) for each in value])
    for name, value in zip(names, results, strict=True):
        if value.dtype != object:
            kept["out_" + name.replace(":", "_")] = value
    np.savez(folder / "golden.npz", **kept)
    ops: dict[str, int] = {}
    for node in definition.node:
        ops[node.op] = ops.get(node.op, 0) + 1
    about = {
        "file": "graph.pb",
        "inputs": inputs,
        "outputs": {n: {} for n in names},
        "ops": ops,
        "runs_in_tf_2_21": True,
    }
    (folder / "model.json").write_text(json.dumps(about))
    print(folder.name, len(definition.node), "nodes", flush=True)


def main() -> None:
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for name, make in models().items():
        if not wanted or name in wanted:
            write(folder / name, make)


if __name__ == "__main__":
    main()
