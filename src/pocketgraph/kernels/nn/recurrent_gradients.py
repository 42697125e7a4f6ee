"""Gradients of the recurrent cells: LSTM step and block, GRU step."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, integer, widened
from pocketgraph.kernels.nn.recurrent import CELL_FIRST, FORGET_FIRST
from pocketgraph.kernels.registry import kernel


def _one(values: Array) -> Array:
    return np.asarray(values.dtype.type(1) - values)


def lstm_step_gradient(
    state: Array, i: Array, f: Array, o: Array, ci: Array, co: Array, state_grad: Array, out_grad: Array,
    peepholes: tuple[Array, Array, Array] | None, order: str,
) -> tuple[Array, Array]:  # fmt: skip
    """(the gradient of the state before, that of the four gates before their functions, side by side)."""
    d_o = o * _one(o) * out_grad * co
    d_state = _one(co * co) * out_grad * o + state_grad
    if peepholes is not None:
        d_state = d_state + d_o * peepholes[2]
    d_ci = _one(ci * ci) * d_state * i
    d_f = f * _one(f) * d_state * state
    d_i = i * _one(i) * d_state * ci
    before = d_state * f
    if peepholes is not None:
        before = before + d_i * peepholes[0] + d_f * peepholes[1]
    parts = {"i": d_i, "c": d_ci, "f": d_f, "o": d_o}
    return np.asarray(before), np.concatenate([parts[gate] for gate in order], axis=1)


@kernel("LSTMBlockCellGrad")
def lstm_block_cell_grad(
    x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array, b: Array, i: Array,
    cs: Array, f: Array, o: Array, ci: Array, co: Array, cs_grad: Array, h_grad: Array, *, use_peephole: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """(cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad)."""
    if b.shape != (4 * cs_prev.shape[1],):
        raise ValueError(f"b of shape {list(b.shape)} for {cs_prev.shape[1]} cells")
    peepholes = (widened(wci), widened(wcf), widened(wco)) if use_peephole else None
    state, now = widened(cs_prev), widened(cs)
    i, f, o, ci, co, cs_grad, h_grad = (widened(v) for v in (i, f, o, ci, co, cs_grad, h_grad))
    before, gates = lstm_step_gradient(state, i, f, o, ci, co, cs_grad, h_grad, peepholes, CELL_FIRST)
    d_i, _, d_f, d_o = np.split(gates, 4, axis=1)
    weights = [np.zeros(wci.shape, gates.dtype)] * 3
    if use_peephole:
        weights = [(d_i * state).sum(axis=0), (d_f * state).sum(axis=0), (d_o * now).sum(axis=0)]
    return tuple(np.asarray(v).astype(x.dtype, copy=False) for v in (before, gates, *weights))


def _block_gradient(parts: tuple[Array, ...], use_peephole: bool, order: str) -> tuple[Array, ...]:
    """(x, cs_prev, h_prev, w, wci, wcf, wco, b), the gradient of each, summed over the steps from the last one on."""
    steps, kind = integer(parts[0]), parts[1].dtype
    x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad = (widened(v) for v in parts[1:])
    wide = x.dtype
    peepholes = (wci, wcf, wco) if use_peephole else None
    x_grad, w_grad, b_grad = np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
    peephole_grads = [np.zeros_like(wci) for _ in range(3)]
    state_grad, out_grad = np.zeros_like(cs_prev), np.zeros_like(h_prev)
    inputs = x.shape[2]
    for time in range(min(steps, x.shape[0]) - 1, -1, -1):
        state, output = (cs[time - 1], h[time - 1]) if time else (cs_prev, h_prev)
        state_grad, gates = lstm_step_gradient(
            state, i[time], f[time], o[time], ci[time], co[time], cs_grad[time] + state_grad,
            h_grad[time] + out_grad, peepholes, order,
        )  # fmt: skip
        both = gates @ w.T
        x_grad[time], out_grad = both[:, :inputs], both[:, inputs:]
        w_grad += np.concatenate([x[time], output], axis=1).T @ gates
        b_grad += gates.sum(axis=0)
        if use_peephole:
            named = dict(zip(order, np.split(gates, 4, axis=1), strict=True))
            for place, (gate, held) in enumerate((("i", state), ("f", state), ("o", cs[time]))):
                peephole_grads[place] += (named[gate] * held).sum(axis=0)
    found = (x_grad, state_grad, out_grad, w_grad, *peephole_grads, b_grad)
    return tuple(np.asarray(v, wide).astype(kind, copy=False) for v in found)


def _register(op: str, order: str) -> None:
    @kernel(op)
    def block_lstm_grad(
        seq_len_max: Array, x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array,
        b: Array, i: Array, cs: Array, f: Array, o: Array, ci: Array, co: Array, h: Array, cs_grad: Array,
        h_grad: Array, *, use_peephole: bool,
    ) -> tuple[Array, ...]:  # fmt: skip
        parts = (seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad)
        return _block_gradient(parts, use_peephole, order)


_register("BlockLSTMGrad", CELL_FIRST)
_register("BlockLSTMGradV2", FORGET_FIRST)


@kernel("GRUBlockCellGrad")
def gru_block_cell_grad(
    x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array, r: Array, u: Array, c: Array,
    d_h: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """(d_x, d_h_prev, d_c_bar, d_r_bar_u_bar)."""
    if b_ru.shape != (2 * h_prev.shape[1],) or b_c.shape != (h_prev.shape[1],):
        raise ValueError(f"biases of shapes {list(b_ru.shape)} and {list(b_c.shape)} for {h_prev.shape[1]} cells")
    kind, inputs = x.dtype, x.shape[1]
    before, weights, weights_c, reset, update, new, grad = (widened(v) for v in (h_prev, w_ru, w_c, r, u, c, d_h))
    d_c_bar = grad * _one(update) * _one(new * new)
    d_u_bar = grad * (before - new) * update * _one(update)
    by_c = d_c_bar @ weights_c.T
    d_hr = by_c[:, inputs:]
    d_r_bar = d_hr * before * reset * _one(reset)
    gates = np.concatenate([d_r_bar, d_u_bar], axis=1)
    by_gates = gates @ weights.T
    d_x = by_c[:, :inputs] + by_gates[:, :inputs]
    d_before = d_hr * reset + grad * update + by_gates[:, inputs:]
    return tuple(np.asarray(v).astype(kind, copy=False) for v in (d_x, d_before, d_c_bar, gates))
