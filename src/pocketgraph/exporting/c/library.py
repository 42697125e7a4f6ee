"""A program of LiteRT operators as the files of a C library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pocketgraph.exporting.arena import Buffer, Layout, planned
from pocketgraph.exporting.c.cortex_m import board_files, board_parts, fits
from pocketgraph.exporting.c.inline_loops import in_line
from pocketgraph.exporting.c.operators import xnnpack
from pocketgraph.exporting.c.operators.emitter_table import entry_of, is_coded
from pocketgraph.exporting.c.source import CTensor, Source, filled_in, template
from pocketgraph.exporting.c.storage import Storage
from pocketgraph.exporting.c.unit import C_TYPES, Unit, number
from pocketgraph.exporting.c_identifiers import literal
from pocketgraph.exporting.model import Normalization
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.operator_rules import can_quantize

LARGE = 4 << 20  # bytes of weights from which they are a file: compilers take minutes over larger arrays
WORDS_A_LINE = 6
NOISE = 0.05  # of the signal: 26 dB, where the last bit of floats decides on codes

Place = Literal["auto", "array", "file"]
Backend = Literal["plain", "xnnpack"]


@dataclass
class Library:
    """The files of a library, and what is known of it.

    Attributes:
        files: the content of each file by its path in the library's folder.
        inputs: what goes in, in order.
        outputs: what comes out, in order.
        arena: bytes that it computes in.
        weights: bytes of constants.
        buffers: what lies in the arena, and when it is needed.
    """

    files: dict[str, bytes]
    inputs: tuple[CTensor, ...]
    outputs: tuple[CTensor, ...]
    arena: int
    weights: int
    buffers: list[Buffer]


class LackingOperatorsError(Exception):
    """Operations that there is no kernel for.

    Attributes:
        reasons: why, by the name of a graph's node.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = dict(reasons)


def built(
    program: Program,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    weights: Place = "auto",
    normalization: Normalization = Normalization(),
    labels: Sequence[str] = (),
    golden: tuple[Sequence[Array], Sequence[Array]] | None = None,
    backend: Backend = "plain",
) -> Library:
    """The library of a program.

    Args:
        program: the program; it stays as it is.
        name: what the library is called, a name that C takes.
        inputs, outputs: the public names of what goes in and comes out.
        weights: whether the constants are a C array or a file; ``auto``: a file when they are large.
        normalization: of the pictures that the example feeds.
        labels: the name of each class.
        golden: inputs, and the outputs that must come of them, for the test.
        backend: what computes layers and pools: kernels of our own, or XNNPACK.

    Raises:
        LackingOperatorsError: there is no kernel for an operation.
    """
    program = Program(list(program.inputs), list(program.outputs), list(program.operations))
    program.drop_unused()
    program = in_line(program)
    unit = Unit(program, Storage(program, _overwrites))
    _emit(unit, backend)
    buffers = unit.storage.buffers
    layout = planned(buffers)
    offsets = dict(zip(buffers, layout.offsets, strict=True))
    entering = tuple(map(CTensor, inputs, program.inputs))
    leaving = tuple(map(CTensor, outputs, program.outputs))
    source_text = Source(name, unit, entering, leaving, offsets, layout)
    for value in program.outputs:
        unit.at(value)  # constants among them are weights too
    content = unit.weights.content()
    is_file = weights == "file" or (weights == "auto" and len(content) >= LARGE)
    access = filled_in(template("weights_file.h" if is_file else "weights_array.h"), name)
    made = {f"{name}.h": source_text.header(len(content), access), f"{name}.c": source_text.code(content)}
    parts = _parts(name, is_file, len(content), layout, entering) | {"noise": f"{NOISE if _rounds(program) else 0:g}"}
    outputs_bytes = sum(value.size * value.dtype.size for value in program.outputs)
    on_board = backend == "plain" and not is_file and fits(len(content), layout.size, outputs_bytes)
    parts |= _picture_parts(normalization, labels) | _links(backend) | board_parts(on_board)
    made |= board_files(name) if on_board else {}
    for path, origin in (
        (f"{name}_common.h", "common.h"), (f"{name}_pictures.h", "pictures.h"),
        (f"{name}_main.c", "main.c"), (f"{name}_test.c", "test.c"),
        ("Makefile", "Makefile"), ("CMakeLists.txt", "CMakeLists.txt"), ("README.md", "README.md"),
    ):  # fmt: skip
        made[path] = filled_in(template(origin), name, **parts)
    files = {path: text.encode() for path, text in made.items()}
    if is_file:
        files[f"{name}.weights"] = content
        files[f"{name}_weights.c"] = filled_in(template("weights_file.c"), name).encode()
    else:
        files[f"{name}_weights.c"] = _array(name, content)
    if golden is not None:
        for kind, arrays in zip(("input", "output"), golden, strict=True):
            for place, array in enumerate(arrays):
                files[f"golden/{kind}_{place}.bin"] = np.ascontiguousarray(array).tobytes()
    return Library(files, entering, leaving, layout.size, len(content), buffers)


