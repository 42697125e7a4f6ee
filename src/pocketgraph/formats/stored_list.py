"""Values of type variant that hold a list of tensors, as TensorFlow stores them.

Source: VariantTensorDataProto in tensorflow/core/framework/tensor.proto, and TensorList::Encode in
tensorflow/core/kernels/list_kernels.cc (tensor_list.cc later), which packs what is no tensor into ``metadata``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats.tensor_proto import LARGEST, StoredTensor, dimensions, shape_bytes
from pocketgraph.formats.typed_list import typed_list_message
from pocketgraph.graph import DType, Shape, Tensor
from pocketgraph.graph.dtype import VARIANT
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, WireError

TYPE_NAME = b"tensorflow::TensorList"
NAME, METADATA, TENSORS = 1, 2, 3  # fields of VariantTensorDataProto
DEEPEST = 32  # lists in each other


@dataclass(frozen=True)
class StoredList:
    """A list as a file holds it.

    Attributes:
        dtype: the type of its elements.
        shape: what is known of their shape.
        count: how many elements it has.
        items: those that are set, by index.
        most: how many may be pushed into it; -1 for any number.
    """

    dtype: DType
    shape: Shape
    count: int
    items: Mapping[int, Tensor]
    most: int = -1


def holds_list(tensor: Tensor) -> bool:
    """Whether a tensor of type variant is a scalar that holds a list."""
    with suppress(WireError):
        return not tensor.shape and (NAME, LEN, TYPE_NAME) in wire.payloads(tensor.numpy().item())
    return False


def stored_list(tensor: Tensor, where: str, depth: int = 0) -> StoredList:
    """The list that a scalar of type variant holds.

    Args:
        where: whose value it is, for errors.
        depth: how many lists it lies in.

    Raises:
        FormatError: it holds something else, or what is stored of it is damaged: more than DEEPEST lists lie in each
            other, say, or its elements would take more than LARGEST bytes that the file does not hold.
    """
    if depth > DEEPEST:
        raise FormatError(f"the constant's list is damaged: more than {DEEPEST} lists lie in each other", where=where)
    try:
        parts = list(wire.payloads(tensor.numpy().item())) if not tensor.shape else []
        if (NAME, LEN, TYPE_NAME) not in parts:
            names = [
                str(payload, "utf-8", "replace") for number, kind, payload in parts if (number, kind) == (NAME, LEN)
            ]
            what = f"a {names[0][:60]}" if names else f"variants of shape {list(tensor.shape)}"
            raise FormatError(f"the constant holds {what}; of variants only a TensorList can be read", where=where)
        metadata = b"".join([payload for number, kind, payload in parts if (number, kind) == (METADATA, LEN)])
        elements = [payload for number, kind, payload in parts if (number, kind) == (TENSORS, LEN)]
        made = [StoredTensor(part, 0, len(part), where).tensor() for part in elements]
        sizes = (prod(one.shape) * (one.dtype.size or 8) for one in made)
        missing = sum(size for size, part in zip(sizes, elements, strict=True) if size > len(part))
        if missing > LARGEST:
            raise WireError(0, f"its elements would take {missing:,} bytes that are not in the file")
        return _decoded(metadata, made)
    except (WireError, GraphError, KeyError) as error:
        raise FormatError(f"the constant's list is damaged: {error}", where=where) from None


def _decoded(metadata: bytes, elements: list[Tensor]) -> StoredList:
    end = len(metadata)
    unset_count, at = wire.read_varint(metadata, 0, end)
    if unset_count > end:  # an index takes a byte at least
        raise WireError(at, f"{unset_count:,} elements are said to be unset")
    unset = set()
    for _ in range(unset_count):
        index, at = wire.read_varint(metadata, at, end)
        unset.add(index)
    number, at = wire.read_varint(metadata, at, end)
    most, at = wire.read_varint(metadata, at, end)
    count = unset_count + len(elements)
    places = [index for index in range(count) if index not in unset]
    if len(places) != len(elements):
        raise WireError(at, f"{len(elements)} elements are there for {len(places)} places")
    dtype, shape = DType.of(number), Shape(dimensions(metadata, at, end))
    if any(size is not None and size >= 1 << 31 for size in shape.dims or ()):  # ops tell a shape in int32
        raise WireError(at, f"elements of shape {shape}")
    if other := next((one.dtype for one in elements if one.dtype is not dtype), None):
        raise WireError(at, f"an element of type {other.name} in a list of {dtype.name}")
    return StoredList(dtype, shape, count, dict(zip(places, elements, strict=True)), wire.int32(most))


def list_tensor(content: StoredList) -> Tensor:
    """The scalar of type variant that holds a list."""
    unset = [index for index in range(content.count) if index not in content.items]
    numbers = [len(unset), *unset, content.dtype.number, content.most]
    metadata = b"".join(map(wire.varint, numbers)) + shape_bytes(content.shape.dims)
    message = [wire.bytes_field(NAME, TYPE_NAME), wire.bytes_field(METADATA, metadata)]
    message += [wire.bytes_field(TENSORS, typed_list_message(content.items[index])) for index in sorted(content.items)]
    value = np.empty((), object)
    value[()] = wire.joined(message)
    return Tensor(VARIANT, (), array=value)
