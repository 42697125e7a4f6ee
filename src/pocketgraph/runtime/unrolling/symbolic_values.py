"""What stands for a tensor while a loop is written out: a new node, a known value, a TensorArray's content, nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.graph import DType, Node, Shape, opdefs
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import ENTER, PASSES, ops_with
from pocketgraph.litert.cost_model import MOST_ROUNDS
from pocketgraph.runtime.engines.needed import Item

NOTHING = np.zeros(0, np.int32)
MOST_KNOWN = 4096  # elements of a value that is computed here
PASSED = PASSES | ops_with("loop_condition", "enter", "next_iteration")
COUNTED = frozenset((
    "Add", "AddV2", "Sub", "Mul", "Minimum", "Maximum", "FloorDiv", "FloorMod", "Mod", "RealDiv", "Div", "Neg", "Less",
    "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalNot", "All",
    "Any", "Cast", "Pack", "Unpack", "StridedSlice", "Slice", "ConcatV2", "Concat", "Reshape", "ExpandDims", "Squeeze",
    "Range", "Max", "Min", "Sum", "Prod", "Select", "SelectV2", "GatherV2", "Gather", "Fill", "ZerosLike", "Tile",
))  # fmt: skip
"""Not a trait: ops that are computed here when all their inputs are known integers or booleans."""
CREATES = ("TensorArrayV3", "TensorArrayV2")
READS = ("TensorArrayReadV3", "TensorArrayReadV2")
WRITES = ("TensorArrayWriteV3", "TensorArrayWriteV2")
SIZES = ("TensorArraySizeV3", "TensorArraySizeV2")
SCATTERS = ("TensorArrayScatterV3", "TensorArrayScatterV2")
GATHERS = ("TensorArrayGatherV3", "TensorArrayGatherV2")
CONCATS = ("TensorArrayConcatV3", "TensorArrayConcatV2")
ARRAYS = frozenset((*CREATES, *READS, *WRITES, *SIZES, *SCATTERS, *GATHERS, *CONCATS))
LISTS = frozenset((
    "TensorListReserve", "TensorListFromTensor", "TensorListGetItem", "TensorListSetItem", "TensorListStack",
    "TensorListLength",
))  # fmt: skip
"""Not a trait: TensorFlow 2's form of TensorArrays, as far as it is followed; the handle stands for the content."""


@dataclass(frozen=True)
class NodeOutput:
    """A tensor of the new graph; ``changes`` when it is another one each round."""

    name: str
    changes: bool = False


@dataclass(frozen=True)
class KnownValue:
    """A value that is known now; ``changes`` when it may be another one each round."""

    array: np.ndarray[Any, Any]
    changes: bool = False


@dataclass(frozen=True)
class HeldArray:
    """What a TensorArray holds at one moment: its handle, or the flow that stands for its content.

    Attributes:
        array: the TensorArray.
        size: how many elements it has.
        elements: those that are written.
        grows: whether writing past the end makes it longer.
    """

    array: str
    size: int
    elements: Mapping[int, NodeOutput]
    grows: bool = False

    def filled(self, elements: Mapping[int, NodeOutput]) -> HeldArray:
        """It with these elements besides, longer where it has to be."""
        size = max([self.size, *(index + 1 for index in elements)]) if self.grows else self.size
        return HeldArray(self.array, size, {**self.elements, **elements}, self.grows)

    def takes(self, index: int) -> bool:
        """Whether there is, or may be, an element of this number."""
        return 0 <= index < (MOST_ROUNDS if self.grows else self.size)


@dataclass(frozen=True)
class Counted:
    """A known value that is another one in each chunk of rounds: ``endpoint``'s in round ``turn`` of the chunk."""

    endpoint: Endpoint
    turn: int


@dataclass(frozen=True)
class Filling:
    """A TensorArray that chunks of rounds fill: what it holds before them, and whose loop variable it is."""

    head: str
    before: HeldArray


@dataclass(frozen=True)
class ConstantTable:
    """A tensor whose rows have names of their own.

    Attributes:
        count: its rows.
        dtype: their type.
        shape: the shape of one.
    """

    tensor: str
    count: int
    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class DeadValue:
    """The value of a tensor on a branch that is not taken in this round; ``changes`` when it may be in another one."""

    changes: bool


Value: TypeAlias = "NodeOutput | KnownValue | HeldArray | Counted | Filling | DeadValue"


class CannotUnrollError(Exception):
    """A loop that stays a loop, and why."""


def dead_node(name: str, state: Mapping[Endpoint, Value]) -> DeadValue | None:
    """What a node that does not run in this round gives; None when it runs, as a Switch does of which one output is
    live."""
    port, found = 0, None
    while (value := state.get(Endpoint(name, port))) is not None:
        if not isinstance(value, DeadValue):
            return None
        found = value
        port += 1
    return found


def dead_result(item: Item, data: Sequence[Value], state: Mapping[Endpoint, Value]) -> DeadValue | None:
    """What a node gives because something that it takes or waits for is dead; None when it runs.

    Args:
        item: the node; no Merge.
        data: what it takes.
        state: the tensors of this round.
    """
    dead = [value for value in data if isinstance(value, DeadValue)]
    dead += [value for name in item.control if (value := dead_node(name, state)) is not None]
    return DeadValue(all(value.changes for value in dead)) if dead else None


def changing(value: Value) -> Value:
    return replace(value, changes=True) if isinstance(value, (NodeOutput, KnownValue)) else value


def element_type(node: Node) -> DType:
    """The type of what a TensorArray or a list holds."""
    dtype = node.attrs.get("element_dtype", node.attrs.get("dtype"))
    if not isinstance(dtype, DType):
        raise CannotUnrollError("a TensorArray of unknown type")
    return dtype


def ports_of(node: Node) -> int:
    return max(1, len(opdefs.output_dtypes(node)))


def needed_by(item: Item, items: Mapping[str, Item], heads: Mapping[str, Item]) -> set[str]:
    """The nodes that a node needs in the same round, or waits for, itself included.

    What is waited for counts as well: it tells on which branch a constant lies.
    """

    def before(name: str) -> Iterable[str]:
        found = items[name]
        return () if name in heads or found.node.op in ENTER else (*(e.node for e in found.data), *found.control)

    return set(closure([item.node.name], before, items.__contains__))
