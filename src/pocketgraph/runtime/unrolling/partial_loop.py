"""The frame of a loop that is made: its counter and variables, the rows that go in, and the rows that come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, parse_ref
from pocketgraph.graph.dtype import FLOAT, INT32, RESOURCE
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.unrolling.symbolic_values import CannotUnrollError
from pocketgraph.runtime.unrolling.tensor_array_elimination import TensorArrays

Fact = tuple[DType, Shape]
"""What is known of a tensor: its type and its shape, which is known whole."""


class PartialLoop(TensorArrays):
    """Writes loops with TensorFlow 1's control flow."""

    # What is known of new nodes

    def facts_of(self, names: Iterable[str], given: Mapping[str, Fact]) -> Inferred:
        """What is known of the new nodes of these names.

        Args:
            names: new nodes.
            given: what is known of tensors that are yet to be made.
        """
        nodes = {name: self.fresh[name] for name in names}
        feeds = dict(given)
        for node in list(nodes.values()):
            for ref in node.data_inputs:
                source, port, _ = parse_ref(ref)
                text = f"{source}:{port}"
                if source in nodes or text in feeds:
                    continue
                dtype, shape = self.inferred.dtype(text), self.inferred.shape(text)
                if dtype is not None and source in self.graph.nodes:
                    feeds[text] = (dtype.base, shape)
        for text in feeds:
            source = parse_ref(text)[0]
            nodes.setdefault(source, Node(source, "Placeholder", (), {"dtype": feeds[text][0]}))
        return infer(Graph(nodes.values()), feeds)

    def fact(self, ref: str, found: Inferred) -> Fact:
        """What is known of a tensor, new or old.

        Raises:
            CannotUnrollError: not enough is.
        """
        source, port, _ = parse_ref(ref)
        text = f"{source}:{port}"
        where = self.inferred if source in self.graph.nodes and source not in self.fresh else found
        dtype, shape = where.dtype(text), where.shape(text)
        if dtype is None or not shape.is_known:
            dtype, shape = found.dtype(text), found.shape(text)
        if dtype is None or not shape.is_known:
            raise CannotUnrollError(f"the shape of {text} is not known")
        return dtype.base, shape

    def row_fact(self, ref: str, found: Inferred) -> Fact:
        """The same for an element of a TensorArray."""
        known = self.tables.get(parse_ref(ref)[0])
        return (known.dtype, known.shape) if known is not None else self.fact(ref, found)

    def type_of(self, array: np.ndarray[Any, Any]) -> DType:
        return DType.of_numpy(array.dtype)

    def shaped(self, ref: str, sizes: Sequence[int], dtype: DType) -> str:
        """A tensor with its shape said: what leaves a loop has none that could be worked out."""
        shape = self.constant(np.array(sizes, np.int32))
        name = self.name(f"{parse_ref(ref)[0]}/shaped")
        return self.add(Node(name, "Reshape", [ref, shape], {"T": dtype, "Tshape": INT32}))

    # The frame

    def frame_name(self, wanted: str) -> str:
        """A name for a loop that no loop has yet."""
        while f"{wanted}/goes_on" in self.fresh or f"{wanted}/goes_on" in self.graph.nodes:
            wanted += "_"
        return wanted

    def variable(self, frame: str, number: int) -> str:
        """Begins the names of a variable's nodes."""
        return f"{frame}/variable_{number}"

    def begin(self, frame: str, count: int) -> str:
        """The counter and the condition of a loop of ``count`` rounds; gives the counter, inside."""
        zero, one, most = (self.constant(np.array(value, np.int32)) for value in (0, 1, count))
        name = f"{frame}/counter"
        self.add(Node(f"{frame}/goes_on", "LoopCond", [f"{frame}/less"]))
        self.add(Node(f"{frame}/less", "Less", [f"{name}/first", most], {"T": INT32}))
        self.add(Node(f"{name}/added", "Add", [f"{name}/now:1", one], {"T": INT32}))
        self._variable(name, frame, zero, f"{name}/added", INT32)
        return f"{name}/now:1"

    def carry(self, name: str, frame: str, first: str, following: str, fact: Fact) -> str:
        """A variable of the loop; gives what it is after it.

        Args:
            name: begins its nodes' names; ``NAME/now:1`` is what it is in a round.
            frame: the loop.
            first: what it is before the loop.
            following: what it is in the next round.
            fact: its type and shape.
        """
        dtype, shape = fact
        left = self._variable(name, frame, first, following, dtype)
        return self.shaped(left, shape.known, dtype)

    def _variable(self, name: str, frame: str, first: str, following: str, dtype: DType) -> str:
        typed: dict[str, Any] = {"T": dtype}
        enter: dict[str, Any] = {**typed, "frame_name": frame.encode(), "is_constant": False, "parallel_iterations": 1}
        self.add(Node(f"{name}/enter", "Enter", [first], enter))
        self.add(Node(f"{name}/first", "Merge", [f"{name}/enter", f"{name}/next"], {**typed, "N": 2}))
        self.add(Node(f"{name}/now", "Switch", [f"{name}/first", f"{frame}/goes_on"], typed))
        self.add(Node(f"{name}/next", "NextIteration", [following], typed))
        return self.add(Node(f"{name}/exit", "Exit", [f"{name}/now"], typed))

    def is_free(self, ref: str) -> bool:
        """Whether a tensor is a constant, which may be used inside of every loop."""
        source = parse_ref(ref)[0]
        node = self.fresh.get(source) or self.replaced.get(source) or self.graph.nodes.get(source)
        return node is not None and node.op == "Const" and not node.inputs

    def constant_of(self, frame: str, ref: str, dtype: DType | None, *, is_free: bool = False) -> str:
        """A tensor from outside, inside of the loop, where it is the same in every round.

        Args:
            frame: the loop.
            ref: the tensor.
            dtype: its type; None: that of the graph's own tensor.
            is_free: whether constants enter as well, which need not.
        """
        source, port, _ = parse_ref(ref)
        if self.is_free(ref):
            if not is_free:
                return ref
            value = (self.fresh.get(source) or self.replaced.get(source) or self.graph.nodes[source]).attrs["dtype"]
            dtype = value if isinstance(value, DType) else None
        name = f"{frame}/constant/{source}/{port}"
        if name not in self.fresh:
            attrs: dict[str, Any] = {
                "T": dtype,
                "frame_name": frame.encode(),
                "is_constant": True,
                "parallel_iterations": 1,
            }
            self.add(Node(name, "Enter", [ref], attrs))
        return name

    def enter_all(self, frame: str, body: Sequence[str], facts: Inferred) -> None:
        """Lets everything that these new nodes take from outside into the loop."""
        inside = {name for name in body if self.fresh[name].op != "Const"}
        for name in sorted(inside):
            node = self.fresh[name]
            if node.control_inputs:
                raise CannotUnrollError("a node that waits for another")
            changed = []
            for ref in node.inputs:
                source, port, _ = parse_ref(ref)
                is_inside = source in inside or source.startswith(f"{frame}/")
                dtype = None if is_inside else facts.dtype(f"{source}:{port}")
                changed.append(ref if is_inside else self.constant_of(frame, ref, dtype))
            if changed and all(self.is_free(ref) for ref in changed):  # nothing says yet that it is in the loop
                changed[0] = self.constant_of(frame, changed[0], None, is_free=True)
            if changed != list(node.inputs):
                self.fresh[name] = node.replace(inputs=changed)

    # Rows

    def take(self, frame: str, counter: str, name: str, blocks: str, dtype: DType, length: int) -> None:
        """Gives the block of this round's number, row by row: the node ``name`` has an output for each row.

        Args:
            frame: the loop.
            counter: the number of the round.
            name: the node.
            blocks: a tensor [rounds, rows, …].
            dtype: its type.
            length: rows of a block.
        """
        axis = self.constant(np.array(0, np.int32))
        inside = self.constant_of(frame, blocks, dtype)
        attrs: dict[str, Any] = {"Tparams": dtype, "Tindices": INT32, "Taxis": INT32, "batch_dims": 0}
        block = self.add(Node(f"{name}/block", "GatherV2", [inside, counter, axis], attrs))
        self.add(Node(name, "Unpack", [block], {"num": length, "axis": 0, "T": dtype}))

    def collect(self, name: str, frame: str, counter: str, made: Sequence[str], fact: Fact, count: int) -> str:
        """Collects what each round makes; gives the node outside that has an output for each row of all rounds."""
        dtype, shape = fact
        size = self.constant(np.array(count, np.int32))
        block = Shape((len(made), *shape.known))
        attrs: dict[str, Any] = {
            "dtype": dtype,
            "element_shape": block,
            "identical_element_shapes": True,
            "clear_after_read": True,
        }
        array = self.add(Node(f"{name}/array", "TensorArrayV3", [size], {**attrs, "dynamic_size": False}))
        self.add(Node(f"{name}/packed", "Pack", made, {"T": dtype, "N": len(made), "axis": 0}))
        handle = self.constant_of(frame, array, RESOURCE)
        flow = f"{name}/flow"
        written = [handle, counter, f"{name}/packed", f"{flow}/now:1"]
        self.add(Node(f"{name}/written", "TensorArrayWriteV3", written, {"T": dtype}))
        left = self._variable(flow, frame, f"{array}:1", f"{name}/written", FLOAT)
        every = self.constant(np.arange(count, dtype=np.int32))
        gathered: dict[str, Any] = {"dtype": dtype, "element_shape": block}
        found = self.add(Node(f"{name}/gathered", "TensorArrayGatherV3", [array, every, left], gathered))
        whole = self.shaped(found, (count * len(made), *shape.known), dtype)
        return self.unpacked(f"{name}/rows", whole, count * len(made), dtype, shape)
