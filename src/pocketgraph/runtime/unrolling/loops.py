"""Writes out loops whose number of rounds is known before the run, one after the other, so that no loop is left.

What counts and indexes (``time``, the condition) is computed here, TensorArrays become the tensors that were put into
them, and what does not change from round to round is written once. The recurrent cells of a dynamic_rnn become the
straight graph that a static_rnn would have been, which LiteRT takes as a whole.

    before:  i, h: while i < 3: h = Tanh(x[i] @ w + h); i = i + 1
    after:   h_1 = Tanh(x_0 @ w + h_0);  h_2 = Tanh(x_1 @ w + h_1);  h_3 = Tanh(x_2 @ w + h_2)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.frames import ROOT, Loop
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.units import Plan, in_order
from pocketgraph.runtime.names import Endpoint
from pocketgraph.runtime.unrolling.arrays import Arrays
from pocketgraph.runtime.unrolling.values import (
    ARRAYS,
    DEAD,
    LISTS,
    MOST_KNOWN,
    MOST_NODES,
    MOST_ROUNDS,
    NOTHING,
    PASSED,
    SAME,
    CannotUnrollError,
    Dead,
    Held,
    Known,
    Ref,
    Value,
    changing,
    is_dead,
    needed_by,
    ports_of,
)


def unrolled(
    graph: Graph, plan: Plan, inferred: Inferred, conditional: Collection[str], kept: Collection[str]
) -> Graph:
    """The graph without the loops that can be written out; itself when there are none.

    Args:
        graph: the graph.
        plan: its needed nodes.
        inferred: what is known of its tensors.
        conditional: nodes that do not run in every run; loops among them stay.
        kept: nodes that are fetched or targets.
    """
    if all(frame is ROOT for frame in plan.frames.values()):
        return graph
    own, found = loops.split(list(plan.items), ROOT, plan.items, plan.frames)
    work = _Unrolling(graph, plan, inferred, frozenset(kept))
    done = 0
    for unit, _ in in_order(own, found, plan):
        if isinstance(unit, Loop):
            before = work.mark()
            try:
                work.loop(unit, conditional)
                done += 1
            except (
                CannotUnrollError,
                PocketgraphError,
                ValueError,
                TypeError,
                IndexError,
                KeyError,
                ZeroDivisionError,
            ):
                work.back_to(before)
    if not done:
        return graph
    return work.result()


class _Unrolling(Arrays):
    """Writes loops out, one after the other."""

    def loop(self, loop: Loop, conditional: Collection[str]) -> None:
        """Writes out one loop.

        Raises:
            CannotUnrollError: it must stay a loop.
        """
        items, frames = self.plan.items, self.plan.frames
        members = [items[name] for name in loop.members]
        if any(frames[i.node.name] != loop.frame and i.node.op not in loops.EXIT for i in members):
            raise CannotUnrollError("there is a loop inside")
        enters = [i for i in members if i.node.op in loops.ENTER]
        exits = [i for i in members if i.node.op in loops.EXIT]
        if any(i.node.name in conditional for i in exits) or any(i.node.op.startswith("Ref") for i in members):
            raise CannotUnrollError("it does not always run")
        body = Plan({i.node.name: i for i in members if i not in exits}, self.plan.fed, frames, {}, self.plan.library)
        names = list(body.items)
        order = [body.items[unit] for unit, _ in in_order(names, [], body) if isinstance(unit, str)]
        heads = {i.node.name: i for i in order if loops.is_loop_head(i, items)}
        self.check(order, heads)
        gate = needed_by(next(i for i in order if i.node.op == "LoopCond"), body.items, heads)
        state: dict[Endpoint, Value] = {Endpoint(i.node.name, 0): self.entering(i) for i in enters}
        for name, head in heads.items():
            first = next(e for e in head.data if items[e.node].node.op not in loops.NEXT)
            state[Endpoint(name, 0)] = changing(state[first])
        invariant: dict[Endpoint, Value] = {}
        condition = next(i for i in order if i.node.op == "LoopCond")
        first_part = [i for i in order if i.node.name in gate]
        second_part = [i for i in order if i.node.name not in gate]
        before = len(self.fresh)
        for turn in range(MOST_ROUNDS):
            if turn == 1:
                rounds = max((value.size for value in state.values() if isinstance(value, Held)), default=1)
                if (len(self.fresh) - before) * rounds > MOST_NODES:  # no need to find out the long way
                    raise CannotUnrollError("too many nodes")
            self.run(first_part, state, invariant, turn)
            if not bool(self.known(state[condition.data[0]])):
                break
            self.run(second_part, state, invariant, turn)
            back = {
                name: state[next(e for e in head.data if items[e.node].node.op in loops.NEXT)]
                for name, head in heads.items()
            }
            for name, value in back.items():
                state[Endpoint(name, 0)] = changing(value)
        else:
            raise CannotUnrollError("too many rounds")
        self.gone.update(loop.members)
        for item in exits:
            source = item.data[0]
            while items[source.node].node.op == "Switch" or items[source.node].node.op in SAME:
                source = items[source.node].data[0]
            self.leave(item, state[source])

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
            if op in PASSED or op in loops.MERGE or op in ARRAYS or op in LISTS:
                continue
            if op in ("Switch", "_SwitchN", "Const", "NoOp", "Assert"):
                continue
            definition = opdefs.find(op)
            if definition is None or definition.stateful or self.plan.library.is_call(item.node):
                raise CannotUnrollError(f"the {op} inside may have effects")

    def run(
        self, order: Sequence[Item], state: dict[Endpoint, Value], invariant: dict[Endpoint, Value], turn: int
    ) -> None:
        """Writes out one round of these nodes; ``state`` has the loop's variables."""
        self.guards = {}
        for item in order:
            node, op = item.node, item.node.op
            result = Endpoint(node.name, 0)
            if op in loops.ENTER or (op in loops.MERGE and loops.is_loop_head(item, self.plan.items)):
                continue
            waits = any(is_dead(name, state) for name in item.control)
            if op == "NoOp":
                self.guards[node.name] = self.guards_of(item)
            if op in ("Const", "NoOp"):
                state[result] = (
                    DEAD if waits else self.constant_inside(node, invariant) if op == "Const" else Known(NOTHING)
                )
                continue
            data = [state[e] if e in state else self.from_outside(e) for e in item.data]
            if op in loops.MERGE:
                self.merge(item, data, state)
            elif waits or any(isinstance(value, Dead) for value in data):
                for port in range(max(2, ports_of(node))):
                    state[Endpoint(node.name, port)] = DEAD
            elif result in invariant:
                for port in range(ports_of(node)):
                    state[Endpoint(node.name, port)] = invariant[Endpoint(node.name, port)]
            elif op == "Switch":
                taken = int(bool(self.known(data[1])))
                state[Endpoint(node.name, taken)], state[Endpoint(node.name, 1 - taken)] = data[0], DEAD
            elif op == "_SwitchN":
                ways = int(node.attr("num_outs", 1))
                chosen = int(self.known(data[1]))
                for port in range(ways):
                    is_taken = port == (chosen if 0 <= chosen < ways else ways - 1)
                    state[Endpoint(node.name, port)] = data[0] if is_taken else DEAD
            elif op in PASSED and not self.guards_of(item):
                state[result] = data[0]
            elif op in ARRAYS or op in LISTS:
                self.run_array(item, data, state)
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
        if isinstance(data[0], Known) and bool(np.all(data[0].array)):
            return
        name = self.name(f"{item.node.name}/round_{turn}")
        self.add(item.node.replace(name=name, inputs=[self.text(value) for value in data]))
        self.guards[item.node.name] = (name,)

    def merge(self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value]) -> None:
        """Where branches come together again: what the one that was taken gives."""
        place = next((index for index, value in enumerate(data) if not isinstance(value, Dead)), None)
        state[Endpoint(item.node.name, 0)] = DEAD if place is None else data[place]
        state[Endpoint(item.node.name, 1)] = DEAD if place is None else Known(np.array(place, np.int32))

    def constant_inside(self, node: Node, invariant: dict[Endpoint, Value]) -> Value:
        """A constant that waits for the round to begin, without the waiting."""
        array = node.tensor.numpy()
        if array.size <= MOST_KNOWN and array.dtype.kind in "iub":
            return Known(array)
        known = invariant.get(Endpoint(node.name, 1))
        if known is None:
            known = Ref(self.add(node.replace(name=self.name(f"{node.name}/once"), inputs=())))
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
        changes = bool(guards) or any(not isinstance(value, Ref) or value.changes for value in data)
        if not changes:
            name = self.add(node.replace(name=self.name(f"{node.name}/once"), inputs=[self.text(v) for v in data]))
        else:
            inputs = [*(self.text(value) for value in data), *guards]
            name = self.add(node.replace(name=self.name(f"{node.name}/round_{turn}"), inputs=inputs))
        for port in range(ports):
            value = Ref(f"{name}:{port}", changes)
            state[Endpoint(node.name, port)] = value
            if not changes:
                invariant[Endpoint(node.name, port)] = value
