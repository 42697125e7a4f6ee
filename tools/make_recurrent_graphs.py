"""Makes tests/runtime/recurrent/: recurrent nets, loops and dynamic shapes, with TensorFlow 1.15's results.

    PYTHON_OF_TENSORFLOW_1 tools/make_recurrent_graphs.py tests/runtime/recurrent

Each NAME.pb is a frozen graph, of which tests/graph_files.py makes text; NAME.npz has, for run number r, the feeds
``in_r_TENSOR`` and the results ``out_r_TENSOR``.
"""

import sys

import numpy as np
import tensorflow as tf

from frozen_graphs import keep_all

RNG = np.random.RandomState(11)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f4")


def weights(*shape):
    return tf.constant(floats(*shape) * 0.5)


def basic_lstm():
    x = tf.placeholder(tf.float32, [None, 7, 5], name="x")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(6), x, dtype=tf.float32)
    return [outputs, state.c, state.h], [{"x:0": floats(1, 7, 5)}, {"x:0": floats(3, 7, 5)}]


def lengths():
    """With sequence_length, whose conditions are computed from the feeds in each round."""
    x = tf.placeholder(tf.float32, [2, 6, 4], name="x")
    length = tf.placeholder(tf.int32, [2], name="length")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(5), x, sequence_length=length, dtype=tf.float32)
    runs = [(6, 6), (2, 5), (1, 0), (0, 0)]
    return [outputs, state], [{"x:0": floats(2, 6, 4), "length:0": np.array(r, "i4")} for r in runs]


def any_length():
    """Time is a free dimension: another plan for each length."""
    x = tf.placeholder(tf.float32, [1, None, 4], name="x")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(5), x, dtype=tf.float32)
    return [outputs, state], [{"x:0": floats(1, n, 4)} for n in (1, 3, 9, 3)]


def two_ways():
    x = tf.placeholder(tf.float32, [2, 5, 3], name="x")
    cell = tf.nn.rnn_cell.LSTMCell
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(cell(4, use_peepholes=True), cell(4), x, dtype=tf.float32)
    return [tf.concat(outputs, 2)], [{"x:0": floats(2, 5, 3)}]


def stacked_time_major():
    x = tf.placeholder(tf.float32, [6, 2, 3], name="x")
    cells = [tf.nn.rnn_cell.LSTMCell(4, num_proj=3), tf.nn.rnn_cell.GRUCell(4)]
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), x, dtype=tf.float32, time_major=True)
    return [outputs], [{"x:0": floats(6, 2, 3)}]


def block_cell():
    x = tf.placeholder(tf.float32, [2, 5, 3], name="x")
    outputs, _ = tf.nn.dynamic_rnn(tf.contrib.rnn.LSTMBlockCell(4), x, dtype=tf.float32)
    return [outputs], [{"x:0": floats(2, 5, 3)}]


def block_cells():
    """Cells and whole layers in one op, with and without peepholes and clipping; a GRU cell."""
    x = tf.placeholder(tf.float32, [4, 2, 3], name="x")  # time, batch, inputs
    fused = tf.contrib.rnn.LSTMBlockFusedCell(5, forget_bias=0.5, cell_clip=0.3, use_peephole=True)
    first, (c, h) = fused(x, dtype=tf.float32)
    plain, _ = tf.contrib.rnn.LSTMBlockFusedCell(4, cell_clip=-1)(first, dtype=tf.float32)
    cell = tf.contrib.rnn.LSTMBlockCell(3, use_peephole=True, forget_bias=2.0)
    one, _ = cell(plain[0], cell.zero_state(2, tf.float32))
    gru = tf.contrib.rnn.GRUBlockCellV2(3)
    two, _ = gru(one, plain[1][:, :3])
    return [plain, c, h, one, two], [{"x:0": floats(4, 2, 3)}]


def counted():
    """A number of rounds that the run is given, zero included, with a product in each."""
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)
    _, y = tf.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x)), [0, x])
    return [y], [{"n:0": np.array(k, "i4"), "x:0": floats(2, 3)} for k in (0, 1, 4)]


