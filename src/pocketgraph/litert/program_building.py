"""Programs as executables: written and loaded, kept in the cache or not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert import cache
from pocketgraph.litert.cached_executable import LITERT, takes_packed
from pocketgraph.litert.cost_model import PACKED_FROM
from pocketgraph.litert.executable import Executable, Opener
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.program_record import split
from pocketgraph.litert.running.runner import PlainRunner, Runner
from pocketgraph.litert.sixteen_bits import computed_in
from pocketgraph.litert.writing import writer

MOST_TEXT = 1 << 20  # characters of constants that are fetched, beyond which a part is not worth keeping


def build(
    program: Program,
    inputs: Sequence[str],
    types: Sequence[str],
    folder: str | None,
    name: str,
    threads: int,
    in_memory: bool = False,
    opener: Opener | None = None,
    microbatches: int = 1,
    packs: bool = False,
    ahead: bool = True,
) -> Executable:
    """Writes the program and loads it; its inputs are of these NumPy types.

    ``in_memory`` is without touching the disk, ``microbatches`` says how many parts of a batch there are where the
    program computes one, ``packs`` that weights may be packed directly, so that nobody else can run the file, and
    ``ahead`` that another thread makes large constants.
    """
    about, model = split(program, inputs, types)
    if microbatches > 1:
        from pocketgraph.litert.running.microbatch_runner import of_whole_batch

        about = of_whole_batch(about, microbatches)
    if sum(len(text) for text, _, _ in about["constants"]) > MOST_TEXT:
        folder = None
    if not model.operations:
        if folder is not None:
            cache.store(folder, name, [], about)
        return Executable(about, None, program, threads)
    if folder is not None and packs and about["bytes"] >= PACKED_FROM and opener is None:
        packed = _packed_directly(model, about, folder, name, threads, ahead)
        if packed is not None:
            return Executable(about, packed, program, threads, (folder, name))
    if folder is not None:
        entry = cache.store(folder, name, writer.pieces(model, passing=True, ahead=ahead), about)
        if entry is not None:
            by = opener or LITERT
            try:
                return Executable(about, by.open(entry, threads), program, threads, (folder, name), by.engine)
            except RunError as error:
                if os.path.exists(entry.model):  # else somebody emptied the cache meanwhile
                    if by is LITERT:
                        cache.remove(folder, name)
                    raise Unsupported(error.what) from error
    runner: Runner
    try:
        if microbatches > 1:
            from pocketgraph.litert.running.microbatch_runner import MicrobatchRunner, of_one

            one = of_one(about)
            runner = MicrobatchRunner(lambda: _uncached(model, one, threads, ahead=ahead), 1, microbatches)
        else:
            runner = _uncached(model, about, threads, in_memory, opener, ahead)
        return Executable(about, runner, program, threads, engine=opener.engine if opener is not None else "")
    except RunError as error:
        raise Unsupported(error.what) from error


def _packed_directly(
    model: Program, about: dict[str, Any], folder: str, name: str, threads: int, ahead: bool
) -> Runner | None:
    """The runner of a program whose weights are packed on their way to the cache; None where that does not go."""
    from pocketgraph.litert.packing import direct_packing

    plan = direct_packing.planned(model, folder) if takes_packed(about) else None
    if plan is None:
        return None
    left_out = plan.left_out()
    if not left_out:
        return None
    file = writer.WeightlessFile(model, left_out)
    holes = file.first, file.size
    entry = cache.store(
        folder, name, file.pieces(ahead=ahead), about, packed=plan.sections(file.place, ahead=ahead), holes=holes
    )
    if entry is None:
        return None
    runner = None
    try:
        runner = LITERT.open(entry, threads)
        if not getattr(runner, "is_delegated", False):  # LiteRT's own operators read when they run
            given = [about["inputs"][index] for index in about["fed"]]
            runner.run([np.zeros(shape, computed_in(dtype)) for _, dtype, shape in given])
        return runner
    except (RunError, OSError, RuntimeError):
        pass
    if runner is not None:
        runner.close()
    cache.remove(folder, name)
    return None


def _uncached(
    model: Program,
    about: dict[str, Any],
    threads: int,
    in_memory: bool = False,
    opener: Opener | None = None,
    ahead: bool = True,
) -> Runner:
    """Runs a program without leaving files behind, ``in_memory`` without even making one.

    Raises:
        RunError: the engine does not take it, or it is another one than LiteRT and wants a file.
    """
    shapes = [shape for shape, _ in about["computed"]]
    path = None if in_memory else temporary_file(model, ahead=ahead)
    if path is None:
        if opener is not None:
            raise RunError(
                "what other engines read is a file, and there is no place for one, or it would be a secret's"
            )
        return PlainRunner(b"".join(bytes(piece) for piece in writer.pieces(model, ahead=ahead)), threads, shapes)
    try:
        if opener is not None:
            return opener.open(cache.CacheEntry(path, "", False, about), threads)
        return PlainRunner(path, threads, shapes)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def temporary_file(
    model: Program, open_shapes: Mapping[Value, tuple[int, ...]] = MappingProxyType({}), *, ahead: bool = True
) -> str | None:
    """The program in a file in the temporary folder, whose weights need no memory; None where that has no room."""
    import tempfile  # it takes six modules, and only what is not kept needs it

    path = None
    try:
        handle, path = tempfile.mkstemp(suffix=".tflite")
        with os.fdopen(handle, "wb") as file:
            for piece in writer.pieces(model, open_shapes=open_shapes, passing=True, ahead=ahead):
                file.write(piece)
    except OSError:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return None
    return path
