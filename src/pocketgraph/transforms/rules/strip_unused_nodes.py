"""Keeps what the outputs need, and makes placeholders of the inputs."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import suppress

from pocketgraph.errors import GraphError, TransformError, command_on_model, option
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, node_name, opdefs
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.graph.node import further_outputs
from pocketgraph.graph.op_traits import FEEDS_TRAINING
from pocketgraph.graph.order import reachable
from pocketgraph.graph.shape import SCALAR, UNKNOWN
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform

log = logging.getLogger("pocketgraph.transforms")


@transform
def strip_unused_nodes(
    graph: Graph,
    *,
    type: str | None = None,
    shape: str | None = None,
    name: tuple[str, ...] = (),
    type_for_name: tuple[str, ...] = (),
    shape_for_name: tuple[str, ...] = (),
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Drops every node that the outputs do not need; an input that is no placeholder becomes one.

    Given:   file = Placeholder(dtype=string)
             image = DecodeJpeg(file)
             x = Relu(image, T=float)
             loss = L2Loss(x, T=float)
             ; inputs=image outputs=x strip_unused_nodes(type=float, shape="1,8,8,3")
    Result:  image = Placeholder(dtype=float, shape=[1,8,8,3])
             x = Relu(image, T=float)

    Differs from the original: a placeholder that nothing is said of keeps the type of what it replaces, and its shape
    is unknown, or that of a PlaceholderWithDefault (there, they are float and a scalar's); a size may be unknown,
    written ``?`` or ``-1``. A node of several outputs that are read does not become a placeholder,
    which has one (there, the result cannot be loaded). Without an output it is an error (there, nothing is left but
    the inputs).

    Args:
        type: the element type of the new placeholders.
        shape: their shape, as in ``"1,299,299,3"``.
        name: inputs that have a type and a shape of their own, which are in the same place of the other two lists.
        type_for_name: the types of the inputs in ``name``.
        shape_for_name: the shapes of the inputs in ``name``.

    The types and shapes are looked at only when an input has to become a placeholder. An input that is not in the graph
    is passed over.

    Raises:
        TransformError: no output is named; a type or shape is not spelled right, or the lists are not of one length;
            more than the first output of what becomes a placeholder is read.
        GraphError: an output, or a node that it needs, is not in the graph.
    """
    inputs = {node_name(ref) for ref in graph.inputs}
    if not compat.original:
        if not graph.outputs:
            named = ",".join(end.name for end in likely_outputs(graph)) or "NAMES"
            raise TransformError(
                "no output is named, and only what outputs need is kept",
                hint=f"name it with {option('outputs')}: {named}",
            )
        with suppress(TransformError):  # a bad parameter matters where it is needed, and only there
            _tell_unused(graph, inputs, type, shape, dict(zip(name, shape_for_name, strict=False)), compat)
    needed = inputs | reachable(graph, graph.outputs, stop=inputs & graph.nodes.keys())

    def placeholder(node: Node) -> Node:
        for other, values in (("type_for_name", type_for_name), ("shape_for_name", shape_for_name)):
            if len(name) != len(values):
                raise TransformError(
                    f"You must pass a '{other}' arg for every 'name', but found {len(name)} names and "
                    f"{len(values)} of '{other}'"
                )
        types = dict(zip(name, type_for_name, strict=True))
        shapes = dict(zip(name, shape_for_name, strict=True))
        attrs: dict[str, AttrValue] = {
            "dtype": _type(types.get(node.name, type), FLOAT if compat.original else _own_type(node)),
            "shape": _shape(
                shapes.get(node.name, shape), SCALAR if compat.original else node.shape() or UNKNOWN, compat
            ),
        }
        return Node(node.name, "Placeholder", (), attrs)

    kept = [
        placeholder(node) if node.name in inputs and node.op != "Placeholder" else node
        for node in graph
        if node.name in needed
    ]
    made = {node.name for node in graph if node.name in inputs and node.op != "Placeholder"}
    if not compat.original and made:
        _check_ports(graph, kept, made)
    return graph.replace(kept)


def _check_ports(graph: Graph, kept: Sequence[Node], made: set[str]) -> None:
    """Refuses placeholders of which more than the one output that they have is read.

    Raises:
        TransformError: there is one.
    """
    for name, port, _ in further_outputs((node for node in kept if node.name not in made), made):
        is_training = graph[name].op in FEEDS_TRAINING
        raise TransformError(
            f"the input '{name}' would become a placeholder, which has one output, and '{name}:{port}' is read too",
            hint=f"{command_on_model('pocketgraph freeze_graph {} -o frozen.pb --repair=inputs')} makes a placeholder "
            "for each"
            if is_training
            else "name what stands in front of it, or tensors behind it",
        )


def _tell_unused(
    graph: Graph, inputs: set[str], type: str | None, shape: str | None, shapes: dict[str, str], compat: Compat
) -> None:
    """Warns of a type or a shape that contradicts what a placeholder says already, which stays."""
    for node in graph:
        if node.name not in inputs or node.op != "Placeholder":
            continue
        wanted, declared = shapes.get(node.name, shape), node.shape() or UNKNOWN
        if wanted is not None and not declared.fits(_shape(wanted, declared, compat)):
            log.warning(
                "strip_unused_nodes: the shape %s is not used, the placeholder '%s' has %s", wanted, node.name, declared
            )
        if type is not None and _type(type, FLOAT) is not _own_type(node):
            log.warning(
                "strip_unused_nodes: the type %s is not used, the placeholder '%s' has %s", type, node.name,
                _own_type(node).name,
            )  # fmt: skip


def _own_type(node: Node) -> DType:
    """The type of what a node gives first; float where that is not known."""
    try:
        return opdefs.output_dtypes(node)[0].base
    except (GraphError, IndexError):
        return FLOAT


def _type(text: str | None, default: DType) -> DType:
    if text is None:
        return default
    try:
        return DType.named(text)
    except GraphError:
        raise TransformError(
            f"Couldn't understand type argument '{text}'", hint="write a type such as float, int32 or uint8"
        ) from None


def _shape(text: str | None, default: Shape, compat: Compat) -> Shape:
    if text is None:
        return default
    if not text:
        raise TransformError("The specified shape is empty", hint='write sizes with commas, such as "1,299,299,3"')
    parts = [part.strip() for part in text.split(",")]
    unknown = () if compat.original else ("?", "-1")
    if any(part not in unknown and not re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        hint = "; none may be unknown" if compat.original else ", or ? for one that is not known"
        raise TransformError(
            f"Could not parse as shape: '{text}'", hint=f'write every size, such as "1,299,299,3"{hint}'
        )
    return Shape(None if part in unknown else int(part) for part in parts)
