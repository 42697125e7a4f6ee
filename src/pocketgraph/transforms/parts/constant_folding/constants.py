"""Finds the nodes of a flow whose outputs are the same in every run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.formats.stored_list import holds_list
from pocketgraph.graph import DType, Tensor, opdefs
from pocketgraph.graph.dtype import INT32, INT64, RESOURCE, VARIANT
from pocketgraph.graph.groups import closure, finishing
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS, PASSES, ops_with
from pocketgraph.graph.shape import Shape
from pocketgraph.kernels import registry
from pocketgraph.transforms.parts.constant_folding.flow import Flow, FlowStep

CONTROL_FLOW = ops_with("control_flow") - {"_SwitchN"}
NEVER = CONTROL_FLOW | frozenset({
    "_Send", "_Recv", "_HostSend", "_HostRecv", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor",
    "DeleteSessionTensor", "FakeParam", "AccumulateNV2", "ReadFile", "MatchingFiles",
    "InitializeTableFromTextFile",
})  # fmt: skip
"""Not a trait: the original's list of ops that are not evaluated ahead of time, whatever their inputs."""
SHAPE_OPS = ops_with("shape")
CONSTANTS = frozenset({"Const", "HostConst"})


@dataclass
class FoldableConstants:
    """The constant part of a flow.

    Attributes:
        order: the names of the constant steps, producers first.
        outside: for each of them the steps that are not constant and that it must come after itself.
        computed: those that are no constants in the graph, but computed of such.
        waits: those that must come after such steps, themselves or by what they are made of.
        shapes: the outputs of the steps that only ask for a shape which is known.
        missing: ops with constant inputs that no kernel computes, each with the name of one such node.
    """

    order: list[str] = field(default_factory=list)
    outside: dict[str, frozenset[str]] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)
    waits: set[str] = field(default_factory=set)
    shapes: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def after(self, flow: Flow, name: str) -> set[str]:
        """The steps that a constant made of this one must come after."""
        before = closure([name], lambda step: flow.steps[step].sources(), self.waits.__contains__)
        return set[str]().union(*(self.outside[step] for step in before))


def find_constants(
    flow: Flow,
    shape_of: Callable[[str, int], Shape],
    *,
    exclude_op: Collection[str] = (),
    exclude_node: Collection[str] = (),
    lists: bool = False,
) -> FoldableConstants:
    """Walks back from what is fetched and finds the steps that can be evaluated now.

    Args:
        shape_of: the static shape of a step's output.
        exclude_op, exclude_node: ops and nodes that are not to be evaluated (questions for a known shape are).
        lists: whether what makes lists is evaluated, though nodes that make one say more than a constant that is one.
    """
    found = FoldableConstants()
    kept = {RESOURCE} if lists else {RESOURCE, VARIANT}
    for name in finishing_order(flow):
        step = flow.steps[name]
        op = step.node.op
        shapes = _known_shapes(step, shape_of) if op in SHAPE_OPS else None
        if shapes is not None:
            found.shapes[name] = shapes
        elif not all(source in found.outside for source, _ in step.data):
            continue
        elif op in CONSTANTS:
            dtype = step.node.attrs.get("dtype")
            if dtype is RESOURCE or (dtype is VARIANT and not holds_list(step.node.tensor)):
                continue
        elif op in exclude_op or name in exclude_node or op in NEVER or step.hidden or opdefs.is_stateful(step.node.op):
            continue
        elif op not in COMPUTED_HERE and op not in registry.KERNELS:
            found.missing.setdefault(op, name)
            continue
        elif not kept.isdisjoint(opdefs.known_output_dtypes(step.node) or ()):
            continue
        sources = step.sources()
        outside = frozenset([source for source in sources if source not in found.outside])
        found.outside[name] = outside
        if outside or (found.waits and any(source in found.waits for source in sources)):
            found.waits.add(name)
        found.order.append(name)
        if op not in CONSTANTS:
            found.computed.add(name)
    return found if found.computed else FoldableConstants(missing=found.missing)


PASSED_THROUGH = PASSES | {"PlaceholderWithDefault"}
"""Ops whose output is their input, the very same tensor."""
COMPUTED_HERE = PASSED_THROUGH | NO_DEFAULT_PLACEHOLDERS | {"NoOp"}
"""Ops that need no kernel."""


def finishing_order(flow: Flow) -> Iterator[str]:
    """The names of the steps that the fetched ones need, each after its own; where the order is free, by names."""
    sends = {f"_send_{ref.name}_{ref.port}": ref.name for ref in flow.fetched}
    starts = [sends[send] for send in sorted(sends, reverse=True)]
    return finishing(starts, lambda name: sorted(set(flow.steps[name].sources())), flow.steps.__contains__)


def _known_shapes(step: FlowStep, shape_of: Callable[[str, int], Shape]) -> tuple[Tensor, ...] | None:
    """The outputs of a step that asks for the shape, rank or size of its inputs; None when that is not known."""
    op = step.node.op
    dtype = step.node.attrs.get("out_type", INT32)
    if not isinstance(dtype, DType) or dtype not in (INT32, INT64) or not step.data:
        return None
    values = []
    for source, port in step.data:
        shape = shape_of(source, port)
        asked: Any
        if op == "Rank":
            if shape.rank is None:
                return None
            asked, dtype = shape.rank, INT32
        elif not shape.is_known:
            return None
        else:
            asked = shape.elements if op == "Size" else shape.known
        value = np.asarray(asked, np.int64)
        if dtype is INT32 and value.size and value.max() > np.iinfo(np.int32).max:
            return None
        values.append(Tensor.from_numpy(value, dtype))
    return tuple(values)
