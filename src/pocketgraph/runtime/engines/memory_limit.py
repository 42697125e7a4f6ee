"""A limit on the memory of a run's tensors: what a node would make is worked out before the node runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pocketgraph.budgets import limits
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.op_traits import SAME_ELEMENTS
from pocketgraph.runtime.engines.live_bytes import LiveBytes
from pocketgraph.runtime.engines.steps import DEAD, Run, Step, execute, execute_traced, place
from pocketgraph.runtime.profiling.profile import StepTrace

MOST_KNOWN_VALUES = 1024  # elements of an integer input whose values are looked at: shapes, sizes, indices


def execute_within(ledger: LiveBytes, steps: Sequence[Step], values: list[Any], trace: StepTrace | None) -> None:
    """Takes the steps in order; each one's outputs are checked before it runs.

    Raises:
        RunError: as ``steps.execute``, and when a step's outputs would not fit into the limit.
    """
    for value in values:
        ledger.hold(value)
    ledger.settle("the feeds")
    for step in steps:
        with limits(memory=ledger.limit - ledger.live):  # for what kernels make on the way, and what only they foresee
            if not any(values[slot] is DEAD for slot in step.guard) and not getattr(step.call, "traces_itself", False):
                arguments = [value for value in step.gather(values) if not isinstance(value, Run)]
                wanted, who = bytes_allocated(step, arguments)
                if wanted:
                    ledger.check(wanted, place(step), who)
            if trace is None:
                execute((step,), values)
            else:
                execute_traced((step,), values, trace)
        for _, slot in step.more or ((0, step.out),):
            ledger.hold(values[slot])
        ledger.settle(place(step))


def bytes_allocated(step: Step, arguments: Sequence[Any]) -> tuple[int, str]:
    """Bytes that a step will allocate for its outputs, and what to call these; 0 where that cannot be told beforehand.

    Of a compiled part the operation with the largest output counts.
    """
    program: Any = getattr(getattr(step.call, "executable", None), "program", None)
    if program is None:
        ports = [port for port, _ in step.more or ((0, step.out),)]
        return bytes_of_node(step.node, ports, arguments), f"the output of this {step.node.op}"
    made = [(sum(v.size * v.dtype.size for v in op.outputs), op.nodes) for op in program.operations]
    size, nodes = max(made, default=(0, ()), key=lambda pair: pair[0])
    return size, f"the output of '{nodes[-1]}'" if nodes else "one of its tensors"


def bytes_of_node(wanted: Node, ports: Iterable[int], arguments: Sequence[Any]) -> int:
    """Bytes of these outputs of a node on its inputs; 0 where its shape rule does not tell."""
    if not all(isinstance(value, np.ndarray) for value in arguments) or wanted.op in SAME_ELEMENTS:
        return 0  # a view of the input
    from pocketgraph.kernels.shapes import infer

    names = [f"input_{index}" for index in range(len(arguments))]
    node = Node(wanted.name, wanted.op, tuple(names), wanted.attrs)
    if node.name in names:
        return 0
    try:
        feeds = {f"{n}:0": (DType.of_numpy(a.dtype), a.shape) for n, a in zip(names, arguments, strict=True)}
        known = {
            f"{n}:0": a
            for n, a in zip(names, arguments, strict=True)
            if a.dtype.kind in "iub" and a.size <= MOST_KNOWN_VALUES
        }
        graph = Graph([*(Node(n, "Placeholder", (), {"dtype": feeds[f"{n}:0"][0]}) for n in names), node])
        inferred = infer(graph, {name: (dtype, Shape(shape)) for name, (dtype, shape) in feeds.items()}, known)
        return sum(_bytes(inferred, f"{node.name}:{port}") for port in ports)
    except (PocketgraphError, ValueError, TypeError):
        return 0  # the kernel itself will say what is wrong


def _bytes(inferred: Any, name: str) -> int:
    shape, dtype = inferred.shape(name), inferred.dtype(name)
    if dtype is None or not shape.is_known:
        return 0
    count: int = max(1, dtype.base.size)
    for size in shape.known:
        count *= size
    return count
