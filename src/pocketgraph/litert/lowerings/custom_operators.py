"""Nodes as custom operators: under the op's name, with the node's attributes as options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Node, Shape, opdefs
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.writing.flexbuffer import FlexValue, flex_map
from pocketgraph.litert.writing.writer import CUSTOM

if TYPE_CHECKING:
    from pocketgraph.litert.emitter import Emit


def emit_custom(emit: Emit, node: Node) -> None:
    """Emits a custom operator for a node, which whoever runs the file has to register under the op's name.

    Raises:
        Unsupported: the shape or type of an operand or result is not known, or no tensor of LiteRT has it.
    """
    inputs: list[Value | None] = [emit.value(ref if ":" in ref else f"{ref}:0") for ref in node.data_inputs]
    try:
        count = len(opdefs.output_dtypes(node))
    except GraphError as error:
        raise emit.unsupported(f"{node.op} is not known: {error.what}") from error
    outputs = []
    for port in range(count):
        dtype, shape = emit.output(port)
        emit.check(dtype, shape)
        outputs.append(Value(f"{node.name}:{port}", dtype, shape))
    options = {"custom": flex_map(attributes(node))}
    emit.operations.append(Operation(CUSTOM + node.op, inputs, outputs, options, (node.name,)))
    emit.computed.update(outputs)
    for port, value in enumerate(outputs):
        emit.values[f"{node.name}:{port}"] = value


def attributes(node: Node) -> dict[str, FlexValue]:
    """A node's attributes as a custom operator's options: numbers, truths, texts and lists of these; a type by its
    DataType number. Others, such as shapes and tensors, are left out."""
    found: dict[str, FlexValue] = {}
    for name, value in node.attrs.items():
        if name.startswith("_") or isinstance(value, Shape):
            continue
        if isinstance(value, DType):
            found[name] = value.number
        elif isinstance(value, bytes):
            found[name] = value.decode("utf-8", "replace")
        elif isinstance(value, bool | int | float):
            found[name] = value
        elif isinstance(value, tuple):
            items = [item.number if isinstance(item, DType) else item for item in value]
            if all(isinstance(item, int | float) for item in items):
                found[name] = items
    return found
