"""Builds and runs a library on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.exporting.c.source import CTensor
from pocketgraph.graph.tensor import Array

FLAGS = ("-O3", "-std=c99")
XNNPACK_LINKS = ("-lXNNPACK", "-lm")
LONGEST = 600  # seconds of one compilation, or run
LONG = 0.5  # seconds of a run whose time one run tells


def compiler() -> str | None:
    """The C compiler of this machine: what the variable CC names, else ``cc``."""
    named = os.environ.get("CC", "").split()
    return shutil.which(named[0] if named else "cc")


def has_xnnpack() -> bool:
    """Whether the compiler finds XNNPACK's header and library."""
    cc = compiler()
    if cc is None:
        return False
    with tempfile.TemporaryDirectory(prefix="pocketgraph-") as folder:
        source = os.path.join(folder, "found.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <xnnpack.h>\nint main(void) { return xnn_initialize(0) != xnn_status_success; }\n")
        words = [cc, "-std=c99", source, *XNNPACK_LINKS, "-o", os.path.join(folder, "found")]
        return _ran(words, folder).returncode == 0


def compiled(
    folder: str,
    name: str,
    program: str,
    place: str,
    *,
    flags: Sequence[str] = FLAGS,
    links: Sequence[str] = ("-lm",),
) -> str:
    """Compiles ``main`` or ``test`` of the library in ``folder`` with the library, and gives the program's path.

    Args:
        folder: where the library's files are.
        name: of the library.
        program: ``main`` or ``test``.
        place: the folder of the program.
        flags: of the compiler.
        links: the libraries to link with.

    Raises:
        RunError: there is no compiler, or it refuses.
    """
    cc = compiler()
    if cc is None:
        raise RunError("there is no C compiler", hint="install one, or set CC to its name")
    target = os.path.join(place, f"{name}_{program}")
    sources = [os.path.join(folder, f"{name}{part}.c") for part in ("", "_weights", f"_{program}")]
    call = [cc, *flags, *sources, *links, "-o", target]
    done = _ran(call, place)
    if done.returncode and "No space left" in done.stderr:
        raise RunError(
            "there is no room for what the C compiler writes", where=target,
            hint="make some there, or set TMPDIR to a folder that has some",
        )  # fmt: skip
    if done.returncode:
        raise RunError(f"the C compiler refuses the library: {done.stderr.strip()[:2000]}", where=f"{name}.c")
    return target


def _ran(words: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """What a program says whose own temporary files go with a folder, also where it is stopped."""
    own = {**os.environ, "TMPDIR": folder}
    return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LONGEST, env=own)


class CExecutable:
    """The example program of a library, built in a folder that goes with it.

    Args:
        folder: where the library's files are.
        name: of the library.
        inputs, outputs: what goes in and comes out.
        flags: of the compiler.
    """

    def __init__(
        self, folder: str, name: str, inputs: Sequence[CTensor], outputs: Sequence[CTensor],
        flags: Sequence[str] = FLAGS,
        links: Sequence[str] = ("-lm",),
    ) -> None:  # fmt: skip
        self._inputs, self._outputs = inputs, outputs
        self._place = tempfile.TemporaryDirectory(prefix="pocketgraph-")
        self._weights = os.path.join(self._place.name, f"{name}.weights")
        if os.path.exists(os.path.join(folder, f"{name}.weights")):  # a copy, since the folder is moved in the end
            shutil.copyfile(os.path.join(folder, f"{name}.weights"), self._weights)
        self._program = compiled(folder, name, "main", self._place.name, flags=flags, links=links)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input, in the library's types.

        Raises:
            RunError: it ends badly.
        """
        result = os.path.join(self._place.name, "outputs.bin")
        self._call(arrays, "-o", result)
        with open(result, "rb") as file:
            content = file.read()
        found, at = [], 0
        for tensor in self._outputs:
            value = tensor.value
            size = value.size * value.dtype.size
            array = np.frombuffer(content[at : at + size], value.dtype.numpy).reshape(value.shape)
            found.append(array.copy())
            at += size
        return found

    def seconds(self, arrays: Sequence[Array], runs: int = 5) -> float:
        """The time of a run that is long, else the mean of ``runs``."""
        taken = 0.0
        for count in (1, runs):
            if taken < LONG:
                taken = float(self._call(arrays, "-n", str(count), "-o", os.devnull).split()[0]) / 1000
        return taken

    def _call(self, arrays: Sequence[Array], *options: str) -> str:
        paths = []
        for number, (tensor, array) in enumerate(zip(self._inputs, arrays, strict=True)):
            paths.append(os.path.join(self._place.name, f"input_{number}.bin"))
            np.ascontiguousarray(array, tensor.value.dtype.numpy).tofile(paths[-1])
        words = [self._program, *options, "-w", self._weights, *paths]
        done = _ran(words, self._place.name)
        if done.returncode:
            raise RunError(f"the library ends with {done.returncode}: {done.stderr.strip()[:2000]}")
        return done.stdout
