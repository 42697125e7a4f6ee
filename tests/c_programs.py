"""What the tests of C libraries have in common: building them strictly, and running them beside others."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.exporting.c.building import CExecutable, compiler
from pocketgraph.exporting.c.library import Library, built
from pocketgraph.formats.files import write_files
from pocketgraph.graph import Graph
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from quantize_nets import float_program

needs_cc = pytest.mark.skipif(compiler() is None, reason="there is no C compiler here")
SANITIZED = ("-O0", "-g", "-std=c99", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
FLAGS = (*SANITIZED, *STRICT, "-Wconversion")
OPTIMIZED = "-O1"
"""For where all kernels are: some warnings need it, and it takes twice as long."""


LEVELS = ("SSE2", "AVX2", "AVX-512", "AVX-512 VNNI")
"""What a CPU may have, by the library's numbers; what this one has not is never more than it has."""


def results(program: Program, arrays: Sequence[Any], folder: pathlib.Path) -> list[Any]:
    """What the library of a program computes, built with sanitizers and without a warning."""
    return executable(program, folder).run(arrays)


def executable(program: Program, folder: pathlib.Path, *flags: str) -> CExecutable:
    """The library of a program, built with sanitizers and without a warning."""
    library = library_of(program)
    write_files(str(folder), library.files)
    return CExecutable(str(folder), "net", library.inputs, library.outputs, (*FLAGS, *flags))


def results_by_level(program: Program, arrays: Sequence[Any], folder: pathlib.Path) -> dict[str, list[Any]]:
    """What the library computes in plain C and at each level, which one build is told when it runs."""
    found = {"plain C": executable(program, folder, OPTIMIZED, "-DPG_PLAIN").run(arrays)}
    chosen = ("-include", "stdlib.h", '-DPG_MOST_LEVEL=atoi(getenv("PG_LEVEL"))')
    told = executable(program, folder, OPTIMIZED, *chosen)
    for number, level in enumerate(LEVELS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PG_LEVEL", str(number))
            found[level] = told.run(arrays)
    return found


def library_of(program: Program, **how: Any) -> Library:
    """The library ``net`` of a program, with the names of its tensors."""
    names = ([value.name for value in values] for values in (program.inputs, program.outputs))
    return built(program, "net", *names, **how)


def program_of(graph: Graph, outputs: Sequence[str]) -> Program:
    """A graph's program."""
    return float_program(graph, list(outputs))


def coded(name: str, shape: tuple[int, ...], scale: float, zero: int) -> Value:
    """A tensor of int8 codes."""
    from pocketgraph.graph.dtype import INT8

    return Value(name, INT8, shape, None, Quantization((float(np.float32(scale)),), (zero,)))


def known(array: Any, dtype: Any, quantization: Quantization | None = None) -> Value:
    """A constant."""
    return Value("known", dtype, array.shape, Constant.of(array), quantization)


def program(operations: Sequence[Operation], inputs: Sequence[Value]) -> Program:
    """Operations whose results all go out."""
    return Program(list(inputs), [value for operation in operations for value in operation.outputs], list(operations))


def filled(text: str) -> str:
    """The text with numbers for constants of which only the shape is written."""
    rng = np.random.default_rng(11)
    lines = []
    for line in text.splitlines():
        if "Const(float[" in line:
            shape = [int(size) for size in line.split("[")[1].split("]")[0].split(",")]
            numbers = rng.normal(0, 0.3, shape).astype(np.float32).tolist()
            line = f"{line.split('Const')[0]}Const(float {numbers})"
        lines.append(line)
    return "\n".join(lines)
