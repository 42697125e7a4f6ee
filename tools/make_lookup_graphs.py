"""Makes tests/runtime/lookups/: embeddings looked up by sparse ids, and parts of loops that take sizes from outside.

    PYTHON_OF_TENSORFLOW_1 tools/make_lookup_graphs.py tests/runtime/lookups

Each NAME.pb is a frozen graph, of which tests/graph_files.py makes text; NAME.npz has, for run number r, the feeds
``in_r_TENSOR`` and the results ``out_r_TENSOR``.
"""

import sys

import numpy as np
import tensorflow as tf

from frozen_graphs import keep_all

RNG = np.random.RandomState(23)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f4")


def sparse(dims=2):
    """A sparse tensor of ids, fed in its three pieces."""
    places = tf.placeholder(tf.int64, [None, dims], name="places")
    ids = tf.placeholder(tf.int64, [None], name="ids")
    return tf.SparseTensor(places, ids, tf.placeholder(tf.int64, [dims], name="shape"))


def fed(places, ids, shape):
    return {
        "places:0": np.array(places, "i8").reshape(-1, len(shape)), "ids:0": np.array(ids, "i8"),
        "shape:0": np.array(shape, "i8"),
    }  # fmt: skip


MATRICES = [
    fed([(0, 0), (1, 0), (2, 0)], [4, 4, 0], (3, 1)),
    fed([(0, 0), (0, 1), (1, 0), (3, 0), (3, 1), (3, 2)], [1, 1, 5, 2, 3, 6], (5, 3)),
    fed([(0, 0), (1, 0), (1, 1), (2, 0)], [-1, 3, -2, 6], (3, 2)),
    fed([(0, 0), (1, 0)], [-1, -1], (2, 1)),
    fed([], [], (4, 2)),
    fed([(row, place) for row in range(40) for place in range(3)], [(7 * i) % 7 for i in range(120)], (41, 3)),
]


def combined(how):
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(floats(7, 4)), sparse(), combiner=how)
    return [found, tf.reduce_sum(found, 1)], MATRICES


def three_axes():
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(floats(7, 4)), sparse(3), combiner="mean")
    return [found], [
        fed([(0, 0, 0), (0, 1, 0), (1, 1, 1)], [1, 2, 6], (2, 2, 2)),
        fed([(0, 0, 0)], [3], (1, 1, 1)),
    ]


def default_row():
    """Examples without ids take a row of the table, so nothing is emptied again."""
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(floats(7, 4)), sparse(), combiner="sum", default_id=2)
    return [found], MATRICES


def unsafe():
    found = tf.nn.embedding_lookup_sparse(tf.constant(floats(7, 4)), sparse(), None, combiner="sqrtn")
    return [found], [{name: run[name] for name in ("places:0", "ids:0")} for run in MATRICES[:2]]


def columns():
    """An input layer of feature columns, as estimators have it."""
    ids = sparse()
    column = tf.feature_column.categorical_column_with_identity("ids", 9, default_value=0)
    layer = tf.feature_column.input_layer(
        {"ids": ids, "age": tf.placeholder(tf.float32, [None, 1], name="age")},
        [tf.feature_column.embedding_column(column, 5), tf.feature_column.indicator_column(column),
         tf.feature_column.numeric_column("age")],
    )  # fmt: skip
    return [layer], [{**run, "age:0": floats(int(run["shape:0"][0]), 1)} for run in MATRICES[:3]]


def shared_pieces():
    """What a lookup makes on its way is taken by others too."""
    ids = sparse()
    filled, empty = tf.sparse.fill_empty_rows(ids, tf.constant(0, tf.int64))
    rows = tf.nn.embedding_lookup_sparse(tf.constant(floats(7, 4)), filled, None, combiner="mean")
    return [tf.where(tf.tile(empty[:, None], [1, 4]), tf.zeros_like(rows), rows), filled.values, empty], [
        run for run in MATRICES if (run["ids:0"] >= 0).all()
    ]


