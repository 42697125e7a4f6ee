"""What a compilation works on: nodes, loops and parts of other engines as units, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, MERGE, NEXT_ITERATION, ops_with
from pocketgraph.graph.record import Record
from pocketgraph.runtime.engines.frames import Loop, LoopFrame
from pocketgraph.runtime.engines.needed import Item

SAME = ops_with("passes", "loop_condition") | {"PlaceholderWithDefault"}
"""Ops whose output is their first input; they cost nothing at run time."""

STRUCTURAL = ops_with("constant", "placeholder", "control_flow") | SAME | {"NoOp", "ControlTrigger"}
"""Ops that the engine itself carries out, without a kernel."""

IN_NUMPY = ops_with("sooner_in_numpy")
"""Ops that are compiled for files, and left to NumPy in a session that may use several engines."""
OF_TRAINED_LAYERS = ("BackpropFilter", "BatchNormGrad", "BatchNormGradV2", "BatchNormGradV3")
"""How the ops of gradients end whose layers may be steps of their own (trained_layers.py)."""


class PartCall(Record):
    """A part of the graph that runs as one call, as a rule of another engine.

    Attributes:
        node: a stand-in node that names it.
        members: the names of its nodes.
        inputs: what it takes, in order.
        outputs: what it gives, in order.
        call: takes the inputs' arrays and gives a tuple of the outputs' arrays.
        is_dynamic: the call takes the Run before the inputs, and plans itself when it is called.
        takes_run: the call takes the Run before the inputs.
    """

    node: Node
    members: frozenset[str]
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]
    call: Callable[..., tuple[Any, ...]]
    is_dynamic: bool = False
    takes_run: bool = False


class Functions(Protocol):
    """Whoever runs the graph's functions: ``functions.FunctionLibrary``, which imports what is compiled here.

    Attributes:
        without: the step passes that are switched off (see pass_registry.py).
    """

    without: Collection[str]

    def is_call(self, node: Node) -> bool:
        """Whether a node runs functions."""

    def with_bodies(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """The nodes, and those of all functions that they may run."""

    def call(self, node: Node) -> Callable[..., tuple[Any, ...]]:
        """What such a node does: takes the Run and the inputs, gives the outputs.

        Raises:
            RunError: it names a function that the graph does not have.
        """


class DynamicPlanner(Protocol):
    """Whoever plans parts when they run: ``DynamicPartPlanner``, in planning, which stands above the engines.

    Attributes:
        threads: how many to compute with.
    """

    threads: int

    def is_able(self, item: Item) -> bool:
        """Whether the node may be in such a part."""

    def is_heavy(self, item: Item) -> bool:
        """Whether the node makes a part worth it."""

    def is_worth_it(self, items: Sequence[Item], plan: Plan, tensors: int) -> bool:
        """Whether a part of these nodes, with so many tensors in and out, is quicker than its nodes one by one."""

    def is_static(self, name: str, plan: Plan) -> bool:
        """Whether the node gives the same in every run, so that parts take it in rather than its value."""

    def decided(self, plan: Plan) -> list[PartCall] | None:
        """The parts of the whole plan where they are known beforehand; None: they are to be found."""

    def quicker(self, node: Node, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that gives the same as the node's kernel ``call``, with the other engine's help; or ``call``."""

    def call(
        self, plan: Plan, members: Sequence[str], inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
    ) -> Callable[..., tuple[Any, ...]]:
        """What runs the part: takes the Run and the inputs' values, gives the outputs' values."""


class Plan:
    """What a whole compilation shares.

    Attributes:
        items: the needed nodes.
        fed: the tensors that are fed.
        frames: the frame of each node.
        parts: parts that run elsewhere, by member name.
        library: the graph's functions.
        dynamic: who plans the parts whose shapes only the run tells; None: nobody does.
        finds_dynamic: whether these parts are still to be found.
        loops: the loops that are compiled already.
    """

    def __init__(
        self,
        items: Mapping[str, Item],
        fed: frozenset[Endpoint],
        frames: Mapping[str, LoopFrame],
        parts: dict[str, PartCall],
        library: Functions,
        dynamic: DynamicPlanner | None = None,
    ) -> None:
        self.items = items
        self.fed = fed
        self.frames = frames
        self.parts = parts
        self.library = library
        self.dynamic = dynamic
        self.finds_dynamic = True
        self.loops: dict[Any, Any] = {}
        self._taken: dict[str, dict[Endpoint, list[str]]] = {}

    @property
    def threads(self) -> int:
        """How many to compute with; 0 where no other engine is to compute anything."""
        return 0 if self.dynamic is None else self.dynamic.threads

    def uses(self, step_pass: str) -> bool:
        """Whether a step pass is not switched off (see pass_registry.py)."""
        return step_pass not in self.library.without

    @cached_property
    def used_ports(self) -> dict[str, set[int]]:
        """The outputs of each node that others take, fed or not."""
        found: dict[str, set[int]] = {}
        for item in self.items.values():
            for endpoint in item.data:
                found.setdefault(endpoint.node, set()).add(endpoint.port)
        return found

    def taken_from(self, name: str) -> Mapping[Endpoint, Sequence[str]]:
        """The outputs of a node that others take, and who they are."""
        if not self._taken:
            for consumer, item in self.items.items():
                for endpoint in item.data:
                    if endpoint not in self.fed:
                        self._taken.setdefault(endpoint.node, {}).setdefault(endpoint, []).append(consumer)
        return self._taken.get(name, {})

    def takers(self, endpoint: Endpoint) -> Sequence[str]:
        """The nodes that take one tensor, each as often as it does."""
        return self.taken_from(endpoint.node).get(endpoint, ())


