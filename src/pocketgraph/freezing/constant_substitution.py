"""Rewrites a graph so that constants stand where its variables were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from pocketgraph.errors import FreezeError
from pocketgraph.freezing.graph_variables import HANDLE_OP
from pocketgraph.freezing.handles import NodeScope
from pocketgraph.freezing.variables_in_calls import FrozenFunctions, has_function
from pocketgraph.graph import DType, Graph, Node, Tensor, const, node_name
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.edit import free_name
from pocketgraph.graph.op_traits import FUNCTION_CALLS, PASSES_OR_ROUTES

READERS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp")
"""Not a trait: what takes a variable's handle and can take its value."""


def variables_to_constants(graph: Graph, values: Mapping[str, Tensor]) -> Graph:
    """Replaces the named variables by constants, and what reads them by what reads constants.

    ::

        v = VariableV2(dtype=float, shape=[2])      ->  v = Const(float [1, 2])
        h = VarHandleOp(dtype=float, shape=[2])     ->  h = Const(float [1, 2])
        r = ReadVariableOp(h, ^c)                   ->  r = Identity(h)
        g = ResourceGather(h, i)                    ->  g = GatherV2(h, i, g/axis), g/axis = Const(0)
        n = ResourceGatherNd(h, i)                  ->  n = GatherNd(h, i)
        s = VariableShape(h)                        ->  s = Shape(h)
        i = VarIsInitializedOp(h)                   ->  i = Const(true)
        e = Enter(h, T=resource)                    ->  e = Enter(h, T=float), and likewise Identity, Switch, Merge …
        c = If(p, h, Tin=[resource])                ->  c = If(p, h, Tin=[float]) of functions that take the value

    The rules are those of TensorFlow 1.15's convert_variables_to_constants, node for node; a ``Const`` has the
    attributes dtype and value and no others. Functions are rewritten as TensorFlow 2 does it: a function that takes a
    frozen variable becomes one called ``…_frozen_N`` that takes its value. Where it differs from 1.15:

    * a read of a variable that is not replaced stays a read (1.15 makes it an Identity that no longer fits);
    * all carriers of a handle get the element type (1.15 only those between a variable and a read), and VariableShape,
      VarIsInitializedOp, ResourceGatherNd and gathers with batch_dims become constants, or ops that take them (1.15
      leaves or refuses them);
    * in a loop, the axis of a gather waits for the indices, as TensorFlow loads no other (1.15 makes it without);
    * ``versions`` is kept (1.15 writes none; 2.x keeps it).

    Args:
        graph: with the variables.
        values: the value by the variable's node name; dtypes are those of the variables. They are not read.

    Raises:
        FreezeError: a handle goes where no constant can.
    """
    types = {n.name: n.dtype("dtype").base for n in graph if n.op == HANDLE_OP and n.name in values}
    return values_for_handles(graph, types, values)


def values_for_handles(
    graph: Graph, types: Mapping[str, DType], values: Mapping[str, Tensor] = MappingProxyType({})
) -> Graph:
    """What takes these nodes' outputs for handles of variables takes them for values of these types; nodes with a value
    become constants, which the others are already."""
    scope = NodeScope(tuple(graph), in_function=False)
    library = FrozenFunctions(graph.functions, rewritten)
    nodes, _ = rewritten(scope, scope.follow({f"{name}:0": dtype for name, dtype in types.items()}), library, values)
    return graph.replace(nodes, functions=library.after(nodes))


def rewritten(
    scope: NodeScope, handles: Mapping[str, DType], library: FrozenFunctions, values: Mapping[str, Tensor]
) -> tuple[list[Node], dict[str, str]]:
    """The nodes of a scope with the variables in ``values`` replaced and every use of the handles rewritten.

    Returns:
        The nodes, and new names of tensors where they changed (only in function bodies, where they tell the output).
    """
    users = {node.name for node in scope.users(handles)}
    taken = {node.name for node in scope.nodes}
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in scope.nodes:
        if node.name in values:
            nodes.append(const(node.name, values[node.name]))
        elif node.name not in users:
            nodes.append(node)
        elif node.op in FUNCTION_CALLS:
            nodes.append(library.call(node, scope.taken(node, handles)))
        else:
            if node.op == "ReadVariableOp":
                renamed[f"{node.name}:value:0"] = f"{node.name}:output:0"
            nodes.extend(_reader(node, scope, handles, taken))
    if scope.in_function and renamed:
        nodes = [_redirected(node, renamed) for node in nodes]
    return nodes, renamed


