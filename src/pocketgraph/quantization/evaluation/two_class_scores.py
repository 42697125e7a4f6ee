"""One score for the second of two classes, a share or a logit, as the shares of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from pocketgraph.datasets.class_labels import are_logits, shares_of_two
from pocketgraph.datasets.class_scores import gives_actions, may_give_logits, says_scores
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_shares
from pocketgraph.quantization.evaluation.runnable_models import GraphModel, LiteRTModel, RunnableModel


def as_shares(
    rows: Iterable[dict[str, Array]],
    models: Sequence[RunnableModel],
    right: Callable[[], Sequence[int] | None],
    *,
    is_said: bool,
) -> tuple[Iterable[dict[str, Array]], bool]:
    """The answers as shares of two classes where the first model gives one score for the second, and whether it does.

    Args:
        rows: the answers for each sample, by the places of the models, ``"0"`` for the first.
        right: gives the index of each sample's class; None where nothing tells. Asked for single scores only.
        is_said: whether labels say that the score is of two classes; else it is a share, or the only output's logit.
    """
    waiting = iter(rows)
    first = next(waiting)
    if first["0"].size != 1 or first["0"].dtype.kind != "f":
        return chain([first], waiting), False
    found = [first, *waiting]
    scores = np.concatenate([row["0"].reshape(-1) for row in found])
    may_be = any(_may_give_logits(model, is_said=is_said) for model in models)
    if not (is_said or may_be or are_shares(scores, rounding=0)):
        return found, False
    is_logit = are_logits(scores, right() or (), may_be=may_be)
    for row in found:
        for key in map(str, range(len(models))):
            if row[key].size == 1:
                row[key] = shares_of_two(row[key], is_logit=is_logit)
    return found, True


def gives_scores(model: RunnableModel) -> bool:
    """Whether the last op or the name of a model's first output says that it gives scores of classes."""
    return _is_said(says_scores, model)


def tells_no_classes(model: RunnableModel) -> bool:
    """Whether a model's first output, of samples whose classes nobody tells, is to be compared as numbers."""
    return _is_said(gives_actions, model)


def _is_said(says: Callable[[Graph, str], bool], model: RunnableModel) -> bool:
    if isinstance(model, GraphModel):
        return says(model.graph, model.outputs[0])
    graph = model.as_graph() if isinstance(model, LiteRTModel) else None
    return graph is not None and bool(graph.outputs) and says(graph, graph.outputs[0])


def _may_give_logits(model: RunnableModel, *, is_said: bool) -> bool:
    if isinstance(model, LiteRTModel):
        graph = model.as_graph()
        return len(graph.outputs) == 1 and may_give_logits(graph, graph.outputs[0])
    if not isinstance(model, GraphModel):
        return False
    return (is_said or len(model.outputs) == 1) and may_give_logits(model.graph, model.outputs[0])
