"""Puts boosted trees out of a checkpoint into a frozen graph: they, and the boundaries of the buckets that features are
sorted into, are no variables but contents of resources."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import FreezeError
from pocketgraph.freezing.savers import restored_key
from pocketgraph.freezing.stored_tables import ResourceContents
from pocketgraph.freezing.table_contents import with_contents
from pocketgraph.graph import Graph, Node, Tensor, canonical, const, node_name

ENSEMBLE, PREDICT = "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict"
CREATE, RESTORE = "BoostedTreesCreateEnsemble", "BoostedTreesDeserializeEnsemble"
BOUNDARIES = "BoostedTreesQuantileStreamResourceGetBucketBoundaries"
RESTORE_BOUNDARIES = "BoostedTreesQuantileStreamResourceDeserialize"


def with_tree_ensembles(frozen: Graph, whole: Graph, store: Mapping[str, Tensor] | None) -> Graph:
    """The frozen graph with the contents of its ensembles, which every use of one waits for, and with constants for
    the boundaries of buckets.

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
    frozen = _with_boundaries(frozen, whole, store)
    for handle in [node for node in frozen if node.op == ENSEMBLE]:
        users = frozen.consumers.get(handle.name, ())
        if not any(node.op == PREDICT for node in users) or any(node.op in (CREATE, RESTORE) for node in users):
            continue
        values = _restored(whole, handle, RESTORE, store)
        if len(values) != 2:
            raise FreezeError(
                f"the trees of '{handle.name}' are in no checkpoint that was given", where=f"node '{handle.name}'",
                hint="give the directory of the SavedModel, or of the training",
            )  # fmt: skip
        needs = [
            const(f"{handle.name}/{name}", value) for name, value in zip(("stamp", "serialized"), values, strict=True)
        ]
        create = Node(f"{handle.name}/create", CREATE, [handle.name, *(each.name for each in needs)], {})
        frozen = with_contents(frozen, handle, ResourceContents(create, tuple(needs)))
    return frozen


def _with_boundaries(frozen: Graph, whole: Graph, store: Mapping[str, Tensor] | None) -> Graph:
    """The graph with constants for what is read out of streams of quantiles that the checkpoint has."""
    new: dict[str, list[Node]] = {}
    renamed: dict[str, str] = {}
    for node in frozen:
        stream = whole.find_producer(node.data_inputs[0]) if node.op == BOUNDARIES else None
        values = [] if stream is None else _restored(whole, stream, RESTORE_BOUNDARIES, store)
        if values:
            names = [node.name, *(f"{node.name}/{port}" for port in range(1, len(values)))]
            new[node.name] = [const(name, value) for name, value in zip(names, values, strict=True)]
            renamed |= {canonical(f"{node.name}:{port}"): name for port, name in enumerate(names)}
    if not new:
        return frozen

    def redirected(node: Node) -> Node:
        inputs = [ref if ref.startswith("^") else renamed.get(canonical(ref), ref) for ref in node.inputs]
        return node.replace(inputs=inputs) if inputs != list(node.inputs) else node

    nodes = [redirected(each) for node in frozen for each in new.get(node.name, [node])]
    return frozen.replace(nodes)


def _restored(whole: Graph, handle: Node, restore: str, store: Mapping[str, Tensor] | None) -> list[Tensor]:
    """What the graph's saver puts into a resource; nothing where the checkpoint has not all of it."""
    for node in whole.consumers.get(handle.name, ()):
        if node.op == restore and store is not None and node_name(node.data_inputs[0]) == handle.name:
            keys = [restored_key(whole, ref) for ref in node.data_inputs[1:]]
            values = [store.get(key) for key in keys if key is not None]
            found = [value for value in values if value is not None]
            return found if len(found) == len(keys) else []
    return []
