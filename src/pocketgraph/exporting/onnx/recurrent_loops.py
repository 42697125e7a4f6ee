"""Loops that are an LSTM or a GRU over a sequence, as dynamic_rnn and Keras write them, become ONNX's LSTM and GRU.

What is looked for is what is computed, not how nodes are called: gates that are parts of one sum of matrix products of
the step's input and the last output (recurrent_body.py), and the cell's equations behind them (recurrent_cells.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.exporting.onnx.recurrent_body import READS, NoMatch
from pocketgraph.exporting.onnx.recurrent_cells import RecurrentCell
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import EXIT, SUMS
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.constant_trip_counts import counts, outside, trip_count

WRITES = {"TensorArrayWriteV3": (1, 2, 3), "TensorListSetItem": (1, 2, 0)}
"""The inputs of a write that are the index, the value and the array."""


def recurrent(
    prepared: Prepared, members: Mapping[str, Item], heads: Mapping[str, tuple[Endpoint, Endpoint]], emit: OnnxEmit
) -> dict[str, OnnxValue] | None:
    """What the variables of a loop are when it ends, where it is an LSTM or a GRU over a whole sequence; else None."""
    cell = RecurrentCell(prepared, heads, emit)
    rounds = trip_count(prepared.items, prepared.inferred, members, heads)
    states = [
        n for n in heads if not counts(prepared.items, prepared.inferred, n, *heads[n]) and _is_matrix(prepared, n)
    ]
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
    if index not in cell.heads or not counts(cell.prepared.items, cell.prepared.inferred, index, *cell.heads[index]):
        raise NoMatch
    value = cell.emit.value(str(outside(cell.prepared.items, item.data[READS[item.node.op]])))
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
    left = {cell.source(item.data[0]).node for item in members.values() if item.node.op in EXIT}
    for name, (first, last) in cell.heads.items():
        if name in states or name not in left:
            continue
        if counts(cell.prepared.items, cell.prepared.inferred, name, first, last):
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
            counter in cell.heads
            and counts(cell.prepared.items, cell.prepared.inferred, counter, *cell.heads[counter])
            and found.get("") is not None
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
    return item.node.op == "Mul" and cell.items[cell.source(cell.heads[other][1]).node].node.op in SUMS