Unit: TypeAlias = "str | Loop | PartCall"


def ordered_units(own: Sequence[str], inner: Sequence[Loop], plan: Plan) -> list[tuple[Unit, list[Unit]]]:
    """The units of a region with those that each depends on; a unit comes after these, and late rather than early.

    Raises:
        RunError: they depend on each other in a circle.
    """
    unit_of: dict[str, Unit] = {name: plan.parts.get(name, name) for name in own}
    for loop in inner:
        unit_of.update(dict.fromkeys(loop.members, loop))
    units = {key_of(unit): unit for unit in unit_of.values()}
    sources: dict[object, list[Unit]] = {}

    def opened(unit: Unit) -> tuple[Unit, Iterator[Unit]]:
        found = {key_of(unit_of[name]): unit_of[name] for name in needs(unit, plan) if name in unit_of}
        if found.pop(key_of(unit), None) is unit and isinstance(unit, str):
            raise RunError("the graph has a cycle that is no loop", where=f"node '{unit}'")
        sources[key_of(unit)] = list(found.values())
        return unit, iter(found.values())

    order: list[tuple[Unit, list[Unit]]] = []
    done: set[object] = set()
    for start_key, start in units.items():
        if start_key in sources:
            continue
        stack = [opened(start)]
        while stack:
            unit, left = stack[-1]
            source = next(left, None)
            if source is None:
                done.add(key_of(unit))
                order.append((unit, sources[key_of(unit)]))
                stack.pop()
            elif key_of(source) not in sources:
                stack.append(opened(source))
            elif key_of(source) not in done:
                raise RunError("the graph has a cycle that is no loop", where=f"node '{first_name(source)}'")
    return order


def key_of(unit: Unit) -> object:
    """What tells units apart quickly."""
    return unit if isinstance(unit, str) else id(unit)


def first_name(unit: Unit) -> str:
    """A node of the unit, for messages."""
    return unit if isinstance(unit, str) else unit.members[0] if isinstance(unit, Loop) else unit.node.name


def needs(unit: Unit, plan: Plan) -> list[str]:
    """The nodes outside and inside of the unit that its nodes need from the region it is in."""
    if isinstance(unit, str):
        return dependencies(plan.items[unit], plan)
    if isinstance(unit, PartCall):
        return [*(e.node for e in unit.inputs if e not in plan.fed), *waits_of(unit, plan)]
    enters = (plan.items[name] for name in unit.members if plan.items[name].node.op in ENTER)
    return [name for item in enters for name in dependencies(item, plan)]


def waits_of(part: PartCall, plan: Plan) -> list[str]:
    """The nodes outside of the part that its nodes wait for, themselves or for a constant that waits."""
    waits = {control for name in part.members for control in plan.items[name].control}
    for endpoint in (endpoint for name in part.members for endpoint in plan.items[name].data):
        source = plan.items.get(endpoint.node)
        if source is not None and source.node.op == "Const":
            waits.update(source.control)
    return sorted(waits - part.members)


def dependencies(item: Item, plan: Plan) -> list[str]:
    """The nodes that must run before this one in the same iteration."""
    names = [e.node for e in item.data if e not in plan.fed]
    if item.node.op in MERGE:
        names = [n for n in names if n not in plan.items or plan.items[n].node.op not in NEXT_ITERATION]
    return [*names, *item.control]


def _is_sorted(items: Mapping[str, Item]) -> bool:
    """Whether each node comes after all that it depends on, as exporters write them."""
    seen: set[str] = set()
    for name, (_, data, control) in items.items():
        for source, _ in data:
            if source not in seen and source in items:
                return False
        if control and not seen.issuperset(items.keys() & control):
            return False
        seen.add(name)
    return True


def check_waits(plan: Plan) -> None:
    """Refuses nodes that wait for each other in a circle; what only data makes of circles, ``ordered_units`` finds.

    Raises:
        RunError: there are such nodes; one of them is named.
    """
    items = plan.items
    waiting = [name for name, item in items.items() if item.control]
    if not waiting or _is_sorted(items):
        return
    done: set[str] = set()
    opened: set[str] = set()  # and not done
    while waiting:
        name = waiting[-1]
        if name in opened:
            waiting.pop()
            opened.discard(name)
            done.add(name)
        elif name in done or name not in items:
            waiting.pop()
        else:
            opened.add(name)
            sources = dependencies(items[name], plan)
            if not opened.isdisjoint(sources):
                circle = next(source for source in sources if source in opened)
                raise RunError("the graph has a cycle that is no loop", where=f"node '{circle}'")
            waiting += [source for source in sources if source not in done]
