"""Makes the graphs with functions, and their results, in tests/runtime/functions; run it with TensorFlow 2.

    python tools/make_function_graphs.py OUT_DIR

Each case becomes CASE.pb, of which tests/graph_files.py makes text, and a line of cases.json: feeds, fetches and
TensorFlow's results.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import function as old_functions

cases: dict[str, Any] = {}
out = pathlib.Path(sys.argv[1])


def case(name: str, function: Callable[..., Any], specs: list[tf.TensorSpec], feeds: list[list[Any]]) -> None:
    """Traces a function, runs it on each of the feeds, and keeps its graph and the results."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    definition = concrete.graph.as_graph_def()
    out.joinpath(f"{name}.pb").write_bytes(definition.SerializeToString())
    inputs = [tensor.name for tensor in concrete.inputs]
    results = []
    for values in feeds:
        given = [tf.constant(value, spec.dtype) for value, spec in zip(values, specs, strict=True)]
        results.append([result.numpy().tolist() for result in tf.nest.flatten(concrete(*given))])
    cases[name] = {
        "fetches": [tensor.name for tensor in concrete.outputs],
        "feeds": [dict(zip(inputs, values, strict=True)) for values in feeds],
        "results": results,
    }


def by_name() -> None:
    """Functions of TensorFlow 1, whose names stand where ops stand; one takes the second result of the other."""

    @old_functions.Defun(tf.float32, func_name="both")
    def both(x: Any) -> Any:
        return x + 1.0, tf.reduce_sum(x)

    @old_functions.Defun(tf.float32, func_name="share")
    def share(x: Any) -> Any:
        more, total = both(x)
        return more / total

    feeds, fetches = {"x:0": [[1.0, 2.0], [3.0, 6.0]]}, ["y:0", "t:0"]
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], "x")
        tf.identity(share(x), "y")
        tf.identity(both(x)[1], "t")
        results = [result.tolist() for result in session.run(fetches, feeds)]
    out.joinpath("by_name.pb").write_bytes(graph.as_graph_def().SerializeToString())
    cases["by_name"] = {"fetches": fetches, "feeds": [feeds], "results": [results]}


NUMBER = tf.TensorSpec([], tf.int32, "n")
ROWS = tf.TensorSpec([None, 2], tf.float32, "x")


def branches(n: Any) -> Any:
    return tf.cond(n > 3, lambda: (n * 2, tf.constant(1)), lambda: (n - 1, tf.constant(0)))


def cases_of(n: Any) -> Any:
    return tf.switch_case(n, [lambda: n + 10, lambda: n + 20, lambda: n + 30])


def nested(n: Any) -> Any:
    def outer(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + j * (i + 1)), (0, total))
        return i + 1, tf.cond(inner[1] > 50, lambda: inner[1] - 50, lambda: inner[1])

    return tf.while_loop(lambda i, t: i < n, outer, (0, 0))


@tf.function(autograph=False)
def counted_body(i: Any, total: Any, rounds: Any) -> Any:
    return total * 1.5 + tf.cast(i, tf.float32), rounds + 1


def counted(n: Any) -> Any:
    """For, up to n, down to it, and in steps."""
    body = counted_body.get_concrete_function(NUMBER, tf.TensorSpec([], tf.float32), NUMBER)
    found = []
    for start, limit, step in ((0, n, 1), (20, n, -3), (n - 7, n, 2)):
        found += tf.raw_ops.For(start=start, limit=limit, delta=step, input=[1.0, 0], body=body)
    return found


@tf.function(autograph=False)
def squares(a: Any, b: Any) -> Any:
    return tf.split(a * a + b, 2, axis=1)


def calls(x: Any) -> Any:
    left, right = squares(x, 1.0)
    return left - right, squares(right, x)[1]


def mapped(x: Any) -> Any:
    return tf.map_fn(lambda row: row * tf.reduce_sum(row), x)


def recurrent(x: Any) -> Any:
    """A loop that keeps its states in a growing array."""
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)

    def step(i: Any, state: Any, array: Any) -> Any:
        state = tf.tanh(state + x[i])
        return i + 1, state, array.write(i, state)

    _, state, array = tf.while_loop(lambda i, s, a: i < tf.shape(x)[0], step, (0, tf.zeros([2]), array))
    return state, array.stack(), tf.gradients(array.stack(), x)[0]


case("branches", branches, [NUMBER], [[5], [2]])
case("cases", cases_of, [NUMBER], [[0], [1], [7], [-1]])
case("nested", nested, [NUMBER], [[0], [4], [8]])
case("counted", counted, [NUMBER], [[0], [5], [12]])
case("calls", calls, [ROWS], [[[[1.0, 2.0], [3.0, -4.0]]]])
case("mapped", mapped, [ROWS], [[[[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]]])
case("recurrent", recurrent, [ROWS], [[[[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]]])
by_name()
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in cases.items())
out.joinpath("cases.json").write_text("{\n" + lines + "\n}\n")
