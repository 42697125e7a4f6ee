"""Arrays of tensors that loops read and fill: all elements in one tensor, for which the flow, or the list itself,
stands.

    read:   y = GATHER(array, index)
    write:  array = DYNAMIC_UPDATE_SLICE(array, value, [index, 0, ...])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType, Node, Shape, canonical
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import LOWERINGS as LITERT_LOWERINGS
from pocketgraph.litert.lowering import MOVED, Lowering
from pocketgraph.litert.operands import KNOWN
from pocketgraph.litert.program import Value
from pocketgraph.runtime.unrolling.array_origins import COUNTS, written

UPDATED = ("float", "int32", "int64", "int8", "bool")
"""The element types that DYNAMIC_UPDATE_SLICE takes."""


def _array(emit: Emit, node: Node, flow: int) -> Value:
    """The elements: a list is its first input, what a TensorArray holds is its flow."""
    return emit.input(0 if node.op.startswith("TensorList") else flow)


def begin_array(emit: Emit, node: Node) -> None:
    if node.attr("dynamic_size", False):
        raise emit.unsupported("an array that grows has no LiteRT form")
    size = int(emit.static(0, "the size of an array"))
    emit.bind(f"{node.name}:1", _zeros(emit, node, size, node.dtype("dtype"), node.shape("element_shape")))


def reserve(emit: Emit, node: Node) -> Value:
    size = int(emit.static(1, "the size of a list"))
    sizes = emit.static_or_none(0)
    declared = Shape([int(each) for each in sizes]) if sizes is not None and sizes.ndim == 1 else Shape(None)
    if declared.dims is not None and any(each is not None and each < 0 for each in declared.dims):
        declared = Shape(None)
    return _zeros(emit, node, size, node.dtype("element_dtype"), declared)


def _zeros(emit: Emit, node: Node, size: int, dtype: DType, declared: Shape | None) -> Value:
    """An array to begin with, which takes no room in the file."""
    shapes = [declared or Shape(None)]
    for ref, more in written(emit.graph).get(node.name, ()):
        found = emit.inferred.shape(ref)
        shapes.append(Shape(None if found.dims is None else found.dims[more:]))
    element = next((shape for shape in shapes if shape.is_known), None)
    if element is None:
        raise emit.unsupported(f"the shape of the array's elements is not {KNOWN}")
    shape = (size, *element.known)
    zero = emit.const(np.zeros((1,) * len(shape), dtype.numpy))
    return emit.add("BROADCAST_TO", [zero, emit.const(shape, np.int32)], shape)


def scatter(emit: Emit, node: Node) -> Value:
    value, array = emit.input(2), emit.input(3)
    if not _is_whole(emit, value.shape[0]) or value.shape != array.shape:
        raise emit.unsupported("only all elements of an array at once, in their order, can be written")
    return value


def _is_whole(emit: Emit, size: int) -> bool:
    """Whether the indices at hand are those of all elements, in order."""
    indices = emit.static_or_none(1)
    return indices is not None and np.array_equal(indices.reshape(-1), np.arange(size))


def read(emit: Emit, node: Node) -> Value:
    array = emit.require(_array(emit, node, 2), *MOVED)
    index = emit.reshape(emit.input(1), ())
    return emit.add("GATHER", [array, index], array.shape[1:], axis=0, batch_dims=0)


def write(emit: Emit, node: Node) -> Value:
    array, value = emit.require(_array(emit, node, 3), *UPDATED), emit.input(2)
    if value.shape != array.shape[1:] or value.dtype is not array.dtype:
        raise emit.unsupported(f"an element of shape {list(value.shape)} is written into {list(array.shape)}")
    index = emit.reshape(emit.input(1), (1,))
    if index.dtype is not INT32:
        index = emit.add("CAST", [index], (1,), INT32)
    if value.shape:
        zeros = emit.const(np.zeros(len(value.shape), np.int32))
        index = emit.add("CONCATENATION", [index, zeros], (len(array.shape),), axis=0)
    update = emit.reshape(value, (1, *value.shape))
    return emit.add("DYNAMIC_UPDATE_SLICE", [array, update, index], array.shape)


def gather(emit: Emit, node: Node) -> Value:
    array = emit.require(_array(emit, node, 2), *MOVED)
    if not _is_whole(emit, array.shape[0]):
        indices = emit.input(1)
        array = emit.add("GATHER", [array, indices], (*indices.shape, *array.shape[1:]), axis=0, batch_dims=0)
    return array


def size(emit: Emit, node: Node) -> Value:
    return emit.const(_array(emit, node, 1).shape[0], np.int32)


def close(emit: Emit, node: Node) -> None:
    """Only frees memory."""


def slice_of_round(emit: Emit, node: Node) -> Any:
    """``x[:, i]`` of a number ``i`` that changes is a row that is gathered; any other slice is as it is elsewhere."""
    begin = emit.graph.find_producer(emit.ref(1))
    axis = _computed_axis(emit, node, begin) if begin is not None and emit.static_or_none(1) is None else None
    if axis is None or begin is None:
        lowering = LITERT_LOWERINGS.row(node.op)
        assert lowering is not None
        return lowering(emit, node)
    source = emit.require(emit.input(0), *MOVED)
    index = emit.reshape(emit.value(canonical(begin.data_inputs[axis])), ())
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return emit.add("GATHER", [source, index], shape, axis=axis, batch_dims=0)


def _computed_axis(emit: Emit, node: Node, begin: Node) -> int | None:
    """The one axis of which a slice takes one row, and all of the others; None for other slices."""
    masks = {name: int(node.attr(name, 0)) for name in SLICE_MASKS}
    computed = [at for at, ref in enumerate(begin.data_inputs) if emit.known(canonical(ref)) is None]
    if begin.op != "Pack" or len(computed) != 1 or masks["ellipsis_mask"] or masks["new_axis_mask"]:
        return None
    (axis,) = computed
    others = sum(1 << at for at in range(len(begin.data_inputs)) if at != axis)
    is_whole = masks["begin_mask"] & masks["end_mask"] & others == others
    return axis if is_whole and masks["shrink_axis_mask"] == 1 << axis else None


LOWERINGS: dict[str, Lowering] = {
    "TensorArrayV3": begin_array, "TensorListReserve": reserve, "TensorArrayCloseV3": close,
    **dict.fromkeys(("TensorListFromTensor", "TensorListStack"), lambda emit, node: emit.input(0)),
    "TensorArrayScatterV3": scatter, **dict.fromkeys(("TensorArrayReadV3", "TensorListGetItem"), read),
    **dict.fromkeys(("TensorArrayWriteV3", "TensorListSetItem"), write),
    **dict.fromkeys(("TensorArrayGatherV3", "TensorListGather"), gather),
    **dict.fromkeys(COUNTS, size), "StridedSlice": slice_of_round,
}  # fmt: skip
"""By op. They are not among those of ``litert/lowerings``: in a session, parts take no arrays in and give none out."""
