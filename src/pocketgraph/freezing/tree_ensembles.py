"""Puts boosted trees out of a checkpoint into a frozen graph, where they are no variables but a resource's contents."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import FreezeError
from pocketgraph.freezing.savers import restored_key
from pocketgraph.freezing.table_contents import Contents, with_contents
from pocketgraph.graph import Graph, Node, Tensor, const, node_name

ENSEMBLE, PREDICT = "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict"
CREATE, RESTORE = "BoostedTreesCreateEnsemble", "BoostedTreesDeserializeEnsemble"


def with_tree_ensembles(frozen: Graph, whole: Graph, store: Mapping[str, Tensor] | None) -> Graph:
    """The frozen graph with the contents of its ensembles, which every use of one waits for.

    ::

        trees = BoostedTreesEnsemble…()        trees = BoostedTreesEnsemble…()
        y = BoostedTreesPredict(trees, x)      create = BoostedTreesCreateEnsemble(trees, stamp, serialized)
                                               y = BoostedTreesPredict(trees, x, ^create)

    Args:
        frozen: what was frozen.
        whole: what it was frozen from, with its saver.
        store: the checkpoint's tensors.

    Raises:
        FreezeError: trees are used that no checkpoint has.
    """
    for handle in [node for node in frozen if node.op == ENSEMBLE]:
        users = frozen.consumers.get(handle.name, ())
        if not any(node.op == PREDICT for node in users) or any(node.op in (CREATE, RESTORE) for node in users):
            continue
        frozen = with_contents(frozen, handle, _contents(whole, handle, store))
    return frozen


def _contents(whole: Graph, handle: Node, store: Mapping[str, Tensor] | None) -> Contents:
    for node in whole.consumers.get(handle.name, ()):
        if node.op != RESTORE or node_name(node.data_inputs[0]) != handle.name:
            continue
        keys = [restored_key(whole, ref) for ref in node.data_inputs[1:]]
        values = [store.get(key) if store is not None and key is not None else None for key in keys]
        named = zip(("stamp", "serialized"), values, strict=True)
        needs = [const(f"{handle.name}/{name}", value) for name, value in named if value is not None]
        if len(needs) == len(values):
            inputs = [handle.name, *(each.name for each in needs)]
            return Contents(Node(f"{handle.name}/create", CREATE, inputs, {}), tuple(needs))
    raise FreezeError(
        f"the trees of '{handle.name}' are in no checkpoint that was given", where=f"node '{handle.name}'",
        hint="give the directory of the SavedModel, or of the training",
    )  # fmt: skip
