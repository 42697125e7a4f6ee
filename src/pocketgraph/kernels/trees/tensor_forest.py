"""What a tree of a TensorForest predicts: splits of float features, leaves of numbers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.text.strings import scalar_string
from pocketgraph.kernels.trees.boosted_trees import leaf_numbers
from pocketgraph.protobuf.wire import payloads, signed

LEAF, SPLIT = 1, 4
"""The fields of a node (tensorflow/core/kernels/boosted_trees/boosted_trees.proto)."""
FEATURE, THRESHOLD, LEFT, RIGHT = 1, 2, 3, 4


@dataclass
class _ForestTree:
    """One tree.

    Attributes:
        serialized: the message it was made from; None before.
        features, left, right: int64 (nodes,): what a split looks at and where it leads; a leaf leads to itself.
        thresholds: float32 (nodes,): what is not above goes left.
        leaves: the numbers of each node, none of a split.
    """

    serialized: bytes | None = None
    features: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    left: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    right: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    thresholds: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    leaves: list[list[float]] = field(default_factory=list)

    def read(self, data: bytes) -> None:
        """Takes over the nodes of a message.

        Raises:
            RunError: it is damaged, or a way down would not end.
        """
        rows: list[tuple[int, float, int, int]] = []
        leaves: list[list[float]] = []
        try:
            for number, _, payload in payloads(data):
                if number == 1:
                    row, leaf = _node(payload, len(rows))
                    rows.append(row)
                    leaves.append(leaf)
        except (TypeError, ValueError, struct.error) as error:
            raise RunError(f"Unable to parse tree config: {error}") from error
        for place, (_, _, left, right) in enumerate(rows):
            if (left, right) != (place, place) and not (place < left < len(rows) and place < right < len(rows)):
                raise RunError(f"node {place} of {len(rows)} leads to {left} and {right}")
        self.features, self.left, self.right = (
            np.array([row[column] for row in rows], np.int64) for column in (0, 2, 3)
        )
        self.thresholds = np.array([row[1] for row in rows], np.float32)
        self.leaves, self.serialized = leaves, data


def _node(data: bytes, place: int) -> tuple[tuple[int, float, int, int], list[float]]:
    """((feature, threshold, left, right), numbers of a leaf)."""
    for number, _, inner in payloads(data):
        if number == LEAF:
            return (0, 0.0, place, place), leaf_numbers(inner)
        if number == SPLIT:
            found = {n: payload for n, _, payload in payloads(inner)}
            threshold = struct.unpack("<f", found[THRESHOLD])[0] if THRESHOLD in found else 0.0
            feature, left, right = (signed(found.get(n, 0)) for n in (FEATURE, LEFT, RIGHT))
            return (feature, threshold, left, right), []
    raise ValueError("a node is neither a leaf nor a split of floats")


@kernel("TensorForestTreeResourceHandleOp")
def tensor_forest_tree_resource_handle(*, context: Context, shared_name: str = "") -> Value:
    """The tree of this name, which lives as long as the session."""
    return context.shared("forest tree", shared_name, lambda name: _ForestTree())


kernel("TensorForestTreeIsInitializedOp")(lambda tree_handle: np.array(tree_handle.serialized is not None))


@kernel("TensorForestCreateTreeVariable", "TensorForestTreeDeserialize")
def tensor_forest_create_tree_variable(tree_handle: _ForestTree, tree_config: Array) -> tuple[()]:
    tree_handle.read(scalar_string(tree_config))
    return ()


kernel("TensorForestTreeSerialize")(lambda tree_handle: strings([tree_handle.serialized or b""], ()))


@kernel("TensorForestTreeSize")
def tensor_forest_tree_size(tree_handle: _ForestTree) -> Array:
    """int32: how many nodes the tree has."""
    return np.array(len(tree_handle.leaves), np.int32)


@kernel("TensorForestTreePredict")
def tensor_forest_tree_predict(tree_handle: _ForestTree, dense_features: Array, *, logits_dimension: int) -> Array:
    """float32 (rows, logits_dimension): the first numbers of the leaf that each row of features comes to; zeros when
    the tree has no nodes.

    Raises:
        RunError: the features are no matrix or too few, or a leaf has fewer numbers.
    """
    tree = tree_handle
    if dense_features.ndim != 2 or logits_dimension < 0:
        raise RunError(f"features of shape {list(dense_features.shape)} for {logits_dimension} logits")
    rows = len(dense_features)
    found = np.zeros(reserve((rows, logits_dimension), np.float32), np.float32)
    if not tree.leaves or not rows:
        return found
    splits = tree.left != np.arange(len(tree.left))
    used = tree.features[splits]
    if used.size and not 0 <= used.min() <= used.max() < dense_features.shape[1]:
        raise RunError(f"the tree looks at the feature {int(used.max())}, there are {dense_features.shape[1]}")
    short = [len(leaf) for leaf, is_split in zip(tree.leaves, splits, strict=True) if not is_split]
    if min(short, default=logits_dimension) < logits_dimension:
        raise RunError(f"a leaf has {min(short)} numbers, {logits_dimension} are wanted")
    places = np.zeros(rows, np.int64)
    going = np.flatnonzero(splits[places])
    while going.size:
        here = places[going]
        goes_left = dense_features[going, tree.features[here]] <= tree.thresholds[here]
        places[going] = np.where(goes_left, tree.left[here], tree.right[here])
        going = going[splits[places[going]]]
    numbers = np.zeros((len(tree.leaves), logits_dimension), np.float32)
    for number, leaf in enumerate(tree.leaves):
        numbers[number, : min(len(leaf), logits_dimension)] = leaf[:logits_dimension]
    found[:] = numbers[places]
    return found
