"""The cells of LSTMs and GRUs, found in a loop's body by their equations, as ONNX's LSTM and GRU."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.recurrent import lstm
from pocketgraph.exporting.onnx.recurrent_body import NoMatch, RecurrentBody
from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert.constant import Array


class RecurrentCell(RecurrentBody):
    """A loop's body as a cell; each way raises NoMatch where the body is another one."""

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
        forget, _, new = self.kept_and_new(following[state], state)
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
        update, old, new = self.kept_and_new(self.source(self.heads[state][1]), state)
        rest, candidate = self.pair(new, "Mul")
        if self.items[self.source(rest).node].node.op == "Tanh":
            rest, candidate = candidate, rest
        one, same = self.pair(rest, "Sub")
        ones = self.constant(one)
        if ones is None or not (ones == 1).all() or self.source(same) != self.source(update):
            raise NoMatch
        return update, old, candidate

    def kept_and_new(self, following: Endpoint, state: str) -> tuple[Endpoint, Endpoint, Endpoint]:
        """The gate, the last value of ``state`` and the other product of ``following``: ``gate * last + product``."""
        kept, new = self.pair(following, "Add", "AddV2")
        if not any(self.is_state(e, state) for e in self.item(kept, "Mul").data):
            kept, new = new, kept
        gate, old = self.pair(kept, "Mul")
        if not self.is_state(old, state):
            gate, old = old, gate
        if not self.is_state(old, state):
            raise NoMatch
        return gate, old, new

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
