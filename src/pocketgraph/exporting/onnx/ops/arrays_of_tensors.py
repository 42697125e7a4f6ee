"""TensorArray and TensorList: all elements in one tensor, which is what the flow (or the list itself) stands for."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.pass_through import filled
from pocketgraph.graph import DType, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import INT32, INT64
from pocketgraph.runtime.unrolling.array_origins import WRITES, origin, written


@converts("TensorArrayV3", "TensorArrayV2")
def array(emit: OnnxEmit, node: Node) -> None:
    size = emit.vector(emit.input(0))
    dtype = plain_type(node.dtype("dtype"))
    if node.attr("dynamic_size", False):
        grown = _grown(emit, node, int(emit.static(0, "the size of an array that grows")))
        size = size if grown is None else emit.ints([grown])
    emit.result(_begun(emit, node, size, dtype, node.shape("element_shape")), 1)


@converts("TensorListReserve", "EmptyTensorList")
def reserved(emit: OnnxEmit, node: Node) -> OnnxValue:
    if node.op == "EmptyTensorList":
        raise emit.unsupported("lists that grow have no ONNX form")
    size = emit.vector(emit.input(1))
    dtype = plain_type(node.dtype("element_dtype"))
    numbers = emit.numbers(0)
    shape = None
    if numbers is not None and emit.ref(0) and numbers != [-1]:
        shape = Shape([-1 if n is None else n for n in numbers])
    return _begun(emit, node, size, dtype, shape)


def _begun(emit: OnnxEmit, node: Node, size: OnnxValue, dtype: DType, declared: Shape | None) -> OnnxValue:
    """An array of zeros; one whose elements' shape is not known yet holds nothing, and takes no writes but a whole."""
    shape = declared if declared is not None and declared.is_known else _element(emit, node)
    count = None if size.constant is None else int(size.constant.numpy()[0])
    ranked = declared.dims if shape is None and declared is not None else None
    if count == 1 and ranked is not None and not _grows(emit, node):
        dims = emit.ints([1, *(length or 0 for length in ranked)])  # without numbers: a write replaces all
        made = emit.op("ConstantOfShape", [dims], Shape([1, *ranked]), dtype, value=np.zeros(1, dtype.numpy))
    elif shape is None or not shape.is_known:
        made = _unmade(emit, node, dtype)
    elif _grows(emit, node):
        made = _zeros(emit, size, Shape([None, *shape]), dtype)
        emit.arrays.add(made)
        return made
    else:
        dims = emit.concat([size, emit.ints(shape.known)])
        like = OnnxValue("", dtype, Shape([count, *shape]))
        made = filled(emit, dims, np.zeros(1, dtype.numpy), like)
        if made.constant is not None:
            made = emit.constant(made.constant, node.name)
    emit.arrays.add(made)
    emit.sizes[made] = size
    return made


def _unmade(emit: OnnxEmit, node: Node, dtype: DType) -> OnnxValue:
    """An array of which nothing is known but that it is one; a loop that fills it makes it."""
    made = OnnxValue(emit.name(node.name), dtype, Shape(None), emit.body)
    made.is_made = False
    emit.arrays.add(made)
    return made


def _grown(emit: OnnxEmit, node: Node, size: int) -> int | None:
    """The size of a growing array at its end; None where a write's index is computed."""
    for other in emit.graph:
        if other.op not in WRITES or origin(emit.graph, canonical(other.data_inputs[0])) != node.name:
            continue
        known = emit.known(canonical(other.data_inputs[2 if other.op == "TensorArraySplitV3" else 1]))
        if known is None:
            return None
        indices = known.numpy()
        last = indices.size - 1 if other.op == "TensorArraySplitV3" else int(np.max(indices, initial=-1))
        size = max(size, last + 1)
    return size


def _grows(emit: OnnxEmit, maker: Node | None) -> bool:
    """Whether writes make an array longer, by indices that are found while running."""
    if maker is None:
        return False
    if maker.op.startswith("TensorArray"):
        return bool(maker.attr("dynamic_size", False)) and _grown(emit, maker, 0) is None
    writes = [other for other in emit.graph if other.attr("resize_if_index_out_of_bounds", False)]
    return any(_maker(emit, other.data_inputs[0]) == maker for other in writes)