def cells_on_branches():
    """A static_rnn with lengths computes each step on a branch, where the axis to join along is a constant too."""
    x = tf.placeholder(tf.float32, [2, 5, 3], name="x")
    length = tf.placeholder(tf.int32, [2], name="length")
    cell = tf.nn.rnn_cell.LSTMCell(8)
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), sequence_length=length, dtype=tf.float32)
    return [tf.stack(outputs, 1), state.h], [
        {"x:0": floats(2, 5, 3), "length:0": np.array(n, "i4")} for n in ((5, 5), (3, 4), (1, 0), (0, 0))
    ]


def growing_products():
    """A decoder that looks at all it has said: products over three axes, by shapes and orders that nodes count."""
    memory = tf.placeholder(tf.float32, [1, None, 32], name="memory")
    most = tf.placeholder(tf.int32, [], name="most")
    table, weights, back = (tf.constant(floats(*shape) / 4) for shape in ((9, 32), (32, 64), (64, 32)))

    def round_(i, said):
        x = tf.gather(table, said)
        x = tf.tensordot(tf.nn.relu(tf.tensordot(x, weights, [[2], [0]])), back, [[2], [0]])
        size = tf.shape(x)[1]
        unseen = (1.0 - tf.matrix_band_part(tf.ones([size, size]), -1, 0)) * -1e9
        x = tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True) + unseen), x)
        x = tf.tensordot(tf.reshape(x, [tf.shape(x)[0], size, 32]), back, [[2], [1]])
        x = tf.tensordot(x, back, [[2], [0]])
        heads = tf.transpose(tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 4, 8]), [0, 2, 1, 3])
        seen = tf.transpose(tf.reshape(memory, [1, tf.shape(memory)[1], 4, 8]), [0, 2, 1, 3])
        weighed = tf.matmul(tf.nn.softmax(tf.matmul(heads, seen, transpose_b=True)), seen)
        x += tf.reshape(tf.transpose(weighed, [0, 2, 1, 3]), tf.shape(x))
        best = tf.argmax(tf.matmul(x[:, -1], table, transpose_b=True), 1)[:, None]
        return i + 1, tf.concat([said, best], 1)

    shapes = [tf.TensorShape([]), tf.TensorShape([1, None])]
    begin = [tf.constant(0), tf.zeros([1, 1], tf.int64)]
    _, said = tf.while_loop(lambda i, said: (i < most) & (said[0, -1] != 8), round_, begin, shapes)
    return [said], [{"memory:0": floats(1, n, 32), "most:0": np.int32(7)} for n in (4, 2, 4)]


def settled_products():
    """What a round computes of tensors that stay the same, on the way to its condition and behind it."""
    memory = tf.placeholder(tf.float32, [None, 16], name="memory")
    most = tf.placeholder(tf.int32, [], name="most")
    weights = tf.constant(floats(16, 16) / 4)

    def goes_on(i, x):
        return (i < most) & (tf.reduce_sum(x) < tf.reduce_sum(tf.matmul(memory, weights)) + 100.0)

    def round_(i, x):
        keys = tf.matrix_band_part(tf.matmul(memory, weights, transpose_b=True), -1, 9)
        return i + 1, x + tf.matmul(tf.nn.softmax(tf.matmul(x, keys, transpose_b=True)), keys)

    _, x = tf.while_loop(goes_on, round_, [tf.constant(0), tf.ones([1, 16])])
    return [x], [{"memory:0": floats(3, 16), "most:0": np.int32(n)} for n in (6, 0, 1)]


def total():
    return combined("sum")


def mean():
    return combined("mean")


def over_root():
    return combined("sqrtn")


GRAPHS = (
    total, mean, over_root, three_axes, default_row, unsafe, columns, shared_pieces,
    cells_on_branches, growing_products, settled_products,
)  # fmt: skip

keep_all(sys.argv[1], GRAPHS)
