"""Gives inputs fixed values: placeholders become constants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import FreezeError, GraphError, UsageError, did_you_mean, option
from pocketgraph.graph import DType, Graph, Node, Tensor, const, opdefs, parse_ref

_WORDS = {"true": True, "false": False}


def bound(graph: Graph, values: Mapping[str, Any]) -> Graph:
    """The graph with these nodes replaced by constants.

    ::

        phase_train = Placeholder(dtype=bool)   ->   phase_train = Const(bool false)

    Args:
        values: the value by the node's name (or its first tensor's); anything NumPy makes an array of the node's type
            of, or a text as in ``--bind``: ``false``, ``0.5``, ``[1, 2]``.

    Raises:
        UsageError: a value does not fit the node's type or shape.
        FreezeError: there is no such node, or it has no output, or several, or one of unknown type.
    """
    if not values:
        return graph
    constants: dict[str, Node] = {}
    for name, value in values.items():
        ref = parse_ref(name)
        node = graph.nodes.get(ref.name)
        if node is None or ref.control:
            raise FreezeError(f"there is no node '{name}' to bind", hint=_inputs_hint(name, graph))
        if ref.port:
            hint = "bind the nodes that read this one, each to its own value"
            raise FreezeError("only a node's first output can be bound", where=name, hint=hint)
        constants[node.name] = const(node.name, _tensor(node, value))
    return graph.map_nodes(lambda node: constants.get(node.name, node))


def split(text: str) -> tuple[str, str]:
    """``NAME=VALUE`` taken apart. Raises UsageError when it is something else."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals or not value.strip():
        raise UsageError(f"'{text}' does not say NAME=VALUE", hint=f"for example {option('bind')} phase_train=false")
    return name.strip(), value.strip()


def _inputs_hint(name: str, graph: Graph) -> str:
    near = did_you_mean(name, graph.nodes)
    if near:
        return near
    inputs = [node.name for node in graph if node.op.startswith("Placeholder")]
    return f"its placeholders are {', '.join(inputs[:6])}" if inputs else "it has no placeholders"


def _tensor(node: Node, value: Any) -> Tensor:
    try:
        types = (node.dtype("dtype"),) if node.op.startswith("Placeholder") else opdefs.output_dtypes(node)
    except GraphError:
        types = ()
    if len(types) != 1:
        raise FreezeError(
            f"a {node.op} with {len(types)} outputs cannot be bound", where=f"node '{node.name}'",
            hint="bind a placeholder, or another node of one output",
        )  # fmt: skip
    dtype = types[0].base
    array = _array(value, dtype, node.name)
    shape = node.shape() if node.op.startswith("Placeholder") else None
    # the oldest placeholders write an unknown shape as a scalar's
    if shape is not None and not shape.fits(array.shape) and not (node.op == "Placeholder" and shape.rank == 0):
        raise UsageError(
            f"it takes {dtype.name}{shape}, not {list(array.shape)}", where=f"{option('bind')} {node.name}"
        )
    return Tensor.from_numpy(array, dtype)


def _array(value: Any, dtype: DType, name: str) -> np.ndarray[Any, Any]:
    wrong = UsageError(f"{value!r} is no value of type {dtype.name}", where=f"{option('bind')} {name}")
    if isinstance(value, str) and dtype.name != "string":
        try:
            value = _WORDS[value.lower()] if value.lower() in _WORDS else json.loads(value)
        except (ValueError, RecursionError):
            raise wrong from None
    elif isinstance(value, str):
        value = value.encode()
    try:
        array = np.array(value)
        if dtype.name == "string":
            items = [v.encode() if isinstance(v, str) else v for v in array.reshape(-1).tolist()]
            return np.array(items, object).reshape(array.shape)
        with np.errstate(invalid="ignore"):  # what does not fit is found below
            exact = np.array(array, dtype.numpy)
        if dtype.name == "bool" and array.dtype.kind not in "bui":
            raise wrong
        if exact.dtype.kind in "iu" and not np.array_equal(exact, array):
            raise wrong
        if dtype.name == "bool" and not np.isin(array, (0, 1)).all():
            raise wrong
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    return exact
