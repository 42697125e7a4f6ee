"""Makes models whose inputs come in any length: ``PYTHON length_models.py FOLDER``, with TensorFlow 1.15 or 2.

Random weights, one NAME.pb each: texts (a Conv1D and layers of attention, with and without a mask; GRUs), two layers of
LSTMs in both directions, and recordings (spectrogram, convolutions over time, attention).
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import tensorflow.compat.v1 as tf

WORDS, CHANNELS, HEADS, LAYERS = 1000, 128, 4, 4
WINDOW, STEP = 400, 160  # samples of a recording

Tensor = Any


def weights(name: str, *shape: int) -> Tensor:
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=0.05, seed=1))


def words() -> Tensor:
    ids = tf.placeholder(tf.int32, [None, None], "words")
    return tf.gather(weights("embedding", WORDS, CHANNELS), ids)


def along_time(x: Tensor, name: str, width: int, outputs: int, stride: int = 1) -> Tensor:
    kernel = weights(f"{name}/kernel", width, int(x.shape[-1]), outputs)
    return tf.nn.relu(tf.nn.conv1d(x, kernel, stride=stride, padding="SAME") + weights(f"{name}/bias", outputs))


def dense(x: Tensor, name: str, outputs: int) -> Tensor:
    return tf.tensordot(x, weights(f"{name}/kernel", int(x.shape[-1]), outputs), 1) + weights(f"{name}/bias", outputs)


def normalized(x: Tensor, name: str) -> Tensor:
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-6) * weights(f"{name}/gamma", CHANNELS) + weights(
        f"{name}/beta", CHANNELS
    )


def attended(x: Tensor, name: str, mask: Tensor = None) -> Tensor:
    """One layer of a transformer's encoder."""
    with tf.variable_scope(name):
        batch, steps = tf.shape(x)[0], tf.shape(x)[1]
        heads = [
            tf.transpose(tf.reshape(dense(x, part, CHANNELS), [batch, steps, HEADS, CHANNELS // HEADS]), [0, 2, 1, 3])
            for part in ("query", "key", "value")
        ]
        scores = tf.matmul(heads[0], heads[1], transpose_b=True) * (CHANNELS // HEADS) ** -0.5
        if mask is not None:
            scores += (1.0 - mask[:, tf.newaxis, tf.newaxis, :]) * -1e9
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), heads[2]), [0, 2, 1, 3])
        x = normalized(x + dense(tf.reshape(mixed, [batch, steps, CHANNELS]), "output", CHANNELS), "first")
        return normalized(x + dense(tf.nn.relu(dense(x, "wide", 4 * CHANNELS)), "narrow", CHANNELS), "second")


def attention() -> Tensor:
    x = along_time(words(), "convolution", 3, CHANNELS)
    for layer in range(LAYERS):
        x = attended(x, f"layer_{layer}")
    return dense(tf.reduce_mean(x, 1), "classes", 5)


def masked_attention() -> Tensor:
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    x = words()
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
    for layer in range(LAYERS):
        x = attended(x, f"layer_{layer}", mask)
    kept = x * mask[:, :, tf.newaxis]
    return dense(tf.reduce_sum(kept, 1) / tf.reduce_sum(mask, 1, keep_dims=True), "classes", 5)


def two_lstms() -> Tensor:
    x = words()
    for layer in range(2):
        cells = [tf.nn.rnn_cell.LSTMCell(512, num_proj=CHANNELS) for _ in range(2)]
        both, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32, scope=f"layer_{layer}")
        x = tf.concat(both, -1)
    return dense(tf.reduce_mean(x, 1), "classes", 5)


def grus() -> Tensor:
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(CHANNELS) for _ in range(2)])
    _, state = tf.nn.dynamic_rnn(cells, words(), lengths, dtype=tf.float32)
    return dense(state[-1], "classes", 5)


def recording() -> Tensor:
    samples = tf.placeholder(tf.float32, [None, None], "samples")
    spectra = tf.abs(tf.signal.stft(samples, WINDOW, STEP, 512))
    mel = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 7600.0)
    x = tf.log(tf.tensordot(spectra, mel, 1) + 1e-3)
    x.set_shape([None, None, 40])
    x = along_time(along_time(x, "first", 5, CHANNELS, 2), "second", 5, CHANNELS, 2)
    return dense(attended(attended(x, "layer_0"), "layer_1"), "letters", 29)


MODELS = (attention, masked_attention, two_lstms, grus, recording)


def main() -> None:
    tf.disable_eager_execution()
    for make in MODELS:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.identity(make(), "output")
            session.run(tf.global_variables_initializer())
            frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["output"])
            (pathlib.Path(sys.argv[1]) / f"{make.__name__}.pb").write_bytes(frozen.SerializeToString())


if __name__ == "__main__":
    main()
