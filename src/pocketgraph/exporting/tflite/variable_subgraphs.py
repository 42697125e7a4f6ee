"""Variables in a LiteRT file: reads, assignments, and a subgraph that runs once and sets their first values.

Source: schema.fbs and the kernels VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE of the LiteRT project.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.exporting.model import EntryPoint
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import RESOURCE
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value


def with_variables(program: Program, entry: EntryPoint, init_subgraph: int) -> Program:
    """The program with reads of variables in place of the inputs behind the entry point's own, and assignments in place
    of such outputs.

    Args:
        program: of ``entry.whole``.
        entry: the entry point.
        init_subgraph: the number of the subgraph that sets first values.
    """
    before: list[Operation] = [Operation("CALL_ONCE", [], [], {"init_subgraph": init_subgraph})]
    after: list[Operation] = []
    handles: dict[str, Value] = {}
    kept, read = program.inputs[: len(entry.inputs)], program.inputs[len(entry.inputs) :]
    given, written = program.outputs[: len(entry.outputs)], program.outputs[len(entry.outputs) :]
    used = program.uses()
    for port, value in zip(entry.reads, read, strict=True):
        if used[value]:
            before.append(Operation("READ_VARIABLE", [_handle(port.name, handles, before)], [value]))
    for port, value in zip(entry.writes, written, strict=True):
        after.append(Operation("ASSIGN_VARIABLE", [_handle(port.name, handles, before), value], []))
    return Program(kept, given, [*before, *program.operations, *after], program.rounded)


def first_values(variables: Mapping[str, Array]) -> Program:
    """The program that sets variables to these values."""
    operations: list[Operation] = []
    handles: dict[str, Value] = {}
    for name, array in variables.items():
        constant = Constant.of(array)
        value = Value(f"{name}/initial_value", DType.of_numpy(array.dtype), constant.shape, constant)
        operations.append(Operation("ASSIGN_VARIABLE", [_handle(name, handles, operations), value], []))
    return Program([], [], operations)


def _handle(name: str, handles: dict[str, Value], operations: list[Operation]) -> Value:
    if name not in handles:
        handles[name] = Value(f"{name}/handle", RESOURCE, ())
        options = {"container": "", "shared_name": name}
        operations.append(Operation("VAR_HANDLE", [], [handles[name]], options))
    return handles[name]
