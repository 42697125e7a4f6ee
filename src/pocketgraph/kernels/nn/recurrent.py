"""Recurrent cells in one op: LSTM and GRU."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, integer, reserve, widened
from pocketgraph.kernels.math.elementwise import sigmoid
from pocketgraph.kernels.registry import kernel

CELL_FIRST = "icfo"
"""The order of the gates in the weights of the first ops: input, cell, forget, output."""
FORGET_FIRST = "ifco"
"""The order in the weights of BlockLSTMV2."""


def lstm_step(
    x: Array,
    state: Array,
    output: Array,
    weights: Array,
    bias: Array,
    peepholes: tuple[Array, Array, Array] | None,
    order: str,
    forget_bias: float,
    clip: float,
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """One step: (input gate, state, forget gate, output gate, candidate, squashed state, output)."""
    gates = np.concatenate([x, output], axis=1) @ weights + bias
    parts = dict(zip(order, np.split(gates, 4, axis=1), strict=True))
    kind = gates.dtype.type
    to_input, to_forget, to_output = peepholes if peepholes is not None else (kind(0), kind(0), kind(0))
    i = sigmoid(np.asarray(parts["i"] + state * to_input))
    f = sigmoid(np.asarray(parts["f"] + kind(forget_bias) + state * to_forget))
    candidate = np.tanh(parts["c"])
    new = candidate * i + state * f
    if clip > 0:
        new = np.clip(new, kind(-clip), kind(clip))
    o = sigmoid(np.asarray(parts["o"] + new * to_output))
    squashed = np.tanh(new)
    return i, new, f, o, candidate, squashed, squashed * o


@kernel("LSTMBlockCell")
def lstm_block_cell(
    x: Array,
    cs_prev: Array,
    h_prev: Array,
    w: Array,
    wci: Array,
    wcf: Array,
    wco: Array,
    b: Array,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> tuple[Array, ...]:
    """(i, cs, f, o, ci, co, h)."""
    peepholes = (widened(wci), widened(wcf), widened(wco)) if use_peephole else None
    before = widened(cs_prev), widened(h_prev)
    found = lstm_step(widened(x), *before, widened(w), widened(b), peepholes, CELL_FIRST, forget_bias, cell_clip)
    return tuple(np.asarray(v).astype(x.dtype, copy=False) for v in found)


def _lstm_block(
    inputs: tuple[Array, ...], order: str, forget_bias: float, clip: float, use_peephole: bool
) -> tuple[Array, ...]:
    """(i, cs, f, o, ci, co, h), each for every step of ``x`` (time, batch, inputs); what comes after ``seq_len_max``
    steps stays zero."""
    steps, x, state, output, weights, wci, wcf, wco, bias = inputs
    peepholes = (widened(wci), widened(wcf), widened(wco)) if use_peephole else None
    shape = reserve((x.shape[0], *state.shape), x.dtype)
    results = tuple(np.zeros(shape, dtype=x.dtype) for _ in range(7))
    before = widened(state), widened(output)
    layer = widened(weights), widened(bias), peepholes, order, forget_bias, clip
    for time in range(min(integer(steps), x.shape[0])):
        found = lstm_step(widened(x[time]), before[0], before[1], *layer)
        before = found[1], found[6]
        for result, value in zip(results, found, strict=True):
            result[time] = value
    return results


@kernel("BlockLSTM")
def block_lstm(
    *inputs: Array, forget_bias: float = 1.0, cell_clip: float = 3.0, use_peephole: bool = False
) -> tuple[Array, ...]:
    """Of (seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b)."""
    return _lstm_block(inputs, CELL_FIRST, forget_bias, cell_clip, use_peephole)


@kernel("BlockLSTMV2")
def block_lstm_v2(*inputs: Array, cell_clip: float = 0.0, use_peephole: bool = False) -> tuple[Array, ...]:
    """Likewise, of a cell without a bias of its own for the forget gate."""
    return _lstm_block(inputs, FORGET_FIRST, 0.0, cell_clip, use_peephole)


@kernel("GRUBlockCell")
def gru_block_cell(
    x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array
) -> tuple[Array, Array, Array, Array]:
    """(reset gate, update gate, candidate, output)."""
    gates = sigmoid(np.asarray(np.concatenate([x, h_prev], axis=1) @ w_ru + b_ru))
    r, u = np.split(gates, 2, axis=1)
    c = np.tanh(np.concatenate([x, h_prev * r], axis=1) @ w_c + b_c)
    h = u * h_prev + (x.dtype.type(1) - u) * c
    return r, u, np.asarray(c), np.asarray(h)
