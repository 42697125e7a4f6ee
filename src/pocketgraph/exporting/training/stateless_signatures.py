"""Signatures that read and change variables, as functions: values of variables come in and new ones go out.

Nodes are walked in an order in which they can run, and each reader of a variable gets the value that the variable has
then. What saves variables to files, or restores them, becomes outputs and inputs called as in the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.errors import UsageError
from pocketgraph.exporting.training.update_rules import UPDATES, Nodes
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, Signature, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.dtype import RESOURCE, STRING
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import SWITCH, VARIABLES, ops_with
from pocketgraph.kernels.shapes.infer import infer, postorder
from pocketgraph.passes.inlining import inlined

PASSING = ops_with("passes", "reference")
LOOPS = ops_with("enter", "next_iteration")
LEAVING = ops_with("merge", "exit")


@dataclass
class StatelessSignature:
    """A signature without variables.

    Attributes:
        inputs, outputs: tensors by public name.
        reads: the tensor that each variable's value comes in by, of the variables that are read.
        writes: the tensor of each variable's new value, of those that change.
        saves: whether the outputs are what the signature writes to a checkpoint.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    writes: dict[str, str] = field(default_factory=dict)
    saves: bool = False


def stateless(graph: Graph, signatures: Mapping[str, Signature], shapes: Mapping[str, Shape]) -> tuple[
    Graph, dict[str, StatelessSignature]
]:  # fmt: skip
    """The functions that signatures are, and one graph that computes all of them.

    Args:
        graph: a graph with variables.
        signatures: those to take.
        shapes: of the variables' values, by name.

    Raises:
        UsageError: a signature does with variables, texts or files what has no such form; the node is named.
    """
    refs = [ref for s in signatures.values() for ref in (*s.inputs.values(), *s.outputs.values())]
    whole = inlined(graph, refs, "lower") if graph.functions else graph
    known = infer(whole)
    builder = GraphBuilder(Graph(versions=graph.versions))
    functions: dict[str, StatelessSignature] = {}
    for key, signature in signatures.items():
        fed: dict[str, Node] = {}
        for ref in map(canonical, signature.inputs.values()):
            node = whole.producer(ref)
            dtype = known.dtype(ref)
            if not node.op.startswith("Placeholder") and ref.endswith(":0") and dtype is not None:
                attrs: dict[str, AttrValue] = {"dtype": dtype.base, "shape": known.shape(ref)}
                fed[node.name] = Node(node.name, "Placeholder", (), attrs, node.device)
        cut = whole.replace([fed.get(node.name, node) for node in whole]) if fed else whole
        functions[key] = _SignatureWalk(cut, builder, key, signature, shapes).walked()
    keep = [ref for f in functions.values() for d in (f.inputs, f.outputs, f.reads, f.writes) for ref in d.values()]
    return builder.finished(keep), functions


