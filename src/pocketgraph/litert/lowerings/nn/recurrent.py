"""Lowerings of whole recurrent cells: LSTMBlockCell, BlockLSTM (every step written out) and GRUBlockCell.

The formulas are those of kernels/nn/recurrent.py; a step is a dozen small operations, which XNNPACK runs in about as
many half microseconds. BlockLSTM multiplies all its inputs at once, before the first step.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.pieces import sum_of
from pocketgraph.litert.program import Value

MOST_STEPS = 1000  # time steps
CELL_FIRST, FORGET_FIRST = "icfo", "ifco"
"""The order of the gates in the weights: of the first ops, and of BlockLSTMV2."""


@lowers("LSTMBlockCell")
def lstm_block_cell(emit: Emit, node: Node) -> list[Value]:
    x, state, output, weights, *peepholes, bias = (emit.require(value, "float") for value in emit.inputs(0, 8))
    gates = _product(emit, _joined(emit, [x, output]), weights, bias)
    return _step(emit, node, gates, state, peepholes, CELL_FIRST, float(node.attr("forget_bias", 1.0)))


@lowers("BlockLSTM", "BlockLSTMV2")
def block_lstm(emit: Emit, node: Node) -> None:
    x, state, output, weights, *peepholes, bias = (emit.require(value, "float") for value in emit.inputs(1, 9))
    if len(x.shape) != 3:
        raise emit.unsupported(f"an input of rank {len(x.shape)}")
    steps, batch, size = x.shape
    if steps > MOST_STEPS:
        raise emit.unsupported(f"{steps} steps")
    is_taken = _taken_steps(emit, steps)
    if len(weights.shape) != 2 or weights.shape[1] % 4 or weights.shape[0] != size + weights.shape[1] // 4:
        raise emit.unsupported(f"weights of {list(weights.shape)} for {size} inputs")
    units = weights.shape[1] // 4
    first = node.op == "BlockLSTM"
    order, forget_bias = (CELL_FIRST, float(node.attr("forget_bias", 1.0))) if first else (FORGET_FIRST, 0.0)
    at_once = _product(emit, emit.reshape(x, (steps * batch, size)), weights, bias, slice(0, size))
    at_once = emit.reshape(at_once, (steps, batch, 4 * units))
    pieces = emit.add_many(
        "UNPACK", [at_once], [(FLOAT, (batch, 4 * units))] * steps, num=steps, axis=0
    )  # fmt: skip
    rows: list[list[Value]] = []
    for piece in pieces:
        recurrent = _product(emit, output, weights, None, slice(size, None))
        gates = sum_of(emit, piece, recurrent)
        rows.append(_step(emit, node, gates, state, peepholes, order, forget_bias))
        state, output = rows[-1][1], rows[-1][6]
    for port in range(7):
        parts = [row[port] for row in rows]
        found = emit.add("PACK", list(parts), (steps, batch, units), values_count=steps, axis=0)
        if is_taken is not None:
            found = emit.add("SELECT_V2", [is_taken, found, emit.const(0, np.float32)], found.shape, FLOAT)
        emit.result(found, port)


def _taken_steps(emit: Emit, steps: int) -> Value | None:
    """bool [steps, 1, 1]: the steps that the first input says are taken, the others' results being zeros; None: all."""
    static = emit.static_or_none(0)
    if static is not None and int(np.asarray(static).reshape(())) >= steps:
        return None
    count = emit.require(emit.input(0), "int64")
    places = emit.const(np.arange(steps).reshape(steps, 1, 1), np.int64)
    return emit.add("LESS", [places, count], (steps, 1, 1), BOOL)


@lowers("GRUBlockCell", takes=("float",))
def gru_block_cell(
    emit: Emit, node: Node, x: Value, output: Value, w_gates: Value, w_candidate: Value, b_gates: Value,
    b_candidate: Value,
) -> list[Value]:  # fmt: skip
    joined = _joined(emit, [x, output])
    both = _product(emit, joined, w_gates, b_gates)
    reset, update = _split(emit, emit.add("LOGISTIC", [both], both.shape), 2)
    joined = _joined(emit, [x, _times(emit, output, reset)])
    made = _product(emit, joined, w_candidate, b_candidate)
    candidate = emit.add("TANH", [made], made.shape)
    one = emit.constant_like(update, 1.0)
    kept = emit.add("SUB", [one, update], update.shape, activation="")
    new = sum_of(emit, _times(emit, update, output), _times(emit, kept, candidate))
    return [reset, update, candidate, new]


