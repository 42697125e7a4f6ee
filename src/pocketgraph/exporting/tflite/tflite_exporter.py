"""Writes a LiteRT file of a model: one subgraph an entry point, with signatures and metadata.

Source of what is written of variables: schema.fbs and the kernels VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and
CALL_ONCE of the LiteRT project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import EntryPoint, ExportModel, Feeds, Written
from pocketgraph.exporting.programs import (
    OF_CODES,
    OF_EIGHT_BITS,
    LackingError,
    float_program,
    port_notes,
    quantized_program,
)
from pocketgraph.exporting.tflite import metadata
from pocketgraph.exporting.tflite.open_size_checks import TOLERANCES, of_any_batch, why_fixed
from pocketgraph.exporting.tflite.open_size_programs import Opened, open_program
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import RESOURCE, UINT8
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.litert.program import Operation, Program, Value, passed_through
from pocketgraph.litert.writing import operator_versions
from pocketgraph.litert.writing.writer import CUSTOM, Contents, EntrySignature, file_pieces
from pocketgraph.quantization.conversion.float16_weights import with_half_weights
from pocketgraph.quantization.observing.calibration_checks import check_weights
from pocketgraph.quantization.serialization.tflite_bytes import as_written, unnamed
from pocketgraph.quantization.weight_only import with_quantized_weights

Mode = Literal["float32", "float16", "dynamic", "static"]
FIRST_VALUES = "first_values"
"""The name of the subgraph that sets the variables."""
MANY = 1 << 12
"""Bytes of a constant from which it is looked for in other subgraphs."""


def written_file(
    model: ExportModel,
    path: str,
    *,
    mode: Mode,
    io: Literal["float", "int8", "int16", "uint8"],
    activations: Literal["int8", "int16"],
    fixed: bool,
    with_metadata: bool,
    custom_ops: bool,
) -> Written:
    """Writes it; see ``write`` of this package."""
    if model.variables and (mode not in ("float32", "float16") or custom_ops):
        raise UsageError(f"a model that trains is written in float32 or float16: {option('mode')}=float32")
    if mode != "static" and (io != "float" or activations != "int8"):
        raise UsageError(f"{option('io')} and {option('activations')} are for {option('mode')}=static")
    if custom_ops and mode == "static":
        raise UsageError(f"{option('custom_ops')} is not for {option('mode')}=static: calibration runs the model")
    how = _How(mode, io, activations, fixed, custom_ops)
    packed = metadata.packed(model) if with_metadata else None
    made = _subgraphs(model, how)
    if packed is not None and io == "uint8":
        packed = metadata.packed(model, takes_bytes=made[0].program.inputs[0].dtype is UINT8)
    written = Written(tolerance=TOLERANCES[mode], is_coded=mode in ("dynamic", "static"))
    custom = sorted(
        {o.code.removeprefix(CUSTOM) for m in made for o in m.program.operations if o.code.startswith(CUSTOM)}
    )
    if custom:
        _write(path, made, packed, model.variables)
        written.notes = [note for item in made for note in item.notes]
        written.unchecked = f"LiteRT runs its custom operators ({', '.join(custom)}) only where an app registers them"
        return written
    refused: list[list[str]] = [[] for _ in made]
    while True:
        _write(path, made, packed, model.variables)
        file = ModelFile(path, model.threads)
        found = {
            at: why
            for at, item in enumerate(made)
            if item.opened and (why := why_fixed(partial(_run, file, item.entry), item.entry, item.opened, model))
        }
        if not found:
            break
        for at, why in found.items():
            refused[at].append(why)
            made[at] = _subgraph(made[at].entry, model, how, refused[at])
    for item in made:
        written.notes += item.notes
    entries = {entry.name: entry for entry in model.entries}
    written.run = lambda name, feeds: _run(file, entries[name], feeds)
    written.seconds = file.seconds
    return written


@dataclass(frozen=True)
class _How:
    """The options that say how programs are made; see ``write``."""

    mode: str
    io: str
    activations: str
    fixed: bool
    custom: bool


@dataclass
class _Subgraph:
    """An entry point's program as it is written.

    Attributes:
        entry: the entry point.
        program: its program; the names of what goes in and out are the public ones.
        opened: what is known of open sizes; None where there are none.
        notes: what is to be said of it.
    """

    entry: EntryPoint
    program: Program
    opened: Opened | None = None
    shapes: Mapping[Value, tuple[int, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _subgraphs(model: ExportModel, how: _How) -> list[_Subgraph]:
    """The programs of all entry points.

    Raises:
        LackingError: as ``_subgraph``; where others of the entry points can be written, the hint names these.
    """
    made: list[_Subgraph] = []
    refused: list[LackingError] = []
    for entry in model.entries:
        try:
            made.append(_subgraph(entry, model, how))
        except LackingError as error:
            refused.append(error)
    if refused:
        if made:
            others = ",".join(item.entry.name for item in made)
            refused[0].add_hint(f"{option('signatures')}={others} leaves out the signatures that need it")
        raise refused[0]
    return made


def _subgraph(entry: EntryPoint, model: ExportModel, how: _How, refused: Sequence[str] = ()) -> _Subgraph:
    notes: list[str] = []
    opened: Opened | None = None
    if how.mode == "static":
        program, notes = quantized_program(entry, model, io=how.io, activations=how.activations)
    else:
        if not how.fixed and not how.custom and not entry.writes:
            opened, said = open_program(entry.whole, model, refused)
            notes += [said] if said else []
        if opened is not None:
            program = opened.program
        else:
            without = OF_CODES if how.mode == "dynamic" else (*OF_CODES, *OF_EIGHT_BITS)
            program = float_program(entry.whole, model, custom=how.custom, without=without)
        if entry.writes and not all(port.is_fixed for port in entry.inputs):
            shown = ", ".join(f"{port.name} {list(port.sizes or ())}" for port in entry.inputs)
            notes.append(f"'{entry.name}' changes variables, so that its sizes are fixed: {shown}")
    if how.mode == "float16":
        program, said_of = with_half_weights(program)
        notes += said_of
    elif how.mode == "dynamic":
        check_weights(program)
        program = with_quantized_weights(program, dynamic=True)
    notes += port_notes(entry.whole, program)
    program = as_written(program)
    program, shapes = _named(program, entry.whole, opened.shapes if opened is not None else {})
    if how.mode == "static" and not all(port.is_fixed for port in entry.inputs):
        program, shapes, fixed = of_any_batch(program, entry, model, fixed=how.fixed)
        notes += fixed
    return _Subgraph(entry, program, opened, shapes, notes)


def _named(
    program: Program, entry: EntryPoint, shapes: Mapping[Value, tuple[int, ...]]
) -> tuple[Program, Mapping[Value, tuple[int, ...]]]:
    """The program with public names for what goes in and out, and an operation that makes each output.

    LiteRT passes neither inputs nor the same result twice straight through; these are reshaped to their own shape.
    """
    made: set[Value] = {value for operation in program.operations for value in operation.outputs}
    outputs: list[Value] = []
    for port, value in zip(entry.outputs, program.outputs, strict=True):
        if value in outputs or (value not in made and value.constant is None):
            declared = shapes.get(value, value.shape)
            copying = passed_through(value, port.name, declared if declared.count(-1) < 2 else value.shape)
            program.operations.append(copying)
            [copy] = copying.outputs
            if value in shapes:
                shapes = {**shapes, copy: declared}
            value = copy
        outputs.append(value)
    program.outputs = outputs
    for port, value in zip(entry.outputs, outputs, strict=True):
        value.name = port.name
    for port, value in zip(entry.inputs, program.inputs, strict=True):
        value.name = port.name
    return program, shapes


def _write(
    path: str, made: list[_Subgraph], packed: tuple[bytes, dict[str, bytes]] | None, variables: Mapping[str, Array]
) -> None:
    """Writes the file: the model, and behind it the files that its metadata name."""
    about, files = packed or (b"", {})
    programs, names = [item.program for item in made], [item.entry.name for item in made]
    if variables:
        programs = [with_variables(item.program, item.entry, len(made)) for item in made]
        programs.append(first_values(variables))
        names.append(FIRST_VALUES)
    _share(programs)
    every = [body for program in programs for body in program.programs()]
    named = operator_versions.needed(every)
    if packed is not None:
        named[metadata.NAME] = about
    contents = Contents(
        programs=programs,
        names=["main"] if len(programs) == 1 else names,
        signatures=[
            EntrySignature(
                item.entry.name,
                {port.name: value for port, value in zip(item.entry.inputs, program.inputs, strict=True)},
                {port.name: value for port, value in zip(item.entry.outputs, program.outputs, strict=True)},
            )
            for item, program in zip(made, programs, strict=False)
        ],
        metadata=named,
        unnamed={value for program in every for value in unnamed(program)},
        open_shapes={value: shape for item in made for value, shape in item.shapes.items()},
        version=operator_versions.version,
    )
    with open(path, "wb") as file:
        for piece in file_pieces(contents):
            file.write(piece)
        if files:
            file.write(metadata.archive(files, file.tell()))


def _share(programs: list[Program]) -> None:
    """Lets equal large constants of several programs be one, so that they are in the file once."""
    programs = [body for program in programs for body in program.programs()]
    if len(programs) < 2:
        return
    known: dict[tuple[str, tuple[int, ...], bytes], Constant] = {}
    for value in _constants(programs):
        constant = value.constant
        if constant is None or constant.nbytes < MANY:
            continue
        digest = hashlib.sha256(np.ascontiguousarray(constant.numpy()).reshape(-1).view(np.uint8).data).digest()
        value.constant = known.setdefault((value.dtype.name, value.shape, digest), constant)


def _constants(programs: list[Program]) -> Iterator[Value]:
    for program in programs:
        for operation in program.operations:
            for value in operation.inputs:
                if value is not None and value.constant is not None:
                    yield value


def _run(file: ModelFile, entry: EntryPoint, feeds: Feeds) -> dict[str, Array]:
    """The outputs as numbers, in the types that the graph has."""
    infos = file.signature(entry.name).inputs
    given = {
        name: array if infos[name].scale else array.astype(infos[name].dtype, copy=False)
        for name, array in feeds.items()
    }
    results = file.numbers(entry.name, given)
    types = {port.name: port.dtype.numpy for port in entry.outputs}
    return {name: array.astype(types[name], copy=False) for name, array in results.items()}


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
