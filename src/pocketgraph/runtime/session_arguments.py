"""What may be given to a session, and what is said of anything else."""

from __future__ import annotations

import os
from operator import index
from typing import SupportsIndex

from pocketgraph.errors import RunError, UsageError

ENGINES = (None, "auto", "reference", "litert")
"""Those that need not be looked up."""
CHECKS = ("first", "always", "never")
MOST_THREADS = 1024
"""LiteRT starts each of them; some thousands end the process."""


def check_arguments(
    engine: str | None,
    threads: int | None,
    inter_op_threads: int | None,
    memory_limit: int | None,
    step_limit: int = 1,
    seed: int | None = None,
    check: str = "first",
) -> None:
    """Refuses arguments of ``Session`` that mean nothing.

    Raises:
        MissingExtraError: the engine is not installed.
        UsageError: there is no such engine or check, a number is no positive integer, the threads are too many, or a
            seed is no integer of 0 or more.
    """
    if engine not in ENGINES:
        from pocketgraph.runtime.part_engines.available_engines import find

        find(engine).version()  # raises where there is none, or it is not installed
    if check not in CHECKS:
        raise UsageError(f"there is no check '{check}'", hint="use 'first', 'always' or 'never'")
    for value, wanted in (
        (threads, "a session needs at least 1 thread"),
        (inter_op_threads, "a session needs at least 1 inter-op thread"),
        (memory_limit, "a memory limit is a number of bytes"),
        (step_limit, "a step limit is a number of nodes"),
    ):
        if value is not None and (not isinstance(value, SupportsIndex) or index(value) < 1):
            raise UsageError(f"{wanted}, not {value!r}", hint="pass an integer of 1 or more, or leave it out")
    if threads is not None and index(threads) > MOST_THREADS:
        raise UsageError(
            f"a session takes at most {MOST_THREADS} threads, not {threads}",
            hint="leave threads out for all processors",
        )
    if seed is not None and (not isinstance(seed, SupportsIndex) or index(seed) < 0):
        raise UsageError(
            f"a seed is an integer of 0 or more, not {seed!r}", hint="pass such a number, or leave seed out"
        )


def model_path(model: object) -> str:
    """The path of a model's file or directory: ``model_at`` of the path, as a SavedModel's directory has the values.

    Raises:
        UsageError: it is none.
        RunError: there is no such file.
    """
    path = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    if isinstance(path, str):
        if not os.path.exists(path):
            from pocketgraph.formats.files import near

            raise RunError("there is no such file", where=path, hint=near(path))
        if os.path.isdir(path) or os.path.basename(path).startswith("saved_model."):
            from pocketgraph.formats.detect import model_at

            return model_at(path)
        return path
    raise UsageError(
        f"a session takes a Graph or a path, not {type(model).__name__}",
        hint="pocketgraph.formats.from_bytes(data) makes a Graph of an encoded GraphDef",
    )


def check_options(options: object) -> None:
    """Refuses what are no RunOptions.

    Raises:
        UsageError: it is something else.
    """
    from pocketgraph.runtime.run_options import RunOptions

    if not isinstance(options, RunOptions):
        raise UsageError(
            f"options are RunOptions, not {type(options).__name__}", hint="such as RunOptions(timeout_in_ms=50)"
        )
