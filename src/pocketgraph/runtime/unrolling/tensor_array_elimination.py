"""TensorArrays and TensorLists of loops that are written out: they become the tensors that were put into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, PASSES
from pocketgraph.litert.cost_model import MOST_ROUNDS
from pocketgraph.runtime.engines.frames import ROOT
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.symbolic_values import (
    ARRAYS,
    CONCATS,
    COUNTED,
    CREATES,
    GATHERS,
    LISTS,
    MOST_KNOWN,
    READS,
    SCATTERS,
    SIZES,
    WRITES,
    CannotUnrollError,
    HeldArray,
    KnownValue,
    NodeOutput,
    Value,
    changing,
    element_type,
)
from pocketgraph.runtime.unrolling.unrolled_graph import UnrolledGraph

FARTHEST = 100  # steps that a value is followed back


class TensorArrays(UnrolledGraph):
    """Knows what tensors outside of loops are, and what TensorArrays hold, before a loop and after it."""

    # Outside of loops

    def outside(self, endpoint: Endpoint, depth: int = 0) -> Value:
        """What a tensor outside of all loops is; ``depth`` is how far it lies behind the one that was asked for."""
        if endpoint in self.plan.fed or depth > FARTHEST:
            return NodeOutput(str(endpoint))
        item = self.plan.items[endpoint.node]
        if item.node.op in ARRAYS or item.node.op in LISTS or endpoint in self.arrays:
            return self.held_outside(endpoint, item)
        value = self.inferred.value(str(endpoint))
        if value is not None and value.size <= MOST_KNOWN and value.dtype.kind in "iub":
            dtype = self.inferred.dtype(str(endpoint))
            return KnownValue(np.asarray(value, dtype.base.numpy if dtype is not None else None))
        if item.node.op in PASSES and len(item.data) == 1:
            source = self.outside(item.data[0], depth + 1)
            return source if isinstance(source, (HeldArray, KnownValue)) else NodeOutput(str(endpoint))
        if item.node.op in COUNTED and endpoint.port == 0:
            return self.counted_outside(endpoint, item, depth)
        return NodeOutput(str(endpoint))

    def counted_outside(self, endpoint: Endpoint, item: Item, depth: int) -> Value:
        """The same for an op that counts; each is looked at once a loop, as many may lead to it."""
        found = self.counted.get(endpoint)
        if found is None:
            found = self.counted[endpoint] = NodeOutput(str(endpoint))
            dtype = self.inferred.dtype(str(endpoint))
            if dtype is None or dtype.numpy.kind in "iub":
                sources = [self.outside(e, depth + 1) for e in item.data]
                if all(isinstance(source, KnownValue) for source in sources):
                    made = self.computed(item.node, sources)
                    if made is not None:
                        found = self.counted[endpoint] = made[0]
        return found

    def held_outside(self, endpoint: Endpoint, item: Item) -> Value:
        """The TensorArray that an endpoint outside of loops stands for, as far as it is known.

        Raises:
            CannotUnrollError: its size or a place in it is not known.
        """
        known = self.arrays.get(endpoint)
        if known is not None:
            return known
        node, data = item.node, item.data
        if node.op in CREATES:
            size, grows = self.known_outside(data[0]), bool(node.attr("dynamic_size", False))
            if size.size != 1 or not 0 <= int(size) <= MOST_ROUNDS or not (grows or int(size)):
                raise CannotUnrollError("a TensorArray of unknown size")
            found = HeldArray(node.name, int(size), {}, grows)
        elif node.op in WRITES:
            found = self.put(self.outside(data[3]), self.known_outside(data[1]), self.outside(data[2]))
        elif node.op in SCATTERS:
            found = self.scattered(item)
        elif node.op == "TensorListReserve":
            size = self.known_outside(data[1])
            if size.size != 1 or not 0 < int(size) <= MOST_ROUNDS:
                raise CannotUnrollError("a list of unknown size")
            found = HeldArray(node.name, int(size), {})
        elif node.op == "TensorListFromTensor":
            found = self.rows(node, data[0], None, HeldArray(node.name, 0, {}))
        elif node.op == "TensorListSetItem":
            found = self.replaced_in(self.outside(data[0]), self.known_outside(data[1]), self.outside(data[2]))
        elif node.op in SIZES:
            flow = self.outside(data[1])
            return (
                KnownValue(np.array(flow.size, np.int32)) if isinstance(flow, HeldArray) else NodeOutput(str(endpoint))
            )
        else:
            return NodeOutput(str(endpoint))
        if item.control:
            raise CannotUnrollError("a TensorArray that waits for something")
        self.arrays[endpoint] = found
        for taker in self.plan.takers(endpoint):
            reader = self.plan.items[taker]
            if (reader.node.op in READS or reader.node.op == "TensorListGetItem") and self.plan.frames[taker] == ROOT:
                self.read_outside(reader, found)
        return found

    def read_outside(self, item: Item, held: HeldArray) -> None:
        """Rewrites what reads an element before the loop, as ``scan`` takes its first one."""
        place = self.outside(item.data[1])
        element = held.elements.get(int(place.array)) if isinstance(place, KnownValue) and not item.control else None
        if element is not None:
            self.replaced[item.node.name] = Node(
                item.node.name, "Identity", [element.name], {"T": element_type(item.node)}
            )

    def known_outside(self, endpoint: Endpoint) -> np.ndarray[Any, Any]:
        """The value of an endpoint outside of loops."""
        return self.known(self.outside(endpoint))

    def scattered(self, item: Item) -> HeldArray:
        """A TensorArray filled with the rows of a tensor."""
        before = self.outside(item.data[3])
        indices = [int(i) for i in self.known_outside(item.data[1]).reshape(-1)]
        if not isinstance(before, HeldArray):
            raise CannotUnrollError("a TensorArray from elsewhere")
        return self.rows(item.node, item.data[2], indices, before)

    def rows(self, node: Node, source: Endpoint, indices: Sequence[int] | None, before: HeldArray) -> HeldArray:
        """What holds ``before`` and the rows of a tensor at these indices; one after the other, from 0, by default."""
        shape, dtype = self.inferred.shape(str(source)), self.inferred.dtype(str(source))
        if not shape.is_known or not shape.known or not 0 < shape.known[0] <= MOST_ROUNDS or dtype is None:
            raise CannotUnrollError("rows of unknown number")
        count = shape.known[0]
        places = list(range(count)) if indices is None else indices
        if len(places) != count:
            raise CannotUnrollError("more or fewer rows than indices")
        name = self.unpacked(f"{node.name}/rows", str(source), count, dtype.base, Shape(shape.known[1:]))
        found = {index: NodeOutput(f"{name}:{place}") for place, index in enumerate(places)}
        held = before.filled(found)
        return held if held.size else HeldArray(held.array, count, held.elements)

    # TensorArrays

    def put(self, flow: Value, index: np.ndarray[Any, Any], value: Value) -> HeldArray:
        """The array after a write.

        Raises:
            CannotUnrollError: the place is taken, or not one of the array.
        """
        place = int(index)
        if not isinstance(flow, HeldArray) or place in flow.elements or not flow.takes(place):
            raise CannotUnrollError("a TensorArray is written in an unknown way")
        return flow.filled({place: NodeOutput(self.text(value))})

    def replaced_in(self, held: Value, index: np.ndarray[Any, Any], value: Value) -> HeldArray:
        """A list with one element set; lists, unlike TensorArrays, may have one set again."""
        place = int(index)
        if not isinstance(held, HeldArray) or not 0 <= place < held.size:
            raise CannotUnrollError("a list is written in an unknown way")
        return held.filled({place: NodeOutput(self.text(value))})

    def known(self, value: Value) -> np.ndarray[Any, Any]:
        """The array behind a value.

        Raises:
            CannotUnrollError: it is computed.
        """
        if not isinstance(value, KnownValue):
            raise CannotUnrollError("an index or size that is computed")
        return value.array

    def run_array(self, item: Item, data: Sequence[Value], state: dict[Endpoint, Value], turn: int) -> None:
        """What a round does with a TensorArray or a list."""
        node, op = item.node, item.node.op
        result = Endpoint(node.name, 0)
        if op in WRITES:
            state[result] = self.put(data[3], self.known(data[1]), data[2])
            return
        if op == "TensorListSetItem":
            state[result] = self.replaced_in(data[0], self.known(data[1]), data[2])
            return
        flow = data[0] if op in LISTS else data[-1]
        if not isinstance(flow, HeldArray):
            raise CannotUnrollError("a TensorArray from elsewhere")
        if op in READS or op == "TensorListGetItem":
            element = flow.elements.get(int(self.known(data[1])))
            if element is None:
                raise CannotUnrollError("it reads what was not written")
            state[result] = changing(element)
        elif op in SIZES or op == "TensorListLength":
            state[result] = KnownValue(np.array(flow.size, np.int32), flow.grows)
        else:
            raise CannotUnrollError(f"{op} inside of the loop")

    # After the loop

    def leave(self, item: Item, value: Value) -> None:
        """What an Exit passes on, under its name; a TensorArray's content goes to those who take it."""
        name = item.node.name
        if not isinstance(value, HeldArray):
            text = self.text(value)
            attrs = {key: v for key, v in item.node.attrs.items() if key == "T"}
            self.replaced[name] = Node(name, "Identity", [text], attrs)
            return
        self.arrays[Endpoint(name, 0)] = value
        self.follow(Endpoint(name, 0), value)

    def follow(self, endpoint: Endpoint, value: HeldArray) -> None:
        """Rewrites those outside of loops who take a TensorArray's content."""
        if endpoint.node in self.kept:
            raise CannotUnrollError("a TensorArray is fetched")
        self.hollow.add(endpoint.node)
        for taker in self.plan.takers(endpoint):
            item = self.plan.items[taker]
            op, data = item.node.op, item.data
            if op in ENTER:
                continue  # the loop that it enters will see; if that stays a loop, nothing is gained but correct
            if op in ("Identity", "StopGradient", "Snapshot"):
                self.arrays[Endpoint(taker, 0)] = value
                self.follow(Endpoint(taker, 0), value)
            elif op in SIZES or op == "TensorListLength":
                self.replaced[taker] = const(taker, np.array(value.size, np.int32), INT32)
            elif op in READS or op == "TensorListGetItem":
                element = value.elements[int(self.known_outside(data[1]))]
                self.replaced[taker] = Node(taker, "Identity", [element.name], {"T": element_type(item.node)})
            elif op == "TensorListStack":
                names = [value.elements[index].name for index in range(value.size)]
                self.replaced[taker] = self.joined(item, "Pack", names)
            elif op in GATHERS:
                indices = [int(i) for i in self.known_outside(data[1]).reshape(-1)]
                self.replaced[taker] = self.joined(item, "Pack", [value.elements[index].name for index in indices])
            elif op in CONCATS and not self.plan.taken_from(taker).keys() - {Endpoint(taker, 0)}:
                self.replaced[taker] = self.joined(
                    item, "ConcatV2", [value.elements[index].name for index in range(value.size)]
                )
            else:
                raise CannotUnrollError(f"a TensorArray goes to {op}")

    def joined(self, item: Item, op: str, names: Sequence[str]) -> Node:
        """The node that puts elements together, under the name of the one that read them."""
        if not names:
            raise CannotUnrollError("nothing to join")
        attrs: dict[str, Any] = {"T": element_type(item.node), "N": len(names)}
        if op == "Pack":
            return self.put_together(item.node.name, names, attrs["T"])
        if len(names) == 1:
            return Node(item.node.name, "Identity", names, {"T": attrs["T"]})
        axis = self.constant(np.array(0, np.int32))
        return Node(item.node.name, op, [*names, axis], {**attrs, "Tidx": INT32})

    def put_together(self, name: str, names: Sequence[str], dtype: DType) -> Node:
        """These tensors, one below the other, as a node of this name."""
        pieces = self.pieces(names, dtype)
        if len(pieces) > 1:
            axis = self.constant(np.array(0, np.int32))
            return Node(name, "ConcatV2", [*pieces, axis], {"T": dtype, "N": len(pieces), "Tidx": INT32})
        made = self.fresh.get(pieces[0])
        if made is not None and made.op == "Pack":
            return Node(name, "Pack", made.inputs, made.attrs)
        return Node(name, "Identity", pieces, {"T": dtype})

    def result(self) -> Graph:
        """The graph with what was written."""
        # Nobody takes the content of a hollow node any more, but some may wait for it; unless a loop that stays has it.
        for name in self.hollow:
            takers = [t for found in self.plan.taken_from(name).values() for t in found]
            entering = [t for t in takers if self.plan.items[t].node.op in ENTER]
            if all(taker in self.gone for taker in entering):
                self.replaced[name] = Node(name, "NoOp")
        nodes = [self.replaced.get(node.name, node) for node in self.graph]
        return self.graph.replace(self.with_few_rows([*nodes, *self.fresh.values()]))
