"""TensorLists: what TensorFlow 2 has for TensorArrays; a list is a value, and changing it gives another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.arrays import integer, ints, kept, nothing
from pocketgraph.kernels.registry import Value, kernel
from pocketgraph.kernels.shapes.algebra import merge

LONGEST = 1 << 24  # elements; a list is made of empty places first, whatever a file says


class TensorList:
    """Elements of one type; None where nothing was set.

    Attributes:
        dtype: their type.
        shape: what is known of their shape.
        items: the elements.
        most: how many may be pushed into it; -1 for any number.
    """

    def __init__(self, dtype: DType, shape: Shape, items: list[Value], most: int = -1) -> None:
        self.dtype = dtype
        self.shape = shape
        self.items = items
        self.most = most

    def holding(self, items: list[Value]) -> TensorList:
        """The same kind of list with these elements."""
        return TensorList(self.dtype, self.shape, items, self.most)

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
        shape = self.merged(declared)
        if not shape.is_known:
            shape = self.merged(shape, *[Shape(i.shape) for i in self.items if isinstance(i, np.ndarray)])
        if shape.is_known:
            return nothing(shape.known, self.dtype.numpy)
        raise RunError(f"element {index} of the list was never set, and its shape is not known")

    def merged(self, *shapes: Shape) -> Shape:
        """What is known of the elements' shape with these.

        Raises:
            RunError: they contradict each other.
        """
        found = self.shape
        try:
            for shape in shapes:
                found = merge(found, shape)
        except GraphError as error:
            raise RunError(f"Incompatible shapes of a list's elements: {error.what}") from error
        return found

    def check_type(self, dtype: DType) -> None:
        """Raises:
        RunError: an op takes the elements for ones of another type.
        """
        if dtype is not self.dtype and dtype.base is not self.dtype.base:
            raise RunError(f"Invalid data types; op elements {dtype.name} but list elements {self.dtype.name}")

    def check_item(self, item: Value, dtype: DType) -> None:
        """Raises:
        RunError: what is to be put in is of another type or shape.
        """
        self.check_type(dtype)
        if isinstance(item, np.ndarray) and not self.shape.fits(item.shape):
            raise RunError(f"an element of shape {list(item.shape)} for a list of elements of shape {self.shape}")

    def zeros(self, of: Callable[[Value], Value]) -> TensorList:
        """The list of zeros like the elements; what was never set stays so."""
        return self.holding([None if item is None else of(item) for item in self.items])

    def kept(self) -> TensorList:
        """The list with elements that nobody writes to any more."""
        return self.holding(list(map(kept, self.items)))

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
    return TensorList(element_dtype, as_shape(element_shape), [], integer(max_num_elements))


@kernel("TensorListFromTensor")
def from_tensor(tensor: Array, element_shape: Array, *, element_dtype: DType) -> TensorList:
    if tensor.ndim == 0:
        raise RunError("Tensor must be at least a vector to be made a list of")
    made = TensorList(element_dtype, as_shape(element_shape), [np.asarray(row, dtype=tensor.dtype) for row in tensor])
    _check_rows(made, tensor)
    return made


def _check_rows(made: TensorList, tensor: Array) -> None:
    if not made.shape.fits(tensor.shape[1:]):
        raise RunError(f"Specified a list with shape {made.shape} from a tensor with shape {list(tensor.shape[1:])}")


@kernel("TensorListStack")
def stack(input_handle: TensorList, element_shape: Array, *, element_dtype: DType, num_elements: int = -1) -> Array:
    input_handle.check_type(element_dtype)
    declared = as_shape(element_shape)
    if num_elements not in (-1, len(input_handle.items)):
        raise RunError(f"Expected list with {num_elements} elements, it has {len(input_handle.items)}")
    return _stacked(input_handle, range(len(input_handle.items)), declared)


@kernel("TensorListGather")
def gather(input_handle: TensorList, indices: Array, element_shape: Array, *, element_dtype: DType) -> Array:
    input_handle.check_type(element_dtype)
    return _stacked(input_handle, indices.reshape(-1).tolist(), as_shape(element_shape))


def _stacked(elements: TensorList, indices: Any, declared: Shape) -> Array:
    known = elements.merged(declared)
    values = [elements.element(index, declared) for index in indices]
    if values:
        if not known.fits(np.shape(values[0])):
            raise RunError(f"an element of shape {list(np.shape(values[0]))} where {known} is declared")
        return np.stack(values)
    if not known.is_known:
        raise RunError(f"Tried to stack elements of an empty list with non-fully-defined element_shape: {known}")
    return np.zeros((0, *known.known), elements.dtype.numpy)


@kernel("TensorListGetItem")
def get_item(input_handle: TensorList, index: Array, element_shape: Array, *, element_dtype: DType) -> Value:
    place, items = int(index), input_handle.items
    input_handle.check_type(element_dtype)
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
    input_handle.check_item(item, element_dtype)
    items[place] = item
    return input_handle.holding(items)


@kernel("TensorListPushBack")
def push_back(input_handle: TensorList, tensor: Value, *, element_dtype: DType) -> TensorList:
    count = len(input_handle.items)
    if 0 <= input_handle.most <= count:
        raise RunError(f"Tried to push item into a full list of {count} elements")
    input_handle.check_item(tensor, element_dtype)
    return input_handle.holding([*input_handle.items, tensor])


@kernel("TensorListPopBack")
def pop_back(input_handle: TensorList, element_shape: Array, *, element_dtype: DType) -> tuple[TensorList, Value]:
    if not input_handle.items:
        raise RunError("Trying to pop from an empty list")
    input_handle.check_type(element_dtype)
    last = input_handle.element(len(input_handle.items) - 1, as_shape(element_shape))
    return input_handle.holding(input_handle.items[:-1]), last


@kernel("TensorListLength")
def length(input_handle: TensorList) -> Array:
    return np.asarray(len(input_handle.items), np.int32)


@kernel("TensorListResize")
def resize(input_handle: TensorList, size: Array) -> TensorList:
    count = len(_filled(int(size), input_handle.dtype, input_handle.shape).items)
    stays = input_handle.items[:count]
    return input_handle.holding([*stays, *[None] * (count - len(stays))])


@kernel("TensorListElementShape")
def element_shape(input_handle: TensorList, *, shape_type: DType) -> Array:
    dims = input_handle.shape.dims
    sizes: Any = -1 if dims is None else [-1 if size is None else size for size in dims]
    return np.asarray(sizes, shape_type.numpy)


kernel("TensorListConcatLists")(lambda input_a, input_b: input_a.holding([*input_a.items, *input_b.items]))


@kernel("TensorListConcatV2")
def concat(
    input_handle: TensorList, element_shape: Array, leading_dims: Array, *, element_dtype: DType
) -> tuple[Array, Array]:
    """All elements joined along their first dimension, and the length of each. Those that were never set are zeros, as
    many as ``leading_dims`` says, or the shape where that does not."""
    input_handle.check_type(element_dtype)
    declared, items = as_shape(element_shape), input_handle.items
    set_shapes = [Shape(item.shape) for item in items if item is not None]
    if any(shape.rank == 0 for shape in (declared, input_handle.shape, *set_shapes)):
        raise RunError("Concat requires elements to be at least vectors, found scalars instead.")
    inner = TensorList(element_dtype, _inner(input_handle.shape), []).merged(*map(_inner, (declared, *set_shapes)))
    first, leading = (declared.dims or input_handle.shape.dims or (None,))[0], ints(leading_dims)
    counts = [first if item is None else item.shape[0] for item in items]
    counts = [leading[at] if items[at] is None and at < len(leading) else count for at, count in enumerate(counts)]
    sizes = [count for count in counts if count is not None]
    if not inner.is_known or len(sizes) < len(items):
        raise RunError(f"the elements' shape {declared} tells too little where there are none, or some were never set")
    parts = [np.zeros((0, *inner.known), element_dtype.numpy)]
    parts += [
        nothing((n, *inner.known), element_dtype.numpy) if e is None else e for e, n in zip(items, sizes, strict=True)
    ]
    return np.concatenate(parts), np.asarray(sizes, np.int64)


def _inner(shape: Shape) -> Shape:
    """The shape without its first axis."""
    return Shape(None if shape.dims is None else shape.dims[1:])


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
    made = TensorList(element_dtype, as_shape(element_shape), [])
    if made.shape.rank == 0:
        raise RunError("TensorListSplit requires element_shape to be at least of rank 1")
    if not _inner(made.shape).fits(tensor.shape[1:]):
        raise RunError(f"tensor shape {list(tensor.shape)} is not compatible with element_shape {made.shape}")
    return made.holding([tensor[a:b].copy() for a, b in itertools.pairwise(ends)])


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
    made = _filled(count, element_dtype, as_shape(element_shape))
    _check_rows(made, tensor)
    return _scattered(made, tensor, indices)


@kernel("TensorListScatter")
def scatter_v1(tensor: Array, indices: Array, element_shape: Array, *, element_dtype: DType) -> TensorList:
    """As many elements as the largest index asks for."""
    return scatter(tensor, indices, element_shape, np.array(-1), element_dtype=element_dtype)


@kernel("TensorListPushBackBatch")
def push_back_batch(input_handles: Array, tensor: Array) -> Array:
    """Each list with one row of ``tensor`` behind its elements."""
    if input_handles.shape[:1] != tensor.shape[:1]:
        raise RunError(f"{input_handles.shape[:1]} lists and {tensor.shape[:1]} rows")
    made = np.empty(input_handles.shape, object)
    for place, (items, row) in enumerate(zip(input_handles.tolist(), tensor, strict=True)):
        made[place] = items.holding([*items.items, np.asarray(row, dtype=tensor.dtype)])
    return made


@kernel("TensorListScatterIntoExistingList")
def scatter_into(input_handle: TensorList, tensor: Array, indices: Array, *, element_dtype: DType) -> TensorList:
    """The list is made longer where an index asks for that."""
    input_handle.check_type(element_dtype)
    count = max([len(input_handle.items), *(place + 1 for place in ints(indices))])
    return _scattered(resize(input_handle, np.asarray(count)), tensor, indices)
