"""Values that hold other values: optionals, maps from tensor to tensor, ragged and composite tensors in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, nothing
from pocketgraph.kernels.registry import Value, kernel


@dataclass(frozen=True, eq=False)
class _Optional:
    """Components, or None for none."""

    components: tuple[Value, ...] | None

    def zeros(self, of: Callable[[Value], Value]) -> _Optional:
        """The optional of zeros like the components."""
        return _Optional(None if self.components is None else tuple(map(of, self.components)))

    def plus(self, other: Any, add: Callable[[Value, Value], Value]) -> _Optional:
        """The optional of the sums of this one's components and another's.

        Raises:
            RunError: the other is no optional with as many components, or only one of the two has a value.
        """
        theirs = other.components if isinstance(other, _Optional) else None
        if (self.components is None) != (theirs is None):
            raise RunError("Cannot add optionals because one has a value and the other doesn't.")
        if self.components is None or theirs is None:
            return self
        if len(self.components) != len(theirs):
            raise RunError("Cannot add optionals because they have different numbers of components.")
        return _Optional(tuple(map(add, self.components, theirs)))


kernel("OptionalFromValue")(lambda *components: _Optional(components))
kernel("OptionalNone")(lambda: _Optional(None))
kernel("OptionalHasValue")(lambda optional: np.array(optional.components is not None))


@kernel("OptionalGetValue")
def optional_get_value(optional: _Optional, *, output_types: Sequence[DType]) -> tuple[Value, ...]:
    if optional.components is None:
        raise RunError("The given optional does not have a value.")
    if len(optional.components) != len(output_types):
        raise RunError(f"The given optional has {len(optional.components)} components, expected {len(output_types)}.")
    return optional.components


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A map from tensor to tensor; it does not change.

    Attributes:
        entries: (key, value) by what tells keys apart.
    """

    entries: dict[tuple[object, ...], tuple[Array, Value]]

    def zeros(self, of: Callable[[Value], Value]) -> TensorMap:
        """A map without entries, which is what TensorFlow has for zeros like a map."""
        return TensorMap({})

    def plus(self, other: Any, add: Callable[[Value, Value], Value]) -> TensorMap:
        """The map of all keys of both, with the sums of values of the same key.

        Raises:
            RunError: the other is no map.
        """
        if not isinstance(other, TensorMap):
            raise RunError("Trying to add a map and something else.")
        merged = {**self.entries, **other.entries}
        for tag in self.entries.keys() & other.entries.keys():
            merged[tag] = self.entries[tag][0], add(self.entries[tag][1], other.entries[tag][1])
        return TensorMap(merged)


def _tag(key: Array) -> tuple[object, ...]:
    return (key.dtype.str, key.shape, tuple(key.ravel().tolist()) if key.dtype.kind == "O" else key.tobytes())


kernel("EmptyTensorMap")(lambda: TensorMap({}))
kernel("TensorMapInsert")(lambda input_handle, key, value: TensorMap({**input_handle.entries, _tag(key): (key, value)}))


@kernel("TensorMapErase")
def tensor_map_erase(input_handle: TensorMap, key: Array) -> TensorMap:
    tag = _tag(key)
    if tag not in input_handle.entries:
        raise RunError("Trying to erase non-existent item.")
    return TensorMap({other: entry for other, entry in input_handle.entries.items() if other != tag})


kernel("TensorMapHasKey")(lambda input_handle, key: np.array(_tag(key) in input_handle.entries))


@kernel("TensorMapLookup")
def tensor_map_lookup(input_handle: TensorMap, key: Array) -> Value:
    found = input_handle.entries.get(_tag(key))
    if found is None:
        raise RunError("Trying to lookup non-existent key.")
    return found[1]


kernel("TensorMapSize")(lambda input_handle: np.array(len(input_handle.entries), np.int32))


@kernel("TensorMapStackKeys")
def tensor_map_stack_keys(input_handle: TensorMap) -> Array:
    """The keys, stacked; in no order that anybody may count on."""
    keys = [key for key, _ in input_handle.entries.values()]
    if not keys:
        raise RunError("TensorMapStackKeys cannot be called on empty map.")
    return np.stack(keys)


@dataclass(frozen=True, eq=False)
class _Composite:
    """The tensors that make up one composite tensor."""

    components: tuple[Value, ...]
    metadata: str | bytes


@kernel("CompositeTensorVariantFromComponents")
def composite_from_components(*components: Value, metadata: str | bytes) -> _Composite:
    return _Composite(components, metadata)


@kernel("CompositeTensorVariantToComponents")
def composite_to_components(encoded: _Composite, *, Tcomponents: Sequence[DType]) -> tuple[Value, ...]:
    if len(encoded.components) != len(Tcomponents):
        raise RunError(f"Encoded value has {len(encoded.components)} tensor components; expected {len(Tcomponents)}.")
    return encoded.components