def never():
    """A loop whose condition is false from the start, known before the run."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)
    _, y = tf.while_loop(lambda i, h: i < 0, lambda i, h: (i + 1, tf.matmul(h, w)), [0, x])
    return [y * 2], [{"x:0": floats(2, 3)}]


def nested():
    """A loop in a loop, a product in the inner one, rounds known before the run."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)

    def outer(i, h):
        _, inside = tf.while_loop(lambda j, g: j < i, lambda j, g: (j + 1, tf.tanh(tf.matmul(g, w))), [0, h])
        return i + 1, inside + x

    _, y = tf.while_loop(lambda i, h: i < 4, outer, [0, x])
    return [y], [{"x:0": floats(2, 3)}]


def branch_in_round():
    """Even rounds multiply, odd rounds add: which branch is taken is known before the run."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)

    def body(i, h):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.matmul(h, w), lambda: h + 0.25)

    _, y = tf.while_loop(lambda i, h: i < 5, body, [0, x])
    return [y], [{"x:0": floats(2, 3)}]


def branch_that_stays():
    """What a branch computes does not change, but the branch is only taken in even rounds."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)

    def body(i, h):
        return i + 1, h * 0.5 + tf.cond(tf.equal(i % 2, 0), lambda: tf.matmul(x, w), lambda: x - 1.0)

    _, y = tf.while_loop(lambda i, h: i < 6, body, [0, x])
    return [y], [{"x:0": floats(2, 3)}]


def branch_by_value():
    """Which branch a round takes is computed from the data."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)

    def body(i, h):
        return i + 1, tf.cond(tf.reduce_sum(h) > 0, lambda: tf.matmul(h, w), lambda: tf.nn.relu(h + 0.7))

    _, y = tf.while_loop(lambda i, h: i < 5, body, [0, x])
    return [y], [{"x:0": floats(2, 3)}, {"x:0": -np.abs(floats(2, 3))}]


def invariant():
    """What does not change is computed in every round; an assertion holds in each."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = weights(3, 3)

    def body(i, h):
        once = tf.matmul(x, w) * 2.0
        with tf.control_dependencies([tf.Assert(tf.reduce_all(h < 1e6), [h])]):
            return i + 1, tf.identity(h) + once * tf.cast(i, tf.float32)

    _, y = tf.while_loop(lambda i, h: i < 4, body, [0, x])
    return [y], [{"x:0": floats(2, 3)}]


