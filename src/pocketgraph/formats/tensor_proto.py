"""TensorProto: a constant's type and shape at once, its elements only when somebody asks for them.

Source: tensorflow/core/framework/tensor.proto; elements lie in ``tensor_content`` as they are in memory, or in a typed
list whose last value repeats until the shape is full (Tensor::FromProto).
"""

from __future__ import annotations

import sys

import numpy as np

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats.files import check_length
from pocketgraph.graph.dtype import BOOL, STRING, VARIANT, DType
from pocketgraph.graph.tensor import Array, Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import FIXED32, FIXED64, LEN, VARINT, Buffer, Chunks, WireError

LARGEST = 1 << 33  # bytes that a tensor may take when the file does not hold them itself (8 GiB)

CONTENT, STRING_VAL, VARIANT_VAL, FLOAT8_VAL = 4, 8, 15, 18


ELEMENTS: dict[int, tuple[int, str]] = {
    5: (FIXED32, "<f4"), 6: (FIXED64, "<f8"), 7: (VARINT, "i4"), 9: (FIXED32, "<f4"), 10: (VARINT, "i8"),
    11: (VARINT, "u1"), 12: (FIXED64, "<f8"), 13: (VARINT, "i4"), 16: (VARINT, "u4"), 17: (VARINT, "u8"),
}  # fmt: skip
"""Each typed list's field number: the wire type of one element and the element's own type."""

LIST_OF: dict[str, int] = {
    "float": 5, "double": 6, "int32": 7, "int16": 7, "int8": 7, "uint8": 7, "uint16": 7, "qint8": 7, "quint8": 7,
    "qint16": 7, "quint16": 7, "qint32": 7, "int4": 7, "uint4": 7, "complex64": 9, "int64": 10, "bool": 11,
    "complex128": 12, "half": 13, "bfloat16": 13, "uint32": 16, "uint64": 17,
}  # fmt: skip
"""Which typed list holds the elements of each type."""
BYTES_VAL = {STRING: STRING_VAL, VARIANT: VARIANT_VAL}
"""Those of elements that are bytes: strings, and encoded VariantTensorDataProtos."""


