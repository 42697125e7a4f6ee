"""TensorLists: what TensorFlow 2 has for TensorArrays; a list is a value, and changing it gives another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import ints, kept, nothing
from pocketgraph.kernels.registry import Value, kernel

Array = np.ndarray[Any, Any]
LONGEST = 1 << 24  # elements; a list is made of empty places first, whatever a file says


class TensorList:
    """Elements of one type; None where nothing was set.

    Attributes:
        dtype: their type.
        shape: what is known of their shape.
        items: the elements.
    """

    def __init__(self, dtype: DType, shape: Shape, items: list[Value]) -> None:
        self.dtype = dtype
        self.shape = shape
        self.items = items

    def element(self, index: int, declared: Shape) -> Value:
        """One element; zeros where nothing was set but the shape is known.

        Raises:
            RunError: there is no such element, or its shape is not known.
        """
        if not 0 <= index < len(self.items):
            raise RunError(f"Trying to access element {index} in a list with {len(self.items)} elements")
        item = self.items[index]
        if item is not None:
            return item
        for shape in (self.shape, declared, *(Shape(i.shape) for i in self.items if isinstance(i, np.ndarray))):
            if shape.is_known:
                return nothing(shape.known, self.dtype.numpy)
        raise RunError(f"element {index} of the list was never set, and its shape is not known")

    def zeros(self, of: Callable[[Value], Value]) -> TensorList:
        """The list of zeros like the elements; what was never set stays so."""
        return TensorList(self.dtype, self.shape, [None if item is None else of(item) for item in self.items])

    def kept(self) -> TensorList:
        """The list with elements that nobody writes to any more."""
        return TensorList(self.dtype, self.shape, list(map(kept, self.items)))

    def plus(self, other: Any, add: Callable[[Value, Value], Value]) -> TensorList:
        """The sums of this one's elements and another's; an element that is set in one of them only is taken as it is.

        Raises:
            RunError: the other is no list of the same type and length.
        """
        if not isinstance(other, TensorList) or other.dtype != self.dtype:
            raise RunError("Trying to add two lists of tensors of different dtypes")
        if len(other.items) != len(self.items):
            raise RunError(
                f"Trying to add two lists of tensors with different lengths: {len(self.items)} and {len(other.items)}"
            )
        both = zip(self.items, other.items, strict=True)
        return TensorList(
            self.dtype,
            self.shape if self.shape.rank is not None else other.shape,
            [b if a is None else a if b is None else add(a, b) for a, b in both],
        )


def as_shape(value: Array) -> Shape:
    """A shape given as a tensor: -1 for an open size, the scalar -1 for an unknown rank."""
    return Shape(None) if value.ndim == 0 else Shape(int(size) for size in value.tolist())


def _filled(count: int, dtype: DType, shape: Shape) -> TensorList:
    if not 0 <= count <= LONGEST:
        raise RunError(f"a list of {count} elements; at least 0 and at most {LONGEST} are possible")
    return TensorList(dtype, shape, [None] * count)


@kernel("TensorListReserve")
def reserve(element_shape: Array, num_elements: Array, *, element_dtype: DType) -> TensorList:
    return _filled(int(num_elements), element_dtype, as_shape(element_shape))


@kernel("EmptyTensorList")
def empty(element_shape: Array, max_num_elements: Array, *, element_dtype: DType) -> TensorList:
    return TensorList(element_dtype, as_shape(element_shape), [])


@kernel("TensorListFromTensor")
def from_tensor(tensor: Array, element_shape: Array, *, element_dtype: DType) -> TensorList:
    if tensor.ndim == 0:
        raise RunError("Tensor must be at least a vector to be made a list of")
    return TensorList(element_dtype, as_shape(element_shape), [np.asarray(row, dtype=tensor.dtype) for row in tensor])


@kernel("TensorListStack")
def stack(input_handle: TensorList, element_shape: Array, *, element_dtype: DType, num_elements: int = -1) -> Array:
    declared = as_shape(element_shape)
    if num_elements not in (-1, len(input_handle.items)):
        raise RunError(f"Expected list with {num_elements} elements, it has {len(input_handle.items)}")
    return _stacked(input_handle, range(len(input_handle.items)), declared)


@kernel("TensorListGather")
def gather(input_handle: TensorList, indices: Array, element_shape: Array, *, element_dtype: DType) -> Array:
    return _stacked(input_handle, indices.reshape(-1).tolist(), as_shape(element_shape))


def _stacked(elements: TensorList, indices: Any, declared: Shape) -> Array:
    values = [elements.element(index, declared) for index in indices]
    if values:
        return np.stack(values)
    known = declared if declared.is_known else elements.shape
    if not known.is_known:
        raise RunError(f"Tried to stack elements of an empty list with non-fully-defined element_shape: {known}")
    return np.zeros((0, *known.known), elements.dtype.numpy)


@kernel("TensorListGetItem")
def get_item(input_handle: TensorList, index: Array, element_shape: Array, *, element_dtype: DType) -> Value:
    place, items = int(index), input_handle.items
    found = items[place] if 0 <= place < len(items) else None
    return found if found is not None else input_handle.element(place, as_shape(element_shape))


@kernel("TensorListSetItem")
def set_item(
    input_handle: TensorList,
    index: Array,
    item: Value,
    *,
    element_dtype: DType,
    resize_if_index_out_of_bounds: bool = False,
) -> TensorList:
    items, place = list(input_handle.items), int(index)
    if place >= len(items) and resize_if_index_out_of_bounds and place < LONGEST:
        items += [None] * (place + 1 - len(items))
    if not 0 <= place < len(items):
        raise RunError(f"Trying to modify element {place} in a list with {len(items)} elements")
    if isinstance(item, np.ndarray) and not input_handle.shape.fits(item.shape):
        raise RunError(f"an element of shape {list(item.shape)} for a list of elements of shape {input_handle.shape}")
    items[place] = item
    return TensorList(input_handle.dtype, input_handle.shape, items)


@kernel("TensorListPushBack")
def push_back(input_handle: TensorList, tensor: Value, *, element_dtype: DType) -> TensorList:
    return TensorList(input_handle.dtype, input_handle.shape, [*input_handle.items, tensor])


@kernel("TensorListPopBack")
def pop_back(input_handle: TensorList, element_shape: Array, *, element_dtype: DType) -> tuple[TensorList, Value]:
    if not input_handle.items:
        raise RunError("Trying to pop from an empty list")
    last = input_handle.element(len(input_handle.items) - 1, as_shape(element_shape))
    return TensorList(input_handle.dtype, input_handle.shape, input_handle.items[:-1]), last


@kernel("TensorListLength")
def length(input_handle: TensorList) -> Array:
    return np.asarray(len(input_handle.items), np.int32)


@kernel("TensorListResize")
def resize(input_handle: TensorList, size: Array) -> TensorList:
    made = _filled(int(size), input_handle.dtype, input_handle.shape)
    kept = input_handle.items[: len(made.items)]
    made.items[: len(kept)] = kept
    return made


@kernel("TensorListElementShape")
def element_shape(input_handle: TensorList, *, shape_type: DType) -> Array:
    dims = input_handle.shape.dims
    sizes: Any = -1 if dims is None else [-1 if size is None else size for size in dims]
    return np.asarray(sizes, shape_type.numpy)


@kernel("TensorListConcatLists")
def concat_lists(input_a: TensorList, input_b: TensorList, *, element_dtype: DType) -> TensorList:
    return TensorList(input_a.dtype, input_a.shape, [*input_a.items, *input_b.items])


@kernel("TensorListConcatV2")
def concat(
    input_handle: TensorList, element_shape: Array, leading_dims: Array, *, element_dtype: DType
) -> tuple[Array, Array]:
    """All elements joined along their first dimension, and the length of each."""
    declared = as_shape(element_shape)
    values = [input_handle.element(index, declared) for index in range(len(input_handle.items))]
    if not values:
        inner = declared.dims[1:] if declared.dims else ()
        return np.zeros((0, *(size or 0 for size in inner)), input_handle.dtype.numpy), np.zeros(0, np.int64)
    return np.concatenate(values), np.asarray([value.shape[0] for value in values], np.int64)


@kernel("TensorListConcat")
def concat_of_shape(
    input_handle: TensorList, *, element_dtype: DType, element_shape: Shape | None = None
) -> tuple[Array, Array]:
    """The same; the shape is an attribute."""
    dims = element_shape.dims if element_shape is not None else None
    sizes: Any = -1 if dims is None else [-1 if size is None else size for size in dims]
    return concat(input_handle, np.asarray(sizes, np.int32), np.zeros(0, np.int64), element_dtype=element_dtype)


@kernel("TensorListSplit")
def split_list(tensor: Array, element_shape: Array, lengths: Array, *, element_dtype: DType) -> TensorList:
    """The rows of a tensor, ``lengths`` of them an element."""
    counts = ints(lengths)
    if not tensor.ndim or lengths.ndim != 1 or sum(counts) != tensor.shape[0] or any(count < 0 for count in counts):
        raise RunError(f"lengths {list(counts)[:20]} do not share out the {list(tensor.shape[:1])} rows of the tensor")
    ends = np.cumsum([0, *counts]).tolist()
    shape = as_shape(element_shape)
    return TensorList(element_dtype, shape, [tensor[a:b].copy() for a, b in itertools.pairwise(ends)])


def _scattered(made: TensorList, tensor: Array, indices: Array) -> TensorList:
    for index, row in zip(indices.reshape(-1).tolist(), tensor, strict=True):
        if not 0 <= index < len(made.items):
            raise RunError(f"Trying to scatter to element {index} in a list with {len(made.items)} elements")
        made.items[index] = np.asarray(row, dtype=tensor.dtype)
    return made


@kernel("TensorListScatterV2")
def scatter(
    tensor: Array, indices: Array, element_shape: Array, num_elements: Array, *, element_dtype: DType
) -> TensorList:
    count = int(num_elements)
    if count < 0:
        count = int(indices.max()) + 1 if indices.size else 0
    return _scattered(_filled(count, element_dtype, as_shape(element_shape)), tensor, indices)


@kernel("TensorListScatter")
def scatter_v1(tensor: Array, indices: Array, element_shape: Array, *, element_dtype: DType) -> TensorList:
    """As many elements as the largest index asks for."""
    count = int(indices.max()) + 1 if indices.size else 0
    return _scattered(_filled(count, element_dtype, as_shape(element_shape)), tensor, indices)


@kernel("TensorListPushBackBatch")
def push_back_batch(input_handles: Array, tensor: Array, *, element_dtype: DType) -> Array:
    """Each list with one row of ``tensor`` behind its elements."""
    if input_handles.shape[:1] != tensor.shape[:1]:
        raise RunError(f"{input_handles.shape[:1]} lists and {tensor.shape[:1]} rows")
    made = np.empty(input_handles.shape, object)
    for place, (items, row) in enumerate(zip(input_handles.tolist(), tensor, strict=True)):
        made[place] = TensorList(items.dtype, items.shape, [*items.items, np.asarray(row, dtype=tensor.dtype)])
    return made


@kernel("TensorListScatterIntoExistingList")
def scatter_into(input_handle: TensorList, tensor: Array, indices: Array, *, element_dtype: DType) -> TensorList:
    made = TensorList(input_handle.dtype, input_handle.shape, list(input_handle.items))
    return _scattered(made, tensor, indices)
