"""What ``initializer_nodes`` would have done: constants that they assign to variables, tables that they fill."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import FreezeError, option
from pocketgraph.freezing.assignments import value_op
from pocketgraph.freezing.graph_variables import ASSIGNS, variable_behind
from pocketgraph.freezing.subgraph import output_nodes
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.order import reachable
from pocketgraph.pages.quantities import listed


def initial_values(
    graph: Graph, initializers: Sequence[str], of_loader: str | None, wanted: set[str], *, has_checkpoint: bool
) -> tuple[dict[str, Tensor], list[str]]:
    """The constant values that running ``initializers``, and what a SavedModel's loader runs, gives wanted variables,
    and a line where the loader computes others, in place of which those of the checkpoint are taken.

    Args:
        of_loader: the node that the loader runs after restoring, which then wins; None for none.
        has_checkpoint: there is one, with the values that the loader's node computes, as an export may have by mistake.

    Raises:
        FreezeError: an initializer is not in the graph, or computes a value that no checkpoint has.
    """
    given = [*initializers, *([of_loader] if of_loader is not None and not has_checkpoint else [])]
    values = refuse_computed(initialized(graph, given), wanted) if given else {}
    run = initialized(graph, [of_loader]) if of_loader is not None and has_checkpoint else {}
    run = {name: value for name, value in run.items() if name in wanted}
    computed = [name for name, value in run.items() if value is None and name not in values]
    lines = [
        f"after restoring, the loader of this SavedModel runs '{of_loader}', which computes other values of "
        f"{listed(computed, quoted=True)}, as an initializer given by mistake does; the stored values are taken"
    ]
    return values | {name: value for name, value in run.items() if value is not None}, lines if computed else []


def initialized(graph: Graph, initializers: Sequence[str]) -> dict[str, Tensor | None]:
    """The variables that running ``initializers`` changes: the value they then have, or None when it is not constant.

    Raises:
        FreezeError: an initializer is not in the graph.
    """
    found: dict[str, Tensor | None] = {}
    run = reachable(graph, output_nodes(graph, initializers), missing_ok=True)
    for node in graph:
        if node.name in run and value_op(node.op) is not None and len(node.data_inputs) >= 2:
            variable = variable_behind(graph, node.data_inputs[0])
            if variable is not None:
                value = graph.constant(node.data_inputs[1]) if node.op in ASSIGNS else None
                found[variable] = value if found.get(variable, value) is not None else None
    return found


def refuse_computed(values: dict[str, Tensor | None], wanted: set[str]) -> dict[str, Tensor]:
    """The constant values of the wanted variables.

    Raises:
        FreezeError: an initializer computes one of them, for example from random numbers.
    """
    computed = [name for name, value in values.items() if value is None and name in wanted]
    if computed:
        raise FreezeError(
            f"the initializer nodes compute the value of {listed(computed, quoted=True)}, in place of what was trained",
            hint=f"leave the variables' own initializer out of {option('initializer_nodes')}; the "
            "checkpoint has their values",
        )
    return {name: value for name, value in values.items() if value is not None and name in wanted}