class _SignatureWalk:
    """One signature on its way."""

    def __init__(
        self, graph: Graph, builder: GraphBuilder, key: str, signature: Signature, shapes: Mapping[str, Shape]
    ) -> None:
        self.graph, self.builder, self.key, self.signature, self.shapes = graph, builder, key, signature, shapes
        self.function = StatelessSignature()
        self.now: dict[str, str] = {}
        """The present value of each variable."""
        self.handles: dict[str, str] = {}
        """The variable that a reference or handle leads to, by tensor."""
        self.made: dict[str, str] = {}
        """What stands for each tensor of the graph."""
        self.restored: dict[str, str] = {}
        """The placeholders of what a checkpoint holds, with the names there."""
        self.saved: dict[str, str] = {}
        self.in_branch: set[str] = set()
        """The nodes that run in a branch or a loop only."""
        self.fed = {canonical(ref) for ref in signature.inputs.values()}

    def walked(self) -> StatelessSignature:
        outputs = [canonical(ref) for ref in self.signature.outputs.values()]
        for node in postorder(self.graph, outputs):
            inside = any(node_name(ref) in self.in_branch for ref in node.inputs)
            if node.op in SWITCH or (inside and node.op not in LEAVING):
                self.in_branch.add(node.name)
            self._node(node)
        function = self.function
        for name, ref in self.signature.inputs.items():
            made = self.made.get(canonical(ref))
            if made is not None:
                function.inputs[name] = canonical(made)
        for name, ref in self.signature.outputs.items():
            if not self._is_text(canonical(ref)):
                function.outputs[name] = canonical(self._given(canonical(ref)))
        for name, placeholder in self.restored.items():
            function.inputs[name] = canonical(placeholder)
        function.writes = {
            name: canonical(ref) for name, ref in self.now.items() if canonical(ref) != function.reads.get(name)
        }
        for name, ref in self.saved.items():
            function.outputs[name] = canonical(ref)
        if self.restored and not function.outputs:
            by_tensor = {ref: name for name, ref in self.restored.items()}
            function.outputs = {by_tensor.get(node_name(ref), name): ref for name, ref in function.writes.items()}
        function.saves = bool(self.saved)
        self._drop_unread()
        return function

    def _drop_unread(self) -> None:
        """Forgets the values that come in and nothing reads."""
        given = map(node_name, [*self.function.outputs.values(), *self.function.writes.values()])
        needed = set(closure(given, lambda name: map(node_name, self.builder.added[name].inputs)))
        reads = self.function.reads
        self.function.reads = {name: ref for name, ref in reads.items() if node_name(ref) in needed}

    def _is_text(self, ref: str) -> bool:
        return opdefs.output_dtypes(self.graph.producer(ref))[parse_ref(ref).port] is STRING

    def _node(self, node: Node) -> None:
        own = f"{node.name}:0"
        if own in self.fed and self._is_text(own):
            pass
        elif own in self.fed:
            self.made[own] = self._put(node.replace(inputs=()))
        elif node.op in VARIABLES:
            self._variable(node)
        elif node.op in PASSING and canonical(node.data_inputs[0]) in self.handles and self._is_handle(node):
            self.handles[own] = self.handles[canonical(node.data_inputs[0])]
        elif node.op in UPDATES:
            self._update(node)
        elif node.op == "ReadVariableOp":
            self.made[own] = self._value(node.data_inputs[0])
        elif node.op == "VariableShape":
            self.made[own] = self.builder.add("Shape", self._value(node.data_inputs[0]), out_type=node.attr("out_type"))
        elif node.op == "ResourceGather":
            table, indices = self._value(node.data_inputs[0]), self._given(canonical(node.data_inputs[1]))
            self.made[own] = self.builder.add("GatherV2", table, indices, self.builder.const(0))
        elif node.op in ("SaveV2", "Save"):
            self._save(node)
        elif node.op in ("RestoreV2", "Restore"):
            self._restore(node)
        elif node.op == "SparseSoftmaxCrossEntropyWithLogits":
            self._sparse_cross_entropy(node)
        elif node.op in LOOPS and canonical(node.data_inputs[0]) in self.handles and self._is_handle(node):
            raise self._refused(node, "a loop reads a variable")
        elif node.op in SWITCH and canonical(node.data_inputs[0]) in self.handles and self._is_handle(node):
            self.handles[own] = self.handles[f"{node.name}:1"] = self.handles[canonical(node.data_inputs[0])]
        elif any(dtype is not STRING for dtype in opdefs.output_dtypes(node)):
            self._copy(node)

    def _is_handle(self, node: Node) -> bool:
        """Whether what a node passes on is a handle of TensorFlow 2; what passes TensorFlow 1's on reads them."""
        return node.op.startswith("Ref") or opdefs.output_dtypes(node)[0] is RESOURCE

    def _variable(self, node: Node) -> None:
        own = f"{node.name}:0"
        shared = node.attr("shared_name", b"")
        name = shared.decode() if isinstance(shared, bytes) and shared else node.name
        self.handles[own] = name
        if name not in self.now:
            dtype = node.dtype("dtype").base
            shape = self.shapes.get(name) or node.shape() or Shape(None)
            value = self._put(Node(_legal(name), "Placeholder", (), {"dtype": dtype, "shape": shape}))
            self.now[name], self.function.reads[name] = value, canonical(value)

    def _value(self, ref: str) -> str:
        """The present value of the variable behind a reference or handle."""
        name = self.handles.get(canonical(ref))
        if name is None:
            node = self.graph.producer(ref)
            raise self._refused(node, "it is not clear which variable it leads to")
        return self.now[name]

    def _given(self, ref: str) -> str:
        """What stands for a tensor; for a reference to a variable its present value."""
        if ref in self.handles:
            return self.now[self.handles[ref]]
        if ref not in self.made:
            node = self.graph.producer(ref)
            why = "nothing stands for its result"
            if self._is_text(ref):
                why = "it gives a text that more than files need"
            elif node.op in LOOPS:
                why = "a loop reads a variable"
            raise self._refused(node, why)
        return self.made[ref]

    def _update(self, node: Node) -> None:
        refs = [canonical(ref) for ref in node.data_inputs]
        names = [self.handles.get(ref) for ref in refs]
        count = next((at for at, name in enumerate(names) if name is None), len(names))
        if not count:
            raise self._refused(node, "it is not clear which variable it changes")
        if node.name in self.in_branch:
            raise self._refused(node, "it changes a variable in a branch or a loop only")
        # A later input may be a variable of TensorFlow 1 that is only read, as Adam's powers are.
        inputs = [self._given(ref) for ref in refs]
        attrs = {key: opdefs.attr_or_default(node, key) for key in opdefs.definition(node.op).attrs}
        with self.builder.scope(node.name):
            found = UPDATES[node.op](Nodes(self.builder, inputs[0], attrs), *inputs)
        for name, value in zip(names, found, strict=False):
            if value is not None and name is not None:
                self.now[name] = value
                self._learn_shape(name, value)
        self.handles[f"{node.name}:0"] = names[0] or ""

    def _learn_shape(self, variable: str, value: str) -> None:
        """What is restored into a variable has its shape."""
        node = self.builder.added.get(node_name(value))
        while node is not None and node.op in ("Identity", "EnsureShape"):
            node = self.builder.added.get(node_name(node.data_inputs[0]))
        if node is not None and node.name in self.restored.values():
            held = self.builder.added.get(node_name(self.function.reads.get(variable, "")))
            if held is not None:
                self.builder.added[node.name] = node.replace(attrs={**node.attrs, "shape": held.attrs["shape"]})

    def _save(self, node: Node) -> None:
        names, values = self._texts(node, 1), node.data_inputs[3 if node.op == "SaveV2" else 2 :]
        for name, ref in zip(names, values, strict=True):
            self.saved[name] = self._given(canonical(ref))

    def _restore(self, node: Node) -> None:
        if node.op == "RestoreV2":
            dtypes = opdefs.output_dtypes(node)
        else:
            dtypes = (node.dtype("dt"),)
        for port, (name, dtype) in enumerate(zip(self._texts(node, 1), dtypes, strict=True)):
            attrs: dict[str, DType | Shape] = {"dtype": dtype.base, "shape": Shape(None)}
            named = self.builder.unique(_legal(f"{self.key}/{name}"))
            placeholder = self.builder.put(Node(named, "Placeholder", (), attrs))
            self.restored[name] = self.made[f"{node.name}:{port}"] = placeholder

    def _texts(self, node: Node, index: int) -> list[str]:
        tensor = self.graph.constant(node.data_inputs[index])
        if tensor is None:
            raise self._refused(node, "the names of tensors in its checkpoint are not known")
        return [text.decode("utf-8", "replace") for text in tensor.numpy().reshape(-1).tolist()]

    def _sparse_cross_entropy(self, node: Node) -> None:
        """The same with one-hot labels, which LiteRT has operators for."""
        logits, labels = (self._given(canonical(ref)) for ref in node.data_inputs)
        dtype = self.builder.dtype(logits).base
        with self.builder.scope(node.name):
            classes = self.builder.add("StridedSlice", self.builder.add("Shape", logits), *(
                self.builder.const([at]) for at in (1, 2, 1)), shrink_axis_mask=1)  # fmt: skip
            on, off = self.builder.const(1, dtype), self.builder.const(0, dtype)
            hot = self.builder.add("OneHot", labels, classes, on, off)
            found = self.builder.add("SoftmaxCrossEntropyWithLogits", logits, hot)
        self.made[f"{node.name}:0"], self.made[f"{node.name}:1"] = found, f"{found}:1"

    def _copy(self, node: Node) -> None:
        inputs = []
        for ref in node.data_inputs:
            source = canonical(ref)
            if source not in self.made and source not in self.handles:
                back = self.graph.producer(source)
                if back.op != "NextIteration":
                    self._given(source)
                self.made[source] = f"{back.name}:0"
            inputs.append(self._given(source))
        made = self._put(node.replace(inputs=inputs))
        for port in range(len(opdefs.output_dtypes(node))):
            self.made[f"{node.name}:{port}"] = f"{made}:{port}" if port else made

    def _put(self, node: Node) -> str:
        """Adds a node, under another name where another signature has another node of its name."""
        there = self.builder.added.get(node.name)
        if there is not None and there.inputs == node.inputs and there.op == node.op and there.attrs == node.attrs:
            return node.name
        name = self.builder.unique(node.name)
        return self.builder.put(node.replace(name=name))

    def _refused(self, node: Node, why: str) -> UsageError:
        return UsageError(
            f"the signature '{self.key}' has no form without variables: {why}", where=f"node '{node.name}' ({node.op})"
        )


def _legal(name: str) -> str:
    """The name as one of a node."""
    return re.sub(r"^[^A-Za-z0-9.]|[^A-Za-z0-9_.\\/-]", "_", name)
