"""LSTM as a whole; GRU step by step, since documents do not agree on the order of its gates in Core ML."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

MOST_STEPS = 256  # of a GRU that are written one after the other
GATES = "iofc"
"""The order of an LSTM's gates in ONNX."""
CORE_ML_GATES = "ifoc"


def sorted_gates(array: Array) -> Array:
    """Blocks of rows in ONNX's order of gates, in Core ML's."""
    parts = dict(zip(GATES, np.split(array, len(GATES)), strict=True))
    return np.concatenate([parts[gate] for gate in CORE_ML_GATES])


@translates("LSTM")
def lstm(to: Translation, operation: OnnxOperation) -> Any:
    """ONNX: sequence [time, directions, batch, units], last output and state [directions, batch, units]."""
    x = to.input(operation, 0)
    weights, repeated = (to.static(operation, index, "its weights")[0] for index in (1, 2))
    units = repeated.shape[1]
    given = to.static_or_none(operation, 3)
    bias = np.zeros(8 * units, np.float32) if given is None else given[0]
    looks = to.static_or_none(operation, 7)
    more = {}
    if looks is not None:
        into, out, forget = np.split(looks[0], 3)
        more["peephole"] = np.concatenate([into, forget, out]).astype(np.float32)
    output, state = (_initial(to, operation, index, units) for index in (5, 6))
    sequence, last, cell = to.op(
        "lstm", x=x, initial_h=output, initial_c=state, output_sequence=True,
        weight_ih=sorted_gates(weights).astype(np.float32),
        weight_hh=sorted_gates(repeated).astype(np.float32),
        bias=sorted_gates(bias[: 4 * units] + bias[4 * units :]).astype(np.float32), **more,
    )  # fmt: skip
    return [to.op("expand_dims", x=value, axes=[axis]) for value, axis in ((sequence, 1), (last, 0), (cell, 0))]


def _initial(to: Translation, operation: OnnxOperation, index: int, units: int) -> Any:
    given = to.optional(operation, index)
    if given is not None:
        return to.op("squeeze", x=given, axes=[0])
    return np.zeros((int(to.input(operation, 0).shape[1]), units), np.float32)


@translates("GRU")
def gru(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    """ONNX: gates in the order update, reset, candidate; outputs as an LSTM's."""
    steps = int(x.shape[0])
    if steps > MOST_STEPS:
        raise to.unsupported(f"a GRU of {counted(steps, 'step')}; up to {MOST_STEPS} are written one after the other")
    weights, repeated = (to.static(operation, index, "its weights")[0].astype(np.float32) for index in (1, 2))
    units = repeated.shape[1]
    given = to.static_or_none(operation, 3)
    bias = np.zeros(6 * units, np.float32) if given is None else given[0].astype(np.float32)
    own, before = bias[: 3 * units], bias[3 * units :]
    resets_behind = bool(operation.attrs.get("linear_before_reset", 0))
    if not resets_behind:
        own, before = own + before, np.zeros_like(before)
    state = _initial(to, operation, 5, units)
    rows = to.op("linear", x=to.op("reshape", x=x, shape=[-1, int(x.shape[2])]), weight=weights, bias=own)
    rows = to.op("reshape", x=rows, shape=[steps, int(x.shape[1]), 3 * units])
    outputs = []
    for step in range(steps):
        row = to.op("slice_by_index", x=rows, begin=[step, 0, 0], end=[step + 1, 0, 0], end_mask=[False, True, True],
                    squeeze_mask=[True, False, False])  # fmt: skip
        z, r, h = to.op("split", x=row, num_splits=3, axis=1)
        if resets_behind:
            past = to.op("linear", x=state, weight=repeated, bias=before)
            past_z, past_r, past_h = to.op("split", x=past, num_splits=3, axis=1)
        else:
            gates = to.op("linear", x=state, weight=repeated[: 2 * units])
            past_z, past_r = to.op("split", x=gates, num_splits=2, axis=1)
        z = to.op("sigmoid", x=to.op("add", x=z, y=past_z))
        r = to.op("sigmoid", x=to.op("add", x=r, y=past_r))
        if resets_behind:
            inner = to.op("mul", x=r, y=past_h)
        else:
            inner = to.op("linear", x=to.op("mul", x=r, y=state), weight=repeated[2 * units :])
        h = to.op("tanh", x=to.op("add", x=h, y=inner))
        kept = to.op("mul", x=z, y=to.op("sub", x=state, y=h))  # z · state + (1 - z) · h
        state = to.op("add", x=h, y=kept)
        outputs.append(state)
    sequence = to.op("stack", values=outputs, axis=0)
    return [to.op("expand_dims", x=sequence, axes=[1]), to.op("expand_dims", x=state, axes=[0])]
