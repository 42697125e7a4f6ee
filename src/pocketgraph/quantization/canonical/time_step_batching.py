"""Computes what the steps of a written-out loop make of their inputs in one product for all steps.

    x [T,B,K] ─UNPACK─ T times FULLY_CONNECTED by the same weights       becomes       x ─FULLY_CONNECTED─ UNPACK─

The products of recurrent cells with the input do not wait for each other; one of T rows takes a fraction of the time
and of the file that T of one row take.
"""

from __future__ import annotations

from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import operator_rules

FEWEST = 3  # steps


def batch_time_steps(program: Program) -> None:
    """Rewrites the program in place; constants must be shared already where they are equal."""
    readers = program.consumers()
    done: list[Operation] = []
    gone: set[Operation] = set()
    for operation in program.operations:
        done.append(operation)
        source = operation.inputs[0] if operation.inputs else None
        if operation.code != "UNPACK" or operation.options["axis"] != 0 or source is None:
            continue
        for layers in _alike(operation, readers):
            first = next(layer for layer in layers if layer is not None)
            shape = first.outputs[0].shape
            together = Value(f"{first.outputs[0].name}/steps", first.outputs[0].dtype, (len(layers), *shape))
            nodes = tuple(dict.fromkeys(name for layer in layers if layer is not None for name in layer.nodes))
            options = {**first.options, "keep_num_dims": True}
            results = [
                Value(f"{together.name}/{step}", together.dtype, shape) if layer is None else layer.outputs[0]
                for step, layer in enumerate(layers)
            ]
            done.append(Operation("FULLY_CONNECTED", [source, *first.inputs[1:]], [together], options, nodes))
            done.append(Operation("UNPACK", [together], results, {"num": len(layers), "axis": 0}, nodes))
            gone.update(layer for layer in layers if layer is not None)
    program.operations = [operation for operation in done if operation not in gone]
    program.drop_unused()


def _alike(unpack: Operation, readers: dict[Value, list[Operation]]) -> list[list[Operation | None]]:
    """For each set of weights that most steps are multiplied by, the layer of each step; None for a step without."""
    found: dict[tuple[object, ...], list[Operation | None]] = {}
    for step, value in enumerate(unpack.outputs):
        for layer in readers.get(value, ()):
            if layer.code != "FULLY_CONNECTED" or not operator_rules.can_quantize(layer) or layer.whole is not None:
                continue
            if layer.inputs[0] is not value or len(value.shape) != 2 or len(layer.outputs[0].shape) != 2:
                continue
            if layer.outputs[0].shape[0] != value.shape[0]:
                continue
            key = (*layer.inputs[1:], layer.options.get("activation", ""))
            found.setdefault(key, [None] * len(unpack.outputs))[step] = layer
    return [layers for layers in found.values() if sum(layer is not None for layer in layers) >= FEWEST]