@dataclass(frozen=True, eq=False)
class Ragged:
    """A ragged tensor in one piece.

    Attributes:
        splits: where rows end, from the outermost axis inwards.
        values: the flat values.
    """

    splits: tuple[Array, ...]
    values: Array

    def zeros(self, of: Callable[[Value], Value]) -> Ragged:
        """The same rows of zeros."""
        return Ragged(self.splits, of(self.values))

    def plus(self, other: Any, add: Callable[[Value, Value], Value]) -> Ragged:
        """The rows of the sums of this one's values and another's.

        Raises:
            RunError: the other's rows are others.
        """
        theirs = other.splits if isinstance(other, Ragged) else None
        if theirs is None or len(theirs) != len(self.splits) or not all(map(np.array_equal, self.splits, theirs)):
            raise RunError("Can't add RaggedTensorVariants whose rows differ.")
        return Ragged(self.splits, add(self.values, other.values))


def _length(piece: Ragged) -> int:
    if piece.splits:
        return piece.splits[0].size - 1
    return int(piece.values.shape[0]) if piece.values.ndim else 1


def _rows(whole: Ragged) -> list[Ragged]:
    """The parts along the outermost axis, each with a ragged axis less."""
    if not whole.splits:
        return [Ragged((), row) for row in whole.values]
    rows = []
    for start, end in zip(whole.splits[0][:-1].tolist(), whole.splits[0][1:].tolist(), strict=True):
        inner = []
        for splits in whole.splits[1:]:
            part = splits[start : end + 1]
            inner.append(part - part[:1])
            start, end = int(part[0]), int(part[-1])
        rows.append(Ragged(tuple(inner), whole.values[start:end]))
    return rows


@kernel("RaggedTensorToVariant")
def ragged_tensor_to_variant(*parts: Array, RAGGED_RANK: int, batched_input: bool) -> Value:
    """The ragged tensor (nested splits, values) in one piece, or one piece a row (variant [rows])."""
    whole = Ragged(tuple(parts[:RAGGED_RANK]), parts[RAGGED_RANK])
    count = whole.values.shape[0] if whole.values.ndim else 0
    for splits in reversed(whole.splits):
        ends = splits.ravel().tolist()
        if splits.ndim != 1 or not ends or ends[0] != 0 or ends[-1] != count or sorted(ends) != ends:
            raise RunError(f"Invalid ragged splits: they must rise from 0 to {count}, not {ends[:20]}")
        count = len(ends) - 1
    if not batched_input:
        piece = np.empty((), object)
        piece[()] = whole
        return piece
    if not whole.splits and not whole.values.ndim:
        raise RunError("a scalar has no rows that could be put into pieces")
    rows = _rows(whole)
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


@kernel("RaggedTensorFromVariant")
def ragged_tensor_from_variant(
    encoded_ragged: Value, *, input_ragged_rank: int, output_ragged_rank: int, Tvalues: DType, Tsplits: DType = INT64
) -> tuple[Array, ...]:
    """(nested splits…, values) of a piece, or of an array of pieces, whose axes become the outermost ones.

    Raises:
        RunError: the pieces are no ragged tensors of these ranks and types.
    """
    pieces = np.asarray(encoded_ragged, object) if not isinstance(encoded_ragged, np.ndarray) else encoded_ragged
    flat = pieces.ravel().tolist()
    if not all(isinstance(piece, Ragged) for piece in flat):
        raise RunError("Input Variant element at index 0 doesn't hold a RaggedTensorVariant")
    inner = input_ragged_rank if input_ragged_rank >= 0 else output_ragged_rank - pieces.ndim
    if inner < 0 or output_ragged_rank != inner + pieces.ndim:
        raise RunError(
            f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: "
            f"{output_ragged_rank}, input_ragged_rank: {inner}, encoded_ragged.dims(): {pieces.ndim}."
        )
    for piece in flat:
        if len(piece.splits) != inner or piece.values.dtype != Tvalues.numpy:
            raise RunError(
                f"a piece of {piece.values.dtype} with {len(piece.splits)} ragged axes, where {Tvalues.name} with "
                f"{inner} is wanted"
            )
    kind = Tsplits.numpy
    if not pieces.ndim:
        return (*(s.astype(kind) for s in flat[0].splits), flat[0].values)
    counts = [int(np.prod(pieces.shape[: axis + 1])) for axis in range(pieces.ndim - 1)]
    outer = [np.arange(rows + 1) * pieces.shape[axis + 1] for axis, rows in enumerate(counts)]
    joined = [np.cumsum([0, *(_length(piece) for piece in flat)])]
    for level in range(inner):
        parts, base = [np.zeros(1, np.int64)], 0
        for piece in flat:
            parts.append(piece.splits[level][1:].astype(np.int64) + base)
            base = int(parts[-1][-1]) if parts[-1].size else base
        joined.append(np.concatenate(parts))
    values = [piece.values if piece.values.ndim else piece.values[np.newaxis] for piece in flat]
    whole = np.concatenate(values) if values else nothing((0,), Tvalues.numpy)
    return (*(s.astype(kind) for s in (*outer, *joined)), whole)
