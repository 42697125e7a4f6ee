"""Trains the digits model with TensorFlow 1.15 and leaves behind what such a script leaves behind.

The product of this script is committed, so nobody needs to run it; it is here to show where the files come from.

Needs TensorFlow 1.15 and scikit-learn (Python 3.7), which carries the images: 1797 handwritten digits of 8 x 8 pixels
from the UCI Machine Learning Repository (E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", CC BY
4.0).

    python train.py

Seeds are fixed; the threads behind the queue still make each run end a little differently. It writes, next to itself:

    training/graph.pbtxt                       the whole graph as text: both towers, gradients, queues, summaries
    training/model.ckpt-<step>.index           the checkpoint of every variable, Adam's slots among them,
    training/model.ckpt-<step>.data-0000?-of-00003    in a shard for each device that variables were put on
    training/model.ckpt-<step>.meta            the graph once more, with its collections
    training/checkpoint                        which checkpoint is the latest
    data/held_out.npz                          images uint8 [360, 8, 8] and labels int64 [360] that training never saw
    data/golden.npz                            TensorFlow's own probabilities [360, 10] for them, from its frozen graph
    data/labels.txt, data/png/*.png            names for the ten outputs, and twelve of the held-out images as files
"""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits
from tensorflow.python.tools import freeze_graph

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINING = os.path.join(HERE, "training")
DATA = os.path.join(HERE, "data")
SEED = 20170901
HELD_OUT = 360
BATCH = 64
STEPS = 1200
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def images_and_labels():
    """All images as uint8 [1797, 8, 8] from 0 to 255 with their labels, shuffled by SEED."""
    digits = load_digits()
    order = np.random.RandomState(SEED).permutation(len(digits.target))
    images = np.rint(digits.images * (255.0 / 16.0)).astype(np.uint8)
    return images[order], digits.target[order].astype(np.int64)


def input_queue(images, labels, name):
    """Batches from a shuffling queue, kept full by background threads; the data itself comes in once, by a feed."""
    with tf.name_scope(name):
        first = {
            "images": tf.placeholder(tf.uint8, images.shape, "all_images"),
            "labels": tf.placeholder(tf.int64, labels.shape, "all_labels"),
        }
        kept = {key: tf.Variable(value, trainable=False, collections=[], name=key) for key, value in first.items()}
        image, label = tf.train.slice_input_producer([kept["images"], kept["labels"]], shuffle=True, seed=SEED)
        image_batch, label_batch = tf.train.shuffle_batch(
            [image, label], BATCH, capacity=2000, min_after_dequeue=1000, seed=SEED, name="shuffle_batch"
        )
        scaled = tf.expand_dims(tf.cast(image_batch, tf.float32) * (1.0 / 255.0), -1, name="scaled")
    fill = ([value.initializer for value in kept.values()], {first["images"]: images, first["labels"]: labels})
    return scaled, label_batch, fill


def network(x, training, dropout_rate):
    """Three convolutions with batch norm and two dense layers; gives the logits.

    Variables live on two devices, as they do when a parameter server holds them; that makes two checkpoint shards.
    """
    for index, (filters, device) in enumerate([(16, "/cpu:0"), (32, "/cpu:0"), (64, "/cpu:1")], 1):
        with tf.device(device):
            x = tf.layers.conv2d(x, filters, 3, padding="same", use_bias=False, name=f"conv{index}")
            x = tf.layers.batch_normalization(x, training=training, fused=False, momentum=0.9, name=f"bn{index}")
        x = tf.nn.relu(x, name=f"relu{index}")
        if index > 1:
            x = tf.layers.max_pooling2d(x, 2, 2, name=f"pool{index}")
    x = tf.layers.flatten(x)
    with tf.device("/cpu:1"):
        x = tf.layers.dense(x, 64, activation=tf.nn.relu, name="hidden")
        x = tf.layers.dropout(x, rate=dropout_rate, training=training, name="dropout")
        return tf.layers.dense(x, 10, name="logits")