def _rounds(program: Program) -> bool:
    """Whether floats that were computed are rounded to codes, so that the last bit of a float decides on a code."""
    computed = {value for operation in program.operations for value in operation.outputs}
    return any(
        operation.code == "QUANTIZE" and value in computed and value.dtype.is_floating
        for operation in program.operations
        for value in operation.inputs
    )


def check_float_operations(program: Program, backend: Backend = "plain") -> None:
    """Refuses a program before it is quantized where something in it that stays in float has no kernel.

    Raises:
        LackingOperatorsError: there is no kernel for an operation that cannot be quantized.
    """
    program = in_line(program)
    _emit(Unit(program, Storage(program, _overwrites)), backend, can_quantize)


def _emit(unit: Unit, backend: Backend, is_left_out: Callable[[Operation], bool] = lambda operation: False) -> None:
    """Has every operation emitted that is not left out; collects what cannot be."""
    reasons: dict[str, str] = {}
    for value in (*unit.program.inputs, *unit.program.outputs):
        if value.dtype.name not in C_TYPES:
            reasons[value.name] = f"elements of the type {value.dtype.name}"
    for step, operation in enumerate(unit.program.operations):
        unit.operation, unit.step = operation, step
        if operation.code == "RESHAPE" or is_left_out(operation):
            continue
        entry = entry_of(operation)
        by_xnnpack = xnnpack.emitter(operation) if backend == "xnnpack" else None
        try:
            if by_xnnpack is not None:
                by_xnnpack(unit, operation)
                continue
            if entry is None:
                what = " of int8 codes" if is_coded(operation) else ""
                raise Unsupported(f"{operation.code}{what} has no kernel in C")
            if not operation.outputs or any(value.size for value in operation.outputs):
                entry.emit(unit, operation)
        except Unsupported as lacking:
            where = operation.nodes[-1] if operation.nodes else operation.outputs[0].name
            reasons[where] = lacking.reason
    if reasons:
        raise LackingOperatorsError(reasons)


def _overwrites(operation: Operation) -> list[Value]:
    """Which operands the result of an operation may take the place of."""
    entry, result = entry_of(operation), operation.outputs[0]
    if entry is None or not entry.in_place:
        return []
    return [
        value for value in operation.inputs
        if value is not None and value.shape == result.shape and value.dtype.size == result.dtype.size
    ]  # fmt: skip


def _parts(name: str, is_file: bool, weights: int, layout: Layout, inputs: Sequence[CTensor]) -> dict[str, str]:
    """What goes into the templates."""
    first = inputs[0].value.shape if inputs else ()
    example = "picture.ppm" if len(first) == 4 and first[3] == 3 else "input.bin"
    return {
        "open_weights": f"{name}_map(path, &bytes)" if is_file else f"{name}_weights",
        "objects": f"{name}.o {name}_weights.o",
        "sources": f"{name}.c {name}_weights.c",
        "example": " ".join([example, *(f"input_{n}.bin" for n in range(1, len(inputs)))]),
        "arena": f"{layout.size:,}",
        "weights_bytes": f"{weights:,}",
        "weights_where": f"the file `{name}.weights`, mapped" if is_file else f"the array in `{name}_weights.c`",
    }


def _picture_parts(normalization: Normalization, labels: Sequence[str]) -> dict[str, str]:
    """What the example knows of pictures and classes."""
    return {
        "mean": ", ".join(number(float(x)) for x in normalization.mean),
        "deviation": ", ".join(number(float(x)) for x in normalization.std),
        "normalized_channels": str(len(normalization.mean)),
        "classes": str(len(labels)),
        "class_names": "".join(f"{literal(label)}, " for label in labels),
    }


def _links(backend: Backend) -> dict[str, str]:
    """What a library is linked with."""
    if backend == "plain":
        return {"libraries": "-lm", "find": ""}
    return {"libraries": "-lXNNPACK -lm", "find": template("find_xnnpack.cmake")}


def _array(name: str, content: bytes) -> bytes:
    """The weights as a C array of 64-bit words."""
    words = np.frombuffer(content, "<u8")
    lines = [
        "    " + " ".join(f"0x{word:x}," for word in words[start : start + WORDS_A_LINE].tolist())
        for start in range(0, len(words), WORDS_A_LINE)
    ]
    return (
        f'/* The weights of {name}. */\n#include "{name}.h"\n\n#if defined(__GNUC__)\n__attribute__((aligned(64)))\n'
        f"#endif\nconst uint64_t {name}_weights[] = {{\n" + "\n".join(lines) + "\n};\n"
    ).encode()
