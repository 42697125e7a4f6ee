"""Recurrent cells: one step of each, and BlockLSTM as ONNX's LSTM or step by step."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, mul, sub, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.array import divided
from pocketgraph.exporting.onnx.ops.elementwise import clipped
from pocketgraph.graph import Node, canonical
from pocketgraph.kernels.nn.recurrent import CELL_FIRST, FORGET_FIRST
from pocketgraph.litert.constant import Array
from pocketgraph.litert.operands import KNOWN

MOST_STEPS = 128  # that are written one after the other
GATES = "iofc"
"""The order of an LSTM's gates in ONNX."""


def lstm_step(
    emit: OnnxEmit, node: Node, x: OnnxValue, state: OnnxValue, output: OnnxValue, weights: OnnxValue, bias: OnnxValue,
    peepholes: list[OnnxValue], order: str,
) -> list[OnnxValue]:  # fmt: skip
    """One step: input gate, state, forget gate, output gate, candidate, squashed state, output."""
    joined = emit.concat([x, output], 1)
    gates = add(emit, emit.op("MatMul", [joined, weights]), bias)
    units = weights.shape.known[1] // 4
    gates.shape = type(gates.shape)([joined.shape[0], 4 * units])
    parts = dict(zip(order, divided(emit, gates, 1, [units] * 4), strict=True))
    forget_bias = float(node.attr("forget_bias", 1.0)) if order == CELL_FIRST else 0.0
    looks = bool(node.attr("use_peephole", False))
    into, forget, out = parts["i"], parts["f"], parts["o"]
    if looks:
        into, forget = (add(emit, p, mul(emit, state, w)) for p, w in zip((into, forget), peepholes, strict=False))
    if forget_bias:
        forget = add(emit, forget, emit.like(forget_bias, forget))
    i, f = unary(emit, "Sigmoid", into), unary(emit, "Sigmoid", forget)
    candidate = unary(emit, "Tanh", parts["c"])
    new = add(emit, mul(emit, candidate, i), mul(emit, state, f))
    clip = cell_clip(node)
    if clip > 0:
        new = clipped(emit, new, -clip, clip)
    if looks:
        out = add(emit, out, mul(emit, new, peepholes[2]))
    o = unary(emit, "Sigmoid", out)
    squashed = unary(emit, "Tanh", new)
    return [i, new, f, o, candidate, squashed, mul(emit, squashed, o)]


def cell_clip(node: Node) -> float:
    """What a cell's state is held to; 0 where it is free."""
    return float(node.attr("cell_clip", 0.0 if node.op == "BlockLSTMV2" else 3.0))


