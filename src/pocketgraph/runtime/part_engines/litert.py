"""LiteRT as an engine for parts; a session opens its runners without asking for it here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pocketgraph.litert.cached_executable import runner_for
from pocketgraph.litert.host import engine_version
from pocketgraph.litert.running.runner import Runner
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


class LiteRTEngine:
    """LiteRT with XNNPACK."""

    name = "litert"

    def version(self) -> str:
        return engine_version()

    def refuses(self, part: OfferedPart) -> str:
        return ""

    def load(self, part: OfferedPart, threads: int) -> Runner:
        return runner_for(part.entry, threads)

    def profile(self, part: OfferedPart, threads: int, inputs: Sequence[Array]) -> list[OperationTime] | None:
        from pocketgraph.litert.native.profiler import profile

        found = profile(part.file, threads, inputs)
        return None if found is None else [OperationTime("", each.name, each.microseconds) for each in found]


ENGINE = LiteRTEngine()
