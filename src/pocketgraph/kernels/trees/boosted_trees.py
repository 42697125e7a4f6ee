"""Boosted trees: ensembles that estimators export, what they predict, and the buckets that their features fall into.

An ensemble arrives as a message of tensorflow/core/kernels/boosted_trees/boosted_trees.proto: TreeEnsemble { Tree trees
= 1, float tree_weights = 2, TreeMetadata tree_metadata = 3, GrowingMetadata growing_metadata = 4 }, Tree { Node nodes =
1 }, Node { Leaf leaf = 1, BucketizedSplit = 2, CategoricalSplit = 3 }, both splits { feature_id = 1, threshold or value
= 2, left_id = 3, right_id = 4, dimension_id = 5 }, Leaf { Vector vector = 1, float scalar = 3 }.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.protobuf.wire import payloads, signed

LEAF, BUCKETS, CATEGORY = 1, 2, 3  # the fields of Node
FEATURE, THRESHOLD, LEFT, RIGHT, DIMENSION = 1, 2, 3, 4, 5  # the fields of both splits
LEN = 2  # the wire type of messages and packed numbers
UNINITIALIZED = -1
MOST_AT_ONCE = 1 << 18  # pairs of an example and a tree


@dataclass
class Tree:
    """One tree's nodes, an entry each.

    Attributes:
        kinds: LEAF, BUCKETS or CATEGORY.
        splits: int (nodes, 6): the fields of a split, by their numbers.
        leaves: the numbers of a leaf; empty for splits.
        finalized: whether it is complete.
    """

    kinds: list[int] = field(default_factory=list)
    splits: list[list[int]] = field(default_factory=list)
    leaves: list[list[float]] = field(default_factory=list)
    finalized: bool = False


class _Forest(NamedTuple):
    """The nodes of all trees of an ensemble in one table; a leaf leads to itself.

    Attributes:
        roots: int64 (trees,): the first node of each tree.
        columns: int64 (nodes,): what a split looks at, a column of all features side by side.
        thresholds: int64 (nodes,): what it compares with.
        by_category: bool (nodes,): whether equal ones go left; else those not above it do.
        left, right: int64 (nodes,): where it leads.
        leaves: float32 (nodes, logits): what a leaf adds, times its tree's weight.
        deepest: how many splits there are at most on a way.
    """

    roots: Array
    columns: Array
    thresholds: Array
    by_category: Array
    left: Array
    right: Array
    leaves: Array
    deepest: int


@dataclass
class _Ensemble:
    """Trees with weights.

    Attributes:
        name: for errors.
        stamp: the number of the last change; UNINITIALIZED before the first.
        serialized: the message that it was made from.
        forests: the trees as tables, by the features' widths and the numbers of a leaf; made when first asked.
    """

    name: str
    stamp: int = UNINITIALIZED
    serialized: bytes = b""
    trees: list[Tree] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    attempted_layers: int = 0
    last_layer: tuple[int, int] = (0, 0)
    forests: dict[tuple[tuple[int, ...], int], _Forest] = field(default_factory=dict)

    def read(self, data: bytes) -> None:
        """Takes over the trees of a message.

        Raises:
            RunError: it is damaged.
        """
        self.trees, self.weights, self.serialized = [], [], data
        self.attempted_layers, self.last_layer, self.forests = 0, (0, 0), {}
        finalized: list[bool] = []
        try:
            for number, wire, payload in payloads(data):
                if number == 1:
                    self.trees.append(_tree(payload))
                elif number == 2:
                    self.weights += _floats(wire, payload)
                elif number == 3:
                    finalized.append(any(n == 3 and p for n, _, p in payloads(payload)))
                elif number == 4:
                    grown = {n: p for n, _, p in payloads(payload)}
                    self.attempted_layers = int(grown.get(2, 0))
                    self.last_layer = (int(grown.get(3, 0)), int(grown.get(4, 0)))
        except (TypeError, ValueError, struct.error) as error:
            raise RunError(f"Unable to parse tree ensemble '{self.name}': {error}") from error
        for tree, is_final in zip(self.trees, finalized, strict=False):
            tree.finalized = is_final
        if len(self.weights) != len(self.trees):
            raise RunError(f"the ensemble '{self.name}' has {len(self.trees)} trees and {len(self.weights)} weights")


def _floats(wire: int, payload: Any) -> list[float]:
    return [float(v) for v in np.frombuffer(payload, "<f4")] if wire == LEN else list(struct.unpack("<f", payload))


def _tree(data: bytes) -> Tree:
    tree = Tree()
    for number, _, payload in payloads(data):
        if number != 1:
            continue
        kind, split, leaf = 0, [0] * 6, []
        for place, _, inner in payloads(payload):
            if place == LEAF:
                kind, leaf = LEAF, leaf_numbers(inner)
            elif place in (BUCKETS, CATEGORY):
                kind = place
                for n, _, value in payloads(inner):
                    if 1 <= n <= DIMENSION:
                        split[n] = signed(value)
        if kind == 0:
            raise ValueError("a node is neither a leaf nor a split that is known")
        tree.kinds.append(kind)
        tree.splits.append(split)
        tree.leaves.append(leaf)
    _check(tree)
    return tree


def leaf_numbers(data: bytes) -> list[float]:
    """The numbers of a leaf's message."""
    scalar, vector = [0.0], None
    for number, wire, payload in payloads(data):
        if number == 1:
            vector = [value for n, w, p in payloads(payload) if n == 1 for value in _floats(w, p)]
        elif number == 3:
            scalar = _floats(wire, payload)
    return scalar if vector is None else vector


