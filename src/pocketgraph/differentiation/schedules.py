"""Learning rates that change with the number of steps, as TensorFlow 1.15's tf.train has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.variable_nodes import (
    GLOBAL_STEP,
    add_variable,
    known_kind,
    value_of,
    with_initialization,
)
from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.graph.op_traits import VARIABLES

KINDS = ("constant", "exponential", "cosine", "piecewise")


def add_schedule(
    graph: Graph,
    kind: str,
    learning_rate: float | Sequence[float],
    *,
    decay_steps: int = 0,
    decay_rate: float = 0.0,
    staircase: bool = False,
    alpha: float = 0.0,
    boundaries: Sequence[int] = (),
    name: str = "learning_rate",
) -> Graph:
    """Adds a learning rate that ``minimize`` takes by its name, and the variable ``global_step`` that it depends on.

    >>> from pocketgraph.graph.text_format import parse
    >>> from pocketgraph.runtime import Session
    >>> graph = add_schedule(parse("x = Placeholder(dtype=float)"), "exponential", 0.5, decay_steps=10, decay_rate=0.1)
    >>> with Session(graph) as session:
    ...     _ = session.run(["init"])
    ...     session.run(["learning_rate"], {"global_step/read": 10})
    [array(0.05, dtype=float32)]

    Args:
        graph: a graph; of its variables ``global_step`` counts the steps, or is added.
        kind: ``constant``; ``exponential``: ``learning_rate * decay_rate ** (step / decay_steps)``; ``cosine``: half a
            wave down to ``alpha * learning_rate`` at ``decay_steps``; ``piecewise``: one rate up to and with each of
            the ``boundaries``, one behind the last.
        learning_rate: the rate at the beginning; for ``piecewise`` all of them, one more than boundaries.
        decay_steps: for ``exponential`` and ``cosine``.
        decay_rate: for ``exponential``.
        staircase: whether only whole multiples of ``decay_steps`` count, for ``exponential``.
        alpha: for ``cosine``: the share of the rate that stays.
        boundaries: for ``piecewise``: numbers of steps, increasing.
        name: of the tensor with the rate.

    Returns:
        The graph, with its outputs.

    Raises:
        GraphError: a kind or number that is none, a name that is taken, or a ``global_step`` that is no variable of
            whole numbers.
    """
    if kind not in KINDS:
        raise GraphError(f"there is no schedule '{kind}'", hint=f"there are {', '.join(KINDS)}")
    if name in graph:
        raise GraphError(f"the graph has a node '{name}' already", hint="give another name for the learning rate")
    rates = [float(rate) for rate in learning_rate] if isinstance(learning_rate, Sequence) else [float(learning_rate)]
    wanted = len(boundaries) + 1 if kind == "piecewise" else 1
    if len(rates) != wanted:
        raise GraphError(f"a {kind} schedule has {wanted} learning rates here, not {len(rates)}")
    if kind in ("exponential", "cosine") and decay_steps < 1:
        raise GraphError(f"a schedule of the kind {kind} needs decay_steps of 1 or more")
    if kind == "exponential" and decay_rate <= 0:
        raise GraphError("an exponential schedule needs a decay_rate above 0")
    if list(boundaries) != sorted(set(boundaries)):
        raise GraphError("the boundaries of a schedule increase")
    builder = GraphBuilder(graph)
    if kind == "constant":
        return builder.finished([builder.const(rates[0], FLOAT, name=name)])
    assigned, step = _global_step(builder)
    with builder.scope(f"{name}_schedule"):
        if kind == "piecewise":
            # How many boundaries lie before this step says which rate it has.
            passed = builder.add("Greater", step, builder.const(boundaries, builder.dtype(step)))
            index = builder.add("Sum", builder.add("Cast", passed, DstT=INT32), builder.const([0]))
            inputs = "GatherV2", builder.const(rates, FLOAT), index, builder.const(0)
        else:
            number = builder.add("Cast", step, DstT=FLOAT)
            steps = builder.const(decay_steps, FLOAT)
            if kind == "exponential":
                share = builder.add("RealDiv", number, steps)
                share = builder.add("Floor", share) if staircase else share
                factor = builder.add("Pow", builder.const(decay_rate, FLOAT), share)
            else:
                share = builder.add("RealDiv", builder.add("Minimum", number, steps), steps)
                wave = builder.add("Cos", builder.add("Mul", share, builder.const(math.pi, FLOAT)))
                height = builder.const(0.5 * (1 - alpha), FLOAT)
                half = builder.add("Mul", height, builder.add("Add", wave, builder.const(1, FLOAT)))
                factor = builder.add("Add", half, builder.const(alpha, FLOAT))
            inputs = "Mul", builder.const(rates[0], FLOAT), factor, ""
    rate = builder.add(*filter(None, inputs), name=name)
    result = builder.finished([rate, *assigned])
    return with_initialization(result, assigned) if assigned else result


def _global_step(builder: GraphBuilder) -> tuple[list[str], str]:
    """What initializes the counter of steps, where it is new, and its value."""
    counter = builder.graph.nodes.get(GLOBAL_STEP)
    if counter is not None:
        if counter.op not in VARIABLES or not counter.dtype("dtype").is_integer:
            raise GraphError("the node is no variable of whole numbers", where=f"node '{GLOBAL_STEP}'")
        return [], value_of(builder, counter)
    zero = builder.const(0, INT64, name=f"{GLOBAL_STEP}/initial_value")
    resource = known_kind(builder.graph)
    assigned = add_variable(builder, GLOBAL_STEP, zero, INT64, Shape(()), resource=resource)
    return [assigned], value_of(builder, builder.added[GLOBAL_STEP])
