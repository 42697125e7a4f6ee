"""Makes more of tests/runtime/loops/: branches in the conditions of loops, and in their bodies by the round, with
TensorFlow 1.15's results; in both of its forms of control flow.

    PYTHON_OF_TENSORFLOW_1 tools/make_branched_loop_graphs.py tests/runtime/loops

The files are as frozen_graphs.py describes them. A ``break`` becomes a branch in the condition when autograph writes
it.
"""

import sys

import numpy as np
import tensorflow as tf

from frozen_graphs import keep_all

RNG = np.random.RandomState(37)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f4")


def rows():
    x = tf.placeholder(tf.float32, [6], name="x")
    return x, [{"x:0": np.arange(6, dtype="f4")}, {"x:0": floats(6) + 1}]


def condition_of_constants():
    """The condition is a branch whose ways are constants: only what they wait for tells which."""
    x, runs = rows()
    test = lambda i, _: tf.cond(i < 4, lambda: tf.constant(True), lambda: tf.constant(False))  # noqa: E731
    return list(tf.while_loop(test, lambda i, s: (i + 1, s + x[i]), [0, 0.0])), runs


def condition_of_a_case():
    x, runs = rows()

    def test(i, s):
        return tf.switch_case(i % 3, [lambda: i < 5, lambda: tf.constant(True), lambda: s < 40.0])

    return list(tf.while_loop(test, lambda i, s: (i + 1, s + x[i % 6]), [0, 0.0])), runs


def condition_by_a_value():
    x, runs = rows()
    test = lambda i, s: tf.logical_and(i < 6, tf.cond(s < 5, lambda: i < 5, lambda: tf.constant(False)))  # noqa: E731
    return list(tf.while_loop(test, lambda i, s: (i + 1, s + x[i]), [0, 0.0])), runs


def condition_functional():
    return functional(condition_of_constants)


def case_functional():
    return functional(condition_of_a_case)


def break_functional():
    return functional(break_by_counter)


def functional(make):
    """The same with If, Case and While, which TensorFlow 1.15 can write too."""
    tf.enable_control_flow_v2()
    try:
        tensors, runs = make()
        return [tf.identity(tensor) for tensor in tensors], runs
    finally:
        tf.disable_control_flow_v2()


def break_by_counter():
    x, runs = rows()

    def summed(x):
        s, i = tf.constant(0.0), tf.constant(0)
        while i < 6:
            if i == 4:
                break
            s += x[i]
            i += 1
        return [s, i]

    return tf.autograph.to_graph(summed)(x), runs


def continue_and_break():
    x, runs = rows()

    def summed(x):
        s, i = tf.constant(0.0), tf.constant(0)
        while i < 40:
            i += 1
            if i % 3 == 1:
                continue
            s += x[i % 6]
            if s > 9.5:
                break
        return [s, i]

    return tf.autograph.to_graph(summed)(x), runs


def first_round_reads_constants():
    """A memory that the first round makes of constants and the others take over: equal nodes, other values."""
    x = tf.placeholder(tf.float32, [8, 3], name="x")
    memory, weights = tf.constant(floats(4, 3)), tf.constant(floats(3, 3))

    def body(i, kept, read):
        now = tf.cond(tf.equal(i, 0), lambda: tf.concat([memory, memory], 0), lambda: kept)
        chosen = tf.nn.softmax(tf.reduce_sum(now * tf.tanh(now), 1) * 2.0)
        shifted = tf.roll(tf.reverse(chosen, [0]), 1, 0)
        return (
            i + 1,
            tf.tanh(tf.matmul(now, weights)) + x[i] * shifted[:, None],
            tf.reduce_sum(shifted[:, None] * now, 0),
        )

    start = [0, tf.zeros([8, 3]), tf.zeros([3])]
    return list(tf.while_loop(lambda i, *_: i < 8, body, start))[1:], [{"x:0": floats(8, 3)} for _ in range(2)]


def long_with_first_round():
    """The same, long enough to become a loop of many rounds each."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    memory, weights = tf.constant(floats(2, 3)), tf.constant(floats(3, 3))

    def body(i, kept):
        now = tf.cond(tf.equal(i, 0), lambda: tf.concat([memory[:1], memory[1:]], 0), lambda: kept)
        return i + 1, tf.tanh(tf.matmul(tf.square(now), weights) + x)

    return [tf.while_loop(lambda i, _: i < 200, body, [0, tf.zeros([2, 3])])[1]], [{"x:0": floats(2, 3)}]


def counter_that_leaves():
    """The round in which dynamic_rnn ends, by its sequences' lengths."""
    x, lengths = tf.placeholder(tf.float32, [2, 7, 3], name="x"), tf.placeholder(tf.int32, [2], name="lengths")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4), x, sequence_length=lengths, dtype=tf.float32)
    time = tf.get_default_graph().get_tensor_by_name("rnn/while/Exit_1:0")
    runs = [{"x:0": floats(2, 7, 3), "lengths:0": np.array(n, "i4")} for n in ([3, 5], [0, 0], [7, 1])]
    return [outputs, state, tf.identity(time)], runs


GRAPHS = (
    condition_of_constants, condition_of_a_case, condition_by_a_value, condition_functional, case_functional,
    break_functional, break_by_counter, continue_and_break, first_round_reads_constants, long_with_first_round,
    counter_that_leaves,
)  # fmt: skip


keep_all(sys.argv[1], GRAPHS)