class StoredTensor:
    """A TensorProto in a buffer; what ``Tensor.encoded`` is for tensors that came from a GraphDef.

    Attributes:
        dtype: the element type.
        shape: the sizes.
    """

    __slots__ = ("_buffer", "_content", "_lists", "_start", "_stop", "_where", "dtype", "shape")

    def __init__(self, buffer: Buffer, start: int, stop: int, where: str, dtype: DType | None = None) -> None:
        """Walks the message in ``buffer[start:stop]`` without touching its elements.

        ``dtype`` is what the elements are where the message does not say it itself.

        Raises:
            WireError: the message is malformed, or its shape is not that of a constant.
            KeyError: the element type is one that DType does not know.
        """
        self._buffer, self._start, self._stop, self._where = buffer, start, stop, where
        self._content: tuple[int, int] | None = None
        self._lists: list[wire.Field] = []
        self.shape: tuple[int, ...] = ()
        number_of_type = 0
        for field in wire.fields(buffer, start, stop):
            at, number, kind, value, end = field
            if number == 1 and kind == VARINT:
                number_of_type = wire.int32(value)
            elif number == 2 and kind == LEN:
                self.shape += sizes(buffer, value, end, at)
            elif number == CONTENT and kind == LEN:
                self._content = (value, end)
            else:
                self._lists.append(field)
        try:
            self.dtype = dtype or DType.of(number_of_type)
        except GraphError:
            raise KeyError(number_of_type) from None

    def fill(
        self,
        buffer: Buffer,
        start: int,
        stop: int,
        where: str,
        dtype: DType,
        shape: tuple[int, ...],
        held: int,
        at: int,
    ) -> None:
        """What ``__init__`` finds out, for a caller who knows it: the field ``held`` runs from ``at`` to the end."""
        self._buffer, self._start, self._stop, self._where = buffer, start, stop, where
        self.dtype, self.shape = dtype, shape
        if held == CONTENT:
            self._content, self._lists = (at, stop), []
        else:
            self._content, self._lists = None, [(at, held, LEN, at, stop)]

    def tensor(self) -> Tensor:
        """The tensor; its bytes stay in the file until somebody reads them."""
        return Tensor(self.dtype, self.shape, read=self.read, encoded=self)

    def chunk(self) -> memoryview:
        """The message as the file holds it. Raises FormatError when the file has become shorter."""
        check_length(self._buffer, self._stop, self._where)
        return wire.view(self._buffer, self._start, self._stop)

    def read(self) -> Array:
        """The elements in the tensor's shape; a view of the file where the file holds them as memory does.

        Raises:
            FormatError: the file holds too few, too many or none that NumPy knows; or the tensor would take more
                than LARGEST bytes although the file does not hold them; or the file has become shorter.
        """
        check_length(self._buffer, self._stop, self._where)
        try:
            return self._read()
        except WireError as error:
            raise FormatError(f"a tensor is corrupt at byte {error.position}: {error}", where=self._where) from None

    __call__ = read  # so that a tensor can keep this object for reading and for writing, and no second one

    def _read(self) -> Array:
        if self.dtype.base.number in (0, 20):
            raise FormatError(f"a tensor of type {self.dtype.name} has no values to read", where=self._where)
        count = 1
        for size in self.shape:
            count *= size
        if self._content is not None and self._content[0] < self._content[1]:
            flat = self._from_content(count)
        else:
            width = self.dtype.size or 8
            if count * width > LARGEST:
                raise FormatError(
                    f"a tensor claims {count:,} elements, which would take {count * width:,} bytes that are not in "
                    f"the file; the limit is {LARGEST:,}",
                    where=self._where,
                )
            flat = filled(self.listed(count), count, b"" if self.dtype.base in BYTES_VAL else 0)
        try:
            return flat.reshape(self.shape)
        except ValueError:  # no elements, and other sizes whose product no array can have
            raise FormatError(f"no tensor can have the shape {list(self.shape)}", where=self._where) from None

    def _from_content(self, count: int) -> Array:
        assert self._content is not None
        start, stop = self._content
        if self.dtype.base is STRING:
            return self._strings_in_content(start, stop, count)
        kind = self.dtype.numpy
        if stop - start != count * kind.itemsize:
            raise FormatError(
                f"a tensor of {self.dtype.name}{list(self.shape)} needs {count * kind.itemsize:,} bytes, "
                f"but {stop - start:,} are stored",
                where=self._where,
            )
        raw = np.frombuffer(self._buffer, np.uint8, stop - start, start)
        values: Array = raw != 0 if self.dtype.base is BOOL else raw.view(kind)
        return values if sys.byteorder == "little" else values.byteswap()

    def _strings_in_content(self, start: int, stop: int, count: int) -> Array:
        """All the lengths as varints, then all the bytes."""
        if count > stop - start:
            raise FormatError(f"a tensor of {count:,} strings is stored in {stop - start:,} bytes", where=self._where)
        lengths, position = [], start
        for _ in range(count):
            length, position = wire.read_varint(self._buffer, position, stop)
            lengths.append(length)
        if position + sum(lengths) != stop:
            raise FormatError("a tensor's strings do not fill the bytes stored for them", where=self._where)
        values = np.empty(count, object)
        for index, length in enumerate(lengths):
            values[index] = self._buffer[position : position + length]
            position += length
        return values

    def listed(self, most: int) -> Array:
        """The elements in the typed list, of strings and variants at most ``most``.

        Raises:
            WireError: the list is malformed.
        """
        if self.dtype.base in BYTES_VAL:
            return self._bytes(BYTES_VAL[self.dtype.base], most)
        name = self.dtype.base.name
        if name.startswith("float8"):
            spans = [(value, end) for _, number, kind, value, end in self._lists if (number, kind) == (FLOAT8_VAL, LEN)]
            raw = np.frombuffer(b"".join(self._buffer[a:b] for a, b in spans[-1:]), np.uint8)
            return raw.view(self.dtype.numpy)
        number = LIST_OF[name]
        values = self._numbers(number)
        if number in (9, 12):
            values = values[: values.size // 2 * 2].view("<c8" if number == 9 else "<c16")
        elif number == 13:
            values = values.astype(np.uint16).view(self.dtype.numpy)
        return values.astype(self.dtype.numpy, copy=False)

    def _bytes(self, wanted: int, count: int) -> Array:
        spans = [(value, end) for _, number, kind, value, end in self._lists if (number, kind) == (wanted, LEN)]
        values = np.empty(min(len(spans), count), object)
        for index, (start, stop) in enumerate(spans[:count]):
            values[index] = self._buffer[start:stop]
        return values

    def _numbers(self, wanted: int) -> Array:
        """The values of one typed list, whether packed, one field each, or both."""
        element, kind = ELEMENTS[wanted]
        width = 8 if element == FIXED64 else 4
        runs: list[Array] = []
        singles: list[int] = []
        for at, number, wire_type, value, end in self._lists:
            if number != wanted:
                continue
            if wire_type == LEN:
                if singles:
                    runs.append(np.array(singles, np.uint64))
                    singles = []
                if element == VARINT:
                    runs.append(wire.packed_varints(self._buffer, value, end))
                elif (end - value) % width:
                    raise WireError(at, f"a list of {width}-byte numbers takes {end - value} bytes")
                else:
                    runs.append(np.frombuffer(self._buffer, kind, (end - value) // width, value))
            elif wire_type == element:
                if element == VARINT:
                    singles.append(value)
                else:
                    runs.append(np.frombuffer(self._buffer, kind, 1, value))
        if singles:
            runs.append(np.array(singles, np.uint64))
        values: Array = runs[0] if len(runs) == 1 else np.concatenate(runs) if runs else np.zeros(0, kind)
        if element != VARINT:
            return values
        return values != 0 if kind == "u1" else values.astype(np.dtype(kind))


VALUE = b"\x0a\x05value\x12"  # how the map entry of an attribute ``value`` begins
LONGEST_HEAD = 160  # bytes that come before a constant's content at most, where this looks
USUAL_TYPES = {dtype.number: dtype for dtype in map(DType.of, (1, 2, 3, 4, 6, 9, 10, 12, 19))}
MOST_KNOWN = 1 << 12  # encoded shapes that are remembered
_shapes: dict[bytes, tuple[int, ...]] = {}  # encoded shapes that files said so far


def usual_value(buffer: Buffer, start: int, stop: int, where: str) -> Tensor | None:
    """The tensor of the map entry ``value`` in ``buffer[start:stop]`` when it is as nearly all are: a type, a shape and
    content or one packed list, in this order; None otherwise.

    Summaries of large graphs spend most of their time here, so it looks at the beginning of the entry in one piece.
    """
    head = buffer[start : start + LONGEST_HEAD if stop - start > LONGEST_HEAD else stop]
    total = stop - start
    if head[:8] != VALUE:
        return None
    try:
        size, here = head[8], 9
        if size >= 0x80:
            size, here = wire.read_varint(head, 8, LONGEST_HEAD)
        if here + size != total or head[here] != 0x42:
            return None
        size, here = head[here + 1], here + 2
        if size >= 0x80:
            size, here = wire.read_varint(head, here - 1, LONGEST_HEAD)
        if here + size != total or head[here] != 0x08 or head[here + 2] != 0x12:
            return None
        proto, dtype = here, USUAL_TYPES.get(head[here + 1])
        size, here = head[here + 3], here + 4
        encoded = head[here : here + size]
        here += size
        held = head[here]
        if dtype is None or size >= 0x80 or held & 7 != LEN or held >= 0x80:
            return None
        shape = _shapes.get(encoded)
        if shape is None:
            shape = _shape(encoded)
        size, here = head[here + 1], here + 2
        if size >= 0x80:
            size, here = wire.read_varint(head, here - 1, LONGEST_HEAD)
    except (IndexError, WireError):
        return None
    if here + size != total or shape is None:
        return None
    stored = StoredTensor.__new__(StoredTensor)
    stored.fill(buffer, start + proto, stop, where, dtype, shape, held >> 3, start + here)
    return Tensor(dtype, shape, read=stored, encoded=stored)


def _shape(encoded: bytes) -> tuple[int, ...] | None:
    """A constant's shape, remembered; None where it holds more than sizes, or one that is not known."""
    dims: list[int] = []
    for _, number, kind, value, end in wire.fields(encoded, 0, len(encoded)):
        inner = [(field, of, size) for _, field, of, size, _ in wire.fields(encoded, value, end)] if kind == LEN else []
        size = inner[0][2] if inner else 0
        if number != 2 or kind != LEN or len(inner) > 1 or (inner and inner[0][:2] != (1, VARINT)) or size >= 1 << 63:
            return None
        dims.append(size)
    shape = tuple(dims)
    if len(_shapes) < MOST_KNOWN:
        _shapes[encoded] = shape
    return shape


def filled(values: Array, count: int, default: object) -> Array:
    """``count`` elements: the values, then the last of them again and again; the default where there are none.

    More values than fit are dropped, as TensorFlow drops them.
    """
    if values.size >= count:
        return values[:count]
    if not values.size and default == 0:
        return np.zeros(count, values.dtype)
    result = np.empty(count, values.dtype)
    result.fill(values[-1] if values.size else default)  # assigning bytes instead would lose the zeros at their end
    result[: values.size] = values
    return result


def sizes(buffer: Buffer, start: int, stop: int, at: int) -> tuple[int, ...]:
    """A TensorShapeProto as a constant's sizes."""
    dims = dimensions(buffer, start, stop)
    if dims is None or any(size < 0 for size in dims):
        raise WireError(at, "the shape of a constant is not fully known")
    return tuple(dims)


def dimensions(buffer: Buffer, start: int, stop: int) -> list[int] | None:
    """A TensorShapeProto as its sizes, -1 where unknown; None when the rank is unknown."""
    dims: list[int] = []
    unknown_rank = False
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if number == 2 and kind == LEN:
            size = 0
            for _, inner, inner_kind, inner_value, _ in wire.fields(buffer, value, end):
                if inner == 1 and inner_kind == VARINT:
                    size = wire.signed(inner_value)
            dims.append(size)
        elif number == 3 and kind == VARINT:
            unknown_rank = value != 0
    return None if unknown_rank else dims


def shape_bytes(dims: tuple[int | None, ...] | None) -> bytes:
    """The TensorShapeProto of these sizes; None is an unknown size or, for all of them, an unknown rank."""
    if dims is None:
        return wire.number_field(3, 1)
    return b"".join(
        wire.bytes_field(2, b"" if size == 0 else wire.number_field(1, -1 if size is None else size)) for size in dims
    )


def encode_tensor(tensor: Tensor) -> Chunks:
    """The TensorProto of a tensor: what the file said where it is untouched, else with packed little-endian content."""
    if isinstance(tensor.encoded, StoredTensor):
        return [tensor.encoded.chunk()]
    parts: Chunks = [wire.number_field(1, tensor.dtype.number), wire.bytes_field(2, shape_bytes(tensor.shape))]
    values = tensor.numpy()
    if tensor.dtype.base in BYTES_VAL:
        parts += [wire.bytes_field(BYTES_VAL[tensor.dtype.base], item) for item in values.ravel().tolist()]
        return parts
    flat = np.ascontiguousarray(values).reshape(-1)
    if sys.byteorder == "big":
        flat = flat.byteswap()
    if flat.nbytes:
        parts += wire.message_field(CONTENT, [flat.view(np.uint8).data])
    return parts
