"""What the savers in a graph say: under which checkpoint key, and as which slice of it, each variable is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pocketgraph.errors import UsageError
from pocketgraph.formats.checkpoints.bundle_proto import Extent
from pocketgraph.formats.function_def import arguments
from pocketgraph.freezing.graph_variables import ASSIGNS, variable_behind
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.graph import Graph, Node, Tensor, parse_ref
from pocketgraph.graph.attr import Func
from pocketgraph.graph.op_traits import FUNCTION_CALLS, SAME_VALUES

_RESTORES: dict[str, tuple[int, int | None]] = {"RestoreV2": (1, 2), "RestoreSlice": (1, 2), "Restore": (1, None)}
"""The ops that read a checkpoint, and which of their inputs are the names and the slices."""
LONGEST = 40  # characters of a part of a slice: two numbers of 64 bits
"""What savers put between a variable and its slices."""


class SavedAs(NamedTuple):
    """Where a saver finds a variable.

    Attributes:
        key: the tensor's name in the checkpoint.
        extents: (start, length) a dimension of the slice that the variable is, length -1 for all; None: all of it.
        saver: the scope of the saver's nodes, such as ``save``.
    """

    key: str
    extents: tuple[Extent, ...] | None
    saver: str


def saved_names(graph: Graph) -> dict[str, list[SavedAs]]:
    """For each variable that the graph's savers restore, where they look for it, in graph order.

    A saver is a RestoreV2 (or the older Restore, RestoreSlice) whose names are constant and whose outputs go into an
    assignment to the variable. TensorFlow 2 has it in a function that is called with the variables' handles. Keras 3
    gives it copies, so that what a copy was made of has its places, too.
    """
    found: dict[str, list[SavedAs]] = {}

    def note(reference: str, place: SavedAs) -> None:
        variable = variable_behind(graph, reference)
        if variable is not None:
            found.setdefault(variable, []).append(place)

    for reference, place in _restored(graph.nodes):
        note(reference, place)
    for call in graph:
        func = call.attrs.get(function_attributes(call.op)[0]) if call.op in FUNCTION_CALLS else None
        function = graph.functions.get(func.name) if isinstance(func, Func) else None
        if function is None or not any(node.op in _RESTORES for node in function.nodes):
            continue
        places = dict(zip(arguments(function), call.data_inputs, strict=False))
        for argument, place in _restored({node.name: node for node in function.nodes}):
            if argument in places:
                note(places[argument], place)
    for copy, original in _keras_copies(graph):
        if copy in found and original not in found:
            found[original] = found[copy]
    return found


def of_saver(saved: dict[str, list[SavedAs]], scope: str | None) -> dict[str, list[SavedAs]]:
    """What one saver says, that of a scope; all, where no scope is given.

    Raises:
        UsageError: the graph has no such saver.
    """
    if not scope:
        return saved
    chosen = {name: [place for place in places if place.saver == scope] for name, places in saved.items()}
    if not any(chosen.values()):
        scopes = sorted({place.saver for places in saved.values() for place in places})
        raise UsageError(
            f"the graph has no saver '{scope}'", hint=f"it has {', '.join(scopes)}" if scopes else "it has none"
        )
    return chosen


def _keras_copies(graph: Graph) -> Iterator[tuple[str, str]]:
    """(copy, original) for each variable whose first value is another variable's, where that has no first value itself.

    So Keras 3 saves a variable (``_export_to_saved_model_graph`` in keras/src/backend/tensorflow/core.py). A moving
    average of TensorFlow 1 begins as a copy, too, but of a variable that has a first value.
    """
    assigned = [node.data_inputs for node in graph if node.op == "AssignVariableOp" and len(node.data_inputs) > 1]
    first = {variable_behind(graph, reference) for reference, _ in assigned}
    for reference, value in assigned:
        read = graph.find_producer(value, {"Identity"})
        if read is None or read.op != "ReadVariableOp":
            continue
        copy, original = variable_behind(graph, reference), variable_behind(graph, read.data_inputs[0])
        if copy is not None and original is not None and original not in first:
            yield copy, original


def restored_key(graph: Graph, reference: str) -> str | None:
    """The checkpoint key that a saver restores a tensor from; None for one that it does not."""
    name, port = _source(graph.nodes, reference)
    node = graph.nodes.get(name)
    if node is None or node.op not in _RESTORES:
        return None
    keys = _strings(graph.nodes, node.data_inputs, _RESTORES[node.op][0])
    return keys[port] if port < len(keys) else None


def _restored(nodes: Mapping[str, Node]) -> Iterator[tuple[str, SavedAs]]:
    """(what is assigned to, where its value is restored from) in one list of nodes."""
    lists = {
        name: [_strings(nodes, node.data_inputs, index) for index in _RESTORES[node.op]]
        for name, node in nodes.items()
        if node.op in _RESTORES
    }
    if not lists:
        return
    for node in nodes.values():
        if node.op not in ASSIGNS or len(node.data_inputs) < 2:
            continue
        source, port = _source(nodes, node.data_inputs[1])
        names, slices = lists.get(source, ([], []))
        if port < len(names):
            extents = parse_slice(slices[port]) if port < len(slices) else None
            yield node.data_inputs[0], SavedAs(names[port], extents, source.rpartition("/")[0])


def parse_slice(text: str) -> tuple[Extent, ...] | None:
    """The slice in a saver's ``shape_and_slices`` string, such as ``10 4 0,5:-`` for the first 5 of 10 rows.

    None for the whole tensor, and for text that is no slice.
    """
    spec = text.split(" ")[-1]
    extents: list[Extent] = []
    if not spec or " " not in text:
        return None
    for part in spec.split(":"):
        start, _, length = part.partition(",")
        if part == "-":
            extents.append((0, -1))
        elif start.isdecimal() and length.isdecimal() and len(part) <= LONGEST:
            extents.append((int(start), int(length)))
        else:
            return None
    return tuple(extents)


def _source(nodes: Mapping[str, Node], ref: str) -> tuple[str, int]:
    """The node and output that a value comes from, through what a saver puts in between."""
    for _ in range(len(nodes)):
        name, *rest = ref.split(":")
        node = nodes.get(name)
        if node is None or node.op not in SAME_VALUES or not node.data_inputs:
            return name, parse_ref(ref).port if rest else 0
        ref = node.data_inputs[0]
    return "", 0


def _strings(nodes: Mapping[str, Node], inputs: Sequence[str], index: int | None) -> list[str]:
    """The elements of a constant string input."""
    if index is None or index >= len(inputs):
        return []
    name, _ = _source(nodes, inputs[index])
    value = nodes[name].attrs.get("value") if name in nodes else None
    if not isinstance(value, Tensor) or value.dtype.name != "string":
        return []
    return [item.decode("utf-8", "replace") for item in value.numpy().reshape(-1).tolist()]
