"""Turns a program into the bytes of a LiteRT model file, one weight at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from pocketgraph.litert import flatbuffer, schema
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value

LIMIT = 2**31 - 2**20  # a FlatBuffer points with 31 bits; bytes beyond are referred to by file offset

_ENUMS = {"padding": schema.PADDINGS, "activation": schema.ACTIVATIONS, "mode": schema.MIRROR_PAD_MODES}


def pieces(program: Program, unnamed: Collection[Value] = ()) -> Iterator[bytes | memoryview]:
    """The file's bytes in order. Each constant is computed when its turn comes and let go afterwards.

    Args:
        program: what the file holds.
        unnamed: values whose names are left out of the file.
    """
    values = _values(program)
    index = {value: number for number, value in enumerate(values)}
    constants = [value.constant for value in values if value.constant is not None and value.constant.nbytes]
    outside = sum(constant.nbytes + flatbuffer.Blob.ALIGNMENT for constant in constants) > LIMIT
    blobs = [flatbuffer.Blob(constant.nbytes) for constant in constants]
    buffers: list[flatbuffer.Table] = [()]
    names = ["" if value in unnamed else value.name for value in values]
    if outside:
        head = _layout_outside(program, values, names, index, constants, blobs)
    else:
        buffers += [((0, "blob", blob),) for blob in blobs]
        head, blobs, _ = flatbuffer.layout(_model(program, values, names, index, buffers), schema.IDENTIFIER)
    yield head
    position = len(head)
    for blob, constant in zip(blobs, constants, strict=True):
        yield bytes(blob.position - position) if outside else flatbuffer.prefix(blob, position)
        yield np.ascontiguousarray(constant.numpy()).reshape(-1).view(np.uint8).data
        position = blob.position + blob.size


def _layout_outside(
    program: Program,
    values: list[Value],
    names: list[str],
    index: dict[Value, int],
    constants: list[Constant],
    blobs: list[flatbuffer.Blob],
) -> bytes:
    """The head of a file whose constants lie behind the FlatBuffer; sets the blobs' positions."""

    def head(start: int) -> bytes:
        position = start
        buffers: list[flatbuffer.Table] = [()]
        for blob in blobs:
            position = -(-position // flatbuffer.Blob.ALIGNMENT) * flatbuffer.Blob.ALIGNMENT
            blob.position = position
            buffers.append(((1, "u64", position), (2, "u64", blob.size)))
            position += blob.size
        return flatbuffer.layout(_model(program, values, names, index, buffers), schema.IDENTIFIER)[0]

    return head(len(head(0)))


def _values(program: Program) -> list[Value]:
    found = dict.fromkeys(program.inputs)
    for operation in program.operations:
        found.update(dict.fromkeys(value for value in operation.inputs if value is not None))
        found.update(dict.fromkeys(operation.outputs))
    return list(found)


def _model(
    program: Program,
    values: list[Value],
    names: list[str],
    index: dict[Value, int],
    buffers: list[flatbuffer.Table],
) -> flatbuffer.Table:
    codes: dict[str, int] = {}
    for operation in program.operations:
        codes.setdefault(operation.code, len(codes))
    tensors = []
    buffer = 0
    for value, name in zip(values, names, strict=True):
        fields: list[flatbuffer.Entry] = [
            (0, "=[i32]", value.shape),
            (1, "i8", schema.TENSOR_TYPES[value.dtype.name]),
            (8, "bool", True),
        ]
        if name:
            fields.append((3, "string", name))
        if value.constant is not None and value.constant.nbytes:
            buffer += 1
            fields.append((2, "u32", buffer))
        if value.quantization is not None:
            fields.append((4, "=table", _quantization(value.quantization)))
        tensors.append(fields)
    subgraph: flatbuffer.Table = (
        (0, "[table]", tensors),
        (1, "[i32]", [index[value] for value in program.inputs]),
        (2, "[i32]", [index[value] for value in program.outputs]),
        (3, "[table]", [_operator(operation, codes, index) for operation in program.operations]),
        (4, "string", "main"),
    )
    return (
        (0, "u32", schema.VERSION),
        (1, "[table]", [_operator_code(schema.OPERATORS[code]) for code in codes]),
        (2, "[table]", [subgraph]),
        (3, "string", "pocketgraph"),
        (4, "[table]", buffers),
    )


def _quantization(quantization: Quantization) -> flatbuffer.Table:
    """What codes stand for, once in the file for all tensors that share them; no scale is 0, which has two forms."""
    table = (2, "=[f32]", quantization.scales), (3, "=[i64]", quantization.zero_points)
    return (*table, (6, "i32", quantization.axis)) if len(quantization.scales) > 1 else table


def _operator_code(operator: schema.Operator) -> flatbuffer.Table:
    return (0, "i8", min(operator.number, 127)), (2, "i32", operator.version), (3, "i32", operator.number)


def _operator(operation: Operation, codes: dict[str, int], index: dict[Value, int]) -> flatbuffer.Table:
    fields: list[flatbuffer.Entry] = [
        (0, "u32", codes[operation.code]),
        (1, "[i32]", [-1 if value is None else index[value] for value in operation.inputs]),
        (2, "[i32]", [index[value] for value in operation.outputs]),
    ]
    name = schema.OPERATORS[operation.code].options
    if name:
        options = schema.OPTIONS[name]
        table = tuple(
            [
                (options.fields[key].slot, options.fields[key].kind, _number(key, value))
                for key, value in operation.options.items()
            ]
        )
        # Equal floats may be a zero and its negative.
        kind = "table" if any(entry[1] == "f32" for entry in table) else "=table"
        fields += [(3, "u8", options.number), (4, kind, table)]
    return fields


def _number(key: str, value: Any) -> Any:
    return _ENUMS[key][value] if key in _ENUMS else value
