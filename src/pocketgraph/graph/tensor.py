"""Tensor values: a dtype, a shape, and elements that may still lie in a mapped file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph.dtype import STRING, VARIANT, DType

Array: TypeAlias = np.ndarray[Any, Any]
"""The elements of a tensor; strings are objects, of type bytes."""


class Tensor:
    """A constant value. It does not change, and its elements are not read until ``numpy()`` asks for them.

    >>> tensor = Tensor.from_numpy(np.float32([[0.5, 2.0]]))
    >>> tensor.dtype, tensor.shape, tensor.size, tensor.nbytes
    (float, (1, 2), 2, 8)
    >>> tensor.numpy()
    array([[0.5, 2. ]], dtype=float32)
    >>> Tensor.from_numpy(["naïve", b"x"]).numpy().tolist()
    [b'na\\xc3\\xafve', b'x']

    Args:
        dtype, shape, encoded: the attributes of these names.
        array: the values; or None, with ``read``.
        read: called for the values when they are needed first, and kept unless they are a view that costs nothing.

    Attributes:
        dtype: the element type; tells quint8 from uint8, which share a NumPy dtype.
        shape: the sizes.
        encoded: what a file format keeps here so that an untouched tensor is written back as it was read; opaque
            to everybody else, None for tensors made in memory.
    """

    __slots__ = ("_array", "_read", "dtype", "encoded", "shape")
    dtype: DType
    shape: tuple[int, ...]
    encoded: Any

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        *,
        array: np.ndarray[Any, Any] | None = None,
        read: Callable[[], np.ndarray[Any, Any]] | None = None,
        encoded: Any = None,
    ) -> None:
        assert (array is None) != (read is None)
        self.dtype = dtype
        self.shape = shape
        self.encoded = encoded
        self._array = array
        self._read = read

    @staticmethod
    def from_numpy(array: Any, dtype: DType | None = None) -> Tensor:
        """A tensor of these values (an array, a scalar, nested lists; bytes or str for strings).

        Args:
            array: the values; kept, not copied, and made read-only, when they are an array of the right dtype.
            dtype: the element type; by default the one that NumPy's dtype stands for.

        Returns:
            The tensor.

        Raises:
            GraphError: NumPy's dtype stands for none.
        """
        values = array if isinstance(array, np.ndarray) else np.asarray(array)
        if values.dtype.kind == "S" and not isinstance(array, np.ndarray):
            values = np.asarray(array, dtype=object)  # NumPy's own bytes type drops trailing zero bytes
        kind = dtype if dtype is not None else DType.of_numpy(values.dtype)
        if kind is STRING:
            flat = [item.encode() if isinstance(item, str) else bytes(item) for item in values.ravel().tolist()]
            strings = np.empty(len(flat), dtype=object)
            strings[:] = flat
            values = strings.reshape(values.shape)
        elif values.dtype != kind.numpy:
            values = values.astype(kind.numpy)
        values = values.view()
        values.flags.writeable = False
        return Tensor(kind, tuple(values.shape), array=values)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values.

        Returns:
            A read-only array of ``dtype.numpy`` and ``shape``; of strings an object array of bytes, of variants one
            of encoded VariantTensorDataProtos.

        Raises:
            GraphError: the file holds values of another shape than it declares.
        """
        if self._array is None:
            assert self._read is not None
            values = self._read()
            if values.shape != self.shape:
                raise GraphError(f"a tensor declared as {list(self.shape)} holds {list(values.shape)}")
            values.flags.writeable = False
            self._array = values
        return self._array

    @property
    def size(self) -> int:
        """How many elements."""
        count = 1
        for dimension in self.shape:
            count *= dimension
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; for strings the sum of their lengths."""
        if self.dtype.base is STRING:
            return sum(len(item) for item in self.numpy().ravel().tolist())
        return self.size * self.dtype.size

    def same_values(self, other: Tensor) -> bool:
        """Whether another tensor is the same.

        Args:
            other: the other one.

        Returns:
            True when dtype, shape and every element are equal; NaN equals NaN of the same bits.
        """
        if self is other:
            return True
        if self.dtype is not other.dtype or self.shape != other.shape:
            return False
        mine, theirs = self.numpy(), other.numpy()
        if mine.dtype == object:
            return bool(np.array_equal(mine, theirs))
        return np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(theirs).tobytes()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        values = self.numpy()
        return _unpickled, (self.dtype, self.shape, values.tolist() if values.dtype == object else values.tobytes())

    def __repr__(self) -> str:
        return f"Tensor({self.dtype.name}{list(self.shape)})"


def _unpickled(dtype: DType, shape: tuple[int, ...], values: Any) -> Tensor:
    """A tensor of an array's bytes, so that its type is NumPy's own object for it; of bytes the nested list."""
    if dtype.base in (STRING, VARIANT):
        return Tensor(dtype, shape, array=np.array(values, dtype=object).reshape(shape))
    array = np.frombuffer(values, dtype.numpy).reshape(shape)
    return Tensor(dtype, shape, array=array)