def _reader(node: Node, scope: NodeScope, handles: Mapping[str, DType], taken: set[str]) -> Iterator[Node]:
    """What a node that takes a handle becomes."""
    positions = scope.taken(node, handles)
    dtype = positions.get(0) or positions.get(1)
    if dtype is None or (0 not in positions and node.op != "Merge"):
        _refuse_function(node)
        yield node
    elif node.op in PASSES_OR_ROUTES:
        kept = {key: value for key, value in node.attrs.items() if key != "_output_shapes"}
        yield Node(node.name, node.op, node.inputs, {**kept, "T": dtype})
    elif node.op in READERS:
        made = [*reading_value(node, dtype, taken, in_function=scope.in_function)]
        waits = (
            [f"^{node_name(node.data_inputs[1])}"] if len(made) > 1 and scope.is_entered(node.data_inputs[0]) else []
        )
        yield from (one.replace(inputs=waits) if one.op == "Const" else one for one in made)
    else:
        _refuse_function(node)
        yield node  # an assignment, say; leftovers.py speaks of it


def reading_value(node: Node, dtype: DType, taken: set[str], *, in_function: bool = False) -> Iterator[Node]:
    """What reads a variable, as what takes its value, a tensor of this type that is its first input already: the last
    of the nodes has its name. ``taken`` are the names of nodes, and gets new ones."""
    inputs = node.data_inputs
    colocation: dict[str, AttrValue] = {"_class": node.attrs["_class"]} if "_class" in node.attrs else {}
    if node.op == "ReadVariableOp":
        yield Node(node.name, "Identity", inputs[:1], {"T": dtype, **colocation})
    elif node.op == "ResourceGather":
        indices = node.dtype("Tindices")
        batch_dims = node.attr("batch_dims", 0)
        if not isinstance(batch_dims, int) or batch_dims < 0:
            raise FreezeError("its batch_dims is no number of dimensions", where=f"node '{node.name}'")
        axis = free_name(f"{node.name}/axis", taken)
        taken.add(axis)
        yield const(axis, np.array(batch_dims), indices)
        attrs: dict[str, AttrValue] = {"Tparams": dtype, "Tindices": indices, "Taxis": indices, **colocation}
        if batch_dims:
            attrs["batch_dims"] = batch_dims
        yield Node(node.name, "GatherV2", (*inputs[:2], f"{axis}:output:0" if in_function else axis), attrs)
    elif node.op == "ResourceGatherNd":
        indices = node.dtype("Tindices")
        yield Node(node.name, "GatherNd", inputs[:2], {"Tparams": dtype, "Tindices": indices, **colocation})
    elif node.op == "VariableShape":
        out_type = node.dtype("out_type", DType.named("int32"))
        yield Node(node.name, "Shape", node.inputs, {"T": dtype, "out_type": out_type, **colocation})
    elif node.op == "VarIsInitializedOp":
        yield const(node.name, np.array(True))
    else:
        yield node


def _refuse_function(node: Node) -> None:
    if has_function(node):
        raise FreezeError(
            f"a variable is passed to a function by an op ({node.op}) through which it cannot be followed",
            where=f"node '{node.name}'",
            hint="freeze the model with TensorFlow's convert_variables_to_constants_v2 and use the result",
        )


def _redirected(node: Node, renamed: Mapping[str, str]) -> Node:
    if not any(ref in renamed for ref in node.inputs):
        return node
    return node.replace(inputs=[renamed.get(ref, ref) for ref in node.inputs])
