"""The engines by name: those that are built in, and those that installed packages offer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from pocketgraph.errors import MissingExtraError, RunError, UsageError, did_you_mean
from pocketgraph.litert.executable import Opener
from pocketgraph.litert.running.microbatch_runner import MicrobatchRunner
from pocketgraph.litert.running.runner import Runner
from pocketgraph.runtime.memory_trim import trim_memory
from pocketgraph.runtime.part_engines.part_engine import CutBatchError, OfferedPart, PartEngine

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pocketgraph.runtime.certificates.part_reference import PartReference

GROUP = "pocketgraph.engines"
"""The entry point group: ``[project.entry-points."pocketgraph.engines"]`` with ``mine = "package.module:ENGINE"``."""
BUILT_IN = ("litert", "reference")


@lru_cache(maxsize=1)
def offered() -> dict[str, EntryPoint]:
    """The engines that installed packages offer, by name; none of their code is run for this."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> tuple[str, ...]:
    """What ``engine`` may be called by, installed or not."""
    return (*BUILT_IN, *sorted(offered()))


def find(name: str) -> PartEngine:
    """The engine of this name.

    Raises:
        UsageError: there is none, or what a package offers is none.
    """
    if name in BUILT_IN:
        found: PartEngine = import_module(f"pocketgraph.runtime.part_engines.{name}").ENGINE
        return found
    if name not in offered():
        known = ("auto", *names())
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise UsageError(f"there is no engine '{name}'", hint=hint or f"use {', '.join(map(repr, known))} or None")
    try:
        made: PartEngine = offered()[name].load()
    except Exception as error:  # anything may go wrong in somebody's code
        raise UsageError(f"the engine '{name}' cannot be imported: {type(error).__name__}: {error}") from error
    missing = [each for each in ("version", "refuses", "load", "profile") if not callable(getattr(made, each, None))]
    if missing:
        raise UsageError(f"the engine '{name}' has no {missing[0]}()", hint="it is as PartEngine in docs/engines.md")
    return made


def label(engine: PartEngine, name: str) -> str:
    """The name and version, under which measurements and certificates are kept.

    Raises:
        MissingExtraError: it is not installed.
    """
    return f"{name} {engine.version()}"


def candidates() -> dict[str, PartEngine]:
    """The installed engines that ``auto`` measures beside LiteRT, by label."""
    found = {}
    for name in names():
        if name in ("litert", "reference"):
            continue
        try:
            engine = find(name)
            found[label(engine, name)] = engine
        except (UsageError, MissingExtraError):
            continue
    return found


def opener(name: str, nodes: Callable[[], PartReference] | None) -> Opener:
    """What opens parts on the engine of this name; ``nodes`` as for OfferedPart.

    Raises:
        UsageError: there is no such engine.
        MissingExtraError: it is not installed.
    """
    engine = find(name)
    return Opener(label(engine, name), lambda entry, threads: loaded(engine, name, OfferedPart(entry, nodes), threads))


def loaded(engine: PartEngine, name: str, part: OfferedPart, threads: int) -> Runner:
    """The engine's runner for a part.

    Raises:
        RunError: it refuses, or fails.
    """
    try:
        why = engine.refuses(part)
        if not why:
            runner = _runner(engine, part, threads)
            trim_memory()
            return runner
    except RunError:
        raise
    except Exception as error:  # anything may go wrong in somebody's code
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    raise RunError(f"the engine '{name}' does not take it: {why}")


def _runner(engine: PartEngine, part: OfferedPart, threads: int) -> Runner:
    """The engine's runner for a part; several for a part of a batch, where it reads a file and that is for such."""
    try:
        return engine.load(part, threads)
    except CutBatchError:
        one = part.of_one_microbatch()
        return MicrobatchRunner(lambda: engine.load(one, 1), threads, part.microbatches)
