"""The body of a loop that may be a recurrent net: what its tensors are, as sums, gates, states and the step's input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import MOVES, ops_with
from pocketgraph.kernels.registry import evaluate
from pocketgraph.litert.constant import Array
from pocketgraph.runtime.engines.needed import Item, behind
from pocketgraph.runtime.unrolling.constant_trip_counts import outside

SUMS = ops_with("sum") | {"BiasAdd"}
READS = {"TensorArrayReadV3": 2, "TensorListGetItem": 0}
"""What reads a step's input, and which of its inputs is the array's content."""


class NoMatch(Exception):  # noqa: N818 - it is an answer, not an error
    """The loop is something else."""


@dataclass
class Linear:
    """A sum of products with constants.

    Attributes:
        of_input: the matrix that the step's input is multiplied with.
        of_state: the matrix that the last output is multiplied with.
        bias: what is added.
    """

    of_input: Array | None = None
    of_state: Array | None = None
    bias: Array | None = None


class RecurrentBody:
    """The body of one loop, looked at as a recurrent cell's.

    Attributes:
        read: the node that reads the step's input, once it was met.
    """

    def __init__(self, prepared: Prepared, heads: Mapping[str, tuple[Endpoint, Endpoint]], emit: OnnxEmit) -> None:
        self.prepared = prepared
        self.items = prepared.items
        self.heads = heads
        self.emit = emit
        self.read: Item | None = None

    def source(self, endpoint: Endpoint) -> Endpoint:
        """What a tensor is, behind what only passes it on."""
        return behind(self.prepared.items, endpoint)

    def item(self, endpoint: Endpoint, *ops: str) -> Item:
        """The node that makes a tensor, which must be one of these ops."""
        item = self.items.get(self.source(endpoint).node)
        if item is None or item.node.op not in ops:
            raise NoMatch
        return item

    def constant(self, endpoint: Endpoint) -> Array | None:
        """A tensor's value, where it is a constant from outside of the loop."""
        top = outside(self.prepared.items, endpoint)
        found = self.emit.known(str(top))
        if found is not None:
            return found.numpy()
        item = self.items.get(top.node)
        if item is None or item.node.op not in MOVES:
            return None
        values = [self.constant(part) for part in item.data]
        if any(value is None for value in values):
            return None
        return np.asarray(evaluate(item.node, values)[top.port])

    def is_state(self, endpoint: Endpoint, name: str) -> bool:
        return self.source(endpoint).node == name

    def pair(self, endpoint: Endpoint, *ops: str) -> tuple[Endpoint, Endpoint]:
        a, b = self.item(endpoint, *ops).data[:2]
        return a, b

    def step_input(self, endpoint: Endpoint) -> bool:
        """Whether a tensor is the step's input; the first one that may be is it."""
        item = self.items.get(self.source(endpoint).node)
        if item is None or item.node.op not in READS:
            return False
        if self.read is None:
            self.read = item
        return item is self.read

    def linear(self, endpoint: Endpoint, state: str, is_state: Callable[[Endpoint], bool] | None = None) -> Linear:
        """A sum of products of the step's input and the state ``state`` with constants, and of constants.

        ``is_state`` says what stands for the state, where it is not the state itself.
        """
        found = Linear()
        waiting = [endpoint]
        while waiting:
            top = self.source(waiting.pop())
            value = self.constant(top)
            item = self.items.get(top.node)
            if value is not None:
                found.bias = value.reshape(-1) if found.bias is None else found.bias + value.reshape(-1)
            elif item is None:
                raise NoMatch
            elif item.node.op in SUMS:
                waiting.extend(item.data[:2])
            elif item.node.op == "Squeeze":
                waiting.append(item.data[0])
            elif item.node.op == "MatMul":
                self._product(item, is_state or (lambda part: self.is_state(part, state)), self.units(state), found)
            else:
                raise NoMatch
        return found

    def _product(self, item: Item, is_state: Callable[[Endpoint], bool], units: int, found: Linear) -> None:
        if item.node.attr("transpose_a", False) or item.node.attr("transpose_b", False):
            raise NoMatch
        left, weights = self.source(item.data[0]), self.constant(item.data[1])
        if weights is None:
            raise NoMatch
        joined = self.items.get(left.node)
        if joined is not None and joined.node.op == "ConcatV2" and len(joined.data) == 3:
            if not self.step_input(joined.data[0]) or not is_state(joined.data[1]):
                raise NoMatch
            if found.of_input is not None or found.of_state is not None:
                raise NoMatch
            found.of_input, found.of_state = weights[:-units], weights[-units:]
        elif self.step_input(left) and found.of_input is None:
            found.of_input = weights
        elif is_state(left) and found.of_state is None:
            found.of_state = weights
        else:
            raise NoMatch

    def gate(self, endpoint: Endpoint) -> tuple[Endpoint, float]:
        """A part of a Split, and the constant that is added to it."""
        top = self.source(endpoint)
        item = self.items.get(top.node)
        if item is None:
            raise NoMatch
        if item.node.op in ops_with("sum"):
            for part, other in (item.data, item.data[::-1]):
                added = self.constant(other)
                if added is not None and added.size == 1:
                    return self.gate(part)[0], float(added.reshape(-1)[0])
            raise NoMatch
        if item.node.op != "Split":
            raise NoMatch
        return top, 0.0

    def units(self, state: str) -> int:
        """How many numbers a state has."""
        size = self.prepared.inferred.shape(f"{state}:0")[-1]
        if size is None:
            raise NoMatch
        return size

    def part(self, endpoint: Endpoint, units: int) -> tuple[Endpoint, int]:
        """What a tensor is a part of, along the last axis, and which one."""
        top = self.source(endpoint)
        item = self.items.get(top.node)
        if item is None:
            raise NoMatch
        if item.node.op == "Split":
            return self.source(item.data[1]), top.port
        if item.node.op != "StridedSlice":
            raise NoMatch
        begin, _, steps = (self.constant(part) for part in item.data[1:4])
        masks = [item.node.attr(f"{name}_mask", 0) for name in ("ellipsis", "new_axis", "shrink_axis")]
        if begin is None or steps is None or begin.size != 2 or (steps != 1).any() or any(masks):
            raise NoMatch
        start = 0 if item.node.attr("begin_mask", 0) & 2 else int(begin[1])
        if self.prepared.inferred.shape(str(top))[-1] != units or start % units:
            raise NoMatch
        return self.source(item.data[0]), start // units
