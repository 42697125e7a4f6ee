"""The frame of a loop that is made: its counter and variables, the rows that go in, and the rows that come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, parse_ref
from pocketgraph.graph.dtype import FLOAT, INT32, RESOURCE
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.unrolling.symbolic_values import CannotUnrollError
from pocketgraph.runtime.unrolling.unrolled_graph import UnrolledGraph

Fact = tuple[DType, Shape]
"""What is known of a tensor: its type and its shape, which is known whole."""


class FrameWriter:
    """Writes one loop with TensorFlow 1's control flow.

    Args:
        work: the graph that it is written into.
        wanted: what the loop may be called.
        rounds: how many it has.

    Attributes:
        name: what it is called, a name that no loop has yet.
        rounds: see above.
        counter: the number of the round, inside; there once it has begun.
    """

    def __init__(self, work: UnrolledGraph, wanted: str, rounds: int) -> None:
        while f"{wanted}/goes_on" in work.fresh or f"{wanted}/goes_on" in work.graph.nodes:
            wanted += "_"
        self.work = work
        self.name = wanted
        self.rounds = rounds
        self.counter = f"{wanted}/counter/now:1"

    # What is known of new nodes

    def facts_of(self, names: Iterable[str], given: Mapping[str, Fact]) -> Inferred:
        """What is known of the new nodes of these names.

        Args:
            names: new nodes.
            given: what is known of tensors that are yet to be made.
        """
        nodes = {name: self.work.fresh[name] for name in names}
        feeds = dict(given)
        for node in list(nodes.values()):
            for ref in node.data_inputs:
                source, port, _ = parse_ref(ref)
                text = f"{source}:{port}"
                if source in nodes or text in feeds:
                    continue
                dtype, shape = self.work.inferred.dtype(text), self.work.inferred.shape(text)
                if dtype is not None and source in self.work.graph.nodes:
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
        where = self.work.inferred if source in self.work.graph.nodes and source not in self.work.fresh else found
        dtype, shape = where.dtype(text), where.shape(text)
        if dtype is None or not shape.is_known:
            dtype, shape = found.dtype(text), found.shape(text)
        if dtype is None or not shape.is_known:
            raise CannotUnrollError(f"the shape of {text} is not known")
        return dtype.base, shape

    def row_fact(self, ref: str, found: Inferred) -> Fact:
        """The same for an element of a TensorArray."""
        known = self.work.tables.get(parse_ref(ref)[0])
        return (known.dtype, known.shape) if known is not None else self.fact(ref, found)

    def shaped(self, ref: str, sizes: Sequence[int], dtype: DType) -> str:
        """A tensor with its shape said: what leaves a loop has none that could be worked out."""
        shape = self.work.constant(np.array(sizes, np.int32))
        name = self.work.name(f"{parse_ref(ref)[0]}/shaped")
        return self.work.add(Node(name, "Reshape", [ref, shape], {"T": dtype, "Tshape": INT32}))

    # The frame

    def variable(self, number: int) -> str:
        """What a variable is in a round, inside."""
        return f"{self.name}/variable_{number}/now:1"

    def begin(self) -> None:
        """The counter and the condition."""
        zero, one, most = (self.work.constant(np.array(value, np.int32)) for value in (0, 1, self.rounds))
        name = f"{self.name}/counter"
        self.work.add(Node(f"{self.name}/goes_on", "LoopCond", [f"{self.name}/less"]))
        self.work.add(Node(f"{self.name}/less", "Less", [f"{name}/first", most], {"T": INT32}))
        self.work.add(Node(f"{name}/added", "Add", [self.counter, one], {"T": INT32}))
        self._variable(name, zero, f"{name}/added", INT32)

    def carry(self, number: int, first: str, following: str, fact: Fact) -> str:
        """A variable of the loop; gives what it is after it.

        Args:
            number: of the variable, see ``variable``.
            first: what it is before the loop.
            following: what it is in the next round.
            fact: its type and shape.
        """
        dtype, shape = fact
        left = self._variable(f"{self.name}/variable_{number}", first, following, dtype)
        return self.shaped(left, shape.known, dtype)

    def _variable(self, name: str, first: str, following: str, dtype: DType) -> str:
        typed: dict[str, Any] = {"T": dtype}
        self.work.add(Node(f"{name}/enter", "Enter", [first], self._entering(dtype, is_constant=False)))
        self.work.add(Node(f"{name}/first", "Merge", [f"{name}/enter", f"{name}/next"], {**typed, "N": 2}))
        self.work.add(Node(f"{name}/now", "Switch", [f"{name}/first", f"{self.name}/goes_on"], typed))
        self.work.add(Node(f"{name}/next", "NextIteration", [following], typed))
        return self.work.add(Node(f"{name}/exit", "Exit", [f"{name}/now"], typed))

    def _entering(self, dtype: DType | None, *, is_constant: bool) -> dict[str, Any]:
        """The attributes of an Enter."""
        return {"T": dtype, "frame_name": self.name.encode(), "is_constant": is_constant, "parallel_iterations": 1}

    def free(self, ref: str) -> Node | None:
        """The constant that gives a tensor, which may be used inside of every loop; None where it is no constant."""
        source = parse_ref(ref)[0]
        node = self.work.fresh.get(source) or self.work.replaced.get(source) or self.work.graph.nodes.get(source)
        return node if node is not None and node.op == "Const" and not node.inputs else None

    def constant_of(self, ref: str, dtype: DType | None, *, is_free: bool = False) -> str:
        """A tensor from outside, inside of the loop, where it is the same in every round.

        Args:
            ref: the tensor.
            dtype: its type; None: that of the graph's own tensor.
            is_free: whether constants enter as well, which need not.
        """
        source, port, _ = parse_ref(ref)
        free = self.free(ref)
        if free is not None:
            if not is_free:
                return ref
            value = free.attrs["dtype"]
            dtype = value if isinstance(value, DType) else None
        name = f"{self.name}/constant/{source}/{port}"
        if name not in self.work.fresh:
            self.work.add(Node(name, "Enter", [ref], self._entering(dtype, is_constant=True)))
        return name

    def enter_all(self, body: Sequence[str], facts: Inferred) -> None:
        """Lets everything that these new nodes take from outside into the loop."""
        inside = {name for name in body if self.work.fresh[name].op != "Const"}
        for name in sorted(inside):
            node = self.work.fresh[name]
            if node.control_inputs:
                raise CannotUnrollError("a node that waits for another")
            changed = []
            for ref in node.inputs:
                source, port, _ = parse_ref(ref)
                is_inside = source in inside or source.startswith(f"{self.name}/")
                dtype = None if is_inside else facts.dtype(f"{source}:{port}")
                changed.append(ref if is_inside else self.constant_of(ref, dtype))
            if changed and all(map(self.free, changed)):  # nothing says yet that it is in the loop
                changed[0] = self.constant_of(changed[0], None, is_free=True)
            if changed != list(node.inputs):
                self.work.fresh[name] = node.replace(inputs=changed)

    # Rows

    def take(self, name: str, blocks: str, dtype: DType, length: int) -> None:
        """Gives the block of this round's number, row by row: the node ``name`` has an output for each row.

        Args:
            name: the node.
            blocks: a tensor [rounds, rows, …].
            dtype: its type.
            length: rows of a block.
        """
        axis = self.work.constant(np.array(0, np.int32))
        inside = self.constant_of(blocks, dtype)
        attrs: dict[str, Any] = {"Tparams": dtype, "Tindices": INT32, "Taxis": INT32, "batch_dims": 0}
        block = self.work.add(Node(f"{name}/block", "GatherV2", [inside, self.counter, axis], attrs))
        self.work.add(Node(name, "Unpack", [block], {"num": length, "axis": 0, "T": dtype}))

    def collect(self, name: str, made: Sequence[str], fact: Fact) -> str:
        """Collects what each round makes; gives the node outside that has an output for each row of all rounds."""
        dtype, shape = fact
        size = self.work.constant(np.array(self.rounds, np.int32))
        block = Shape((len(made), *shape.known))
        attrs: dict[str, Any] = {
            "dtype": dtype,
            "element_shape": block,
            "identical_element_shapes": True,
            "clear_after_read": True,
        }
        array = self.work.add(Node(f"{name}/array", "TensorArrayV3", [size], {**attrs, "dynamic_size": False}))
        self.work.add(Node(f"{name}/packed", "Pack", made, {"T": dtype, "N": len(made), "axis": 0}))
        handle = self.constant_of(array, RESOURCE)
        flow = f"{name}/flow"
        written = [handle, self.counter, f"{name}/packed", f"{flow}/now:1"]
        self.work.add(Node(f"{name}/written", "TensorArrayWriteV3", written, {"T": dtype}))
        left = self._variable(flow, f"{array}:1", f"{name}/written", FLOAT)
        every = self.work.constant(np.arange(self.rounds, dtype=np.int32))
        gathered: dict[str, Any] = {"dtype": dtype, "element_shape": block}
        found = self.work.add(Node(f"{name}/gathered", "TensorArrayGatherV3", [array, every, left], gathered))
        whole = self.shaped(found, (self.rounds * len(made), *shape.known), dtype)
        return self.work.unpacked(f"{name}/rows", whole, self.rounds * len(made), dtype, shape)