def pyramid():
    """A picture of any size, made smaller until it is small: a convolution of another shape in each round."""
    image = tf.placeholder(tf.float32, [1, None, None, 3], name="image")
    w = weights(3, 3, 3, 4)

    def body(k, picture, total):
        maps = tf.nn.relu(tf.nn.conv2d(picture, w, [1, 1, 1, 1], "SAME") + 0.1)
        half = tf.maximum(tf.shape(picture)[1:3] // 2, 1)
        return k + 1, tf.image.resize_bilinear(picture, half), total + tf.reduce_mean(maps, [1, 2])

    loop = tf.while_loop(
        lambda k, picture, total: tf.shape(picture)[1] > 4,
        body,
        [0, image, tf.zeros([1, 4])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([1, None, None, 3]), tf.TensorShape([1, 4])],
    )
    return [loop[0], loop[2]], [{"image:0": floats(1, h, w, 3)} for h, w in ((16, 20), (33, 18), (4, 4), (16, 20))]


def chosen_rows():
    """A net on those rows that pass a test: none, some or all of them."""
    x = tf.placeholder(tf.float32, [None, 4, 4, 2], name="x")
    keep = tf.reshape(tf.where(tf.reduce_sum(x, [1, 2, 3]) > 0), [-1])
    maps = tf.nn.relu(tf.nn.conv2d(tf.gather(x, keep), weights(3, 3, 2, 3), [1, 1, 1, 1], "VALID"))
    y = tf.nn.softmax(tf.matmul(tf.reshape(maps, [-1, 12]), weights(12, 5)))
    feeds = [floats(6, 4, 4, 2), np.abs(floats(3, 4, 4, 2)), -np.abs(floats(2, 4, 4, 2)), floats(6, 4, 4, 2)]
    return [y], [{"x:0": value} for value in feeds]


def dead_branch():
    """A net on each branch; only one runs."""
    x = tf.placeholder(tf.float32, [1, 6, 6, 2], name="x")
    p = tf.placeholder(tf.bool, [1], name="p")
    w = weights(3, 3, 2, 3)
    y = tf.cond(
        tf.reduce_any(p),
        lambda: tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")),
        lambda: tf.pad(tf.nn.conv2d(x, w, [1, 2, 2, 1], "VALID"), [[0, 0], [2, 2], [2, 2], [0, 0]]),
    )
    return [y], [{"x:0": floats(1, 6, 6, 2), "p:0": np.array([v])} for v in (True, False)]


def mapped_net():
    """A small net on each picture of a batch of any size, by map_fn."""
    x = tf.placeholder(tf.float32, [None, 5, 5, 2], name="x")
    w, v = weights(3, 3, 2, 3), weights(27, 4)

    def one(picture):
        maps = tf.nn.conv2d(picture[None], w, [1, 1, 1, 1], "VALID")
        return tf.matmul(tf.reshape(maps, [1, 27]), v)[0]

    return [tf.map_fn(one, x)], [{"x:0": floats(n, 5, 5, 2)} for n in (1, 4)]


def joined_pieces():
    """Pieces of different sizes written into a TensorArray and joined."""
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = weights(3, 2)

    def body(i, pieces):
        return i + 1, pieces.write(i, tf.matmul(x[: i + 1], w))

    pieces = tf.TensorArray(tf.float32, 3, infer_shape=False, element_shape=[None, 2])
    _, pieces = tf.while_loop(lambda i, _: i < 3, body, [0, pieces])
    return [pieces.concat()], [{"x:0": floats(4, 3)}]


def fused_lengths():
    """A whole layer in one op, which takes as many steps as the longest sequence has."""
    x = tf.placeholder(tf.float32, [6, 2, 4], name="x")
    length = tf.placeholder(tf.int32, [2], name="length")
    cell = tf.contrib.rnn.LSTMBlockFusedCell(5, use_peephole=True)
    outputs, (c, h) = cell(x, dtype=tf.float32, sequence_length=length)
    runs = [(6, 6), (2, 5), (1, 0), (0, 0)]
    return [outputs, c, h], [{"x:0": floats(6, 2, 4), "length:0": np.array(r, "i4")} for r in runs]


def ends_by_lengths(kept, filler):
    """A loop to the longest length, one variable of which may change in every round, and what fills the outputs."""
    x = tf.placeholder(tf.float32, [5, 2, 3], name="x")
    length = tf.placeholder(tf.int32, [2], name="length")
    w = weights(3, 3)
    end = tf.minimum(5, tf.maximum(1, tf.reduce_max(length)))

    def body(time, state, total, out):
        over = time >= length
        new = tf.tanh(tf.matmul(state, w) + x[time])
        more = total + new
        out = out.write(time, tf.where(over, tf.fill([2, 3], filler), new))
        return time + 1, tf.where(over, state, new), tf.where(over, total, more) if kept else more, out

    first = [
        tf.constant(0),
        tf.zeros([2, 3]),
        tf.zeros([2, 3]),
        tf.TensorArray(tf.float32, 5, element_shape=[2, 3]),
    ]
    _, state, total, out = tf.while_loop(lambda time, *_: time < end, body, first)
    runs = [(5, 4), (2, 3), (0, 1)]
    fetched = [state, total, out.stack()]
    return fetched, [{"x:0": floats(5, 2, 3), "length:0": np.array(r, "i4")} for r in runs]


def ends_where_nothing_changes():
    return ends_by_lengths(True, 0.0)


def ends_where_a_sum_goes_on():
    return ends_by_lengths(False, 0.0)


def ends_where_outputs_are_filled():
    return ends_by_lengths(True, 2.0)


GRAPHS = (
    basic_lstm, lengths, any_length, two_ways, stacked_time_major, block_cell, block_cells, counted, never, nested,
    branch_in_round, branch_that_stays, branch_by_value, invariant, pyramid, chosen_rows,
    dead_branch, mapped_net, joined_pieces,
    fused_lengths, ends_where_nothing_changes, ends_where_a_sum_goes_on, ends_where_outputs_are_filled,
)  # fmt: skip


keep_all(sys.argv[1], GRAPHS)
