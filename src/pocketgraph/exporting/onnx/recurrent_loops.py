"""Loops that are an LSTM or a GRU over a sequence, as dynamic_rnn and Keras write them, become ONNX's LSTM and GRU.

What is looked for is what is computed, not how nodes are called: gates that are parts of one sum of matrix products of
the step's input and the last output, and the cell's equations behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pocketgraph.exporting.onnx.emitter import OnnxEmit
from pocketgraph.exporting.onnx.ops.recurrent import lstm
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.exporting.onnx.program import OnnxValue
from pocketgraph.exporting.onnx.trip_counts import behind, counts, outside, trip_count
from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.registry import evaluate
from pocketgraph.litert.constant import Array
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.needed import Item

SUMS = ops_with("sum") | {"BiasAdd"}
MOVES = ("Split", "Squeeze", "Reshape", "StridedSlice", "Unpack", "ConcatV2", "Transpose")
"""Not a trait: what is done to constants inside of a loop."""
READS = {"TensorArrayReadV3": 2, "TensorListGetItem": 0}
"""What reads a step's input, and which of its inputs is the array's content."""
WRITES = {"TensorArrayWriteV3": (1, 2, 3), "TensorListSetItem": (1, 2, 0)}
"""The inputs of a write that are the index, the value and the array."""


class NoMatch(Exception):  # noqa: N818 - it is an answer, not an error
    """The loop is something else."""


@dataclass
class Linear:
    """A sum of products with constants.

    Attributes:
        of_input: the matrix that the step's input is multiplied with.
        of_state: the matrix that the last output is multiplied with.
        bias: what is added.
    """

    of_input: Array | None = None
    of_state: Array | None = None
    bias: Array | None = None


class RecurrentCell:
    """The body of one loop, looked at as a recurrent cell."""

    def __init__(self, prepared: Prepared, heads: Mapping[str, tuple[Endpoint, Endpoint]], emit: OnnxEmit) -> None:
        self.prepared = prepared
        self.items = prepared.items
        self.heads = heads
        self.emit = emit
        self.read: Item | None = None

    # What tensors are

    def source(self, endpoint: Endpoint) -> Endpoint:
        """What a tensor is, behind what only passes it on."""
        return behind(self.prepared, endpoint)

    def item(self, endpoint: Endpoint, *ops: str) -> Item:
        """The node that makes a tensor, which must be one of these ops."""
        item = self.items.get(self.source(endpoint).node)
        if item is None or item.node.op not in ops:
            raise NoMatch
        return item

    def constant(self, endpoint: Endpoint) -> Array | None:
        """A tensor's value, where it is a constant from outside of the loop."""
        top = outside(self.prepared, endpoint)
        found = self.emit.known(str(top))
        if found is not None:
            return found.numpy()
        item = self.items.get(top.node)
        if item is None or item.node.op not in MOVES:
            return None
        values = [self.constant(part) for part in item.data]
        if any(value is None for value in values):
            return None
        return np.asarray(evaluate(item.node, values)[top.port])

    def is_state(self, endpoint: Endpoint, name: str) -> bool:
        return self.source(endpoint).node == name

    def pair(self, endpoint: Endpoint, *ops: str) -> tuple[Endpoint, Endpoint]:
        a, b = self.item(endpoint, *ops).data[:2]
        return a, b

    def step_input(self, endpoint: Endpoint) -> bool:
        """Whether a tensor is the step's input; the first one that may be is it."""
        item = self.items.get(self.source(endpoint).node)
        if item is None or item.node.op not in READS:
            return False
        if self.read is None:
            self.read = item
        return item is self.read

    def linear(self, endpoint: Endpoint, state: str, is_state: Callable[[Endpoint], bool] | None = None) -> Linear:
        """A sum of products of the step's input and the state ``state`` with constants, and of constants.

        ``is_state`` says what stands for the state, where it is not the state itself.
        """
        found = Linear()
        waiting = [endpoint]
        while waiting:
            top = self.source(waiting.pop())
            value = self.constant(top)
            item = self.items.get(top.node)
            if value is not None:
                found.bias = value.reshape(-1) if found.bias is None else found.bias + value.reshape(-1)
            elif item is None:
                raise NoMatch
            elif item.node.op in SUMS:
                waiting.extend(item.data[:2])
            elif item.node.op == "Squeeze":
                waiting.append(item.data[0])
            elif item.node.op == "MatMul":
                self._product(item, is_state or (lambda part: self.is_state(part, state)), self.units(state), found)
            else:
                raise NoMatch
        return found

    def _product(self, item: Item, is_state: Callable[[Endpoint], bool], units: int, found: Linear) -> None:
        if item.node.attr("transpose_a", False) or item.node.attr("transpose_b", False):
            raise NoMatch
        left, weights = self.source(item.data[0]), self.constant(item.data[1])
        if weights is None:
            raise NoMatch
        joined = self.items.get(left.node)
        if joined is not None and joined.node.op == "ConcatV2" and len(joined.data) == 3:
            if not self.step_input(joined.data[0]) or not is_state(joined.data[1]):
                raise NoMatch
            if found.of_input is not None or found.of_state is not None:
                raise NoMatch
            found.of_input, found.of_state = weights[:-units], weights[-units:]
        elif self.step_input(left) and found.of_input is None:
            found.of_input = weights
        elif is_state(left) and found.of_state is None:
            found.of_state = weights
        else:
            raise NoMatch

    def gate(self, endpoint: Endpoint) -> tuple[Endpoint, float]:
        """A part of a Split, and the constant that is added to it."""
        top = self.source(endpoint)
        item = self.items.get(top.node)
        if item is None:
            raise NoMatch
        if item.node.op in ("Add", "AddV2"):
            for part, other in (item.data, item.data[::-1]):
                added = self.constant(other)
                if added is not None and added.size == 1:
                    return self.gate(part)[0], float(added.reshape(-1)[0])
            raise NoMatch
        if item.node.op != "Split":
            raise NoMatch
        return top, 0.0

    def units(self, state: str) -> int:
        """How many numbers a state has."""
        size = self.prepared.inferred.shape(f"{state}:0")[-1]
        if size is None:
            raise NoMatch
        return size

    def part(self, endpoint: Endpoint, units: int) -> tuple[Endpoint, int]:
        """What a tensor is a part of, along the last axis, and which one."""
        top = self.source(endpoint)
        item = self.items.get(top.node)
        if item is None:
            raise NoMatch
        if item.node.op == "Split":
            return self.source(item.data[1]), top.port
        if item.node.op != "StridedSlice":
            raise NoMatch
        begin, _, steps = (self.constant(part) for part in item.data[1:4])
        masks = [item.node.attr(f"{name}_mask", 0) for name in ("ellipsis", "new_axis", "shrink_axis")]
        if begin is None or steps is None or begin.size != 2 or (steps != 1).any() or any(masks):
            raise NoMatch
        start = 0 if item.node.attr("begin_mask", 0) & 2 else int(begin[1])
        if self.prepared.inferred.shape(str(top))[-1] != units or start % units:
            raise NoMatch
        return self.source(item.data[0]), start // units

    # Cells

    def as_lstm(self, state: str, output: str, x: OnnxValue) -> dict[str, OnnxValue]:
        """The values that the variables of an LSTM leave the loop with, and the outputs of all steps as ``""``."""
        following = {name: self.source(last) for name, (_, last) in self.heads.items()}
        gates: dict[str, Endpoint] = {}
        out, squashed = self.pair(following[output], "Mul")
        if self.items[self.source(out).node].node.op == "Tanh":
            out, squashed = squashed, out
        if self.source(self.item(squashed, "Tanh").data[0]) != following[state]:
            raise NoMatch
        gates["o"], bias_out = self.gate(self.item(out, "Sigmoid").data[0])
        kept, new = self.pair(following[state], "Add", "AddV2")
        if not any(self.is_state(e, state) for e in self.item(kept, "Mul").data):
            kept, new = new, kept
        forget, old = self.pair(kept, "Mul")
        if not self.is_state(old, state):
            forget, old = old, forget
        if not self.is_state(old, state):
            raise NoMatch
        gates["f"], forget_bias = self.gate(self.item(forget, "Sigmoid").data[0])
        into, candidate = self.pair(new, "Mul")
        if self.items[self.source(into).node].node.op == "Tanh":
            into, candidate = candidate, into
        gates["i"], bias_in = self.gate(self.item(into, "Sigmoid").data[0])
        gates["c"], bias_new = self.gate(self.item(candidate, "Tanh").data[0])
        split = self.items[gates["o"].node]
        if {gate.node for gate in gates.values()} != {split.node.name} or bias_out or bias_in or bias_new:
            raise NoMatch
        order = "".join(sorted(gates, key=lambda gate: gates[gate].port))
        sums = self.linear(split.data[1], output)
        if sums.of_input is None or sums.of_state is None or sorted(g.port for g in gates.values()) != [0, 1, 2, 3]:
            raise NoMatch
        weights = np.concatenate([sums.of_input, sums.of_state])
        bias = np.zeros(weights.shape[1], weights.dtype) if sums.bias is None else sums.bias
        if bias.shape != (weights.shape[1],):
            raise NoMatch
        begins = [self.emit.made(self.emit.value(str(self.heads[name][0]))) for name in (state, output)]
        sequence, last, cell = lstm(self.emit, x, begins[0], begins[1], weights, bias, order, forget_bias)
        return {"": sequence, output: last, state: cell}

    def as_gru(self, state: str, x: OnnxValue) -> dict[str, OnnxValue]:
        """As ``as_lstm``, for a GRU whose reset gate comes behind the recurrent product (Keras)."""
        units = self.units(state)
        update, _, candidate = self.mixed(state)
        inner, gated = self.pair(self.item(candidate, "Tanh").data[0], "Add", "AddV2")
        if self.items[self.source(inner).node].node.op == "Mul":
            inner, gated = gated, inner
        reset, recurrent = self.pair(gated, "Mul")
        if self.items[self.source(recurrent).node].node.op == "Sigmoid":
            reset, recurrent = recurrent, reset
        parts: dict[str, list[tuple[Endpoint, int]]] = {"h": [self.part(inner, units), self.part(recurrent, units)]}
        for name, gate in (("z", update), ("r", reset)):
            both = self.pair(self.item(gate, "Sigmoid").data[0], "Add", "AddV2")
            parts[name] = [self.part(endpoint, units) for endpoint in both]
        sides = [whole for whole, _ in parts["h"]]
        if sides[0] == sides[1]:
            raise NoMatch
        for name, both_parts in parts.items():
            parts[name] = both_parts if both_parts[0][0] == sides[0] else both_parts[::-1]
            if [whole for whole, _ in parts[name]] != sides or parts[name][0][1] != parts[name][1][1]:
                raise NoMatch
        from_input, from_state = (self.linear(side, state) for side in sides)
        if from_input.of_input is None or from_input.of_state is not None:
            raise NoMatch
        if from_state.of_state is None or from_state.of_input is not None:
            raise NoMatch
        ports = [parts[name][0][1] for name in "zrh"]
        if sorted(ports) != [0, 1, 2] or from_input.of_input.shape[1] != 3 * units:
            raise NoMatch
        columns = np.concatenate([np.arange(port * units, (port + 1) * units) for port in ports])
        none = np.zeros(3 * units, from_state.of_state.dtype)
        biases = [(none if side.bias is None else side.bias)[columns] for side in (from_input, from_state)]
        weights = from_input.of_input[:, columns], from_state.of_state[:, columns]
        return self.gru(state, x, weights, np.concatenate(biases), resets_behind=True)

    def as_first_gru(self, state: str, x: OnnxValue) -> dict[str, OnnxValue]:
        """As ``as_gru``, for a GRU whose reset gate comes before the recurrent product (TensorFlow 1's GRUCell)."""
        units = self.units(state)
        update, _, candidate = self.mixed(state)
        whole, place = self.part(update, units)
        gates = self.linear(self.item(whole, "Sigmoid").data[0], state)
        product = self.source(self.item(candidate, "Tanh").data[0])
        reset: list[tuple[Endpoint, int]] = []

        def is_reset_state(endpoint: Endpoint) -> bool:
            pair = self.pair(endpoint, "Mul")
            if not any(self.is_state(part, state) for part in pair):
                return False
            reset.append(self.part(pair[1] if self.is_state(pair[0], state) else pair[0], units))
            return True

        inner = self.linear(product, state, is_reset_state)
        if not reset or reset[0][0] != whole or {reset[0][1], place} != {0, 1}:
            raise NoMatch
        if gates.of_input is None or gates.of_state is None or inner.of_input is None or inner.of_state is None:
            raise NoMatch
        columns = np.concatenate([np.arange(port * units, (port + 1) * units) for port in (place, 1 - place)])
        kind = inner.of_state.dtype
        weights = (
            np.concatenate([gates.of_input[:, columns], inner.of_input], 1),
            np.concatenate([gates.of_state[:, columns], inner.of_state], 1),
        )
        first = np.zeros(2 * units, kind) if gates.bias is None else gates.bias[columns]
        second = np.zeros(units, kind) if inner.bias is None else inner.bias
        bias = np.concatenate([first, second, np.zeros(3 * units, kind)])
        return self.gru(state, x, weights, bias, resets_behind=False)

    def mixed(self, state: str) -> tuple[Endpoint, Endpoint, Endpoint]:
        """The update gate, the last output and the candidate of ``update * last + (1 - update) * candidate``."""
        kept, new = self.pair(self.source(self.heads[state][1]), "Add", "AddV2")
        if not any(self.is_state(e, state) for e in self.item(kept, "Mul").data):
            kept, new = new, kept
        update, old = self.pair(kept, "Mul")
        if not self.is_state(old, state):
            update, old = old, update
        rest, candidate = self.pair(new, "Mul")
        if self.items[self.source(rest).node].node.op == "Tanh":
            rest, candidate = candidate, rest
        one, same = self.pair(rest, "Sub")
        ones = self.constant(one)
        if ones is None or not (ones == 1).all() or self.source(same) != self.source(update):
            raise NoMatch
        if not self.is_state(old, state):
            raise NoMatch
        return update, old, candidate

    def gru(
        self, state: str, x: OnnxValue, weights: tuple[Array, Array], bias: Array, *, resets_behind: bool
    ) -> dict[str, OnnxValue]:
        """ONNX's GRU; weights of the input and of the last output, the gates in the order update, reset, candidate."""
        emit, units = self.emit, self.units(state)
        begins = emit.made(emit.value(str(self.heads[state][0])))
        operands = [
            x, *(emit.const(np.ascontiguousarray(part.T[None])) for part in weights), emit.const(bias[None]), None,
            emit.unsqueeze(begins, [0]),
        ]  # fmt: skip
        time, batch = x.shape[0], x.shape[1]
        shapes: list[Shape | None] = [Shape([time, 1, batch, units]), Shape([1, batch, units])]
        made = emit.ops("GRU", operands, 2, shapes, hidden_size=units, linear_before_reset=int(resets_behind))
        return {"": emit.squeeze(made[0], [1]), state: emit.squeeze(made[1], [0])}


