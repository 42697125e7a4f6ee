"""Writes out loops whose number of rounds is known before the run, one after the other, so that no loop is left.

What counts and indexes (``time``, the condition) is computed here, TensorArrays become the tensors that were put into
them, and what does not change from round to round is written once. The recurrent cells of a dynamic_rnn become the
straight graph that a static_rnn would have been, which LiteRT takes as a whole.

    before:  i, h: while i < 3: h = Tanh(x[i] @ w + h); i = i + 1
    after:   h_1 = Tanh(x_0 @ w + h_0);  h_2 = Tanh(x_1 @ w + h_1);  h_3 = Tanh(x_2 @ w + h_2)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.budgets import check_time
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import CONVOLUTIONS, ENTER, EXIT, MERGE, PASSES
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.cost_model import MOST_IN_CHUNK, MOST_NODES, MOST_ROUNDS, MOST_WRITTEN
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import Plan, ordered_units
from pocketgraph.runtime.engines.frames import ROOT, Loop, frames_of
from pocketgraph.runtime.engines.needed import Item, behind, needed
from pocketgraph.runtime.unrolling.idempotent_rounds import later_ends
from pocketgraph.runtime.unrolling.partial_unrolling import BY_CHUNKS, FEWEST_CHUNKS, PartialUnrolling
from pocketgraph.runtime.unrolling.symbolic_values import (
    ARRAYS,
    LISTS,
    MOST_KNOWN,
    NOTHING,
    PASSED,
    CannotUnrollError,
    DeadValue,
    HeldArray,
    KnownValue,
    NodeOutput,
    Value,
    changing,
    dead_result,
    needed_by,
    ports_of,
)
from pocketgraph.runtime.unrolling.trip_count import count_trips

MOST_TRIES = 8  # of one loop
FAILURES = (CannotUnrollError, PocketgraphError, ValueError, TypeError, IndexError, KeyError, ZeroDivisionError)
"""What is raised where a loop must stay one, or is damaged."""


def unrolled(
    graph: Graph,
    plan: Plan,
    inferred: Inferred,
    conditional: Collection[str],
    kept: Collection[str],
    *,
    may_chunk: bool = True,
) -> Graph:
    """The graph without the loops that can be written out; itself when there are none.

    Args:
        plan: its needed nodes.
        inferred: what is known of its tensors.
        conditional: nodes that do not run in every run; loops among them stay.
        kept: nodes that are fetched or targets.
        may_chunk: whether long loops may become shorter ones (see ``chunks``).
    """
    if all(frame is ROOT for frame in plan.frames.values()):
        return graph
    straight, has_chunks = _written(graph, plan, inferred, conditional, kept, may_chunk=may_chunk)
    if has_chunks and not _is_runnable(straight, plan.fed, kept):
        straight, _ = _written(graph, plan, inferred, conditional, kept, may_chunk=False)
    return straight


def _is_runnable(graph: Graph, fed: Collection[Endpoint], kept: Collection[str]) -> bool:
    """Whether what runs in the loops that were made stays in them, however odd the graph was."""
    try:
        frames_of(needed(graph, fed, (), [name for name in kept if name in graph]), fed)
    except PocketgraphError:
        return False
    return True


def _written(
    graph: Graph, plan: Plan, inferred: Inferred, conditional: Collection[str], kept: Collection[str], *,
    may_chunk: bool,
) -> tuple[Graph, bool]:  # fmt: skip
    """As ``unrolled``; and whether shorter loops were made of some."""
    own, found = loops.split(list(plan.items), ROOT, plan.items, plan.frames)
    work = _Unrolling(graph, plan, inferred, frozenset(kept), may_chunk=may_chunk)
    done = 0
    for unit, _ in ordered_units(own, found, plan):
        if isinstance(unit, Loop) and BY_CHUNKS not in unit.frame.name:
            before = work.mark()
            try:
                work.loop(unit, conditional)
                done += 1
            except FAILURES:
                work.back_to(before)
    if not done:
        return graph, False
    return work.result(), bool(work.chunked)


@dataclass
class _UnrolledRounds:
    """What is done in every round of a loop.

    Attributes:
        frame: the loop's name.
        first: the nodes that the condition needs, in order.
        second: the others.
        condition: the LoopCond.
        back: for each loop variable (its Merge), what it is in the next round.
        before: what every tensor was in the last round.
    """

    frame: str
    first: Sequence[Item]
    second: Sequence[Item]
    condition: Item
    back: Mapping[str, Endpoint]
    before: Mapping[Endpoint, Value] = field(default_factory=dict)


def _chunk(rounds: int, per_round: int) -> int:
    """How many rounds to write out at once so that few are left over; 0: all of them are few enough."""
    most = max(2, MOST_IN_CHUNK // per_round)
    if rounds < FEWEST_CHUNKS * most:
        return 0
    return min(range(most, most // 2, -1), key=lambda length: rounds % length)


class _Unrolling(PartialUnrolling):
    """Writes loops out, one after the other."""

    def loop(self, loop: Loop, conditional: Collection[str]) -> None:
        """Writes out one loop.

        Raises:
            CannotUnrollError: it must stay a loop.
        """
        items, frames = self.plan.items, self.plan.frames
        self.counted.clear()
        members = [items[name] for name in loop.members]
        if any(frames[i.node.name] != loop.frame and i.node.op not in EXIT for i in members):
            raise CannotUnrollError("there is a loop inside")
        enters = [i for i in members if i.node.op in ENTER]
        exits = [i for i in members if i.node.op in EXIT]
        if any(i.node.name in conditional for i in exits) or any(i.node.op.startswith("NodeOutput") for i in members):
            raise CannotUnrollError("it does not always run")
        body = Plan({i.node.name: i for i in members if i not in exits}, self.plan.fed, frames, {}, self.plan.library)
        names = list(body.items)
        order = [body.items[unit] for unit, _ in ordered_units(names, [], body) if isinstance(unit, str)]
        heads = {i.node.name: i for i in order if loops.is_loop_head(i, items)}
        self.check(order, heads)
        condition = next(i for i in order if i.node.op == "LoopCond")
        gate = needed_by(condition, body.items, heads)
        variables = {name: loops.first_and_next(head, items) for name, head in heads.items()}
        back = {name: again for name, (_, again) in variables.items()}
        ends = later_ends(condition, back, exits, self.plan)
        state: dict[Endpoint, Value] = {Endpoint(i.node.name, 0): self.entering(i) for i in enters}
        state.update((Endpoint(name, 0), self.outside(end)) for name, end in ends.items())
        for name, (first, _) in variables.items():
            state[Endpoint(name, 0)] = changing(state[first])
        invariant: dict[Endpoint, Value] = {}
        first_part = [i for i in order if i.node.name in gate]
        second_part = [i for i in order if i.node.name not in gate]
        work = _UnrolledRounds(loop.frame.name, first_part, second_part, condition, back)
        self.rounds(work, state, invariant)
        self.gone.update(loop.members)
        for item in exits:
            self.leave(item, state[behind(items, item.data[0], PASSES | {"Switch"})])

    def rounds(self, work: _UnrolledRounds, state: dict[Endpoint, Value], invariant: dict[Endpoint, Value]) -> None:
        """Writes the rounds, many of them as a shorter loop where they are too many."""
        before = written = len(self.fresh)
        turn = skipped = tries = 0
        worth_a_try = {1, 2}  # in the second round it may be seen that the first one was an exception
        while True:
            if self.may_chunk and turn in worth_a_try and tries < MOST_TRIES:
                per_round = sum(node.op != "Const" for node in [*self.fresh.values()][written:])
                done, left = self.skipped(work, state, invariant, max(1, per_round))
                tries += 1
                skipped += done
                turn += done
                if left:  # rounds until another branch is taken; the round after that shows how it goes on
                    worth_a_try |= {turn + left + 1, turn + left + 2}
            written = len(self.fresh)
            if not skipped and turn == 3:
                rounds = max((value.size for value in state.values() if isinstance(value, HeldArray)), default=1)
                if (written - before) // 3 * rounds > MOST_NODES:  # no need to find out the long way
                    raise CannotUnrollError("too many nodes")
            if turn - skipped > MOST_WRITTEN:
                raise CannotUnrollError("too many rounds")
            check_time("while loops were unrolled")
            self.guards = {}
            self.run(work.first, state, invariant, turn)
            if not bool(self.known(state[work.condition.data[0]])):
                return
            self.run(work.second, state, invariant, turn)
            following = {name: state[source] for name, source in work.back.items()}
            work.before = dict(state)
            for name, value in following.items():
                state[Endpoint(name, 0)] = changing(value)
            turn += 1

    def skipped(
        self, work: _UnrolledRounds, state: dict[Endpoint, Value], invariant: dict[Endpoint, Value], per_round: int
    ) -> tuple[int, int]:
        """Does many rounds as a loop of chunks: how many, 0 when they are few or cannot be done so; and how many more
        are like the last one."""
        start = {name: state[Endpoint(name, 0)] for name in work.back}
        order = [*work.first, *work.second]
        mark, found, rounds = self.mark(), dict(state), 0
        try:
            ahead = count_trips(order, work.condition, work.back, work.before, start, MOST_ROUNDS)
            rounds = ahead.rounds
            length = _chunk(rounds, per_round)
            # Their threads wait for each other least in one program, and take so long that calls do not count.
            convolves = any(item.node.op in CONVOLUTIONS for item in order)
            if not length or rounds == MOST_ROUNDS or (convolves and rounds * per_round <= MOST_NODES):
                return 0, rounds
            done = self.in_chunks(work.frame, order, work.back, found, invariant, ahead, length)
            self.chunked.add(work.frame)
        except FAILURES:
            self.back_to(mark)
            return 0, rounds
        state.update(found)
        return done, rounds - done

    def entering(self, item: Item) -> Value:
        if item.control and any(name in self.plan.items for name in item.control):
            waits = [self.plan.items[name].node.op for name in item.control]
            if any(op not in ("NoOp", "Const", "Identity") for op in waits):
                raise CannotUnrollError("it waits for something before it starts")
        return self.outside(item.data[0])

    def check(self, order: Sequence[Item], heads: Mapping[str, Item]) -> None:
        """Refuses bodies with effects, with branches, or with loops."""
        if sum(item.node.op == "LoopCond" for item in order) != 1:
            raise CannotUnrollError("it has no condition of its own")
        condition = next(item for item in order if item.node.op == "LoopCond").node.name
        for item in order:
            op, name = item.node.op, item.node.name
            if name in self.kept or any(e.node == name for e in self.plan.fed):
                raise CannotUnrollError("a node inside is fed or fetched")
            if op == "Switch" and item.data[1].node == condition and item.data[0].node not in heads:
                raise CannotUnrollError("its condition rules what is no variable")
            if op in PASSED or op in MERGE or op in ARRAYS or op in LISTS:
                continue
            if op in ("Switch", "_SwitchN", "Const", "NoOp", "Assert"):
                continue
            if opdefs.is_stateful(op) or self.plan.library.is_call(item.node):
                raise CannotUnrollError(f"the {op} inside may have effects")

    def run(
        self, order: Sequence[Item], state: dict[Endpoint, Value], invariant: dict[Endpoint, Value], turn: int
    ) -> None:
        """Writes out these nodes of one round; ``state`` has the loop's variables."""
        for item in order:
            node, op = item.node, item.node.op
            result = Endpoint(node.name, 0)
            if op in ENTER or (op in MERGE and loops.is_loop_head(item, self.plan.items)):
                continue
            data = [state[e] if e in state else self.from_outside(e) for e in item.data]
            dead = None if op in MERGE else dead_result(item, data, state)
            if op in MERGE:
                self.merge(item, data, state)
            elif dead is not None:
                for port in range(max(2, ports_of(node))):
                    state[Endpoint(node.name, port)] = dead
            elif op == "NoOp":
                self.guards[node.name] = self.guards_of(item)
                state[result] = KnownValue(NOTHING)
            elif op == "Const":
                state[result] = self.constant_inside(item, invariant, turn)
            elif result in invariant:
                for port in range(ports_of(node)):
                    state[Endpoint(node.name, port)] = invariant[Endpoint(node.name, port)]
            elif op in ("Switch", "_SwitchN"):
                self.switch(item, data, state)
            elif op in PASSED and not self.guards_of(item):
                state[result] = data[0]
            elif op in ARRAYS or op in LISTS:
                self.run_array(item, data, state, turn)
            elif op == "Assert":
                self.guard(item, data, turn)
            else:
                self.write(item, data, state, invariant, turn)

    def from_outside(self, endpoint: Endpoint) -> Value:
        item = self.plan.items.get(endpoint.node)
        if item is None or item.node.op != "Const":
            raise CannotUnrollError("a tensor from elsewhere")
        return self.outside(endpoint)

    def guards_of(self, item: Item) -> tuple[str, ...]:
        """The assertions of this round that a node waits for."""
        if not self.guards:
            return ()
        return tuple(dict.fromkeys(guard for name in item.control for guard in self.guards.get(name, ())))

    def guard(self, item: Item, data: Sequence[Value], turn: int) -> None:
        """An assertion; one that is known to hold is left out."""
        if isinstance(data[0], KnownValue) and bool(np.all(data[0].array)):
            return
        name = self.name(f"{item.node.name}/round_{turn}")
        self.add(item.node.replace(name=name, inputs=[self.text(value) for value in data]))
        self.guards[item.node.name] = (name,)

    def switch(self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value]) -> None:
        """Where branches part: the one that is taken has the value."""
        node, number = item.node, self.known(data[1])
        if self.guards_of(item):
            raise CannotUnrollError("a branch waits for an assertion")
        ways, chosen = (2, int(bool(number))) if node.op == "Switch" else (int(node.attr("num_outs", 1)), int(number))
        taken = chosen if 0 <= chosen < ways else ways - 1
        dead = DeadValue(isinstance(data[1], KnownValue) and data[1].changes)
        for port in range(ways):
            state[Endpoint(node.name, port)] = data[0] if port == taken else dead

    def merge(self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value]) -> None:
        """Where branches come together again: what the one that was taken gives, which another round may not take."""
        place = next((index for index, value in enumerate(data) if not isinstance(value, DeadValue)), None)
        changes = any(value.changes for value in data if isinstance(value, DeadValue))
        name = item.node.name
        if self.guards_of(item):
            raise CannotUnrollError("a branch waits for an assertion")
        if place is None:
            state[Endpoint(name, 0)] = state[Endpoint(name, 1)] = DeadValue(changes)
            return
        state[Endpoint(name, 0)] = changing(data[place]) if changes else data[place]
        state[Endpoint(name, 1)] = KnownValue(np.array(place, np.int32), changes)

    def constant_inside(self, item: Item, invariant: dict[Endpoint, Value], turn: int) -> Value:
        """A constant that waits for the round to begin, without the waiting; assertions are waited for."""
        node, guards = item.node, [f"^{name}" for name in self.guards_of(item)]
        if guards:
            return NodeOutput(self.add(node.replace(name=self.name(f"{node.name}/round_{turn}"), inputs=guards)), True)
        array = node.tensor.numpy()
        if array.size <= MOST_KNOWN and array.dtype.kind in "iub":
            return KnownValue(array)
        known = invariant.get(Endpoint(node.name, 1))
        if known is None:
            known = NodeOutput(self.add(node.replace(name=self.name(f"{node.name}/once"), inputs=())))
            invariant[Endpoint(node.name, 1)] = known  # a place that no constant has; branches may make it dead
        return known

    def write(
        self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value], invariant: dict[Endpoint, Value],
        turn: int,
    ) -> None:  # fmt: skip
        """One node of one round: its value when that is known, else a node of the new graph."""
        node, guards = item.node, [f"^{name}" for name in self.guards_of(item)]
        if node.op in PASSED:
            node = Node(node.name, "Identity", (), {k: v for k, v in node.attrs.items() if k == "T"})
        known = self.computed(node, data) if not guards else None
        ports = ports_of(node)
        if known is not None:
            for port, value in enumerate(known):
                state[Endpoint(node.name, port)] = value
            return
        changes = bool(guards) or any(
            not isinstance(value, (NodeOutput, KnownValue)) or value.changes for value in data
        )
        if not changes:
            name = self.add(node.replace(name=self.name(f"{node.name}/once"), inputs=[self.text(v) for v in data]))
        else:
            inputs = [*(self.text(value) for value in data), *guards]
            name = self.add(node.replace(name=self.name(f"{node.name}/round_{turn}"), inputs=inputs))
        for port in range(ports):
            value = NodeOutput(f"{name}:{port}", changes)
            state[Endpoint(node.name, port)] = value
            if not changes:
                invariant[Endpoint(node.name, port)] = value