def _step(
    emit: Emit, node: Node, gates: Value, state: Value, peepholes: list[Value], order: str, forget_bias: float
) -> list[Value]:
    """One step from the gates' sums: input gate, state, forget gate, output gate, candidate, squashed state, output."""
    parts = dict(zip(order, _split(emit, gates, 4), strict=True))
    sees = bool(node.attr("use_peephole", False))
    to_input, to_forget, to_output = peepholes
    if forget_bias:
        parts["f"] = sum_of(emit, parts["f"], emit.const([forget_bias], np.float32))
    if sees:
        parts["i"] = sum_of(emit, parts["i"], _times(emit, state, to_input))
        parts["f"] = sum_of(emit, parts["f"], _times(emit, state, to_forget))
    enters, stays = (emit.add("LOGISTIC", [parts[gate]], parts[gate].shape) for gate in "if")
    candidate = emit.add("TANH", [parts["c"]], parts["c"].shape)
    new = sum_of(emit, _times(emit, candidate, enters), _times(emit, state, stays))
    clip = float(node.attr("cell_clip", 3.0 if order == CELL_FIRST else 0.0))
    if clip > 0:
        for code, bound in (("MINIMUM", clip), ("MAXIMUM", -clip)):
            new = emit.add(code, [new, emit.const([bound], np.float32)], new.shape)
    leaving = sum_of(emit, parts["o"], _times(emit, new, to_output)) if sees else parts["o"]
    leaves = emit.add("LOGISTIC", [leaving], leaving.shape)
    squashed = emit.add("TANH", [new], new.shape)
    return [enters, new, stays, leaves, candidate, squashed, _times(emit, squashed, leaves)]


def _product(emit: Emit, left: Value, weights: Value, bias: Value | None, rows: slice = slice(None)) -> Value:
    """left @ weights[rows] + bias; the weights must be constant."""
    turned = _turned(emit, weights, rows)
    if left.shape[-1] != turned.shape[1] or (bias is not None and bias.shape != turned.shape[:1]):
        raise emit.unsupported(f"weights of {list(weights.shape)} for {left.shape[-1]} inputs")
    shape = (left.shape[0], turned.shape[0])
    return emit.add("FULLY_CONNECTED", [left, turned, bias], shape, activation="", keep_num_dims=False)


def _turned(emit: Emit, weights: Value, rows: slice) -> Value:
    """Rows of the weights as FULLY_CONNECTED has them; the same value each time, so that they are stored once."""
    source = weights.constant
    if source is None or len(weights.shape) != 2:
        raise emit.unsupported("weights that are computed")
    key = (id(source), rows.start, rows.stop)
    if key not in emit.cells:
        height, width = weights.shape
        shape = (width, len(range(*rows.indices(height))))
        made = Constant(lambda: np.ascontiguousarray(source.numpy()[rows].T), shape, source.dtype)
        emit.cells[key] = source, emit.constant(made)
    return emit.cells[key][1]


def _joined(emit: Emit, parts: list[Value]) -> Value:
    if len({part.shape[0] for part in parts}) != 1:
        raise emit.unsupported("states of another batch than the input")
    return emit.concatenated(parts, 1)


def _split(emit: Emit, value: Value, count: int) -> list[Value]:
    if value.shape[1] % count:
        raise emit.unsupported(f"{value.shape[1]} gates")
    shape = (value.shape[0], value.shape[1] // count)
    return emit.add_many("SPLIT", [emit.const(1, np.int32), value], [(FLOAT, shape)] * count, num_splits=count)


def _times(emit: Emit, left: Value, right: Value) -> Value:
    return emit.add("MUL", [left, right], left.shape, activation="")