def _maker(emit: OnnxEmit, ref: str) -> Node | None:
    """The node that made an array; None where it comes from outside."""
    return emit.graph.nodes.get(origin(emit.graph, canonical(ref)))


def _zeros(emit: OnnxEmit, count: OnnxValue, shape: Shape, dtype: DType) -> OnnxValue:
    """Some elements of an array, whose own sizes are known."""
    dims = emit.concat([count, emit.ints(_rows(shape).known)])
    return emit.op("ConstantOfShape", [dims], shape, dtype, value=np.zeros(1, dtype.numpy))


def _with_place(emit: OnnxEmit, held: OnnxValue, index: OnnxValue) -> OnnxValue:
    """An array that has an element of an index, a vector of one; zeros are put behind it where it has none."""
    wanted = emit.op("Add", [index, emit.ints([1])], [1])
    more = emit.op("Max", [emit.op("Sub", [wanted, emit.dim(held, 0)], [1]), emit.ints([0])], [1])
    zeros = _zeros(emit, more, Shape([None, *_rows(held.shape)]), held.dtype)
    return emit.op("Concat", [held, zeros], zeros.shape, axis=0)


def _element(emit: OnnxEmit, node: Node) -> Shape | None:
    """The shape of an array's elements, by what is written into it."""
    for ref, more in written(emit.graph).get(node.name, ()):
        shape = emit.inferred.shape(ref)
        if shape.dims is not None and Shape(shape.dims[more:]).is_known:
            return Shape(shape.dims[more:])
    return None


def _held(emit: OnnxEmit, index: int) -> OnnxValue:
    """An array as a tensor."""
    value = emit.input(index)
    if not value.is_made and value.first is None:
        raise emit.unsupported("the shape of the array's elements is not known; state the shapes of the inputs")
    return value


@converts("TensorArrayReadV3", "TensorListGetItem", "TensorArrayReadV2")
def read(emit: OnnxEmit, node: Node) -> OnnxValue:
    held = _held(emit, 2 if node.op.startswith("TensorArray") else 0)
    index = emit.input(1)
    return emit.op("Gather", [held, emit.reshape(index, [])], _rows(held.shape), axis=0)


def _rows(shape: Shape) -> Shape:
    return Shape(None if shape.dims is None else shape.dims[1:])


@converts("TensorArrayWriteV3", "TensorListSetItem", "TensorArrayWriteV2")
def write(emit: OnnxEmit, node: Node) -> OnnxValue:
    is_list = node.op == "TensorListSetItem"
    array, value = emit.input(0 if is_list else 3), emit.input(2)
    if node.name in emit.scanned:
        emit.scanned[node.name] = emit.made(value)
        return array
    held = _held(emit, 0 if is_list else 3)
    if held.shape.dims is not None and held.shape[0] == 1 and not held.shape.is_known:
        return _changed(emit, emit.unsqueeze(value, [0]), held)
    index = emit.reshape(emit.as_int64(emit.input(1)), [1])
    if _grows(emit, _maker(emit, node.data_inputs[0])):
        held = _with_place(emit, held, index)
    made = emit.op("ScatterND", [held, emit.unsqueeze(index, [0]), emit.unsqueeze(value, [0])], held.shape)
    return _changed(emit, made, held)


def _changed(emit: OnnxEmit, made: OnnxValue, before: OnnxValue) -> OnnxValue:
    """An array that was written to, of the size that it had."""
    emit.arrays.add(made)
    if before in emit.sizes:
        emit.sizes[made] = emit.sizes[before]
    return made


@converts("TensorArrayGatherV3", "TensorListGather")
def gather(emit: OnnxEmit, node: Node) -> OnnxValue:
    held = _held(emit, 2 if node.op.startswith("TensorArray") else 0)
    indices = emit.input(1)
    known = emit.static_or_none(1)
    count = held.shape[0] if held.shape.dims is not None else None
    is_whole = known is not None and count == len(known) and list(known) == list(range(count or 0))
    if is_whole or _counts_all(emit, node):
        return held
    shape = Shape(None) if held.shape.dims is None else Shape([None, *held.shape.dims[1:]])
    return emit.op("Gather", [held, emit.vector(indices)], shape, axis=0)


