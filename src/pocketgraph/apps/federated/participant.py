"""What one client does, whoever carries the messages: takes the average, trains on its own data, gives variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.datasets.named_arrays import SampleSource, arrays_of
from pocketgraph.datasets.stored_arrays import SampleArray, whole
from pocketgraph.errors import GraphError, RunError, UsageError
from pocketgraph.freezing.graph_variables import variables
from pocketgraph.graph import Graph
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime import Session, train


@dataclass(frozen=True)
class LocalTraining:
    """How a client trains in a round.

    Attributes:
        epochs: times over its data.
        batch_size: samples a step; the last batch of an epoch may be smaller.
        seed: of the order of its samples, which differs in each round.
    """

    epochs: int = 1
    batch_size: int = 32
    seed: int = 0


def averaged_variables(graph: Graph) -> list[str]:
    """The variables that are averaged: those of floating numbers that the loss depends on, by name.

    What an optimizer keeps beside them stays with each client, as do counters.

    Raises:
        GraphError: the graph does not train.
    """
    needed = reachable(graph, [_loss(graph)])
    found = [one for name, one in variables(graph).items() if name in needed]
    kept = sorted(one.shared_name or one.name for one in found if one.dtype.is_floating)
    if not kept:
        raise GraphError("the loss depends on no variable", hint="see trainable")
    return kept


class Participant:
    """One client's session and data.

    Args:
        graph: a training graph: its outputs are a loss and the operation that trains, as of ``minimize``, or it has
            a signature ``train``.
        data: arrays by the names of the placeholders (or of the signature's inputs), samples along the first axis.
        how: how it trains in a round.

    Attributes:
        names: of the variables that it takes and gives, in order.
        samples: how many it has.

    Raises:
        GraphError: the graph does not train.
        UsageError: there are no samples, or not as many for each input.
    """

    def __init__(self, graph: Graph, data: SampleSource, how: LocalTraining = LocalTraining()) -> None:
        self.names = averaged_variables(graph)
        self._data = arrays_of(data)
        counts = {name: len(array) for name, array in self._data.items()}
        self.samples = min(counts.values(), default=0)
        if not self.samples or max(counts.values()) != self.samples:
            listed = ", ".join(f"{name or 'samples'}: {count}" for name, count in counts.items())
            raise UsageError(f"there are not as many samples for each input ({listed or 'none'})")
        self._how = how
        self._session = Session(graph)
        if "init" in graph:
            self._session.run([], targets=["init"])

    def values(self) -> list[Array]:
        """The variables as they are now, in the order of ``names``."""
        held = self._session.variables()
        missing = [name for name in self.names if name not in held]
        if missing:
            raise RunError(f"the variable '{missing[0]}' has no value", hint="the graph needs an operation 'init'")
        return [held[name] for name in self.names]

    def round(self, number: int, values: Sequence[Array]) -> tuple[list[Array], float]:
        """Takes the average and trains on it.

        Args:
            number: of the round; the order of the samples follows from it.
            values: of the variables, in the order of ``names``.

        Returns:
            the variables afterwards, and the mean loss of the steps.

        Raises:
            RunError: the loss is not finite, or the values do not fit.
        """
        self._session.assign(dict(zip(self.names, values, strict=True)))
        losses = train(self._session, self._batches(number))
        return self.values(), float(np.mean(losses))

    def close(self) -> None:
        """Frees the session."""
        self._session.close()

    def _batches(self, number: int) -> Iterator[Mapping[str, Array]]:
        rng = np.random.default_rng([self._how.seed, number])
        arrays: dict[str, SampleArray | Array] = {name: whole(array) for name, array in self._data.items()}
        for _ in range(self._how.epochs):
            order = rng.permutation(self.samples)
            for start in range(0, self.samples, self._how.batch_size):
                chosen = order[start : start + self._how.batch_size]
                yield {name: np.asarray(array)[chosen] for name, array in arrays.items()}


def first_values(graph: Graph) -> tuple[list[str], list[Array]]:
    """The names of the variables that are averaged, and their values after ``init``.

    Raises:
        GraphError: the graph does not train.
        RunError: a variable has no value.
    """
    names = averaged_variables(graph)
    with Session(graph) as session:
        if "init" in graph:
            session.run([], targets=["init"])
        held = session.variables()
    missing = [name for name in names if name not in held]
    if missing:
        raise RunError(f"the variable '{missing[0]}' has no value", hint="the graph needs an operation 'init'")
    return names, [held[name] for name in names]


def _loss(graph: Graph) -> str:
    signature = graph.signatures.get("train")
    if len(graph.outputs) == 2:
        return graph.outputs[0]
    if signature is not None and "loss" in signature.outputs:
        behind = graph.producer(signature.outputs["loss"])
        return behind.data_inputs[0] if behind.op == "Identity" else signature.outputs["loss"]
    raise GraphError("the graph does not train: it has no loss and operation that trains", hint="see minimize")
