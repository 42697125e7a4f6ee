"""Makes tests/runtime/loops/: long loops, and loops that end by a value, with TensorFlow 1.15's results.

    PYTHON_OF_TENSORFLOW_1 tools/make_loop_graphs.py tests/runtime/loops

The files are as frozen_graphs.py describes them.
"""

import sys

import numpy as np
import tensorflow as tf

from frozen_graphs import keep_all

RNG = np.random.RandomState(23)
CELL = tf.nn.rnn_cell


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f4")


def weights(*shape):
    return tf.constant(floats(*shape) * 0.5)


def long_lstm():
    x = tf.placeholder(tf.float32, [2, 150, 3], name="x")
    outputs, state = tf.nn.dynamic_rnn(CELL.BasicLSTMCell(5), x, dtype=tf.float32)
    return [outputs, state.c, state.h], [{"x:0": floats(2, 150, 3)}]


def long_of_any_length():
    """Another plan for each length: chunks of other sizes, and lengths of which nothing is left over."""
    x = tf.placeholder(tf.float32, [1, None, 3], name="x")
    outputs, state = tf.nn.dynamic_rnn(CELL.GRUCell(4), x, dtype=tf.float32)
    return [outputs, state], [{"x:0": floats(1, n, 3)} for n in (2, 67, 128, 199)]


def long_two_ways():
    x = tf.placeholder(tf.float32, [1, 140, 3], name="x")
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(CELL.BasicRNNCell(4), CELL.LSTMCell(3), x, dtype=tf.float32)
    return [tf.concat(outputs, 2)], [{"x:0": floats(1, 140, 3)}]


def words_of_letters():
    """A loop over letters gives words, and how many words there are follows from the input's shape alone."""
    x = tf.placeholder(tf.float32, [None, None, None, 2], name="x")
    shape = tf.shape(x)
    letters = tf.reshape(x, [shape[0] * shape[1], shape[2], 2])
    with tf.variable_scope("letters"):
        read, _ = tf.nn.dynamic_rnn(CELL.BasicRNNCell(3), letters, dtype=tf.float32)
    words = tf.reshape(tf.reduce_mean(read, 1), [shape[0], shape[1], 3])
    with tf.variable_scope("words"):
        outputs, _ = tf.nn.dynamic_rnn(CELL.BasicRNNCell(4), words, dtype=tf.float32)
    return [outputs], [{"x:0": floats(*size, 2)} for size in ((1, 3, 5), (2, 4, 3))]


def long_raw():
    """raw_rnn: its TensorArray grows, its last round takes another branch, and states are chosen by who is done."""
    x = tf.placeholder(tf.float32, [130, 2, 3], name="x")
    rows = tf.TensorArray(tf.float32, 130).unstack(x)
    cell = CELL.LSTMCell(4)

    def step(time, output, state, _):
        following = tf.cond(time >= 130, lambda: tf.zeros([2, 3]), lambda: rows.read(time))
        following.set_shape([2, 3])
        state = cell.zero_state(2, tf.float32) if output is None else state
        return tf.fill([2], time >= 130), following, state, output, None

    made, _, _ = tf.nn.raw_rnn(cell, step)
    return [made.stack()], [{"x:0": floats(130, 2, 3)}]


def counting_oddly():
    """Rows are read and written in an order that is computed, and the counter is used as a number."""
    x = tf.placeholder(tf.float32, [200, 4], name="x")
    rows, made = tf.TensorArray(tf.float32, 200).unstack(x), tf.TensorArray(tf.float32, 200)

    def body(i, h, made):
        h = tf.tanh(tf.matmul(h, weights(4, 4)) + rows.read((i * 7) % 200) + tf.cast(i % 3, tf.float32) * 0.1)
        return i + 1, h, made.write(199 - i, h)

    _, h, made = tf.while_loop(lambda i, *_: i < 200, body, [0, tf.zeros([1, 4]), made])
    return [h, made.stack()], [{"x:0": floats(200, 4)}]


def reading_what_was_written():
    """Each round reads what the round before last wrote: no block of rows that is known before."""
    x = tf.placeholder(tf.float32, [1, 3], name="x")
    made = tf.TensorArray(tf.float32, 120, clear_after_read=False).write(0, x).write(1, x * 2)

    def body(i, made):
        return i + 1, made.write(i, tf.tanh(tf.matmul(made.read(i - 2), weights(3, 3)) + made.read(i - 1)))

    _, made = tf.while_loop(lambda i, _: i < 120, body, [2, made])
    return [made.stack()], [{"x:0": floats(1, 3)}]


