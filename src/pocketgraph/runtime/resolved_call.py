"""Looks up the names of a session's call, and checks its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.feeding.feeds import FeedSpec, is_switch
from pocketgraph.runtime.planning.call_key import CallKey, ResolvedCall, Sized
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint, target_names


def resolve_call(
    graph: Graph,
    fetches: Sequence[str],
    feeds: Mapping[Any, Any],
    targets: Sequence[str],
    outputs: tuple[Endpoint, ...] | None = None,
    specs: Sequence[FeedSpec] | None = None,
) -> ResolvedCall:
    """A call with values; ``outputs`` are the fetches' tensors, and ``specs`` the feeds' in order, where they were
    looked up before.

    Raises:
        RunError: unknown or doubled names, values of the wrong type or shape.
    """
    if specs is None:
        specs = feed_specs(graph, feeds)
    if outputs is None:
        outputs = tuple(fetch_endpoint(graph, text) for text in fetches)
    nodes = target_names(graph, targets)
    values = [spec.array(value) for spec, value in zip(specs, feeds.values(), strict=True)]
    shapes: dict[Endpoint, Sized] = {
        spec.endpoint: (spec.dtype or DType.of_numpy(value.dtype), value.shape)
        for spec, value in zip(specs, values, strict=True)
    }
    switches = {str(s.endpoint): v for s, v in zip(specs, values, strict=True) if is_switch(v)}
    return ResolvedCall(CallKey.of(shapes, outputs, nodes, switches), switches, values)


def feed_specs(graph: Graph, names: Iterable[Any]) -> tuple[FeedSpec, ...]:
    """What each feed must look like, in order.

    Raises:
        RunError: an unknown tensor, or the same one twice.
    """
    return tuple([FeedSpec.of(graph, endpoint, label) for endpoint, label in feed_endpoints(graph, names).items()])


def resolve_call_by_shape(
    graph: Graph, fetches: Sequence[str], feeds: Mapping[Any, Any], targets: Sequence[str]
) -> ResolvedCall:
    """A call with arrays or with shapes (tuples of sizes) in their place.

    Raises:
        RunError: as ``resolve_call``.
    """
    shapes: dict[Endpoint, Sized] = {}
    switches: dict[str, Array] = {}
    for spec, value in zip(feed_specs(graph, feeds), feeds.values(), strict=True):
        if isinstance(value, (tuple, list, Shape)):
            shapes[spec.endpoint] = (spec.dtype, Shape(value).known)
        else:
            array = spec.array(value)
            shapes[spec.endpoint] = (spec.dtype, array.shape)
            if is_switch(array):
                switches[str(spec.endpoint)] = array
    outputs = tuple(fetch_endpoint(graph, text) for text in fetches)
    return ResolvedCall(CallKey.of(shapes, outputs, target_names(graph, targets), switches), switches, [])
