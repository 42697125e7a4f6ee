"""Rules that rewrite a graph, one a file, and the tool that runs them; a rule's file is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pocketgraph import formats
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph
from pocketgraph.graph.entry_points import check_names
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import run

__all__ = ["Compat", "TransformGraph", "run", "transform"]


def transform(
    graph: Graph | PathLike,
    transforms: str | Iterable[str],
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    *,
    compat: Compat | str = Compat.FIXED,
) -> Graph:
    """The graph after these transforms.

    >>> from pocketgraph.graph.text_format import parse, print_graph
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     one = Const(float [1.0, 2.0])
    ...     two = Neg(one, T=float)
    ...     y = Add(x, two, T=float)
    ... ''')
    >>> print(print_graph(transform(graph, "fold_constants sort_by_execution_order", "x", "y")), end="")
    x = Placeholder(dtype=float, shape=[2])
    two/_0__cf__0 = Const(float [-1.0, -2.0])
    y = Add(x:0, two/_0__cf__0, T=float)

    Args:
        graph: the graph, or its path as ``load`` takes one; it is not changed.
        transforms: a transform string such as ``"strip_unused_nodes fold_constants(ignore_errors=true)"``, or several.
        inputs: names of what will be fed, a list or a string with commas; by default what the graph knows.
        outputs: names of what will be fetched, likewise.
        compat: "fixed" for the nodes that TensorFlow's tool makes, but what is right where that aborts or damages the
            graph, and what it could not do; "original" for the tool to the letter.

    Returns:
        The graph after all of them.

    Raises:
        UsageError: the transforms are not spelled right, this is neither, or the graph lacks an input or output.
        TransformError: a rule failed.
    """
    graph = graph_of(graph, "transform")
    is_original = Compat.named(compat).original
    if inputs is not None:
        graph = graph.replace(inputs=_listed(inputs))
        check_names(graph, () if is_original else graph.inputs, is_fed=True)  # the original ignores what is not there
    if outputs is not None:
        graph = graph.replace(outputs=_listed(outputs))
        check_names(graph, graph.outputs, is_fed=False)
    return run(graph, transforms, compat=compat)


def TransformGraph(  # noqa: N802 - the original's name
    input_graph_def: Any,
    inputs: str | Iterable[str],
    outputs: str | Iterable[str],
    transforms: str | Iterable[str],
    *,
    compat: Compat | str = Compat.FIXED,
) -> Any:
    """The call of TensorFlow's Graph Transform Tool.

    >>> from pocketgraph import formats
    >>> from pocketgraph.graph.text_format import parse, print_graph
    >>> graph_def = formats.to_bytes(parse('''
    ...     x = Placeholder(dtype=float)
    ...     same = Identity(x, T=float)
    ...     y = Tanh(same, T=float)
    ... '''))
    >>> smaller = TransformGraph(graph_def, ["x"], ["y"], ["remove_nodes(op=Identity)", "strip_unused_nodes"])
    >>> print(print_graph(formats.from_bytes(smaller)), end="")
    x = Placeholder(dtype=float)
    y = Tanh(x, T=float)

    Args:
        input_graph_def: a Graph, the bytes of a GraphDef, or a GraphDef message (TensorFlow's own, too).
        inputs: names of what will be fed.
        outputs: names of what will be fetched.
        transforms: transform strings; they run in order, each on what the one before made.
        compat: as for ``transform``.

    Returns:
        The result as the type that was given; a message is a new one.

    Raises:
        TypeError: ``input_graph_def`` is none of these.
        FormatError: the bytes are no GraphDef.
        UsageError: the transforms are not spelled right, or the graph lacks an input or output.
        TransformError: a rule failed.
    """
    if isinstance(input_graph_def, Graph):
        return transform(input_graph_def, transforms, inputs, outputs, compat=compat)

    if isinstance(input_graph_def, (bytes, bytearray, memoryview)):
        result = transform(formats.from_bytes(bytes(input_graph_def)), transforms, inputs, outputs, compat=compat)
        return formats.to_bytes(result)
    if not hasattr(input_graph_def, "SerializeToString"):
        kind = type(input_graph_def).__name__
        raise TypeError(f"TransformGraph takes a Graph, bytes or a GraphDef message, not {kind}")
    result = transform(
        formats.from_bytes(input_graph_def.SerializeToString()), transforms, inputs, outputs, compat=compat
    )
    message = type(input_graph_def)()
    message.ParseFromString(formats.to_bytes(result))
    return message


def _listed(names: str | Iterable[str]) -> tuple[str, ...]:
    listed = names.split(",") if isinstance(names, str) else names
    return tuple(name for name in listed if name)
