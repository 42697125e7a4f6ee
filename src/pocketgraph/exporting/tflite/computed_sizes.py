"""Sizes that a file takes off shapes when it runs, in place of constants that depend on the size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import DOUBLE, FLOAT, INT32, INT64
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import GATHERS, MOVES, PASSES, PRODUCTS, ops_with
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.size_operands import constant
from pocketgraph.litert.sizes.slices import SLICED_TYPES, between
from pocketgraph.litert.sizes.unit_axes import SizeOf, part_of_shape, with_sizes_of

LOOK_AT_SIZES = ops_with("shape")
CONSTANTS = ops_with("constant")
TAKE_PARTS = {"Slice", "StridedSlice", *GATHERS}
"""Ops that could look up in a table of constants what belongs to a size."""
HOLD_SIZES = (INT32, INT64, FLOAT, DOUBLE)
"""The types that hold every size of a picture exactly."""
KEEP_SIZES = ops_with("passes", "checks", "elementwise", "transcendental")
"""Ops whose result has the size of their operand, where that is the only one."""
CHANGE_CHANNELS = ops_with("bias", "batch_norm")
"""Likewise of their first operand; the others are numbers for each channel."""
SIZES_AT = {
    "Reshape": (1,), "BroadcastTo": (1,), "Tile": (1,), "Fill": (0,), "Slice": (1, 2), "StridedSlice": (1, 2),
    "Conv2DBackpropInput": (0,), "Conv3DBackpropInputV2": (0,), "ResizeBilinear": (1,), "ResizeNearestNeighbor": (1,),
}  # fmt: skip
"""Which inputs of nodes are sizes, or numbers counted with these."""
POLYNOMIAL = ops_with("polynomial")
Told: TypeAlias = "tuple[int, Value | list[SizeOf]]"
"""The place of an operand that is computed of sizes, and how often a picture's own or whose."""


def sizes_of(
    operation: Operation,
    numbers: Iterable[tuple[int, ...]],
    program: Program,
    tried: Sequence[Mapping[Value, Value]],
) -> list[SizeOf] | None:
    """Where the numbers that an operation takes stand in the shapes of what it is made of; None where they do not.

    Args:
        operation: it.
        numbers: of each element those for all sizes that were tried.
        program: what it is in, itself or a body.
        tried: the values of the other sizes' programs by those of this one.
    """
    body = next(each for each in program.programs() if operation in each.operations)
    producers = body.producers()
    upstream = closure(
        [value for value in operation.operands if value.constant is None],
        lambda value: [
            each for each in (producers[value].operands if value in producers else ()) if each.constant is None
        ],
    )
    places: dict[tuple[int, ...], SizeOf] = {}
    sizes_at: dict[SizeOf, tuple[int, ...]] = {}
    for value in [*upstream, *body.inputs]:
        for axis, sizes in enumerate(zip(value.shape, *(pairs[value].shape for pairs in tried), strict=True)):
            sizes_at[value, axis] = sizes
            places.setdefault(sizes, (value, axis))
    found: list[SizeOf | None] = []
    for each in numbers:
        last = found[-1] if found else None
        behind = (last[0], last[1] + 1) if isinstance(last, tuple) else 0
        if sizes_at.get(behind) == each:  # one vector holds both
            found.append(behind)
        else:
            found.append(each[0] if len({*each}) == 1 else places.get(each))
    if operation.code == "RESHAPE" and found.count(None) == 1:
        found[found.index(None)] = -1
    return None if None in found else [each for each in found if each is not None]


def with_computed_sizes(operations: Sequence[Operation], own: Mapping[Operation, Told]) -> list[Operation]:
    """The operations; those in ``own`` take sizes off the shapes of their inputs."""
    made = []
    for operation in operations:
        at, told = own.get(operation, (0, None))
        if isinstance(told, list):
            made += with_sizes_of(operation, at, told)[1]
            continue
        if told is not None and operation.code == "SLICE":
            begin, end = told.content.numpy().reshape(2, -1).tolist()
            if operation.operands[0].dtype in SLICED_TYPES or min(*begin, *end) < 0:
                made.append(between(operation, begin, end))
            else:
                counts = constant([last - first if last else -1 for first, last in zip(begin, end, strict=True)])
                made.append(operation.replace(inputs=[*operation.inputs[:2], counts]))
            continue
        if told is not None:
            size, taking = part_of_shape(operation.operands[0], (1, 3), operation.nodes)
            larger = Value("", INT32, (2,))
            made += [*taking, Operation("MUL", [size, told], [larger], {"activation": ""}, operation.nodes)]
            operation.inputs[1] = larger
        made.append(operation)
    return made


def is_exact(operation: Operation, graph: Graph) -> bool:
    """Whether the sizes that an operation takes are sums and products of others, with whole numbers: what is the same
    for some sizes is so for all, but where numbers are rounded, looked up in tables, or limited."""
    nodes = [graph.nodes[name] for name in operation.nodes if name in graph.nodes]
    return len(nodes) == len(operation.nodes) and all(
        each.op in LOOK_AT_SIZES or each.op in POLYNOMIAL or _multiplies(each, graph)
        for node in nodes
        for place in SIZES_AT.get(node.op, ())
        for each in _computing(node.data_inputs[place], graph)
    )


def _computing(size: str, graph: Graph) -> list[Node]:
    """The nodes that compute a size of shapes, and those that look at these."""
    names = closure(
        [graph.producer(size).name],
        lambda name: [] if graph[name].op in LOOK_AT_SIZES else map(node_name, graph[name].data_inputs),
    )
    return [graph[name] for name in names]


def is_by_own_size(operation: Operation, graph: Graph) -> bool:
    """Whether the size that a picture gets is its own one, times whole numbers, and not the same by chance, as that of
    an earlier picture that was halved, and 2.002 times its own, rounded."""
    node = graph.nodes.get(operation.nodes[-1]) if operation.nodes else None
    if node is None or not node.op.startswith("Resize"):
        return False
    source, size = node.data_inputs
    own = _sized_first(source, graph)
    return all(
        all(_sized_first(name, graph) == own for name in each.data_inputs)
        if each.op in LOOK_AT_SIZES
        else _multiplies(each, graph)
        for each in _computing(size, graph)
    )


def _sized_first(name: str, graph: Graph) -> str:
    """The value of the graph that has the size of this one, before ops that keep it."""
    node = graph.producer(name)
    while node.op in CHANGE_CHANNELS or (node.op in KEEP_SIZES and len(node.data_inputs) == 1):
        name = node.data_inputs[0]
        node = graph.producer(name)
    return canonical(name)


def _multiplies(node: Node, graph: Graph) -> bool:
    """Whether what an op makes of sizes is for every size one of them, times a whole number."""
    if node.op in CONSTANTS:
        values = node.tensor.numpy()
        return values.dtype.kind in "iuf" and bool((values == np.rint(values)).all())
    if node.op == "Cast":
        return node.dtype("DstT") in HOLD_SIZES
    computed = [at for at, name in enumerate(node.data_inputs) if graph.producer(name).op not in CONSTANTS]
    if node.op in PRODUCTS:
        return len(computed) <= 1
    return not any(computed) if node.op in TAKE_PARTS else node.op in MOVES or node.op in PASSES
