"""AttrValue: a node's attribute values between their encoding and plain Python values.

Source: tensorflow/core/framework/attr_value.proto. A value that says more than this program knows stays as it was
encoded (Opaque), so that it is never written back with less than it had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pocketgraph.errors import GraphError
from pocketgraph.formats.tensor_proto import StoredTensor, dimensions, encode_tensor, shape_bytes, usual_value
from pocketgraph.graph.attr import AttrValue, Func, Opaque, Parameter, kind_of
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import DEEPEST, FIXED32, LEN, VARINT, Buffer, Chunks, WireError


class _NotUnderstoodError(Exception):
    """The value has parts that its Python form cannot hold."""


def decode_attr(buffer: Buffer, start: int, stop: int, where: str, depth: int = 0) -> AttrValue:
    """The value of the AttrValue in ``buffer[start:stop]``.

    Args:
        where: the file and node, for the errors that a tensor may raise when it is read.

    Raises:
        WireError: the bytes are not an AttrValue.
    """
    if depth > DEEPEST:
        raise WireError(start, f"values are nested more than {DEEPEST} deep")
    found = wire.fields(buffer, start, stop)
    _, number, kind, value, end = next(found, (0, 0, 0, 0, 0))
    decoder = SCALARS.get((number, kind))
    if decoder is not None and end == stop:
        try:
            decoded: AttrValue = decoder(buffer, value, end, where, depth)
            return decoded
        except _NotUnderstoodError:
            pass
    for _ in found:
        pass  # the rest must be whole, too
    return Opaque(buffer[start:stop])


def decode_entry(buffer: Buffer, start: int, stop: int, where: str, depth: int = 0) -> tuple[str, AttrValue]:
    """One entry of a ``map<string, AttrValue>``; what is missing has its default. Errors as for ``decode_attr``."""
    tensor = usual_value(buffer, start, stop, where)
    if tensor is not None:
        return "value", tensor
    key = ""
    span = (start, start)
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if number == 1 and kind == LEN:
            key = wire.text(buffer, value, end)
        elif number == 2 and kind == LEN:
            span = (value, end)
    return key, decode_attr(buffer, *span, where, depth)


def _bytes(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> bytes:
    return buffer[start:stop]


def _int(buffer: Buffer, value: int, stop: int, where: str, depth: int) -> int:
    return wire.signed(value)


def _float(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> float:
    return wire.float32(buffer, start)


def _bool(buffer: Buffer, value: int, stop: int, where: str, depth: int) -> bool:
    return value != 0


def _type(buffer: Buffer, value: int, stop: int, where: str, depth: int) -> DType:
    try:
        return DType.of(wire.int32(value))
    except GraphError:
        raise _NotUnderstoodError from None


def _shape(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> Shape:
    try:
        return Shape(dimensions(buffer, start, stop))
    except GraphError as error:
        raise WireError(start, str(error)) from None


def _tensor(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> Tensor:
    try:
        return StoredTensor(buffer, start, stop, where).tensor()
    except KeyError:
        raise _NotUnderstoodError from None


def _parameter(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> Parameter:
    return Parameter(wire.text(buffer, start, stop))


def _func(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> Func:
    name = ""
    attrs: dict[str, AttrValue] = {}
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if number == 1 and kind == LEN:
            name = wire.text(buffer, value, end)
        elif number == 2 and kind == LEN:
            key, inner = decode_entry(buffer, value, end, where, depth + 1)
            attrs[key] = inner
        else:
            raise _NotUnderstoodError
    return Func(name, MappingProxyType(attrs))


def _list(buffer: Buffer, start: int, stop: int, where: str, depth: int) -> tuple[Any, ...]:
    members: list[Any] = []
    only = 0
    for at, number, kind, value, end in wire.fields(buffer, start, stop):
        decoder, element = MEMBERS.get(number, (None, 0))
        if decoder is None or (only and number != only) or (kind != element and kind != LEN):
            raise _NotUnderstoodError
        only = number
        if kind == element:
            members.append(decoder(buffer, value, end, where, depth))
        elif element == VARINT:
            members += [
                decoder(buffer, item, end, where, depth) for item in wire.packed_varints(buffer, value, end).tolist()
            ]
        elif (end - value) % 4:
            raise WireError(at, f"a list of floats takes {end - value} bytes")
        else:
            members += [wire.float32(buffer, position) for position in range(value, end, 4)]
    return tuple(members)


Decoder = Callable[[Buffer, int, int, str, int], Any]

SCALARS: Mapping[tuple[int, int], Decoder] = {
    (1, LEN): _list, (2, LEN): _bytes, (3, VARINT): _int, (4, FIXED32): _float, (5, VARINT): _bool,
    (6, VARINT): _type, (7, LEN): _shape, (8, LEN): _tensor, (9, LEN): _parameter, (10, LEN): _func,
}  # fmt: skip
"""AttrValue's fields by number and wire type."""

