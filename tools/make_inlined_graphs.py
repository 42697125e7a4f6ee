"""Makes the frozen graphs with TensorFlow 2's loops and branches in tests/runtime/inlined; run it with TensorFlow 2.

    python tools/make_inlined_graphs.py OUT_DIR

Each case becomes CASE.pb, its control flow as functions, of which tests/graph_files.py makes text, and CASE.npz:
inputs ``in_…`` and TensorFlow's results ``out_…`` by tensor name, with ``_`` for ``:``.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

out = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(5)


def numbers(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def case(name: str, function: Callable[..., Any], specs: Sequence[tf.TensorSpec], values: Sequence[Any]) -> None:
    """Freezes a function, keeps its loops and branches as they are, and runs the frozen graph."""
    traced = tf.function(function).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(traced, lower_control_flow=False)
    definition = frozen.graph.as_graph_def()
    out.joinpath(f"{name}.pb").write_bytes(definition.SerializeToString())
    feeds = dict(zip([tensor.name for tensor in frozen.inputs], values, strict=True))
    fetches = [tensor.name for tensor in frozen.outputs]
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        results = session.run(fetches, feeds)
    arrays = {"in_" + key.replace(":", "_"): value for key, value in feeds.items()}
    arrays |= {"out_" + key.replace(":", "_"): value for key, value in zip(fetches, results, strict=True)}
    np.savez_compressed(out / f"{name}.npz", **arrays)


def keras(name: str, layers: Sequence[Any], shape: tuple[int | None, ...], value: Any) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Input(shape[1:], shape[0]), *layers])
    case(name, lambda x: model(x, training=False), [tf.TensorSpec(shape, tf.float32)], [value])


weights, kernel = tf.Variable(numbers(16, 16) * 0.2), tf.Variable(numbers(3, 3, 4, 4) * 0.2)
NUMBER, FLAG = tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.bool)


def repeated(x: Any, n: Any) -> Any:
    """A loop of unknown length with a convolution."""

    def step(i: Any, v: Any) -> Any:
        return i + 1, tf.nn.relu(tf.nn.conv2d(v, kernel, 1, "SAME")) + v * 0.1

    return tf.while_loop(lambda i, v: i < n, step, [0, x])[1]


def chosen(x: Any, p: Any, n: Any) -> Any:
    """A branch with a convolution, and one of many."""
    y = tf.cond(p, lambda: tf.nn.conv2d(x, kernel, 1, "SAME"), lambda: tf.nn.max_pool2d(x, 2, 1, "SAME"))
    return tf.switch_case(n, [lambda: y * 2.0, lambda: tf.nn.relu(y), lambda: y - 1.0])


def inside(x: Any) -> Any:
    """A branch and a loop in a loop."""

    def step(i: Any, v: Any) -> Any:
        v = tf.cond(i % 2 == 0, lambda: tf.tanh(v @ weights), lambda: v - 0.5)
        v = tf.while_loop(lambda j, u: j < 3, lambda j, u: (j + 1, u @ weights + tf.cast(i, tf.float32)), [0, v])[1]
        return i + 1, v

    return tf.while_loop(lambda i, v: i < 4, step, [0, x])[1]


image = tf.TensorSpec((1, 8, 8, 4), tf.float32)
keras("lstm", [tf.keras.layers.LSTM(12), tf.keras.layers.Dense(3)], (1, 9, 5), numbers(1, 9, 5))
both_ways = tf.keras.layers.Bidirectional(tf.keras.layers.GRU(8, return_sequences=True))
keras("gru_any_length", [both_ways], (None, None, 5), numbers(2, 7, 5))
case("repeated", repeated, [image, NUMBER], [numbers(1, 8, 8, 4), np.int32(5)])
case("chosen", chosen, [image, FLAG, NUMBER], [numbers(1, 8, 8, 4), np.bool_(True), np.int32(7)])
case("inside", inside, [tf.TensorSpec((2, 16), tf.float32)], [numbers(2, 16)])
