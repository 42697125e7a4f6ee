"""Recurrent layers of Keras: a loop over time, as ``tf.while_loop`` of TensorFlow 1 writes it.

The products of the inputs with their weights are made for all steps ahead of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.formats.keras.activation_functions import activated
from pocketgraph.formats.keras.layer_writer import Dims, KerasTensor, LayerWriter, Rule, expanded, transposed
from pocketgraph.formats.keras.window_layers import convolution
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


def recurrent(writer: LayerWriter, value: KerasTensor, *given: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """SimpleRNN, LSTM and GRU, and those with convolutions in place of products."""
    if writer.config.get("stateful", False):
        raise writer.refuse(
            "keeps its state from call to call, which is not read: build the model with stateful=False and load its "
            "weights there, so that each call begins with zeros, and save it"
        )
    writer.expect(time_major=False, num_constants=None)
    units = int(writer.config["units"] if "units" in writer.config else writer.config["filters"])
    step, count, products = CELLS[writer.kind](writer, value, units)
    if len(given) not in (0, count):
        raise writer.refuse(f"is given {len(given)} states in place of {count}")
    batch = value.dims[0] if value.dims[0] is not None else writer.size(value, 0)
    space = writer.all_sizes(products)[2:-1] if len(products.dims) > 3 else []
    dims = (value.dims[0], *products.dims[2:-1], units)
    zeros = writer.add("Fill", writer.sizes([batch, *space, units]), writer.const(0, "zero", FLOAT), dims=dims)
    is_blind = bool(given) and writer.model.is_keras_3 and not writer.has_own_mask  # as Keras 3 is
    mask = None if is_blind else value.mask
    results, states = _over_time(writer, products, mask, step, given or [zeros] * count, zeros)
    if writer.kind == "ConvLSTM1D":
        results, *states = (writer.add("Squeeze", one, dims=(*one.dims[:-3], *one.dims[-2:]),
                            squeeze_dims=(len(one.dims) - 3,)) for one in (results, *states))  # fmt: skip
    keeps_time = bool(writer.config.get("return_sequences", False))
    first = results._replace(mask=value.mask) if keeps_time else states[0]
    return [first, *states] if writer.config.get("return_state", False) else first


def loop_over_cells(writer: LayerWriter, value: KerasTensor, *given: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """RNN of a cell, or of several, each a layer that reads what the one before gives."""
    outer, cell = writer.config, writer.config["cell"]
    cells = cell["config"]["cells"] if cell["class_name"] == "StackedRNNCells" else [cell]
    if cell["config"].get("reverse_state_order"):
        raise writer.refuse("has reverse_state_order=True, which is not read")
    states: list[KerasTensor] = []
    for at, one in enumerate(cells):
        kind = str(one["class_name"]).removesuffix("Cell")
        if kind not in CELLS or kind == one["class_name"]:
            raise writer.refuse(f"has the cell {one['class_name']}, which is not read")
        ways = {"return_state": True, "return_sequences": True, "go_backwards": outer.get("go_backwards") and not at}
        inner, rule = writer.inner({"class_name": kind, "config": {**outer, **one["config"], **ways}}, f"cell_{at}")
        inner.owners = ((f"{inner.scope}{cell['config'].get('name')}/", inner.layer), *inner.owners[1:])
        count = 2 if kind == "LSTM" else 1
        made = rule(inner, value, *given[:count])
        assert isinstance(made, list), "it returns its states"
        given, states, value = given[count:], states + made[1:], made[0]
    if given:
        raise writer.refuse("is given more states than its cells have")
    first = value if outer.get("return_sequences", False) else states[-count]
    return [first, *states] if outer.get("return_state", False) else first


def _in_steps(writer: LayerWriter, value: KerasTensor, name: str) -> KerasTensor:
    """A tensor with time ahead of the batch, and in the order in which it is read."""
    made = transposed(writer, value, [1, 0, *range(2, len(value.dims))], name)
    if writer.config.get("go_backwards", False):
        made = writer.add("ReverseV2", made, writer.const([0], "axis"))
    return made


def _over_time(
    writer: LayerWriter,
    products: KerasTensor,
    mask: KerasTensor | None,
    step: Step,
    start: Sequence[KerasTensor],
    zeros: KerasTensor,
) -> tuple[KerasTensor, list[KerasTensor]]:
    """The results of all steps, [batch, time, …, units], and the last states.

    A step that does not count has the result of the one before, at first zeros, or zeros throughout.
    """
    loop = LoopOverTime(writer)
    length = products.dims[1] if products.dims[1] is not None else writer.size(products, 1)
    length = writer.const(length, "length") if isinstance(length, int) else length
    steps = writer.add("Range", writer.const(0, "first"), length, writer.const(1, "delta"), dims=(products.dims[1],))
    read = [_filled(writer, _in_steps(writer, products, "steps"), steps, length)]
    if mask is not None:
        read.append(_filled(writer, _in_steps(writer, mask, "mask_steps"), steps, length))
    array, flow = _array(writer, length, start[0])
    is_zero = bool(writer.config.get("zero_output_for_mask", False))
    has_results = mask is not None and start[0] is not zeros and not is_zero
    variables = [writer.const(0, "time"), flow, *start, *([zeros] if has_results else [])]
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
    made = step(loop, inside[0], states[: len(start)])
    shown = made[0]
    if mask is not None:
        counts = inside[1]
        while len(counts.dims) < len(zeros.dims):
            counts = writer.add("ExpandDims", counts, writer.const(-1 if len(counts.dims) > 1 else 1, "number"),
                                dims=(*counts.dims, 1))  # fmt: skip
        if has_results or is_zero:
            made = [*made, shown]
            states = [*states[: len(start)], loop.constant(zeros) if is_zero else states[-1]]
        made = [writer.add("SelectV2", counts, new, old, dims=old.dims) for new, old in zip(made, states, strict=True)]
        shown = made[-1] if has_results or is_zero else made[0]
        made = made if has_results else made[: len(start)]
    written = writer.add("TensorArrayWriteV3", loop.constant(array), time, shown, flow, dims=())
    after = [writer.add("AddV2", time, writer.const(1, "number")), written, *made]
    _wait_for(writer, time, outside)
    nodes = writer.model.nodes
    for merge, enter, value in zip(merged, entered, after, strict=True):
        back = writer.add("NextIteration", value, dims=value.dims)
        nodes[merge.ref] = nodes[merge.ref].replace(inputs=[enter.ref, back.ref])
    _, flow, *states = (writer.add("Exit", one, dims=one.dims) for one in switched)
    dims = (products.dims[1], products.dims[0], *zeros.dims[1:])
    stacked = writer.add("TensorArrayGatherV3", array, steps, flow, dims=dims, dtype=writer.float_type)
    return transposed(writer, stacked, [1, 0, *range(2, len(dims))]), list(states[: len(start)])


def _wait_for(writer: LayerWriter, time: KerasTensor, outside: Collection[str]) -> None:
    """Constants that are not from outside wait for the step; TensorFlow does not run a loop with others."""
    for name, node in writer.model.nodes.items():
        if name not in outside and node.op == "Const":
            writer.model.put(node.replace(inputs=[f"^{time.ref}"]))


def _array(writer: LayerWriter, length: KerasTensor, of: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
    """An array of tensors, and its flow."""
    array = writer.add("TensorArrayV3", length, dims=(2,), dtype=of.dtype)
    return array, KerasTensor(f"{array.ref}:1", ())


def _filled(
    writer: LayerWriter, value: KerasTensor, steps: KerasTensor, length: KerasTensor
) -> tuple[KerasTensor, KerasTensor, Dims, DType]:
    """An array of a tensor's rows: it, its flow, and the sizes and type of a row."""
    array, flow = _array(writer, length, value)
    flow = writer.add("TensorArrayScatterV3", array, steps, value, flow, dims=())
    return array, flow, value.dims[1:], value.dtype