def _counts_all(emit: OnnxEmit, node: Node) -> bool:
    """Whether the indices are a Range from 0 to the array's own size."""
    source = emit.graph.nodes.get(node_name(node.data_inputs[1]))
    if source is None or source.op != "Range":
        return False
    limit = emit.graph.nodes.get(node_name(source.data_inputs[1]))
    start, step = (emit.known(canonical(source.data_inputs[place])) for place in (0, 2))
    if limit is None or limit.op != "TensorArraySizeV3" or start is None or step is None:
        return False
    same = origin(emit.graph, canonical(limit.data_inputs[0])) == origin(emit.graph, canonical(node.data_inputs[0]))
    return same and int(start.numpy()) == 0 and int(step.numpy()) == 1


converts("TensorListStack")(lambda emit, node: _held(emit, 0))


@converts("TensorListFromTensor")
def from_tensor(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    held = value if value.is_made else emit.made(value)
    if _grows(emit, node):
        held = emit.op("Identity", [held], Shape(None if held.shape.dims is None else [None, *held.shape.dims[1:]]))
    else:
        emit.sizes[held] = emit.dim(held, 0)
    emit.arrays.add(held)
    emit.bound[f"{node.name}:0"] = held


@converts("TensorArrayScatterV3")
def scatter(emit: OnnxEmit, node: Node) -> OnnxValue:
    array, value = emit.input(3), emit.made(emit.input(2))
    known = emit.static_or_none(1)
    rows = value.shape[0] if value.shape.dims is not None else None
    in_order = known is not None and list(known) == list(range(len(known)))
    indices = emit.graph.nodes.get(node_name(node.data_inputs[1]))
    if in_order or (known is None and indices is not None and indices.op == "Range"):
        count = array.shape[0] if array.shape.dims is not None else None
        if count is None or count == rows or known is None:
            shape = value.shape
            if shape.dims is not None and _grows(emit, _maker(emit, node.data_inputs[0])):
                shape = Shape([None, *shape.dims[1:]])
            return _changed(emit, emit.op("Identity", [value], shape), array)
    held = _held(emit, 3)
    places = emit.unsqueeze(emit.vector(emit.input(1)), [1])
    return _changed(emit, emit.op("ScatterND", [held, places, value], held.shape), array)


@converts("TensorArraySplitV3")
def split(emit: OnnxEmit, node: Node) -> OnnxValue:
    """Parts of equal length become elements; of other lengths they have no common shape."""
    value, lengths = emit.input(1), np.asarray(emit.static(2, "the lengths of the parts"))
    if len(set(lengths.tolist())) != 1:
        raise emit.unsupported("parts of different lengths have no ONNX form")
    rows = list(value.shape)[1:]
    made = emit.reshape(value, [len(lengths), int(lengths[0]), *rows])
    if made is value:
        made = emit.op("Identity", [value], value.shape)
    return _changed(emit, made, emit.input(3))


@converts("TensorArrayConcatV3", "TensorListConcatV2")
def concat(emit: OnnxEmit, node: Node) -> None:
    held = _held(emit, 1 if node.op.startswith("TensorArray") else 0)
    if held.shape.dims is None or not _rows(held.shape).is_known:
        raise emit.unsupported("the shape of the array's elements is not known; state the shapes of the inputs")
    rows = _rows(held.shape).known
    count = held.shape.dims[0]
    emit.result(emit.reshape(held, [None if count is None else count * rows[0], *rows[1:]]))
    lengths = OnnxValue("", INT64, Shape([count]))
    emit.result(filled(emit, emit.dim(held, 0), np.full(1, rows[0], np.int64), lengths), 1)


@converts("TensorArraySizeV3", "TensorListLength")
def size(emit: OnnxEmit, node: Node) -> OnnxValue:
    value = emit.input(1 if node.op.startswith("TensorArray") else 0)
    count = emit.sizes.get(value)
    if count is None:
        count = emit.dim(value, 0)
    return emit.cast(emit.reshape(count, []), INT32)


@converts("TensorArrayCloseV3", "TensorArrayCloseV2")
def close(emit: OnnxEmit, node: Node) -> None:
    return