def recurrent(
    prepared: Prepared, members: Mapping[str, Item], heads: Mapping[str, tuple[Endpoint, Endpoint]], emit: OnnxEmit
) -> dict[str, OnnxValue] | None:
    """What the variables of a loop are when it ends, where it is an LSTM or a GRU over a whole sequence; else None."""
    cell = RecurrentCell(prepared, heads, emit)
    rounds = trip_count(prepared, members, heads)
    states = [n for n in heads if not counts(prepared, n, *heads[n]) and _is_matrix(prepared, n)]
    if rounds is None or not 1 <= len(states) <= 2:
        return None
    one, other = states[0], states[-1]
    ways: list[Callable[[OnnxValue], dict[str, OnnxValue]]] = [
        lambda x: cell.as_lstm(one, other, x), lambda x: cell.as_lstm(other, one, x),
    ]  # fmt: skip
    if len(states) == 1:
        ways = [lambda x: cell.as_gru(one, x), lambda x: cell.as_first_gru(one, x)]
    for way in ways:
        try:
            found = way(_sequence(cell, members, rounds))
            return _at_the_end(cell, members, found, states, rounds)
        except (NoMatch, KeyError, ValueError, IndexError):
            cell.read = None
    return None


def _is_matrix(prepared: Prepared, name: str) -> bool:
    dtype = prepared.inferred.dtype(f"{name}:0")
    return prepared.inferred.shape(f"{name}:0").rank == 2 and dtype is not None and dtype.is_floating


