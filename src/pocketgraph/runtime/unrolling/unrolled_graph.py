"""The graph that a loop is written out into: new nodes, constants, what is computed already, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, const, parse_ref
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels import registry
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.cost_model import MOST_NODES
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.unrolling.symbolic_values import (
    COUNTED,
    MOST_KNOWN,
    CannotUnrollError,
    ConstantTable,
    HeldArray,
    KnownValue,
    NodeOutput,
    Value,
)


@dataclass
class UnrolledGraph:
    """A graph in the making.

    Attributes:
        graph, plan, inferred: the graph, its needed nodes, and what is known of its tensors.
        kept: nodes that are fetched or targets.
        fresh: the new nodes.
        replaced: nodes of the graph that become others of the same name.
        arrays: what each TensorArray outside of loops holds.
        guards: the assertions of the round at hand that a node stands for.
        gone: nodes of loops that are written out.
        hollow: nodes whose TensorArray nobody looks at any more.
        tables: by the new node that gives them, the rows of a tensor.
        constants: small constants, by what they hold.
        may_chunk: whether shorter loops may be made of long ones.
        chunked: the loops of which they were made.
        counted: what tensors outside of the loop at hand are that some op counts.
    """

    graph: Graph
    plan: Plan
    inferred: Inferred
    kept: frozenset[str]
    fresh: dict[str, Node] = field(default_factory=dict)
    replaced: dict[str, Node] = field(default_factory=dict)
    arrays: dict[Endpoint, HeldArray] = field(default_factory=dict)
    guards: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    hollow: set[str] = field(default_factory=set)
    tables: dict[str, ConstantTable] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    may_chunk: bool = True
    chunked: set[str] = field(default_factory=set)
    counted: dict[Endpoint, Value] = field(default_factory=dict)

    # Undoing

    def mark(self) -> tuple[Any, ...]:
        """What has been written so far, for ``back_to``."""
        kept = dict(self.fresh), dict(self.replaced), dict(self.arrays), dict[str, Any]()
        return *kept, set(self.gone), set(self.hollow), dict(self.tables)

    def back_to(self, mark: tuple[Any, ...]) -> None:
        """Forgets what was written since the mark."""
        self.fresh, self.replaced, self.arrays, self.guards, self.gone, self.hollow, self.tables = mark

    # New nodes

    def name(self, wanted: str) -> str:
        """A name that no node has, like the wanted one."""
        while wanted in self.fresh or wanted in self.graph.nodes:
            wanted += "_"
        return wanted

    def add(self, node: Node) -> str:
        """Adds a node and gives back its name.

        Raises:
            CannotUnrollError: there are too many.
        """
        if len(self.fresh) >= MOST_NODES:
            raise CannotUnrollError("too many nodes")
        self.fresh[node.name] = node
        return node.name

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """The name of a constant of this value; small ones are shared."""
        if array.size > 16:
            return self.add(const(self.name("known/value"), array, DType.of_numpy(array.dtype)))
        shape = "x".join(map(str, array.shape))
        wanted = f"known/{array.dtype.name}_{shape}/{array.tobytes().hex()}"
        name = self.constants.get(wanted)
        if name is None or name not in self.fresh:
            name = self.constants[wanted] = self.add(const(self.name(wanted), array, DType.of_numpy(array.dtype)))
        return name

    # Rows

    def unpacked(self, name: str, tensor: str, count: int, dtype: DType, shape: Shape) -> str:
        """A new node that has an output for each row of a tensor.

        Args:
            name: what it may be called.
            count: its rows.
            dtype: its type.
            shape: the shape of one row.
        """
        made = self.add(Node(self.name(name), "Unpack", [tensor], {"num": count, "axis": 0, "T": dtype}))
        self.tables[made] = ConstantTable(tensor, count, dtype, shape)
        return made

    def stacked(self, names: Sequence[str], dtype: DType) -> str:
        """These tensors, one below the other; rows of a tensor are taken from it together."""
        pieces = self.pieces(names, dtype)
        if len(pieces) == 1:
            return pieces[0]
        axis = self.constant(np.array(0, np.int32))
        attrs: dict[str, Any] = {"T": dtype, "N": len(pieces), "Tidx": INT32}
        return self.add(Node(self.name("known/joined"), "ConcatV2", [*pieces, axis], attrs))

    def pieces(self, names: Sequence[str], dtype: DType) -> list[str]:
        """What ``stacked`` joins: tensors of one or more rows each."""
        runs: list[tuple[ConstantTable | None, list[tuple[str, int]]]] = []
        for name in names:
            source, port, _ = parse_ref(name)
            table = self.tables.get(source)
            if not runs or runs[-1][0] is not table:
                runs.append((table, []))
            runs[-1][1].append((name, port))
        axis = self.constant(np.array(0, np.int32))
        found = []
        for table, run in runs:
            if table is None:
                attrs: dict[str, Any] = {"T": dtype, "N": len(run), "axis": 0}
                found.append(self.add(Node(self.name("known/packed"), "Pack", [name for name, _ in run], attrs)))
            elif [port for _, port in run] == list(range(table.count)):
                found.append(table.tensor)
            else:
                chosen = self.constant(np.array([port for _, port in run], np.int32))
                attrs = {"Tparams": dtype, "Tindices": INT32, "Taxis": INT32, "batch_dims": 0}
                found.append(self.add(Node(self.name("known/rows"), "GatherV2", [table.tensor, chosen, axis], attrs)))
        return found

    def with_few_rows(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes, with only those rows of tensors by themselves that somebody takes by themselves."""
        taken: dict[str, set[int]] = {name: set() for name in self.tables if name in self.fresh}
        takers = set()
        for node in nodes if taken else ():
            for ref in node.inputs:
                source, port, control = parse_ref(ref) if ":" in ref else (ref, 0, False)
                if source in taken and not control:
                    taken[source].add(port)
                    takers.add(node.name)
        few = {name: sorted(ports) for name, ports in taken.items() if 2 * len(ports) < self.tables[name].count}
        if not few:
            return list(nodes)
        done: list[Node] = []
        for node in nodes:
            ports = few.get(node.name)
            if ports is not None:
                table = self.tables[node.name]
                axis, chosen = const(f"{node.name}/axis", np.array(0, np.int32)), const(f"{node.name}/chosen", ports)
                if not ports:
                    continue
                attrs: dict[str, Any] = {"Tparams": table.dtype, "Tindices": INT32, "Taxis": INT32, "batch_dims": 0}
                some = Node(f"{node.name}/some", "GatherV2", [table.tensor, chosen.name, axis.name], attrs)
                done += [axis, chosen, some, node.replace(inputs=[some.name], attrs={**node.attrs, "num": len(ports)})]
                continue
            if node.name not in takers:
                done.append(node)
                continue
            refs = []
            for ref in node.inputs:
                source, port, control = parse_ref(ref)
                refs.append(f"{source}:{few[source].index(port)}" if source in few and not control else ref)
            done.append(node.replace(inputs=refs) if refs != list(node.inputs) else node)
        return done

    def text(self, value: Value) -> str:
        """A value as a node's input."""
        if isinstance(value, NodeOutput):
            return value.name
        if isinstance(value, KnownValue):
            return self.constant(value.array)
        raise CannotUnrollError("a TensorArray is used in an unknown way")

    def computed(self, node: Node, data: Sequence[Value]) -> list[Value] | None:
        """The outputs of a node that counts, when its inputs are known."""
        if node.op == "Shape":
            value = self.inferred.value(f"{node.name}:0")
            return None if value is None else [KnownValue(np.asarray(value, node.attr("out_type", INT32).numpy))]
        if node.op not in COUNTED or not all(isinstance(v, KnownValue) and v.array.dtype.kind in "iub" for v in data):
            return None
        found = registry.KERNELS.row(node.op)
        if found is None or found.takes_context:
            return None
        arrays = [value.array for value in data if isinstance(value, KnownValue)]
        arrays = [np.asarray(value) for value in registry.evaluate(node, arrays)]
        if any(a.size > MOST_KNOWN or a.dtype.kind not in "iub" for a in arrays):
            return None
        changes = any(isinstance(value, KnownValue) and value.changes for value in data)
        return [KnownValue(a, changes) for a in arrays]