def _check(tree: Tree) -> None:
    """Children come after their parents, as they are grown, so that each way down ends.

    Raises:
        ValueError: they do not.
    """
    for place, (kind, split) in enumerate(zip(tree.kinds, tree.splits, strict=True)):
        children = () if kind == LEAF else (split[LEFT], split[RIGHT])
        if any(not place < child < len(tree.kinds) for child in children):
            raise ValueError(f"node {place} of {len(tree.kinds)} leads to {list(children)}")


@kernel("BoostedTreesEnsembleResourceHandleOp")
def boosted_trees_ensemble_resource_handle(*, context: Context, shared_name: str = "") -> Value:
    """The ensemble of this name, which lives as long as the session."""
    return context.shared("boosted trees", shared_name, _Ensemble)


@kernel("IsBoostedTreesEnsembleInitialized")
def is_boosted_trees_ensemble_initialized(tree_ensemble_handle: _Ensemble) -> Array:
    return np.asarray(tree_ensemble_handle.stamp != UNINITIALIZED)


@kernel("BoostedTreesCreateEnsemble")
def boosted_trees_create_ensemble(handle: _Ensemble, stamp_token: Array, serialized: Array) -> tuple[()]:
    """Fills an ensemble that is empty; one that is not stays as it is."""
    if handle.stamp == UNINITIALIZED:
        handle.read(serialized.item())
        handle.stamp = integer(stamp_token)
    return ()


@kernel("BoostedTreesDeserializeEnsemble")
def boosted_trees_deserialize_ensemble(handle: _Ensemble, stamp_token: Array, serialized: Array) -> tuple[()]:
    handle.read(serialized.item())
    handle.stamp = integer(stamp_token)
    return ()


@kernel("BoostedTreesSerializeEnsemble")
def boosted_trees_serialize_ensemble(handle: _Ensemble) -> tuple[Array, Array]:
    return np.array(handle.stamp, np.int64), np.array(handle.serialized, object)


@kernel("BoostedTreesGetEnsembleStates")
def boosted_trees_get_ensemble_states(handle: _Ensemble) -> tuple[Array, ...]:
    """(stamp, trees, finished trees, layers tried, first and last + 1 node of the last layer)."""
    finished = sum(tree.finalized for tree in handle.trees)
    counts = [np.array(n, np.int32) for n in (len(handle.trees), finished, handle.attempted_layers)]
    return np.array(handle.stamp, np.int64), *counts, np.array(handle.last_layer, np.int32)


