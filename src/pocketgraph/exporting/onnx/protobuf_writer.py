"""The ONNX file: bodies as protobuf messages, constants as initializers, large ones in a file beside it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.element_types import onnx_type
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue, all_operations
from pocketgraph.graph import DType

LARGEST = 2**31 - 2**24  # bytes of one message; protobuf's own limit is 2**31 - 1
ALIGNMENT = 4096  # of constants in the file beside, so that run times can map them
SMALLEST_BESIDE = 1024  # bytes; smaller constants stay in the message


def model_proto(body: Body, opset: int, name: str, producer: str, *, beside: str = "") -> Any:
    """The ModelProto of a graph.

    Args:
        body: the graph.
        opset: the version of the operators.
        name: of the graph.
        producer: the version of who wrote it.
        beside: the path of a file for the constants; "" keeps them in the message.
    """
    import onnx

    used = _used(body)
    model = onnx.ModelProto(
        ir_version=onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]),
        producer_name="pocketgraph",
        producer_version=producer,
    )
    model.opset_import.add(domain="", version=opset)
    graph = model.graph
    graph.name = name
    _fill(graph, body)
    constants = [value for value in used if value.constant is not None]
    if beside:
        with open(beside, "wb") as file:
            for value in constants:
                graph.initializer.append(_tensor(value, file, os.path.basename(beside)))
        if not os.path.getsize(beside):  # no constant is large enough
            os.remove(beside)
    else:
        for value in constants:
            graph.initializer.append(_tensor(value))
    return model


def constant_bytes(body: Body) -> int:
    """How many bytes the constants have."""
    return sum(value.constant.nbytes for value in _used(body) if value.constant is not None)


def _used(body: Body) -> list[OnnxValue]:
    """The values that operators take or that bodies give, each once, in order."""
    found: dict[int, OnnxValue] = {}
    bodies = [body, *(inner for operation in all_operations(body) for inner in operation.bodies.values())]
    for operation in all_operations(body):
        found.update((id(value), value) for value in operation.inputs if value is not None)
    for one in bodies:
        found.update((id(value), value) for value in one.outputs)
    return list(found.values())


def _fill(graph: Any, body: Body) -> None:
    for value in body.inputs:
        _info(graph.input.add(), value)
    for value in body.outputs:
        _info(graph.output.add(), value)
    for operation in body.operations:
        _node(graph.node.add(), operation)


def _info(info: Any, value: OnnxValue) -> None:
    info.name = value.name
    tensor = info.type.tensor_type
    tensor.elem_type = onnx_type(value.dtype)
    if value.shape.dims is None:
        return
    tensor.shape.SetInParent()
    for axis, size in enumerate(value.shape.dims):
        dim = tensor.shape.dim.add()
        if size is None:
            dim.dim_param = f"{value.name}_{axis}" if axis else "batch"
        else:
            dim.dim_value = size


def _node(node: Any, operation: OnnxOperation) -> None:
    import onnx

    node.op_type = operation.code
    node.name = next((value.name for value in operation.outputs if value is not None), operation.code)
    inputs = [value.name if value is not None else "" for value in operation.inputs]
    while inputs and not inputs[-1]:
        inputs.pop()
    node.input.extend(inputs)
    node.output.extend(value.name if value is not None else "" for value in operation.outputs)
    for key, value in operation.attrs.items():
        if isinstance(value, list | tuple) and not value:  # of which ONNX's own helper cannot tell the type
            node.attribute.add(name=key, type=onnx.AttributeProto.INTS)
        else:
            made = _array(value) if isinstance(value, np.ndarray) else value
            node.attribute.append(onnx.helper.make_attribute(key, made))
    for key, body in operation.bodies.items():
        attribute = node.attribute.add(name=key, type=onnx.AttributeProto.GRAPH)
        attribute.g.name = f"{node.name}_{key}"
        _fill(attribute.g, body)


def _tensor(value: OnnxValue, file: Any = None, beside: str = "") -> Any:
    import onnx

    assert value.constant is not None
    if file is None or value.constant.nbytes < SMALLEST_BESIDE or value.dtype.name == "string":
        tensor = _array(value.constant.numpy())
        tensor.name = value.name
        return tensor
    tensor = onnx.TensorProto(name=value.name, data_type=onnx_type(value.dtype), dims=value.constant.shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    file.write(b"\0" * (-file.tell() % ALIGNMENT))
    start = file.tell()
    file.write(np.ascontiguousarray(value.constant.numpy()).tobytes())
    for key, text in (("location", beside), ("offset", str(start)), ("length", str(file.tell() - start))):
        tensor.external_data.add(key=key, value=text)
    return tensor


def _array(array: np.ndarray[Any, Any]) -> Any:
    import onnx

    if array.dtype == object:
        tensor = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=array.shape)
        tensor.string_data.extend(item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1))
        return tensor
    number = onnx_type(DType.of_numpy(array.dtype))
    raw = np.ascontiguousarray(array)
    if raw.dtype.byteorder == ">":
        raw = raw.astype(raw.dtype.newbyteorder("<"))
    return onnx.TensorProto(data_type=number, dims=array.shape, raw_data=raw.tobytes())
