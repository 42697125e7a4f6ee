"""What training left in a frozen graph that will not run or not do what it seems to."""

from __future__ import annotations

from pocketgraph.graph import Graph, node_name

_REF_OPS = frozenset({"RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefIdentity", "RefNextIteration", "RefSelect"})
_UPDATES = ("Assign", "Scatter", "Apply", "ResourceApply", "ResourceScatter", "SparseApply", "ResourceSparseApply")
_TABLE_FILLERS = ("InitializeTable", "LookupTableImport")
_TABLES = frozenset({"HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2"})
_QUEUES = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue", "OneShotIterator", "Iterator")
MOST_LISTED = 5


def leftovers(frozen: Graph, whole: Graph) -> list[str]:
    """One line a finding; an empty list when nothing stands out.

    Args:
        frozen: the result of freezing.
        whole: the graph that was frozen.
    """
    found = []
    constants = {node.name for node in frozen if node.op == "Const"}
    updates = [
        node.name
        for node in frozen
        if node.op.startswith(_UPDATES) and node.data_inputs and node_name(node.data_inputs[0]) in constants
    ]
    if updates:
        found.append(
            f"{_listed(updates)} would change a variable that is now a constant, and TensorFlow will not load the "
            "graph; freeze the evaluation graph, or choose outputs that do not depend on training"
        )
    for name, function in frozen.functions.items():
        if name in whole.functions:
            continue
        inside = [node.name for node in function.nodes if node.op.startswith(_UPDATES)]
        if inside:
            found.append(f"the function '{name}' would change a variable that is now a constant: {_listed(inside)}")
    references = [node.name for node in frozen if node.op in _REF_OPS and node_name(node.inputs[0]) in constants]
    if references:
        found.append(f"{_listed(references)} wants a reference to a variable and now gets a constant")
    found.extend(_unfilled_tables(frozen, whole))
    queues = [node.name for node in frozen if node.op.startswith(_QUEUES)]
    if queues:
        found.append(
            f"{_listed(queues)} still feeds the graph from training's input pipeline; feed the tensor behind it"
        )
    return found


def _unfilled_tables(frozen: Graph, whole: Graph) -> list[str]:
    tables = [node.name for node in frozen if node.op in _TABLES]
    found = []
    for table in tables:
        fillers = [node.name for node in whole.consumers.get(table, ()) if node.op.startswith(_TABLE_FILLERS)]
        if fillers and not any(name in frozen for name in fillers):
            found.append(
                f"the lookup table '{table}' stays empty: '{fillers[0]}' fills it and is not in the frozen graph; "
                f"add it to the output node names and run it once after loading"
            )
    return found


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(f"'{name}'" for name in names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