@converts("LSTMBlockCell")
def lstm_cell(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    x, state, output, weights, *peepholes, bias = emit.inputs()
    return tuple(lstm_step(emit, node, x, state, output, weights, bias, peepholes, CELL_FIRST))


@converts("GRUBlockCell")
def gru_cell(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    x, before, gate_weights, weights, gate_bias, bias = emit.inputs()
    units = weights.shape.known[1]
    product = emit.op("MatMul", [emit.concat([x, before], 1), gate_weights], [x.shape[0], 2 * units])
    gates = unary(emit, "Sigmoid", add(emit, product, gate_bias))
    r, u = divided(emit, gates, 1, [units] * 2)
    inner = emit.op("MatMul", [emit.concat([x, mul(emit, before, r)], 1), weights], [x.shape[0], units])
    c = unary(emit, "Tanh", add(emit, inner, bias))
    h = add(emit, mul(emit, u, before), mul(emit, sub(emit, emit.like(1, u), u), c))
    return r, u, c, h


@converts("BlockLSTM", "BlockLSTMV2")
def lstm_block(emit: OnnxEmit, node: Node) -> None:
    steps, x, state, output, weights, *peepholes, bias = emit.inputs()
    order = CELL_FIRST if node.op == "BlockLSTM" else FORGET_FIRST
    if _is_whole(steps, x) and cell_clip(node) <= 0 and _only_outputs(emit, node):
        _as_lstm(emit, node, x, state, output, weights, bias, peepholes, order)
        return
    count = x.shape[0] if x.shape.dims is not None else None
    known = emit.static_or_none(0)
    if count is None or count > MOST_STEPS or known is None:
        raise emit.unsupported(f"the number of steps must be {KNOWN}, and not too large, to write them out")
    done = min(count, int(np.asarray(known).reshape(-1)[0]))
    results: list[list[OnnxValue]] = []
    for part in divided(emit, x, 0, [1] * count)[:done]:
        found = lstm_step(emit, node, emit.squeeze(part, [0]), state, output, weights, bias, peepholes, order)
        state, output = found[1], found[6]
        results.append(found)
    for port in range(7):
        rows = [emit.unsqueeze(found[port], [0]) for found in results]
        if done < count:
            zeros = mul(emit, rows[0], emit.like(0, rows[0]))
            rows += [zeros] * (count - done)
        emit.result(emit.concat(rows, 0), port)


def _is_whole(steps: OnnxValue, x: OnnxValue) -> bool:
    """Whether all steps are done."""
    if steps.constant is None or x.shape.dims is None or x.shape[0] is None:
        return False
    return int(steps.constant.numpy().reshape(-1)[0]) >= int(x.shape[0])


def _only_outputs(emit: OnnxEmit, node: Node) -> bool:
    """Whether nobody takes anything but the outputs of all steps."""
    taken = {
        canonical(ref) for other in emit.takers for ref in other.data_inputs
        if ref.partition(":")[0] == node.name
    }  # fmt: skip
    return taken <= {f"{node.name}:6"} and bool(taken)


def _as_lstm(
    emit: OnnxEmit, node: Node, x: OnnxValue, state: OnnxValue, output: OnnxValue, weights: OnnxValue, bias: OnnxValue,
    peepholes: list[OnnxValue], order: str,
) -> None:  # fmt: skip
    """As ONNX's LSTM; its constants are sorted by gates, and the recurrent ones apart from the others."""
    values = [value.constant for value in (weights, bias, *peepholes)]
    if any(value is None for value in values):
        raise emit.unsupported("its weights are computed")
    arrays = [value.numpy() for value in values if value is not None]
    forget_bias = float(node.attr("forget_bias", 1.0)) if order == CELL_FIRST else 0.0
    looks = arrays[2:] if node.attr("use_peephole", False) else None
    found = lstm(emit, x, state, output, arrays[0], arrays[1], order, forget_bias, looks)
    emit.result(found[0], 6)


def lstm(
    emit: OnnxEmit, x: OnnxValue, state: OnnxValue, output: OnnxValue, weights: Array, bias: Array, order: str,
    forget_bias: float, peepholes: list[Array] | None = None,
) -> list[OnnxValue]:  # fmt: skip
    """ONNX's LSTM of a sequence [time, batch, inputs]: the outputs of all steps, the last output and state.

    Args:
        weights: [inputs + units, 4 · units], the gates in this ``order``.
        peepholes: of the input, forget and output gates.
    """
    units = weights.shape[1] // 4
    inputs = weights.shape[0] - units
    place = {gate: slice(at * units, (at + 1) * units) for at, gate in enumerate(order)}
    sorted_weights = np.concatenate([weights[:, place[gate]] for gate in GATES], 1).T
    sorted_bias = np.concatenate([bias[place[gate]] + (forget_bias if gate == "f" else 0) for gate in GATES])
    kind = weights.dtype
    operands: list[OnnxValue | None] = [
        x, emit.const(sorted_weights[None, :, :inputs].astype(kind)),
        emit.const(sorted_weights[None, :, inputs:].astype(kind)),
        emit.const(np.concatenate([sorted_bias, np.zeros_like(sorted_bias)])[None].astype(kind)), None,
        emit.unsqueeze(output, [0]), emit.unsqueeze(state, [0]),
    ]  # fmt: skip
    if peepholes is not None:
        into, forget, out = peepholes
        operands.append(emit.const(np.concatenate([into, out, forget])[None].astype(kind)))
    batch, time = (x.shape[1], x.shape[0]) if x.shape.dims is not None else (None, None)
    shapes = [[time, 1, batch, units], [1, batch, units], [1, batch, units]]
    sequence, last, cell = emit.ops("LSTM", operands, 3, shapes, hidden_size=units)
    return [emit.squeeze(sequence, [1]), emit.squeeze(last, [0]), emit.squeeze(cell, [0])]
