"""Training on this machine: the steps of a training graph, batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.runtime.not_finite import first_not_finite, is_not_finite, where_of
from pocketgraph.runtime.session import Session

HINT = "look at the batch, or lower the learning rate"


def train(
    session: Session,
    batches: Iterable[Mapping[str, Any]],
    *,
    on_step: Callable[[int, float], bool | None] | None = None,
    first: int = 0,
) -> list[float]:
    """Makes a step for each batch.

    >>> import pocketgraph
    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[?,1])
    ...     w = Const(float [[0.0]])
    ...     y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    ... ''')
    >>> graph = pocketgraph.add_loss(pocketgraph.trainable(graph, "w"), "y", "mean_squared_error")
    >>> graph = pocketgraph.minimize(graph, graph.outputs[0], learning_rate=0.1)
    >>> with pocketgraph.Session(graph) as session:
    ...     _ = session.run(["init"])
    ...     losses = train(session, [{"x": [[1.0], [2.0]], "labels": [[3.0], [6.0]]}] * 20)
    ...     print(f"{losses[0]:.2f} {losses[-1]:.2f} {session.variables()['w'].item():.2f}")
    22.50 0.00 3.00

    Args:
        session: of a graph whose outputs are a loss and the operation that trains, as those of ``minimize``, or that
            has a signature ``train`` that gives a ``loss``. Its variables have values: ``init`` has run, or
            a checkpoint was restored.
        batches: for each step what the placeholders, or the signature's inputs, are fed, by name.
        on_step: told the step and its loss; True ends the training.
        first: the number of the first step, where training goes on.

    Returns:
        The loss of each step, from before the step.

    Raises:
        RunError: a loss is not finite; it says at which step, and the layer where that began. The variables are those
            of the step before.
    """
    loss, fetches, names = _step(session.graph)
    losses: list[float] = []
    for number, batch in enumerate(batches, first):
        feeds = {names.get(name, name): value for name, value in batch.items()}
        try:
            value = float(np.sum(session.run(fetches, feeds)[0]))
        except RunError as error:
            raise _explained(session, loss, feeds, number) or error from error
        if not np.isfinite(value):
            raise RunError(f"the loss is {value} at step {number}", hint=HINT)
        losses.append(value)
        if on_step is not None and on_step(number, value):
            break
    return losses


def _step(graph: Graph) -> tuple[str, list[str], dict[str, str]]:
    """The loss, what is fetched to make a step, and tensors by the names of inputs."""
    if len(graph.outputs) == 2 and graph.producer(graph.outputs[1]).op == "NoOp":
        return graph.outputs[0], list(graph.outputs), {}
    signature = graph.signatures.get("train")
    if signature is None or "loss" not in signature.outputs:
        raise RunError(
            "the outputs of the graph are not a loss and an operation that trains, and it has no signature 'train' "
            "with a loss", hint="see minimize",
        )  # fmt: skip
    stepped = graph.producer(signature.outputs["loss"])
    is_behind = stepped.op == "Identity" and bool(stepped.control_inputs)
    loss = stepped.data_inputs[0] if is_behind else signature.outputs["loss"]
    return loss, [signature.outputs["loss"]], dict(signature.inputs)


def _explained(session: Session, loss: str, batch: Mapping[str, Any], number: int) -> RunError | None:
    """Why a step failed, if because of numbers that are not finite."""
    try:
        value = session.run([loss], batch)[0]
    except RunError:
        return None
    if np.isfinite(value).all():
        return None
    said = f"the loss is {np.sum(value)} at step {number}"
    fed = [name for name, array in batch.items() if is_not_finite(np.asarray(array))]
    if fed:
        return RunError(f"{said}: the input '{fed[0]}' is not finite", hint="look at the batch")
    broken = [name for name, array in session.variables().items() if is_not_finite(array)]
    if broken:
        return RunError(f"{said}: the variable '{broken[0]}' is not finite since step {number - 1}", hint=HINT)
    node = first_not_finite(session, loss, batch)
    if node is None:
        return RunError(said, hint=HINT)
    return RunError(f"{said}; it began {where_of(session.graph, node)}", hint=HINT)
