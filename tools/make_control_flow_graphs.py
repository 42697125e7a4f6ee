"""Makes the control flow graphs and their results in tests/runtime/graphs; run it with TensorFlow 1.15.

    python tools/make_control_flow_graphs.py OUT_DIR

Each case becomes CASE.pb, of which tests/graph_files.py makes text, and a line of cases.json: feeds, fetches and
TensorFlow's results.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
cases: dict[str, Any] = {}


def case(name: str, feeds: list[dict[str, Any]], build: Any) -> None:
    """Builds a graph whose fetches ``build`` gives back, runs it on each of the feeds, and keeps both."""
    with tf.Graph().as_default() as graph:
        fetches = build()
        with tf.Session() as session:
            if tf.global_variables():
                session.run(tf.global_variables_initializer())
            results = [[value.tolist() for value in session.run(fetches, feed)] for feed in feeds]
        definition = graph.as_graph_def()
    out.joinpath(f"{name}.pb").write_bytes(definition.SerializeToString())
    cases[name] = {"fetches": [fetch.name for fetch in fetches], "feeds": feeds, "results": results}


def number(name: str = "n") -> Any:
    return tf.placeholder(tf.int32, [], name)


def nested_loops() -> list[Any]:
    """The sum of j·(i+1) over j < i < n, and how often the inner loop ran."""
    n = number()

    def outer(i: Any, total: Any, count: Any) -> Any:
        inner = tf.while_loop(
            lambda j, t, c: j < i, lambda j, t, c: (j + 1, t + j * (i + 1), c + 1), (tf.constant(0), total, count)
        )
        return i + 1, inner[1], inner[2]

    return list(tf.while_loop(lambda i, t, c: i < n, outer, (tf.constant(0), tf.constant(0), tf.constant(0))))


def cond_in_loop() -> list[Any]:
    """The steps of Collatz' sequence from n down to 1, and its peak."""
    n = number()

    def step(k: Any, steps: Any, peak: Any) -> Any:
        after = tf.cond(tf.equal(k % 2, 0), lambda: k // 2, lambda: 3 * k + 1)
        return after, steps + 1, tf.maximum(peak, after)

    return list(tf.while_loop(lambda k, s, p: k > 1, step, (n, tf.constant(0), n)))


def loop_in_cond() -> list[Any]:
    """n! where ``up`` is true, else -n; an untaken loop must not run, nor its constants count as live."""
    n = number()
    up = tf.placeholder(tf.bool, [], "up")

    def factorial() -> Any:
        return tf.while_loop(lambda i, p: i > 0, lambda i, p: (i - 1, p * i), (n, tf.constant(1)))[1]

    return [tf.cond(up, factorial, lambda: tf.negative(n))]


def nested_conds() -> list[Any]:
    """A number that tells which of three branches was taken; constants live on each."""
    n = number()
    inner = lambda: tf.cond(n > 10, lambda: tf.constant(2), lambda: tf.constant(1))  # noqa: E731
    return [tf.cond(n > 0, inner, lambda: tf.constant(0))]


def mapped() -> list[Any]:
    """A loop over the rows of x through TensorArrays, with the sizes of what comes out."""
    x = tf.placeholder(tf.float32, [None, 2], "x")
    y = tf.map_fn(lambda row: row * tf.reduce_sum(row), x)
    return [y, tf.shape(y)]


def loop_gradient() -> list[Any]:
    """d(x^(2^n))/dx by TensorFlow's own gradient of a loop: stacks pushed forwards and popped backwards."""
    x = tf.placeholder(tf.float32, [], "x")
    n = number()
    y = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * v), (tf.constant(0), x))[1]
    return [y, tf.gradients(y, x)[0]]


def map_gradient() -> list[Any]:
    """The gradient through TensorArrays: theirs accumulate."""
    x = tf.placeholder(tf.float32, [None, 2], "x")
    y = tf.map_fn(lambda row: row * tf.reduce_sum(row), x)
    return [tf.gradients(tf.reduce_sum(y), x)[0]]


def accumulated() -> list[Any]:
    """A TensorArray that grows while it is written, concatenated; pieces of different lengths."""
    n = number()
    array = tf.TensorArray(tf.int32, size=0, dynamic_size=True, infer_shape=False)
    array = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, tf.range(i + 1))), (tf.constant(0), array)
    )[1]
    return [array.concat(), array.size()]


def counted() -> list[Any]:
    """A variable of each kind, changed in order and read after."""
    old = tf.get_variable("old", [], tf.float32, tf.constant_initializer(1.0), use_resource=False)
    new = tf.get_variable("new", [2], tf.float32, tf.constant_initializer(2.0), use_resource=True)
    with tf.control_dependencies([tf.assign_add(old, 2.0), new.assign_sub([1.0, 0.5])]):
        return [old.read_value(), new.read_value()]


out = pathlib.Path(sys.argv[1])
case("nested_loops", [{"n:0": k} for k in (0, 1, 2, 5)], nested_loops)
case("cond_in_loop", [{"n:0": k} for k in (1, 6, 27)], cond_in_loop)
case("loop_in_cond", [{"n:0": 5, "up:0": True}, {"n:0": 5, "up:0": False}, {"n:0": 0, "up:0": True}], loop_in_cond)
case("nested_conds", [{"n:0": k} for k in (-1, 5, 20)], nested_conds)
case("mapped", [{"x:0": [[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]}, {"x:0": [[4.0, 4.0]]}], mapped)
case("loop_gradient", [{"x:0": 1.5, "n:0": 3}, {"x:0": -2.0, "n:0": 0}], loop_gradient)
case("map_gradient", [{"x:0": [[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]}], map_gradient)
case("accumulated", [{"n:0": 1}, {"n:0": 4}], accumulated)
case("counted", [{}], counted)
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in cases.items())
out.joinpath("cases.json").write_text("{\n" + lines + "\n}\n")