def _convolved(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The convolutions of the inputs of all steps, and the bias, as a larger batch."""
    frames = writer.reshaped(value, (None, *value.dims[2:]))
    inner = LayerWriter(writer.model, f"Conv{writer.kind[-2:]}", {**writer.config, "activation": None}, writer.scope,
                        f"{writer.call}/frames")  # fmt: skip
    inner.owners = writer.owners
    made = convolution(inner, frames)
    return writer.reshaped(made, (*value.dims[:2], *made.dims[1:]), value)


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
    dims = (*value.dims[:-1], matrix.dims[-1])
    if len(dims) == 2:
        return loop.writer.add("MatMul", value, loop.constant(matrix), dims=dims)
    op, strides = "Conv3D" if len(dims) == 5 else "Conv2D", (1,) * len(dims)
    return loop.writer.add(op, value, loop.constant(matrix), dims=dims, strides=strides, padding=b"SAME")


def _gates(loop: LoopOverTime, value: KerasTensor, count: int) -> list[KerasTensor]:
    """A tensor's columns in equal parts."""
    dims = (*value.dims[:-1], int(value.dims[-1] or 0) // count)
    split = loop.writer.add("Split", loop.writer.const(len(dims) - 1, "number"), value, dims=dims, num_split=count)
    return [split._replace(ref=f"{split.ref}:{port}" if port else split.ref) for port in range(count)]


def simple_rnn(writer: LayerWriter, value: KerasTensor, units: int) -> tuple[Step, int, KerasTensor]:
    matrix = writer.weight("recurrent_kernel")

    def step(loop: LoopOverTime, product: KerasTensor, states: list[KerasTensor]) -> list[KerasTensor]:
        total = writer.add("AddV2", product, _times(loop, states[0], matrix))
        return [activated(writer, total, writer.config.get("activation", "tanh"))]

    return step, 1, _products(writer, value, _bias(writer))


def lstm(writer: LayerWriter, value: KerasTensor, units: int) -> tuple[Step, int, KerasTensor]:
    """Long short-term memory; of ConvLSTM the states are pictures, which a convolution reads in place of a product."""
    matrix, is_conv = writer.weight("recurrent_kernel"), writer.kind.startswith("Conv")
    outer, gate = writer.config.get("activation", "tanh"), writer.config.get("recurrent_activation", "hard_sigmoid")
    products = _convolved(writer, value) if is_conv else _products(writer, value, _bias(writer))
    if writer.kind == "ConvLSTM1D":
        products, matrix = expanded(writer, products, 2), expanded(writer, matrix, 0)

    def step(loop: LoopOverTime, product: KerasTensor, states: list[KerasTensor]) -> list[KerasTensor]:
        result, cell = states
        total = writer.add("AddV2", product, _times(loop, result, matrix))
        parts = _gates(loop, total, 4)
        add, keep, show = (activated(writer, parts[at], gate) for at in (0, 1, 3))
        new = writer.add("Mul", add, activated(writer, parts[2], outer))
        cell = writer.add("AddV2", writer.add("Mul", keep, cell), new)
        return [writer.add("Mul", show, activated(writer, cell, outer)), cell]

    return step, 2, products


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


CELLS = {
    "SimpleRNN": simple_rnn, "LSTM": lstm, "GRU": gru,
    "ConvLSTM1D": lstm, "ConvLSTM2D": lstm, "ConvLSTM3D": lstm,
}  # fmt: skip
RULES: dict[str, Rule] = {**dict.fromkeys(CELLS, recurrent), "RNN": loop_over_cells}