@kernel("BoostedTreesPredict")
def boosted_trees_predict(handle: _Ensemble, *bucketized_features: Array, logits_dimension: int) -> Array:
    """float32 (examples, logits_dimension): the weighted sum of the leaves that each example comes to.

    Args:
        handle: the ensemble.
        bucketized_features: int32 (examples,) or (examples, dimensions) each.
        logits_dimension: how many numbers a leaf has.
    """
    if handle.stamp == UNINITIALIZED:
        raise RunError(f"the tree ensemble '{handle.name}' is not initialized", hint="restore the model's state first")
    columns = [f.reshape(f.shape[0], -1) for f in bucketized_features]
    count = columns[0].shape[0]
    if any(column.shape[0] != count for column in columns):
        raise RunError(f"features of unlike batches: {[list(f.shape) for f in bucketized_features]}")
    widths = tuple(column.shape[1] for column in columns)
    forest = handle.forests.get((widths, logits_dimension))
    if forest is None:
        forest = _forest(handle, widths, logits_dimension)
        handle.forests = {(widths, logits_dimension): forest}
    logits = np.zeros(reserve((count, logits_dimension), np.float32), np.float32)
    seen = np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]
    for start in range(0, count, max(1, MOST_AT_ONCE // max(1, forest.roots.size))):
        part = seen[start : start + max(1, MOST_AT_ONCE // max(1, forest.roots.size))]
        leaves = forest.leaves[_reached(forest, part)]
        if forest.roots.size:
            logits[start : start + len(part)] = np.add.accumulate(leaves, axis=1)[:, -1]
    return logits


def _forest(handle: _Ensemble, widths: Sequence[int], logits_dimension: int) -> _Forest:
    """The ensemble's trees in one table.

    Raises:
        RunError: they ask for features that there are not, or their leaves do not fit.
    """
    offsets = np.cumsum([0, *widths])
    kinds: list[int] = []
    ways: list[tuple[int, int, int, int]] = []
    leaves: list[Array] = []
    roots: list[int] = []
    deepest = 0
    for tree, weight in zip(handle.trees, handle.weights, strict=True):
        if not tree.kinds:
            continue
        first = len(kinds)
        roots.append(first)
        depths = [0] * len(tree.kinds)
        for place, (kind, split, leaf) in enumerate(zip(tree.kinds, tree.splits, tree.leaves, strict=True)):
            numbers = np.zeros(logits_dimension, np.float32)
            if kind == LEAF:
                if len(leaf) not in (1, logits_dimension):
                    raise RunError(f"a leaf has {len(leaf)} numbers where the logits have {logits_dimension}")
                numbers[: len(leaf)] = leaf
                ways.append((0, 0, first + place, first + place))
            else:
                feature, dimension = split[FEATURE], split[DIMENSION]
                if not (0 <= feature < len(widths) and 0 <= dimension < widths[feature]):
                    raise RunError(f"a tree asks for dimension {dimension} of feature {feature}")
                for child in (split[LEFT], split[RIGHT]):  # behind their parents, see _check
                    depths[child] = max(depths[child], depths[place] + 1)
                column = int(offsets[feature]) + dimension
                ways.append((column, split[THRESHOLD], first + split[LEFT], first + split[RIGHT]))
            leaves.append(np.float32(weight) * numbers)
        kinds += tree.kinds
        deepest = max(deepest, *depths)
    columns, thresholds, left, right = np.array(ways, np.int64).reshape(-1, 4).T.copy()
    return _Forest(
        np.array(roots, np.int64), columns, thresholds, np.array(kinds) == CATEGORY, left, right,
        np.array(leaves, np.float32).reshape(-1, logits_dimension), deepest,
    )  # fmt: skip


def _reached(forest: _Forest, seen: Array) -> Array:
    """int64 (examples, trees): the leaves that the examples come to."""
    nodes = np.broadcast_to(forest.roots, (seen.shape[0], forest.roots.size))
    if forest.roots.size == 0:
        return nodes
    rows = np.arange(seen.shape[0])[:, np.newaxis]
    for _ in range(forest.deepest):
        values, thresholds = seen[rows, forest.columns[nodes]], forest.thresholds[nodes]
        left = np.where(forest.by_category[nodes], values == thresholds, values <= thresholds)
        nodes = np.where(left, forest.left[nodes], forest.right[nodes])
    return nodes


@kernel("BoostedTreesBucketize")
def boosted_trees_bucketize(*values: Array, num_features: int) -> tuple[Array, ...]:
    """For each feature int32 the number of its first boundary that is not below the value; the last one's beyond it."""
    floats, boundaries = values[:num_features], values[num_features:]
    found = []
    for value, limits in zip(floats, boundaries, strict=True):
        if limits.ndim != 1 or not limits.size:
            raise RunError(f"bucket boundaries of shape {list(limits.shape)}")
        place = np.searchsorted(limits, value, side="left")
        found.append(np.minimum(place, limits.size - 1).astype(np.int32))
    return tuple(found)


@dataclass
class _Quantiles:
    """The boundaries of each feature's buckets."""

    name: str
    boundaries: list[Array] | None = None


@kernel("BoostedTreesQuantileStreamResourceHandleOp")
def boosted_trees_quantile_stream_resource_handle(*, context: Context, shared_name: str = "") -> Value:
    return context.shared("boosted trees' quantiles", shared_name, _Quantiles)


kernel("IsBoostedTreesQuantileStreamResourceInitialized")(lambda handle: np.asarray(handle.boundaries is not None))


@kernel("BoostedTreesCreateQuantileStreamResource")
def boosted_trees_create_quantile_stream_resource(handle: _Quantiles, epsilon: Array, num_streams: Array) -> tuple[()]:
    if handle.boundaries is None:
        (streams,) = reserve((integer(num_streams),), np.float64)
        handle.boundaries = [np.empty(0, np.float32) for _ in range(streams)]
    return ()


@kernel("BoostedTreesQuantileStreamResourceDeserialize")
def boosted_trees_quantile_stream_resource_deserialize(handle: _Quantiles, *bucket_boundaries: Array) -> tuple[()]:
    handle.boundaries = [np.array(b) for b in bucket_boundaries]
    return ()


@kernel("BoostedTreesQuantileStreamResourceGetBucketBoundaries")
def boosted_trees_quantile_stream_resource_get_bucket_boundaries(
    handle: _Quantiles, *, num_features: int
) -> tuple[Array, ...]:
    if handle.boundaries is None or len(handle.boundaries) != num_features:
        raise RunError(f"the boundaries of '{handle.name}' are not initialized for {num_features} features")
    return tuple(handle.boundaries)
