"""Sizes that are fed for a Reshape: whether they go with what is reshaped.

x [4, 6] ── Reshape([n, 4]) ── y [6, 4]      n is fed: 6, or -1

What knows the shapes of x and y need not read n. So it is looked at once for each n and each shape of x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Shape, canonical, node_name
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.kernels.shapes.infer import postorder
from pocketgraph.litert import cache
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.feeding.feeds import may_be_sizes

MOST_KEPT = 1024  # calls that were found right; more are forgotten
COMPUTES_SIZES = ops_with("moves", "passes", "repeatable") - ops_with("shape")


def reshapes_by(graph: Graph, fed: str, needed: Mapping[str, object]) -> list[str]:
    """The reshapes whose sizes are computed of the value of what is fed.

    Args:
        graph: the graph.
        fed: the tensor (``n:0``) that may say sizes.
        needed: the nodes that run.
    """
    found, waiting, seen = [], [node_name(fed)], set[str]()
    while waiting:
        source = waiting.pop()
        for reader in graph.consumers.get(source, ()):
            taken = [ref for ref in map(canonical, reader.data_inputs) if node_name(ref) == source]
            taken = [ref for ref in taken if source in seen or ref == fed]
            if not taken or reader.name not in needed:
                continue
            if reader.op == "Reshape" and canonical(reader.data_inputs[1]) in taken:
                found.append(reader.name)
            elif reader.op in COMPUTES_SIZES and reader.name not in seen:
                seen.add(reader.name)
                waiting.append(reader.name)
    return found


class NotedCalls:
    """Calls of the same names; the cache notes where they are fed no sizes, for who would read the graph to know.

    Args:
        key: what they fetch, feed and run besides.
        names: those of the feeds that may say sizes.
        digest: the model's; "" where nothing is kept.
        cache_dir: as for cache.directory.
    """

    def __init__(
        self, key: tuple[tuple[str, ...], ...], names: Sequence[str], digest: str, cache_dir: cache.Folder | None
    ) -> None:
        self._fetches, self._feeds, self._targets = key
        self._names = names
        self._folder = cache.directory(cache_dir) if digest else None
        self._entry = cache.entry_name(digest, f"no sizes among {names} of {key}")

    @property
    def have_no_sizes(self) -> bool:
        """Whether an earlier process noted that."""
        return self._folder is not None and cache.find(self._folder, self._entry) is not None

    def sizes(self, graph: Graph) -> FedSizes | None:
        """What checks the sizes that they are fed; None, which is noted, where there are none."""
        feeds = list(map(Endpoint.of, self._feeds))
        running = needed(graph, frozenset(feeds), [*map(Endpoint.of, self._fetches)], self._targets)
        found = {name: by for name in self._names if (by := reshapes_by(graph, name, running))}
        if not found and self._folder is not None:
            cache.store(self._folder, self._entry, [], {})
        return FedSizes(graph, feeds, found) if found else None


class FedSizes:
    """Checks the sizes that are fed to calls of the same names.

    Args:
        graph: the graph.
        feeds: what is fed, in order.
        reshapes: for each feed that says sizes, the names of the nodes that take them.
    """

    def __init__(self, graph: Graph, feeds: Sequence[Endpoint], reshapes: Mapping[str, Sequence[str]]) -> None:
        self._graph = graph
        self._feeds = {str(end): str(end) in reshapes for end in feeds}
        takers = [graph[name] for name in dict.fromkeys(chain(*reshapes.values()))]
        self._reshapes = {node.name: tuple(map(canonical, node.data_inputs[:2])) for node in takers}
        self._nodes = postorder(graph, chain(*self._reshapes.values()))
        self._inferred: Inferred | None = None
        self._right: set[tuple[object, ...]] = set()

    def check(self, values: Sequence[Any]) -> None:
        """
        Raises:
            RunError: TensorFlow refuses sizes; the node is named.
        """
        said = zip(self._feeds.values(), values, strict=True)
        key = tuple(
            [value.tobytes() if is_size and may_be_sizes(value) else np.shape(value) for is_size, value in said]
        )
        if key not in self._right:
            self._look_at(values)
            if len(self._right) >= MOST_KEPT:
                self._right.clear()
            self._right.add(key)

    def _look_at(self, values: Sequence[Any]) -> None:
        from pocketgraph.kernels.array.reshaping import reshape

        given = {name: np.asarray(value) for name, value in zip(self._feeds, values, strict=True)}
        known = {name: value for name, value in given.items() if self._feeds[name] and may_be_sizes(value)}
        feeds = {name: (DType.of_numpy(value.dtype), Shape(value.shape)) for name, value in given.items()}
        self._inferred = inferred = infer(self._graph, feeds, known, nodes=self._nodes, before=self._inferred)
        for name, (source, target) in self._reshapes.items():
            shape, sizes = inferred.shape(source), inferred.value(target)
            if sizes is None or not shape.is_known:
                continue  # whoever runs it, reads them
            elements: Array = np.broadcast_to(np.False_, shape.known)
            try:
                reshape(elements, sizes)
            except ValueError as error:
                dtype = inferred.dtype(source)
                tensor = f"{dtype.numpy if dtype else ''}{list(shape.known)}"
                said = f"Reshape({tensor}, {sizes.dtype}{list(sizes.shape)}) failed: {error}"
                raise RunError(said, where=f"node '{name}'") from error
