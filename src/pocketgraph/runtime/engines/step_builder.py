"""Compiles nodes into steps: one region at a time, loops by recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    MERGE,
    NEXT_ITERATION,
    NO_DEFAULT_PLACEHOLDERS,
    PASSES_OR_ENTERS,
)
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import SAME, PartCall, Unit, first_name, ordered_units, waits_of
from pocketgraph.runtime.engines.frames import Loop
from pocketgraph.runtime.engines.kernel_makers import MAKERS
from pocketgraph.runtime.engines.liveness import LIVE, Liveness, either, together
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.reference_arguments import is_reference_output, reference_inputs
from pocketgraph.runtime.engines.region_draft import REPEATED, RegionDraft, Unstructured
from pocketgraph.runtime.engines.specialized_kernels import prepared, row_at, takes_row
from pocketgraph.runtime.engines.step_calls import bound, dereferenced, first_live, holding, not_fed, same, takes_run
from pocketgraph.runtime.engines.steps import RUN

SMALL_CONSTANT = 1024  # bytes of a constant that is a parameter rather than data


class Builder(RegionDraft):
    """Compiles the nodes of one region."""

    def build(self, names: Sequence[str], wanted: Sequence[Endpoint] = ()) -> None:
        """Makes the steps of the nodes that are named, in an order that their inputs allow."""
        own, inner = loops.split(names, self.within, self.plan.items, self.plan.frames)
        self.note_used_ports(wanted)
        self.subexpressions: dict[tuple[Any, ...], str] = {}
        if self.plan.dynamic is not None and self.plan.finds_dynamic and self.plan.uses("dynamic_parts"):
            self.find_dynamic_parts(own, inner, wanted)
        self.add_units(ordered_units(own, inner, self.plan))

    def find_dynamic_parts(self, own: Sequence[str], inner: Sequence[Loop], wanted: Sequence[Endpoint]) -> None:
        """Makes parts of the heavy parts that can be planned when they run; what runs when, a trial tells."""
        assert self.plan.dynamic is not None
        for name in own:
            if name in self.plan.parts and self.plan.parts[name].is_dynamic:
                del self.plan.parts[name]
        if not any(self.plan.dynamic.is_heavy(self.plan.items[n]) for n in own if n not in self.plan.parts):
            return
        from pocketgraph.runtime.engines.dynamic_part_search import dynamic_parts

        units = ordered_units(own, inner, self.plan)
        trial = copy(self)
        for name, value in vars(self).items():
            setattr(trial, name, copy(value) if isinstance(value, (list, dict, set)) else value)
        trial.is_trial = True
        trial.add_units(units)
        is_reference = lambda e: e not in trial.plan.fed and trial.slots.get(e) in trial.references  # noqa: E731
        for part in dynamic_parts(
            self.plan.dynamic, self.plan, units, trial.node_live, trial.live, is_reference, wanted
        ):
            self.plan.parts.update(dict.fromkeys(part.members, part))

    def add_units(self, units: Sequence[tuple[Unit, Sequence[Unit]]]) -> None:
        """Compiles units in this order."""
        for unit, _ in timed(units):
            try:
                if isinstance(unit, Loop):
                    from pocketgraph.runtime.engines.loop_builder import add_loop  # which few graphs have

                    add_loop(self, unit)
                elif isinstance(unit, PartCall):
                    self.add_part(unit)
                else:
                    self.add_node(self.plan.items[unit])
            except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
                node = self.plan.items[first_name(unit)].node if not isinstance(unit, PartCall) else unit.node
                raise RunError(
                    f"the {node.op} is not what it should be: {error}", where=f"node '{node.name}'"
                ) from error

    def note_used_ports(self, wanted: Sequence[Endpoint]) -> None:
        """Notes which outputs of each node somebody takes."""
        self.ports = self.plan.used_ports
        unused = [endpoint for endpoint in wanted if endpoint.port not in self.ports.get(endpoint.node, ())]
        if unused:  # the region of a loop has none: its Exits take them
            self.ports = {**self.ports}
            for node, port in unused:
                self.ports[node] = {*self.ports.get(node, ()), port}

    def add_node(self, item: Item) -> None:
        """Makes the step of a node, or notes what stands for it where it needs none."""
        node = item.node
        op = node.op
        waits = [self.node_live.get(name, LIVE) for name in item.control]
        if op == "Const":
            self.node_live[node.name] = together(waits, self.condition)
            return
        if op in MERGE:
            self.add_merge(item)
            return
        data = [self.live_of(endpoint) for endpoint in item.data]
        live = together([*data, *waits], self.condition)
        if op == "ControlTrigger":
            live = LIVE
        self.node_live[node.name] = live
        if op in ("NoOp", "ControlTrigger"):
            return
        if (op in SAME or op in NEXT_ITERATION) and item.data:
            self.add_same(item, live)
        elif op in BINARY_SWITCHES or op == "_SwitchN":
            from pocketgraph.runtime.engines import switches

            make = switches.add_switch_of_many if op == "_SwitchN" else switches.add_switch
            make(self, item, live)
        else:
            self.add_kernel(item, live)

    def add_same(self, item: Item, live: Liveness) -> None:
        """An Identity shares its input's slot; of a variable it takes the present value."""
        name, source = Endpoint(item.node.name, 0), self.slot(item.data[0])
        if name in self.plan.fed:
            return
        if source in self.references and not item.node.op.startswith("Ref"):
            out = self.new_slot()
            self.add_step(item.node, dereferenced(same, (0,)), (source,), ((0, out),), live)
            live = Liveness(live.atoms, (out,)) if live.atoms else LIVE
            source = out
        self.slots[name], self.live[name] = source, live
        if item.node.op == "LoopCond":
            self.note_condition(item)

    def note_condition(self, item: Item) -> None:
        """Remembers the slot of the condition that the whole loop hangs on.

        Raises:
            Unstructured: there is another one, or the condition may be dead.
        """
        if self.structured and self.within is not loops.ROOT:
            if self.condition is not None or self.live_of(item.data[0]).atoms:
                raise Unstructured
            self.condition = self.slot(item.data[0])
            self.kept.add(self.condition)

    def add_merge(self, item: Item) -> None:
        """The first live input and its index."""
        node = item.node
        if Endpoint(node.name, 0) in self.slots:  # a loop variable; WhileLoop fills it
            self.node_live[node.name] = self.live[Endpoint(node.name, 0)]
            return
        data = [self.live_of(endpoint) for endpoint in item.data]
        atoms = either(data)
        if atoms is None:
            shared = frozenset.intersection(*(p.atoms for p in data))
            atoms = shared | {(f"merge {node.name}", True)}
        if any(atom[0] == self.condition and atom not in atoms for p in data for atom in p.atoms):
            raise Unstructured
        inputs = [self.materialized(endpoint) for endpoint in item.data]
        out, index = self.new_slot(), self.new_slot()
        live = Liveness(atoms, (out,)) if atoms else LIVE
        keeps_reference = node.op == "RefMerge"
        positions = () if keeps_reference else tuple(i for i, s in enumerate(inputs) if s in self.references)
        call = dereferenced(first_live, positions) if positions else first_live
        self.add_step(node, call, inputs, ((0, out), (1, index)), Liveness(atoms, ()))
        if keeps_reference and any(slot in self.references for slot in inputs):
            self.references.add(out)
        for port, slot in ((0, out), (1, index)):
            endpoint = Endpoint(node.name, port)
            if endpoint not in self.plan.fed:
                self.slots[endpoint] = slot
                self.live[endpoint] = live
        self.node_live[node.name] = live

    def add_kernel(self, item: Item, live: Liveness) -> None:
        """Makes the step that calls the kernel of a node."""
        node, may_refer = item.node, False
        if self.is_shared(item, live):
            return
        if node.op in NO_DEFAULT_PLACEHOLDERS:
            call: Callable[..., Any] = partial(not_fed, node)
            if not live.atoms and self.within is loops.ROOT:
                not_fed(node)
            inputs = []
        else:
            inputs = [self.slot(endpoint) for endpoint in item.data]
            call, wants_run = (
                (same, self.plan.library.is_call(node) or takes_run(node)) if self.is_trial else self.called(item)
            )
            given = [i for i, slot in enumerate(inputs) if slot in self.references]
            # The table of ops takes milliseconds to read: only what has state or is given a variable can give one.
            may_refer |= wants_run or bool(given)
            takes_reference = reference_inputs(node.op, len(inputs)) if given else ()
            positions = tuple(i for i in given if i not in takes_reference)
            if positions:
                call = dereferenced(call, tuple(p + wants_run for p in positions))
            if wants_run:
                inputs = [RUN, *inputs]
            row = self.row_number(item, live)
            if row is not None:
                number, live = row
                inputs, call = [self.slot(item.data[0]), self.slot(number)], row_at(call)
        outputs = []
        for port in sorted(self.ports.get(node.name, ())):
            endpoint = Endpoint(node.name, port)
            if endpoint in self.plan.fed:
                continue
            slot = self._slot_of(endpoint, live)
            outputs.append((port, slot))
            if may_refer and is_reference_output(node.op, port):
                self.references.add(slot)
        self.add_step(node, call, inputs, tuple(outputs), live)

    def is_shared(self, item: Item, live: Liveness) -> bool:
        """Whether another node computes just the same, so that this one has taken its results: wide-and-deep nets hash
        a column for each of their halves, and every layer asks anew for the shape that it works on."""
        node = item.node
        is_reference = self.plan.dynamic is None and not self.plan.parts  # which computes node by node
        if node.op not in REPEATED or item.control or is_reference or self.is_trial:
            return False
        if not self.plan.uses("common_subexpressions"):
            return False
        inputs = tuple([self.slot(endpoint) for endpoint in item.data])
        ports = self.ports.get(node.name, set())
        if not self.references.isdisjoint(inputs) or any(Endpoint(node.name, port) in self.plan.fed for port in ports):
            return False
        attrs = tuple(sorted((name, value) for name, value in node.attrs.items() if name[:1] != "_"))
        try:
            first = self.subexpressions.setdefault((node.op, inputs, live.atoms, attrs), node.name)
        except TypeError:  # an attribute without a hash
            return False
        if first == node.name or any(Endpoint(first, port) not in self.slots for port in ports):
            return False
        for port in ports:
            mine, source = Endpoint(node.name, port), Endpoint(first, port)
            self.slots[mine], self.live[mine] = self.slots[source], self.live[source]
        return True

    def takes_run(self, node: Node) -> bool:
        """Whether what computes a node wants the Run as its first argument."""
        return self.plan.library.is_call(node) or takes_run(node)

    def called(self, item: Item) -> tuple[Callable[..., Any], bool]:
        """What computes a node, and whether it wants the Run as its first argument."""
        node = item.node
        call, wants_run = (
            (self.plan.library.call(node), True) if self.plan.library.is_call(node) else bound(node, self.plan.uses)
        )
        if not wants_run and node.op in MAKERS and self.plan.uses("specialized_kernels"):
            call = prepared(node, self.constant_inputs(item), call)
        if self.plan.dynamic is not None and not wants_run and self.plan.uses("suppression_on_litert"):
            call = self.plan.dynamic.quicker(node, call)
        return holding(call) if node.op == "Assert" and wants_run else call, wants_run

    def row_number(self, item: Item, live: Liveness) -> tuple[Endpoint, Liveness] | None:
        """The one number that a StridedSlice ``x[i]`` packs into a vector for its beginning, as its end says nothing
        that the number does not; and when the row is live, told by it alone. None for other slices."""
        if item.node.op != "StridedSlice" or item.control or item.data[1] in self.plan.fed:
            return None
        packed = self.plan.items.get(item.data[1].node)
        if packed is None or packed.node.op != "Pack" or len(packed.data) != 1 or not self.has_slot(packed.data[0]):
            return None
        steps = self.constant_inputs(item).get(3)
        if not takes_row(item.node) or steps is None or steps.tolist() != [1]:
            return None
        parts = [self.live_of(item.data[0]), self.live_of(packed.data[0])]
        slots = {self.slot(item.data[0]), self.slot(packed.data[0])}
        alone = together(parts, self.condition)
        if slots & self.references or any(decides != self.condition for decides, _ in live.atoms - alone.atoms):
            return None
        return packed.data[0], Liveness(live.atoms, alone.witnesses)

    def constant_inputs(self, item: Item) -> dict[int, Any]:
        """The values of a node's inputs that are small constants, by position."""
        found = {}
        for position, endpoint in enumerate(item.data):
            source = self.plan.items.get(endpoint.node)
            while (
                source is not None
                and source.node.op in PASSES_OR_ENTERS
                and source.data
                and endpoint not in self.plan.fed
            ):
                if source.node.op == "Enter" and not source.node.attr("is_constant", False):
                    break
                endpoint = source.data[0]
                source = self.plan.items.get(endpoint.node)
            if source is not None and source.node.op == "Const" and endpoint not in self.plan.fed:
                tensor = source.node.tensor
                if tensor.nbytes <= SMALL_CONSTANT:
                    found[position] = tensor.numpy()
        return found

    def _slot_of(self, endpoint: Endpoint, live: Liveness) -> int:
        """A new slot for a tensor that comes as its node runs."""
        slot = self.slots[endpoint] = self.new_slot()
        self.live[endpoint] = Liveness(live.atoms, (slot,)) if live.atoms else LIVE
        return slot

    def add_part(self, part: PartCall) -> None:
        """Makes the step that runs a compiled part."""
        waits = [self.node_live.get(name, LIVE) for name in waits_of(part, self.plan)]
        live = together([*(self.live_of(endpoint) for endpoint in part.inputs), *waits], self.condition)
        outputs = [(port, self._slot_of(endpoint, live)) for port, endpoint in enumerate(part.outputs)]
        self.node_live.update(dict.fromkeys(part.members, live))
        inputs = [self.slot(endpoint) for endpoint in part.inputs]
        first = [RUN] if part.is_dynamic or part.takes_run else []
        self.add_step(part.node, part.call, [*first, *inputs], tuple(outputs), live)
