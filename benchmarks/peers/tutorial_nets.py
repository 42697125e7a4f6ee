"""Writes training steps of tutorials' nets with TensorFlow 1: ``tutorial_nets.py FOLDER [NAME…]``.

mnist has two 5x5 layers, cifar two with LRN, resnet batch norms (resnet_128 over 128 pictures in place of 32),
lstm_dynamic and lstm_static a cell over 28 rows. Each gets a folder that ``training_steps.py --folder FOLDER --names
NAME`` reads. Weights and a batch are drawn.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

tf = tf.compat.v1
RANDOM = np.random.RandomState(7)


def weights(*shape: int, scale: float | None = None) -> Any:
    drawn = RANDOM.normal(size=shape) * (scale or (2 / np.prod(shape[:-1])) ** 0.5)
    return tf.Variable(tf.constant(drawn.astype(np.float32)))


def bias(count: int) -> Any:
    return tf.Variable(tf.constant(0.1, shape=[count]))


def images(*shape: int) -> tuple[Any, Any]:
    return tf.placeholder(tf.float32, shape, "x"), tf.placeholder(tf.int64, shape[:1], "y")


def loss_of(labels: Any, logits: Any) -> Any:
    return tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)


def mnist() -> tuple[Any, Any]:
    x, y = images(50, 28, 28, 1)
    h = x
    for inner, count in ((1, 32), (32, 64)):
        h = tf.nn.relu(tf.nn.conv2d(h, weights(5, 5, inner, count), [1, 1, 1, 1], "SAME") + bias(count))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 3136]), weights(3136, 1024)) + bias(1024))
    loss = loss_of(y, tf.matmul(h, weights(1024, 10)) + bias(10))
    return loss, tf.train.AdamOptimizer(1e-4).minimize(loss)


def cifar() -> tuple[Any, Any]:
    x, y = images(128, 24, 24, 3)
    pool = [1, 3, 3, 1], [1, 2, 2, 1], "SAME"
    lrn = {"depth_radius": 4, "bias": 1.0, "alpha": 0.001 / 9, "beta": 0.75}
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights(5, 5, 3, 64, scale=0.05), [1, 1, 1, 1], "SAME"), bias(64)))
    h = tf.nn.lrn(tf.nn.max_pool(h, *pool), **lrn)
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, weights(5, 5, 64, 64, scale=0.05), [1, 1, 1, 1], "SAME"), bias(64)))
    h = tf.reshape(tf.nn.max_pool(tf.nn.lrn(h, **lrn), *pool), [128, -1])
    decayed = []
    for inner, count in ((2304, 384), (384, 192)):
        decayed.append(weights(inner, count, scale=0.04))
        h = tf.nn.relu(tf.matmul(h, decayed[-1]) + bias(count))
    loss = loss_of(y, tf.matmul(h, weights(192, 10)) + bias(10)) + 0.004 * tf.add_n(list(map(tf.nn.l2_loss, decayed)))
    number = tf.train.get_or_create_global_step()
    with tf.control_dependencies([tf.train.ExponentialMovingAverage(0.9, name="avg").apply([loss])]):
        optimizer = tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.1, number, 1000, 0.1, True))
        gradients = optimizer.compute_gradients(loss)
    with tf.control_dependencies([optimizer.apply_gradients(gradients, global_step=number)]):
        return loss, tf.train.ExponentialMovingAverage(0.9999, number).apply(tf.trainable_variables())


def resnet(batch: int = 32) -> tuple[Any, Any]:
    def rectified(h: Any) -> Any:
        return tf.nn.relu(tf.layers.batch_normalization(h, momentum=0.9, epsilon=1e-5, training=True, fused=True))

    def convolved(h: Any, side: int, count: int, stride: int = 1) -> Any:
        shape = side, side, int(h.shape[-1]), count
        return tf.nn.conv2d(h, weights(*shape), [1, stride, stride, 1], "SAME")

    x, y = images(batch, 32, 32, 3)
    h = convolved(x, 3, 16)
    for count, stride in ((16, 1), (32, 2), (64, 2)):
        inner = rectified(h)
        h = convolved(inner, 1, count, stride) + convolved(rectified(convolved(inner, 3, count, stride)), 3, count)
        h += convolved(rectified(convolved(rectified(h), 3, count)), 3, count)
    loss = loss_of(y, tf.matmul(tf.reduce_mean(rectified(h), [1, 2]), weights(64, 10)) + bias(10))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return loss, tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)


def lstm(is_dynamic: bool) -> tuple[Any, Any]:
    x, y = images(128, 28, 28)
    cell = tf.nn.rnn_cell.BasicLSTMCell(128)
    if is_dynamic:
        last = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0][:, -1]
    else:
        last = tf.nn.static_rnn(cell, tf.unstack(x, 28, 1), dtype=tf.float32)[0][-1]
    loss = loss_of(y, tf.matmul(last, weights(128, 10)) + bias(10))
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss)


NETS = {
    "mnist": mnist,
    "cifar": cifar,
    "resnet": resnet,
    "resnet_128": lambda: resnet(128),
    "lstm_dynamic": lambda: lstm(True),
    "lstm_static": lambda: lstm(False),
}


def main() -> None:
    folder, *names = sys.argv[1:]
    for name in names or NETS:
        with tf.Graph().as_default() as graph:
            loss, train = NETS[name]()
            first = tf.global_variables_initializer().name
            shape = graph.get_tensor_by_name("x:0").shape.as_list()
        own = os.path.join(folder, name)
        os.makedirs(own, exist_ok=True)
        with open(os.path.join(own, "step.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        batch = {"in_x_0": RANDOM.normal(size=shape).astype(np.float32), "in_y_0": RANDOM.randint(0, 10, shape[0])}
        np.savez(os.path.join(own, "golden.npz"), **batch)
        info = {
            "file": "step.pb",
            "inputs": {"x:0": None, "y:0": None},
            "outputs": [loss.name, train.name],
            "pre_run": [{"targets": [first], "feeds": {}}],
        }
        with open(os.path.join(own, "model.json"), "w") as file:
            json.dump(info, file)


if __name__ == "__main__":
    main()
