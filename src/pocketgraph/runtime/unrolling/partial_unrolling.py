"""Long loops become short ones: as many rounds written out at once as are worth compiling, again and again.

A loop of 600 rounds written out whole takes seconds to compile, and left as it is it goes through the interpreter 600
times. Thirty rounds written out are one part that LiteRT takes as a whole, run twenty times. What is read from a
TensorArray in these rounds is one block of rows, what is written is another, and what counts is read from a table.

    before:  600 times:  h = Tanh(x[i] @ w + h); y[i] = h
    after:   20 times:   x_0, … x_29 = Unpack(blocks[i]); h_0 = Tanh(x_0 @ w + h); …; y[i] = Pack(h_0, … h_29)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.frame_writer import Fact, FrameWriter
from pocketgraph.runtime.unrolling.symbolic_values import (
    LISTS,
    READS,
    SIZES,
    WRITES,
    CannotUnrollError,
    Counted,
    Filling,
    HeldArray,
    KnownValue,
    NodeOutput,
    Value,
    changing,
)
from pocketgraph.runtime.unrolling.tensor_array_elimination import TensorArrays
from pocketgraph.runtime.unrolling.trip_count import TripCount

BY_CHUNKS = "/by_chunks"  # ends the names of frames that are made here
FEWEST_CHUNKS = 2


@dataclass
class Chunk:
    """What is noted while one chunk is written.

    Attributes:
        ahead: what counts.
        length: rounds of a chunk.
        frame: the new loop, of which each round is a chunk.
        rows: by the node inside that gives them, the elements that are read: by round, by chunk.
        tables: by the node inside that gives them, the tensors that count.
        writes: by TensorArray, by node: by round, the indices (by chunk) and what is written.
        taken: by TensorArray, the indices that are read.
    """

    ahead: TripCount
    length: int
    frame: FrameWriter
    rows: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    tables: dict[str, Endpoint] = field(default_factory=dict)
    writes: dict[str, dict[str, dict[int, tuple[list[int], str]]]] = field(default_factory=dict)
    taken: dict[str, set[int]] = field(default_factory=dict)

    def series(self, endpoint: Endpoint, turn: int) -> list[np.ndarray[Any, Any]]:
        """The value in this round of each chunk."""
        return list(self.ahead.series[endpoint][turn : self.frame.rounds * self.length : self.length])

    def value(self, endpoint: Endpoint, turn: int) -> Value:
        """A tensor that counts, in this round; known when it is the same in every chunk."""
        values = self.series(endpoint, turn)
        if all(np.array_equal(values[0], value) for value in values[1:]):
            return KnownValue(values[0], True)
        return Counted(endpoint, turn)


class _PartialRounds(NamedTuple):
    """The rounds of one chunk, written.

    Attributes:
        last: what the variables are after them.
        firsts, lasts: of those that go from chunk to chunk, what they are after the first round and after all.
        size: how many nodes the first round takes.
    """

    last: Mapping[str, Value]
    firsts: Sequence[str]
    lasts: Sequence[str]
    size: int


class PartialUnrolling(TensorArrays, ABC):
    """Writes loops whose bodies are many rounds of other loops."""

    chunk: Chunk | None = None

    @abstractmethod
    def run(
        self, order: Sequence[Item], state: dict[Endpoint, Value], invariant: dict[Endpoint, Value], turn: int
    ) -> None:
        """Writes out these nodes of one round; ``state`` has the loop's variables."""

    def in_chunks(
        self,
        frame: str,
        order: Sequence[Item],
        back: Mapping[str, Endpoint],
        state: dict[Endpoint, Value],
        invariant: Mapping[Endpoint, Value],
        ahead: TripCount,
        length: int,
    ) -> int:
        """Writes ``length`` rounds as the body of a new loop; ``state`` then has the variables as they are after it.

        Args:
            frame: the loop's name.
            order: its nodes.
            back: for each loop variable, what it is in the next round.
            state: what every tensor was in the last round, and the variables of the next.
            invariant: what was written once for all rounds.
            ahead: the rounds to come.
            length: rounds of a chunk.

        Returns:
            How many rounds of the old loop the new one does.

        Raises:
            CannotUnrollError: something cannot be done in chunks; nothing of what was written then may stay.
        """
        chunk = Chunk(ahead, length, FrameWriter(self, frame + BY_CHUNKS, ahead.rounds // length))
        inside, carried = self._variables_inside(chunk, back, state)
        before = list(self.fresh)
        rounds = self._rounds(chunk, order, back, carried, inside, dict(invariant))
        for head, value in rounds.last.items():
            held = state[Endpoint(head, 0)]
            if isinstance(held, HeldArray) and value != Filling(head, held):
                raise CannotUnrollError("a TensorArray becomes another one")
        body = list(self.fresh)[len(before) :]
        known = chunk.frame.facts_of(before, {})
        entering = {chunk.frame.variable(n): v.name for n, v in enumerate(carried.values())}
        given = {inner: chunk.frame.fact(outer, known) for inner, outer in entering.items()}
        blocks = {name: self._blocks(chunk, rows, known) for name, rows in chunk.rows.items()}
        given.update({f"{name}:0": fact for name, (_, fact) in blocks.items()})
        given.update({f"{name}:0": self._fact_of_table(ahead, e) for name, e in chunk.tables.items()})
        facts = chunk.frame.facts_of([*before, *body[: rounds.size]], given)
        for inner, text in zip(entering, rounds.firsts, strict=True):
            if chunk.frame.fact(text, facts) != given[inner]:
                raise CannotUnrollError("a variable changes its shape")
        chunk.frame.begin()
        self._take_all(chunk, blocks)
        for number, (head, value) in enumerate(carried.items()):
            fact = given[chunk.frame.variable(number)]
            left = chunk.frame.carry(number, value.name, rounds.lasts[number], fact)
            state[Endpoint(head, 0)] = NodeOutput(left, True)
        for head, writes in chunk.writes.items():
            state[Endpoint(head, 0)] = self._filled(chunk, head, state[Endpoint(head, 0)], writes, facts)
        chunk.frame.enter_all(body, facts)
        done = chunk.frame.rounds * length
        for head in back:
            if isinstance(state[Endpoint(head, 0)], KnownValue):
                series = ahead.series[Endpoint(head, 0)]
                state[Endpoint(head, 0)] = KnownValue(series[done] if done < ahead.rounds else ahead.after[head], True)
        return done

    def _rounds(
        self,
        chunk: Chunk,
        order: Sequence[Item],
        back: Mapping[str, Endpoint],
        carried: Mapping[str, NodeOutput],
        inside: dict[Endpoint, Value],
        once: dict[Endpoint, Value],
    ) -> _PartialRounds:
        """Writes the rounds of a chunk; ``inside`` then has the variables as they are after it."""
        written = len(self.fresh)
        size, firsts = 0, list[str]()
        following: dict[str, Value] = {}
        self.chunk = chunk
        try:
            for turn in range(chunk.length):
                self._one_round(chunk, order, inside, once, turn)
                following = {head: inside[source] for head, source in back.items()}
                if not turn:
                    firsts = [self.text(following[head]) for head in carried]
                    size = len(self.fresh) - written
                for head, value in following.items():
                    inside[Endpoint(head, 0)] = changing(value)
            lasts = [self.text(following[head]) for head in carried]
        finally:
            self.chunk = None
        return _PartialRounds(following, firsts, lasts, size)

    def _fact_of_table(self, ahead: TripCount, endpoint: Endpoint) -> Fact:
        first = ahead.series[endpoint][0]
        return DType.of_numpy(first.dtype), Shape(first.shape)

    def _take_all(self, chunk: Chunk, blocks: Mapping[str, tuple[str, Fact]]) -> None:
        """Gives each round of the chunk its rows of TensorArrays and its numbers that count."""
        for name, (block, (dtype, _)) in blocks.items():
            chunk.frame.take(name, block, dtype, chunk.length)
        for name, endpoint in chunk.tables.items():
            values = [chunk.ahead.series[endpoint][turn] for turn in range(chunk.frame.rounds * chunk.length)]
            table = np.stack(values).reshape(chunk.frame.rounds, chunk.length, *values[0].shape)
            chunk.frame.take(name, self.constant(table), DType.of_numpy(table.dtype), chunk.length)

    def _variables_inside(
        self, chunk: Chunk, back: Mapping[str, Endpoint], state: Mapping[Endpoint, Value]
    ) -> tuple[dict[Endpoint, Value], dict[str, NodeOutput]]:
        """What the variables are when a chunk begins, and those that go from chunk to chunk."""
        inside, carried = dict(state), dict[str, NodeOutput]()
        for head in back:
            value = state[Endpoint(head, 0)]
            if isinstance(value, NodeOutput):
                inside[Endpoint(head, 0)] = NodeOutput(chunk.frame.variable(len(carried)), True)
                carried[head] = value
            elif isinstance(value, HeldArray):
                inside[Endpoint(head, 0)] = Filling(head, value)
            elif not isinstance(value, KnownValue):
                raise CannotUnrollError("a variable that is no tensor")
        return inside, carried

    def _one_round(
        self, chunk: Chunk, order: Sequence[Item], inside: dict[Endpoint, Value], once: dict[Endpoint, Value], turn: int
    ) -> None:
        for endpoint in chunk.ahead.series:
            inside[endpoint] = chunk.value(endpoint, turn)
        self.guards = {}
        for item in order:
            if item.node.name not in chunk.ahead.moving:
                self.run([item], inside, once, turn)
        if any(self.guards.values()):
            raise CannotUnrollError("an assertion")

    # What the rounds of a chunk read and write

    def text(self, value: Value) -> str:
        if not isinstance(value, Counted) or self.chunk is None:
            return super().text(value)
        name = f"{self.chunk.frame.name}/counted/{value.endpoint.node}/{value.endpoint.port}"
        self.chunk.tables[name] = value.endpoint
        return f"{name}:{value.turn}"

    def run_array(self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value], turn: int) -> None:
        if self.chunk is None:
            super().run_array(item, data, state, turn)
            return
        node, op = item.node, item.node.op
        result = Endpoint(node.name, 0)
        if op in WRITES or op == "TensorListSetItem":
            flow, value = (data[3], data[2]) if op in WRITES else (data[0], data[2])
            if not isinstance(flow, Filling):
                raise CannotUnrollError("a TensorArray from elsewhere")
            writes = self.chunk.writes.setdefault(flow.head, {}).setdefault(node.name, {})
            writes[turn] = self._indices(data[1]), self.text(value)
            state[result] = flow
            return
        flow = data[0] if op in LISTS else data[-1]
        if not isinstance(flow, (HeldArray, Filling)):
            raise CannotUnrollError("a TensorArray from elsewhere")
        held = flow.before if isinstance(flow, Filling) else flow
        if op in SIZES or op == "TensorListLength":
            if held.grows and isinstance(flow, Filling):
                raise CannotUnrollError("a TensorArray that grows is asked for its size")
            state[result] = KnownValue(np.array(held.size, np.int32), held.grows)
        elif op in READS or op == "TensorListGetItem":
            indices = self._indices(data[1])
            if any(index not in held.elements for index in indices):
                raise CannotUnrollError("it reads what was not written")
            if isinstance(flow, Filling):
                self.chunk.taken.setdefault(flow.head, set()).update(indices)
            name = f"{self.chunk.frame.name}/rows/{node.name}"
            self.chunk.rows.setdefault(name, {})[turn] = [held.elements[index].name for index in indices]
            state[result] = NodeOutput(f"{name}:{turn}", True)
        else:
            raise CannotUnrollError(f"{op} inside of the loop")

    def _indices(self, value: Value) -> list[int]:
        """An index in this round of each chunk."""
        assert self.chunk is not None
        if isinstance(value, Counted):
            return [int(index) for index in self.chunk.series(value.endpoint, value.turn)]
        return [int(self.known(value))] * self.chunk.frame.rounds

    def _blocks(self, chunk: Chunk, rows: Mapping[int, Sequence[str]], known: Any) -> tuple[str, Any]:
        """The rows that are read at one place, as a tensor [chunks, rounds, …], and what is known of one row."""
        if sorted(rows) != list(range(chunk.length)):
            raise CannotUnrollError("a TensorArray that is not read in every round")
        names = [rows[turn][number] for number in range(chunk.frame.rounds) for turn in range(chunk.length)]
        fact = chunk.frame.row_fact(names[0], known)
        if any(chunk.frame.row_fact(name, known) != fact for name in dict.fromkeys(names)):
            raise CannotUnrollError("rows of several shapes")
        stacked = self.stacked(names, fact[0])
        return chunk.frame.shaped(stacked, (chunk.frame.rounds, chunk.length, *fact[1].known), fact[0]), fact

    def _filled(self, chunk: Chunk, head: str, held: Value, writes: Mapping[str, Any], facts: Any) -> HeldArray:
        """A TensorArray with what all chunks have written into it."""
        assert isinstance(held, HeldArray)
        elements, seen = dict(held.elements), set[int]()
        for place, (node, by_turn) in enumerate(writes.items()):
            if sorted(by_turn) != list(range(chunk.length)):
                raise CannotUnrollError("a TensorArray that is not written in every round")
            fact = chunk.frame.fact(by_turn[0][1], facts)
            made = [by_turn[turn][1] for turn in range(chunk.length)]
            table = chunk.frame.collect(f"{chunk.frame.name}/{head}/{place}", made, fact)
            is_list = self.plan.items[node].node.op in LISTS  # of which an element may be set again
            here = set[int]()
            for number in range(chunk.frame.rounds):
                for turn in range(chunk.length):
                    index = by_turn[turn][0][number]
                    again = index in held.elements or index in here
                    if not held.takes(index) or index in seen or (again and not is_list):
                        raise CannotUnrollError("a TensorArray is written in an unknown way")
                    here.add(index)
                    elements[index] = NodeOutput(f"{table}:{number * chunk.length + turn}")
            seen |= here
        if seen & chunk.taken.get(head, set()):
            raise CannotUnrollError("it reads what it wrote in an earlier round")
        return held.filled(elements)
