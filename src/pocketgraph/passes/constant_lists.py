"""Puts the nodes that make a list in the place of a constant that is one, for all that knows such nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pocketgraph.formats.stored_list import stored_list
from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const
from pocketgraph.graph.dtype import INT32, VARIANT
from pocketgraph.graph.edit import claim_name


def with_lists_made(graph: Graph) -> Graph:
    """The graph without constants of type variant, also in its functions.

    Given:   none = Const(variant[])           ; a list of four places, as fold_constants of TensorFlow 1.15 leaves it
    Result:  none/element_shape = Const(int32 [3])
             none/num_elements = Const(int32 4)
             none = TensorListReserve(none/element_shape, none/num_elements, element_dtype=float, shape_type=int32)

    Raises:
        FormatError: such a constant is damaged, or no list.
    """
    made = _with_made(graph.nodes.values())
    functions = {
        name: function.replace(nodes=nodes)
        for name, function in graph.functions.items()
        if (nodes := _with_made(function.nodes, of_function=True)) is not None
    }
    return graph if made is None and not functions else graph.replace(made, functions={**graph.functions, **functions})


def _with_made(nodes: Collection[Node], *, of_function: bool = False) -> tuple[Node, ...] | None:
    """The nodes with those that make lists, for ``list:output:0`` in a function too; None where no constant is one."""
    lists = {node.name for node in nodes if node.op == "Const" and node.attr("dtype") is VARIANT}
    if not lists:
        return None
    maker = _ListMaker({node.name for node in nodes}, of_function)
    return tuple(made for node in nodes for made in (maker.made(node) if node.name in lists else (node,)))


class _ListMaker:
    def __init__(self, taken: set[str], of_function: bool) -> None:
        self._taken, self._of_function = taken, of_function

    def made(self, node: Node, where: str = "", depth: int = 0) -> list[Node]:
        """The nodes that make the list of a constant; the last has its name."""
        where = where or f"node '{node.name}'"
        found = stored_list(node.tensor, where, depth)
        made: list[Node] = []

        def constant(name: str, value: Any) -> str:
            new = const(self._free(node, name), value, inputs=node.inputs, device=node.device)
            made.extend(self.made(new, where, depth + 1) if new.attrs["dtype"] is VARIANT else [new])
            return new.name

        def step(op: str, *inputs: str, **attrs: AttrValue) -> None:
            made.append(Node(self._free(node, "list"), op, (*inputs, *node.inputs), attrs, node.device))

        dims = found.shape.dims
        shape = constant(
            "element_shape", np.array(-1 if dims is None else [-1 if n is None else n for n in dims], np.int32)
        )
        types: dict[str, AttrValue] = {"element_dtype": found.dtype, "shape_type": INT32}
        rows = found.items
        are_alike = len({(row.dtype, row.shape) for row in rows.values()} - {(VARIANT, ())}) == 1
        if found.most < 0 and are_alike and len(rows) == found.count:
            tensor = Tensor.from_numpy(np.stack([row.numpy() for row in rows.values()]), found.dtype)
            step("TensorListFromTensor", constant("tensor", tensor), shape, **types)
            rows = {}
        elif found.most < 0:
            step("TensorListReserve", shape, constant("num_elements", np.int32(found.count)), **types)
        else:
            step("EmptyTensorList", shape, constant("max_num_elements", np.int32(found.most)), **types)
            if found.count:
                step("TensorListResize", made[-1].name, constant("size", np.int32(found.count)))
        for index, row in rows.items():
            before = made[-1].name
            place, item = constant("index", np.int32(index)), constant("item", row)
            step("TensorListSetItem", before, place, item, element_dtype=found.dtype)
        if self._of_function and not depth:
            step("Identity", made[-1].name, T=VARIANT)  # whose output has the name that a constant's has
        return [*made[:-1], made[-1].replace(name=node.name)]

    def _free(self, node: Node, name: str) -> str:
        return claim_name(f"{node.name}/{name}", self._taken)
