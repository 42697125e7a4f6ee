"""What holds of every graph and program after every pass: references exist, types fit, nothing depends on itself."""

from __future__ import annotations

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import opdefs
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.litert.program import Program
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.planning.graph_state import GraphState


def check_graph(name: str, state: GraphState) -> None:
    """Checks what the fetches need of the graph after the pass ``name``; a missing node raises by itself."""
    state.settle()
    items = state.plan.items
    for item in items.values():
        for place, endpoint in enumerate(item.data):
            if endpoint in state.feeds or endpoint.node not in items:
                assert endpoint in state.feeds, f"{name}: {item.node.name} reads {endpoint}, which is not needed"
                continue
            given, wanted = _made(items[endpoint.node]), _taken(item)
            if given is None or wanted is None:  # an op without a signature, or one that its attributes leave open
                continue
            assert endpoint.port < len(given), f"{name}: {item.node.name} reads {endpoint}, which is not made"
            assert place < len(wanted), f"{name}: {item.node.name} takes {len(wanted)} inputs"
            made, taken = given[endpoint.port].base, wanted[place].base
            handles = {made, taken} & {RESOURCE, VARIANT}
            assert made is taken or handles, f"{name}: {item.node.name} takes {taken}, {endpoint} is {made}"
    _no_circles(name, items)


def _made(item: Item):  # type: ignore[no-untyped-def]
    try:
        return opdefs.output_dtypes(item.node)
    except PocketgraphError:
        return None


def _taken(item: Item):  # type: ignore[no-untyped-def]
    try:
        return opdefs.input_dtypes(item.node)
    except PocketgraphError:
        return None


def _no_circles(name: str, items) -> None:  # type: ignore[no-untyped-def]
    """Only what comes round a loop (a Merge that reads a NextIteration) may lead back."""
    waiting = dict.fromkeys(items, 0)
    readers: dict[str, list[str]] = {}
    for reader, item in items.items():
        sources = [e.node for e in item.data if e.node in items] + [c for c in item.control if c in items]
        for source in sources:
            if items[source].node.op.endswith("NextIteration"):
                continue
            waiting[reader] += 1
            readers.setdefault(source, []).append(reader)
    ready = [node for node, count in waiting.items() if not count]
    done = 0
    while ready:
        done += 1
        for reader in readers.get(ready.pop(), ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    assert done == len(items), f"{name}: nodes depend on each other in a circle"


def check_program(name: str, program: Program) -> None:
    """Checks a program after the pass ``name``: each value is made once, before it is read."""
    there = {*program.inputs, None}
    for operation in program.operations:
        for value in operation.inputs:
            assert value in there or value.constant is not None, f"{name}: {operation.code} reads {value} too early"
            if value is not None and value.constant is not None:
                assert tuple(value.constant.shape) == tuple(value.shape), f"{name}: {value} is {value.constant.shape}"
        for value in operation.outputs:
            assert value not in there, f"{name}: {value} is made twice"
            assert value.constant is None, f"{name}: {value} is a constant that {operation.code} makes"
        there.update(operation.outputs)
    for value in program.outputs:
        assert value in there or value.constant is not None, f"{name}: {value} is not made"