def build(images, labels):
    """The graph that training uses, and in it the tower that people ship: from ``image`` to ``probabilities``."""
    queue_images, queue_labels, fill = input_queue(images, labels, "input")
    global_step = tf.train.get_or_create_global_step()

    is_training = tf.placeholder_with_default(False, [], "is_training")
    dropout_rate = tf.placeholder_with_default(0.3, [], "dropout_rate")
    batch = tf.placeholder_with_default(queue_images, [None, 8, 8, 1], "train/images")
    wanted = tf.placeholder_with_default(queue_labels, [None], "train/labels")
    with tf.variable_scope("digits"), tf.name_scope("train/"):
        logits = network(batch, is_training, dropout_rate)
        tf.nn.softmax(logits, name="probabilities")

    with tf.name_scope("loss"):
        cross_entropy = tf.losses.sparse_softmax_cross_entropy(wanted, logits)
        kernels = [v for v in tf.trainable_variables() if v.op.name.endswith("kernel")]
        decay = tf.add_n([tf.nn.l2_loss(v) for v in kernels]) * 1e-4
        loss = tf.add(cross_entropy, decay, name="total")
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), wanted), tf.float32), name="accuracy")
    rate = tf.train.exponential_decay(3e-3, global_step, 200, 0.6, staircase=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step, name="train_op")

    tf.summary.scalar("loss", loss)
    tf.summary.scalar("accuracy", accuracy)
    tf.summary.scalar("learning_rate", rate)
    tf.summary.image("input", batch, max_outputs=3)
    for kernel in kernels:
        tf.summary.histogram(kernel.op.name, kernel)
    tf.summary.merge_all()

    # The shipping tower shares the variables. Its input still hangs on the queue unless somebody feeds `image`.
    image = tf.placeholder_with_default(queue_images, [None, 8, 8, 1], "image")
    with tf.variable_scope("digits", reuse=True), tf.name_scope("serve/"):
        served = tf.check_numerics(network(image, False, dropout_rate), "logits are not finite")
    tf.nn.softmax(served, name="probabilities")
    return train_op, loss, accuracy, is_training, fill


def train(images, labels):
    """Trains, and gives back the prefix of the checkpoint that is left in TRAINING."""
    with tf.Graph().as_default():
        tf.set_random_seed(SEED)
        train_op, loss, accuracy, is_training, (fill_ops, fill_feeds) = build(images, labels)
        saver = tf.train.Saver(sharded=True, max_to_keep=1, save_relative_paths=True)
        config = tf.ConfigProto(device_count={"CPU": 2}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            session.run(fill_ops, fill_feeds)
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            for step in range(1, STEPS + 1):
                _, value, right = session.run([train_op, loss, accuracy], {is_training: True})
                if step % 100 == 0:
                    print(f"step {step}: loss {value:.4f}, accuracy {right:.3f}")
            tf.train.write_graph(session.graph_def, TRAINING, "graph.pbtxt", as_text=True)
            prefix = saver.save(session, os.path.join(TRAINING, "model.ckpt"), global_step=STEPS)
            coordinator.request_stop()
            coordinator.join(threads)
    return prefix


def golden(prefix, images):
    """Probabilities [N, 10] from TensorFlow's own freeze_graph and session, from the files in TRAINING alone."""
    folder = tempfile.mkdtemp()
    frozen = os.path.join(folder, "frozen.pb")
    freeze_graph.freeze_graph(
        os.path.join(TRAINING, "graph.pbtxt"), "", False, prefix, "probabilities", "save/restore_all",
        "save/Const:0", frozen, True, "",
    )  # fmt: skip
    graph_def = tf.GraphDef()
    with open(frozen, "rb") as file:
        graph_def.ParseFromString(file.read())
    shutil.rmtree(folder)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        feed = images[..., np.newaxis].astype(np.float32) / np.float32(255)
        return session.run("probabilities:0", {"image:0": feed})


def write_data(images, labels, probabilities):
    """The held-out images, TensorFlow's answers, and twelve images as PNG files."""
    np.savez_compressed(os.path.join(DATA, "held_out.npz"), images=images, labels=labels)
    np.savez_compressed(os.path.join(DATA, "golden.npz"), probabilities=probabilities)
    with open(os.path.join(DATA, "labels.txt"), "w") as file:
        file.write("\n".join(LABELS) + "\n")
    os.makedirs(os.path.join(DATA, "png"))
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    chosen += [int(np.flatnonzero(labels == digit)[1]) for digit in (3, 8)]
    for index in chosen:
        name = f"{LABELS[labels[index]]}_{index:03d}.png"
        Image.fromarray(images[index]).save(os.path.join(DATA, "png", name))


def main():
    for folder in (TRAINING, DATA):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    images, labels = images_and_labels()
    prefix = train(images[HELD_OUT:], labels[HELD_OUT:])
    probabilities = golden(prefix, images[:HELD_OUT])
    write_data(images[:HELD_OUT], labels[:HELD_OUT], probabilities)
    right = np.mean(np.argmax(probabilities, 1) == labels[:HELD_OUT])
    print(f"held-out accuracy: {right:.2%}")


if __name__ == "__main__":
    main()