def _sequence(cell: RecurrentCell, members: Mapping[str, Item], rounds: int) -> OnnxValue:
    """What the loop reads step by step: [time, batch, inputs]."""
    reads = [item for item in members.values() if item.node.op in READS]
    if len(reads) != 1:
        raise NoMatch
    item = reads[0]
    index = cell.source(item.data[1]).node
    if index not in cell.heads or not counts(cell.prepared, index, *cell.heads[index]):
        raise NoMatch
    value = cell.emit.value(str(outside(cell.prepared, item.data[READS[item.node.op]])))
    if not value.is_made or value.rank != 3 or value.shape[0] != rounds:
        raise NoMatch
    return value


def _at_the_end(
    cell: RecurrentCell, members: Mapping[str, Item], found: Mapping[str, OnnxValue], states: list[str], rounds: int
) -> dict[str, OnnxValue]:
    """The values of all variables that somebody takes."""
    emit, result = cell.emit, {name: found[name] for name in states}
    output = next(name for name in states if found[name].shape == found[states[0]].shape and name in found)
    outputs = {cell.source(cell.heads[name][1]) for name in states}
    left = {cell.source(item.data[0]).node for item in members.values() if item.node.op in loops.EXIT}
    for name, (first, last) in cell.heads.items():
        if name in states or name not in left:
            continue
        if counts(cell.prepared, name, first, last):
            dtype = cell.prepared.inferred.dtype(f"{name}:0")
            if dtype is None:
                raise NoMatch
            result[name] = emit.const(np.array(rounds, dtype.numpy))
            continue
        write = cell.items.get(cell.source(last).node)
        if write is None or write.node.op not in WRITES:
            raise NoMatch
        index, value, array = (write.data[place] for place in WRITES[write.node.op])
        if cell.source(array).node != name or cell.source(value) not in outputs:
            raise NoMatch
        output = next(n for n in states if cell.source(cell.heads[n][1]) == cell.source(value))
        place, counter = cell.constant(index), cell.source(index).node
        if place is not None and int(place.reshape(-1)[0]) == 0:
            made = emit.unsqueeze(found[output], [0])
        elif (
            counter in cell.heads and counts(cell.prepared, counter, *cell.heads[counter]) and found.get("") is not None
        ):
            if len(states) == 2 and not _is_output(cell, output, states):
                raise NoMatch
            made = found[""]
        else:
            raise NoMatch
        emit.arrays.add(made)
        result[name] = made
    return result


def _is_output(cell: RecurrentCell, name: str, states: list[str]) -> bool:
    """Whether a state of an LSTM is its output and not its cell."""
    other = next(state for state in states if state != name)
    item = cell.items[cell.source(cell.heads[name][1]).node]
    return item.node.op == "Mul" and cell.items[cell.source(cell.heads[other][1]).node].node.op in ("Add", "AddV2")