def growing():
    """A variable has another shape in each round."""
    x = tf.placeholder(tf.float32, [1, 3], name="x")
    w = weights(3, 3)
    _, all_rows = tf.while_loop(
        lambda i, _: i < 60,
        lambda i, rows: (i + 1, tf.concat([rows, tf.tanh(tf.matmul(rows[-1:], w))], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
    )
    return [all_rows], [{"x:0": floats(1, 3)}]


def branches_in_turn():
    """Which branch is taken follows from the counter, so that no two rounds are alike."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    a, b = weights(3, 3), weights(3, 3)

    def body(i, h):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(tf.matmul(h, a)), lambda: tf.matmul(h, b) + x)

    return [tf.while_loop(lambda i, _: i < 90, body, [0, x])[1]], [{"x:0": floats(2, 3)}]


def first_rounds_differ():
    """A branch for the first forty rounds, another for the rest."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    a, b = weights(3, 3), weights(3, 3)

    def body(i, h):
        return i + 1, tf.cond(i < 40, lambda: tf.tanh(tf.matmul(h, a) + x), lambda: tf.tanh(tf.matmul(h, b) - x))

    return [tf.while_loop(lambda i, _: i < 300, body, [0, x])[1]], [{"x:0": floats(2, 3)}]


def until_near():
    """Ends when nothing changes any more."""
    x = tf.placeholder(tf.float32, [1, 8], name="x")
    w = weights(8, 8) * 0.6

    def body(i, h, _):
        following = tf.tanh(tf.matmul(h, w) + 0.1)
        return i + 1, following, tf.reduce_max(tf.abs(following - h))

    found = tf.while_loop(lambda i, _, d: tf.logical_and(d > 1e-3, i < 99), body, [0, x, tf.constant(1.0)])
    return [found[1], found[0]], [{"x:0": floats(1, 8)}, {"x:0": floats(1, 8) * 3}]


def greedy_decoder():
    """Each word is the likeliest after those before; ends with word 1."""
    state = tf.placeholder(tf.float32, [1, 6], name="state")
    words, out, cell = weights(9, 4) * 3, weights(6, 9) * 3, CELL.GRUCell(6)

    def body(i, word, state, made, _):
        output, state = cell(tf.nn.embedding_lookup(words, word), state)
        word = tf.argmax(tf.matmul(output, out), 1, output_type=tf.int32)
        return i + 1, word, state, made.write(i, word), tf.equal(word[0], 1)

    start = [0, tf.zeros([1], tf.int32), state, tf.TensorArray(tf.int32, 0, dynamic_size=True), False]
    found = tf.while_loop(lambda i, *rest: tf.logical_and(i < 20, tf.logical_not(rest[-1])), body, start)
    return [found[0], found[3].stack()], [{"state:0": floats(1, 6) * n} for n in (1, 3, -3)]


def distance():
    """Two loops of integers, one in the other, as for the edit distance of two words."""
    x, y = (tf.placeholder(tf.int32, [9], name=name) for name in "xy")

    def row(i, before):
        def cell(j, cells):
            cost = tf.cond(tf.equal(x[i], y[j]), lambda: 0, lambda: 1)
            least = tf.minimum(tf.minimum(cells[j] + 1, before[j + 1] + 1), before[j] + cost)
            return j + 1, tf.concat([cells, [least]], 0)

        shapes = [tf.TensorShape([]), tf.TensorShape([None])]
        made = tf.while_loop(lambda j, _: j < 9, cell, [0, tf.reshape(i + 1, [1])], shape_invariants=shapes)[1]
        made.set_shape([10])
        return i + 1, made

    _, last = tf.while_loop(lambda i, _: i < 9, row, [0, tf.range(10)])
    return [last], [{"x:0": RNG.randint(0, 3, 9).astype("i4"), "y:0": RNG.randint(0, 3, 9).astype("i4")}]


def case_in_turn():
    """One of three ways in each round, chosen by what it counts."""
    x, n = tf.placeholder(tf.float32, [1, 6], name="x"), tf.placeholder(tf.int32, [], name="n")
    a, b = weights(6, 6), weights(6, 6)

    def body(i, h):
        ways = [(tf.equal(i % 3, 0), lambda: tf.tanh(tf.matmul(h, a))), (tf.equal(i % 3, 1), lambda: h + h @ b)]
        return i + 1, tf.case(ways, default=lambda: tf.nn.relu(h) - 0.1, exclusive=True)

    count, h = tf.while_loop(lambda i, h: i < n, body, [0, x])
    return [count, h], [{"x:0": floats(1, 6), "n:0": np.array(n, "i4")} for n in (0, 1, 2, 7, 20)]


def decoder(beams):
    from tensorflow.contrib import seq2seq

    source = tf.placeholder(tf.int32, [1, None], name="x")
    length = tf.placeholder(tf.int32, [1], name="n")
    words, cell = weights(20, 4) * 2, CELL.GRUCell(5)
    memory, state = tf.nn.dynamic_rnn(
        CELL.GRUCell(5, name="reader"), tf.nn.embedding_lookup(words, source), length, dtype=tf.float32
    )
    lengths = length
    if beams:
        memory, state, lengths = (seq2seq.tile_batch(t, beams) for t in (memory, state, length))
    attention = seq2seq.BahdanauAttention(6, memory, memory_sequence_length=lengths)
    wrapped = seq2seq.AttentionWrapper(cell, attention, attention_layer_size=6)
    first = wrapped.zero_state(max(1, beams), tf.float32).clone(cell_state=state)
    layer, start = tf.layers.Dense(20), tf.zeros([1], tf.int32)
    if beams:
        search = seq2seq.BeamSearchDecoder(wrapped, words, start, 1, first, beams, layer, length_penalty_weight=0.6)
    else:
        search = seq2seq.BasicDecoder(wrapped, seq2seq.GreedyEmbeddingHelper(words, start, 1), first, layer)
    found, _, ends = seq2seq.dynamic_decode(search, maximum_iterations=9, impute_finished=not beams)
    kept = [found.predicted_ids, found.beam_search_decoder_output.scores] if beams else list(found)
    runs = [{"x:0": RNG.randint(2, 20, (1, n)).astype("i4"), "n:0": np.array([n], "i4")} for n in (1, 5, 12)]
    return [tf.identity(t) for t in (*kept, ends)], runs


def attention_decoder():
    """tf.contrib.seq2seq's decoder with attention, the likeliest word each time."""
    return decoder(0)


def beam_search_decoder():
    """The same with a search over beams, and GatherTree behind it."""
    return decoder(3)


GRAPHS = (
    long_lstm, long_of_any_length, long_two_ways, long_raw, counting_oddly, reading_what_was_written, growing,
    branches_in_turn, first_rounds_differ, until_near, greedy_decoder, distance, case_in_turn,
    attention_decoder, beam_search_decoder, words_of_letters,
)  # fmt: skip


keep_all(sys.argv[1], GRAPHS)
