"""What memory a model takes: its weights, and the tensors that are needed at the same time, laid out in one piece."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.arena import loads, planned
from pocketgraph.exporting.c.storage import Storage
from pocketgraph.graph import DType, Graph, Shape, Tensor, canonical
from pocketgraph.graph.dtype import FLOAT, INT8, STRING
from pocketgraph.graph.op_traits import SAME_ELEMENTS
from pocketgraph.graph.order import reachable, topological
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value

NO_MATRIX = 2  # dimensions: fewer, and eight-bit models keep 32 bits (biases)


class MemoryPlan(NamedTuple):
    """Bytes that a model takes while it runs.

    Attributes:
        weights: of constants, each once.
        arena: of tensors; each has a place as long as it is needed, and places are shared.
        largest: the tensors that are needed at the fullest moment, the largest first, with their bytes.
        unknown: tensors whose sizes are not known; they are left out.
    """

    weights: int
    arena: int
    largest: tuple[tuple[str, int], ...]
    unknown: int = 0

    @property
    def total(self) -> int:
        """Weights and tensors."""
        return self.weights + self.arena


def memory_plan(program: Program, unknown: int = 0) -> MemoryPlan:
    """The plan of a program, as LiteRT's memory planner has it: results never take the place of an operand."""
    storage = Storage(program, lambda operation: [])
    layout = planned(storage.buffers)
    needed = loads(storage.buffers)
    fullest = max(sorted(needed), key=needed.__getitem__, default=-1)
    names: dict[int, tuple[str, int]] = {}
    for value in [*program.inputs, *(value for operation in program.operations for value in operation.outputs)]:
        buffer_of = storage.buffer(value)
        if buffer_of is not None and value.size and buffer_of.first <= fullest <= buffer_of.last:
            names.setdefault(id(buffer_of), (value.name, buffer_of.size))
    largest = sorted(names.values(), key=lambda item: -item[1])
    weights = {id(v): v for operation in program.operations for v in operation.inputs if v is not None and v.constant}
    held = sum(math.prod(value.shape) * value.dtype.size for value in weights.values())
    return MemoryPlan(held, layout.size, tuple(largest), unknown)


def in_eight_bits(program: Program) -> Program:
    """The program with int8 in place of floats, for its sizes alone; vectors of weights stay as they are."""
    made: dict[Value, Value] = {}

    def coded(value: Value) -> Value:
        if value not in made:
            stays = value.dtype is not FLOAT or (value.constant is not None and len(value.shape) < NO_MATRIX)
            made[value] = value if stays else Value(value.name, INT8, value.shape, value.constant)
        return made[value]

    operations = [
        Operation(
            operation.code, [None if v is None else coded(v) for v in operation.inputs],
            [coded(v) for v in operation.outputs],
        )
        for operation in program.operations
    ]  # fmt: skip
    return Program([coded(v) for v in program.inputs], [coded(v) for v in program.outputs], operations)


def program_of_nodes(
    graph: Graph, fetches: Sequence[str], feeds: Mapping[str, tuple[DType, tuple[int, ...]]]
) -> tuple[Program, int]:
    """A program with an operation a node, for its sizes alone; and how many tensors have unknown sizes.

    Args:
        graph: any graph, that of a LiteRT or ONNX file too.
        fetches: tensors.
        feeds: type and shape of each input, by tensor name.

    Raises:
        GraphError: nodes form a cycle that is no loop, or an input leads nowhere.
    """
    from pocketgraph.kernels.shapes import infer

    fed = {canonical(name): (dtype, Shape(shape)) for name, (dtype, shape) in feeds.items()}
    try:
        inferred = infer(graph, fed)
    except PocketgraphError:
        inferred = None
    needed = reachable(graph, [name.split(":")[0] for name in fetches], stop={name.split(":")[0] for name in fed})
    values: dict[str, Value] = {}
    unknown = 0

    def value_of(tensor: str) -> Value:
        nonlocal unknown
        if tensor not in values:
            dtype = inferred.dtype(tensor) if inferred is not None else None
            shape = inferred.shape(tensor) if inferred is not None else Shape(None)
            is_known = dtype is not None and shape.is_known and dtype is not STRING
            unknown += not is_known
            sizes = tuple(shape.known) if is_known else (0,)
            values[tensor] = Value(tensor, dtype.base if dtype is not None and is_known else FLOAT, sizes)
        return values[tensor]

    inputs = [value_of(name) for name in fed]
    operations = []
    for node in topological(graph):
        if node.name not in needed or f"{node.name}:0" in fed:
            continue
        if node.op == "Const":
            held = node.attrs.get("value")
            if isinstance(held, Tensor):
                value_of(f"{node.name}:0").constant = Constant(held.numpy, held.shape, held.dtype.numpy)
            continue
        count = max(1, len(inferred.shapes(node.name))) if inferred is not None else 1
        code = "RESHAPE" if node.op in SAME_ELEMENTS and node.data_inputs else node.op
        taken: list[Value | None] = [value_of(canonical(ref)) for ref in node.data_inputs]
        operations.append(Operation(code, taken, [value_of(f"{node.name}:{port}") for port in range(count)]))
    return Program(inputs, [value_of(canonical(name)) for name in fetches], operations), unknown
