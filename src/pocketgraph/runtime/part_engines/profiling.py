"""The times of a part's operations by the profile of the engine that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import PocketgraphError
from pocketgraph.litert import cache
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime
from pocketgraph.runtime.part_engines.registry import find

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.executable import Executable


def operation_times(executable: Executable, inputs: Sequence[Array]) -> list[OperationTime]:
    """What the engine of a part tells of its operations; nothing where it does not, or the part is not in the cache.

    Args:
        executable: the part.
        inputs: what goes in.
    """
    entry = cache.find(*executable.kept_as) if executable.kept_as is not None else None
    if entry is None:
        return []
    given = [inputs[index] for index in entry.about["fed"]]
    try:
        engine = find(executable.engine.partition(" ")[0])
        return engine.profile(OfferedPart(entry), executable.threads, given) or []
    except (PocketgraphError, RuntimeError, ValueError):
        return []
