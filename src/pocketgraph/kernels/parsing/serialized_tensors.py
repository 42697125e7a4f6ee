"""Tensors as serialized messages: SerializeTensor and ParseTensor, and sparse tensors as three of them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64, STRING
from pocketgraph.kernels.arrays import Array, ints, kept, reserve, strings
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.protobuf.wire import (
    LEN,
    VARINT,
    bytes_field,
    number_field,
    packed_varints,
    payloads,
    read_varint,
    signed,
    varint,
)

FIELDS = {"float": (5, "<f4"), "double": (6, "<f8"), "complex64": (9, "<f4"), "complex128": (12, "<f8")}
"""By type: the field of a TensorProto that lists such elements, and how they lie in it; other numbers are varints."""
VARINTS = {"int32": 7, "int16": 7, "int8": 7, "uint8": 7, "uint16": 7, "half": 13, "bfloat16": 13, "int64": 10,
           "bool": 11, "uint32": 16, "uint64": 17}  # fmt: skip


def message(tensor: Array, dtype: DType) -> bytes:
    """The TensorProto with the elements as content; texts are their lengths and then their bytes."""
    sizes = b"".join(bytes_field(2, number_field(1, size) if size else b"") for size in tensor.shape)
    if dtype.name == "string":
        items = tensor.ravel().tolist()
        content = b"".join(varint(len(item)) for item in items) + b"".join(items)
    else:
        content = tensor.tobytes()
    return number_field(1, dtype.number) + bytes_field(2, sizes) + (bytes_field(4, content) if content else b"")


def parsed(data: bytes, wanted: DType) -> Array:
    """The tensor of a TensorProto.

    Raises:
        RunError: it is none, is cut short, or has another type.
    """
    number, sizes, content, listed, texts = 0, [], b"", b"", []
    bare: list[int] = []
    field_number, layout = FIELDS.get(wanted.name, (VARINTS.get(wanted.name, 7), ""))
    try:
        for name, kind, payload in payloads(data):
            if name == 1 and kind == VARINT:
                number = payload
            elif name == 2 and kind == LEN:
                sizes = [_size(dim) for n, k, dim in payloads(payload) if (n, k) == (2, LEN)]
            elif name == 4 and kind == LEN:
                content = payload
            elif name == 8 and kind == LEN:
                texts.append(payload)
            elif name == field_number and layout and kind != VARINT:
                listed += payload
            elif name == field_number and kind == LEN:
                bare += packed_varints(payload, 0, len(payload)).tolist()
            elif name == field_number and kind == VARINT:
                bare.append(payload)
        if number != wanted.number:
            said = DType.of(number).name if number else "nothing"
            raise RunError(f"Type mismatch between parsed tensor ({said}) and dtype ({wanted.name})")
        shape = reserve(sizes, wanted.numpy)
        count = int(np.prod(shape, dtype=np.int64))
        if wanted.name == "string":
            return strings(_texts(content, count) if content else _repeated(texts, count, b""), shape)
        if content:
            return np.array(np.frombuffer(content, wanted.numpy).reshape(shape))
        if layout:
            values = np.frombuffer(listed, layout)
            found = values.view(wanted.numpy)
        elif wanted.name in ("half", "bfloat16"):
            found = np.array(bare, np.uint16).view(wanted.numpy)
        else:
            found = np.array(bare, np.uint64).astype(wanted.numpy)
        return np.array(_repeated(found.tolist(), count, 0), wanted.numpy).reshape(shape)
    except (ValueError, IndexError, struct.error, GraphError) as error:
        raise RunError(f"Could not parse the serialized tensor: {error}") from error


def _size(dim: bytes) -> int:
    return signed(next((size for n, kind, size in payloads(dim) if (n, kind) == (1, VARINT)), 0))


def _repeated(found: list[Any], count: int, nothing: Any) -> list[Any]:
    """The last of the listed elements stands for all that follow."""
    if len(found) > count:
        raise ValueError(f"{len(found)} elements for {count} places")
    return found + [found[-1] if found else nothing] * (count - len(found))


def _texts(content: bytes, count: int) -> list[bytes]:
    place, lengths = 0, []
    for _ in range(min(count, len(content) + 1)):
        length, place = read_varint(content, place, len(content))
        lengths.append(length)
    if place + sum(lengths) != len(content) or len(lengths) != count:
        raise ValueError(f"{len(content)} bytes do not hold {count} texts")
    found = []
    for length in lengths:
        found.append(content[place : place + length])
        place += length
    return found


@kernel("SerializeTensor")
def serialize_tensor(tensor: Array, *, T: DType) -> Array:
    return strings([tensor_message(tensor, T)], ())


@kernel("ParseTensor")
def parse_tensor(serialized: Array, *, out_type: DType) -> Array:
    return parsed(serialized.item(), out_type)


@kernel("SerializeSparse")
def serialize_sparse(
    sparse_indices: Array, sparse_values: Array, sparse_shape: Array, *, T: DType, out_type: DType = STRING
) -> Array:
    """(3,): the messages of indices, values and shape, or these themselves as variants."""
    parts = [(sparse_indices, INT64), (sparse_values, T), (sparse_shape, INT64)]
    return _together([_component(value, kind, out_type) for value, kind in parts], (3,))


def _component(value: Array, kind: DType, wanted: DType) -> Array | bytes:
    """One of the three tensors of a sparse tensor, serialized as a string or a variant."""
    return message(value, kind) if wanted.name == "string" else value


def _together(items: Sequence[Array | bytes], shape: Sequence[int]) -> Array:
    found = np.empty(len(items), object)
    for place, item in enumerate(items):
        found[place] = item
    return found.reshape(shape)


def _part(item: Any, wanted: DType) -> Array:
    """One of the three tensors of a serialized sparse tensor.

    Raises:
        RunError: it is none, or has another type.
    """
    if isinstance(item, bytes):
        return parsed(item, wanted)
    if not isinstance(item, np.ndarray) or item.dtype != wanted.numpy:
        held = item.dtype.name if isinstance(item, np.ndarray) else type(item).__name__
        raise RunError(f"a serialized SparseTensor holds {wanted.name}, not {held}")
    return item


def rows_of(indices: Array, values: Array, shape: Array) -> list[tuple[Array, Array]]:
    """For each row of the first axis, the indices without it and the values."""
    sizes = ints(shape)
    if len(sizes) < 2:
        raise RunError(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sizes)}")
    if indices.shape != (len(values), len(sizes)):
        raise RunError(f"indices of shape {list(indices.shape)} for {len(values)} values of {list(sizes)}")
    first = indices[:, 0]
    if bool(np.any((first < 0) | (first >= sizes[0]))):
        raise RunError(f"indices point outside {list(sizes)}")
    reserve((sizes[0],), np.int64)
    return [(indices[first == row, 1:], values[first == row]) for row in range(sizes[0])]


@kernel("SerializeManySparse")
def serialize_many_sparse(
    sparse_indices: Array, sparse_values: Array, sparse_shape: Array, *, T: DType, out_type: DType = STRING
) -> Array:
    """(rows, 3): each row of the first axis serialized by itself, as strings or variants."""
    rest = _component(sparse_shape[1:], INT64, out_type)
    found: list[Array | bytes] = []
    for indices, values in rows_of(sparse_indices, sparse_values, sparse_shape):
        found += [_component(indices, INT64, out_type), _component(values, T, out_type), rest]
    return _together(found, (len(found) // 3, 3))


def stacked(parts: list[tuple[Array, Array, tuple[int, ...]]], dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """One sparse tensor of several, which get a new first axis; its other sizes are the largest of theirs."""
    ranks = {len(shape) for _, _, shape in parts}
    if len(ranks) > 1:
        raise RunError(f"Inconsistent shape across SparseTensors: ranks {sorted(ranks)}")
    rank = ranks.pop() if ranks else 0
    places = [np.insert(indices, 0, row, axis=1) for row, (indices, _, _) in enumerate(parts)]
    sizes = [max(shape[axis] for _, _, shape in parts) for axis in range(rank)]
    whole = np.concatenate(places) if places else np.zeros((0, rank + 1), np.int64)
    values = np.concatenate([values for _, values, _ in parts]) if parts else np.zeros(0, dtype)
    return whole.astype(np.int64), values, np.array([len(parts), *sizes], np.int64)


@kernel("DeserializeManySparse", "DeserializeSparse")
def deserialize_sparse(serialized_sparse: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    """Sparse tensors out of their messages or variants (…, 3); those of more than one get new first axes."""
    if not serialized_sparse.ndim or serialized_sparse.shape[-1] != 3:
        raise RunError(f"Each serialized SparseTensor should have 3 components: {list(serialized_sparse.shape)}")
    parts = []
    for indices, values, shape in serialized_sparse.reshape(-1, 3).tolist():
        places, sizes = _part(indices, INT64), ints(_part(shape, INT64))
        if places.ndim != 2 or places.shape[1] != len(sizes):
            raise RunError(f"indices of shape {list(places.shape)} in a sparse tensor of {len(sizes)} dimensions")
        parts.append((places, _part(values, dtype), sizes))
    outer = serialized_sparse.shape[:-1]
    if not outer:
        places, values, sizes = parts[0]
        return places, values, np.array(sizes, np.int64)
    places, values, shape = stacked(parts, dtype.numpy)
    if len(outer) > 1:
        first = np.stack(np.unravel_index(places[:, 0], outer), axis=1)
        places = np.concatenate([first, places[:, 1:]], axis=1)
        shape = np.concatenate([np.array(outer, np.int64), shape[1:]])
    return places, values, shape


class _SparseTensorsMap:
    """Sparse tensors of a session by their handles, which count up; none is given twice.

    Attributes:
        held: indices, values and shape of those that were not taken yet.
    """

    def __init__(self) -> None:
        self.held: dict[int, tuple[Array, Array, tuple[int, ...]]] = {}
        self._handles = itertools.count()

    def add(self, indices: Array, values: Array, shape: tuple[int, ...]) -> int:
        """Keeps one, of which nobody writes to the arrays any more; its handle."""
        handle = next(self._handles)
        self.held[handle] = (indices, values, shape)
        return handle


def _map(context: Context, container: str, shared_name: str) -> _SparseTensorsMap:
    return context.shared(f"sparse tensors map {container}", shared_name, lambda name: _SparseTensorsMap())


@kernel("AddSparseToTensorsMap")
def add_sparse(
    sparse_indices: Array, sparse_values: Array, sparse_shape: Array, *, container: str = "", shared_name: str = "",
    context: Context,
) -> Array:  # fmt: skip
    """Keeps a sparse tensor in the session; its handle."""
    tensors = _map(context, container, shared_name)
    return np.array(tensors.add(kept(sparse_indices), kept(sparse_values), ints(sparse_shape)), np.int64)


@kernel("AddManySparseToTensorsMap")
def add_many_sparse(
    sparse_indices: Array, sparse_values: Array, sparse_shape: Array, *, container: str = "", shared_name: str = "",
    context: Context,
) -> Array:  # fmt: skip
    """Keeps each row of the first axis; their handles."""
    tensors, sizes = _map(context, container, shared_name), ints(sparse_shape)[1:]
    rows = rows_of(sparse_indices, sparse_values, sparse_shape)
    return np.array([tensors.add(indices, values, sizes) for indices, values in rows], np.int64)


@kernel("TakeManySparseFromTensorsMap")
def take_many_sparse(
    sparse_handles: Array, *, dtype: DType, container: str = "", shared_name: str = "", context: Context
) -> tuple[Array, Array, Array]:
    """The sparse tensors of these handles with a new first axis; they are kept no longer."""
    held = _map(context, container, shared_name).held
    parts = []
    for handle in ints(sparse_handles):
        if handle not in held:
            raise RunError(f"Unable to find SparseTensor: {handle} in map: {shared_name}")
        parts.append(held.pop(handle))
    return stacked(parts, dtype.numpy)


def tensor_message(tensor: Array, dtype: DType) -> bytes:
    """The TensorProto of a tensor, its elements as they lie in memory; strings one by one."""
    sizes = b"".join(bytes_field(2, number_field(1, size) if size else b"") for size in tensor.shape)
    out = number_field(1, dtype.number) + bytes_field(2, sizes)
    if tensor.dtype.kind == "O":
        return out + b"".join(bytes_field(8, item) for item in tensor.ravel().tolist())
    data = np.ascontiguousarray(tensor).tobytes()
    return out + bytes_field(4, data) if data else out