MEMBERS: Mapping[int, tuple[Decoder | None, int]] = {
    2: (_bytes, LEN), 3: (_int, VARINT), 4: (_float, FIXED32), 5: (_bool, VARINT), 6: (_type, VARINT),
    7: (_shape, LEN), 8: (_tensor, LEN), 9: (_func, LEN),
}  # fmt: skip
"""AttrValue.ListValue's fields by number, each with the wire type of one element."""


def encode_attr(value: AttrValue) -> Chunks:
    """The AttrValue of a value.

    Raises:
        GraphError: it is a list of several kinds, or no attribute value at all.
    """
    if isinstance(value, Opaque):
        return [value.encoded]
    if isinstance(value, Parameter):
        return [wire.bytes_field(9, value.name)]
    if isinstance(value, tuple):
        return wire.message_field(1, _encode_list(value))
    if isinstance(value, Func):
        return wire.message_field(10, _encode_func(value))
    return _encode_scalar(value, 0)


def encode_attr_map(number: int, attrs: Mapping[str, AttrValue]) -> Chunks:
    """A ``map<string, AttrValue>`` field, sorted by key so that equal tables are written alike."""
    parts: Chunks = []
    for key in sorted(attrs):
        entry: Chunks = [wire.bytes_field(1, key), *wire.message_field(2, encode_attr(attrs[key]))]
        parts += wire.message_field(number, entry)
    return parts


def _encode_scalar(value: Any, shift: int) -> Chunks:
    """One value; a list has no placeholder, so the fields behind it are one lower there (``shift``)."""
    if isinstance(value, bytes):
        return [wire.bytes_field(2, value)]
    if isinstance(value, bool):
        return [wire.number_field(5, value)]
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise GraphError(f"the attribute value {value} does not fit into 64 bits")
        return [wire.number_field(3, value)]
    if isinstance(value, float):
        return [wire.float_field(4, value)]
    if isinstance(value, DType):
        return [wire.number_field(6, value.number)]
    if isinstance(value, Shape):
        return [wire.bytes_field(7, shape_bytes(value.dims))]
    if isinstance(value, Tensor):
        return wire.message_field(8, encode_tensor(value))
    if isinstance(value, Func):
        return wire.message_field(10 - shift, _encode_func(value))
    raise GraphError(f"a {type(value).__name__} is not an attribute value: {value!r}")


def _encode_func(func: Func) -> Chunks:
    name: Chunks = [wire.bytes_field(1, func.name)] if func.name else []
    return name + encode_attr_map(2, func.attrs)


def _encode_list(members: tuple[Any, ...]) -> Chunks:
    try:
        kinds = {kind_of(member) for member in members}
    except TypeError as error:
        raise GraphError(str(error)) from None
    if len(kinds) > 1:
        raise GraphError(f"an attribute's list has members of several kinds: {', '.join(sorted(kinds))}")
    kind = next(iter(kinds), "")
    if kind == "float":
        return [wire.bytes_field(4, b"".join(map(wire.float_bytes, members)))]
    packed = {"int": 3, "bool": 5, "type": 6}.get(kind)
    if packed is not None:
        numbers = [member.number if isinstance(member, DType) else int(member) for member in members]
        return [wire.bytes_field(packed, b"".join(map(wire.varint, numbers)))]
    return [part for member in members for part in _encode_scalar(member, 1)]
