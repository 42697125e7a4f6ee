"""A program as a LiteRT model file, its operations in the forms that LiteRT runs fastest."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np

from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.named_pass import Pass
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.deduplication import share_constants
from pocketgraph.litert.writing import operator_versions, writer
from pocketgraph.quantization.program_pass import copied, run_passes
from pocketgraph.quantization.serialization.activation_requantization import requantize_activations
from pocketgraph.quantization.serialization.width_packing import pack_width

BYTES_PER_TENSOR = 200
"""Of a file, for each tensor that is computed, besides its name, about."""
LONG_NAMES_SHARE = 0.1
"""Of a file; longer names are left out of it."""

FILE_PASSES = (
    Pass(
        "activation_requantization",
        "activations on codes become conversions, which XNNPACK has",
        requantize_activations,
    ),
    Pass("width_packing", "the first convolution takes two columns of a picture as one pixel", pack_width),
    Pass("constant_sharing", "equal constants are written once", share_constants),
)
"""What is done to a program when it is written, in order."""


def model_bytes(
    program: Program, without: Collection[str] = (), metadata: Mapping[str, bytes] = MappingProxyType({})
) -> bytes:
    """The program as a LiteRT model file, the passes of the names in ``without`` left out.

    Args:
        program: what the file holds.
        without: names of passes.
        metadata: named bytes that go into the file.
    """
    return written_bytes(as_written(program, without), {}, metadata)


def written_bytes(
    written: Program, open_shapes: Mapping[Value, tuple[int, ...]], metadata: Mapping[str, bytes]
) -> bytes:
    """The file of a program as ``as_written`` gives it; the shapes say -1 for sizes that are open."""
    programs = written.programs()
    contents = writer.Contents(
        [written],
        unnamed=set().union(*map(unnamed, programs)),
        open_shapes=open_shapes,
        metadata={**operator_versions.needed(programs), **metadata},
        version=operator_versions.version,
    )
    written_file = io.BytesIO()
    for piece in writer.file_pieces(contents, passing=True):  # joined at the end, all of them would be held
        written_file.write(piece)
    return written_file.getvalue()


def as_written(program: Program, without: Collection[str] = ()) -> Program:
    """The program as it is in its file: a copy after the FILE_PASSES, but those of the names in ``without``."""
    written = copied(program)
    run_passes(written, FILE_PASSES, without)
    for each in written.programs():
        for branch in (body for operation in each.operations if operation.code == "IF" for body in operation.bodies):
            _compute_given_constants(branch)
    for body in written.programs()[1:]:
        share_constants(body)
    return written


def _compute_given_constants(branch: Program) -> None:
    """Has operations make the constants that a branch gives: LiteRT 2.3 frees those when the interpreter ends.

    It takes results for constants, too, of all operators that it computes beforehand; BROADCAST_TO is none of these.
    """
    for place, value in enumerate(branch.outputs):
        if value.constant is None:
            continue
        shape = value.shape or (1,)
        sizes = Value(f"{value.name}/sizes", INT32, (len(shape),), Constant.of(np.array(shape, np.int32)))
        source = Value(value.name, value.dtype, shape, value.content.reshaped(shape), value.quantization)
        made = Value(f"{value.name}/given", value.dtype, shape, None, value.quantization)
        branch.operations.append(Operation("BROADCAST_TO", [source, sizes], [made]))
        if not value.shape:
            scalar = Value(f"{value.name}/scalar", value.dtype, (), None, value.quantization)
            none = Value(f"{value.name}/no_sizes", INT32, (0,), Constant.of(np.zeros(0, np.int32)))
            branch.operations.append(Operation("RESHAPE", [made, none], [scalar], {"new_shape": ()}))
            made = scalar
        branch.outputs[place] = made


def unnamed(program: Program) -> set[Value]:
    """The constants, and, where their names would be much of the file, all tensors but those that go in and out."""
    made = [value for operation in program.operations for value in operation.outputs]
    constants = {v for o in program.operations for v in o.inputs if v is not None and v.constant is not None}
    numbers = sum(value.constant.nbytes for value in constants if value.constant is not None)
    if sum(len(value.name) for value in made) <= LONG_NAMES_SHARE * (numbers + BYTES_PER_TENSOR * len(made)):
        return constants
    return constants | (set(made) - set(program.outputs))
