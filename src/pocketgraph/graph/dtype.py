"""Element types: TensorFlow's names and numbers, and the NumPy type that holds each."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import GraphError

REF = 100  # the enum number of a reference type is its base's plus this


class DType:
    """One element type. There is one object per type, so compare with ``is`` or ``==``.

    Attributes:
        name: TensorFlow's name, as in ``float``, ``int32``, ``quint8``, ``float_ref``.
        number: the DataType enum number.
        size: bytes of one element in a file; 0 for string, resource and variant.
        numpy: the NumPy type that holds its elements.
    """

    __slots__ = ("_dtype", "_numpy", "name", "number", "size")
    _by_number: dict[int, DType] = {}
    _by_name: dict[str, DType] = {}

    def __init__(self, name: str, number: int, numpy: str, size: int) -> None:
        self.name = name
        self.number = number
        self.size = size
        self._numpy = numpy
        self._dtype: np.dtype[Any] | None = None
        DType._by_number[number] = self
        DType._by_name[name] = self

    @staticmethod
    def of(number: int) -> DType:
        """The type with this enum number.

        Raises:
            GraphError: there is none.
        """
        try:
            return DType._by_number[number]
        except KeyError:
            raise GraphError(f"no element type has the number {number}") from None

    @staticmethod
    def named(name: str) -> DType:
        """The type of this name: ``float``, ``float32``, ``DT_FLOAT``, ``int32_ref``…

        Raises:
            GraphError: there is none.
        """
        key = name
        if key.startswith("DT_"):
            key = key[3:].lower()
        try:
            return DType._by_name[key]
        except KeyError:
            raise GraphError(f"no element type is called '{name}'") from None

    @staticmethod
    def of_numpy(dtype: np.dtype[Any] | type) -> DType:
        """The type that holds arrays of this NumPy dtype (``object``, bytes and str dtypes are ``string``)."""
        wanted = np.dtype(dtype)
        known = _KNOWN.get(wanted)
        if known is not None:
            return known
        if wanted.kind in "OSUT":
            return STRING
        try:
            found = _KNOWN[wanted] = _OF_NUMPY[wanted.name]
        except KeyError:
            raise GraphError(f"no element type holds NumPy's {wanted}") from None
        return found

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype: quantized types as their integers, strings as ``object`` (elements are ``bytes``).

        Raises:
            GraphError: resource and variant have none.
        """
        found = self._dtype
        if found is None:
            found = self._dtype = self._made()
        return found

    def _made(self) -> np.dtype[Any]:
        if not self._numpy:
            raise GraphError(f"elements of type {self.name} have no NumPy form")
        if self._numpy == "bfloat16" or self._numpy.startswith("ml:"):
            import ml_dtypes

            small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self._numpy.removeprefix("ml:")))
            return small
        return np.dtype(self._numpy)

    @property
    def is_ref(self) -> bool:
        """Whether this is the type of a reference to a variable."""
        return self.number > REF

    @property
    def base(self) -> DType:
        """The type without its reference mark."""
        return self if self.number <= REF else DType.of(self.number - REF)

    @property
    def ref(self) -> DType:
        """The reference type of this type."""
        return self if self.is_ref else DType.of(self.number + REF)

    @property
    def is_floating(self) -> bool:
        """Whether elements are floating point numbers of 16, 32 or 64 bits."""
        return self.base.name in ("half", "bfloat16", "float", "double")

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.base.name in ("complex64", "complex128")

    @property
    def is_integer(self) -> bool:
        """Whether elements are plain integers; the quantized types are not."""
        return self.base.name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

    @property
    def is_quantized(self) -> bool:
        """Whether elements are codes that stand for numbers of a range."""
        return self.base.name in ("qint8", "quint8", "qint16", "quint16", "qint32")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return DType.of, (self.number,)


_TABLE = (
    ("float", 1, "float32", 4), ("double", 2, "float64", 8), ("int32", 3, "int32", 4), ("uint8", 4, "uint8", 1),
    ("int16", 5, "int16", 2), ("int8", 6, "int8", 1), ("string", 7, "object", 0), ("complex64", 8, "complex64", 8),
    ("int64", 9, "int64", 8), ("bool", 10, "bool", 1), ("qint8", 11, "int8", 1), ("quint8", 12, "uint8", 1),
    ("qint32", 13, "int32", 4), ("bfloat16", 14, "bfloat16", 2), ("qint16", 15, "int16", 2),
    ("quint16", 16, "uint16", 2), ("uint16", 17, "uint16", 2), ("complex128", 18, "complex128", 16),
    ("half", 19, "float16", 2), ("resource", 20, "", 0), ("variant", 21, "", 0), ("uint32", 22, "uint32", 4),
    ("uint64", 23, "uint64", 8), ("float8_e5m2", 24, "ml:float8_e5m2", 1),
    ("float8_e4m3fn", 25, "ml:float8_e4m3fn", 1), ("int4", 29, "ml:int4", 1), ("uint4", 30, "ml:uint4", 1),
)  # fmt: skip
for _name, _number, _numpy_name, _size in _TABLE:
    DType(_name, _number, _numpy_name, _size)
    DType(_name + "_ref", _number + REF, _numpy_name, _size)
INVALID = DType("INVALID", 0, "", 0)
for _alias, _name in (("float32", "float"), ("float64", "double"), ("float16", "half")):
    DType._by_name[_alias] = DType._by_name[_name]
    DType._by_name[_alias + "_ref"] = DType._by_name[_name + "_ref"]

FLOAT, DOUBLE, HALF, BFLOAT16 = (DType.named(n) for n in ("float", "double", "half", "bfloat16"))
INT4, INT8, INT16, INT32, INT64 = (DType.named(n) for n in ("int4", "int8", "int16", "int32", "int64"))
UINT8, UINT16, UINT32, UINT64 = (DType.named(n) for n in ("uint8", "uint16", "uint32", "uint64"))
QINT8, QUINT8, QINT16, QUINT16, QINT32 = (DType.named(n) for n in ("qint8", "quint8", "qint16", "quint16", "qint32"))
NOT_NUMBERS = frozenset(("string", "resource", "variant"))
"""Names of types whose elements are not as many bytes each."""
BOOL, STRING, RESOURCE, VARIANT = (DType.named(n) for n in ("bool", "string", "resource", "variant"))
COMPLEX64, COMPLEX128 = (DType.named(n) for n in ("complex64", "complex128"))

_KNOWN: dict[np.dtype[Any], DType] = {}  # asked for so far: NumPy takes long to say a name
_OF_NUMPY = {
    name: DType.of(number)
    for name, number in (
        ("float32", 1), ("float64", 2), ("int32", 3), ("uint8", 4), ("int16", 5), ("int8", 6), ("complex64", 8),
        ("int64", 9), ("bool", 10), ("bfloat16", 14), ("uint16", 17), ("complex128", 18), ("float16", 19),
        ("uint32", 22), ("uint64", 23), ("float8_e5m2", 24), ("float8_e4m3fn", 25), ("int4", 29), ("uint4", 30),
    )
}  # fmt: skip
