"""Makes models whose inputs come in any length: ``PYTHON length_models.py FOLDER``, with TensorFlow 1.15 or 2.

From TensorFlow 2.16 on with ``TF_USE_LEGACY_KERAS=1`` and ``pip install tf_keras``: Keras 3 has no ``tf.nn.rnn_cell``.
Random weights, one NAME.pb each: texts (a Conv1D and layers of attention, with and without a mask; GRUs), two layers of
LSTMs in both directions, and recordings (spectrogram, convolutions over time, attention). Besides, of forms that are
common: a tagger of words (a Conv1D and an LSTM in both directions), an encoder as BERT's (token ids, types and mask),
an encoder and a decoder that chooses word after word in a ``while_loop``, dilated convolutions over sound as WaveNet's,
and a fully convolutional network over pictures.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Sequence
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


def attended(x: Tensor, name: str, mask: Tensor = None, curve: Any = tf.nn.relu) -> Tensor:
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
        return normalized(x + dense(curve(dense(x, "wide", 4 * CHANNELS)), "narrow", CHANNELS), "second")


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


def tagger() -> Tensor:
    x = along_time(words(), "convolution", 3, CHANNELS)
    cells = [tf.nn.rnn_cell.LSTMCell(CHANNELS) for _ in range(2)]
    both, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    return dense(tf.concat(both, -1), "tags", 9)


def bert() -> Tensor:
    """Six layers; positions are the first rows of a table, a mask says which words are there."""
    mask = tf.placeholder(tf.int32, [None, None], "mask")
    types = tf.placeholder(tf.int32, [None, None], "types")
    x = words()
    positions = tf.slice(weights("positions", 512, CHANNELS), [0, 0], [tf.shape(x)[1], -1])
    kinds = tf.matmul(tf.one_hot(tf.reshape(types % 2, [-1]), 2), weights("types", 2, CHANNELS))
    x = normalized(x + positions + tf.reshape(kinds, tf.shape(x)), "embeddings")
    seen = tf.cast(tf.minimum(mask, 1), tf.float32)
    for layer in range(6):
        x = attended(x, f"layer_{layer}", seen, gelu)
    return dense(tf.tanh(dense(tf.squeeze(x[:, :1], [1]), "pooler", CHANNELS)), "classes", 2)


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


def decoder() -> Tensor:
    """GRUs read all words; another one then chooses eight, each after the one before."""
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(CHANNELS), words(), dtype=tf.float32, scope="encoder")
    cell, table = tf.nn.rnn_cell.GRUCell(CHANNELS, name="decoder"), weights("answers", WORDS, CHANNELS)
    out = weights("out", CHANNELS, WORDS)

    def chosen(place: Tensor, state: Tensor, word: Tensor, found: Tensor) -> tuple[Tensor, ...]:
        mixed, state = cell(tf.gather(table, word), state)
        word = tf.argmax(tf.matmul(mixed, out), -1, output_type=tf.int32)
        return place + 1, state, word, found.write(place, word)

    start = tf.zeros_like(state[:, 0], tf.int32)
    found = tf.TensorArray(tf.int32, 8, element_shape=[None])
    *_, found = tf.while_loop(lambda place, *_: place < 8, chosen, (0, state, start, found))
    return tf.transpose(found.stack())


def wavenet() -> Tensor:
    x = dense(tf.placeholder(tf.float32, [None, None, 1], "samples"), "in", 32)
    skipped = 0.0
    for layer in range(8):
        with tf.variable_scope(f"layer_{layer}"):
            far = 2**layer
            before = tf.pad(x, [[0, 0], [far, 0], [0, 0]])
            gates = [
                tf.nn.conv1d(before, weights(part, 2, 32, 32), padding="VALID", dilations=far)
                for part in ("filter", "gate")
            ]
            mixed = tf.tanh(gates[0]) * tf.sigmoid(gates[1])
            skipped += dense(mixed, "skip", 32)
            x += dense(mixed, "residual", 32)
    return dense(tf.nn.relu(skipped), "out", 256)


def fully_convolutional() -> Tensor:
    x = picture = tf.placeholder(tf.float32, [None, None, None, 3], "picture")
    for layer, outputs in enumerate((32, 64, 128)):
        kernel = weights(f"down_{layer}", 3, 3, int(x.shape[-1]), outputs)
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME") + weights(f"bias_{layer}", outputs))
    x = tf.nn.conv2d(x, weights("classes", 1, 1, 128, 21), 1, "SAME")
    return tf.image.resize_bilinear(x, tf.shape(picture)[1:3])


MODELS = (
    attention, masked_attention, two_lstms, grus, recording, tagger, bert, decoder, wavenet, fully_convolutional,
)  # fmt: skip


def save_all(models: Sequence[Callable[[], Tensor]]) -> None:
    """Freezes each into NAME.pb of the folder on the command line."""
    tf.disable_eager_execution()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in models:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.identity(make(), "output")
            session.run(tf.global_variables_initializer())
            frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["output"])
            (folder / f"{make.__name__}.pb").write_bytes(frozen.SerializeToString())


if __name__ == "__main__":
    save_all(MODELS)
