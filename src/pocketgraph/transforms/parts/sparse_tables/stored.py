"""Finds what a table holds: in the graph, or in a checkpoint by way of the graph's own Saver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, Tensor, node_name
from pocketgraph.graph.op_traits import REFERENCE_VARIABLES
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant


def table_values(node: Node, checkpoint: Mapping[str, Tensor] | None, slices: Mapping[str, str]) -> Tensor:
    """The value of a constant or variable; of a part of a variable only the part.

    Raises:
        TransformError: a variable needs a checkpoint, or the checkpoint does not have it.
    """
    if node.op == "Const":
        return checked_constant(node)
    if checkpoint is None:
        raise TransformError(
            "Checkpoint reader was not initialized", where=f"node '{node.name}'", hint="pass input_checkpoint=PREFIX"
        )
    key = whole_name(node.name)
    if key not in checkpoint:
        raise TransformError(f"the checkpoint has no tensor '{key}'", where=f"node '{node.name}'")
    return _part(checkpoint[key], slices.get(node.name, ""), node.name)


def whole_name(variable: str) -> str:
    """The name under which a partitioned variable is saved: without a last ``/part_3``."""
    head, slash, last = variable.rpartition("/")
    return head if slash and last.startswith("part_") else variable


def saved_slices(graph: Graph, *, strict: bool) -> dict[str, str]:
    """For each variable the part of the saved tensor that it is, as in ``4 1 0,2:0,1``; "" when it is all.

    Args:
        strict: every variable must be among what the graph's Saver restores.

    Raises:
        TransformError: one is not, with ``strict``.
    """
    restores: dict[str, str] = {}
    for node in graph:
        parts = node.name.split("/")
        if len(parts) == 2 and parts[0].startswith("save") and parts[1].startswith("Assign") and len(node.inputs) > 1:
            restores.setdefault(node.inputs[0], node_name(node.inputs[1]))
    found = {}
    for node in graph:
        if node.op in REFERENCE_VARIABLES:
            text = _saved_slice(graph, node.name, restores.get(node.name, ""))
            if text is not None:
                found[node.name] = text
            elif strict:  # the original aborts where nothing restores it
                raise TransformError(f"Unable to find RestoreV2 entry for variable: {node.name}")
    return found


def _saved_slice(graph: Graph, variable: str, restore: str) -> str | None:
    node = graph.nodes.get(restore)
    if node is None or node.op != "RestoreV2" or len(node.inputs) < 3:
        return None
    names, slices = (graph.nodes.get(ref) for ref in node.inputs[1:3])
    if names is None or slices is None:
        return None
    listed, wanted = names.tensor.numpy().ravel().tolist(), whole_name(variable).encode()
    texts = slices.tensor.numpy().ravel().tolist()
    place = listed.index(wanted) if wanted in listed else len(texts)
    return texts[place].decode("utf-8", "replace") if place < len(texts) else None


def _part(tensor: Tensor, text: str, where: str) -> Tensor:
    """The part of a tensor: sizes of the whole and, last, a ``start,length`` or ``-`` for each dimension."""
    if not text:
        return tensor
    *sizes, ranges = text.split(" ")
    try:
        whole = tuple(int(size) for size in sizes)
        spans = [(0, size) if span == "-" else _span(span) for span, size in zip(ranges.split(":"), whole, strict=True)]
    except ValueError:
        raise TransformError(f"'{text}' is no part of a tensor", where=f"node '{where}'") from None
    if whole != tensor.shape or any(
        start < 0 or n < 0 or start + n > size for (start, n), size in zip(spans, whole, strict=True)
    ):
        raise TransformError(
            f"the checkpoint's tensor {list(tensor.shape)} has no part '{text}'", where=f"node '{where}'"
        )
    part: np.ndarray[Any, Any] = tensor.numpy()[tuple(slice(start, start + n) for start, n in spans)]
    return Tensor.from_numpy(part, tensor.dtype)


def _span(text: str) -> tuple[int, int]:
    start, _, length = text.partition(",")
    return int(start), int(length)
