"""Recurrent layers of Keras: a loop over time, as ``tf.while_loop`` of TensorFlow 1 writes it.

The products of the inputs with their weights are made for all steps ahead of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.formats.keras.activation_functions import activated
from pocketgraph.formats.keras.layer_writer import Dims, KerasTensor, LayerWriter, Rule
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT

Step = Callable[["LoopOverTime", KerasTensor, list[KerasTensor]], list[KerasTensor]]
"""The next states, of which the first is the result, for the products of a step's inputs and the states."""


class LoopOverTime(NamedTuple):
    """A loop that is being written; weights enter it once each."""

    writer: LayerWriter

    @property
    def frame(self) -> bytes:
        return f"{self.writer.call}/while".encode()

    def constant(self, value: KerasTensor) -> KerasTensor:
        """What does not change from step to step, inside."""
        return self.writer.add("Enter", value, dims=value.dims, frame_name=self.frame, is_constant=True)


def recurrent(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor | list[KerasTensor]:
    """SimpleRNN, LSTM and GRU."""
    writer.expect(stateful=False, time_major=False)
    value, *given = inputs
    units = int(writer.config["units"])
    step, count, products = CELLS[writer.kind](writer, value, units)
    batch = value.dims[0] if value.dims[0] is not None else writer.size(value, 0)
    zeros = writer.add(
        "Fill", writer.sizes([batch, units]), writer.const(0, "zero", FLOAT), dims=(value.dims[0], units)
    )
    results, states = _over_time(writer, products, value.mask, step, given or [zeros] * count)
    first = results if writer.config.get("return_sequences", False) else states[0]
    return [first, *states] if writer.config.get("return_state", False) else first


def _in_steps(writer: LayerWriter, value: KerasTensor, name: str) -> KerasTensor:
    """A tensor with time ahead of the batch, and in the order in which it is read."""
    order = [1, 0, *range(2, len(value.dims))]
    dims: Dims = tuple(value.dims[axis] for axis in order)
    made = writer.add("Transpose", value, writer.const(order, "order"), dims=dims, name=name)
    if writer.config.get("go_backwards", False):
        made = writer.add("ReverseV2", made, writer.const([0], "axis"))
    return made


def _over_time(
    writer: LayerWriter, products: KerasTensor, mask: KerasTensor | None, step: Step, start: Sequence[KerasTensor]
) -> tuple[KerasTensor, list[KerasTensor]]:
    """The results of all steps, [batch, time, units], and the last states."""
    loop = LoopOverTime(writer)
    length = products.dims[1] if products.dims[1] is not None else writer.size(products, 1)
    length = writer.const(length, "length") if isinstance(length, int) else length
    steps = writer.add("Range", writer.const(0, "first"), length, writer.const(1, "delta"), dims=(products.dims[1],))
    read = [_filled(writer, _in_steps(writer, products, "steps"), steps, length)]
    if mask is not None:
        read.append(_filled(writer, _in_steps(writer, mask, "mask_steps"), steps, length))
    array, flow = _array(writer, length, start[0])
    variables = [writer.const(0, "time"), flow, *start]
    entered = [writer.add("Enter", one, dims=one.dims, frame_name=loop.frame) for one in variables]
    merged = [writer.add("Merge", [one, one], dims=one.dims) for one in entered]
    goes_on = writer.add("LoopCond", writer.add("Less", merged[0], loop.constant(length)))
    switched = [writer.add("Switch", one, goes_on, dims=one.dims) for one in merged]
    time, flow, *states = (
        writer.add("Identity", one._replace(ref=f"{one.ref}:1"), dims=one.dims, T=one.dtype) for one in switched
    )
    outside = set(writer.model.nodes)
    inside = [
        writer.add("TensorArrayReadV3", loop.constant(handle), time, loop.constant(filled), dims=dims, dtype=dtype)
        for handle, filled, dims, dtype in read
    ]
    made = step(loop, inside[0], states)
    if mask is not None:
        counts = writer.add("ExpandDims", inside[1], writer.const(1, "number"), dims=(inside[1].dims[0], 1))
        made = [writer.add("SelectV2", counts, new, old, dims=old.dims) for new, old in zip(made, states, strict=True)]
    written = writer.add("TensorArrayWriteV3", loop.constant(array), time, made[0], flow, dims=())
    after = [writer.add("AddV2", time, writer.const(1, "number")), written, *made]
    _wait_for(writer, time, outside)
    nodes = writer.model.nodes
    for merge, enter, value in zip(merged, entered, after, strict=True):
        back = writer.add("NextIteration", value, dims=value.dims)
        nodes[merge.ref] = nodes[merge.ref].replace(inputs=[enter.ref, back.ref])
    _, flow, *states = (writer.add("Exit", one, dims=one.dims) for one in switched)
    dims = (products.dims[1], products.dims[0], start[0].dims[-1])
    stacked = writer.add("TensorArrayGatherV3", array, steps, flow, dims=dims, dtype=FLOAT)
    results = writer.add("Transpose", stacked, writer.const([1, 0, 2], "order"), dims=(dims[1], dims[0], dims[2]))
    return results, list(states)


def _wait_for(writer: LayerWriter, time: KerasTensor, outside: Collection[str]) -> None:
    """Constants that are not from outside wait for the step; TensorFlow does not run a loop with others."""
    for name, node in writer.model.nodes.items():
        if name not in outside and node.op == "Const":
            writer.model.put(node.replace(inputs=[f"^{time.ref}"]))


def _array(writer: LayerWriter, length: KerasTensor, of: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
    """An array of tensors, and its flow."""
    array = writer.add("TensorArrayV3", length, dims=(2,), dtype=of.dtype)
    return array, KerasTensor(f"{array.ref}:1", (), FLOAT)


def _filled(
    writer: LayerWriter, value: KerasTensor, steps: KerasTensor, length: KerasTensor
) -> tuple[KerasTensor, KerasTensor, Dims, DType]:
    """An array of a tensor's rows: it, its flow, and the sizes and type of a row."""
    array, flow = _array(writer, length, value)
    flow = writer.add("TensorArrayScatterV3", array, steps, value, flow, dims=())
    return array, flow, value.dims[1:], value.dtype


def _products(writer: LayerWriter, value: KerasTensor, bias: np.ndarray | None) -> KerasTensor:
    """The inputs of all steps times their weights, and the bias."""
    kernel = writer.weight("kernel")
    rows = writer.add("MatMul", writer.reshaped(value, (None, kernel.dims[0])), kernel, dims=(None, kernel.dims[1]))
    if bias is not None:
        rows = writer.add("BiasAdd", rows, writer.const(bias, "bias", FLOAT))
    return writer.reshaped(rows, (*value.dims[:2], kernel.dims[1]), value)


def _bias(writer: LayerWriter) -> np.ndarray | None:
    return writer.array("bias") if writer.config.get("use_bias", True) else None


def _times(loop: LoopOverTime, value: KerasTensor, matrix: KerasTensor) -> KerasTensor:
    return loop.writer.add("MatMul", value, loop.constant(matrix), dims=(value.dims[0], matrix.dims[1]))


def _gates(loop: LoopOverTime, value: KerasTensor, count: int) -> list[KerasTensor]:
    """A tensor's columns in equal parts."""
    dims = (value.dims[0], int(value.dims[1] or 0) // count)
    split = loop.writer.add("Split", loop.writer.const(1, "number"), value, dims=dims, num_split=count)
    return [split._replace(ref=f"{split.ref}:{port}" if port else split.ref) for port in range(count)]


def simple_rnn(writer: LayerWriter, value: KerasTensor, units: int) -> tuple[Step, int, KerasTensor]:
    matrix = writer.weight("recurrent_kernel")

    def step(loop: LoopOverTime, product: KerasTensor, states: list[KerasTensor]) -> list[KerasTensor]:
        total = writer.add("AddV2", product, _times(loop, states[0], matrix))
        return [activated(writer, total, writer.config.get("activation", "tanh"))]

    return step, 1, _products(writer, value, _bias(writer))


def lstm(writer: LayerWriter, value: KerasTensor, units: int) -> tuple[Step, int, KerasTensor]:
    matrix = writer.weight("recurrent_kernel")
    outer, gate = writer.config.get("activation", "tanh"), writer.config.get("recurrent_activation", "hard_sigmoid")

    def step(loop: LoopOverTime, product: KerasTensor, states: list[KerasTensor]) -> list[KerasTensor]:
        result, cell = states
        total = writer.add("AddV2", product, _times(loop, result, matrix))
        parts = _gates(loop, total, 4)
        add, keep, show = (activated(writer, parts[at], gate) for at in (0, 1, 3))
        new = writer.add("Mul", add, activated(writer, parts[2], outer))
        cell = writer.add("AddV2", writer.add("Mul", keep, cell), new)
        return [writer.add("Mul", show, activated(writer, cell, outer)), cell]

    return step, 2, _products(writer, value, _bias(writer))


def gru(writer: LayerWriter, value: KerasTensor, units: int) -> tuple[Step, int, KerasTensor]:
    """With ``reset_after`` the products of the state have a bias of their own, and are reset after they are made."""
    after = bool(writer.config.get("reset_after", False))
    outer, gate = writer.config.get("activation", "tanh"), writer.config.get("recurrent_activation", "hard_sigmoid")
    bias, inner = _bias(writer), None
    if after and bias is not None:
        bias, inner = bias
    whole = writer.array("recurrent_kernel")
    matrix = writer.const(whole if after else whole[:, : 2 * units], "recurrent_kernel", FLOAT)
    last = None if after else writer.const(whole[:, 2 * units :], "candidate_kernel", FLOAT)
    offset = None if inner is None else writer.const(inner, "recurrent_bias", FLOAT)

    def step(loop: LoopOverTime, product: KerasTensor, states: list[KerasTensor]) -> list[KerasTensor]:
        (state,) = states
        update, reset, candidate = _gates(loop, product, 3)
        recurrent = _times(loop, state, matrix)
        if offset is not None:
            recurrent = writer.add("BiasAdd", recurrent, loop.constant(offset))
        of_state = _gates(loop, recurrent, 3 if after else 2)
        update, reset = (
            activated(writer, writer.add("AddV2", one, other), gate)
            for one, other in zip((update, reset), of_state, strict=False)
        )
        if last is None:
            more = writer.add("Mul", reset, of_state[2])
        else:
            more = _times(loop, writer.add("Mul", reset, state), last)
        candidate = activated(writer, writer.add("AddV2", candidate, more), outer)
        kept = writer.add("Mul", update, writer.add("Sub", state, candidate))
        return [writer.add("AddV2", candidate, kept)]

    return step, 1, _products(writer, value, bias)


CELLS = {"SimpleRNN": simple_rnn, "LSTM": lstm, "GRU": gru}
RULES: dict[str, Rule] = dict.fromkeys(CELLS, recurrent)
