"""What tensors of a model are for each of some texts, in as few runs as can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.order import inside_loops, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.text_preprocessing import Sample

FEW_RUNS = 3  # of the texts, each for the tensors that are asked for
AHEAD = 8  # tensors: behind those, that later runs are for as well, as they may be asked for next


def probed(
    graph: Graph, taken: tuple[ModelInput, ...], tensors: Sequence[str], texts: Sequence[Sample],
    kept: Callable[[Array], Array] = np.asarray,
) -> list[list[Array]]:  # fmt: skip
    """What tensors are for each text, or what is ``kept`` of that.

    Raises:
        RunError: one of them cannot be had.
    """
    from pocketgraph.runtime import Session

    with Session(graph) as session:
        rows = [
            [*map(kept, session.run(list(tensors), {item.name: one for item, one in zip(taken, sample, strict=True)}))]
            for sample in texts
        ]
    return [[row[at] for row in rows] for at in range(len(tensors))]


def probed_where_possible(
    graph: Graph, taken: tuple[ModelInput, ...], tensors: Sequence[str], texts: Sequence[Sample]
) -> dict[str, list[Array]]:
    """What tensors are for each text, without those that cannot be had, as they are inside of a loop."""
    if not tensors:
        return {}
    with suppress(RunError):
        return dict(zip(tensors, probed(graph, taken, tensors, texts), strict=True))
    found = {}
    for name in tensors:
        with suppress(RunError):
            found[name] = probed(graph, taken, [name], texts)[0]
    return found


class TensorSizes:
    """The types and shapes of tensors for each text."""

    def __init__(
        self, graph: Graph, taken: tuple[ModelInput, ...], texts: Sequence[Sample], needed: Collection[str],
        dependent: Collection[str],
    ) -> None:  # fmt: skip
        self.graph, self.taken, self.texts = graph, taken, texts
        self.needed, self.dependent = needed, dependent
        self._known: dict[str, list[Array]] = {}
        self._runs = 0

    def of(self, tensors: Sequence[str]) -> list[list[Array]]:
        """For each tensor, an array of its type and shape for each text; nothing is known of the elements.

        Raises:
            RunError: one of them cannot be had.
        """
        missing = [name for name in tensors if name not in self._known]
        if missing:
            self._runs += 1
            ahead = self._fetchable() if self._runs > FEW_RUNS else ()
            more = [name for name in ahead if name not in self._known and name not in missing][:AHEAD]
            with suppress(RunError):  # where a branch is not taken, say
                self._note([*missing, *more])
        if any(name not in self._known for name in missing):
            self._note(missing)
        return [self._known[name] for name in tensors]

    def _note(self, tensors: Sequence[str]) -> None:
        found = probed(self.graph, self.taken, tensors, self.texts, _size_alone)
        self._known.update(zip(tensors, found, strict=True))

    def _fetchable(self) -> list[str]:
        """The tensors that depend on texts and that nodes outside of loops take, in the order of making."""
        inferred, hidden = infer(self.graph), inside_loops(self.graph)
        nodes = [node for node in topological(self.graph, partial=True) if node.name in self.needed]
        refs = dict.fromkeys(canonical(ref) for node in nodes for ref in node.data_inputs)
        types = {
            ref: inferred.dtype(ref)
            for ref in refs
            if node_name(ref) in self.dependent and node_name(ref) not in hidden
        }
        return [ref for ref, dtype in types.items() if dtype is not None and dtype.base not in (RESOURCE, VARIANT)]


def _size_alone(array: Array) -> Array:
    """An array of this type and shape that holds no elements."""
    found: Array = np.broadcast_to(np.empty((), array.dtype), array.shape)
    return found
