"""TensorArrays: numbered tensors that a loop writes and reads one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pocketgraph.budgets import check_memory
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.arrays import nothing
from pocketgraph.kernels.registry import Context, kernel

PLACE = 128  # bytes that Python needs for the number of an element and the array that it is
FLOW = np.float32(0)  # the value of the edges that only order reads after writes


@dataclass(eq=False)
class TensorArray:
    """The tensors, by index.

    Attributes:
        name: for errors.
        dtype: the elements' type.
        size: how many elements it is said to have.
        dynamic: whether writing past the end makes it longer.
        clear_after_read: whether reading an element gives it up.
        same_shapes: whether the first write fixes the shape of all.
        shape: what is known of every element's shape.
        accumulates: a gradient's: writing the same element again adds.
        gradients: the gradients made of it, by source.
    """

    name: str
    dtype: DType
    size: int
    shape: Shape
    dynamic: bool = False
    clear_after_read: bool = True
    same_shapes: bool = False
    accumulates: bool = False
    gradients: dict[str, TensorArray] = field(default_factory=dict, init=False)
    elements: dict[int, Array] = field(default_factory=dict, init=False)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False)
    spent: set[int] = field(default_factory=set, init=False)
    is_open: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if self.size < 0:
            raise self.error(f"Size should be >= 0, not {self.size}")
        self.kind = None if self.dtype in (RESOURCE, VARIANT) else self.dtype.numpy

    def error(self, what: str) -> RunError:
        """An error that names this array, to be raised."""
        return RunError(what, where=f"TensorArray '{self.name}'")

    def write(self, index: int, value: Array) -> None:
        """Puts one element.

        Raises:
            RunError: out of bounds, written or read before, or of another dtype or shape.
        """
        self._check_open()
        if index < 0 or (index >= self.size and not self.dynamic):
            raise self.error(f"Tried to write to index {index} but array is not resizeable and size is: {self.size}")
        if value.dtype is not self.kind and value.dtype != self.dtype.numpy:
            raise self.error(f"Could not write to index {index}: value is {value.dtype}, the array {self.dtype.name}")
        if not self.shape.fits(value.shape):
            raise self.error(
                f"Could not write to TensorArray index {index} because the value shape is {list(value.shape)} "
                f"which is incompatible with the TensorArray's inferred element shape: {self.shape}"
            )
        if index in self.spent:
            raise self.error(f"Could not write to TensorArray index {index} because it has already been read")
        if index in self.elements:
            if not self.accumulates:
                raise self.error(f"Could not write to TensorArray index {index} because it has already been written to")
            value = self.elements[index] + value
        elif self.same_shapes and not self.shape.is_known:
            self.shape = Shape(value.shape)
        if index >= self.size:
            self.size = index + 1
        self.elements[index] = value
        self.shapes[index] = value.shape

    def read(self, index: int) -> Array:
        """Takes one element; zeros when it was never written but its shape is known.

        Raises:
            RunError: out of bounds, or read before and cleared by that, or never written.
        """
        self._check_open()
        if index < 0 or index >= self.size:
            raise self.error(f"Tried to read from index {index} but array size is: {self.size}")
        value = self.elements.get(index)
        if value is None:
            if index in self.spent:
                raise self.error(
                    f"Could not read index {index} twice because it was cleared after a previous read "
                    "(perhaps try setting clear_after_read = false?)"
                )
            shape = self.shapes.get(index, self.shape.known if self.shape.is_known else None)
            if shape is None:
                raise self.error(
                    f"Could not read from TensorArray index {index}. Furthermore, the element shape is not fully "
                    f"defined: {self.shape}"
                )
            return nothing(shape, self.dtype.numpy)
        if self.clear_after_read:
            del self.elements[index]
            self.spent.add(index)
        return value

    def read_many(self, indices: list[int], declared: Shape) -> list[Array]:
        """Takes several elements; they must agree in shape and fit ``declared``."""
        quick = self._all_at_once(indices, declared)
        if quick is not None:
            return quick
        values = [self.read(index) for index in indices]
        for index, value in zip(indices, values, strict=True):
            if not declared.fits(value.shape) or (value.ndim and value.shape[1:] != values[0].shape[1:]):
                raise self.error(f"element {index} has shape {list(value.shape)}, which does not fit the others")
        return values

    def _all_at_once(self, indices: list[int], declared: Shape) -> list[Array] | None:
        """Several elements where each is there, once, and all have one shape; None where not, and nothing is taken."""
        elements = self.elements
        try:
            values = [elements[index] for index in indices]
        except KeyError:
            return None
        shape = values[0].shape if values else ()
        if not values or not self.is_open or len(set(indices)) < len(indices) or not declared.fits(shape):
            return None
        if any(value.shape != shape for value in values):
            return None
        if self.clear_after_read:
            for index in indices:
                del elements[index]
            self.spent.update(indices)
        return values

    def empty_shape(self, declared: Shape, skip: int) -> tuple[int, ...]:
        """The element shape (from dimension ``skip`` on) for packing no elements at all."""
        for shape in (declared, self.shape):
            if shape.dims is not None and None not in shape.dims[skip:]:
                return tuple(size for size in shape.dims[skip:] if size is not None)
        raise self.error(
            f"TensorArray has size zero, but element shape {self.shape} is not fully defined. Currently only static "
            "shapes are supported when packing zero-size TensorArrays"
        )

    def gradient(self, source: str, prepend: tuple[int, ...] = ()) -> TensorArray:
        """The array that collects the gradients of this one's elements; one for each source.

        Its elements have the sizes ``prepend`` in front of those of this array's, when it is made.
        """
        if source not in self.gradients:
            made = TensorArray(
                f"{self.name}@{source}", self.dtype, self.size, Shape(None), clear_after_read=False, accumulates=True
            )
            made.shapes = {index: prepend + shape for index, shape in self.shapes.items()}
            if prepend and self.shape.is_known:
                made.shape = Shape(prepend + self.shape.known)
            self.gradients[source] = made
        return self.gradients[source]

    def _check_open(self) -> None:
        if not self.is_open:
            raise self.error("TensorArray has already been closed")


@kernel("TensorArrayV3")
def tensor_array_v3(
    size: Array,
    *,
    dtype: DType,
    element_shape: Shape = Shape(None),
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str = "",
    context: Context,
) -> tuple[TensorArray, Array]:
    """An empty array of ``size`` elements, and its first flow."""
    made = TensorArray(
        tensor_array_name or context.node.name, dtype.base, int(size), element_shape, dynamic=dynamic_size,
        clear_after_read=clear_after_read, same_shapes=identical_element_shapes,
    )  # fmt: skip
    return made, np.asarray(FLOW)


@kernel("TensorArray", "TensorArrayV2")
def tensor_array(
    size: Array,
    *,
    dtype: DType,
    element_shape: Shape = Shape(None),
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    tensor_array_name: str = "",
    context: Context,
) -> TensorArray:
    return TensorArray(
        tensor_array_name or context.node.name, dtype.base, int(size), element_shape, dynamic=dynamic_size,
        clear_after_read=clear_after_read,
    )  # fmt: skip


@kernel("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3")
def tensor_array_write(handle: TensorArray, index: Array, value: Array, flow_in: Array) -> Array:
    handle.write(int(index), value)
    return flow_in


@kernel("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def tensor_array_read(handle: TensorArray, index: Array, flow_in: Array, *, dtype: DType) -> Array:
    if dtype.base is not handle.dtype:
        raise handle.error(f"TensorArray dtype is {handle.dtype.name} but Op requested dtype {dtype.name}")
    return handle.read(int(index))


@kernel("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3")
def tensor_array_gather(
    handle: TensorArray, indices: Array, flow_in: Array, *, element_shape: Shape = Shape(None)
) -> Array:
    return _packed(handle, indices.reshape(-1).tolist(), element_shape)


@kernel("TensorArrayPack")
def tensor_array_pack(handle: TensorArray, flow_in: Array, *, element_shape: Shape = Shape(None)) -> Array:
    check_memory(PLACE * handle.size, f"{handle.size:,} elements of a TensorArray")
    return _packed(handle, list(range(handle.size)), element_shape)


def _packed(array: TensorArray, indices: list[int], declared: Shape) -> Array:
    if not indices:
        return np.zeros((0, *array.empty_shape(declared, 0)), array.dtype.numpy)
    check_memory(PLACE * len(indices), f"{len(indices):,} elements of a TensorArray")
    values = array.read_many(indices, declared)
    check_memory(len(values) * values[0].nbytes, "all elements of a TensorArray")
    if any(value.shape != values[0].shape for value in values):
        return np.stack(values)  # which says so
    return np.concatenate([value.reshape(-1) for value in values]).reshape(len(values), *values[0].shape)


@kernel("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def tensor_array_concat(
    handle: TensorArray, flow_in: Array, *, dtype: DType, element_shape_except0: Shape = Shape(None)
) -> tuple[Array, Array]:
    """All elements joined along their first dimension, and the length of each."""
    if handle.size == 0:
        known = element_shape_except0
        declared = Shape(None) if known.dims is None else Shape((None, *known.dims))
        return np.zeros((0, *handle.empty_shape(declared, 1)), dtype.numpy), np.zeros((0,), np.int64)
    check_memory(PLACE * handle.size, f"{handle.size:,} elements of a TensorArray")
    values = handle.read_many(list(range(handle.size)), Shape(None))
    check_memory(sum([value.nbytes for value in values]), "all elements of a TensorArray")
    if any(value.ndim == 0 for value in values):
        raise handle.error("Concat saw a scalar shape but requires at least vectors")
    for index, value in enumerate(values):
        if not element_shape_except0.fits(value.shape[1:]):
            raise handle.error(f"element {index} of shape {list(value.shape)} does not fit {element_shape_except0}")
    return np.concatenate(values), np.asarray([value.shape[0] for value in values], np.int64)


@kernel("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3")
def tensor_array_scatter(handle: TensorArray, indices: Array, value: Array, flow_in: Array) -> Array:
    if value.ndim == 0 or value.shape[0] != indices.size:
        raise handle.error(f"{indices.size} indices for a value of shape {list(value.shape)}")
    for index, element in zip(indices.reshape(-1).tolist(), value, strict=True):
        handle.write(index, np.asarray(element, dtype=value.dtype))
    return flow_in


@kernel("TensorArrayUnpack")
def tensor_array_unpack(handle: TensorArray, value: Array, flow_in: Array) -> Array:
    return tensor_array_scatter(handle, np.arange(value.shape[0] if value.ndim else -1), value, flow_in)


@kernel("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3")
def tensor_array_split(handle: TensorArray, value: Array, lengths: Array, flow_in: Array) -> Array:
    """Writes consecutive pieces of ``value``, ``lengths`` rows each."""
    sizes = lengths.reshape(-1).tolist()
    if value.ndim == 0 or sum(sizes) != value.shape[0] or any(size < 0 for size in sizes):
        raise handle.error(f"the lengths {sizes} do not add up to the first dimension of {list(value.shape)}")
    if not handle.dynamic and handle.size != len(sizes):
        raise handle.error(f"TensorArray's size is not equal to the size of lengths ({handle.size} vs. {len(sizes)})")
    start = 0
    for index, size in enumerate(sizes):
        handle.write(index, value[start : start + size])
        start += size
    return flow_in


@kernel("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3")
def tensor_array_size(handle: TensorArray, flow_in: Array) -> Array:
    return np.asarray(handle.size, np.int32)


@kernel("TensorArrayGrad", "TensorArrayGradV2")
def tensor_array_grad(handle: TensorArray, flow_in: Array, *, source: str) -> TensorArray:
    return handle.gradient(source)


@kernel("TensorArrayGradV3")
def tensor_array_grad_v3(handle: TensorArray, flow_in: Array, *, source: str) -> tuple[TensorArray, Array]:
    return handle.gradient(source), flow_in


@kernel("TensorArrayGradWithShape")
def tensor_array_grad_with_shape(
    handle: TensorArray, flow_in: Array, shape_to_prepend: Array, *, source: str
) -> tuple[TensorArray, Array]:
    """Gradients of elements that have more axes in front than the elements themselves."""
    sizes = tuple(int(size) for size in shape_to_prepend.ravel())
    if any(size < 0 for size in sizes):
        raise RunError(f"the shape {list(sizes)} to put in front of gradients is not known")
    return handle.gradient(source, sizes), flow_in


@kernel("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3")
def tensor_array_close(handle: TensorArray) -> tuple[()]:
    handle.elements.clear()
    handle.is_open = False
    return ()
