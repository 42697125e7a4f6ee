"""A region in the making: the slot of each tensor, when each is live, and the steps so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

from pocketgraph.errors import RunError
from pocketgraph.graph import Node, Tensor
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.frames import LoopFrame
from pocketgraph.runtime.engines.liveness import LIVE, Atom, Liveness
from pocketgraph.runtime.engines.region import LoopRounds, Region, StepList
from pocketgraph.runtime.engines.step_calls import gatherer, same
from pocketgraph.runtime.engines.steps import RUN, Step

MOST_ALIKE = 64  # elements of constants that are compared with each other
IDLE = ops_with("sum", "difference") | {"Pack"}
"""What ``x[i]`` leaves behind, and nobody misses when its results are not taken."""


REPEATED = ops_with("repeatable")
"""Ops whose results follow from their inputs and attributes alone, and which graphs repeat."""

SETTLED = REPEATED | ops_with("heavy", "elementwise", "bias") | {"LiteRT"}
"""Ops that give the same in every round of a loop when they take the same."""


class Unstructured(Exception):  # noqa: N818  (not an error: the loop is built again, with guards)
    """A loop whose variables do not all hang on its condition."""


class RegionDraft(ABC):
    """What is known of one region while its nodes are compiled.

    Attributes:
        plan: what is compiled.
        within: the frame of the region.
        structured: whether one condition rules all of a loop.
        condition: the slot of that condition, once it is known.
        is_trial: made only to learn what is live when: nothing of it will run.
        slots: the slot of each tensor.
        live: when each tensor is live.
        node_live: when each node runs, for those who wait for it.
        references: the slots that hold variables themselves.
        markers: the slots that tell whether a branch is taken: by the predicate's slot and the branch.
        ways: the same for switches of many, by the number's slot and how many ways there are.
        steps: the steps so far, with the conditions of each; ``frees`` are filled in at the end.
        kept: slots whose values somebody wants after the steps.
    """

    def __init__(self, plan: Plan, within: LoopFrame, *, structured: bool = True) -> None:
        self.plan = plan
        self.within = within
        self.structured = structured
        self.condition: int | None = None
        self.is_trial = False
        self.size = 1  # slot RUN
        self.constants: list[tuple[int, Any]] = []
        self.slots: dict[Endpoint, int] = {}
        self.live: dict[Endpoint, Liveness] = {}
        self.node_live: dict[str, Liveness] = {}
        self.references: set[int] = set()
        self.markers: dict[tuple[int, bool], int] = {}
        self.ways: dict[tuple[int, int], list[int]] = {}
        self.steps: list[tuple[frozenset[Atom], Step]] = []
        self.kept: set[int] = {RUN}
        self._uses: list[set[int]] = []
        self._small_constants: dict[tuple[Any, ...], int] = {}

    @abstractmethod
    def build(self, names: Sequence[str], wanted: Sequence[Endpoint] = ()) -> None:
        """Compiles these nodes and the loops inside, in an order that respects every input.

        Args:
            names: the nodes of the region and of the loops in it.
            wanted: tensors that leave the region besides those that other nodes take.

        Raises:
            RunError: a node is not what it should be.
            Unstructured: not everything hangs on the one condition.
        """

    def inside(self, frame: LoopFrame, *, structured: bool) -> RegionDraft:
        """An empty draft for the inside of a loop."""
        return type(self)(self.plan, frame, structured=structured)

    # Slots

    def new_slot(self) -> int:
        """A slot that nothing has yet."""
        self.size += 1
        return self.size - 1

    def bind(self, endpoint: Endpoint, live: Liveness = LIVE) -> int:
        """A new slot for a tensor that comes from outside of the steps."""
        slot = self.new_slot()
        self.slots[endpoint] = slot
        self.live[endpoint] = live
        self.kept.add(slot)
        return slot

    def slot(self, endpoint: Endpoint) -> int:
        """The slot of a tensor.

        Raises:
            RunError: the node does not have this output here.
        """
        known = self.slots.get(endpoint)
        if known is not None:
            return known
        item = self.plan.items.get(endpoint.node)
        if item is None or item.node.op != "Const" or endpoint.port != 0:
            raise RunError(f"the tensor '{endpoint}' is not computed here", where=f"node '{endpoint.node}'")
        slot = self.slots[endpoint] = self._constant_slot(item.node.tensor)
        self.live.setdefault(endpoint, self.node_live.get(endpoint.node, LIVE))
        return slot

    def _constant_slot(self, tensor: Tensor) -> int:
        """The slot of a constant; equal small ones have one: exporters write an axis or a size anew at each use."""
        slot = self.new_slot()
        if tensor.size <= MOST_ALIKE and tensor.dtype.name != "string":
            array = tensor.numpy()
            known = self._small_constants.setdefault((tensor.dtype.name, array.shape, array.tobytes()), slot)
            if known != slot:
                return known
        self.kept.add(slot)
        self.constants.append((slot, tensor))
        return slot

    def has_slot(self, endpoint: Endpoint) -> bool:
        """Whether a tensor has a slot, or may have one: what stays inside of a compiled part has none."""
        item = self.plan.items.get(endpoint.node)
        return endpoint in self.slots or (item is not None and item.node.op == "Const")

    def live_of(self, endpoint: Endpoint) -> Liveness:
        """When a tensor is alive."""
        self.slot(endpoint)
        return self.live[endpoint]

    def materialized(self, endpoint: Endpoint) -> int:
        """A slot that holds the tensor, and DEAD when it is dead."""
        slot, live = self.slot(endpoint), self.live_of(endpoint)
        if live.witnesses == (slot,) or all(decides == self.condition for decides, _ in live.atoms):
            return slot
        out = self.new_slot()
        self.add_step(self.plan.items[endpoint.node].node, same, (slot,), ((0, out),), live)
        if slot in self.references:
            self.references.add(out)
        return out

    def add_step(
        self, node: Node, call: Callable[..., Any], inputs: Sequence[int], outputs: tuple[tuple[int, int], ...],
        live: Liveness,
    ) -> None:  # fmt: skip
        """Adds a step.

        Args:
            node: for messages and times.
            call: what is done.
            inputs: the slots of its arguments.
            outputs: (port, slot) of each output that is wanted.
            live: when it runs.
        """
        out = next((slot for port, slot in outputs if port == 0), -1)
        if out < 0:
            out = self.new_slot()  # nobody looks at it
        self.steps.append((live.atoms, Step(call, gatherer(inputs), out, outputs, live.witnesses, (), node)))
        self._uses.append({*inputs, *live.witnesses})

    # Results

    def region(self) -> Region:
        """The slots, for execution."""
        return Region(self.size, self.constants)

    def parted(self, unchanging: Collection[int] = ()) -> LoopRounds:
        """The steps in their order.

        Args:
            unchanging: the slots of a loop's inputs; what follows from these alone is computed once.
        """
        head: list[int] = []
        body: list[int] = []
        final: list[int] = []
        for index, (atoms, _) in enumerate(self.steps):
            on = self.condition is not None and (self.condition, True) in atoms
            off = self.condition is not None and (self.condition, False) in atoms
            if on and off:
                continue  # never live
            (body if on else final if off else head).append(index)
        elsewhere = set().union(*(self._uses[i] for i in (*body, *final))) if body or final else set()
        still = {*unchanging, *(slot for slot, _ in self.constants)} if unchanging else set[int]()
        (begin, head), (first, body) = self._settled(head, still), self._settled(body, still)
        made_in_body = {slot for i in body for _, slot in self.steps[i][1].more}
        everything = set(range(self.size))
        return LoopRounds(
            self.finished(begin, everything),
            self.finished(head, self.kept | elsewhere | still),
            self.finished(first, everything),
            self.finished(body, self.kept | (everything - made_in_body)),
            self.finished(final, everything),
        )

    def _settled(self, chosen: Sequence[int], still: set[int]) -> tuple[list[int], list[int]]:
        """The steps that follow from slots that stay as they are, to which theirs are added, and the other ones."""
        if not still:
            return [], list(chosen)
        once, again = [], []
        for index in chosen:
            step, uses = self.steps[index][1], self._uses[index]
            sources = uses - {RUN} if getattr(step.call, "is_pure", False) else uses
            is_settled = bool(step.more) and not step.guard and sources <= still and sources.isdisjoint(self.references)
            if is_settled and (step.node.op in SETTLED or sources is not uses):
                once.append(index)
                still.update(slot for _, slot in step.more)
            else:
                again.append(index)
        return once, again

    def finished(self, chosen: Sequence[int], kept: set[int]) -> tuple[Step, ...]:
        """The chosen steps, each with the slots that nobody of them needs after it; without idle ones, which only
        make what nobody takes."""
        seen = set(kept)
        done: list[Step] = []
        for index in reversed(chosen):
            step = self.steps[index][1]
            if step.node.op in IDLE and step.more and all(slot not in seen for _, slot in step.more):
                continue
            touched = self._uses[index] | {slot for _, slot in step.more}
            frees = touched - seen
            seen |= touched
            done.append(step._replace(frees=tuple(sorted(frees))))
        done.reverse()
        found = StepList(done)
        found.may_be_written_out = self.plan.uses("step_codegen")
        return found
