"""Makes the graphs of tests/runtime/recurrent/ that only TensorFlow 2 makes, with its results.

    PYTHON_OF_TENSORFLOW_2 tools/make_keras_recurrent_graphs.py tests/runtime/recurrent

Keras layers whose loops are TensorLists in TensorFlow 1's control flow (``keras_…``), or functions (``functional_…``).
The files are as frozen_graphs.py describes them.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f4")


def keep(folder, name, function, runs, lowered):
    frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=lowered)
    arrays = {}
    for number, run in enumerate(runs):
        for tensor, value in zip(frozen.inputs, run, strict=True):
            arrays[f"in_{number}_{tensor.name}"] = value
        results = frozen(*(tf.constant(value) for value in run))
        for tensor, value in zip(frozen.outputs, results, strict=True):
            arrays[f"out_{number}_{tensor.name}"] = value.numpy()
    definition = frozen.graph.as_graph_def()
    (folder / f"{name}.pb").write_bytes(definition.SerializeToString())
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    print(name, len(definition.node), len(definition.library.function))


def main():
    folder = pathlib.Path(sys.argv[1])
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    for kind, make in (
        ("lstm", lambda: [layers.LSTM(5, return_sequences=True), layers.LSTM(4)]),
        ("gru", lambda: [layers.GRU(5, go_backwards=True)]),
        ("two_ways", lambda: [layers.Bidirectional(layers.LSTM(3, return_sequences=True))]),
    ):
        net = tf.keras.Sequential([tf.keras.Input((6, 3)), *make()])
        for prefix, lowered in (("keras", True), ("functional", False)):
            function = tf.function(lambda x, net=net: net(x), input_signature=[tf.TensorSpec([None, 6, 3])])
            keep(folder, f"{prefix}_{kind}", function, [[floats(1, 6, 3)], [floats(3, 6, 3)]], lowered)
    keep(folder, "keras_ragged", ragged(layers), [ragged_run(0, 3, 7, 9), ragged_run(0, 5, 6, 16, 17)], True)


def ragged(layers):
    """Rows of words of any lengths: how often the loops turn is known when they begin."""
    words = tf.Variable(floats(20, 16))
    both, last = layers.Bidirectional(layers.LSTM(16, return_sequences=True)), layers.LSTM(16)
    last(both(tf.zeros([2, 3, 16]), mask=tf.ones([2, 3], tf.bool)))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64)])
    def answer(values, splits):
        rows = tf.RaggedTensor.from_row_splits(tf.gather(words, values), splits)
        dense = rows.to_tensor()
        mask = tf.sequence_mask(rows.row_lengths(), tf.shape(dense)[1])
        return last(both(dense, mask=mask), mask=mask)

    return answer


def ragged_run(*splits):
    return [RNG.integers(0, 20, splits[-1]).astype("i4"), np.array(splits, "i8")]


main()
