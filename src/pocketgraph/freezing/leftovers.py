"""What training left in a frozen graph that will not run or not do what it seems to."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import option
from pocketgraph.freezing.repair.augmentation import augmentations
from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.freezing.tables import unfilled_tables
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import REFERENCES
from pocketgraph.graph.order import reachable

_QUEUES = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue", "OneShotIterator", "Iterator")
"""Not a trait: what training's input pipelines leave behind."""
MOST_LISTED = 5


def leftovers(frozen: Graph, whole: Graph) -> list[str]:
    """One line a finding; an empty list when nothing stands out."""
    found = []
    constants = {node.name for node in frozen if node.op == "Const"}
    updates = changed_constants(frozen)
    if updates:
        found.append(
            f"{_listed(updates)} would change a variable that is now a constant, and TensorFlow will not load the "
            f"graph; drop it with {option('repair')}=updates, freeze the evaluation graph, or "
            "choose outputs that do not depend "
            "on training"
        )
    for name, function in frozen.functions.items():
        if name in whole.functions:
            continue
        inside = [node.name for node in function.nodes if is_update(node)]
        if inside:
            found.append(f"the function '{name}' would change a variable that is now a constant: {_listed(inside)}")
    references = [node.name for node in frozen if node.op in REFERENCES and node_name(node.inputs[0]) in constants]
    if references:
        found.append(
            f"{_listed(references)} wants a reference to a variable and now gets a constant; "
            f"{option('repair')}=references"
        )
    if not any(node.op.startswith("Placeholder") for node in whole):
        spoilt = sum(is_update(node) and whole.constant(node.data_inputs[0]) is not None for node in whole)
        if spoilt:
            found.append(
                f"this graph was frozen with its initializer as the output: it holds {spoilt} initial assignments to "
                "constants and no input, so nothing of the model; freeze the training graph again with the model's own "
                "output"
            )
    found.extend(unfilled_tables(frozen, whole))
    queues = [node.name for node in frozen if node.op.startswith(_QUEUES)]
    if queues:
        found.append(
            f"{_listed(queues)} still feeds the graph from training's input pipeline; feed the tensor behind it, or "
            f"put a placeholder there with {option('repair')}=inputs"
        )
    random = [one.scope for one in augmentations(frozen)]
    if random:
        found.append(
            f"{_listed(random)} {'changes' if len(random) == 1 else 'change'} the input by random numbers, as in "
            f"training, so that answers differ from run to run; {option('repair')}=augmentation takes that out"
        )
    return found


def changed_constants(frozen: Graph, outputs: Sequence[str] | None = None) -> list[str]:
    """The nodes that would change a variable that is now a constant; of those that ``outputs`` need, where given."""
    needed = None if outputs is None else reachable(frozen, outputs, missing_ok=True)
    constants = {node.name for node in frozen if node.op == "Const"}
    return [
        node.name
        for node in frozen
        if is_update(node) and updated_variable(frozen, node) in constants and (needed is None or node.name in needed)
    ]


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(f"'{name}'" for name in names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
