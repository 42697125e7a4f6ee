"""What callers write for tensors and nodes: taken apart, looked up, and refused in TensorFlow's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pocketgraph.errors import RunError, did_you_mean
from pocketgraph.graph import DType, Graph, Node, node_name, parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.record import Record

TensorName: TypeAlias = "str | Node"
OF_ROUND = r"(/round_\d+_*|/once_*)+$"
"""What ``unrolling`` puts behind the names of a loop's nodes; underscores where such a name was there already."""


def spelled(name: TensorName) -> str:
    """The text of a tensor or node name; a Node stands for its first output.

    Raises:
        RunError: it is something else.
    """
    if isinstance(name, str):
        return name
    if isinstance(name, Node):
        return name.name
    raise RunError(f"a tensor is named by a string or a Node, not by {type(name).__name__}")


def listed(names: Any) -> tuple[str, ...]:
    """One name or a list of names, as a tuple of texts.

    Raises:
        RunError: it is neither.
    """
    if type(names) in (list, tuple):  # as nearly always
        return tuple([spelled(name) for name in names])
    if isinstance(names, (str, Node)):
        return (spelled(names),)
    if isinstance(names, bytes):  # which would be a list of numbers
        raise RunError("a tensor is named by a string or a Node, not by bytes", hint="write name.decode()")
    if isinstance(names, Mapping):
        raise RunError(
            "a list of tensor names is wanted, not a mapping", hint="fetch list(names.values()), or use run_signature"
        )
    if not isinstance(names, Iterable):
        hint = "all that a session gives are list(session.outputs)" if names is None else ""
        raise RunError(f"a list of tensor names is wanted, not {type(names).__name__}", hint=hint)
    return tuple(spelled(name) for name in names)


def before_rounds(name: str) -> tuple[str, str]:
    """A node's name before its loop was written out, and which round's copy it is, in words or ``""``."""
    if "/round_" not in name and "/once" not in name:
        return name, ""  # the pattern takes 0.15 ms to compile
    base = re.sub(OF_ROUND, "", name)
    rounds = re.findall(r"\d+", name[len(base) :])
    return base, f"round {', '.join(reversed(rounds))}" if rounds else ""


def output_count(node: Node) -> int | None:
    """How many outputs a node has, or None when its op is not known."""
    types = output_types(node)
    return None if types is None else len(types)


def output_types(node: Node) -> tuple[DType, ...] | None:
    """The element types of a node's outputs, or None when they cannot be told."""
    from pocketgraph.graph import opdefs

    try:
        return opdefs.output_dtypes(node)
    except Exception:
        return None  # the node lacks attributes; what runs it will say so


def feed_endpoint(graph: Graph, text: str) -> Endpoint:
    """The tensor that a feed replaces.

    Raises:
        RunError: there is no such node or output.
    """
    name, port, control = parse_ref(text)
    node = graph.nodes.get(name)
    if node is None or control:
        raise RunError(f"FeedInputs: unable to find feed output {text}", hint=_instead(graph, name, is_fed=True))
    count = output_count(node)
    if count is not None and port >= count:
        hint = _instead(graph, text, is_fed=True)
        raise RunError(f"FeedInputs: {text} should have output index < {count}", hint=hint)
    return Endpoint(name, port)


def fetch_endpoint(graph: Graph, text: str) -> Endpoint:
    """The tensor that a fetch names.

    Raises:
        RunError: there is no such node or output.
    """
    name, port, control = parse_ref(text)
    node = graph.nodes.get(name)
    if node is None or control:
        hint = f"to run a node without fetching, pass targets=['{name}']" if control and node is not None else ""
        raise RunError(f"FetchOutputs node {text}: not found", hint=hint or _instead(graph, name, is_fed=False))
    count = output_count(node)
    if count == 0:
        raise RunError(
            f"Tried to fetch data for '{text}', which produces no output",
            hint=f"to run a node without fetching, pass targets=['{name}']",
        )
    if count is not None and port >= count:
        hint = _instead(graph, text, is_fed=False)
        raise RunError(f"FetchOutputs {text}: output index too large, must be < {count}", hint=hint)
    return Endpoint(name, port)


class Fetched(Record):
    """What a list of fetches asks for.

    Attributes:
        tensors: the names of tensors, in order.
        operations: the names of operations without outputs, which are run.
        places: where among the fetches these are.
    """

    tensors: tuple[str, ...]
    operations: tuple[str, ...]
    places: tuple[int, ...]


def fetched(graph: Graph, names: Sequence[str]) -> Fetched:
    """Tells operations without outputs, such as ``init``, from tensors, whose bare names are their first outputs."""
    nodes = [graph.nodes.get(name) for name in names]
    places = tuple(place for place, node in enumerate(nodes) if node is not None and output_count(node) == 0)
    tensors = tuple(name for place, name in enumerate(names) if place not in places)
    return Fetched(tensors, tuple(names[place] for place in places), places)


def _instead(graph: Graph, name: str, *, is_fed: bool) -> str:
    from pocketgraph.graph.entry_points import unknown_node_hint

    return unknown_node_hint(graph, name, is_fed=is_fed)


def target_names(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """The nodes to run without fetching; ``name``, ``name:0`` and ``^name`` are the same node.

    Raises:
        RunError: some do not exist; all of them are named.
    """
    bare = [node_name(name) for name in names]
    missing = [name for name in bare if name not in graph.nodes]
    if missing:
        raise RunError(
            f"PruneForTargets: Some target nodes not found: {' '.join(missing)}",
            hint=did_you_mean(missing[0], graph.nodes),
        )
    return tuple(bare)


def feed_endpoints(graph: Graph, feeds: Iterable[Any]) -> dict[Endpoint, str]:
    """The tensor that each feed replaces, with the caller's own spelling.

    Raises:
        RunError: an unknown tensor, or the same one twice (``x`` and ``x:0``).
    """
    found: dict[Endpoint, str] = {}
    for key in feeds:
        text = spelled(key)
        endpoint = feed_endpoint(graph, text)
        if endpoint in found:
            raise RunError(f'Endpoint "{text}" fed more than once', hint=f"it is also fed as '{found[endpoint]}'")
        found[endpoint] = text
    return found
