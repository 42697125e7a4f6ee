"""C libraries beside LiteRT, on one thread: time, code and arena.

    python benchmarks/export_c.py --models FOLDER [--only resnet50] [--coded] [--backend xnnpack]

FOLDER holds NAME.pb for each network. Both sides compute the same program, in float32, or with --coded in int8. They
take turns, and what counts is CPU time, so that a busy machine is no harm; the ratio is the median of the rounds.
"code" is the .text of model.c, compiled with the flags of the library's Makefile. "LiteRT's arena" is the memory from
its first tensor to its last without XNNPACK; "by size" what its planner's rule, the largest tensor first, makes of our
buffers.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from measure import NETWORKS
from pocketgraph.exporting.arena import placed
from pocketgraph.exporting.c.building import FLAGS, XNNPACK_LINKS, CExecutable, compiler
from pocketgraph.exporting.c.library import Library, built
from pocketgraph.formats import load
from pocketgraph.formats.files import write_files
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

ROUNDS, SLICE = 7, 0.3  # seconds of each side's turn
TARGETS = {"float32": 3.0, "int8": 4.0}
"""Times of LiteRT's time that a library may take."""
BY_XNNPACK = 1.1
"""The same for libraries that stand on XNNPACK."""
CODE = {"mobilenet_v1": 60_000, "inception_v3": 100_000}
"""Bytes of code that it may have."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("--backend", choices=["plain", "xnnpack"], default="plain")
    parser.add_argument("--coded", action="store_true", help="int8 instead of float32")
    arguments = parser.parse_args()
    if compiler() is None:
        raise SystemExit("there is no C compiler here")
    print(f"{'network':14} {'type':8} {'LiteRT':>9} {'C':>9} {'ratio':>6} {'code':>8} {'arena':>11} {'by size':>11} "
          f"{'LiteRT':>11}  equal")  # fmt: skip
    for name, side in NETWORKS.items():
        if arguments.only in (None, name):
            network(name, side, arguments)


def network(name: str, side: int, arguments: argparse.Namespace) -> None:
    """Prints the row of one network."""
    program = canonicalize(lowered_graph(load(arguments.models / f"{name}.pb"))[0])
    rng = np.random.default_rng(0)
    samples = [[rng.uniform(-1, 1, (1, side, side, 3)).astype(np.float32)] for _ in range(2)]
    kind = "int8" if arguments.coded else "float32"
    if arguments.coded:
        options = QuantizationOptions(rounding="nearest", io="int8", float_share=0.0, widen=0.0)
        program = quantize_program(program, lambda: iter(samples), len(samples), options).converted.program
    array = as_fed(samples[0], program.inputs)[0]
    library = built(program, "net", ["input"], ["output"], backend=arguments.backend)
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, library.files)
        links = XNNPACK_LINKS if arguments.backend == "xnnpack" else ("-lm",)
        executable = CExecutable(folder, "net", library.inputs, library.outputs, links=links)
        code = code_bytes(folder)
        ours, theirs = in_turn(executable, program, array)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        equal = agreement(executable.run([array])[0], ProgramRunner(program)([array])[0])
    most = TARGETS[kind] if arguments.backend == "plain" else BY_XNNPACK
    wanted = " ".join([
        "" if ratio <= most else f"ratio over {most}",
        "" if code <= CODE.get(name, code) else f"code over {CODE[name]}",
    ])  # fmt: skip
    print(
        f"{name:14} {kind:8} {1e3 * min(theirs):6.1f} ms {1e3 * min(ours):6.1f} ms {ratio:6.2f} {code:8} "
        f"{library.arena:11} {by_size(library):11} {litert_arena(program):11}  {equal} {wanted}",
        flush=True,
    )


def in_turn(executable: CExecutable, program: Program, array: Any) -> tuple[list[float], list[float]]:
    """CPU seconds of a run, a round: ours, and LiteRT's with XNNPACK."""
    interpreter = Interpreter(model_content=model_bytes(program), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], array)
    interpreter.invoke()
    begun = time.process_time()
    interpreter.invoke()
    count = max(1, int(SLICE / (time.process_time() - begun)))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(count):
            interpreter.invoke()
        theirs.append((time.process_time() - begun) / count)
        ours.append(executable.seconds([array], count))
    return ours, theirs


def agreement(given: Any, wanted: Any) -> str:
    """How far apart the outputs are."""
    if given.dtype.kind == "f":
        return f"{np.abs(given - wanted).max() / np.abs(wanted).max():.1e} of the peak"
    return f"{np.count_nonzero(given != wanted)} of {wanted.size} codes differ"


def code_bytes(folder: str) -> int:
    """The .text of model.c."""
    target = f"{folder}/net.o"
    subprocess.run([str(compiler()), *FLAGS, "-c", f"{folder}/net.c", "-o", target], check=True)
    if shutil.which("size") is None:
        return 0
    listed = subprocess.run(["size", "-A", target], check=True, capture_output=True, text=True).stdout.splitlines()
    return sum(int(line.split()[1]) for line in listed if line.startswith(".text"))


def by_size(library: Library) -> int:
    """The arena that the largest buffer first gives."""
    buffers = library.buffers
    return placed(buffers, sorted(range(len(buffers)), key=lambda n: (-buffers[n].size, buffers[n].first))).size


def litert_arena(program: Program) -> int:
    """Bytes from LiteRT's first tensor to its last."""
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model_bytes(program), num_threads=1, experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    core = interpreter._interpreter
    made = {int(tensor) for node in range(core.NumNodes()) for tensor in core.NodeOutputs(node)}
    made |= {detail["index"] for detail in interpreter.get_input_details()}
    arrays = [interpreter.tensor(index)() for index in made]
    starts = [(array.__array_interface__["data"][0], array.nbytes) for array in arrays]
    return max(at + size for at, size in starts) - min(at for at, _ in starts)


if __name__ == "__main__":
    main()
