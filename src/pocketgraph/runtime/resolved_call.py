"""Looks up the names of a session's call, and checks its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
) -> ResolvedCall:
    """A call with values; ``outputs`` are the fetches' tensors, where they were looked up before.

    Raises:
        RunError: unknown or doubled names, values of the wrong type or shape.
    """
    endpoints = feed_endpoints(graph, feeds)
    if outputs is None:
        outputs = tuple(fetch_endpoint(graph, text) for text in fetches)
    nodes = target_names(graph, targets)
    specs = [FeedSpec.of(graph, endpoint, label) for endpoint, label in endpoints.items()]
    values = [spec.array(value) for spec, value in zip(specs, feeds.values(), strict=True)]
    shapes: dict[Endpoint, Sized] = {
        spec.endpoint: (spec.dtype or DType.of_numpy(value.dtype), value.shape)
        for spec, value in zip(specs, values, strict=True)
    }
    switches = {str(s.endpoint): v for s, v in zip(specs, values, strict=True) if is_switch(v)}
    return ResolvedCall(CallKey.of(shapes, outputs, nodes, switches), switches, values)


def resolve_call_by_shape(
    graph: Graph, fetches: Sequence[str], feeds: Mapping[Any, Any], targets: Sequence[str]
) -> ResolvedCall:
    """A call with arrays or with shapes (tuples of sizes) in their place.

    Raises:
        RunError: as ``resolve_call``.
    """
    shapes: dict[Endpoint, Sized] = {}
    switches: dict[str, Array] = {}
    for (endpoint, label), value in zip(feed_endpoints(graph, feeds).items(), feeds.values(), strict=True):
        spec = FeedSpec.of(graph, endpoint, label)
        if isinstance(value, (tuple, list, Shape)):
            shapes[endpoint] = (spec.dtype, Shape(value).known)
        else:
            array = spec.array(value)
            shapes[endpoint] = (spec.dtype, array.shape)
            if is_switch(array):
                switches[str(endpoint)] = array
    outputs = tuple(fetch_endpoint(graph, text) for text in fetches)
    return ResolvedCall(CallKey.of(shapes, outputs, target_names(graph, targets), switches), switches, [])
